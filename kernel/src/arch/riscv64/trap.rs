//! What a trap is about (RISC-V privileged architecture, 12.1.8).

use abi::Rights;

/// The bit of scause that tells interrupts.
const INTERRUPT: u64 = 1 << 63;

/// Why the processor entered the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Another processor wants something.
    Software,
    /// The timer.
    Timer,
    /// A device, by the interrupt controller.
    External,
    /// A user's `ecall`.
    SystemCall,
    /// A page is missing for this access, or does not allow it.
    PageFault(Rights),
    /// Anything else, by the code of scause: an exception that the thread's handler hears of.
    Other(u64),
}

impl Cause {
    /// What scause says.
    #[must_use]
    pub const fn decode(scause: u64) -> Self {
        match (scause & INTERRUPT != 0, scause & !INTERRUPT) {
            (true, 1) => Self::Software,
            (true, 5) => Self::Timer,
            (true, 9) => Self::External,
            (false, 8) => Self::SystemCall,
            (false, 12) => Self::PageFault(Rights::X),
            (false, 13) => Self::PageFault(Rights::R),
            (false, 15) => Self::PageFault(Rights::W),
            _ => Self::Other(scause),
        }
    }

    /// The code of scause.
    #[must_use]
    pub const fn code(self) -> u64 {
        match self {
            Self::Software => INTERRUPT | 1,
            Self::Timer => INTERRUPT | 5,
            Self::External => INTERRUPT | 9,
            Self::SystemCall => 8,
            Self::PageFault(Rights::X) => 12,
            Self::PageFault(Rights::R) => 13,
            Self::PageFault(_) => 15,
            Self::Other(scause) => scause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_apart_and_back() {
        for code in (0..64).flat_map(|code| [code, INTERRUPT | code]) {
            assert_eq!(Cause::decode(code).code(), code);
        }
        assert_eq!(Cause::decode(13), Cause::PageFault(Rights::R));
        assert_eq!(Cause::decode(INTERRUPT | 5), Cause::Timer);
        assert_eq!(Cause::decode(2), Cause::Other(2));
    }
}
