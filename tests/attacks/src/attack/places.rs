//! Where threads run: a description without `processors = "all"` keeps its task together, one with it lets a task move its
//! own threads, to processors that there are.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use abi::ThreadId;
use alloc::format;
use alloc::string::String;
use runtime::root::Refusal;
use runtime::{Msg, clock, ipc, kip, root, thread, utcb};

use crate::hostile::{Hostile, Reached, rest, wait_until};
use crate::order::Help;

/// Numbers that no processor has, whose lower bits are one's.
const NOBODYS: [u32; 5] = [64, 256, 0xFFFF, 1 << 16, u32::MAX];
/// More often than there are threads for a task.
const OFTEN: u32 = 20;
/// How long threads are moved to and fro, µs, and how long each of those lives that are deleted meanwhile.
const MOVES_US: u64 = 80_000;
const LIVES_US: u64 = 3_000;
/// How long it may take until they have had so many answers as there should be at least, µs: where processors take turns, few at a time.
const PATIENCE_US: u64 = 1_000_000;
const ANSWERS: u64 = 20;
/// Longest time that a canary may be without the processor, µs: some slices of others.
const LONGEST_US: u64 = 60_000;

/// The thread that is moved, and has work.
static MOVED: AtomicU64 = AtomicU64::new(0);
/// Calls that were answered as they should be.
static ANSWERED: AtomicU64 = AtomicU64::new(0);
/// Something that may not be has been seen.
static WRONG: AtomicBool = AtomicBool::new(false);
static OVER: AtomicBool = AtomicBool::new(false);

fn here() -> u32 {
    utcb::processor() as u32
}

/// Asks for other processors, without the key.
pub fn on_request(_: &Hostile) -> Reached {
    let (me, home) = (thread::me(), here());
    for number in (0..64).chain(NOBODYS).filter(|number| *number != home) {
        let got = root::set_processor(me, number);
        if got != Err(Refusal::NotAllowed) || here() != home {
            return Some(format!("the root task answered {got:?} to processor {number}"));
        }
    }
    // What is refused leaves no thread behind.
    for _ in 0..OFTEN {
        let got = thread::spawn_on(home + 1, || rest());
        if got != Err(Refusal::NotAllowed) {
            return Some(format!("a thread elsewhere: {got:?}"));
        }
    }
    let stays = root::set_processor(me, home).is_ok() && thread::spawn_on(home, || rest()).is_ok();
    (!stays).then(|| String::from("a task may not be where its description says"))
}

/// With the key: moves others' threads, and its own to where nothing is.
pub fn for_others(hostile: &Hostile) -> Reached {
    let victim = ThreadId(hostile.ask(Help::Victim, 0)[0]);
    let others = [
        victim,
        hostile.judge(),
        ThreadId::ROOT,
        ThreadId::SIGMA0,
        ThreadId::irq(4),
        ThreadId::NIL,
    ];
    for thread in others {
        let got = root::set_processor(thread, 0);
        if got != Err(Refusal::Unknown) {
            return Some(format!("the root task answered {got:?} about {thread:?}"));
        }
    }
    let (me, count) = (thread::me(), kip::get().processors());
    for number in NOBODYS.into_iter().chain([count]) {
        let got = root::set_processor(me, number);
        if got != Err(Refusal::BadArgument) {
            return Some(format!("the root task answered {got:?} to processor {number}"));
        }
    }
    for number in (0..count).chain((0..count).rev()) {
        let got = root::set_processor(me, number);
        if got.is_err() || here() != number {
            return Some(format!("{got:?}, and it runs on {} instead of {number}", here()));
        }
    }
    None
}

/// Says where it is, and squares.
fn answer() {
    let mut next = ipc::request();
    loop {
        let (from, msg) = next;
        let square = msg.mr[0].wrapping_mul(msg.mr[0]);
        let answer = Msg::new(proto::OK).words(&[here().into(), square]);
        next = ipc::local_reply_wait(from, &answer).unwrap_or_else(|_| ipc::request());
    }
}

/// Threads on all processors at the same time: they answer, by both kinds of messages, from wherever they are asked.
pub fn on_each(_: &Hostile) -> Reached {
    let count = kip::get().processors();
    let mut threads = [ThreadId::NIL; 8];
    for (number, thread) in (0..count).zip(&mut threads) {
        match thread::spawn_on(number, answer) {
            Ok(made) => *thread = made,
            Err(why) => return Some(format!("no thread on processor {number}: {why}")),
        }
    }
    for home in 0..count {
        if root::set_processor(thread::me(), home).is_err() || here() != home {
            return Some(format!("it does not get to processor {home}"));
        }
        for (number, thread) in (0..u64::from(count)).zip(threads) {
            let local = thread::other_id(thread).unwrap_or(ThreadId::NIL);
            for value in 0..32 {
                let msg = Msg::default().word(value);
                let answers = [ipc::call(thread, &msg), ipc::local_call(local, &msg)];
                let is_right = |msg: Msg| msg.mr[..2] == [number, value * value];
                if !answers.into_iter().all(|answer| answer.is_ok_and(is_right)) {
                    return Some(format!("{number} asked from {home} does not answer {value}²"));
                }
            }
        }
    }
    None
}

/// Computes until it is over.
fn compute() {
    while !OVER.load(Ordering::Relaxed) {
        core::hint::spin_loop();
    }
    rest()
}

/// Moves `server`, whoever is to be moved, and itself, all the time, and has `server` answer.
fn keep_moving(server: ThreadId) {
    let local = thread::other_id(server).unwrap_or(server);
    let count = kip::get().processors();
    for round in 0_u64.. {
        if OVER.load(Ordering::Relaxed) {
            rest();
        }
        let places = [round, round / 2, round / 3].map(|place| (place % u64::from(count)) as u32);
        // May be gone, or going.
        let _ = root::set_processor(ThreadId(MOVED.load(Ordering::Relaxed)), places[0]);
        let moved = [(server, places[1]), (thread::me(), places[2])]
            .map(|(thread, number)| root::set_processor(thread, number));
        let msg = Msg::default().word(round);
        let answer =
            if round % 2 == 0 { ipc::call(server, &msg) } else { ipc::local_call(local, &msg) };
        let expected = [places[1].into(), round.wrapping_mul(round)];
        match answer {
            Ok(msg) if msg.mr[..2] == expected && moved.iter().all(Result::is_ok) => {
                ANSWERED.fetch_add(1, Ordering::Relaxed);
            }
            _ => WRONG.store(true, Ordering::Relaxed),
        }
    }
}

/// Moves threads to and fro all the time, those that are deleted meanwhile, too.
pub fn to_and_fro(hostile: &Hostile) -> Reached {
    let mover = thread::spawn(answer).and_then(|server| thread::spawn(move || keep_moving(server)));
    if let Err(why) = mover {
        return Some(format!("no thread: {why}"));
    }
    let end = clock::now_us() + MOVES_US;
    while clock::now_us() < end {
        match thread::spawn(compute) {
            Ok(thread) => {
                MOVED.store(thread.0, Ordering::Relaxed);
                ipc::sleep(LIVES_US);
                root::delete_thread(thread);
            }
            Err(why) => return Some(format!("no thread: {why}")),
        }
    }
    MOVED.store(thread::spawn(compute).map_or(0, |thread| thread.0), Ordering::Relaxed);
    let [gap_us, _] = hostile.ask(Help::Compute, 0);
    let goes_on = wait_until(PATIENCE_US, || ANSWERED.load(Ordering::Relaxed) >= ANSWERS);
    OVER.store(true, Ordering::Relaxed);
    if WRONG.load(Ordering::Relaxed) || !goes_on {
        let answered = ANSWERED.load(Ordering::Relaxed);
        return Some(format!("who is moved does not get on: {answered} right answers"));
    }
    (gap_us > LONGEST_US).then(|| format!("a canary was without the processor for {gap_us} us"))
}
