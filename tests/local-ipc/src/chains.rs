//! Random chains of 2 to 64 threads in 1 to 8 spaces, by messages in user mode and by kernel IPC: the same
//! threads get the same words from the same senders in the same order.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use abi::layout::INITIAL_UTCB_AREA;
use abi::{ThreadId, utcb};
use runtime::{Msg, direct_println, ipc, kernel};

use crate::cast::{Actor, Part};
use crate::{Verdict, across};

/// Threads beside the main one, and how many of them share its space; three are in each of the others.
const LINKS: usize = 63;
const NEAR: usize = 42;
const FAR: usize = 3;
const NUMBER: u32 = root_harness::FIRST_NUMBER + 32;
/// UTCBs in the root task's area that others have.
const FIRST_UTCB: u64 = 16;
const UTCB_BITS: u32 = 12;
const STACK_WORDS: usize = 384;
/// Chains of each run.
const CHAINS: u64 = 60;
/// Chains shorter than that may branch.
const BRANCHES: u64 = 5;
const SEED: u64 = 0x2002;

#[repr(align(16))]
struct Stack([AtomicU64; STACK_WORDS]);
static STACKS: [Stack; LINKS] =
    [const { Stack([const { AtomicU64::new(0) }; STACK_WORDS]) }; LINKS];
/// Of each link its global id and its local one.
static IDS: [[AtomicU64; 2]; LINKS] = [const { [const { AtomicU64::new(0) }; 2] }; LINKS];
/// Which links are in a chain, or not to be asked.
static BUSY: AtomicU64 = AtomicU64::new(0);
/// How messages go.
static WAY: AtomicU64 = AtomicU64::new(0);
/// What has been sent and by whom to whom so far, as one number, and how many messages.
static HISTORY: AtomicU64 = AtomicU64::new(0);
static MESSAGES: AtomicU64 = AtomicU64::new(0);
/// The last run is over: nobody has to look at who sent what.
static LIE: AtomicBool = AtomicBool::new(false);

/// How the messages of a run go.
#[derive(Clone, Copy)]
enum Way {
    /// By global ids through the kernel.
    Kernel,
    /// In user mode where that is possible.
    User,
    /// Now so, now so.
    Either,
}

/// A number that follows from `seed` and `salt` and looks as if it did not.
const fn mix(seed: u64, salt: u64) -> u64 {
    let word =
        (seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(0x2545_F491_4F6C_DD1D);
    let word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

fn space(link: usize) -> usize {
    if link < NEAR { 0 } else { 1 + (link - NEAR) / FAR }
}

fn id(link: usize, local: bool) -> ThreadId {
    ThreadId(IDS[link][usize::from(local)].load(Ordering::Relaxed))
}

/// Whether the next message, of which `seed` is known, goes in user mode if it may.
fn in_user_mode(seed: u64) -> bool {
    match WAY.load(Ordering::Relaxed) {
        0 => false,
        1 => true,
        _ => mix(seed, 99) & 1 == 0,
    }
}

/// `receiver` (a link, or [`LINKS`] for the main thread) has got `message` of `sender`.
fn note(receiver: usize, sender: usize, message: &Msg) {
    let mut history = HISTORY.load(Ordering::Relaxed);
    history = mix(history, (receiver as u64) << 8 | sender as u64);
    history = mix(history, message.tag.0);
    for word in 0..message.tag.untyped() {
        history = mix(history, message.get(word));
    }
    HISTORY.store(history, Ordering::Relaxed);
    MESSAGES.fetch_add(1, Ordering::Relaxed);
}

/// Who is called `name` in the space of `link`.
fn known_as(link: usize, name: ThreadId) -> usize {
    let near = |other: &usize| space(*other) == space(link) && id(*other, true) == name;
    (0..LINKS).find(|other| id(*other, false) == name || near(other)).unwrap_or(LINKS)
}

/// A request: what it is to do follows from its number, and so do its other words.
fn request(seed: u64, depth: u64) -> Msg {
    let words: [u64; 7] = core::array::from_fn(|word| mix(seed, word as u64));
    let mut message = Msg::default().words(&[seed, depth]);
    for word in &words[..(mix(seed, 7) % 6) as usize] {
        message = message.word(*word);
    }
    message
}

/// As `caller`: calls somebody who is free with the request of number `seed`; what came back.
fn call(caller: usize, seed: u64, depth: u64) -> u64 {
    let busy = BUSY.load(Ordering::Relaxed);
    let free = LINKS as u64 - u64::from(busy.count_ones());
    if free == 0 {
        return 0;
    }
    let mut which = mix(seed, 11) % free;
    let mut link = 0;
    loop {
        if busy >> link & 1 == 0 {
            if which == 0 {
                break;
            }
            which -= 1;
        }
        link += 1;
    }
    let near = caller == LINKS && link < NEAR || caller < LINKS && space(caller) == space(link);
    let message = request(seed, depth);
    let answer = if near && in_user_mode(seed) {
        ipc::local_call(id(link, true), &message)
    } else {
        ipc::call(id(link, false), &message)
    };
    match answer {
        Ok(answer) => {
            note(caller, link, &answer);
            answer.get(0)
        }
        Err(_) => {
            LIE.store(true, Ordering::Relaxed);
            0
        }
    }
}

/// What `link` does with a message of `client`.
fn work(link: usize, client: ThreadId, message: &Msg) -> Msg {
    let (seed, depth) = (message.get(0), message.get(1));
    note(link, known_as(link, client), message);
    BUSY.fetch_or(1 << link, Ordering::Relaxed);
    let branches = if depth < BRANCHES { 1 + mix(seed, 5) % 2 } else { 1 };
    let mut sum = mix(seed, link as u64);
    for branch in 0..if depth == 0 { 0 } else { branches } {
        sum = sum.wrapping_add(call(link, mix(seed, 20 + branch), depth - 1));
    }
    BUSY.fetch_and(!(1 << link), Ordering::Relaxed);
    request(sum, seed)
}

extern "C" fn link_main() -> ! {
    let own = runtime::utcb::my_global_id();
    let link = (0..LINKS).find(|link| id(*link, false) == own).unwrap_or(0);
    across::ready();
    let (mut client, mut message) = ipc::request();
    loop {
        let seed = message.get(0);
        let answer = work(link, client, &message);
        let next = if in_user_mode(!seed) {
            ipc::local_reply_wait(client, &answer)
        } else {
            let sender = known_as(link, client);
            let name = if sender < LINKS { id(sender, false) } else { ThreadId::ROOT };
            ipc::reply_wait(name, &answer)
        };
        (client, message) = next.unwrap_or_else(|_| ipc::request());
    }
}

/// Starts all links.
fn start() -> Verdict {
    for link in 0..LINKS {
        let number = NUMBER + link as u32;
        let id = ThreadId::global(number, 1);
        let (home, slot) = match space(link) {
            0 => (ThreadId::ROOT, FIRST_UTCB + link as u64),
            other => {
                let first = NEAR + (other - 1) * FAR;
                (ThreadId::global(NUMBER + first as u32, 1), (link - first) as u64)
            }
        };
        let location = INITIAL_UTCB_AREA + slot * utcb::SIZE;
        IDS[link][0].store(id.0, Ordering::Relaxed);
        IDS[link][1].store(location + utcb::POINTER_OFFSET, Ordering::Relaxed);
        if home == id {
            across::make_space(id, UTCB_BITS)?;
        } else {
            let root = ThreadId::ROOT;
            kernel::create_active(id, home, root, root, location)
                .map_err(|_| "the kernel makes no thread")?;
        }
        across::begin(id, &STACKS[link].0, link_main)?;
    }
    Ok(())
}

/// All chains by `way`; the history of each.
fn run(way: Way) -> [(u64, u64); CHAINS as usize] {
    WAY.store(way as u64, Ordering::Relaxed);
    core::array::from_fn(|chain| {
        let seed = mix(SEED, chain as u64);
        let (threads, spaces) = (2 + mix(seed, 1) % LINKS as u64, 1 + mix(seed, 2) as usize % 8);
        HISTORY.store(seed, Ordering::Relaxed);
        MESSAGES.store(0, Ordering::Relaxed);
        let asked = |link: &usize| space(*link) < spaces;
        let absent = (0..LINKS).filter(|link| !asked(link)).fold(0, |all, link| all | 1 << link);
        BUSY.store(absent, Ordering::Relaxed);
        call(LINKS, seed, threads - 2);
        (HISTORY.load(Ordering::Relaxed), MESSAGES.load(Ordering::Relaxed))
    })
}

/// The chains by the kernel, in user mode, and in both ways, the last two with interrupts.
pub fn same() -> Verdict {
    start()?;
    let expected = run(Way::Kernel);
    let messages: u64 = expected.iter().map(|(_, messages)| messages).sum();
    let waker = Actor::start(3, Part::Wake);
    let before = crate::entries();
    let others = [run(Way::User), run(Way::Either)];
    let entries = crate::entries() - before;
    waker.stop();
    for link in (0..LINKS).rev() {
        let _ = kernel::delete(id(link, false));
    }
    direct_println!(
        "local-ipc: {CHAINS} chains of seed {SEED:#x}: {messages} messages, then twice with {entries} kernel entries"
    );
    for other in others {
        if let Some(chain) = (0..CHAINS as usize).find(|chain| expected[*chain] != other[*chain]) {
            direct_println!("local-ipc: chain {chain} of seed {SEED:#x} differs");
            return Err("a chain went otherwise in user mode");
        }
    }
    if LIE.load(Ordering::Relaxed) { Err("a call failed") } else { Ok(()) }
}
