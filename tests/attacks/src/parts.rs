//! Victims and canaries: they do what the judge asks, and notice harm.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{ThreadId, Time};
use proto::layout;
use runtime::{Msg, clock, ipc, lrpc, random, root, thread};

use crate::order::{PROBE, probe};

/// How long the server listens, µs.
const LISTEN_US: u64 = 20_000;
/// What is around the secret.
const FILLER: u64 = 0x5EC2_E75E_C2E7_5EC2;

/// A page of the victim's own.
#[repr(C, align(4096))]
struct Page([AtomicU64; 512]);

static PAGE: Page = Page([const { AtomicU64::new(FILLER) }; 512]);

/// Answers probes with what `answer` makes of them, for ever.
fn serve(mut answer: impl FnMut(u64, u64) -> Msg) -> ! {
    let mut reply = None;
    loop {
        let (from, msg) = ipc::next_request(reply.take());
        if msg.label() == PROBE {
            reply = Some((from, answer(msg.mr[0], msg.mr[1])));
        }
    }
}

/// Has a secret.
pub fn victim() -> ! {
    let secret = random::word();
    PAGE.0[1].store(secret, Ordering::Relaxed);
    serve(|what, _| match what {
        probe::WHOLE => {
            let word = |(index, word): (usize, &AtomicU64)| {
                word.load(Ordering::Relaxed) == if index == 1 { secret } else { FILLER }
            };
            let whole = PAGE.0.iter().enumerate().all(word);
            Msg::new(proto::OK).words(&[&raw const PAGE as u64, secret, u64::from(whole)])
        }
        probe::SPAWN => {
            let made = root::create_thread();
            if let Ok((thread, _)) = made {
                root::delete_thread(thread);
            }
            Msg::new(proto::OK).word(made.is_ok().into())
        }
        _ => Msg::new(proto::REFUSED),
    })
}

/// Takes a message of anybody only when the judge says so.
pub fn server() -> ! {
    let (judge, first) = ipc::request();
    let mut msg = first;
    loop {
        let answer = if msg.label() == PROBE && msg.mr[0] == probe::LISTEN {
            let came = ipc::wait(Time::micros(LISTEN_US));
            Msg::new(proto::OK).word(came.map_or(0, |(from, _)| from.0))
        } else {
            Msg::new(proto::OK).words(&[0, 0, 1])
        };
        let _ = ipc::reply(judge, &answer);
        msg = loop {
            if let Ok(msg) = ipc::receive(judge, Time::NEVER) {
                break msg;
            }
        };
    }
}

/// Procedures of the clerk: one word more than the argument, and the same after a while.
pub const NEXT: u64 = 0;
/// See [`NEXT`].
pub const LATE: u64 = 1;
/// The cookie of its bindings.
pub const COOKIE: u64 = 77;
/// How long the second one takes, µs.
const LATE_US: u64 = 60_000;
/// Threads on which procedures run.
const HOSTS: usize = 2;

/// Agrees to every binding.
pub fn clerk() -> ! {
    let me = thread::me();
    for _ in 0..HOSTS {
        let _ = thread::spawn(move || host(me));
    }
    let mut places = (0..layout::A_STACK_PAGES).cycle();
    let mut reply = None;
    loop {
        let (from, msg) = ipc::next_request(reply.take());
        let place = |page: u64| layout::A_STACKS + page * 4096;
        reply = match lrpc::import(&msg) {
            Some(_) => Some((from, lrpc::agree(place(places.next().unwrap_or(0)), 2, COOKIE))),
            None if msg.label() == PROBE => Some((from, Msg::new(proto::OK).words(&[0, 0, 1]))),
            None => None,
        };
    }
}

fn host(clerk: ThreadId) {
    let mut visit = lrpc::lend(clerk);
    loop {
        visit = match visit {
            Ok(visit) => {
                if visit.procedure == LATE {
                    ipc::sleep(LATE_US);
                }
                lrpc::give_back([0, visit.words[0] + 1, 0, 0, 0, 0, 0, 0])
            }
            Err(_) => lrpc::lend(clerk),
        };
    }
}

/// Computes, and measures for how long it did not.
pub fn canary() -> ! {
    serve(|what, us| match what {
        probe::COMPUTE => {
            let begin = clock::now_us();
            let (mut last, mut gap) = (begin, 0);
            while last < begin + us {
                let now = clock::now_us();
                gap = (now - last).max(gap);
                last = now;
            }
            Msg::new(proto::OK).word(gap)
        }
        _ => Msg::new(proto::OK).words(&[0, 0, 1]),
    })
}
