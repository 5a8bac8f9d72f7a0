//! Memory of the root task: windows from σ0, physical = virtual.

use runtime::sigma0;
use runtime::window::Window;

/// What is missing when σ0 has nothing left.
pub const NO_MEMORY: &str =
    "sigma0 has no memory block of the size needed; give the machine more memory (-m)";

/// A block of 2^`bits` bytes, touched.
pub fn block(bits: u32) -> Result<Window, &'static str> {
    let window = sigma0::memory(None, bits).ok_or(NO_MEMORY)?;
    window.write(0, 0);
    Ok(window)
}
