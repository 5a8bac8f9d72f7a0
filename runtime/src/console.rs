//! Text out and lines in, by IPC to the console driver.
//!
//! The driver is found by name, once; if it goes away it is looked up again. As
//! long as there is none, text goes to the root task, which shows it itself.
//! [`report`] always takes that way: it needs no other server.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU64, Ordering};

use abi::ThreadId;
use interfaces::common::Refusal;
use interfaces::console::Client;
use proto::console as op;

use crate::service::{Error, Thread};
use crate::sync::Lock;
use crate::{ipc, root};

/// The driver's id; [`UNKNOWN`] before the first search and after it went away,
/// [`ABSENT`] after a search in vain.
static DRIVER: AtomicU64 = AtomicU64::new(UNKNOWN);
const UNKNOWN: u64 = 0;
const ABSENT: u64 = 1;
/// How long the first text waits for a driver that is being started, ms.
const PATIENCE_MS: u64 = 300;
/// How long a full queue is left alone, µs.
const FULL_US: u64 = 100_000;
static PRINTING: Lock<()> = Lock::new(());

/// Prints to the console.
#[macro_export]
macro_rules! print {
    ($($arg:tt)*) => { $crate::console::write(format_args!($($arg)*)) };
}

/// Prints to the console, with a line end.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($arg:tt)*) => { $crate::console::write(format_args!("{}\n", format_args!($($arg)*))) };
}

/// Collects text so that one message carries as much as it can.
struct Chunks {
    text: [u8; op::WORD_BYTES],
    len: usize,
    flush: fn(&[u8]),
}

impl Chunks {
    const fn new(flush: fn(&[u8])) -> Self {
        Self { text: [0; op::WORD_BYTES], len: 0, flush }
    }

    fn finish(&mut self) {
        if self.len != 0 {
            (self.flush)(&self.text[..self.len]);
        }
        self.len = 0;
    }
}

impl Write for Chunks {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            // A character stays in one message.
            let bytes = char.len_utf8();
            if self.len + bytes > self.text.len() {
                self.finish();
            }
            char.encode_utf8(&mut self.text[self.len..]);
            self.len += bytes;
        }
        Ok(())
    }
}

/// Prints formatted text to the console; one call's text stays together.
pub fn write(text: fmt::Arguments<'_>) {
    let _held = PRINTING.lock();
    let mut chunks = Chunks::new(send);
    let _ = chunks.write_fmt(text);
    chunks.finish();
}

/// Prints a line by way of the root task (panics, and servers below the console).
pub fn report(text: fmt::Arguments<'_>) {
    let mut chunks = Chunks::new(root::log);
    let _ = chunks.write_fmt(text);
    chunks.finish();
}

/// The console driver, if there is one. A search waits for a while, since a
/// driver may be about to start; the next one after a search in vain does not.
fn driver() -> Option<Client<Thread>> {
    let client = |id| Client::new(Thread(id));
    let known = DRIVER.load(Ordering::Relaxed);
    if known > ABSENT {
        return Some(client(ThreadId(known)));
    }
    let found = root::find(op::NAME, if known == UNKNOWN { PATIENCE_MS } else { 0 });
    DRIVER.store(found.map_or(ABSENT, |found| found.0), Ordering::Relaxed);
    found.ok().map(client)
}

/// Forgets a driver that does not answer.
fn lose_driver() {
    DRIVER.store(UNKNOWN, Ordering::Relaxed);
}

fn send(text: &[u8]) {
    for _ in 0..2 {
        let Some(driver) = driver() else { break };
        match driver.write(text) {
            Ok(Ok(())) => return,
            // Other threads of this task have filled its queue.
            Ok(Err(Refusal::Exhausted)) => ipc::sleep(FULL_US),
            // This task's description does not use the console.
            Ok(Err(_)) => break,
            Err(_) => lose_driver(),
        }
    }
    root::log(text);
}

/// Reads one line into `buffer` (without its end); waits for it as long as it
/// takes, across restarts of the driver.
pub fn read_line(buffer: &mut [u8]) -> &str {
    let len = read(|driver| {
        let mut room = [0; op::LINE_BYTES];
        let line = match driver.read_line(&mut room)? {
            Ok(line) => line,
            Err(why) => return Ok(Err(why)),
        };
        let len = line.len().min(buffer.len());
        buffer[..len].copy_from_slice(&line[..len]);
        Ok(Ok(len))
    });
    core::str::from_utf8(&buffer[..len]).unwrap_or("")
}

/// Says what the next [`read_line`] of this thread completes: words for the first place of
/// a line, separated by blanks; behind a line feed those for later places.
pub fn complete(words: &str) {
    if let Some(driver) = driver() {
        let _ = driver.complete(words.as_bytes());
    }
}

/// Reads one character.
pub fn read_char() -> u8 {
    read(Client::read_char)
}

/// Asks for input until there is some.
fn read<T>(mut ask: impl FnMut(&Client<Thread>) -> Result<Result<T, Refusal>, Error>) -> T {
    loop {
        let Some(driver) = driver() else {
            ipc::sleep(PATIENCE_MS * 1000);
            continue;
        };
        // A driver that dies takes the request with it; one that was restarted registered anew.
        match ask(&driver) {
            Ok(Ok(input)) => return input,
            _ => lose_driver(),
        }
    }
}
