//! What is typed, and who waits for it: threads of the one task that was given the console.

use abi::ThreadId;
use interfaces::console::{ReadCharReply, ReadLineReply, ReadRawReply};
use line::{Event, Ring, Terminal};
use proto::console as op;
use runtime::service::Answer;
use runtime::{Msg, ipc};

/// Threads that wait for input.
const READERS: usize = 8;

/// Who waits for edited input.
pub enum Reader {
    /// For a whole line.
    Line(ReadLineReply),
    /// For a character.
    Char(ReadCharReply),
}

impl Reader {
    const fn thread(&self) -> ThreadId {
        match self {
            Self::Line(reply) => reply.caller(),
            Self::Char(reply) => reply.caller(),
        }
    }
}

/// The input side.
pub struct Input {
    /// Complete lines and single characters that nobody has asked for yet.
    typed: Ring<512>,
    /// Who waits for edited input, the earliest first.
    readers: [Option<Reader>; READERS],
    /// Input goes unedited to whoever asked for it that way last.
    raw: bool,
    raw_reader: Option<ReadRawReply>,
    /// Who said which words can be completed.
    pub words_of: ThreadId,
    read: u64,
}

impl Input {
    /// Nothing typed.
    pub const fn new() -> Self {
        Self {
            typed: Ring::new(),
            readers: [const { None }; READERS],
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
        self.readers.iter().flatten().any(|reader| reader.thread() == thread)
    }

    /// One character from the line; `echo` shows what it did.
    pub fn take(&mut self, byte: u8, terminal: &mut Terminal, echo: impl FnMut(&[u8])) {
        self.read += 1;
        if self.raw || matches!(self.readers.iter().flatten().next(), Some(Reader::Char(_))) {
            let _ = self.typed.put(byte);
            return;
        }
        if terminal.put(byte, echo) == Event::Line {
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

    /// `reader` waits for edited input; whether its thread did not before.
    pub fn ask(&mut self, reader: Reader) -> bool {
        self.raw = false;
        let thread = reader.thread();
        let fresh = !self.waits(thread);
        // A client that asks again has given up its earlier request.
        for place in &mut self.readers {
            place.take_if(|reader| reader.thread() == thread);
        }
        // First come, first served: the earliest is in front. With more than
        // READERS clients the latest loses its place and asks again.
        self.close_up();
        let waiting = self.readers.iter().flatten().count().min(READERS - 1);
        self.readers[waiting] = Some(reader);
        fresh
    }

    /// Moves those who wait to the front, in their order.
    fn close_up(&mut self) {
        let mut kept = [const { None }; READERS];
        let waiting = self.readers.iter_mut().filter_map(Option::take);
        kept.iter_mut().zip(waiting).for_each(|(place, reader)| *place = Some(reader));
        self.readers = kept;
    }

    /// `reader` waits for what is typed, unedited. What was typed before anybody asked in any way has gone
    /// to the editor: the reader gets it as well.
    pub fn ask_raw(&mut self, reader: ReadRawReply, terminal: &mut Terminal) {
        if !self.raw {
            terminal.give_up(|byte| _ = self.typed.put(byte));
        }
        self.raw = true;
        self.raw_reader = Some(reader);
    }

    /// Gives all unedited input to the client that asked for it.
    fn serve_raw_reader(&mut self) {
        if self.typed.is_empty() {
            return;
        }
        let Some(reader) = self.raw_reader.take() else { return };
        let mut text = [0; op::WORD_BYTES];
        let mut len = 0;
        while let Some(byte) = text[len..].first_mut().and_then(|_| self.typed.take()) {
            text[len] = byte;
            len += 1;
        }
        if !is_taken(reader.answer(Ok(&text[..len]), &mut [])) {
            // The client is gone or asks again: the input is for the next.
            self.typed.put_back(&text[..len]);
        }
    }

    /// Answers waiting clients as long as there is input for them.
    pub fn serve(&mut self) {
        if self.raw {
            return self.serve_raw_reader();
        }
        for place in &mut self.readers {
            let Some(reader) = place.take() else { continue };
            let mut text = [0; op::LINE_BYTES];
            match reader {
                Reader::Line(reply) => {
                    let Some(len) = self.typed.take_line(&mut text) else {
                        *place = Some(Reader::Line(reply));
                        return;
                    };
                    if !is_taken(reply.answer(Ok(&text[..len]), &mut [])) {
                        // The client is gone or asks again: the line is for the next.
                        self.typed.put_back(b"\n");
                        self.typed.put_back(&text[..len]);
                    }
                }
                Reader::Char(reply) => {
                    let Some(byte) = self.typed.take() else {
                        *place = Some(Reader::Char(reply));
                        return;
                    };
                    let _ = is_taken(reply.answer(Ok(byte), &mut []));
                }
            }
        }
    }
}

/// Sends an answer; whether its client took it.
fn is_taken((to, answer): (ThreadId, Answer<Msg>)) -> bool {
    answer.message().is_some_and(|(answer, _)| ipc::reply(to, &answer).is_ok())
}
