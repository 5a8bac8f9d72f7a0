//! The devices of a PC that the kernel drives itself. They are nobody's: σ0 does not give
//! them out, and no system description can name them.
//!
//! All ranges are first and last, both inside.

/// Interrupt controllers, the timer's channels, and its gate (system control port B).
pub const PORTS: [(u64, u64); 4] = [(0x20, 0x21), (0x40, 0x43), (0x61, 0x61), (0xA0, 0xA1)];

/// Where interrupts come from and go to: the I/O APICs, the local APICs, and behind them what
/// a message-signalled interrupt is written to.
pub const MEMORY: [(u64, u64); 2] = [(0xFEC0_0000, 0xFECF_FFFF), (0xFEE0_0000, 0xFEEF_FFFF)];

/// Interrupt lines: the timer, and the one by which the second controller interrupts the first.
pub const LINES: [u32; 2] = [0, 2];

/// The first serial port, on which the kernel and the root task write, too.
pub const CONSOLE: (u64, u64) = (0x3F8, 0x3FF);

/// Configuration space of PCI: who has it can make any device do anything, DMA included.
pub const PCI: (u64, u64) = (0xCF8, 0xCFF);

/// The emulator's exit device, which the root task uses.
pub const EXIT: (u64, u64) = (0xF4, 0xF7);
