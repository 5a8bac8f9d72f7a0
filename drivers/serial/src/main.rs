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

mod asked;
mod clients;
mod input;
mod output;
mod uart;

use core::cell::RefCell;

use abi::{ThreadId, protocol};
use asked::Asked;
use clients::Clients;
use input::{Input, Reader};
use interfaces::console::{ReadLineReply, Serve};
use interfaces::voice::{self, Server};
use line::Terminal;
use output::Output;
use proto::console as op;
use runtime::accept::{self, TransferLimit};
use runtime::service::{Caller, Dispatch as _};
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

/// The console, told something by the root task.
struct Told<'c, 'a>(RefCell<&'c mut Console<'a>>);

impl Server for Told<'_, '_> {
    fn write_for(&self, _: Caller, task: Option<u32>, text: &[u8]) {
        self.0.borrow_mut().out.of_root(task.map(|task| task as usize), text);
    }

    fn drain(&self, _: Caller) {
        self.0.borrow_mut().draining = true;
    }
}

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
        let told = Told(RefCell::new(self));
        let _ = voice::Serve(&told).dispatch::<Msg>(ThreadId::ROOT, msg, &[], &mut [], &mut []);
        self.pump();
        None
    }

    fn request(&mut self, from: ThreadId, msg: &Msg, text: &[u8]) -> Reply {
        let client = self.clients.find(from)?;
        let asked = Asked::new(self, client);
        let answer = Serve(&asked).dispatch(from, msg, text, &mut [], &mut []);
        let now = asked.answer();
        let answer = answer.message().map(|(answer, _)| (from, answer));
        self.pump();
        answer.or(now)
    }

    /// The thread `from` of `task` waits for a line.
    fn read_line(&mut self, from: ThreadId, task: usize, later: ReadLineReply) {
        let fresh = self.input.ask(Reader::Line(later));
        self.input.serve();
        if fresh && self.input.waits(from) {
            self.asks = Some((from, task));
        }
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
            let _ = root::drained();
        }
    }
}
