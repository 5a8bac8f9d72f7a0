//! The console driver: a 16550 at 0x3F8, fed by interrupt messages.
//!
//! One thread. Text goes into a ring that the transmitter's interrupts empty;
//! characters that arrive go through a line editor to the client that asked
//! first. It keeps nothing that matters: killed and started again, it registers
//! anew and clients find it by name (`runtime::console`).
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod ring;
mod uart;

use abi::{ThreadId, protocol};
use line::{Event, Terminal};
use proto::console as op;
use ring::Ring;
use runtime::{Msg, accept, entry, ipc, root};
use uart::Uart;

entry!(main);

/// Interrupt line of the first serial port.
const IRQ: u32 = 4;
/// First of its eight ports.
const PORT: u16 = 0x3F8;
/// Clients that wait for input.
const READERS: usize = 8;

struct Console {
    uart: Uart,
    out: Ring<4096>,
    /// Complete lines and single characters that nobody has asked for yet.
    typed: Ring<512>,
    terminal: Terminal,
    /// Who said which words can be completed.
    words_of: ThreadId,
    /// Who waits for input: thread, and whether for a whole line.
    readers: [Option<(ThreadId, bool)>; READERS],
    /// Input goes unedited to whoever asked for it that way first.
    raw: bool,
    raw_reader: Option<ThreadId>,
    written: u64,
    read: u64,
    interrupts: u64,
}

type Reply = Option<(ThreadId, Msg)>;

fn main() {
    let ports = root::ports(PORT, 8).unwrap_or_else(|why| {
        panic!("the serial driver asked for ports {PORT:#x} to {:#x} in vain: {why}", PORT + 7)
    });
    let irq = root::attach_irq(IRQ)
        .unwrap_or_else(|why| panic!("the serial driver asked for interrupt {IRQ} in vain: {why}"));
    let mut console = Console {
        uart: Uart::new(ports),
        out: Ring::new(),
        typed: Ring::new(),
        terminal: Terminal::new(),
        words_of: ThreadId::NIL,
        readers: [None; READERS],
        raw: false,
        raw_reader: None,
        written: 0,
        read: 0,
        interrupts: 0,
    };
    if let Err(why) = root::register(op::NAME) {
        panic!("the serial driver cannot register as `{}`: {why}", op::NAME);
    }
    let mut text = [0; op::STRING_BYTES];
    let mut reply = None;
    loop {
        let guard = accept::string(&mut text);
        let (from, msg) = ipc::next_request(reply);
        drop(guard);
        reply = if from == irq {
            console.interrupt(from, &msg)
        } else {
            console.request(from, &msg, &text)
        };
    }
}

impl Console {
    /// Serves the device; the answer to the interrupt acknowledges it.
    fn interrupt(&mut self, from: ThreadId, msg: &Msg) -> Reply {
        if msg.tag.protocol_label() != protocol::INTERRUPT {
            return None;
        }
        self.interrupts += 1;
        while let Some(byte) = self.uart.receive() {
            self.take(byte);
        }
        self.pump();
        self.serve_readers();
        Some((from, Msg::default()))
    }

    fn request(&mut self, from: ThreadId, msg: &Msg, text: &[u8]) -> Reply {
        let done = Some((from, Msg::new(proto::OK)));
        match msg.label() {
            op::WRITE => {
                let mut buffer = [0; op::WORD_BYTES];
                let len = root::message_text(msg, &mut buffer);
                self.write(&buffer[..len]);
                done
            }
            op::WRITE_RAW => {
                let mut buffer = [0; op::WORD_BYTES];
                let len = root::message_text(msg, &mut buffer);
                self.written += len as u64;
                buffer[..len].iter().for_each(|byte| put(&self.uart, &mut self.out, *byte));
                self.pump();
                done
            }
            op::READ_RAW => {
                self.raw = true;
                self.raw_reader = Some(from);
                self.serve_raw_reader();
                None
            }
            op::WRITE_STRING if msg.tag.typed() == 2 && msg.tag.untyped() == 0 => {
                let len = (abi::StringItem(msg.mr[0]).len() as usize).min(text.len());
                self.write(&text[..len]);
                done
            }
            op::READ_LINE | op::READ_CHAR => {
                let line = msg.label() == op::READ_LINE;
                let fresh = self.add_reader(from, line);
                self.serve_readers();
                if fresh && line && self.waits(from) {
                    self.ask(from);
                }
                None
            }
            op::WORDS => {
                let mut words = [0; op::WORD_BYTES];
                let len = root::message_text(msg, &mut words);
                self.terminal.set_words(&words[..len]);
                self.words_of = from;
                done
            }
            op::STATISTICS => {
                Some((from, Msg::new(proto::OK).words(&[self.written, self.read, self.interrupts])))
            }
            _ => Some((from, Msg::new(proto::REFUSED).word(proto::Refusal::BadArgument as u64))),
        }
    }

    /// One character from the line.
    fn take(&mut self, byte: u8) {
        self.read += 1;
        if self.raw {
            let _ = self.typed.put(byte);
            return;
        }
        if matches!(self.readers.iter().flatten().next(), Some((_, false))) {
            let _ = self.typed.put(byte);
            return;
        }
        let out = &mut self.out;
        let event = self.terminal.put(byte, |echo| {
            echo.iter().for_each(|byte| {
                let _ = out.put(*byte);
            })
        });
        if event == Event::Line {
            // A line that finds no room is lost as a whole.
            if self.typed.room() > self.terminal.line().len() {
                self.terminal.line().iter().for_each(|byte| {
                    let _ = self.typed.put(*byte);
                });
                let _ = self.typed.put(b'\n');
            }
            self.terminal.clear();
        }
    }

    /// Whether `thread` waits for input.
    fn waits(&self, thread: ThreadId) -> bool {
        self.readers.iter().flatten().any(|(reader, _)| *reader == thread)
    }

    /// `from` begins to wait for a line: its prompt is in the row, its words count.
    fn ask(&mut self, from: ThreadId) {
        if self.words_of != from {
            self.terminal.set_words(b"");
        }
        let (uart, out) = (&self.uart, &mut self.out);
        self.terminal.ask(|echo| echo.iter().for_each(|byte| put(uart, out, *byte)));
        self.pump();
    }

    /// Puts a client into the queue; whether it was not in it already.
    fn add_reader(&mut self, from: ThreadId, line: bool) -> bool {
        let fresh = !self.waits(from);
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
        fresh
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
            self.typed.put_back(len, &text);
        }
    }

    /// Answers waiting clients as long as there is input for them.
    fn serve_readers(&mut self) {
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
                self.typed.put_back(root::message_text(&reply, &mut text), &text);
            }
        }
    }

    fn write(&mut self, text: &[u8]) {
        self.written += text.len() as u64;
        let (uart, out) = (&self.uart, &mut self.out);
        let mut show = |echo: &[u8]| echo.iter().for_each(|byte| put(uart, out, *byte));
        if self.raw {
            text.split_inclusive(|byte| *byte == b'\n').for_each(|line| match line.split_last() {
                Some((b'\n', line)) => [line, b"\r\n"].into_iter().for_each(&mut show),
                _ => show(line),
            });
        } else {
            self.terminal.print(text, show);
        }
        self.pump();
    }

    /// Gives the transmitter what it takes now; the rest goes out by interrupts.
    fn pump(&mut self) {
        self.uart.fill(|| self.out.take());
        self.uart.wants_interrupt(!self.out.is_empty());
    }
}

/// One character into the ring; when it is full, the oldest go out by polling.
fn put(uart: &Uart, out: &mut Ring<4096>, byte: u8) {
    while !out.put(byte) {
        if let Some(oldest) = out.take() {
            uart.send_polling(oldest);
        }
    }
}
