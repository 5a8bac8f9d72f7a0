//! The threads that run elsewhere.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::INITIAL_UTCB_AREA;
use abi::{ThreadId, Time, Timeouts, utcb};
use runtime::port::Ports;
use runtime::{Msg, ipc, kernel, schedule};

use crate::machine;

/// Threads there can be.
pub const PLACES: usize = 4;
const FIRST_NUMBER: u32 = abi::id::USER_BASE + 16;
const STACK_WORDS: usize = 1024;

static STACKS: [[AtomicU64; STACK_WORDS]; PLACES] =
    [const { [const { AtomicU64::new(0) }; STACK_WORDS] }; PLACES];
static PARTS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static VERSIONS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// What each has counted.
pub static COUNTS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// Where `Read` reads.
pub static ADDRESS: AtomicU64 = AtomicU64::new(0);
/// What was found wrong.
pub static WRONG: AtomicU64 = AtomicU64::new(0);

/// What a thread does.
#[derive(Clone, Copy)]
pub enum Part {
    /// Counts.
    Count,
    /// Answers with the message's first word and its own count.
    Serve,
    /// Calls the root thread for ever.
    Call,
    /// Reads a byte for ever, and counts.
    Read,
    /// Moves from processor to processor, and counts.
    Wander,
    /// Keeps a word of its own in a vector register, and counts.
    Hold,
}

/// A thread of the root task's.
pub struct Actor {
    /// Its global id.
    pub id: ThreadId,
    place: usize,
}

fn location(place: usize) -> u64 {
    INITIAL_UTCB_AREA + (place as u64 + 2) * utcb::SIZE
}

impl Actor {
    /// Starts a thread at `place`, on processor `number`.
    pub fn start(place: usize, part: Part, number: u32) -> Self {
        let before = VERSIONS[place].fetch_add(1, Ordering::Relaxed) as u32;
        // The last six bits of a global id are not all 0.
        let id = ThreadId::global(FIRST_NUMBER + place as u32, before + before / 63 + 1);
        let root = ThreadId::ROOT;
        PARTS[place].store(part as u64, Ordering::Relaxed);
        COUNTS[place].store(0, Ordering::Relaxed);
        let made = kernel::create_active(id, root, root, root, location(place));
        assert!(made.is_ok(), "the kernel makes no thread");
        assert!(schedule::set_processor(id, number).is_ok(), "the kernel sends no thread there");
        let stack = &STACKS[place];
        let sp = stack.as_ptr() as u64 + size_of_val(stack) as u64 - 8;
        let entry: extern "C" fn() -> ! = run;
        let _ = ipc::send(id, &Msg::default().words(&[entry as usize as u64, sp]));
        Self { id, place }
    }

    /// Its local id.
    pub fn local(&self) -> ThreadId {
        ThreadId::local(location(self.place) + utcb::POINTER_OFFSET)
    }

    /// What it has counted.
    pub fn count(&self) -> u64 {
        COUNTS[self.place].load(Ordering::Relaxed)
    }

    /// Whether it counts on, while this thread waits for a message without leaving the
    /// processor to anybody, or gives up.
    pub fn counts_on(&self) -> bool {
        let before = self.count();
        (0..200_000_000).any(|_| {
            core::hint::spin_loop();
            self.count() > before + 2
        })
    }

    /// Deletes the thread.
    pub fn stop(&self) {
        let _ = kernel::delete(self.id);
    }
}

extern "C" fn run() -> ! {
    let place = ((runtime::utcb::pointer() - location(0)) / utcb::SIZE) as usize;
    let count = &COUNTS[place];
    match PARTS[place].load(Ordering::Relaxed) {
        0 => loop {
            count.fetch_add(1, Ordering::Relaxed);
            core::hint::spin_loop();
        },
        1 => serve(count),
        2 => loop {
            let msg = Msg::default().words(&[count.fetch_add(1, Ordering::Relaxed)]);
            let _ = ipc::call(ThreadId::ROOT, &msg);
        },
        3 => loop {
            let _ = machine::read(ADDRESS.load(Ordering::Relaxed));
            count.fetch_add(1, Ordering::Relaxed);
            core::hint::spin_loop();
        },
        4 => loop {
            let round = count.fetch_add(1, Ordering::Relaxed);
            let _ = schedule::set_processor(runtime::thread::me(), (round % 2) as u32);
        },
        _ => loop {
            let word = 0x5EED_0000 + place as u64;
            if machine::hold(word, count, 50) != word {
                WRONG.fetch_add(1, Ordering::Relaxed);
            }
        },
    }
}

fn serve(count: &AtomicU64) -> ! {
    let mut request = ipc::wait(Time::NEVER);
    loop {
        request = match request {
            Ok((client, msg)) => {
                let done = count.fetch_add(1, Ordering::Relaxed);
                let answer = Msg::default().words(&[msg.get(0), done]);
                ipc::lipc(client, ThreadId::ANY, Timeouts::REPLY_WAIT, &answer)
            }
            Err(_) => ipc::wait(Time::NEVER),
        };
    }
}

/// Touches every page of the image, so that no thread meets a page fault.
pub fn touch_image() {
    let (low, high) = runtime::layout::image();
    for page in (low..high).step_by(4096) {
        let _ = machine::read(page as u64);
    }
}

/// Leaves the emulator.
pub fn exit(code: u8) -> ! {
    Ports::new(0xF4, 2).write8(0, code);
    loop {
        core::hint::spin_loop();
    }
}
