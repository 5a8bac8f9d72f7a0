//! What a bank of the machine-check architecture says, as a sentence.

use core::fmt;

/// Bits of a bank's status.
pub mod status {
    /// There is a record.
    pub const VALID: u64 = 1 << 63;
    /// The processor could not correct it.
    pub const UNCORRECTED: u64 = 1 << 61;
    /// An earlier record was lost.
    pub const OVERFLOW: u64 = 1 << 62;
    /// The processor has raised the exception for it, where it can recover (MCG_SER_P).
    pub const SIGNALLED: u64 = 1 << 56;
    /// Software must act before it goes on.
    pub const ACTION: u64 = 1 << 55;
    /// The address register says where.
    pub const HAS_ADDRESS: u64 = 1 << 58;
    /// The processor's own state cannot be trusted.
    pub const CONTEXT_LOST: u64 = 1 << 57;
}

/// What a bank says.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Number of the bank.
    pub bank: u32,
    /// Its status register.
    pub status: u64,
    /// Its address register, if the status says that there is one.
    pub address: u64,
}

impl Record {
    /// The kinds of error codes (Intel SDM 3B, 16.9.2).
    const fn kind(&self) -> &'static str {
        let code = self.status & 0xEFFF; // bit 12 says how corrected errors are filtered
        match code {
            0 => "no error",
            1 => "an error without a class",
            2 => "a parity error of the microcode",
            3 => "an error that another processor passed on",
            4 => "a failed comparison with a redundant processor",
            5 => "an internal parity error",
            0x400 => "an internal timer",
            _ if code & 0xFC00 == 0x0400 => "an internal error",
            _ if code & 0xFFF0 == 0x0010 => "an error of the translation buffer",
            _ if code & 0xFF80 == 0x0080 => "an error of a memory controller",
            _ if code & 0xFF00 == 0x0100 => "an error of a cache",
            _ if code & 0xF800 == 0x0800 => "an error of a bus",
            _ => "an error of an unknown kind",
        }
    }

    /// Whether nothing that was computed depends on it: it was corrected, or it was found
    /// before anybody used it (Intel SDM 3B, 16.6.3: "action optional"), which only
    /// processors that can `recover` tell apart.
    #[must_use]
    pub const fn is_survivable(&self, recovers: bool) -> bool {
        use status::{ACTION, CONTEXT_LOST, OVERFLOW, SIGNALLED, UNCORRECTED};
        let unused = self.status & (SIGNALLED | ACTION | OVERFLOW) == SIGNALLED;
        self.status & CONTEXT_LOST == 0 && (self.status & UNCORRECTED == 0 || recovers && unused)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let corrected =
            if self.status & status::UNCORRECTED == 0 { "corrected" } else { "not corrected" };
        write!(f, "bank {}: {}, {corrected}, status {:#x}", self.bank, self.kind(), self.status)?;
        if self.status & status::CONTEXT_LOST != 0 {
            write!(f, ", the processor's state is lost")?;
        }
        if self.status & status::HAS_ADDRESS != 0 {
            write!(f, ", at physical address {:#x}", self.address)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_kinds() {
        let kind = |code| Record { bank: 0, status: code, address: 0 }.kind();
        assert_eq!(kind(0x0134), "an error of a cache");
        assert_eq!(kind(0x1134), "an error of a cache");
        assert_eq!(kind(0x009F), "an error of a memory controller");
        assert_eq!(kind(0x0E0B), "an error of a bus");
        assert_eq!(kind(0x0400), "an internal timer");
        assert_eq!(kind(0x0011), "an error of the translation buffer");
    }

    #[test]
    fn only_what_was_corrected_is_survived() {
        let record = |status| Record { bank: 1, status, address: 0x1000 };
        assert!(record(status::VALID | 0x9F).is_survivable(false));
        let uncorrected = status::VALID | status::UNCORRECTED;
        assert!(!record(uncorrected).is_survivable(true));
        assert!(record(uncorrected | status::SIGNALLED).is_survivable(true));
        assert!(!record(uncorrected | status::SIGNALLED).is_survivable(false));
        for more in [status::ACTION, status::OVERFLOW, status::CONTEXT_LOST] {
            assert!(!record(uncorrected | status::SIGNALLED | more).is_survivable(true));
        }
        assert!(!record(status::VALID | status::CONTEXT_LOST).is_survivable(true));
        let text = record(status::VALID | status::UNCORRECTED | status::HAS_ADDRESS | 0x9F);
        assert_eq!(
            format!("{text}"),
            "bank 1: an error of a memory controller, not corrected, status 0xa40000000000009f, \
             at physical address 0x1000"
        );
    }
}
