//! The system's log, as programs see it (`dmesg`): what this server has said to the operator,
//! and what programs wrote to `/dev/kmsg`. The latest records, so many bytes of them; whoever
//! reads too late is told that some are gone.
//!
//! [`syslog`] is the call, [`kmsg`] the device. What other tasks of the system print is on the
//! console, in the root task's log, and not here.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::memory::PAGE;
use crate::process::system::{RELEASE, VERSION};
use crate::unix::Unix;
use crate::wait::WaitQueue;

pub mod kmsg;
pub mod syslog;

/// Bytes that are kept, records' heads counted.
const BYTES: usize = 64 << 10;
/// What a record's head counts for.
const HEAD: usize = size_of::<Record>();
/// Priority of what the server says: `kern.info`.
const INFO: u8 = 6;

/// A line.
struct Record {
    at_us: u64,
    /// Facility and level, as programs of `syslogd` write them.
    priority: u8,
    text: String,
}

impl Record {
    /// As `syslog` gives it out.
    fn line(&self) -> String {
        let (seconds, rest) = (self.at_us / 1_000_000, self.at_us % 1_000_000);
        format!("<{}>[{seconds:5}.{rest:06}] {}\n", self.priority, self.text)
    }

    fn cost(&self) -> usize {
        HEAD + self.text.len()
    }
}

/// The log.
#[derive(Default)]
pub struct Log {
    records: RefCell<VecDeque<Record>>,
    /// Number of the record that will come next; the first was 0.
    next: Cell<u64>,
    /// Bytes of all records.
    bytes: Cell<usize>,
    /// The next record for whoever takes them by `syslog`, and how much of it is taken.
    taken: Cell<(u64, usize)>,
    /// Records before this one were cleared away, for who reads all.
    cleared: Cell<u64>,
    /// Whoever waits for a record.
    came: WaitQueue,
}

impl Log {
    /// Appends a line that can be shown; the oldest ones make room.
    pub(crate) fn add(&self, now_ns: u64, priority: u8, text: &str) {
        let record = Record { at_us: now_ns / 1000, priority, text: text.into() };
        let mut records = self.records.borrow_mut();
        let mut bytes = self.bytes.get() + record.cost();
        records.push_back(record);
        while bytes > BYTES {
            let Some(oldest) = records.pop_front() else { break };
            bytes -= oldest.cost();
        }
        self.bytes.set(bytes);
        self.next.set(self.next.get() + 1);
        self.came.wake_all();
    }

    /// Number of the oldest record.
    fn oldest(&self) -> u64 {
        self.next.get() - self.records.borrow().len() as u64
    }

    /// What `look` makes of record `number`, if it is there.
    fn with<T>(&self, number: u64, look: impl FnOnce(&Record) -> T) -> Option<T> {
        let index = number.checked_sub(self.oldest())?;
        self.records.borrow().get(usize::try_from(index).ok()?).map(look)
    }

    /// The lines from record `from` on, as many of the last ones as `room` has bytes for.
    fn last(&self, from: u64, room: usize) -> Vec<u8> {
        let mut lines = Vec::new();
        let mut size = 0;
        for number in (from.max(self.oldest())..self.next.get()).rev() {
            let Some(line) = self.with(number, Record::line) else { break };
            size += line.len();
            if size > room {
                break;
            }
            lines.push(line);
        }
        lines.reverse();
        lines.concat().into_bytes()
    }
}

impl Unix {
    /// The first lines, which nobody has to be told.
    pub(crate) fn begin_log(&self) {
        self.note(&format!("Linux version {RELEASE} {VERSION}"));
        self.note(&format!("Memory: {}K for programs", self.memory.total() * PAGE / 1024));
        self.note(&format!("smp: {} processors", self.machine.processors()));
    }

    /// Puts what the server says into the log that programs can read.
    pub(crate) fn note(&self, text: &str) {
        self.log.add(self.machine.now_ns(), INFO, text);
    }
}
