//! What goes out: a queue for each task, then the terminal, then a ring for the transmitter.
//! And the clients whose answers wait until their task's queue is short.

use abi::ThreadId;
use line::{Event, Fair, Ring, Terminal, visible};
use proto::{Refusal, console as op, layout};
use runtime::{Msg, ipc};

/// Queues: the tasks', then the root task's own, and what the console's task sends as it is.
const TASKS: usize = layout::TASKS;
const ROOT: usize = TASKS;
const RAW: usize = TASKS + 1;
const SENDERS: usize = TASKS + 2;
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

/// All queues, and what is on its way.
pub struct Output {
    queues: Fair<SENDERS, ROOM>,
    ready: Ring<4096>,
    writers: [[Option<ThreadId>; WRITERS]; SENDERS],
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
            writers: [[None; WRITERS]; SENDERS],
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

    /// Whether all of `task` has passed the terminal, and there is room for a prompt.
    pub fn is_shown(&self, task: usize) -> bool {
        self.queues.len(task) == 0 && self.ready.room() >= PIECE_ROOM
    }

    /// What the terminal shows of itself; without room it is not shown.
    pub fn show(&mut self, text: &[u8]) {
        put_all(&mut self.ready, text);
    }

    /// A typed character for the terminal.
    pub fn edit(&mut self, terminal: &mut Terminal, byte: u8) -> Event {
        let ready = &mut self.ready;
        terminal.put(byte, |echo| put_all(ready, echo))
    }

    /// Text that the root task made visible: its own, or a task's. What finds no room is lost.
    pub fn of_root(&mut self, task: usize, text: &[u8]) {
        for byte in text {
            let _ = self.queues.put(if task < TASKS { task } else { ROOT }, *byte);
        }
    }

    /// Queues all of `text` for `task`, or nothing of it; as it is if `raw`, with its control
    /// characters only if the task `owns` the console. Whether `from` gets its answer now.
    pub fn write(
        &mut self,
        from: ThreadId,
        task: usize,
        text: &[u8],
        raw: bool,
        owns: bool,
    ) -> Result<bool, Refusal> {
        let queue =
            if raw { RAW } else { Some(task).filter(|at| *at < TASKS).ok_or(Refusal::Unknown)? };
        let mut needed = text.len();
        if !owns {
            needed = 0;
            visible(text, |bytes| needed += bytes.len());
        }
        if self.queues.room(queue) < needed {
            return Err(Refusal::Exhausted);
        }
        let queues = &mut self.queues;
        let mut put = |bytes: &[u8]| {
            for byte in bytes {
                let _ = queues.put(queue, *byte);
            }
        };
        if owns {
            put(text)
        } else {
            visible(text, put)
        }
        self.written += text.len() as u64;
        let short = self.queues.len(queue) <= SHORT;
        let writers = &mut self.writers[queue];
        match writers.iter_mut().find(|writer| writer.is_none_or(|known| known == from)) {
            Some(place) if !short => *place = Some(from),
            _ => return Ok(true),
        }
        Ok(false)
    }

    /// Gives the terminal what there is room for; nothing is edited if `unedited`.
    pub fn feed(&mut self, terminal: &mut Terminal, unedited: bool) {
        let mut piece = [0; PIECE];
        while self.ready.room() >= PIECE_ROOM {
            let Some((who, len)) = self.queues.take_piece(&mut piece) else { break };
            let ready = &mut self.ready;
            match &piece[..len] {
                piece if who == RAW => put_all(ready, piece),
                piece if unedited => lines(piece, |byte| put_all(ready, &[byte])),
                piece => terminal.print(piece, |echo| put_all(ready, echo)),
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
        for thread in ready.flat_map(|(_, writers)| writers).filter_map(Option::take) {
            let _ = ipc::reply(thread, &Msg::new(proto::OK));
        }
    }
}

fn put_all(ring: &mut Ring<4096>, text: &[u8]) {
    for byte in text {
        let _ = ring.put(*byte);
    }
}

/// Lines as a terminal wants them: it goes to the next one, and to its beginning.
fn lines(text: &[u8], mut put: impl FnMut(u8)) {
    for byte in text {
        if *byte == b'\n' {
            put(b'\r');
        }
        put(*byte);
    }
}
