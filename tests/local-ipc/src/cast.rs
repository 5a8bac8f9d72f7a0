//! The threads that play the partners.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::{beside, critical, machine, transfer};
use abi::{ThreadId, Time, Timeouts, utcb};
use root_harness::Places;
pub use root_harness::local;
use runtime::{Msg, ipc, kernel, schedule};

/// Threads there can be.
const PLACES: usize = 5;
/// The client's priority is the default, 100.
const ABOVE: u8 = 120;
/// That of threads that nobody should wait for.
const BELOW: u8 = 90;

static STAGE: Places<PLACES> = Places::new();
static PARTS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// What a thread does.
#[derive(Clone, Copy)]
pub enum Part {
    /// Answers with the sum of two words and the sender's name.
    Add,
    /// Answers with the message.
    Echo,
    /// Hands each request to the thread at that place and its answer back.
    Forward(usize),
    /// Wakes up every few microseconds, with a higher priority.
    Wake,
    /// As `Add`, by instructions of the vector unit.
    VectorAdd,
    /// Answers by kernel IPC, which keeps the vector registers, with what it holds in one.
    VectorKeep,
    /// As `Wake`, and notes when.
    Stamp,
    /// As `Add`, and before it answers the page of the main thread's stack is gone.
    Flush,
    /// As `Wake`, and leaves something in each vector register.
    VectorWake,
    /// As `Add`, and opens the way for messages in user mode where the kernel has closed it.
    Force,
    /// Calls the thread at place 0 in single steps, as often as the main thread has patience.
    Step,
    /// Enters the section at place 0 in single steps.
    StepSection,
    /// Writes [`LIE`] to the current word and asks the kernel something.
    Forge,
    /// Jumps to [`LIE`] as if to call the thread at place 0.
    Jump,
    /// Calls the thread at place 0 by kernel IPC for ever.
    Call,
    /// As `Add`, by kernel IPC only.
    Plain,
    /// Looks after the value of a critical section.
    Section,
    /// Enters the section at place 0 every few microseconds, with a higher priority.
    Enter,
    /// As `Add`, to the main thread by its global id.
    Global,
    /// As `Add` three times; then it wants to send to the main thread.
    Poll,
    /// Takes one message and says nothing.
    Silent,
    /// Deletes the thread at place 1 after a while.
    Kill,
    /// Cancels the main thread's IPC every few microseconds, with a higher priority.
    Cancel,
    /// As `Add`, with control words of its own and an exception of the x87 unit under way.
    Control,
    /// Takes part, and then says in a call of the thread at place 0 that it is its client.
    Pretend,
    /// Calls the thread at place 1 in user mode for ever.
    CallNext,
    /// As `Add` three times; then it takes a string.
    Take,
    /// As `Add` three times; then it gives the thread at place 1 a string.
    Give,
}

impl Part {
    fn code(self) -> u64 {
        match self {
            Part::Add => 0,
            Part::Echo => 1,
            Part::Wake => 2,
            Part::VectorAdd => 3,
            Part::VectorKeep => 4,
            Part::VectorWake => 5,
            Part::Force => 6,
            Part::Step => 7,
            Part::Forge => 8,
            Part::Jump => 9,
            Part::Call => 10,
            Part::Section => 11,
            Part::Enter => 12,
            Part::Cancel => 13,
            Part::Plain => 14,
            Part::StepSection => 15,
            Part::Global => 16,
            Part::Silent => 17,
            Part::Kill => 18,
            Part::Stamp => 19,
            Part::Flush => 20,
            Part::Poll => 21,
            Part::Control => 22,
            Part::Pretend => 23,
            Part::CallNext => 24,
            Part::Take => 25,
            Part::Give => 26,
            Part::Forward(to) => 32 + to as u64,
        }
    }
}

/// What `Forge` and `Jump` are told.
pub static LIE: AtomicU64 = AtomicU64::new(0);
/// Calls of `Step` and `Call` that were answered as they should be, and others.
pub static RIGHT: AtomicU64 = AtomicU64::new(0);
/// See [`RIGHT`].
pub static WRONG: AtomicU64 = AtomicU64::new(0);

/// An address on the stack of `Flush`.
pub static FLUSHED: AtomicU64 = AtomicU64::new(0);
/// When `Stamp` has woken up last.
pub static STAMP: AtomicU64 = AtomicU64::new(0);

/// A thread of the root task's.
pub struct Actor {
    /// Its global id.
    pub id: ThreadId,
    /// Its local id.
    pub local: ThreadId,
}

impl Actor {
    /// Starts a thread at `place` and lets it run until it waits.
    pub fn start(place: usize, part: Part) -> Self {
        let id = STAGE.next_id(place);
        PARTS[place].store(part.code(), Ordering::Relaxed);
        assert!(STAGE.make(id, place).is_ok(), "the kernel makes no thread");
        let hostile = matches!(
            part,
            Part::Step | Part::StepSection | Part::Forge | Part::Jump | Part::Call | Part::CallNext
        );
        let _ = schedule::set_priority(id, if hostile { BELOW } else { ABOVE });
        STAGE.start(id, place, run);
        if hostile {
            return Self { id, local: local(place) };
        }
        // It runs first, until it waits.
        runtime::syscall::thread_switch(id.0);
        if !matches!(part, Part::Wake | Part::Stamp | Part::VectorWake | Part::Enter | Part::Cancel)
        {
            let _ = schedule::set_priority(id, 100);
        }
        Self { id, local: local(place) }
    }

    /// Deletes the thread.
    pub fn stop(&self) {
        let _ = kernel::delete(self.id);
    }
}

extern "C" fn run() -> ! {
    match PARTS[root_harness::own_place()].load(Ordering::Relaxed) {
        0 => add(),
        1 => echo(),
        2 => wake(|| ()),
        3 => serve(|client, request| {
            let sum = machine::vector_sum(request.get(0), request.get(1));
            Msg::default().words(&[sum, client.0])
        }),
        4 => keep(),
        5 => wake(|| machine::fill_vectors(0x5A5A)),
        6 => force(),
        7 => step(),
        8 => forge(),
        9 => machine::jump(LIE.load(Ordering::Relaxed), local(0).0),
        10 => call(),
        11 => critical::serve(),
        12 => critical::enter_again_and_again(&RIGHT),
        13 => wake(|| {
            runtime::thread::cancel_ipc(ThreadId::ROOT);
        }),
        14 => plain(),
        15 => step_section(),
        16 => global(),
        17 => {
            let _ = first();
            runtime::thread::park()
        }
        18 => kill(),
        19 => wake(|| STAMP.store(critical::clock(), Ordering::Relaxed)),
        20 => flush(),
        21 => poll(),
        22 => beside::keep_controls(),
        23 => beside::pretend(),
        24 => beside::call_next(),
        25 => transfer::take(),
        26 => transfer::give(),
        to => forward(local(to as usize - 32)),
    }
}

/// The first request of a server.
pub fn first() -> (ThreadId, Msg) {
    loop {
        if let Ok(request) = ipc::wait(Time::NEVER) {
            return request;
        }
    }
}

fn serve(mut answer: impl FnMut(ThreadId, &Msg) -> Msg) -> ! {
    let (mut client, mut request) = first();
    loop {
        let reply = answer(client, &request);
        (client, request) = ipc::local_reply_wait(client, &reply).unwrap_or_else(|_| first());
    }
}

fn add() -> ! {
    serve(|client, request| {
        Msg::default().words(&[request.get(0).wrapping_add(request.get(1)), client.0])
    })
}

fn plain() -> ! {
    let (mut client, mut request) = first();
    loop {
        let sum = request.get(0).wrapping_add(request.get(1));
        let reply = Msg::default().words(&[sum, client.0]);
        (client, request) = ipc::lipc(client, ThreadId::ANY, Timeouts::REPLY_WAIT, &reply)
            .unwrap_or_else(|_| first());
    }
}

fn global() -> ! {
    let (_, mut request) = first();
    loop {
        let sum = request.get(0).wrapping_add(request.get(1));
        let reply = Msg::default().words(&[sum]);
        (_, request) = ipc::reply_wait(ThreadId::ROOT, &reply).unwrap_or_else(|_| first());
    }
}

/// Answers three times, in user mode where that is possible, and takes one message more.
pub fn take_part() {
    let (mut client, mut request) = first();
    for _ in 0..3 {
        let reply = Msg::default().words(&[request.get(0).wrapping_mul(4), client.0]);
        (client, request) = match ipc::local_reply_wait(client, &reply) {
            Ok(next) => next,
            Err(_) => first(),
        };
    }
}

fn poll() -> ! {
    take_part();
    let _ = ipc::send(ThreadId::ROOT, &Msg::default());
    runtime::thread::park()
}

fn kill() -> ! {
    ipc::sleep(500);
    let _ = runtime::thread::other_id(local(1)).map(kernel::delete);
    runtime::thread::park()
}

/// Its pager is the main thread's.
fn flush() -> ! {
    machine::write_utcb(runtime::utcb::pointer(), utcb::PAGER, ThreadId::SIGMA0.0);
    FLUSHED.store(machine::stack(), Ordering::Relaxed);
    serve(|client, request| {
        machine::flush(LIE.load(Ordering::Relaxed));
        Msg::default().words(&[request.get(0).wrapping_add(request.get(1)), client.0])
    })
}

fn echo() -> ! {
    serve(|_, request| {
        let mut answer = Msg::default();
        for word in 0..request.tag.untyped() {
            answer = answer.word(request.get(word));
        }
        answer
    })
}

fn forward(to: ThreadId) -> ! {
    serve(|_, request| {
        let words = [request.get(0), request.get(1)];
        ipc::local_call(to, &Msg::default().words(&words)).unwrap_or_default()
    })
}

/// Every answer is by the kernel's IPC, which keeps the vector registers.
fn keep() -> ! {
    const KEPT: u64 = 0x5EED_0000_5EED;
    machine::hold(KEPT);
    let (mut client, mut request) = first();
    loop {
        let sum = request.get(0).wrapping_add(request.get(1)).wrapping_add(machine::held() - KEPT);
        let reply = Msg::default().words(&[sum, client.0]);
        let answered = ipc::lipc(client, ThreadId::ANY, Timeouts::REPLY_WAIT, &reply);
        (client, request) = answered.unwrap_or_else(|_| first());
    }
}

fn force() -> ! {
    serve(|client, request| {
        let own = runtime::utcb::pointer();
        // An unarmed thread that did so would go on with the partner's code as itself.
        if machine::read_utcb(own, utcb::LIPC_STATE) == utcb::LIPC_CLOSED {
            machine::write_utcb(own, utcb::LIPC_STATE, utcb::lipc_open(0));
        }
        Msg::default().words(&[request.get(0).wrapping_add(request.get(1)), client.0])
    })
}

/// One more call has been answered with `answer`, as it should be or not.
pub fn count(round: u64, answer: runtime::ipc::Result<Msg>) {
    let right = answer.is_ok_and(|msg| msg.get(0) == round + 3);
    (if right { &RIGHT } else { &WRONG }).fetch_add(1, Ordering::Relaxed);
}

fn step() -> ! {
    runtime::utcb::set_exception_handler(ThreadId::ROOT);
    machine::step();
    for round in 0.. {
        count(round, ipc::local_call(local(0), &Msg::default().words(&[round, 3])));
    }
    unreachable!()
}

fn step_section() -> ! {
    runtime::utcb::set_exception_handler(ThreadId::ROOT);
    let section = critical::at(0);
    machine::step();
    loop {
        let alone = critical::add(&section);
        (if alone { &RIGHT } else { &WRONG }).fetch_add(1, Ordering::Relaxed);
    }
}

fn call() -> ! {
    let server = runtime::thread::other_id(local(0)).unwrap_or(ThreadId::NIL);
    for round in 0.. {
        count(round, ipc::call(server, &Msg::default().words(&[round, 3])));
    }
    unreachable!()
}

fn forge() -> ! {
    for round in 0..3 {
        // The first call arms this thread: then the kernel looks at the word.
        let _ = ipc::local_call(local(0), &Msg::default().words(&[round, 3]));
    }
    machine::write_current_word(LIE.load(Ordering::Relaxed));
    let _ = kernel::inspect(abi::inspect::What::Kernel, 0, 0);
    RIGHT.fetch_add(1, Ordering::Relaxed);
    runtime::thread::park()
}

/// Microseconds to the next wake-up: the numbers have no factor in common.
fn wake(mut meanwhile: impl FnMut()) -> ! {
    let mut turn = 0_usize;
    loop {
        turn += 1;
        meanwhile();
        let _ = ipc::receive(runtime::thread::me(), Time::micros([3, 7, 11, 13][turn % 4]));
    }
}
