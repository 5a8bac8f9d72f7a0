//! Which of the 256 vectors means what.
//!
//! 0 to 31 are the processor's own. The 8259s' sixteen come next: with I/O APICs nothing
//! comes there any more but what the 8259s send without a reason. Then the lines of the I/O
//! APICs. The order is the order of urgency at the local APIC, by sixteens.

use abi::id::{MESSAGE_BASE, SYSTEM_BASE};

/// The 8259s' line 0.
pub const LEGACY: u8 = 32;
/// Lines of the 8259s.
pub const LEGACY_LINES: u8 = 16;
/// Line 0 of the I/O APICs.
pub const LINE: u8 = LEGACY + LEGACY_LINES;
/// Lines that there can be.
pub const LINES: u8 = SYSTEM_BASE as u8;
/// The first line that devices signal by messages.
pub const MESSAGE: u8 = LINE + MESSAGE_BASE as u8;
/// The local APIC's timer: line 0, which the kernel keeps.
pub const TIMER: u8 = LINE;
/// A processor has something for another: a thread that comes or is called, or an errand.
pub const HELLO: u8 = LINE + LINES;
/// Tables change that a visitor of this processor uses: it is to stop where it is. Never the first one's.
pub const STOP: u8 = HELLO + 1;
/// The local APIC has an interrupt that went away again. The low four bits are ones (Intel
/// SDM 3A, 11.9).
pub const SPURIOUS: u8 = 0x7F;
/// Vectors that have a gate.
pub const COUNT: usize = SPURIOUS as usize + 1;

const _: () = assert!(STOP < SPURIOUS && SYSTEM_BASE <= 64);

/// The processor's own that the kernel tells apart.
pub mod exception {
    /// Non-maskable interrupt.
    pub const NMI: u64 = 2;
    /// An instruction that does not exist.
    pub const INVALID_OPCODE: u64 = 6;
    /// A fault during the delivery of another.
    pub const DOUBLE_FAULT: u64 = 8;
    /// Something that is not permitted.
    pub const GENERAL_PROTECTION: u64 = 13;
    /// A page that is not there, or not for this access.
    pub const PAGE_FAULT: u64 = 14;
    /// The machine reports an error.
    pub const MACHINE_CHECK: u64 = 18;
}
