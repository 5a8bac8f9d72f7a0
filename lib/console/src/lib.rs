//! What a driver of the console is besides its device: the serial port's and the screen's are made of it.
//!
//! One thread. It never polls and never waits for a client: text goes into a queue of the
//! task it comes from, the queues go in turns (`line::Fair`) to the terminal, which keeps a
//! prompt below what others print, and from there to the device as it takes it,
//! and a client whose queue is long gets its answer when it is short again. Characters that
//! arrive go through a line editor to the task whose console is in front (`seats`). Who a client is,
//! and what its description allows, the root task says (`clients`). The driver keeps nothing
//! that matters: killed and started again, it registers anew and clients find it by name
//! (`runtime::console`).
#![no_std]
#![forbid(unsafe_code)]

mod asked;
mod clients;
mod input;
mod output;
mod seats;

use core::cell::RefCell;

use abi::{ThreadId, protocol};
use asked::Asked;
use clients::Clients;
use input::Reader;
use interfaces::console::{ReadLineReply, Serve};
use interfaces::voice::{self, Server};
use output::Output;
use proto::console as op;
use runtime::accept::{self, TransferLimit};
use runtime::service::{Caller, Dispatch as _};
use runtime::sync::Lock;
use runtime::{Msg, ipc, root};
use seats::Seats;

/// How long the pages of a client's string may take to come.
const PATIENCE: TransferLimit = TransferLimit::micros(2_000);

/// What shows bytes, and has characters that were typed.
pub trait Device {
    /// The next character that has come.
    fn receive(&mut self) -> Option<u8>;
    /// Shows bytes of `next`, if it takes any now; whether it would take more at once.
    fn fill(&mut self, next: impl FnMut() -> Option<u8>) -> bool;
    /// Whether all that it took is shown.
    fn is_idle(&self) -> bool;
    /// Whether it is to interrupt when it takes more.
    fn wants_interrupt(&mut self, wants: bool);
}

/// The queues and the consoles, which are too large for a stack.
static OUTPUT: Lock<Output> = Lock::new(Output::new());
static CONSOLES: Lock<Seats> = Lock::new(Seats::new());

struct Console<'a, D> {
    device: D,
    out: &'a mut Output,
    seats: &'a mut Seats,
    clients: Clients,
    interrupts: u64,
    /// The root task waits until all is sent.
    draining: bool,
}

type Reply = Option<(ThreadId, Msg)>;

/// The console, told something by the root task.
struct Told<'c, 'a, D>(RefCell<&'c mut Console<'a, D>>);

impl<D> Server for Told<'_, '_, D> {
    fn write_for(&self, _: Caller, task: Option<u32>, text: &[u8]) {
        self.0.borrow_mut().out.of_root(task.map(|task| task as usize), text);
    }

    fn drain(&self, _: Caller) {
        self.0.borrow_mut().draining = true;
    }
}

/// Serves the console at `device`, which interrupts on `irqs`, for ever.
pub fn serve(device: impl Device, irqs: &[ThreadId]) -> ! {
    let (mut out, mut seats) = (OUTPUT.lock(), CONSOLES.lock());
    let mut names = [0; op::WORD_BYTES];
    seats.of(root::arguments(&mut names));
    let mut console = Console {
        device,
        out: &mut out,
        seats: &mut seats,
        clients: Clients::new(),
        interrupts: 0,
        draining: false,
    };
    if let Err(why) = root::register(op::NAME) {
        panic!("the console's driver cannot register as `{}`: {why}", op::NAME);
    }
    let mut text = [0; op::STRING_BYTES];
    let mut reply = None;
    loop {
        let (from, msg) = accept::string(&mut text, PATIENCE, || ipc::next_request(reply));
        reply = if irqs.contains(&from) {
            console.interrupt(from, &msg)
        } else if from == ThreadId::ROOT {
            console.of_root(&msg)
        } else {
            console.request(from, &msg, &text)
        };
    }
}

impl<D: Device> Console<'_, D> {
    /// Serves the device; the answer to the interrupt acknowledges it.
    fn interrupt(&mut self, from: ThreadId, msg: &Msg) -> Reply {
        if msg.tag.protocol_label() != protocol::INTERRUPT {
            return None;
        }
        self.interrupts += 1;
        while let Some(byte) = self.device.receive() {
            self.out.edit(self.seats, byte);
        }
        self.pump();
        self.seats.serve();
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
        let seat = self.seats.of_task(task);
        let fresh = seat.input.ask(Reader::Line(later));
        seat.input.serve();
        if fresh && seat.input.waits(from) {
            seat.asks = Some((from, task));
        }
    }

    /// Gives the device what it takes now; the rest goes out by interrupts.
    fn pump(&mut self) {
        loop {
            self.out.feed(self.seats);
            // The prompt is what the client has written before.
            self.out.ask(self.seats);
            let out = &mut *self.out;
            if !self.device.fill(|| out.take()) || self.is_settled() {
                break;
            }
        }
        let settled = self.is_settled();
        let drained = settled && self.device.is_idle();
        self.device.wants_interrupt(!settled || self.draining && !drained);
        self.out.answer();
        if self.draining && drained {
            let _ = root::drained();
        }
    }

    /// Whether the device has been given all that there is.
    fn is_settled(&self) -> bool {
        self.out.is_empty() && self.seats.is_settled()
    }
}
