//! Tasks that send without end: pairs that call each other, strings, and a crowd that
//! wants to send to the canary, which never receives.

use core::sync::atomic::Ordering::Relaxed;

use abi::{ThreadId, Time};
use runtime::accept::{self, TransferLimit};
use runtime::{Msg, ipc, thread};

use super::hostile::{MADE, spawn};
use super::{canaries, turns};

/// Pairs that exchange words.
const PAIRS: u32 = 6;
/// Threads that send to the canary.
const SENDERS: u32 = 40;
/// Bytes of the strings.
const STRING: usize = 32 << 10;

/// The strings' bytes.
static BYTES: [u8; STRING] = [5; STRING];
static ROOM: runtime::sync::Lock<[u8; STRING]> = runtime::sync::Lock::new([0; STRING]);

/// The first thread: makes all others and goes on as one half of the pair with strings.
pub extern "C" fn messages(_: u64) -> ! {
    let mut index = 1;
    for _ in 0..PAIRS {
        let partner = spawn(index + 1, answer, 0);
        let _ = spawn(index, ask, partner.0);
        index += 2;
    }
    for _ in 0..SENDERS {
        let _ = spawn(index, knock, index.into());
        index += 1;
    }
    let taker = spawn(index, take, 0);
    loop {
        turns::give();
        if ipc::call(taker, &Msg::new(0).string(&BYTES)).is_ok() {
            MADE.fetch_add(1, Relaxed);
        }
    }
}

extern "C" fn ask(partner: u64) -> ! {
    loop {
        turns::give();
        if ipc::call(ThreadId(partner), &Msg::new(1).word(1)).is_ok() {
            MADE.fetch_add(1, Relaxed);
        }
    }
}

/// Inside a space messages come from local ids; the kernel's answer goes to global ones.
fn global(from: ThreadId) -> Option<ThreadId> {
    if from.is_local() { thread::other_id(from) } else { Some(from) }
}

extern "C" fn answer(_: u64) -> ! {
    let mut reply = None;
    loop {
        let (from, msg) = ipc::next_request(reply.take());
        reply = global(from).map(|to| (to, msg));
    }
}

/// The canaries never receive: this fails by timeout, again and again.
extern "C" fn knock(index: u64) -> ! {
    let whom = canaries::equal(index as usize % canaries::count());
    loop {
        turns::give();
        let _ = ipc::send_within(whom, &Msg::new(2), Time::micros(700));
    }
}

extern "C" fn take(_: u64) -> ! {
    let mut room = ROOM.lock();
    let mut reply = None;
    loop {
        let (from, _) = accept::string(&mut *room, TransferLimit::micros(1_000_000), || {
            ipc::next_request(reply.take())
        });
        reply = global(from).map(|to| (to, Msg::default()));
    }
}
