//! Messages without the kernel (docs/decisions/0044), which two threads of one space and one processor
//! exchange, while others of that space are elsewhere: whoever goes there takes no part any more, and whoever
//! lies from there has none believe it.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::inspect::What;
use abi::{ThreadId, Time, Timeouts, utcb};
use root_harness::{Verdict, local, verdict};
use runtime::{Msg, ipc, kernel, schedule};

use crate::cast::{self, Actor, Part};
use crate::talks::{counts_on, none_wrong};
use crate::{machine, processors};

/// Requests whose client waited in public: their answers need no kernel.
pub static PUBLIC: AtomicU64 = AtomicU64::new(0);

/// So many lies at least.
const LIES: u64 = 1_000;

/// A server at place 0 and its client at place 1, on the first processor.
fn pair() -> [Actor; 2] {
    let server = Actor::start(0, Part::ServeAlone, 0);
    Actor::calls_locally(1, 0);
    [server, Actor::start(1, Part::TalkAlone, 0)]
}

/// Deletes them, and looks at the kernel.
pub fn stop(actors: &[Actor]) -> Verdict {
    actors.iter().for_each(Actor::stop);
    let broken = kernel::inspect(What::Check, 0, 0).map_or(u64::MAX, |record| record[0]);
    verdict(broken == 0, "an invariant of the kernel's is broken")
}

/// Either of the two goes to another processor and comes back, wherever it is.
pub fn moved() -> Verdict {
    let actors = pair();
    verdict(counts_on(&actors[1]), "they do not talk")?;
    verdict(PUBLIC.load(Ordering::Relaxed) > 0, "all of their messages go through the kernel")?;
    for round in 0..60 {
        let mover = &actors[round % 2];
        let number = 1 + round as u32 % (processors() - 1);
        schedule::set_processor(mover.id, number).map_err(|_| "it does not go there")?;
        verdict(counts_on(&actors[1]), "they do not talk when one of them is elsewhere")?;
        if round % 3 > 0 {
            let other = &actors[(round + 1) % 2];
            schedule::set_processor(other.id, number).map_err(|_| "it does not follow")?;
            verdict(counts_on(&actors[1]), "they do not talk elsewhere")?;
            schedule::set_processor(other.id, 0).map_err(|_| "it does not come back")?;
        }
        schedule::set_processor(mover.id, 0).map_err(|_| "it does not come back")?;
        let before = PUBLIC.load(Ordering::Relaxed);
        let again =
            (0..20).any(|_| counts_on(&actors[1]) && PUBLIC.load(Ordering::Relaxed) > before);
        verdict(again, "back again, they go through the kernel")?;
    }
    stop(&actors)?;
    none_wrong()
}

/// A thread on another processor writes what it likes to the words that say who waits for whom and who runs.
pub fn lied_to() -> Verdict {
    for _ in 0..4 {
        let [server, client] = pair();
        verdict(counts_on(&client), "they do not talk")?;
        none_wrong()?;
        let liar = Actor::start(2, Part::Lie, 1);
        // They may go astray: faults at addresses that nobody has stay unanswered.
        let lied = (0..1_000).any(|_| {
            let _ = ipc::wait(Time::micros(2_000));
            liar.count() > LIES
        });
        verdict(lied, "nobody lies")?;
        stop(&[liar, client, server])?;
        // What they have answered while it lied is their own affair.
        cast::WRONG.store(0, Ordering::Relaxed);
        let [server, client] = pair();
        verdict(counts_on(&client), "they do not talk afterwards")?;
        stop(&[client, server])?;
        none_wrong()?;
    }
    Ok(())
}

/// Calls the thread whose local id is `to` for ever.
pub fn talk(to: ThreadId, count: &AtomicU64) -> ! {
    loop {
        let round = count.load(Ordering::Relaxed);
        match ipc::local_call(to, &Msg::default().words(&[round])) {
            Ok(msg) if msg.get(0) == round => {
                count.fetch_add(1, Ordering::Relaxed);
                end_turn(round);
            }
            Ok(_) => drop(cast::WRONG.fetch_add(1, Ordering::Relaxed)),
            Err(_) => core::hint::spin_loop(),
        }
    }
}

/// The same in single steps, of which its exception handler hears.
pub fn step(to: ThreadId, count: &AtomicU64) -> ! {
    runtime::utcb::set_exception_handler(ThreadId::ROOT);
    machine::step();
    talk(to, count)
}

/// Answers with what it is sent, and does something `meanwhile`.
pub fn serve(mut meanwhile: impl FnMut(u64) -> u64) -> ! {
    let first = || ipc::lipc(ThreadId::NIL, ThreadId::ANY, Timeouts::NEVER, &Msg::default());
    let mut request = first();
    loop {
        request = match request {
            Ok((client, msg)) => {
                if machine::read_utcb(client.0, utcb::LIPC_WAIT) == local(0).0 {
                    PUBLIC.fetch_add(1, Ordering::Relaxed);
                }
                ipc::local_reply_wait(client, &Msg::default().words(&[meanwhile(msg.get(0))]))
            }
            Err(_) => first(),
        };
    }
}

/// Lies for ever.
pub fn lie(count: &AtomicU64) -> ! {
    let words =
        [utcb::LIPC_WAIT, utcb::LIPC_SP, utcb::LIPC_STATE, utcb::LIPC_CURRENT, utcb::LIPC_CURRENT];
    let lies = [
        0,
        1,
        2,
        64,
        !0,
        1 << 63,
        local(0).0,
        local(1).0,
        local(2).0,
        local(3).0,
        ThreadId::ANY_LOCAL.0,
        ThreadId::ROOT.0,
        utcb::lipc_open(0),
        utcb::lipc_open(1),
        utcb::lipc_open_local(0),
    ];
    for round in 0_usize.. {
        let (word, lie) = (words[round % words.len()], lies[round % lies.len()]);
        machine::write_utcb(local(round / 7 % 2).0, word, lie);
        count.fetch_add(1, Ordering::Relaxed);
        end_turn(round as u64);
    }
    unreachable!()
}

/// Lets other processors have a turn now and then: where they take turns they have none while nobody
/// on this one waits.
pub fn end_turn(round: u64) {
    if round.is_multiple_of(64) {
        core::hint::spin_loop();
    }
}
