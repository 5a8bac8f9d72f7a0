//! Text out and lines in, by IPC to the console driver.
//!
//! The driver is found by name, once; if it goes away it is looked up again. As
//! long as there is none, text goes to the root task, which shows it itself.
//! [`report`] always takes that way: it needs no other server.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU64, Ordering};

use abi::{ThreadId, Time, Timeouts};
use proto::console as op;

use crate::sync::Lock;
use crate::{Msg, ipc, root};

static DRIVER: AtomicU64 = AtomicU64::new(0);
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
        for byte in text.bytes() {
            if self.len == self.text.len() {
                self.finish();
            }
            self.text[self.len] = byte;
            self.len += 1;
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

/// The console driver, if there is one.
fn driver() -> Option<ThreadId> {
    let known = DRIVER.load(Ordering::Relaxed);
    if known != 0 {
        return Some(ThreadId(known));
    }
    let found = root::lookup(op::NAME).ok()?;
    DRIVER.store(found.0, Ordering::Relaxed);
    Some(found)
}

fn send(text: &[u8]) {
    let patience = Timeouts::new(Time::micros(500_000), Time::micros(2_000_000));
    for _ in 0..2 {
        let Some(driver) = driver() else { break };
        let msg = root::text_message(op::WRITE, text);
        if ipc::call_within(driver, &msg, patience).is_ok() {
            return;
        }
        DRIVER.store(0, Ordering::Relaxed);
    }
    root::log(text);
}

/// Reads one line into `buffer` (without its end); waits for it as long as it
/// takes, across restarts of the driver.
pub fn read_line(buffer: &mut [u8]) -> &str {
    let len = root::message_text(&read(op::READ_LINE), buffer);
    core::str::from_utf8(&buffer[..len]).unwrap_or("")
}

/// Reads one character.
pub fn read_char() -> u8 {
    read(op::READ_CHAR).mr[0] as u8
}

fn read(label: u64) -> Msg {
    // A driver that dies takes the request with it: ask again from time to time.
    let patience = Timeouts::new(Time::micros(500_000), Time::micros(2_000_000));
    loop {
        if let Some(driver) = driver() {
            match ipc::call_within(driver, &Msg::new(label), patience) {
                Ok(reply) if reply.label() == proto::OK => return reply,
                Err(error) if error.kind == abi::IpcErrorKind::Timeout => {}
                _ => {
                    DRIVER.store(0, Ordering::Relaxed);
                    ipc::sleep(20_000);
                }
            }
            // A driver that was restarted registered anew.
            DRIVER.store(0, Ordering::Relaxed);
        } else {
            ipc::sleep(20_000);
        }
    }
}
