//! Messages without the kernel between threads of one space that live on the same other processor
//! (docs/decisions/0088): they need no kernel there, and whoever concerns himself with one of those who talk finds
//! it as if the kernel had seen all of it.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::inspect::{Back, What};
use abi::protocol::{EXCEPTION, EXCEPTION_WORDS};
use abi::{Fpage, Rights, ThreadId, Time, utcb};
use root_harness::{Verdict, local, verdict, violations};
use runtime::{Msg, ipc, kernel, schedule, sigma0};

use crate::alone::{PUBLIC, end_turn, stop};
use crate::cast::{self, Actor, Part};
use crate::talks::{counts_on, none_wrong, rest};
use crate::{busy, machine, processors};

/// What the forger says.
static LIE: AtomicU64 = AtomicU64::new(0);
/// How often it has gone on as itself.
static FORGED: AtomicU64 = AtomicU64::new(0);

/// A server at place 0 and its client at place 1, on processor `number`.
fn pair(number: u32) -> [Actor; 2] {
    let server = Actor::start(0, Part::ServeAlone, number);
    Actor::calls_locally(1, 0);
    [server, Actor::start(1, Part::TalkAlone, number)]
}

/// How often threads have come back from processor `number` with a message or a call.
fn messages(number: u32) -> u64 {
    let whys = [Back::Message, Back::Wait, Back::Limit, Back::Items, Back::Call];
    let of = |why: Back| {
        let (part, word) = (why as u64 / 8, why as usize % 8);
        kernel::inspect(What::Visits, number.into(), part).map_or(0, |record| record[word])
    };
    whys.into_iter().map(of).sum()
}

/// Whether `client` gets many answers on processor `number`, and hardly any of them by the kernel.
fn needs_no_kernel(client: &Actor, number: u32) -> bool {
    const ANSWERS: u64 = 400;
    (0..50).any(|_| {
        let (before, count) = (messages(number), client.count());
        let came = (0..400).any(|_| {
            rest();
            client.count() > count + ANSWERS
        });
        came && messages(number) - before < ANSWERS / 20
    })
}

pub fn stays() -> Verdict {
    for number in 1..processors() {
        let actors = pair(number);
        verdict(counts_on(&actors[1]), "they do not talk")?;
        verdict(needs_no_kernel(&actors[1], number), "their messages go through the kernel")?;
        stop(&actors)?;
    }
    none_wrong()
}

/// Users of vector registers, who compute with them between the messages and are interrupted and moved meanwhile.
pub fn vectors() -> Verdict {
    kernel::use_vector_registers().map_err(|_| "the kernel was not told of vector registers")?;
    let found = vectors_kept();
    kernel::use_no_vector_registers().map_err(|_| "the kernel was not told of their end")?;
    found?;
    none_wrong()
}

fn vectors_kept() -> Verdict {
    let server = Actor::start(0, Part::ServeAndHold, 1);
    Actor::calls_locally(1, 0);
    let client = Actor::start(1, Part::TalkAlone, 1);
    verdict(counts_on(&client), "they do not talk")?;
    verdict(needs_no_kernel(&client, 1), "their messages go through the kernel")?;
    let hog = Actor::start(2, Part::Hold, 1);
    for round in 0..8 {
        machine::leave(round);
        verdict(counts_on(&client), "they do not go on")?;
        let number = round as u32 % processors();
        for one in [&server, &client] {
            schedule::set_processor(one.id, number).map_err(|_| "it does not go there")?;
        }
    }
    stop(&[client, server, hog])
}

/// Three in a row, the one in the middle is the server of one and the client of the other.
pub fn chain() -> Verdict {
    for number in 1..processors() {
        let last = Actor::start(0, Part::ServeAlone, number);
        Actor::calls_locally(2, 0);
        let middle = Actor::start(2, Part::ForwardAlone, number);
        Actor::calls_locally(1, 2);
        let client = Actor::start(1, Part::TalkAlone, number);
        verdict(counts_on(&client), "they do not talk")?;
        verdict(needs_no_kernel(&client, number), "their messages go through the kernel")?;
        for round in 0..30 {
            let victim = [&last, &middle, &client][round % 3];
            machine::halt(victim.id, true);
            busy();
            machine::halt(victim.id, false);
            verdict(counts_on(&client), "they do not go on")?;
        }
        stop(&[client, middle, last])?;
    }
    none_wrong()
}

/// A critical section and whoever enters it live elsewhere: a message and its answer.
pub fn section() -> Verdict {
    for number in 1..processors() {
        let section = Actor::start(0, Part::Section, number);
        let [client, other] = [1, 2].map(|place| Actor::start(place, Part::Enter, number));
        verdict(counts_on(&client) && counts_on(&other), "one of them does not enter")?;
        other.stop();
        verdict(needs_no_kernel(&client, number), "they enter by the kernel")?;
        schedule::set_processor(section.id, 0).map_err(|_| "it does not come back")?;
        verdict(counts_on(&client), "nobody enters from elsewhere")?;
        schedule::set_processor(client.id, 0).map_err(|_| "it does not come back")?;
        verdict(counts_on(&client), "nobody enters any more")?;
        stop(&[client, section])?;
    }
    none_wrong()
}

/// Looks after a value.
pub fn serve_section() -> ! {
    runtime::section::serve((0_u64, 0_u64))
}

/// Enters the section at place 0 for ever.
pub fn enter(count: &AtomicU64) -> ! {
    let section = machine::section(local(0).0);
    loop {
        let is_whole = section.with(|value: &mut (u64, u64)| {
            let same = value.0 == value.1;
            value.0 += 1;
            core::hint::black_box(&mut *value);
            value.1 += 1;
            same
        });
        let counter = if is_whole { count } else { &cast::WRONG };
        end_turn(counter.fetch_add(1, Ordering::Relaxed));
    }
}

/// Either side moves at any moment, to and fro, together and apart.
pub fn moving() -> Verdict {
    let actors = pair(1);
    verdict(counts_on(&actors[1]), "they do not talk")?;
    for round in 0..400_u32 {
        let mover = &actors[(round % 2) as usize];
        let number = round / 2 % processors();
        schedule::set_processor(mover.id, number).map_err(|_| "it does not go there")?;
        (0..round % 97).for_each(|_| core::hint::spin_loop());
        verdict(round % 16 != 0 || counts_on(&actors[1]), "they do not talk on the way")?;
    }
    for one in &actors {
        schedule::set_processor(one.id, 1).map_err(|_| "it does not come back")?;
    }
    let before = PUBLIC.load(Ordering::Relaxed);
    verdict(needs_no_kernel(&actors[1], 1), "their messages go through the kernel at the end")?;
    verdict(PUBLIC.load(Ordering::Relaxed) > before, "nobody waits in public")?;
    stop(&actors)?;
    none_wrong()
}

/// Either side is deleted at any moment.
pub fn deleted() -> Verdict {
    for round in 0..60_u32 {
        let [server, client] = pair(1 + round % (processors() - 1));
        verdict(counts_on(&client), "they do not talk")?;
        (0..round % 13 * 8).for_each(|_| core::hint::spin_loop());
        let [first, second] = if round % 2 == 0 { [&server, &client] } else { [&client, &server] };
        first.stop();
        let before = client.count();
        (0..2).for_each(|_| busy());
        verdict(client.count() <= before + 1, "it is answered by nobody")?;
        verdict(violations() == 0, "an invariant of the kernel's is broken")?;
        second.stop();
    }
    none_wrong()
}

/// The server has a client on the first processor, too, which calls by the kernel.
pub fn called() -> Verdict {
    let [server, client] = pair(1);
    for round in 0..300 {
        let msg = Msg::default().words(&[round]);
        let answer = ipc::call(server.id, &msg).map_err(|_| "a call failed")?;
        verdict(answer.get(0) == round, "another answer")?;
        verdict(round % 16 != 0 || counts_on(&client), "the other one stands still")?;
    }
    verdict(needs_no_kernel(&client, 1), "their messages go through the kernel afterwards")?;
    stop(&[server, client])?;
    none_wrong()
}

/// One client calls without the kernel, another one of the same processor with it.
pub fn mixed() -> Verdict {
    let [server, client] = pair(1);
    Actor::calls(2, &server);
    let other = Actor::start(2, Part::Talk, 1);
    for round in 0..20 {
        verdict(counts_on(&client) && counts_on(&other), "one of them is not served")?;
        verdict(round % 4 != 0 || violations() == 0, "an invariant of the kernel's is broken")?;
    }
    stop(&[other, client, server])?;
    none_wrong()
}

/// Somebody computes beside those who talk; more urgent than one of them, it runs alone.
pub fn beside() -> Verdict {
    let [server, client] = pair(1);
    let hog = Actor::start(2, Part::Count, 1);
    let run = (0..3).all(|_| counts_on(&hog) && counts_on(&client));
    // Client and hog are more urgent than the server: nobody hands over to it before the hog.
    let _ = schedule::set_priority(server.id, 50);
    (0..2).for_each(|_| rest());
    let before = client.count();
    let alone = (0..2).all(|_| counts_on(&hog)) && client.count() <= before + 1;
    hog.stop();
    let goes_on = counts_on(&client);
    stop(&[client, server])?;
    verdict(run, "one of them has no turn")?;
    verdict(alone, "the less urgent one runs in the other's time")?;
    verdict(goes_on, "they do not go on")?;
    none_wrong()
}

/// Whether `client` counts on, while this thread brings back the page at `address` for `server`: its own, too.
fn counts_on_with(client: &Actor, server: &Actor, address: u64) -> bool {
    let before = client.count();
    (0..200).any(|_| {
        if ipc::receive(server.id, Time::micros(2_000)).is_ok() {
            let _ = machine::read(address);
            let _ = ipc::send(server.id, &Msg::default());
        }
        client.count() > before + 2
    })
}

/// The server faults at a page that is taken from it all the time.
pub fn faulted() -> Verdict {
    let page = sigma0::memory(None, 12).ok_or("no page")?;
    let _ = machine::read(page.base());
    cast::ADDRESS.store(page.base(), Ordering::Relaxed);
    let server = Actor::start(0, Part::ServeAndRead, 1);
    Actor::calls_locally(1, 0);
    let client = Actor::start(1, Part::TalkAlone, 1);
    for round in 0..60 {
        machine::flush(Fpage::memory(page.base(), 12, Rights::RWX));
        verdict(counts_on_with(&client, &server, page.base()), "they do not go on")?;
        verdict(round % 10 != 0 || violations() == 0, "an invariant of the kernel's is broken")?;
    }
    stop(&[client, server])?;
    none_wrong()
}

/// Single steps of the client: an entry at every instruction of the path's, there.
pub fn stepped() -> Verdict {
    const ANSWERS: u64 = 20;
    let server = Actor::start(0, Part::ServeAlone, 1);
    Actor::calls_locally(1, 0);
    let client = Actor::start(1, Part::StepAlone, 1);
    let (mut from, mut fault) = ipc::wait(Time::micros(500_000)).map_err(|_| "it does not step")?;
    let mut steps = 0_u64;
    while client.count() < ANSWERS {
        steps += 1;
        let is_step = fault.tag.label() as i16 as i64 >> 4 == EXCEPTION && from == client.local();
        verdict(is_step, "another message came than that of a step")?;
        let answer =
            (0..EXCEPTION_WORDS).fold(Msg::default(), |answer, word| answer.word(fault.get(word)));
        (from, fault) =
            ipc::reply_wait(client.id, &answer).map_err(|_| "the next step did not come")?;
    }
    stop(&[client, server])?;
    verdict(steps > 20 * ANSWERS, "there were fewer steps than instructions")?;
    none_wrong()
}

/// One of those who may hand over there says that others run who may not be woken so, or are no threads; it goes on
/// as itself, and they stay what they are.
pub fn forged() -> Verdict {
    let [server, halted] = pair(1);
    verdict(needs_no_kernel(&halted, 1), "their messages go through the kernel")?;
    machine::halt(halted.id, true);
    server.stop();
    let before = halted.count();
    let gone = Actor::start(2, Part::Count, 1);
    gone.stop();
    let near = Actor::start(2, Part::ServeAlone, 0);
    rest();
    let lies = [
        local(1).0,
        local(2).0,
        local(3).0,
        runtime::thread::me().0,
        ThreadId::ROOT.0,
        local(1).0 + 8,
        local(1).0 + 64 * 1024,
        0,
        1,
        64,
        !0,
        1 << 63,
        utcb::lipc_open(1),
    ];
    for lie in lies {
        LIE.store(lie, Ordering::Relaxed);
        let server = Actor::start(0, Part::ServeAlone, 1);
        let forger = Actor::start(3, Part::Forger, 1);
        let (was, goes_on) = (FORGED.load(Ordering::Relaxed), &FORGED);
        let went_on = (0..1_000).any(|_| {
            rest();
            goes_on.load(Ordering::Relaxed) > was
        });
        stop(&[forger, server])?;
        verdict(went_on, "who forged the word did not go on as itself")?;
    }
    verdict(halted.count() == before, "the halted thread has run")?;
    machine::halt(halted.id, false);
    stop(&[halted, near])?;
    // It has been answered by servers that are gone: nobody looks how.
    cast::WRONG.store(0, Ordering::Relaxed);
    Ok(())
}

/// Takes part, and then says again and again that [`LIE`] runs, and asks the kernel something.
pub fn forge() -> ! {
    let mut rounds = 0;
    loop {
        for round in 0..3 {
            let _ = ipc::local_call(local(0), &Msg::default().words(&[round]));
        }
        // It is the one whom the kernel has let go then: who lies as another one goes on as that.
        let _ = kernel::inspect(What::Kernel, 0, 0);
        machine::write_current_word(LIE.load(Ordering::Relaxed));
        let _ = kernel::inspect(What::Kernel, 0, 0);
        machine::write_current_word(local(3).0);
        rounds += 1;
        if rounds == 8 {
            FORGED.fetch_add(1, Ordering::Relaxed);
        }
        end_turn(rounds);
    }
}
