//! Conversations on other processors: they stay there, and whoever concerns himself with one of
//! those who talk finds it as if it had been here.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Fpage, Rights, Time};
use root_harness::{Verdict, verdict};
use runtime::space::Fault;
use runtime::{Msg, clock, direct_println, ipc, kernel, schedule, sigma0};

use crate::cast::{self, Actor, Part};
use crate::{machine, processors};

/// Starts a server at place 0 and at place 1 its client, on processor `number`.
fn pair(part: Part, number: u32, apart: bool) -> [Actor; 2] {
    let start = if apart { Actor::start_apart } else { Actor::start };
    let server = start(0, Part::Serve, number);
    Actor::calls(1, &server);
    [server, start(1, part, number)]
}

/// Lets those run here, too, who are less urgent than this thread, which is their pager: all others.
pub fn rest() {
    if let Ok((faulter, message)) = ipc::wait(Time::micros(2_000))
        && let Some(fault) = Fault::decode(&message)
    {
        let _ = ipc::send(faulter, &fault.same_page(Rights::RWX));
    }
}

/// Whether `actor` counts on, while this thread rests.
pub fn counts_on(actor: &Actor) -> bool {
    let before = actor.count();
    (0..200).any(|_| {
        rest();
        actor.count() > before + 2
    })
}

/// Whether `client` gets many more answers.
fn goes_on(client: &Actor) -> bool {
    (0..5).all(|_| counts_on(client))
}

/// Whether `client` gets many answers while this thread leaves the first processor to nobody. Where processors
/// run at the same time, the emulator may have no time for that one meanwhile: who asks has patience.
fn stays(client: &Actor) -> bool {
    rest();
    let before = client.count();
    (0..20_000).any(|_| {
        core::hint::spin_loop();
        client.count() > before + 20
    })
}

pub fn none_wrong() -> Verdict {
    verdict(cast::WRONG.load(Ordering::Relaxed) == 0, "a wrong answer")
}

fn stay(apart: bool) -> Verdict {
    for number in 1..processors() {
        let [server, client] = pair(Part::Talk, number, apart);
        let ran = goes_on(&client);
        let stays = (0..200).any(|_| stays(&client));
        client.stop();
        server.stop();
        verdict(ran, "they do not talk")?;
        verdict(stays, "each call comes to the first processor")?;
    }
    none_wrong()
}

/// Inside one space.
pub fn inside() -> Verdict {
    stay(false)
}

/// Between two.
pub fn between() -> Verdict {
    stay(true)
}

/// Of threads that use vector registers.
pub fn vectors() -> Verdict {
    kernel::use_vector_registers().map_err(|_| "the kernel was not told of vector registers")?;
    let found = stay(false);
    kernel::use_no_vector_registers().map_err(|_| "the kernel was not told of their end")?;
    found
}

/// Another client of the server is here.
pub fn interrupted() -> Verdict {
    let [server, client] = pair(Part::Talk, 1, true);
    for round in 0..300 {
        let msg = Msg::default().words(&[round]);
        let answer = ipc::call(server.id, &msg).map_err(|_| "a call failed")?;
        verdict(answer.get(0) == round, "another answer")?;
        verdict(round % 16 != 0 || counts_on(&client), "the other one stands still")?;
    }
    client.stop();
    server.stop();
    none_wrong()
}

/// One of the two is deleted.
pub fn deleted() -> Verdict {
    for round in 0..20 {
        let [server, client] = pair(Part::Talk, 1, round % 4 > 1);
        verdict(counts_on(&client), "they do not talk")?;
        let [first, second] = if round % 2 == 0 { [&server, &client] } else { [&client, &server] };
        first.stop();
        let before = client.count();
        (0..2).for_each(|_| crate::busy());
        // It may have had an answer that it has not counted yet: where processors run at the same
        // time it can be as late as the emulator likes.
        verdict(client.count() <= before + 1, "it is answered by nobody")?;
        second.stop();
    }
    none_wrong()
}

/// One of the two is halted, and its registers are read.
pub fn halted() -> Verdict {
    let [server, client] = pair(Part::Talk, 1, true);
    for round in 0..20 {
        verdict(counts_on(&client), "they do not talk")?;
        let one = if round % 2 == 0 { server.id } else { client.id };
        machine::halt(one, true);
        crate::busy();
        let before = client.count();
        crate::busy();
        verdict(client.count() <= before + 1, "one of them is halted, and both go on")?;
        machine::halt(one, false);
    }
    verdict(counts_on(&client), "they do not go on")?;
    client.stop();
    server.stop();
    none_wrong()
}

/// The tables of their spaces change.
pub fn unmapped() -> Verdict {
    let page = sigma0::memory(None, 12).ok_or("no page")?;
    let [server, client] = pair(Part::Talk, 1, false);
    for round in 0..100 {
        let _ = machine::read(page.base());
        machine::flush(Fpage::memory(page.base(), 12, Rights::RWX));
        verdict(round % 10 != 0 || counts_on(&client), "they do not go on")?;
    }
    client.stop();
    server.stop();
    none_wrong()
}

/// Somebody else computes there.
pub fn beside() -> Verdict {
    let [server, client] = pair(Part::Talk, 1, false);
    let hog = Actor::start(2, Part::Count, 1);
    let run = (0..3).all(|_| counts_on(&hog) && counts_on(&client));
    let _ = schedule::set_priority(hog.id, 50);
    rest();
    rest();
    let before = hog.count();
    let alone = goes_on(&client) && hog.count() == before;
    [client, server, hog].iter().for_each(Actor::stop);
    verdict(run, "one of them has no turn")?;
    verdict(alone, "the less urgent one has a turn")?;
    none_wrong()
}

/// The client sends strings, too, which no fast path there copies: the entry is made here as it was.
pub fn spelt() -> Verdict {
    for apart in [false, true] {
        let [server, client] = pair(Part::Spell, 1, apart);
        let ran = (0..30).all(|_| {
            let goes_on = counts_on(&client);
            // It has made the entry there and not yet here: it makes it again.
            crate::busy();
            machine::halt(client.id, true);
            machine::halt(client.id, false);
            goes_on
        });
        client.stop();
        server.stop();
        verdict(ran, "they do not go on")?;
    }
    none_wrong()
}

/// The client names threads that are none, as nobody but a program that means harm would.
pub fn forged() -> Verdict {
    let [server, client] = pair(Part::Forge, 1, true);
    let before = cast::ROUNDS.load(Ordering::Relaxed);
    let done = (0..1_000).any(|_| {
        rest();
        cast::ROUNDS.load(Ordering::Relaxed) > before
    });
    client.stop();
    server.stop();
    verdict(done, "it does not come to an end")?;
    none_wrong()
}

/// How long `reseat` computes, µs.
const COMPUTES_US: u64 = 3_000;

/// Loses its seat by a move, and gets another one with its next call.
pub fn reseat(place: usize, count: &AtomicU64) -> ! {
    loop {
        let _ = schedule::set_processor(runtime::thread::me(), 1);
        cast::talk(place, count);
        let until_us = clock::now_us() + COMPUTES_US;
        while clock::now_us() < until_us {
            core::hint::spin_loop();
        }
    }
}

/// An interrupt that comes while somebody gets a seat, on the way out of the kernel, is handled before somebody else
/// goes on for as long as he likes.
pub fn seated() -> Verdict {
    let server = Actor::start(0, Part::Serve, 1);
    Actor::calls(1, &server);
    let client = Actor::start(1, Part::Reseat, 1);
    let hog = Actor::start(2, Part::Count, 0);
    let _ = schedule::set_priority(hog.id, 50);
    let mut latest_us = 0;
    while client.count() < 300 {
        let before_us = clock::now_us();
        ipc::sleep(150);
        latest_us = latest_us.max(clock::now_us() - before_us);
    }
    [client, server, hog].iter().for_each(Actor::stop);
    direct_println!("smp: awake {latest_us} us later while somebody gets seats");
    none_wrong()?;
    // Elsewhere the emulator's own work is time.
    let is_soon = latest_us < COMPUTES_US / 2 || !clock::counts_instructions();
    verdict(is_soon, "who sleeps is woken when the other one makes its next entry")
}
