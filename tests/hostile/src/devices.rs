//! Devices: memory, interrupts and ports that belong to others or to nobody.

use alloc::format;

use runtime::root::{self, Refusal};
use runtime::sigma0;
use runtime::window::Window;

use crate::Outcome;

/// Where windows for what is taken would be.
const AT: u64 = 0x3F_0000_0000;
/// The line that this task's description names.
const OWN_LINE: u32 = 9;

/// Whoever has an interrupt had every physical page that nobody owned.
pub fn memory() -> Outcome {
    let devices = [0xA_0000, 0xB_8000, 0xFD00_0000, 0xFEC0_0000, 0xFED0_0000, 0xFEE0_0000, 0x1000];
    for address in devices {
        let Some(mut window) = Window::claim(AT, 0x1000) else {
            return Err(format!("no window for {address:#x}"));
        };
        let got = root::memory(&mut window, Some(address));
        window.release();
        if got != Err(Refusal::NotAllowed) {
            return Err(format!("the root task answered {got:x?} for {address:#x}"));
        }
    }
    Ok(())
}

/// The lines of the serial driver, of the clock's driver, and of the kernel.
pub fn anothers_interrupt() -> Outcome {
    for line in [4, 8, 0, 2, 1] {
        let got = root::attach_irq(line);
        if got != Err(Refusal::NotAllowed) {
            return Err(format!("the root task answered {got:?} for line {line}"));
        }
    }
    Ok(())
}

/// Of two attaches the second one took the line, silently.
pub fn second_attach() -> Outcome {
    root::attach_irq(OWN_LINE).map_err(|why| format!("the first attach was refused: {why}"))?;
    match root::attach_irq(OWN_LINE) {
        Err(Refusal::Taken) => Ok(()),
        got => Err(format!("the root task answered {got:?} for the second attach")),
    }
}

/// The serial port's, the clock's, PCI's configuration, and some of nobody's.
pub fn ports() -> Outcome {
    for (first, count) in [(0x3F8, 8), (0x70, 2), (0xCF8, 8), (0x20, 2), (0x60, 1), (0xC000, 4)] {
        if root::ports(first, count).is_ok() {
            return Err(format!("the root task gave ports {first:#x}, {count} of them"));
        }
    }
    Ok(())
}

/// Once the system runs, nobody but the root task gets anything there.
pub fn sigma0() -> Outcome {
    for (first, bits) in [(0xCF8, 3), (0x60, 0), (0xC000, 4)] {
        if sigma0::ports(first, bits) {
            return Err(format!("sigma0 gave ports {first:#x}, 2^{bits} of them"));
        }
    }
    for address in [None, Some(0xFEE0_0000), Some(0xB_8000), Some(0x10_0000)] {
        if let Some(window) = sigma0::memory(address, 12) {
            return Err(format!("sigma0 gave the page at {:#x}", window.base()));
        }
    }
    Ok(())
}
