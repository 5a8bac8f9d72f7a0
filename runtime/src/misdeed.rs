//! Faults on purpose, for tests and teaching: each of these ends the thread that
//! commits it (or, where the processor allows it, does nothing at all).

use core::arch::asm;

/// What can be done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misdeed {
    /// Reads through a null pointer.
    NullRead,
    /// Writes to an address where nothing is.
    WildWrite,
    /// Writes to the program's own text.
    TextWrite,
    /// Reads kernel memory.
    KernelRead,
    /// Jumps into the kernel.
    KernelJump,
    /// Uses an address that is no address (non-canonical).
    NonCanonical,
    /// Divides by zero.
    DivideByZero,
    /// Executes an invalid instruction.
    InvalidOpcode,
    /// Executes a privileged instruction.
    Privileged,
    /// Executes a breakpoint.
    Breakpoint,
    /// Calls itself without end.
    StackOverflow,
    /// Makes a misaligned access with alignment checks on.
    Misaligned,
    /// Reads an I/O port that it has no right to.
    Port,
}

/// All of them.
pub const ALL: [Misdeed; 13] = [
    Misdeed::NullRead,
    Misdeed::WildWrite,
    Misdeed::TextWrite,
    Misdeed::KernelRead,
    Misdeed::KernelJump,
    Misdeed::NonCanonical,
    Misdeed::DivideByZero,
    Misdeed::InvalidOpcode,
    Misdeed::Privileged,
    Misdeed::Breakpoint,
    Misdeed::StackOverflow,
    Misdeed::Misaligned,
    Misdeed::Port,
];

/// An address between heap and stacks, where no pager puts anything.
const NOWHERE: u64 = 0x6000_0000;
/// The kernel's image.
const KERNEL: u64 = 0xFFFF_FFFF_8010_0000;
/// The keyboard controller's data port.
const KEYBOARD: u16 = 0x60;

/// Commits `misdeed`.
pub fn commit(misdeed: Misdeed) {
    match misdeed {
        Misdeed::NullRead => read(0),
        Misdeed::WildWrite => write(NOWHERE),
        Misdeed::TextWrite => write(crate::layout::image().0),
        Misdeed::KernelRead => read(KERNEL),
        Misdeed::NonCanonical => read(1 << 62),
        Misdeed::Port => {
            let _ = crate::port::Ports::new(KEYBOARD, 1).read8(0);
        }
        Misdeed::StackOverflow => overflow(),
        other => execute(other),
    }
}

fn read(address: u64) {
    // SAFETY: nothing is mapped at the addresses above: the access faults and the
    // thread ends. Assembly, since the compiler may assume that it does not happen.
    unsafe { asm!("mov {0}, [{0}]", inout(reg) address => _, options(nostack, readonly)) };
}

fn write(address: u64) {
    // SAFETY: as in `read`; text is mapped without the right to write.
    unsafe { asm!("mov qword ptr [{}], 0", in(reg) address, options(nostack)) };
}

fn overflow() {
    // SAFETY: pushes until the guard below the stack ends the thread.
    unsafe { asm!("2: push rax", "jmp 2b", options(noreturn)) };
}

fn execute(misdeed: Misdeed) {
    // SAFETY: each sequence faults with the thread's registers and stack intact,
    // or (alignment checks the kernel leaves off) has no effect but the saved flags.
    unsafe {
        match misdeed {
            Misdeed::KernelJump => asm!("jmp {}", in(reg) KERNEL, options(noreturn)),
            Misdeed::DivideByZero => {
                asm!("xor ecx, ecx", "div ecx", out("rcx") _, inout("rax") 1u64 => _, inout("rdx") 0u64 => _)
            }
            Misdeed::InvalidOpcode => asm!("ud2", options(noreturn)),
            Misdeed::Privileged => asm!("cli"),
            Misdeed::Breakpoint => asm!("int3"),
            Misdeed::Misaligned => asm!(
                "pushfq", "or dword ptr [rsp], 0x40000", "popfq",
                "mov {0}, [rsp + 1]",
                "pushfq", "and dword ptr [rsp], 0xFFFBFFFF", "popfq",
                out(reg) _,
            ),
            _ => {}
        }
    }
}
