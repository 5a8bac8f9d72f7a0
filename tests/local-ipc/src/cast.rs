//! The threads that play the partners.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::INITIAL_UTCB_AREA;
use abi::{ThreadId, Time, utcb};
use runtime::port::Ports;
use runtime::{Msg, ipc, kernel, schedule};

/// Threads there can be.
const PLACES: usize = 4;
const FIRST_NUMBER: u32 = abi::id::USER_BASE + 16;
const STACK_WORDS: usize = 1024;
/// The client's priority is the default, 100.
const ABOVE: u8 = 120;

static STACKS: [[AtomicU64; STACK_WORDS]; PLACES] =
    [const { [const { AtomicU64::new(0) }; STACK_WORDS] }; PLACES];
static PARTS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static VERSIONS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

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
}

/// A thread of the root task's.
pub struct Actor {
    /// Its global id.
    pub id: ThreadId,
    /// Its local id.
    pub local: ThreadId,
}

fn location(place: usize) -> u64 {
    INITIAL_UTCB_AREA + (place as u64 + 2) * utcb::SIZE
}

fn local(place: usize) -> ThreadId {
    ThreadId::local(location(place) + utcb::POINTER_OFFSET)
}

impl Actor {
    /// Starts a thread at `place` and lets it run until it waits.
    pub fn start(place: usize, part: Part) -> Self {
        let version = VERSIONS[place].fetch_add(1, Ordering::Relaxed) as u32 + 1;
        let id = ThreadId::global(FIRST_NUMBER + place as u32, version);
        let root = ThreadId::ROOT;
        let code = match part {
            Part::Add => 0,
            Part::Echo => 1,
            Part::Wake => 2,
            Part::Forward(to) => 16 + to as u64,
        };
        PARTS[place].store(code, Ordering::Relaxed);
        let made = kernel::create_active(id, root, root, root, location(place));
        assert!(made.is_ok(), "the kernel makes no thread");
        let _ = schedule::set_priority(id, ABOVE);
        let stack = &STACKS[place];
        let sp = stack.as_ptr() as u64 + size_of_val(stack) as u64 - 8;
        let entry: extern "C" fn() -> ! = run;
        let _ = ipc::send(id, &Msg::default().words(&[entry as usize as u64, sp]));
        // It runs first, until it waits.
        runtime::syscall::thread_switch(id.0);
        if !matches!(part, Part::Wake) {
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
    let place = ((runtime::utcb::pointer() - local(0).0) / utcb::SIZE) as usize;
    match PARTS[place].load(Ordering::Relaxed) {
        0 => add(),
        1 => echo(),
        2 => wake(),
        to => forward(local(to as usize - 16)),
    }
}

fn first() -> (ThreadId, Msg) {
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

/// Microseconds to the next wake-up: the numbers have no factor in common.
fn wake() -> ! {
    let mut turn = 0_usize;
    loop {
        turn += 1;
        let _ = ipc::receive(runtime::thread::me(), Time::micros([3, 7, 11, 13][turn % 4]));
    }
}

/// Touches every page of the image, so that no thread meets a page fault.
pub fn touch_image() {
    let (low, high) = runtime::layout::image();
    for page in (low..high).step_by(4096) {
        // SAFETY: a byte of this program's own image is read.
        let _ = unsafe { (page as *const u8).read_volatile() };
    }
}

/// Leaves the emulator.
pub fn exit(code: u8) -> ! {
    Ports::new(0xF4, 2).write8(0, code);
    runtime::thread::park()
}
