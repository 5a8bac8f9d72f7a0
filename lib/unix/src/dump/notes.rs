//! The notes of a core file: what the threads and the process were.

use alloc::rc::Rc;
use alloc::vec::Vec;

use zerocopy::IntoBytes;

use super::NOTES_MAX;
use crate::call::Cx;
use crate::signal::info::Info;
use crate::signal::vector;
use crate::thread::Thread;
use crate::trace::memory::read_some;
use crate::trace::registers;

const NT_PRSTATUS: u32 = 1;
const NT_FPREGSET: u32 = 2;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_X86_XSTATE: u32 = 0x202;
const NT_SIGINFO: u32 = 0x5349_4749;
/// Bytes of `struct elf_prstatus`, and where its registers are.
const STATUS_BYTES: usize = 336;
const REGISTERS: usize = 112;
/// Bytes of `struct elf_prpsinfo`, and where the program's name and arguments are.
const PROCESS_BYTES: usize = 136;
const NAME: usize = 40;
const ARGUMENTS: usize = 56;
/// Bytes of the auxiliary vector at most.
const AUXILIARY_MAX: u64 = 1024;

/// Adds a note.
fn note(all: &mut Vec<u8>, owner: &[u8], kind: u32, body: &[u8]) {
    let head = [owner.len() as u32 + 1, body.len() as u32, kind];
    all.extend(head.iter().flat_map(|word| word.to_le_bytes()));
    all.extend_from_slice(owner);
    all.push(0);
    all.resize(all.len().next_multiple_of(4), 0);
    all.extend_from_slice(body);
    all.resize(all.len().next_multiple_of(4), 0);
}

/// All notes: of the thread that took the signal, the process, and the other threads.
pub(super) fn all(cx: &Cx, signal: u32) -> Vec<u8> {
    let mut all = Vec::new();
    note(&mut all, b"CORE", NT_PRSTATUS, &status(cx, cx.thread, signal));
    note(&mut all, b"CORE", NT_PRPSINFO, &process(cx));
    note(&mut all, b"CORE", NT_SIGINFO, &Info::kernel(signal).bytes());
    let layout = cx.process.space().layout.get();
    let mut auxiliary = [0; AUXILIARY_MAX as usize];
    let (start, end) = (layout.auxiliary.0, layout.auxiliary.1);
    let len = end.saturating_sub(start).min(AUXILIARY_MAX) as usize;
    let len = read_some(cx.unix, &cx.process.space(), start, &mut auxiliary[..len]);
    note(&mut all, b"CORE", NT_AUXV, &auxiliary[..len]);
    vectors(cx, cx.thread, &mut all);
    let threads = cx.process.threads.borrow().clone();
    for other in threads.iter().filter(|other| !Rc::ptr_eq(other, cx.thread)) {
        if all.len() > NOTES_MAX / 2 {
            break;
        }
        note(&mut all, b"CORE", NT_PRSTATUS, &status(cx, other, signal));
        vectors(cx, other, &mut all);
    }
    all
}

/// `struct elf_prstatus`.
fn status(cx: &Cx, thread: &Rc<Thread>, signal: u32) -> [u8; STATUS_BYTES] {
    let mut bytes = [0; STATUS_BYTES];
    let mut put = |at: usize, from: &[u8]| bytes[at..at + from.len()].copy_from_slice(from);
    put(0, &signal.to_le_bytes());
    put(12, &(signal as u16).to_le_bytes());
    put(16, &thread.signals.pending.set().to_le_bytes());
    put(24, &thread.signals.blocked.get().to_le_bytes());
    let process = cx.process;
    let ids: Vec<u32> =
        [thread.own_tid.get(), process.parent_number.get()].into_iter().chain(family(cx)).collect();
    put(32, ids.as_bytes());
    let words = registers::of_stopped(cx.unix, thread);
    put(REGISTERS, words.as_bytes());
    put(REGISTERS + words.len() * 8, &1_u32.to_le_bytes());
    bytes
}

/// Its group and session.
fn family(cx: &Cx) -> [u32; 2] {
    [&cx.process.group, &cx.process.session].map(|id| cx.shown(id.get()))
}

/// `struct elf_prpsinfo`.
fn process(cx: &Cx) -> [u8; PROCESS_BYTES] {
    let mut bytes = [0; PROCESS_BYTES];
    let process = cx.process;
    let who = process.credentials.borrow();
    let mut put = |at: usize, from: &[u8]| bytes[at..at + from.len()].copy_from_slice(from);
    put(1, b"R");
    let [group, session] = family(cx);
    let ids = [
        cx.user_told(who.uid),
        cx.group_told(who.gid),
        process.number,
        process.parent_number.get(),
        group,
        session,
    ];
    put(16, ids.as_bytes());
    put(NAME, &process.name());
    let layout = process.space().layout.get();
    let (start, end) = (layout.arguments.0, layout.arguments.1);
    let len = end.saturating_sub(start).min((PROCESS_BYTES - ARGUMENTS - 1) as u64) as usize;
    let mut text = [0; PROCESS_BYTES - ARGUMENTS];
    let got = read_some(cx.unix, &process.space(), start, &mut text[..len]);
    let shown = text[..got].strip_suffix(b"\0").unwrap_or(&text[..got]).len();
    text[..shown].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    put(ARGUMENTS, &text);
    bytes
}

/// The vector and floating-point state.
fn vectors(cx: &Cx, thread: &Rc<Thread>, all: &mut Vec<u8>) {
    let state = vector::for_tracer(cx.unix, thread);
    note(all, b"CORE", NT_FPREGSET, state.get(..registers::LEGACY).unwrap_or_default());
    if state.len() > registers::LEGACY {
        note(all, b"LINUX", NT_X86_XSTATE, &state);
    }
}
