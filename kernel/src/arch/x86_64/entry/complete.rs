//! The assembly of the complete path, and what it is told: every entry of the kernel but the loader's, and
//! every way back to user mode. `descriptors` shows it to the processor.

use core::arch::global_asm;
use core::mem::offset_of;

use abi::syscall::Call;

use super::{armed, switch, trap, visitors};
use crate::arch::x86_64::descriptors::{KERNEL_CS, ON_OWN_STACKS, PUSH_A_CODE};
use crate::arch::x86_64::features::Features;
use crate::arch::x86_64::frame::{FRAME_SIZE, TrapFrame, USER_CS, USER_SS, VECTOR_CALL};
use crate::arch::x86_64::mitigations::Actions;
use crate::arch::x86_64::percpu::{self, CURRENT, Cpu};
use crate::arch::x86_64::thread::pad;
use crate::arch::x86_64::vectors;
use crate::ipc;
use crate::sched::Scheduler;
use crate::thread::tcb::{Resume, TCB_SIZE, Tcb};

global_asm!(
    concat!(
        include_str!("../patch.S"),
        include_str!("../words.S"),
        include_str!("spill.S"),
        include_str!("entry.S"),
        include_str!("there.S"),
    ),
    VERW = const Actions::VERW.bits(),
    IBPB = const Actions::IBPB.bits(),
    CPU = sym percpu::BATON_CPU,
    // The bits of a code segment's privilege; none are set in the kernel.
    PRIVILEGE = const 3,
    IN_PAGE = const 0xFFF,
    // Vector and error code.
    CODES = const offset_of!(TrapFrame, ip) - offset_of!(TrapFrame, vector),
    PUSH_A_CODE = const PUSH_A_CODE,
    ON_OWN_STACKS = const ON_OWN_STACKS,
    CURRENT = const CURRENT,
    PENDING = const offset_of!(Cpu, pending_lines),
    UTCB = const offset_of!(Tcb, utcb),
    UTCB_K = const offset_of!(Tcb, utcb_k),
    IP = const offset_of!(Tcb, ip),
    SP = const offset_of!(Tcb, sp),
    FLAGS = const offset_of!(Tcb, flags),
    RESUME = const offset_of!(Tcb, resume),
    RESUME_IPC = const Resume::Ipc as u32,
    RESUME_FRAME = const Resume::Frame as u32,
    RESUME_IDLE = const Resume::Idle as u32,
    WATCHES = const offset_of!(Cpu, scheduler) + offset_of!(Scheduler, watches),
    WATCH = sym crate::irq::watch::watch,
    RESULT_FROM = const offset_of!(Tcb, result_from),
    HANDLER = const offset_of!(Tcb, handler),
    FRAME_SIZE = const FRAME_SIZE,
    TCB_SIZE = const TCB_SIZE,
    PAD = sym pad::PAD,
    PAD_TCB = const pad::PAD_TCB,
    LEAVES_IPC = const armed::Leaves::Ipc as u64,
    ENTER = sym armed::enter,
    ARMED_CALL = sym armed::call,
    FRAME_CS = const offset_of!(TrapFrame, cs),
    FRAME_IP = const offset_of!(TrapFrame, ip),
    FRAME_FLAGS = const offset_of!(TrapFrame, flags),
    FRAME_SP = const offset_of!(TrapFrame, sp),
    R15 = const offset_of!(TrapFrame, r15),
    R14 = const offset_of!(TrapFrame, r14),
    R13 = const offset_of!(TrapFrame, r13),
    R12 = const offset_of!(TrapFrame, r12),
    RBP = const offset_of!(TrapFrame, rbp),
    RBX = const offset_of!(TrapFrame, rbx),
    R10 = const offset_of!(TrapFrame, r10),
    R9 = const offset_of!(TrapFrame, r9),
    R8 = const offset_of!(TrapFrame, r8),
    RAX = const offset_of!(TrapFrame, rax),
    RDX = const offset_of!(TrapFrame, rdx),
    RSI = const offset_of!(TrapFrame, rsi),
    RDI = const offset_of!(TrapFrame, rdi),
    VECTOR_CALL = const VECTOR_CALL,
    CALL_UNMAP = const Call::Unmap as u32,
    CALL_LRPC_RETURN = const Call::LrpcReturn as u32,
    LRPC_CALL = sym crate::lrpc::call,
    LRPC_RETURN = sym crate::lrpc::give_back,
    USER_CS = const USER_CS,
    USER_SS = const USER_SS,
    IPC = sym ipc::syscall::ipc,
    IPC_WITH_ITEMS = sym ipc::syscall::ipc_with_items,
    TYPED = const abi::MsgTag::new(0, 0, 63).0,
    UNMAP = sym crate::unmap::unmap,
    CALL = sym crate::call::dispatch,
    TRAP = sym trap::from_user,
    OWN_STACK = sym trap::on_own_stack,
    KERNEL_TRAP = sym trap::from_kernel,
    MET = sym visitors::met,
    STAND_STILL = sym visitors::stand_still,
    STOP = const vectors::STOP,
    ACTIVATE = sym switch::activate,
    ACTIVATE_FLUSHING = sym switch::activate_flushing,
    KERNEL_SS = const KERNEL_CS + 8,
    CONTINUE = sym switch::resume,
    PATCH_SMAP = const Features::SMAP.bits(),
    VECTORS = const vectors::COUNT,
);
