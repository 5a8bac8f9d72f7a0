//! I/O ports: a range of them, once per task.
//!
//! The range must have been mapped (`root::ports`, or σ0 for the root task); an
//! access without the right is an I/O fault to the pager.

use core::arch::asm;

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

    fn port(&self, index: u16) -> u16 {
        assert!(index < self.count, "port {index} of a range of {}", self.count);
        self.base + index
    }

    /// Reads the byte register `index`.
    #[must_use]
    pub fn read8(&self, index: u16) -> u8 {
        let value: u8;
        // SAFETY: port space is not memory; the kernel decides who may use it.
        unsafe {
            asm!("in al, dx", in("dx") self.port(index), out("al") value, options(nostack, preserves_flags))
        };
        value
    }

    /// Writes the byte register `index`.
    pub fn write8(&self, index: u16, value: u8) {
        // SAFETY: as in `read8`.
        unsafe {
            asm!("out dx, al", in("dx") self.port(index), in("al") value, options(nostack, preserves_flags))
        };
    }

    /// Writes the 32-bit register `index`.
    pub fn write32(&self, index: u16, value: u32) {
        // SAFETY: as in `read8`.
        unsafe {
            asm!("out dx, eax", in("dx") self.port(index), in("eax") value, options(nostack, preserves_flags))
        };
    }
}
