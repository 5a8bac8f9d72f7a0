//! What the root task has to say, and what tasks let it say (LOG).
//!
//! Text goes to the console driver when there is one, as a message that it takes or not: this
//! task never waits, and does not poll the port at its priority on behalf of others. Without
//! a driver, or with one that takes nothing, text goes out by polling, at most one message's
//! worth before the next request is served.
//!
//! Reports about a task, and its own text, are counted against that task's [`Allowance`].

use core::fmt::{self, Write};

use abi::ThreadId;
use interfaces::parent::LogReply;
use interfaces::voice::Client;
use proto::console as op;
use runtime::service::{self, Thread};
use runtime::sync::Lock;
use runtime::{clock, direct};

/// Bytes of the root task's own reports that can wait.
const OWN_BYTES: usize = 8192;
/// Bytes of a task's text, with its name before each line, that can wait.
const TASK_BYTES: usize = 1024;
/// A driver that takes nothing for so long, µs, is passed over.
const PATIENCE_US: u64 = 200_000;
/// How long to wait before the driver is asked again, µs.
pub const AGAIN_US: u64 = 1_000;

/// Text that waits, in the order in which it was written.
pub struct Text<const N: usize> {
    bytes: [u8; N],
    sent: usize,
    len: usize,
}

impl<const N: usize> Text<N> {
    /// None.
    pub const fn new() -> Self {
        Self { bytes: [0; N], sent: 0, len: 0 }
    }

    /// Adds what fits.
    pub fn add(&mut self, text: &[u8]) {
        if self.sent == self.len {
            (self.sent, self.len) = (0, 0);
        }
        let len = text.len().min(N - self.len);
        self.bytes[self.len..self.len + len].copy_from_slice(&text[..len]);
        self.len += len;
    }

    /// Whether nothing waits.
    pub const fn is_empty(&self) -> bool {
        self.sent == self.len
    }

    /// The next message's worth: whole lines if one ends in it.
    fn front(&self) -> &[u8] {
        let waiting = &self.bytes[self.sent..self.len];
        let front = &waiting[..waiting.len().min(op::WORD_BYTES)];
        let lines = front.iter().rposition(|byte| *byte == b'\n').map(|end| end + 1);
        &front[..lines.unwrap_or(front.len())]
    }
}

/// A task's own text that waits, and the thread that waits with it.
pub struct Log {
    text: Text<TASK_BYTES>,
    writer: Option<LogReply>,
}

impl Log {
    /// None.
    pub const fn new() -> Self {
        Self { text: Text::new(), writer: None }
    }

    /// Whether there is room for the next message.
    pub const fn is_free(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes a message of `writer`, each line behind the task's `name`, all of it made visible.
    pub fn put(&mut self, writer: LogReply, name: &str, text: &[u8]) {
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            self.text.add(name.as_bytes());
            self.text.add(b": ");
            line::visible(line, |bytes| self.text.add(bytes));
            if !line.ends_with(b"\n") {
                self.text.add(b"\n");
            }
        }
        self.writer = Some(writer);
    }

    /// A writer that is gone hears nothing.
    pub fn forget(&mut self, gone: impl Fn(ThreadId) -> bool) {
        self.writer.take_if(|writer| gone(writer.caller()));
    }

    /// Writes what waits by polling: the console's driver itself has something to say, and is to
    /// be answered.
    pub fn write_directly(&mut self) -> Option<LogReply> {
        let text = &mut self.text;
        direct::write_bytes(&text.bytes[text.sent..text.len]);
        text.sent = text.len;
        self.writer.take()
    }

    /// Gives what waits, or a part of it, to the console; the writer hears when all is gone.
    pub fn pass_on(&mut self, task: u32, way: &mut Way) {
        way.give(Some(task), &mut self.text);
        if self.text.is_empty()
            && let Some(writer) = self.writer.take()
        {
            service::answer(writer.answer(Ok(()), &mut []), &[]);
        }
    }
}

/// Where text goes.
pub struct Way {
    driver: Option<ThreadId>,
    /// Since when the driver has taken nothing, µs of the clock.
    stuck_since_us: Option<u64>,
    /// Whether nothing more can go before the next request.
    used: bool,
}

impl Way {
    /// By polling, until there is a driver.
    pub const fn new() -> Self {
        Self { driver: None, stuck_since_us: None, used: false }
    }

    /// A request was served: text may go to `driver` again.
    pub fn open(&mut self, driver: Option<ThreadId>) {
        if self.driver != driver {
            self.stuck_since_us = None;
        }
        (self.driver, self.used) = (driver, false);
    }

    /// Whether nothing more can go before the next request.
    pub const fn is_used(&self) -> bool {
        self.used
    }

    fn give<const N: usize>(&mut self, task: Option<u32>, text: &mut Text<N>) {
        if self.used || text.is_empty() {
            return;
        }
        let front = text.front();
        let say = |driver| Client::new(Thread(driver)).write_for(task, front);
        if self.driver.is_some_and(|driver| say(driver).is_ok()) {
            self.stuck_since_us = None;
        } else if self.is_given_up() {
            direct::write_bytes(front);
        } else {
            self.used = true;
            return;
        }
        text.sent += front.len();
        self.used = true;
    }

    /// Whether the driver has had its time; without one there is nobody to wait for.
    fn is_given_up(&mut self) -> bool {
        if self.driver.is_none() {
            return true;
        }
        let now_us = clock::now_us();
        now_us - *self.stuck_since_us.get_or_insert(now_us) > PATIENCE_US
    }
}

static OWN: Lock<Text<OWN_BYTES>> = Lock::new(Text::new());

impl Write for Text<OWN_BYTES> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

/// Says a line of the root task's own.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => { $crate::output::say(format_args!("{}\n", format_args!($($arg)*))) };
}

/// Adds text to what waits; a report that finds no room is lost.
pub fn say(text: fmt::Arguments<'_>) {
    let _ = OWN.lock().write_fmt(text);
}

/// Gives the root task's own text to the console, a message's worth.
pub fn pass_own_on(way: &mut Way) {
    way.give(None, &mut OWN.lock());
}

/// Whether some of it waits.
pub fn own_waits() -> bool {
    !OWN.lock().is_empty()
}

/// Writes all of it at once, by polling: before the machine stops.
pub fn flush() {
    let mut own = OWN.lock();
    let (sent, len) = (own.sent, own.len);
    direct::write_bytes(&own.bytes[sent..len]);
    own.sent = len;
}

/// How much may still be written on a task's behalf: a burst, and so much a second.
#[derive(Clone, Copy)]
pub struct Allowance {
    bytes: u64,
    since_us: u64,
    /// Messages that were dropped since the last one that was not.
    dropped: u64,
}

impl Allowance {
    /// Most bytes at once.
    const BURST: u64 = 4096;
    /// Bytes a second: a tenth of what the port carries.
    const RATE: u64 = 1024;

    /// All of it.
    pub const fn new() -> Self {
        Self { bytes: Self::BURST, since_us: 0, dropped: 0 }
    }

    /// Takes `bytes` at `now_us`; how many messages were dropped before this one, or `None`
    /// if this one is to be dropped, too.
    pub fn take(&mut self, bytes: u64, now_us: u64) -> Option<u64> {
        let earned = now_us.saturating_sub(self.since_us).saturating_mul(Self::RATE) / 1_000_000;
        if earned > 0 {
            self.bytes = self.bytes.saturating_add(earned).min(Self::BURST);
            self.since_us = now_us;
        }
        if self.bytes < bytes {
            self.dropped += 1;
            return None;
        }
        self.bytes -= bytes;
        Some(core::mem::take(&mut self.dropped))
    }
}
