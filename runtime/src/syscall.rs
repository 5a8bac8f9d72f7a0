//! The system calls, register by register (X.2 5.2).
//!
//! Ipc traps directly with global ids: that is the inlined fast path. All other
//! calls go through the kernel's user page, whose stubs sit at one address in
//! every space (`abi::layout::stub_address`, equal to the KIP's links). RBX and
//! RBP cannot be operands of inline assembly, so they are saved on the stack
//! and MR2 passes through RCX, which the trap destroys anyway.

mod one;

use core::arch::asm;

use abi::layout::{stub, stub_address};
use abi::syscall::Call;
pub use one::{ipc_one, local_call_one, local_onward, lrpc_call_one};

/// A call's message registers MR0..MR7.
pub type Regs = [u64; 8];

/// Ipc by `syscall`: `to` and `from` are global ids, nil, any or any-local.
/// Returns the sender's id and MR0..MR7.
///
/// # Safety
/// The kernel may write what the buffer registers and the receive window allow.
/// The caller guarantees that no Rust object is changed behind its owner's back.
#[inline(always)]
pub unsafe fn ipc(to: u64, from: u64, timeouts: u64, utcb: u64, mr: Regs) -> (u64, Regs) {
    let [mut m0, mut m1, mut m2, mut m3, mut m4, mut m5, mut m6, mut m7] = mr;
    let mut partner = to;
    // SAFETY: the binding of X.2 5.2; every register that the call changes is an
    // output or saved. Memory effects are the caller's promise.
    unsafe {
        asm!(
            "push rbp", "push rbx", "mov rbx, rcx",
            "syscall",
            "mov rcx, rbx", "pop rbx", "pop rbp",
            inout("r9") m0, inout("rax") m1, inout("rcx") m2, inout("r10") m3,
            inout("r12") m4, inout("r13") m5, inout("r14") m6, inout("r15") m7,
            inout("rsi") partner, inout("rdx") from => _, inout("r8") timeouts => _,
            inout("rdi") utcb => _, out("r11") _,
        );
    }
    (partner, [m0, m1, m2, m3, m4, m5, m6, m7])
}

/// LrpcCall with a token and the procedure's number and words; a status and MR0..MR7. It needs neither U nor a second
/// partner, and the kernel puts something else into R15.
///
/// # Safety
/// The other side changes the A-stack, where no reference may lead.
#[inline(always)]
pub unsafe fn lrpc_call(token: u64, mr: [u64; 7]) -> (u64, Regs) {
    let [mut m0, mut m1, mut m2, mut m3, mut m4, mut m5, mut m6] = mr;
    let m7: u64;
    let mut status = token;
    let number = (Call::LrpcCall as u64).wrapping_neg();
    // SAFETY: as in `ipc`.
    unsafe {
        asm!(
            "push rbp", "push rbx", "mov rbx, rcx",
            "syscall",
            "mov rcx, rbx", "pop rbx", "pop rbp",
            inout("r9") m0, inout("rax") m1, inout("rcx") m2, inout("r10") m3,
            inout("r12") m4, inout("r13") m5, inout("r14") m6, out("r15") m7,
            inout("rsi") status, inout("r8") number => _,
            out("rdx") _, out("rdi") _, out("r11") _,
        );
    }
    (status, [m0, m1, m2, m3, m4, m5, m6, m7])
}

/// LrpcReturn with MR0..MR7, the first time of a thread with the clerk to which it lends itself; an A-stack or a status, and
/// MR0..MR7.
///
/// # Safety
/// As for [`lrpc_call`].
#[inline(always)]
pub unsafe fn lrpc_return(clerk: Option<u64>, mr: Regs) -> (u64, Regs) {
    let [mut m0, mut m1, mut m2, mut m3, mut m4, mut m5, mut m6, mut m7] = mr;
    let came: u64;
    let number = (Call::LrpcReturn as u64).wrapping_neg();
    macro_rules! trap {
        ($($rsi:tt)*) => {
            asm!(
                "push rbp", "push rbx", "mov rbx, rcx",
                "syscall",
                "mov rcx, rbx", "pop rbx", "pop rbp",
                inout("r9") m0, inout("rax") m1, inout("rcx") m2, inout("r10") m3,
                inout("r12") m4, inout("r13") m5, inout("r14") m6, inout("r15") m7,
                $($rsi)*, inout("r8") number => _,
                out("rdx") _, out("rdi") _, out("r11") _,
            )
        };
    }
    // SAFETY: as in `ipc`. Of a thread that is lent the kernel does not read RSI.
    unsafe {
        match clerk {
            Some(clerk) => trap!(inout("rsi") clerk => came),
            None => trap!(out("rsi") came),
        }
    }
    (came, [m0, m1, m2, m3, m4, m5, m6, m7])
}

/// [`ipc`] with one untyped word, `value`; MR2 to MR7 are whatever the registers hold.
///
/// # Safety
/// As for [`ipc`].
#[inline(always)]
pub unsafe fn answer(to: u64, from: u64, timeouts: u64, utcb: u64, value: u64) -> (u64, Regs) {
    let (mut m0, mut m1, m2, m3, m4, m5, m6, m7): (u64, u64, u64, u64, u64, u64, u64, u64);
    (m0, m1) = (1, value);
    let mut partner = to;
    // SAFETY: as in `ipc`.
    unsafe {
        asm!(
            "push rbp", "push rbx",
            "syscall",
            "mov rcx, rbx", "pop rbx", "pop rbp",
            inout("r9") m0, inout("rax") m1, out("rcx") m2, out("r10") m3,
            out("r12") m4, out("r13") m5, out("r14") m6, out("r15") m7,
            inout("rsi") partner, inout("rdx") from => _, inout("r8") timeouts => _,
            inout("rdi") utcb => _, out("r11") _,
        );
    }
    (partner, [m0, m1, m2, m3, m4, m5, m6, m7])
}

/// Ipc (`stub` = Ipc) or Lipc (`stub` = Lipc) through the kernel's link: ids may be local.
///
/// # Safety
/// As for [`ipc`].
#[inline(always)]
pub unsafe fn ipc_link<const STUB: u64>(
    to: u64,
    from: u64,
    timeouts: u64,
    utcb: u64,
    mr: Regs,
) -> (u64, Regs) {
    let [mut m0, mut m1, mut m2, mut m3, mut m4, mut m5, mut m6, mut m7] = mr;
    let mut partner = to;
    // SAFETY: as in `ipc`; the stub is at the same address in every space.
    unsafe {
        asm!(
            "push rbp", "push rbx", "mov rbx, rcx", "mov rbp, {link}",
            "call rbp",
            "mov rcx, rbx", "pop rbx", "pop rbp",
            link = const stub_address(STUB) as i64,
            inout("r9") m0, inout("rax") m1, inout("rcx") m2, inout("r10") m3,
            inout("r12") m4, inout("r13") m5, inout("r14") m6, inout("r15") m7,
            inout("rsi") partner, inout("rdx") from => _, inout("r8") timeouts => _,
            inout("rdi") utcb => _, out("r11") _,
        );
    }
    (partner, [m0, m1, m2, m3, m4, m5, m6, m7])
}

/// Unmap. `control`: 5..0 flexpages − 1, 6 flush. Returns MR0..MR7.
///
/// # Safety
/// A flush takes pages away: the caller no longer relies on their contents.
pub unsafe fn unmap(control: u64, utcb: u64, mr: Regs) -> Regs {
    let [mut m0, mut m1, mut m2, mut m3, mut m4, mut m5, mut m6, mut m7] = mr;
    // SAFETY: the binding of X.2 5.2; the loss of pages is the caller's promise.
    unsafe {
        asm!(
            "push rbp", "push rbx", "mov rbx, rcx", "mov rbp, {link}",
            "call rbp",
            "mov rcx, rbx", "pop rbx", "pop rbp",
            link = const stub_address(stub::UNMAP) as i64,
            inout("r9") m0, inout("rax") m1, inout("rcx") m2, inout("r10") m3,
            inout("r12") m4, inout("r13") m5, inout("r14") m6, inout("r15") m7,
            inout("rdx") control => _, inout("rdi") utcb => _,
            out("rsi") _, out("r8") _, out("r11") _,
        );
    }
    [m0, m1, m2, m3, m4, m5, m6, m7]
}

/// ExchangeRegisters' in and out values (X.2 5.4).
#[derive(Clone, Copy, Default, Debug)]
pub struct ThreadRegisters {
    /// In: bits of `abi::syscall::exregs`. Out: was halted, receiving, sending.
    pub control: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// Flags (mask 0x8D5).
    pub flags: u64,
    /// UserDefinedHandle.
    pub handle: u64,
    /// Pager.
    pub pager: u64,
}

/// ExchangeRegisters. Returns the other id of `dest` (nil: failed) and the old values.
///
/// # Safety
/// Changing where a thread runs or what stack it uses is as powerful as a jump.
pub unsafe fn exchange_registers(dest: u64, mut regs: ThreadRegisters) -> (u64, ThreadRegisters) {
    let mut result = dest;
    // SAFETY: the binding of X.2 5.2; the effect on `dest` is the caller's promise.
    unsafe {
        asm!(
            "push rbp", "push rbx", "mov rbp, {link}", "call rbp", "pop rbx", "pop rbp",
            link = const stub_address(stub::EXCHANGE_REGISTERS) as i64,
            inout("rax") result, inout("rsi") regs.control, inout("rdx") regs.sp,
            inout("r8") regs.ip, inout("r9") regs.flags, inout("r10") regs.handle,
            inout("rdi") regs.pager, out("rcx") _, out("r11") _,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
    (result, regs)
}

/// A plain call: up to five arguments in RDI, RSI, RDX, R8, R9; results RAX, RDX, RSI.
///
/// # Safety
/// The caller answers for what the call with these arguments does.
unsafe fn plain<const STUB: u64>(args: [u64; 5]) -> (u64, u64, u64) {
    let (result, mut rdx, mut rsi) = (0u64, args[2], args[1]);
    let mut rax = result;
    // SAFETY: the bindings of X.2 5.2 for the calls below.
    unsafe {
        asm!(
            "push rbp", "push rbx", "mov rbp, {link}", "call rbp", "pop rbx", "pop rbp",
            link = const stub_address(STUB) as i64,
            inout("rax") rax, inout("rdi") args[0] => _, inout("rsi") rsi, inout("rdx") rdx,
            inout("r8") args[3] => _, inout("r9") args[4] => _, out("rcx") _, out("r10") _,
            out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
    (rax, rdx, rsi)
}

/// ThreadControl: dest, SpaceSpecifier, scheduler, pager, UtcbLocation. Returns success.
///
/// # Safety
/// Deleting a thread strands what its stack borrowed; the caller has thought of that.
pub unsafe fn thread_control(dest: u64, space: u64, scheduler: u64, pager: u64, utcb: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe { plain::<{ stub::THREAD_CONTROL }>([dest, pager, scheduler, space, utcb]).0 == 1 }
}

/// Baton's CreateThread: as [`thread_control`], but where somebody has the number of `dest` it
/// fails. Returns success.
///
/// # Safety
/// As for [`thread_control`].
#[must_use]
pub unsafe fn create_thread(dest: u64, space: u64, scheduler: u64, pager: u64, utcb: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe { plain::<{ stub::CREATE_THREAD }>([dest, pager, scheduler, space, utcb]).0 == 1 }
}

/// Baton's TaskControl: the thread numbers and the ceilings of a task (`abi::task`); all
/// ones: unchanged. Returns those in force.
#[must_use]
pub fn task_control(space: u64, numbers: u64, ceilings: u64) -> Option<(u64, u64)> {
    // SAFETY: concerns what a task may do, not its memory.
    let (ok, ceilings, numbers) =
        unsafe { plain::<{ stub::TASK_CONTROL }>([space, numbers, ceilings, 0, 0]) };
    (ok == 1).then_some((numbers, ceilings))
}

/// SpaceControl: SpaceSpecifier, control, KIP area, UTCB area, redirector. Returns success.
#[must_use]
pub fn space_control(space: u64, control: u64, kip: u64, utcb: u64, redirector: u64) -> bool {
    // SAFETY: configures a space without running threads; this one's memory is not concerned.
    unsafe { plain::<{ stub::SPACE_CONTROL }>([space, control, kip, utcb, redirector]).0 == 1 }
}

/// Schedule: dest, time control, processor, priority, preemption control.
/// Returns the state before (0: error) and the old time control.
#[must_use]
pub fn schedule(
    dest: u64,
    time: u64,
    processor: u64,
    priority: u64,
    preemption: u64,
) -> (u64, u64) {
    // SAFETY: changes only when a thread runs.
    let (state, old, _) =
        unsafe { plain::<{ stub::SCHEDULE }>([dest, priority, time, processor, preemption]) };
    (state, old)
}

/// ThreadSwitch.
pub fn thread_switch(dest: u64) {
    // SAFETY: gives up the processor; no memory is concerned.
    unsafe { plain::<{ stub::THREAD_SWITCH }>([dest, 0, 0, 0, 0]) };
}

/// SystemClock in microseconds.
#[must_use]
pub fn system_clock() -> u64 {
    // SAFETY: reads the clock.
    unsafe { plain::<{ stub::SYSTEM_CLOCK }>([0; 5]).0 }
}

/// ProcessorControl: processor number, internal and external kHz, voltage in mV.
#[must_use]
pub fn processor_control(cpu: u64, internal: u64, external: u64, voltage: u64) -> bool {
    // SAFETY: changes the processor's speed at most.
    unsafe { plain::<{ stub::PROCESSOR_CONTROL }>([cpu, internal, external, voltage, 0]).0 == 1 }
}

/// Baton's QuotaControl: moves `pages` (signed) from the caller's task to the
/// target's. Returns limit and used pages of the target.
#[must_use]
pub fn quota_control(space: u64, pages: i64) -> Option<(u64, u64)> {
    // SAFETY: concerns the kernel's accounts only.
    let (ok, limit, used) =
        unsafe { plain::<{ stub::QUOTA_CONTROL }>([space, pages as u64, 0, 0, 0]) };
    (ok == 1).then_some((limit, used))
}

/// Baton's Inspect: `what`, index, argument. `None`: no such record, or no permission.
#[must_use]
pub fn inspect(what: u64, index: u64, argument: u64) -> Option<[u64; 8]> {
    let (mut ok, mut rsi, mut rdx) = (0u64, index, argument);
    let (r9, r10, r12, r13, r14, r15): (u64, u64, u64, u64, u64, u64);
    // SAFETY: reads the kernel's records; the binding of `abi::inspect`.
    unsafe {
        asm!(
            "push rbp", "push rbx", "mov rbp, {link}", "call rbp", "pop rbx", "pop rbp",
            link = const stub_address(stub::INSPECT) as i64,
            inout("rax") ok, inout("rdi") what => _, inout("rsi") rsi, inout("rdx") rdx,
            out("r8") _, out("r9") r9, out("r10") r10, out("rcx") _, out("r11") _,
            out("r12") r12, out("r13") r13, out("r14") r14, out("r15") r15,
        );
    }
    let _ = &mut ok;
    (ok == 1).then_some([rdx, rsi, r9, r10, r12, r13, r14, r15])
}

/// User instructions that [`timed_ipc`] adds between its two time stamps: RDTSC
/// itself, three that keep the stamp, one move, and SYSCALL.
pub const TIMED_OVERHEAD: u64 = 6;

/// Ipc between two readings of the time-stamp counter, for measurements: returns
/// the tag and the two stamps. MR1..MR7 are whatever the registers hold.
///
/// # Safety
/// As for [`ipc`].
#[inline(always)]
pub unsafe fn timed_ipc(to: u64, from: u64, timeouts: u64, utcb: u64, tag: u64) -> (u64, u64, u64) {
    let (mut m0, before, after): (u64, u64, u64);
    m0 = tag;
    // SAFETY: as in `ipc`; all message registers are outputs.
    unsafe {
        asm!(
            "push rbp", "push rbx",
            "rdtsc", "shl rdx, 32", "or rax, rdx", "push rax",
            "mov rdx, rcx",
            "syscall",
            "rdtsc", "shl rdx, 32", "or rax, rdx",
            "pop rcx", "pop rbx", "pop rbp",
            inout("rcx") from => before, out("rax") after, out("rdx") _,
            inout("r9") m0, inout("rsi") to => _, inout("r8") timeouts => _, inout("rdi") utcb => _,
            out("r10") _, out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
    (m0, before, after)
}

/// Baton's ThreadState: thread, control (`abi::syscall::state`), room for the vector
/// state; words in the UTCB. Returns success.
#[must_use]
pub fn thread_state(thread: u64, control: u64, vector: &mut [u8]) -> bool {
    let (buffer, room) = (vector.as_mut_ptr() as u64, vector.len());
    let wants = control & (abi::syscall::state::READ_VECTOR | abi::syscall::state::WRITE_VECTOR);
    if wants != 0 && room < 2688 {
        return false;
    }
    // SAFETY: concerns the registers of another thread; the kernel writes at most 2,688
    // bytes of vector state, for which there is room.
    unsafe { plain::<{ stub::THREAD_STATE }>([thread, control, buffer, 0, 0]).0 == 1 }
}
