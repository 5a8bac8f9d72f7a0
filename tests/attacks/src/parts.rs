//! Victims and canaries: they do what the judge asks, and notice harm.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::Time;
use runtime::{Msg, clock, ipc, random, root};

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
