//! Interrupts and exceptions: what each vector means, for threads and for the kernel.

use abi::{Fpage, Rights, ThreadId};

use super::{asked, visitors};
use crate::arch::log;
use crate::arch::x86_64::asm::fault_address;
use crate::arch::x86_64::frame::{Frame, TrapFrame};
use crate::arch::x86_64::percpu::{cpu, note_entry};
use crate::arch::x86_64::thread::current;
use crate::arch::x86_64::thread::tcbs::{STACK_BYTES, TcbRef, is_below_stack};
use crate::arch::x86_64::vectors::{self, exception};
use crate::arch::x86_64::{apic, boot, io_instruction, lines, machine_check, nmi, place};
use crate::ipc::kernel_message;
use crate::irq::{tick, watch};
use crate::mem::{Access, Resolved};
use crate::sched;
use crate::thread::tcb::{Resume, TCB_SIZE};
use crate::{irq, mem, usermem};

const LINE: u64 = vectors::LINE as u64;
const LINES: u64 = vectors::LINES as u64;
const LEGACY: u64 = vectors::LEGACY as u64;
const LAST_LEGACY: u64 = LINE - 1;
const HELLO: u64 = vectors::HELLO as u64;
const SPURIOUS: u64 = vectors::SPURIOUS as u64;
const TIMER_LINE: u64 = lines::TIMER as u64;
const PAGE: u64 = 4096;

/// Page-fault error bits (Intel SDM 3A, 4.7).
const ERROR_WRITE: u64 = 1 << 1;
const ERROR_FETCH: u64 = 1 << 4;

/// The flag that lets the kernel touch user pages in spite of SMAP.
const FLAG_AC: u64 = 1 << 18;

/// An exception or an interrupt in user mode, registers in the current thread's frame;
/// returns who runs next. What a window has noted meanwhile is handled on the way out
/// (`switch::activate`). `end` is the end of the thread's tcb.
pub extern "C" fn from_user(end: u64) -> TcbRef {
    // SAFETY: the entry has found the frame below the tcb that ends there: the current one.
    let thread = unsafe { TcbRef::from_address(end - TCB_SIZE as u64) };
    debug_assert!(thread == current());
    let frame = thread.frame();
    debug_assert!(frame.is_users());
    note_entry();
    thread.resume.set(Resume::Frame);
    // The frequent ones first; none of them is inlined, so this needs no stack.
    let vector = frame.vector.get();
    if vector == exception::PAGE_FAULT {
        return page_fault(thread, frame);
    }
    let line = vector.wrapping_sub(LINE);
    if line < LINES { interrupt(thread, line) } else { other(thread, frame) }
}

/// The vectors that are seldom met.
#[inline(never)]
fn other(thread: TcbRef, frame: Frame) -> TcbRef {
    let vector = frame.vector.get();
    match vector {
        exception::INVALID_OPCODE if is_kernel_interface(thread, frame) => {
            kernel_interface(thread, frame)
        }
        exception::GENERAL_PROTECTION => general_protection(thread, frame),
        0..LEGACY => kernel_message::exception(thread),
        LEGACY..=LAST_LEGACY => legacy(thread, vector - LEGACY),
        HELLO => hello(thread),
        // Spurious: nothing but the taking of it is to be done.
        _ => sched::go_on(thread),
    }
}

/// An entry from kernel mode: an interrupt of the idle thread (returns who runs
/// next) or in a preemption window (`None`: go on); anything else is a defect.
pub extern "C" fn from_kernel(frame: &'static TrapFrame) -> Option<TcbRef> {
    if frame.flags.get() & FLAG_AC != 0 {
        cpu().unguarded.set(cpu().unguarded.get() + 1);
    }
    let vector = frame.vector.get();
    if vector == SPURIOUS {
        return None;
    }
    if vector == HELLO && cpu().number.get() != 0 {
        asked::serve();
        apic::end();
        if !cpu().in_window.get() {
            visitors::welcome();
        }
        return None;
    }
    if vector == HELLO && !cpu().in_window.get() {
        return Some(hello(current()));
    }
    if vector == HELLO {
        apic::end();
        cpu().pending_lines.set(cpu().pending_lines.get() | 1 << sched::leaving::LINE);
        return None;
    }
    let (line, is_legacy) = match vector {
        LEGACY..=LAST_LEGACY => (vector - LEGACY, true),
        LINE..HELLO if visitors::passes_on(vector) => return None,
        LINE..HELLO => (vector - LINE, false),
        _ => fatal(frame),
    };
    if !cpu().in_window.get() {
        let running = current();
        return Some(if is_legacy { legacy(running, line) } else { interrupt(running, line) });
    }
    let accept = if is_legacy { lines::accept_legacy } else { lines::accept };
    if accept(line as u8) {
        cpu().pending_lines.set(cpu().pending_lines.get() | 1 << line);
    }
    None
}

/// The timer is no thread's: nothing to mask, nobody to tell, and most ticks change nothing.
fn interrupt(running: TcbRef, line: u64) -> TcbRef {
    if line == TIMER_LINE {
        apic::end();
        return tick::tick(running);
    }
    device(running, line)
}

#[inline(never)]
fn device(running: TcbRef, line: u64) -> TcbRef {
    if lines::accept(line as u8) {
        irq::interrupt(running, line as u32)
    } else {
        sched::go_on(running)
    }
}

/// The same, at the 8259s.
#[inline(never)]
fn legacy(running: TcbRef, line: u64) -> TcbRef {
    match (lines::accept_legacy(line as u8), line) {
        (false, _) => sched::go_on(running),
        (true, TIMER_LINE) => tick::tick(running),
        (true, _) => irq::interrupt(running, line as u32),
    }
}

/// Another processor wants the first one, on which `running` was, to look.
#[inline(never)]
fn hello(running: TcbRef) -> TcbRef {
    apic::end();
    watch::interrupted(running)
}

#[inline(never)]
fn page_fault(thread: TcbRef, frame: Frame) -> TcbRef {
    let address = fault_address();
    let error = frame.error.get();
    let access = if error & ERROR_WRITE != 0 {
        Rights::W
    } else if error & ERROR_FETCH != 0 {
        Rights::X
    } else {
        Rights::R
    };
    if thread
        .space()
        .is_some_and(|space| space.is_sigma0() && crate::mem::sigma0_fault(space, address))
    {
        return thread;
    }
    kernel_message::page_fault(thread, address, access, frame.ip.get())
}

/// Reads the instruction at `address` into `to`; how many bytes of it are there.
fn code(thread: TcbRef, address: u64, to: &mut [u8]) -> usize {
    let mut done = 0;
    let in_first = (PAGE - address % PAGE).min(to.len() as u64) as usize;
    let (first, second) = to.split_at_mut(in_first);
    for part in [first, second] {
        let at = address.saturating_add(done as u64);
        let space = thread.space().filter(|_| !part.is_empty());
        let found = space.and_then(|space| space.resolve(at, Access::Read));
        let Some(span) = found.and_then(Resolved::memory) else { break };
        done += usermem::read(span, part);
    }
    done
}

/// Whether the thread executed `lock nop`, the KernelInterface call (X.2 2.1). Few other
/// instructions begin like it.
fn is_kernel_interface(thread: TcbRef, frame: Frame) -> bool {
    let [first, second] = [frame.ip.get(), frame.ip.get().wrapping_add(1)];
    code_byte(thread, first) == Some(0xF0) && code_byte(thread, second) == Some(0x90)
}

/// The byte of code at `address`, if there is one.
fn code_byte(thread: TcbRef, address: u64) -> Option<u8> {
    let mut span = thread.space()?.resolve(address, Access::Read)?.memory()?;
    usermem::read_byte(&mut span)
}

fn kernel_interface(thread: TcbRef, frame: Frame) -> TcbRef {
    frame.rax.set(thread.space().map_or(0, |space| space.kip_area().start));
    frame.rcx.set(abi::kip::API_VERSION);
    frame.rdx.set(abi::kip::API_FLAGS);
    frame.rsi.set(abi::kip::KERNEL_ID);
    frame.ip.set(frame.ip.get() + 2);
    thread
}

fn general_protection(thread: TcbRef, frame: Frame) -> TcbRef {
    if frame.error.get() != 0 {
        return kernel_message::exception(thread);
    }
    let mut bytes = [0; 15];
    let count = code(thread, frame.ip.get(), &mut bytes);
    match io_instruction::ports(&bytes[..count], frame.rdx.get() as u16) {
        Some(ports) if !has_ports(thread, ports) => {
            kernel_message::io_fault(thread, ports, frame.ip.get())
        }
        _ => kernel_message::exception(thread),
    }
}

fn has_ports(thread: TcbRef, ports: Fpage) -> bool {
    let first = ports.io_base();
    let last = first | ((1_u32 << ports.io_bits()) - 1) as u16;
    thread.space().is_some_and(|space| (first..=last).all(|port| mem::io::allowed(space, port)))
}

/// An event with a stack of its own, at any instruction; the machine goes on where it was
/// when this returns.
pub extern "C" fn on_own_stack(frame: &'static TrapFrame) {
    match frame.vector.get() {
        exception::NMI => nmi::enter(frame, log::note),
        exception::MACHINE_CHECK => machine_check::enter(frame),
        _ => fatal(frame),
    }
}

fn fatal(frame: Frame) -> ! {
    let has_thread = cpu().tss.rsp0.get() != 0;
    let id = if has_thread { current().id.get() } else { ThreadId::NIL };
    let (vector, address) = (frame.vector.get(), fault_address());
    let at = place::linked(frame.ip.get());
    if vector == exception::DOUBLE_FAULT && has_thread && is_below_stack(current(), address) {
        panic!(
            "the kernel stack of thread {id} has overflowed at {at:#x}: it needs more than its {STACK_BYTES} bytes"
        );
    }
    if let Some(stack) = guard_of(address).filter(|_| vector == exception::DOUBLE_FAULT) {
        panic!("{stack} has overflowed at {at:#x}, thread {id}");
    }
    panic!(
        "vector {vector} (error {:#x}) in the kernel at {at:#x}, stack {:#x}, address {address:#x}, thread {id}",
        frame.error.get(),
        frame.sp.get(),
    );
}

/// The stack of the kernel's own below which `address` lies.
fn guard_of(address: u64) -> Option<&'static str> {
    // On other processors than the first a stack is one page less (`replica.rs`).
    let last = if cpu().number.get() == 0 { 0 } else { PAGE };
    let lies_there = |guard| (guard..=guard + last).contains(&(address & !(PAGE - 1)));
    boot::GUARDED.get(boot::guards().into_iter().position(lies_there)?).copied()
}
