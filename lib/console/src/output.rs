//! What goes out: a queue for each task, then the terminal, then a ring for the transmitter.
//! And the clients whose answers wait until their task's queue is short.

use abi::ThreadId;
use interfaces::common::Refusal;
use interfaces::console::{WriteLongReply, WriteRawReply, WriteReply};
use line::{Fair, Ring, visible};
use proto::{console as op, layout};
use runtime::Msg;
use runtime::service::{self, Answer};

use crate::seats::{SEATS, Seats};

/// Queues: the tasks', then the root task's own, and what the consoles' tasks send as it is.
const TASKS: usize = layout::TASKS;
const ROOT: usize = TASKS;
const RAW: usize = TASKS + 1;
const SENDERS: usize = RAW + SEATS;
const _: () = assert!(SENDERS <= 64);
/// Bytes of a queue: the longest text, all of it made visible, behind a short queue.
const ROOM: usize = 4 * op::STRING_BYTES + 2 * SHORT;
/// A queue is short with so many bytes: its writers get their answers.
const SHORT: usize = 2048;
/// Threads of one task whose answers can wait; a further one gets it at once.
const WRITERS: usize = 4;
/// Bytes that the terminal gets at a time, and what may come of them at most: line ends get
/// longer, and a prompt goes and comes back.
const PIECE: usize = 256;
const PIECE_ROOM: usize = 1536;

/// Who wrote, and waits for the answer.
pub enum Writer {
    /// In words.
    Short(WriteReply),
    /// A string.
    Long(WriteLongReply),
    /// As it is.
    Raw(WriteRawReply),
}

impl Writer {
    /// Its thread.
    pub const fn thread(&self) -> ThreadId {
        match self {
            Self::Short(reply) => reply.caller(),
            Self::Long(reply) => reply.caller(),
            Self::Raw(reply) => reply.caller(),
        }
    }

    /// Makes the answer.
    pub fn answer(self, result: Result<(), Refusal>) -> (ThreadId, Answer<Msg>) {
        match self {
            Self::Short(reply) => reply.answer(result, &mut []),
            Self::Long(reply) => reply.answer(result, &mut []),
            Self::Raw(reply) => reply.answer(result, &mut []),
        }
    }
}

/// All queues, and what is on its way.
pub struct Output {
    queues: Fair<SENDERS, ROOM>,
    ready: Ring<4096>,
    writers: [[Option<Writer>; WRITERS]; SENDERS],
    /// Bit i: queue i has become short.
    short: u64,
    written: u64,
}

impl Output {
    /// Nothing to send.
    pub const fn new() -> Self {
        Self {
            queues: Fair::new(),
            ready: Ring::new(),
            writers: [const { [const { None }; WRITERS] }; SENDERS],
            short: 0,
            written: 0,
        }
    }

    /// Bytes taken from clients.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Whether all is with the transmitter.
    pub const fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.ready.is_empty()
    }

    /// A character is typed.
    pub fn edit(&mut self, seats: &mut Seats, byte: u8) {
        seats.take(byte, &mut self.ready);
    }

    /// Shows prompts whose turn it is: all of the task's text has passed the terminal, and there is room.
    pub fn ask(&mut self, seats: &mut Seats) {
        let queues = &self.queues;
        seats.ask(&mut self.ready, |task, ready| {
            queues.len(task) == 0 && ready.room() >= PIECE_ROOM
        });
    }

    /// Text that the root task made visible: its own, or a task's. What finds no room is lost.
    pub fn of_root(&mut self, task: Option<usize>, text: &[u8]) {
        let queue = task.filter(|task| *task < TASKS).unwrap_or(ROOT);
        for byte in text {
            let _ = self.queues.put(queue, *byte);
        }
    }

    /// Queues all of `text` of `writer`, a thread of `task`, or nothing of it; with its control
    /// characters only if the task `owns` a console, the one at this place. The answer, if it comes now.
    pub fn write(
        &mut self,
        writer: Writer,
        task: usize,
        text: &[u8],
        owns: Option<usize>,
    ) -> Option<(ThreadId, Answer<Msg>)> {
        let queue = match (&writer, owns) {
            (Writer::Raw(_), Some(place)) => RAW + place,
            _ => task,
        };
        let mut needed = text.len();
        if owns.is_none() {
            needed = 0;
            visible(text, |bytes| needed += bytes.len());
        }
        if task >= TASKS || self.queues.room(queue) < needed {
            return Some(writer.answer(Err(Refusal::Exhausted)));
        }
        let queues = &mut self.queues;
        let mut put = |bytes: &[u8]| {
            for byte in bytes {
                let _ = queues.put(queue, *byte);
            }
        };
        if owns.is_some() {
            put(text)
        } else {
            visible(text, put)
        }
        self.written += text.len() as u64;
        if self.queues.len(queue) <= SHORT {
            return Some(writer.answer(Ok(())));
        }
        let free = |place: &Option<Writer>| {
            place.as_ref().is_none_or(|known| known.thread() == writer.thread())
        };
        match self.writers[queue].iter().position(free) {
            Some(place) => self.writers[queue][place] = Some(writer),
            None => return Some(writer.answer(Ok(()))),
        }
        None
    }

    /// Gives the terminal what there is room for.
    pub fn feed(&mut self, seats: &mut Seats) {
        let mut piece = [0; PIECE];
        while self.ready.room() >= PIECE_ROOM {
            if seats.again(PIECE, &mut self.ready) {
                continue;
            }
            let Some((who, len)) = self.queues.take_piece(&mut piece) else { break };
            match who.checked_sub(RAW) {
                Some(place) => seats.print_raw(place, &piece[..len], &mut self.ready),
                None => seats.print(who, &piece[..len], &mut self.ready),
            }
            if self.queues.len(who) <= SHORT {
                self.short |= 1 << who;
            }
        }
    }

    /// The next byte for the transmitter.
    pub fn take(&mut self) -> Option<u8> {
        self.ready.take()
    }

    /// Answers the writers whose queues have become short. Who does not wait for it any more
    /// has gone.
    pub fn answer(&mut self) {
        let short = core::mem::take(&mut self.short);
        let ready =
            self.writers.iter_mut().enumerate().filter(|(queue, _)| short & 1 << queue != 0);
        for writer in ready.flat_map(|(_, writers)| writers).filter_map(Option::take) {
            service::answer(writer.answer(Ok(())), &[]);
        }
    }
}
