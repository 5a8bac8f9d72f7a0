//! The marks, and everything that has to be exact to the instruction.
//!
//! The one module of the measured programs with `unsafe` code: marks are machine
//! instructions, and between a mark and a trap there must be nothing that a
//! compiler put there. A mark is a long no-operation with a displacement that no
//! compiler emits (bench/host/plugin/decode.c).
#![allow(unsafe_code)]

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::layout::{stub, stub_address};
use abi::syscall::COMPLETE_PATH;
use abi::{MsgTag, ThreadId, Time, Timeouts};
use runtime::section::Section;

/// Label of a partner's first message.
pub const READY: u64 = 4;

global_asm!(
    include_str!("marks.S"),
    READY = const READY,
    REPLY_WAIT = const (Timeouts::new(Time::ZERO, Time::NEVER).0 as i32),
    COMPLETE_BIT = const COMPLETE_PATH.trailing_zeros(),
    ROOT = const ThreadId::ROOT.0 as i64,
    MY_GLOBAL_ID = const abi::utcb::MY_GLOBAL_ID * 8,
    LOCAL_CALL = const stub_address(stub::LOCAL_CALL) as i64,
    LOCAL_REPLY_WAIT = const stub_address(stub::LOCAL_REPLY_WAIT) as i64,
    NO_VECTOR = const abi::syscall::state::NO_VECTOR,
    LRPC_CALL = const abi::syscall::Call::LrpcCall as u64,
    LRPC_RETURN = const abi::syscall::Call::LrpcReturn as u64,
    THREAD_STATE = const abi::syscall::Call::ThreadState as u64,
);

unsafe extern "C" {
    fn bench_exchange(to: u64, from: u64, timeouts: u64, tag: u64, mr1: u64, mr2: u64) -> u64;
    fn bench_exchange_dead(to: u64, from: u64, timeouts: u64, tag: u64, mr1: u64, mr2: u64) -> u64;
    fn bench_exchange_kept(to: u64, from: u64, timeouts: u64, tag: u64, mr1: u64, mr2: u64) -> u64;
    fn bench_serve_dead();
    fn bench_serve_kept();
    fn bench_program();
    fn bench_exchange_local(to: u64, tag: u64) -> u64;
    fn bench_exchange_local_vector(to: u64, tag: u64) -> u64;
    fn bench_split(to: u64, tag: u64) -> u64;
    fn bench_serve_marked();
    fn bench_serve_anybody();
    fn bench_serve_complete();
    fn bench_serve_local();
    fn bench_serve_local_vector();
    fn bench_serve();
    fn bench_serve_split();
    fn bench_serve_strings();
    fn bench_serve_lrpc();
    fn bench_lrpc(token: u64) -> u64;
    fn bench_sleep();
    fn bench_spin(rounds: u64);
    fn bench_walk(from: u64, lines: u64);
    fn bench_copy(to: u64, from: u64, words: u64);
    fn bench_trap();
    fn bench_undefined();
}

/// Address and bytes of the string partners' buffer.
#[unsafe(no_mangle)]
static BENCH_BUFFER: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The stack of the partner in the same space: a return address.
#[unsafe(no_mangle)]
static BENCH_LOCAL_STACK: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Samples that have ended: the instrument counts the same ones.
static SAMPLES: AtomicU64 = AtomicU64::new(0);

/// Number of samples so far.
#[must_use]
pub fn samples() -> u64 {
    SAMPLES.load(Relaxed)
}

/// Notes `count` samples that ended elsewhere.
pub fn note(count: u64) {
    SAMPLES.fetch_add(count, Relaxed);
}

/// Begins a sample.
#[inline(always)]
pub fn begin() {
    // SAFETY: a no-operation.
    unsafe {
        asm!(".byte 0x0F, 0x1F, 0x84, 0, 0x42, 0x54, 0x4E, 1", options(nostack, preserves_flags))
    };
}

/// Ends a sample.
#[inline(always)]
pub fn end() {
    // SAFETY: a no-operation.
    unsafe {
        asm!(".byte 0x0F, 0x1F, 0x84, 0, 0x42, 0x54, 0x4E, 2", options(nostack, preserves_flags))
    };
}

/// Begins a phase: what the samples of several processors share is counted anew.
#[inline(always)]
pub fn phase() {
    // SAFETY: a no-operation.
    unsafe {
        asm!(".byte 0x0F, 0x1F, 0x84, 0, 0x42, 0x54, 0x4E, 3", options(nostack, preserves_flags))
    };
}

/// Whoever has this is the handler of a device, and runs: one sample of what has been executed on its processor since the
/// first interrupt of a device behind the last such sample.
#[inline(always)]
pub fn handler() {
    // SAFETY: a no-operation.
    unsafe {
        asm!(".byte 0x0F, 0x1F, 0x84, 0, 0x42, 0x54, 0x4E, 4", options(nostack, preserves_flags))
    };
    note(1);
}

/// Measures `operation`: one sample.
#[inline(always)]
pub fn sample<T>(operation: impl FnOnce() -> T) -> T {
    begin();
    let result = operation();
    end();
    note(1);
    result
}

/// What a partner runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Sends messages back, with marks of its own.
    Marked,
    /// The same to whoever has sent them; of the others only the root task is a client.
    Anybody,
    /// The same on the kernel's complete path.
    Complete,
    /// The same without the kernel, in the client's space.
    Local,
    /// The same with vector registers.
    LocalVector,
    /// Sends messages back by the kernel, with vector registers, dead over its waits.
    VectorDead,
    /// The same with vector registers that are kept.
    VectorKept,
    /// Sends messages back.
    Plain,
    /// Receives and sends with two calls.
    Split,
    /// Takes strings.
    Strings,
    /// Runs procedures that do nothing for the clerk of [`set_clerk`].
    Host,
    /// Sleeps.
    Sleeper,
    /// Starts as a Rust function with a stack.
    Program,
}

/// Where a partner of this role starts.
#[must_use]
pub fn start_of(role: Role) -> u64 {
    (match role {
        Role::Marked => bench_serve_marked as *const (),
        Role::Anybody => bench_serve_anybody as *const (),
        Role::Complete => bench_serve_complete as *const (),
        Role::Local => bench_serve_local as *const (),
        Role::LocalVector => bench_serve_local_vector as *const (),
        Role::VectorDead => bench_serve_dead as *const (),
        Role::VectorKept => bench_serve_kept as *const (),
        Role::Plain => bench_serve as *const (),
        Role::Split => bench_serve_split as *const (),
        Role::Strings => bench_serve_strings as *const (),
        Role::Host => bench_serve_lrpc as *const (),
        Role::Sleeper => bench_sleep as *const (),
        Role::Program => bench_program as *const (),
    }) as u64
}

/// The clerk of hosts to come.
#[unsafe(no_mangle)]
static BENCH_CLERK: AtomicU64 = AtomicU64::new(0);

/// Says to whom hosts to come are lent.
pub fn set_clerk(clerk: ThreadId) {
    BENCH_CLERK.store(clerk.0, Relaxed);
}

/// Calls a procedure that does nothing: two samples. Whether it has returned.
pub fn procedure_call(token: u64) -> bool {
    note(2);
    // SAFETY: the call changes registers that the function keeps, and no memory.
    unsafe { bench_lrpc(token) == 0 }
}

/// Says where the string partners put what they receive.
pub fn set_buffer(address: u64, bytes: u64) {
    BENCH_BUFFER[0].store(address, Relaxed);
    BENCH_BUFFER[1].store(bytes, Relaxed);
}

/// A call of `to` with the tag and two words: `samples` samples (two if the partner
/// sets marks). Returns the tag of the answer.
pub fn exchange(to: ThreadId, tag: MsgTag, words: [u64; 2], samples: u64) -> MsgTag {
    // SAFETY: this thread's acceptor is closed: only words arrive.
    let tag = unsafe { bench_exchange(to.0, to.0, Timeouts::NEVER.0, tag.0, words[0], words[1]) };
    note(samples);
    MsgTag(tag)
}

/// [`exchange`] on the kernel's complete path: two samples.
pub fn complete_exchange(to: ThreadId, tag: MsgTag) -> MsgTag {
    let timeouts = Timeouts::NEVER.0 | COMPLETE_PATH;
    // SAFETY: as in `exchange`.
    let tag = unsafe { bench_exchange(to.0, to.0, timeouts, tag.0, 0, 0) };
    note(2);
    MsgTag(tag)
}

/// [`exchange`] with a thread of this space, by its local id, without the kernel where that is
/// possible: two samples.
pub fn local_exchange(to: ThreadId, tag: MsgTag) -> MsgTag {
    // SAFETY: as in `exchange`.
    let tag = unsafe { bench_exchange_local(to.0, tag.0) };
    note(2);
    MsgTag(tag)
}

/// The same by a thread that uses vector registers.
pub fn local_vector_exchange(to: ThreadId, tag: MsgTag) -> MsgTag {
    // SAFETY: as in `exchange`; nothing in this program keeps anything in vector registers.
    let tag = unsafe { bench_exchange_local_vector(to.0, tag.0) };
    note(2);
    MsgTag(tag)
}

/// The critical section of the thread of this space whose local id is `thread`, which runs
/// [`serve_section`].
#[must_use]
pub fn section(thread: ThreadId) -> Section<u64> {
    // SAFETY: it serves such a value, and is used nowhere else.
    unsafe { Section::of(thread) }
}

/// Sends messages back without the kernel where that is possible, once the root task has been told that this thread
/// is there: [`Role::Local`] on a stack of its own.
pub extern "C" fn serve_local(_: u64) -> ! {
    let _ = runtime::ipc::send(ThreadId::ROOT, &runtime::Msg::new(READY));
    // SAFETY: waits for anybody, and nothing of the program's goes on behind it.
    unsafe {
        asm!(
            "mov rdi, gs:[0]",
            "xor r9d, r9d",
            "xor esi, esi",
            "mov rdx, -1",
            "xor r8d, r8d",
            "syscall",
            "jmp bench_serve_local_loop",
            options(noreturn)
        );
    }
}

/// Looks after a value, once the root task has been told that this thread is there.
pub extern "C" fn serve_section(_: u64) -> ! {
    let _ = runtime::ipc::send(ThreadId::ROOT, &runtime::Msg::new(READY));
    runtime::section::serve(0_u64)
}

/// [`exchange`] by a thread that uses vector registers: two samples. `role` says whether
/// they are kept.
pub fn vector_exchange(to: ThreadId, tag: MsgTag, role: Role) -> MsgTag {
    let exchange = if role == Role::VectorKept { bench_exchange_kept } else { bench_exchange_dead };
    // SAFETY: as in `exchange`; nothing in this program keeps anything in vector registers.
    let tag = unsafe { exchange(to.0, to.0, Timeouts::NEVER.0, tag.0, 0, 0) };
    note(2);
    MsgTag(tag)
}

/// A send to `to` and a receive from it, as two calls: one sample.
pub fn split(to: ThreadId, tag: MsgTag) -> MsgTag {
    // SAFETY: as in `exchange`.
    let tag = unsafe { bench_split(to.0, tag.0) };
    note(1);
    MsgTag(tag)
}

/// A loop of exactly `2 * rounds` instructions.
pub fn spin(rounds: u64) {
    // SAFETY: registers only.
    unsafe { bench_spin(rounds) };
    note(1);
}

/// Reads one word in each of `lines` lines from `from`, a multiple of 64.
pub fn walk(from: &[u64], lines: usize) {
    assert!(from.len() >= lines * 8 && from.as_ptr().addr().is_multiple_of(64));
    // SAFETY: the lines are inside the slice.
    unsafe { bench_walk(from.as_ptr() as u64, lines as u64) };
    note(1);
}

/// Copies `to.len()` words with `rep movsq`.
pub fn copy(to: &mut [u64], from: &[u64]) {
    assert!(from.len() >= to.len());
    // SAFETY: both slices have that many words.
    unsafe { bench_copy(to.as_mut_ptr() as u64, from.as_ptr() as u64, to.len() as u64) };
    note(1);
}

/// A system call that does not exist.
pub fn trap() {
    // SAFETY: the kernel refuses it.
    unsafe { bench_trap() };
    note(1);
}

/// An undefined instruction; its handler goes on two bytes further.
pub fn undefined() {
    // SAFETY: the exception handler skips it and changes nothing else.
    unsafe { bench_undefined() };
    note(1);
}

/// Leaves `function` and its argument on the stack that ends at `top`, for
/// [`Role::Program`]; returns SP.
pub fn prepare_stack(
    stack: &'static [AtomicU64],
    function: extern "C" fn(u64) -> !,
    argument: u64,
) -> u64 {
    let at = stack.len() - 8;
    stack[at].store(argument, Relaxed);
    stack[at + 1].store(function as usize as u64, Relaxed);
    stack[at].as_ptr() as u64
}
