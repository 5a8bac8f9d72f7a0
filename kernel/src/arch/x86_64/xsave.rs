//! Vector and floating-point registers, and the areas from which they are loaded (Intel SDM 1, 13.4).

use core::arch::asm;

use super::features::{self, Features};

/// Offset of MXCSR in an area.
pub const MXCSR: usize = 24;
/// Offset of XSAVE's header.
pub const HEADER: usize = 512;
/// Its size.
pub const HEADER_BYTES: usize = 64;
/// Control words of a new thread.
pub const FCW_INITIAL: u16 = 0x037F;
/// The same of the vector unit.
pub const MXCSR_INITIAL: u32 = 0x1F80;

/// An area with which XRSTOR makes everything initial (FXRSTOR likewise).
#[repr(C, align(64))]
pub struct Area([u8; 576]);

/// The initial state.
pub static INITIAL: Area = Area::with_components(0);

impl Area {
    const fn with_components(components: u8) -> Self {
        let mut bytes = [0; 576];
        [bytes[0], bytes[1]] = FCW_INITIAL.to_le_bytes();
        [bytes[MXCSR], bytes[MXCSR + 1], ..] = MXCSR_INITIAL.to_le_bytes();
        bytes[HEADER] = components;
        Self(bytes)
    }
}

/// Makes all registers initial.
pub fn reset() {
    // SAFETY: the area is a valid one.
    unsafe { restore((&raw const INITIAL).cast()) };
}

/// Loads the registers from `area`, and what the instruction may leave of others is not
/// theirs any more: AMD's x87 instruction and data pointers.
///
/// # Safety
/// `area` must hold a state that the processor accepts.
pub unsafe fn restore(area: *const u8) {
    let features = features::in_use();
    if features.intersects(Features::X87_SURVIVES_LOAD | Features::X87_SURVIVES_RESET) {
        // SAFETY: clears the x87 unit; nobody's state is in the registers any more.
        unsafe { asm!("fninit", options(nomem, nostack)) };
    }
    // SAFETY: the caller vouches for the area.
    unsafe {
        if features.contains(Features::XSAVE) {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") !0u32, in("edx") !0u32, options(nostack));
        } else {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack));
        }
    }
}

/// What of the x87 pointers survives the loading of another state: found out by trying.
/// Processors of AMD load them only together with a pending exception.
///
/// # Safety
/// At boot, with XCR0 set up if `xsave`.
#[must_use]
pub unsafe fn survivors(xsave: bool) -> Features {
    static LOADED: Area = Area::with_components(1);
    let survives = |area: &Area| {
        let (number, mut environment) = (0_u32, [0_u32; 7]);
        // SAFETY: the area is a valid one; the environment takes 28 bytes.
        unsafe {
            asm!("fninit", "fild dword ptr [{}]", in(reg) &raw const number, options(nostack));
            if xsave {
                asm!("xrstor64 [{}]", in(reg) area, in("eax") !0u32, in("edx") !0u32, options(nostack));
            } else {
                asm!("fxrstor64 [{}]", in(reg) area, options(nostack));
            }
            asm!("fnstenv [{}]", "fninit", in(reg) &raw mut environment, options(nostack));
        }
        environment[3] != 0 || environment[5] != 0
    };
    let mut found = Features::empty();
    found.set(Features::X87_SURVIVES_LOAD, survives(&LOADED));
    found.set(Features::X87_SURVIVES_RESET, survives(&INITIAL));
    found
}
