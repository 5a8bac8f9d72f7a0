//! The console driver: a 16550 at 0x3F8, fed by interrupt messages.
//!
//! One thread. It never polls and never waits for a client: text goes into a queue of the
//! task it comes from, the queues go in turns (`line::Fair`) to the terminal, which keeps a
//! prompt below what others print, and from there out with the transmitter's interrupts,
//! and a client whose queue is long gets its answer when it is short again. Characters that
//! arrive go through a line editor to the task that was given the console. Who a client is,
//! and what its description allows, the root task says (`clients`). The driver keeps nothing
//! that matters: killed and started again, it registers anew and clients find it by name
//! (`runtime::console`).
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod clients;
mod input;
mod output;
mod uart;

use abi::{ThreadId, protocol};
use clients::{Client, Clients};
use input::Input;
use interfaces::names::Rights;
use line::Terminal;
use output::Output;
use proto::{Refusal, console as op};
use runtime::accept::{self, TransferLimit};
use runtime::sync::Lock;
use runtime::{Msg, entry, ipc, root};
use uart::Uart;

entry!(main);

/// Interrupt line of the first serial port.
const IRQ: u32 = 4;
/// First of its eight ports.
const PORT: u16 = 0x3F8;
/// How long the pages of a client's string may take to come.
const PATIENCE: TransferLimit = TransferLimit::micros(2_000);

/// The queues, which are too large for a stack.
static OUTPUT: Lock<Output> = Lock::new(Output::new());

struct Console<'a> {
    uart: Uart,
    out: &'a mut Output,
    terminal: Terminal,
    input: Input,
    /// Who has begun to wait for a line, and its task: the terminal is to show the prompt.
    asks: Option<(ThreadId, usize)>,
    clients: Clients,
    interrupts: u64,
    /// The root task waits until all is sent.
    draining: bool,
}

type Reply = Option<(ThreadId, Msg)>;

fn main() {
    let ports = root::ports(PORT, 8).unwrap_or_else(|why| {
        panic!("the serial driver asked for ports {PORT:#x} to {:#x} in vain: {why}", PORT + 7)
    });
    let irq = root::attach_irq(IRQ)
        .unwrap_or_else(|why| panic!("the serial driver asked for interrupt {IRQ} in vain: {why}"));
    let mut out = OUTPUT.lock();
    let mut console = Console {
        uart: Uart::new(ports),
        out: &mut out,
        terminal: Terminal::new(),
        input: Input::new(),
        asks: None,
        clients: Clients::new(),
        interrupts: 0,
        draining: false,
    };
    if let Err(why) = root::register(op::NAME) {
        panic!("the serial driver cannot register as `{}`: {why}", op::NAME);
    }
    let mut text = [0; op::STRING_BYTES];
    let mut reply = None;
    loop {
        let (from, msg) = accept::string(&mut text, PATIENCE, || ipc::next_request(reply));
        reply = if from == irq {
            console.interrupt(from, &msg)
        } else if from == ThreadId::ROOT {
            console.of_root(&msg)
        } else {
            console.request(from, &msg, &text)
        };
    }
}

impl Console<'_> {
    /// Serves the device; the answer to the interrupt acknowledges it.
    fn interrupt(&mut self, from: ThreadId, msg: &Msg) -> Reply {
        if msg.tag.protocol_label() != protocol::INTERRUPT {
            return None;
        }
        self.interrupts += 1;
        while let Some(byte) = self.uart.receive() {
            self.input.take(byte, &mut self.terminal, self.out);
        }
        self.pump();
        self.input.serve();
        Some((from, Msg::default()))
    }

    /// Text from the root task, its own or on behalf of a task. It waits for no answer.
    fn of_root(&mut self, msg: &Msg) -> Reply {
        if msg.label() == op::WRITE_FOR {
            let mut buffer = [0; op::WORD_BYTES];
            let whose = msg.mr[1] as usize;
            let len = root::message_text_behind(msg, 2, &mut buffer);
            self.out.of_root(whose, &buffer[..len]);
        }
        self.draining |= msg.label() == op::DRAIN;
        self.pump();
        None
    }

    fn request(&mut self, from: ThreadId, msg: &Msg, text: &[u8]) -> Reply {
        let client = self.clients.find(from)?;
        let result = match msg.label() {
            _ if !client.rights.has(Rights::USES) => Err(Refusal::NotAllowed),
            op::WRITE | op::WRITE_RAW => {
                let mut buffer = [0; op::WORD_BYTES];
                let len = root::message_text(msg, &mut buffer);
                self.write(from, client, &buffer[..len], msg.label() == op::WRITE_RAW)
            }
            op::WRITE_STRING if msg.tag.untyped() == 0 => {
                let text = msg.string_in(text).ok_or(Refusal::BadArgument);
                text.and_then(|text| self.write(from, client, text, false))
            }
            op::READ_RAW | op::READ_LINE | op::READ_CHAR => self.read(from, client, msg.label()),
            op::WORDS if client.rights.has(Rights::CONSOLE) => {
                let mut words = [0; op::WORD_BYTES];
                let len = root::message_text(msg, &mut words);
                self.terminal.set_words(&words[..len]);
                self.input.words_of = from;
                Ok(Some(Msg::new(proto::OK)))
            }
            op::WORDS => Err(Refusal::NotAllowed),
            op::STATISTICS
                if client.rights.has(Rights::CONSOLE) || client.rights.has(Rights::CONTROL) =>
            {
                let figures = [self.out.written(), self.input.read(), self.interrupts];
                Ok(Some(Msg::new(proto::OK).words(&figures)))
            }
            op::STATISTICS => Err(Refusal::NotAllowed),
            _ => Err(Refusal::BadArgument),
        };
        let refused = |why: Refusal| Some(Msg::new(proto::REFUSED).word(why as u64));
        result.unwrap_or_else(refused).map(|answer| (from, answer))
    }

    /// Queues text. The answer comes now, or when the task's queue is short again.
    fn write(
        &mut self,
        from: ThreadId,
        client: Client,
        text: &[u8],
        raw: bool,
    ) -> Result<Option<Msg>, Refusal> {
        let owner = client.rights.has(Rights::CONSOLE);
        if raw && !owner {
            return Err(Refusal::NotAllowed);
        }
        let now = self.out.write(from, client.task, text, raw, owner)?;
        self.pump();
        Ok(now.then_some(Msg::new(proto::OK)))
    }

    fn read(&mut self, from: ThreadId, client: Client, label: u64) -> Result<Option<Msg>, Refusal> {
        if !client.rights.has(Rights::CONSOLE) {
            return Err(Refusal::NotAllowed);
        }
        let fresh = self.input.ask(from, label);
        self.input.serve();
        if fresh && label == op::READ_LINE && self.input.waits(from) {
            self.asks = Some((from, client.task));
        }
        self.pump();
        Ok(None)
    }

    /// Gives the transmitter what it takes now; the rest goes out by interrupts.
    fn pump(&mut self) {
        let out = &mut *self.out;
        out.feed(&mut self.terminal, self.input.is_raw());
        // The prompt is what the client has written before.
        if let Some((from, _)) = self.asks.take_if(|(_, task)| out.is_shown(*task)) {
            if self.input.words_of != from {
                self.terminal.set_words(b"");
            }
            self.terminal.ask(|echo| out.show(echo));
        }
        self.uart.fill(|| out.take());
        let drained = out.is_empty() && self.uart.is_idle();
        self.uart.wants_interrupt(!out.is_empty() || self.draining && !drained);
        out.answer();
        if self.draining && drained {
            let _ = ipc::reply(ThreadId::ROOT, &Msg::new(proto::root::DRAINED));
        }
    }
}
