//! What the killer is to do: a raw file of the boot image, `siege`, with two numbers: the
//! seed, and how many kills.

use proto::{Name, root as op};
use runtime::window::Window;
use runtime::{Msg, accept, root};

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
}

/// Reads the file; without one, a short siege.
pub fn read() -> Order {
    let mut text = [0; 64];
    let len = file("siege", &mut text);
    let mut numbers = core::str::from_utf8(&text[..len])
        .unwrap_or("")
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0));
    Order { seed: numbers.next().unwrap_or(1), kills: numbers.next().unwrap_or(50) }
}

/// The beginning of the boot module `name`; how many bytes.
fn file(name: &str, buffer: &mut [u8]) -> usize {
    let Some(mut window) = Window::claim(FILES, FILES_BYTES) else { return 0 };
    let request = Msg::new(op::MODULE).words(&Name::new(name).words()).word(0);
    let reply = accept::window(&mut window, || root::call(&request));
    let Some(Ok(reply)) = reply else { return 0 };
    let (size, start) = (reply.mr[0] as usize, reply.mr[1]);
    let len = size.min(buffer.len());
    window.read_bytes(start % FILES_BYTES, &mut buffer[..len]);
    len
}
