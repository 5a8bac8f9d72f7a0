//! The frame of a handler on the program's stack, laid out as Linux does, and the return
//! from it.

use alloc::rc::Rc;

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::action::{Action, DEFAULT};
use super::info::{Info, SIGINFO_BYTES};
use super::mask::{Stack, change_stack, mask_for_frame, set_mask};
use super::set::bit;
use super::{NO_STACK, send, vector};
use crate::call::{Answer, Cx, Entry, Stop, full};
use crate::errno::Errno;
use crate::machine::{Registers, Reply};
use crate::thread::Thread;
use crate::unix::Unix;
use crate::user::UserMemory;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[full(l::__NR_rt_sigreturn, "rt_sigreturn", rt_sigreturn)];

/// `struct sigcontext` of x86-64.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
#[allow(missing_docs)]
pub struct SigContext {
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub rflags: u64,
    pub cs: u16,
    pub gs: u16,
    pub fs: u16,
    pub ss: u16,
    pub error: u64,
    pub vector: u64,
    pub old_mask: u64,
    pub cr2: u64,
    pub vector_state: u64,
    pub reserved: [u64; 8],
}

/// `struct ucontext` of x86-64, as the kernel knows it.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
#[allow(missing_docs)]
pub struct UserContext {
    pub flags: u64,
    pub link: u64,
    pub stack: Stack,
    pub registers: SigContext,
    pub mask: u64,
}

/// `struct rt_sigframe`: at its start is what the handler returns to.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Frame {
    pub return_address: u64,
    pub context: UserContext,
    pub info: [u8; SIGINFO_BYTES],
}

/// `uc_flags`: the vector state is in XSAVE format.
const XSTATE: u64 = 1;
/// `uc_flags`: SS is in the frame and is to be restored as it is there.
const SS_SAVED: u64 = 2 | 4;
/// Selectors of programs' code and data, as Linux numbers them.
const CS: u16 = 0x33;
/// As [`CS`].
const SS: u16 = 0x2B;
/// Bytes below the stack pointer that belong to the program.
const RED_ZONE: u64 = 128;
/// RFLAGS that a handler starts without: trap, direction, resume.
const NOT_IN_HANDLER: u64 = 1 << 8 | 1 << 10 | 1 << 16;
/// RFLAGS that a program may restore: AC, RF, OF, DF, TF, SF, ZF, AF, PF, CF.
const RESTORABLE: u64 = 0x0005_0DD5;
/// Addresses of programs are below this.
const END_OF_USER: u64 = 0x7FFF_FFFF_F000;

/// Builds the frame of a handler and changes `registers` to its start.
///
/// # Errors
/// `EFAULT` if the frame does not fit on the stack or there is no way back from the handler.
pub fn enter(
    unix: &Unix,
    thread: &Rc<Thread>,
    registers: &mut Registers,
    info: &Info,
    action: &Action,
) -> Result<(), Errno> {
    if !action.has(l::SA_RESTORER) {
        return Err(Errno::EFAULT);
    }
    let alternate = thread.signals.stack.get();
    let on_stack = alternate.size != 0 && alternate.has(registers.rsp);
    let switch = action.has(l::SA_ONSTACK) && alternate.state(registers.rsp) == 0;
    let top = if switch {
        alternate.base.wrapping_add(alternate.size)
    } else {
        registers.rsp.wrapping_sub(RED_ZONE)
    };
    let state = vector::place(unix, thread, top);
    let at = (state.address.wrapping_sub(size_of::<Frame>() as u64) & !15).wrapping_sub(8);
    // A frame that grows out of the alternate stack would overwrite something else.
    if (switch || (on_stack && action.has(l::SA_ONSTACK))) && !alternate.has(at) {
        return Err(Errno::EFAULT);
    }
    let user = UserMemory::new(unix, thread.process.space());
    let mut registers_seen = seen(thread, registers);
    registers_seen.vector_state = state.address;
    let mask = mask_for_frame(thread);
    registers_seen.old_mask = mask;
    let stack =
        Stack { base: alternate.base, flags: alternate.flags, padding: 0, size: alternate.size };
    let flags = SS_SAVED | if state.is_xsave() { XSTATE } else { 0 };
    let context = UserContext { flags, link: 0, stack, registers: registers_seen, mask };
    state.save(&user)?;
    user.write(at, &Frame { return_address: action.restorer, context, info: info.bytes() })?;
    if alternate.flags & l::SS_AUTODISARM != 0 {
        thread.signals.stack.set(NO_STACK);
    }
    let own = if action.has(l::SA_NODEFER) { 0 } else { bit(info.signal) };
    set_mask(thread, thread.signals.blocked.get() | action.mask | own);
    vector::clear(unix, thread);
    registers.rip = action.handler;
    registers.rsp = at;
    registers.rax = 0;
    registers.rdi = u64::from(info.signal);
    registers.rsi = at + core::mem::offset_of!(Frame, info) as u64;
    registers.rdx = at + core::mem::offset_of!(Frame, context) as u64;
    registers.rflags &= !NOT_IN_HANDLER;
    Ok(())
}

/// The registers as the handler finds them in its context.
fn seen(thread: &Thread, registers: &Registers) -> SigContext {
    let r = registers;
    let trap = thread.signals.trap.get();
    SigContext {
        r8: r.r8,
        r9: r.r9,
        r10: r.r10,
        r11: r.r11,
        r12: r.r12,
        r13: r.r13,
        r14: r.r14,
        r15: r.r15,
        rdi: r.rdi,
        rsi: r.rsi,
        rbp: r.rbp,
        rbx: r.rbx,
        rdx: r.rdx,
        rax: r.rax,
        rcx: r.rcx,
        rsp: r.rsp,
        rip: r.rip,
        rflags: r.rflags,
        cs: CS,
        ss: SS,
        error: trap.error,
        vector: trap.vector,
        cr2: trap.address,
        ..SigContext::default()
    }
}

/// The frame of a handler could not be built: SIGSEGV, which nobody handles if it was that
/// signal's frame.
pub fn failed(unix: &Unix, thread: &Rc<Thread>, signal: u32) {
    if signal == l::SIGSEGV {
        thread
            .process
            .actions
            .borrow()
            .set(l::SIGSEGV, Action { handler: DEFAULT, ..Action::default() });
    }
    send::force(unix, thread, Info::kernel(l::SIGSEGV));
}

/// Puts the registers of a context back.
fn restore(registers: &mut Registers, from: &SigContext) -> Result<(), Errno> {
    if from.rip >= END_OF_USER {
        return Err(Errno::EFAULT);
    }
    let rflags = registers.rflags & !RESTORABLE | from.rflags & RESTORABLE;
    *registers = Registers {
        rip: from.rip,
        rflags,
        rsp: from.rsp,
        rax: from.rax,
        rbx: from.rbx,
        rcx: from.rcx,
        rdx: from.rdx,
        rsi: from.rsi,
        rdi: from.rdi,
        rbp: from.rbp,
        r8: from.r8,
        r9: from.r9,
        r10: from.r10,
        r11: from.r11,
        r12: from.r12,
        r13: from.r13,
        r14: from.r14,
        r15: from.r15,
        fs_base: registers.fs_base,
        gs_base: registers.gs_base,
    };
    Ok(())
}

fn rt_sigreturn(cx: &Cx) -> Answer {
    let (unix, thread) = (cx.unix, cx.thread);
    let mut registers = unix.machine.registers(thread.machine.get());
    // The handler's `ret` has taken the return address.
    if leave(cx, &mut registers).is_ok() {
        unix.machine.set_registers(thread.machine.get(), &registers);
    } else {
        send::force(unix, thread, Info::kernel(l::SIGSEGV));
    }
    super::go_on(unix, thread, Reply::Resume);
    Err(Stop::Done)
}

/// Takes everything back from the frame that the stack pointer shows.
fn leave(cx: &Cx, registers: &mut Registers) -> Result<(), Errno> {
    let at = registers.rsp.wrapping_sub(8);
    let offset = core::mem::offset_of!(Frame, context) as u64;
    let context: UserContext = cx.user().read(at.wrapping_add(offset))?;
    set_mask(cx.thread, context.mask);
    restore(registers, &context.registers)?;
    vector::restore(cx, context.registers.vector_state)?;
    // What is wrong with the stack's description is not told to anybody.
    let _ = change_stack(cx.thread, &context.stack, registers.rsp, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_has_the_kernel_s_layout() {
        assert_eq!(size_of::<SigContext>(), 256);
        assert_eq!(core::mem::offset_of!(SigContext, rip), 128);
        assert_eq!(core::mem::offset_of!(SigContext, cs), 144);
        assert_eq!(core::mem::offset_of!(SigContext, vector_state), 184);
        assert_eq!(core::mem::offset_of!(UserContext, registers), 40);
        assert_eq!(core::mem::offset_of!(UserContext, mask), 296);
        assert_eq!(size_of::<UserContext>(), 304);
        assert_eq!(size_of::<Frame>(), 440);
        assert_eq!(core::mem::offset_of!(Frame, info), 312);
        assert_eq!(size_of::<Stack>(), size_of::<l::stack_t>());
        assert_eq!(size_of::<Action>(), 32);
        assert_eq!(core::mem::offset_of!(Info, data), 16);
    }
}
