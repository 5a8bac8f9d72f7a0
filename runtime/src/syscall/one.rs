//! Calls whose request and answer are a tag and at most one word: nothing passes through RCX, and of the registers that
//! carry further words nothing is read back.

use core::arch::asm;

use abi::layout::{stub, stub_address};
use abi::syscall::Call;

use super::Regs;

/// Where the stubs are, for a `call` by way of memory: a register less to fill.
static LOCAL_CALL: u64 = stub_address(stub::LOCAL_CALL_ONE);
static LOCAL_ONWARD: u64 = stub_address(stub::LOCAL_ONWARD);

/// [`super::ipc`] with the tag and MR1, and zeros behind them; the tag and MR1 that come back.
///
/// # Safety
/// As for [`super::ipc`].
#[inline(always)]
pub unsafe fn ipc_one(
    to: u64,
    from: u64,
    timeouts: u64,
    utcb: u64,
    [mut tag, mut word]: [u64; 2],
) -> [u64; 2] {
    // SAFETY: the binding of X.2 5.2; every register that the call changes is an output or saved.
    unsafe {
        asm!(
            "push rbp", "push rbx", "xor ebx, ebx",
            "syscall",
            "pop rbx", "pop rbp",
            inout("r9") tag, inout("rax") word, inout("r10") 0u64 => _,
            inout("r12") 0u64 => _, inout("r13") 0u64 => _, inout("r14") 0u64 => _,
            inout("r15") 0u64 => _, inout("rsi") to => _, inout("rdx") from => _,
            inout("r8") timeouts => _, inout("rdi") utcb => _, out("rcx") _, out("r11") _,
        );
    }
    [tag, word]
}

/// [`super::lrpc_call`] in the same way: a status, the tag and MR1.
///
/// # Safety
/// As for [`super::lrpc_call`].
#[inline(always)]
pub unsafe fn lrpc_call_one(token: u64, [mut tag, mut word]: [u64; 2]) -> (u64, [u64; 2]) {
    let mut status = token;
    let number = (Call::LrpcCall as u64).wrapping_neg();
    // SAFETY: as in `ipc_one`.
    unsafe {
        asm!(
            "push rbp", "push rbx", "xor ebx, ebx",
            "syscall",
            "pop rbx", "pop rbp",
            inout("r9") tag, inout("rax") word, inout("r10") 0u64 => _,
            inout("r12") 0u64 => _, inout("r13") 0u64 => _, inout("r14") 0u64 => _,
            out("r15") _, inout("rsi") status, inout("r8") number => _,
            out("rcx") _, out("rdx") _, out("rdi") _, out("r11") _,
        );
    }
    (status, [tag, word])
}

/// A call of the thread of this space whose local id is `to`, without a limit, by the stub LOCAL_CALL_ONE; the tag and MR1
/// that come back. Without a word the registers that carry words stay what they are: the receiver is of the same space.
///
/// # Safety
/// As for [`super::ipc`].
#[inline(always)]
pub unsafe fn local_call_one(to: u64, utcb: u64, [mut tag, mut word]: [u64; 2]) -> [u64; 2] {
    macro_rules! call {
        ($($rax:tt)*) => {
            asm!(
                "push rbp", "push rbx",
                "call qword ptr [rip + {stub}]",
                "pop rbx", "pop rbp",
                stub = sym LOCAL_CALL,
                inout("r9") tag, $($rax)*, inout("rsi") to => _, inout("rdi") utcb => _,
                out("r8") _, out("rdx") _, out("rcx") _, out("r10") _, out("r11") _,
                out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            )
        };
    }
    // SAFETY: as in `ipc_one`; the stub is at the same address in every space.
    unsafe {
        match tag & 0xFFF {
            0 => call!(out("rax") word),
            _ => call!(inout("rax") word),
        }
    }
    [tag, word]
}

/// An answer to the thread of this space whose local id is `to`, and the wait for anybody's request, by the stub
/// LOCAL_ONWARD; the thread's UTCB, the sender and MR0..MR7. An answer of at most one word leaves the registers behind
/// it as they are.
///
/// # Safety
/// As for [`super::ipc`].
#[inline(always)]
pub unsafe fn local_onward(to: u64, utcb: u64, mr: Regs) -> (u64, u64, Regs) {
    let [mut m0, mut m1, mut m2, mut m3, mut m4, mut m5, mut m6, mut m7] = mr;
    let (mut partner, mut own) = (to, utcb);
    macro_rules! answer {
        ($move:literal, $($words:tt)*) => {
            asm!(
                "push rbp", "push rbx", $move,
                "call qword ptr [rip + {stub}]",
                "mov rcx, rbx", "pop rbx", "pop rbp",
                stub = sym LOCAL_ONWARD,
                inout("r9") m0, inout("rsi") partner, inout("rdi") own,
                out("rdx") _, out("r8") _, out("r11") _, $($words)*
            )
        };
    }
    // SAFETY: as in `local_call_one`.
    unsafe {
        match m0 & 0xFFF {
            0 => answer!("", out("rax") m1, out("rcx") m2, out("r10") m3,
                out("r12") m4, out("r13") m5, out("r14") m6, out("r15") m7),
            1 => answer!("", inout("rax") m1, out("rcx") m2, out("r10") m3,
                out("r12") m4, out("r13") m5, out("r14") m6, out("r15") m7),
            _ => answer!("mov rbx, rcx", inout("rax") m1, inout("rcx") m2, inout("r10") m3,
                inout("r12") m4, inout("r13") m5, inout("r14") m6, inout("r15") m7),
        }
    }
    (own, partner, [m0, m1, m2, m3, m4, m5, m6, m7])
}
