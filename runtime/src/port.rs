//! I/O ports: a range of them, once per task.
//!
//! The range must have been mapped (`root::ports`, or σ0 for the root task); an
//! access without the right is an I/O fault to the pager.

use core::arch::asm;

use pci::{Access, Place};

/// Ports `base` to `base + count − 1`.
#[derive(Debug)]
pub struct Ports {
    base: u16,
    count: u16,
}

impl Ports {
    /// Names a range; the kernel checks each access.
    #[must_use]
    pub const fn new(base: u16, count: u16) -> Self {
        Self { base, count }
    }

    /// The port of a register of `bytes` bytes.
    fn port(&self, index: u16, bytes: u16) -> u16 {
        let fits = index.checked_add(bytes).is_some_and(|end| end <= self.count);
        assert!(fits, "{bytes} bytes at port {index} of a range of {}", self.count);
        self.base + index
    }

    /// Reads the byte register `index`.
    #[must_use]
    pub fn read8(&self, index: u16) -> u8 {
        let value: u8;
        // SAFETY: port space is not memory; the kernel decides who may use it.
        unsafe {
            asm!("in al, dx", in("dx") self.port(index, 1), out("al") value, options(nostack, preserves_flags))
        };
        value
    }

    /// Writes the byte register `index`.
    pub fn write8(&self, index: u16, value: u8) {
        // SAFETY: as in `read8`.
        unsafe {
            asm!("out dx, al", in("dx") self.port(index, 1), in("al") value, options(nostack, preserves_flags))
        };
    }

    /// Reads the 16-bit register `index`.
    #[must_use]
    pub fn read16(&self, index: u16) -> u16 {
        let value: u16;
        // SAFETY: as in `read8`.
        unsafe {
            asm!("in ax, dx", in("dx") self.port(index, 2), out("ax") value, options(nostack, preserves_flags))
        };
        value
    }

    /// Writes the 16-bit register `index`.
    pub fn write16(&self, index: u16, value: u16) {
        // SAFETY: as in `read8`.
        unsafe {
            asm!("out dx, ax", in("dx") self.port(index, 2), in("ax") value, options(nostack, preserves_flags))
        };
    }

    /// Reads the 32-bit register `index`.
    #[must_use]
    pub fn read32(&self, index: u16) -> u32 {
        let value: u32;
        // SAFETY: as in `read8`.
        unsafe {
            asm!("in eax, dx", in("dx") self.port(index, 4), out("eax") value, options(nostack, preserves_flags))
        };
        value
    }

    /// Writes the 32-bit register `index`.
    pub fn write32(&self, index: u16, value: u32) {
        // SAFETY: as in `read8`.
        unsafe {
            asm!("out dx, eax", in("dx") self.port(index, 4), in("eax") value, options(nostack, preserves_flags))
        };
    }
}

/// The ports of configuration mechanism 1 ([`pci::PORTS`]). One thread at a time uses them: an address,
/// then the word.
impl Access for Ports {
    fn read(&self, place: Place, offset: u8) -> u32 {
        self.write32(0, place.address(offset));
        self.read32(4)
    }

    fn write(&self, place: Place, offset: u8, value: u32) {
        self.write32(0, place.address(offset));
        self.write32(4, value);
    }
}
