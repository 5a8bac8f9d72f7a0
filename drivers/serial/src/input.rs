//! What is typed, and who waits for it: threads of the one task that was given the console.

use abi::ThreadId;
use line::{Event, Ring, Terminal};
use proto::console as op;
use runtime::{Msg, ipc, root};

use crate::output::Output;

/// Threads that wait for input.
const READERS: usize = 8;

/// The input side.
pub struct Input {
    /// Complete lines and single characters that nobody has asked for yet.
    typed: Ring<512>,
    /// Who waits for input: thread, and whether for a whole line.
    readers: [Option<(ThreadId, bool)>; READERS],
    /// Input goes unedited to whoever asked for it that way last.
    raw: bool,
    raw_reader: Option<ThreadId>,
    /// Who said which words can be completed.
    pub words_of: ThreadId,
    read: u64,
}

impl Input {
    /// Nothing typed.
    pub const fn new() -> Self {
        Self {
            typed: Ring::new(),
            readers: [None; READERS],
            raw: false,
            raw_reader: None,
            words_of: ThreadId::NIL,
            read: 0,
        }
    }

    /// Characters that came in.
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// Whether input goes unedited to its reader.
    pub const fn is_raw(&self) -> bool {
        self.raw
    }

    /// Whether `thread` waits for edited input.
    pub fn waits(&self, thread: ThreadId) -> bool {
        self.readers.iter().flatten().any(|(reader, _)| *reader == thread)
    }

    /// One character from the line; `out` shows what it did.
    pub fn take(&mut self, byte: u8, terminal: &mut Terminal, out: &mut Output) {
        self.read += 1;
        if self.raw || matches!(self.readers.iter().flatten().next(), Some((_, false))) {
            let _ = self.typed.put(byte);
            return;
        }
        if out.edit(terminal, byte) == Event::Line {
            // A line that finds no room is lost as a whole.
            if self.typed.room() > terminal.line().len() {
                terminal.line().iter().for_each(|byte| {
                    let _ = self.typed.put(*byte);
                });
                let _ = self.typed.put(b'\n');
            }
            terminal.clear();
        }
    }

    /// `from` waits for input of the kind that `label` asks for; whether it did not before.
    pub fn ask(&mut self, from: ThreadId, label: u64) -> bool {
        let fresh = !self.waits(from);
        self.raw = label == op::READ_RAW;
        if self.raw {
            self.raw_reader = Some(from);
        } else {
            self.add_reader(from, label == op::READ_LINE);
        }
        fresh
    }

    fn add_reader(&mut self, from: ThreadId, line: bool) {
        // A client that asks again has given up its earlier request.
        self.readers
            .iter_mut()
            .for_each(|reader| *reader = reader.filter(|(thread, _)| *thread != from));
        // First come, first served: the earliest is in front. With more than
        // READERS clients the latest loses its place and asks again.
        let waiting = self.readers.iter().flatten().count().min(READERS - 1);
        let mut kept = [None; READERS];
        for (place, reader) in kept.iter_mut().zip(self.readers.iter().flatten()) {
            *place = Some(*reader);
        }
        kept[waiting] = Some((from, line));
        self.readers = kept;
    }

    /// Gives all unedited input to the client that asked for it.
    fn serve_raw_reader(&mut self) {
        let Some(thread) = self.raw_reader.filter(|_| !self.typed.is_empty()) else { return };
        let mut text = [0; op::WORD_BYTES];
        let mut len = 0;
        while let Some(byte) = text[len..].first_mut().and_then(|_| self.typed.take()) {
            text[len] = byte;
            len += 1;
        }
        self.raw_reader = None;
        if ipc::reply(thread, &root::text_message(proto::OK, &text[..len])).is_err() {
            // The client is gone or asks again: the input is for the next.
            self.typed.put_back(&text[..len]);
        }
    }

    /// Answers waiting clients as long as there is input for them.
    pub fn serve(&mut self) {
        if self.raw {
            return self.serve_raw_reader();
        }
        for reader in &mut self.readers {
            let Some((thread, line)) = *reader else { continue };
            let mut text = [0; op::LINE_BYTES];
            let reply = if line {
                let Some(len) = self.typed.take_line(&mut text) else { return };
                root::text_message(proto::OK, &text[..len])
            } else {
                let Some(byte) = self.typed.take() else { return };
                Msg::new(proto::OK).word(byte.into())
            };
            *reader = None;
            if ipc::reply(thread, &reply).is_err() && line {
                // The client is gone or asks again: the line is for the next.
                let len = root::message_text(&reply, &mut text);
                self.typed.put_back(b"\n");
                self.typed.put_back(&text[..len]);
            }
        }
    }
}
