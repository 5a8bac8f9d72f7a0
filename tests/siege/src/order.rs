//! What the killer is to do: a raw file of the boot image, `siege`, with numbers: the
//! seed, how many kills, and by how much times are stretched.

use runtime::root;
use runtime::window::Window;

/// Where boot modules are shown: physical addresses modulo the window's size.
const FILES: u64 = 0x200_0000_0000;
const FILES_BYTES: u64 = 1 << 36;

/// A siege's extent.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Everything random follows from it.
    pub seed: u64,
    /// Kills.
    pub kills: u64,
    /// By how much the times in which something must happen are stretched: where instructions are
    /// not counted, the emulator may be kept from its own processors.
    pub slack: u64,
}

/// Reads the file; without one, a short siege.
pub fn read() -> Order {
    let mut text = [0; 64];
    let len = file("siege", &mut text);
    let mut numbers = core::str::from_utf8(&text[..len])
        .unwrap_or("")
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0));
    Order {
        seed: numbers.next().unwrap_or(1),
        kills: numbers.next().unwrap_or(50),
        slack: numbers.next().unwrap_or(1).clamp(1, 1000),
    }
}

/// The beginning of the boot module `name`; how many bytes.
fn file(name: &str, buffer: &mut [u8]) -> usize {
    let Some(mut window) = Window::claim(FILES, FILES_BYTES) else { return 0 };
    let Ok(file) = root::file(&mut window, name, 0) else { return 0 };
    let len = (file.size as usize).min(buffer.len());
    window.read_bytes(file.physical % FILES_BYTES, &mut buffer[..len]);
    len
}
