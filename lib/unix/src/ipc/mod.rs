//! System V's message queues, shared memory and semaphores: objects with a number and a key
//! that no process owns. They are there until somebody removes them, so their maker's user pays
//! for all that they can come to hold.
//!
//! | file | owns |
//! |---|---|
//! | `table` | numbers, keys, owners, who may |
//! | `messages` | `msgget`, `msgsnd`, `msgrcv`, `msgctl` |
//! | `posix`, `notices` | POSIX message queues, which have names and descriptors |
//! | `segments` | `shmget`, `shmat`, `shmdt`, `shmctl` |
//! | `semaphores`, `undo` | `semget`, `semop`, `semctl`; what an ended process takes back |

pub mod messages;
mod notices;
pub mod posix;
pub mod segments;
pub mod semaphores;
mod table;
mod undo;

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use table::Table;

use crate::account::Charge;
use crate::call::Cx;
use crate::process::Process;
use crate::process::user_space::Users;
use crate::unix::Unix;

/// `IPC_*` commands of all three `ctl` calls.
const RMID: u32 = 0;
const SET: u32 = 1;
const STAT: u32 = 2;
const INFO: u32 = 3;
/// `IPC_NOWAIT`.
const NO_WAIT: u32 = 0o4000;
/// Newer libraries say it with every command.
const IPC_64: u32 = 0x100;

/// All objects of a namespace; POSIX queues are among them.
pub struct Ipc {
    /// The namespace's number.
    pub number: u64,
    /// The namespace of users that it belongs to.
    pub users: Users,
    _charge: Option<Charge>,
    /// POSIX message queues.
    pub queues: posix::Queues,
    /// Message queues.
    pub messages: Table<messages::Queue>,
    /// Shared memory.
    pub segments: Table<segments::Segment>,
    /// Sets of semaphores.
    pub semaphores: Table<semaphores::Set>,
    /// Segments that were removed and are attached, or were.
    doomed: Cell<u32>,
}

impl Ipc {
    /// None yet; `charge` is what the namespace itself costs.
    #[must_use]
    pub fn new(number: u64, users: Users, charge: Option<Charge>) -> Self {
        Self {
            number,
            users,
            _charge: charge,
            queues: posix::Queues::default(),
            messages: Table::new(messages::MOST),
            segments: Table::new(segments::MOST),
            semaphores: Table::new(semaphores::MOST),
            doomed: Cell::new(0),
        }
    }

    /// Takes back what the process wanted taken back at its end.
    pub fn process_ended(&self, process: &Process) {
        if process.state.undoes.get() {
            self.semaphores.all().for_each(|set| undo::process_ended(&set.of, process.pid));
        }
    }
}

/// The objects that a process finds.
#[must_use]
pub fn of(unix: &Unix, process: &Process) -> Rc<Ipc> {
    let own = process.state.ipc.borrow().clone();
    own.unwrap_or_else(|| unix.ipc.clone())
}

/// Those that the caller finds.
fn seen(cx: &Cx) -> Rc<Ipc> {
    of(cx.unix, cx.process)
}

/// The real time in seconds, as the objects tell it.
fn seconds(unix: &Unix) -> i64 {
    (crate::time::clock::real_time_ns(unix) / 1_000_000_000) as i64
}

/// Numbers one after the other, as the structures of the calls have them.
#[derive(Default)]
struct Record(Vec<u8>);

impl Record {
    fn int(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn long(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Writes it to the program, and answers with `value`.
    fn answer(self, cx: &Cx, to: u64, value: u64) -> crate::Answer {
        cx.user().write_bytes(to, &self.0)?;
        Ok(value)
    }
}
