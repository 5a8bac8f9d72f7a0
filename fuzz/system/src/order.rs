//! What the judge is to do (a raw file of the boot image, `fuzzsys`, with four numbers),
//! and the messages between it and the other parts.

use abi::ThreadId;
use proto::Name;
use runtime::root;
use runtime::window::Window;

/// Judge to a hostile task: map items with its playground and its den. No reply.
pub const ORDER: u64 = 0x770;
/// Hostile task to judge: MR1 address of a page that it has lost. Reply: map item.
pub const LOST: u64 = 0x772;
/// Judge to a canary: MR1 1 to forget delays afterwards. Reply: rounds, harm, two words about
/// it, longest delay in µs (of `work`, longest round).
pub const PROBE: u64 = 0x771;

/// Where boot modules are shown: physical addresses modulo the window's size.
const FILES: u64 = 0x200_0000_0000;
const FILES_BYTES: u64 = 1 << 36;

/// A run's extent.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Everything random follows from it.
    pub seed: u64,
    /// Calls of the hostile.
    pub calls: u64,
    /// Calls between two runs of the kernel's checker, on average.
    pub check_every: u64,
    /// By how much the times in which something must happen are stretched.
    pub slack: u64,
}

/// Reads the file; without one, a short run.
pub fn read() -> Order {
    let mut text = [0; 64];
    let len = file("fuzzsys", &mut text);
    let mut numbers = core::str::from_utf8(&text[..len])
        .unwrap_or("")
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0));
    Order {
        seed: numbers.next().unwrap_or(1),
        calls: numbers.next().unwrap_or(100_000),
        check_every: numbers.next().unwrap_or(50_000).max(1),
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

/// What the root task says about a task.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its slot.
    pub slot: u64,
    /// Its main thread; nilthread if it does not run.
    pub main: ThreadId,
    /// How often it was started again.
    pub restarts: u64,
}

/// What the root task says about the task in `slot`, with its name.
pub fn about(slot: u64) -> Option<(Name, About)> {
    let task = root::describe(slot).ok()?;
    Some((task.name, About { slot, main: task.main, restarts: task.restarts }))
}

/// What it says about the task called `name`.
pub fn find(name: &str) -> Option<About> {
    let wanted = Name::new(name);
    (0..).map_while(about).find(|(found, _)| *found == wanted).map(|(_, about)| about)
}
