//! Threads that move while others want something of them, several that delete the same, and many that
//! want the same processor.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::id::{SYSTEM_BASE, USER_BASE};
use abi::{ThreadId, Time, utcb};
use root_harness::{Verdict, verdict};
use runtime::{Msg, ipc, kernel, schedule};

use crate::alone::end_turn;
use crate::cast::{self, Actor, PLACES, Part};
use crate::talks::{counts_on, none_wrong, rest};
use crate::{busy, clock, last, machine, processors};

/// Whom those concern who move or delete somebody.
static VICTIM: AtomicU64 = AtomicU64::new(0);

/// A thread number that nobody has.
const FREE_NUMBER: u32 = USER_BASE + 800;
/// Rounds of a test.
const ROUNDS: u64 = 40;
/// Rounds of one in which this thread waits for others.
const FEW: u64 = 8;
/// How long somebody stays who is moved about, µs.
const STAY_US: u64 = 300;
/// How long a conversation is looked at, µs.
const LOOK_US: u64 = 20_000;

/// Whoever moves others moves `victim`.
pub fn set_victim(victim: &Actor) {
    VICTIM.store(victim.id.0, Ordering::Relaxed);
}

/// Calls `server` and looks at the answer.
fn ask(server: &Actor, round: u64) -> Verdict {
    let answer = ipc::call(server.id, &Msg::default().words(&[round]));
    verdict(answer.is_ok_and(|msg| msg.get(0) == round), "another answer")
}

fn stop(actors: &[Actor]) -> Verdict {
    actors.iter().for_each(Actor::stop);
    none_wrong()
}

/// Somebody who waits moves, and is found where it is.
pub fn waiting() -> Verdict {
    let server = Actor::start(0, Part::Serve, 0);
    for round in 0..ROUNDS {
        ask(&server, round)?;
        let moved = schedule::set_processor(server.id, round as u32 % processors());
        verdict(moved.is_ok(), "who waits does not move")?;
        let found = machine::read_utcb(server.local().0, utcb::PROCESSOR_NO);
        verdict(found == round % u64::from(processors()), "its own word says something else")?;
    }
    stop(&[server])
}

/// This thread moves itself, and is there when the call returns.
pub fn oneself() -> Verdict {
    let server = Actor::start(0, Part::Serve, 0);
    for round in 0..ROUNDS {
        let number = round % u64::from(processors());
        let moved = schedule::set_processor(ThreadId::ROOT, number as u32);
        let own = machine::read_utcb(runtime::utcb::pointer(), utcb::PROCESSOR_NO);
        let asked = ask(&server, round);
        let back = schedule::set_processor(ThreadId::ROOT, 0);
        verdict(moved.is_ok() && back.is_ok(), "this thread does not move")?;
        verdict(own == number, "it is elsewhere")?;
        asked?;
    }
    stop(&[server])
}

/// Somebody is moved to and fro while another thread calls it for ever.
pub fn called() -> Verdict {
    let server = Actor::start(0, Part::Serve, 0);
    Actor::calls(1, &server);
    for home in [0, last()] {
        let client = Actor::start(1, Part::Talk, home);
        VICTIM.store(server.id.0, Ordering::Relaxed);
        let mover = Actor::start(2, Part::Move, 1);
        let goes_on = (0..4).all(|_| counts_on(&client) && counts_on(&mover));
        stop(&[mover, client])?;
        verdict(goes_on, "one of them stands still")?;
    }
    stop(&[server])
}

/// Somebody who is halted moves, stays halted, and goes on where it is.
pub fn halted() -> Verdict {
    let actor = Actor::start(0, Part::Count, last());
    for round in 0..FEW {
        let number = round % u64::from(processors());
        verdict(counts_on(&actor), "it does not run")?;
        machine::halt(actor.id, true);
        let before = actor.count();
        let moved = (0..=number).all(|to| schedule::set_processor(actor.id, to as u32).is_ok());
        rest();
        busy();
        verdict(moved && actor.count() == before, "it does not move, or counts on, halted")?;
        let found = machine::read_utcb(actor.local().0, utcb::PROCESSOR_NO);
        verdict(found == number, "its own word says something else")?;
        machine::halt(actor.id, false);
    }
    stop(&[actor])
}

/// A thread that does not run yet moves to and fro, is deleted, and a next one has its number.
pub fn inactive() -> Verdict {
    for round in 0..ROUNDS {
        let id = ThreadId::global(FREE_NUMBER, round as u32 + 1);
        let made = kernel::create(id, ThreadId::ROOT, ThreadId::ROOT, !0);
        verdict(made.is_ok(), "the kernel makes no thread")?;
        let moved = (0..processors()).rev().all(|to| schedule::set_processor(id, to).is_ok());
        let back = round % 2 == 0 || schedule::set_processor(id, last()).is_ok();
        let deleted = kernel::delete(id).is_ok();
        verdict(moved && back, "it does not move")?;
        verdict(deleted && !exists(id), "it is there, deleted")?;
    }
    none_wrong()
}

/// Nobody is moved by the id of one that is deleted, of another version, of an interrupt or of the kernel's own
/// threads, wherever to.
pub fn nobody() -> Verdict {
    let server = Actor::start(0, Part::Serve, last());
    let gone = Actor::start(1, Part::Count, last());
    gone.stop();
    let number = server.id.number();
    let versions = [server.id.version() + 1, server.id.version() ^ 1 << 20];
    let others = versions.map(|version| ThreadId::global(number, version));
    let kernels = [SYSTEM_BASE, SYSTEM_BASE + 1];
    let numbers = (0..18).chain(kernels).chain([FREE_NUMBER, gone.id.number(), 0x3_FFFF]);
    let numbered =
        numbers.flat_map(|number| [1, 2].map(|version| ThreadId::global(number, version)));
    let ids = [ThreadId::NIL, ThreadId::ANY, ThreadId::irq(4), ThreadId::irq(2), gone.id];
    for id in numbered
        .filter(|id| ![ThreadId::SIGMA0, ThreadId::ROOT].contains(id))
        .chain(others)
        .chain(ids)
    {
        for to in [0, 1, last(), processors(), 63, 255, 256, 0xFFFF] {
            verdict(schedule::set_processor(id, to).is_err(), "somebody who is nobody moves")?;
        }
    }
    ask(&server, 1)?;
    stop(&[server])
}

/// Somebody is deleted while another thread moves it.
pub fn deleted() -> Verdict {
    let mover = Actor::start(2, Part::Move, 1);
    for round in 0..FEW {
        let part = if round % 2 == 0 { Part::Count } else { Part::Serve };
        let victim = Actor::start(0, part, round as u32 % processors());
        VICTIM.store(victim.id.0, Ordering::Relaxed);
        verdict(counts_on(&mover), "nobody moves it")?;
        victim.stop();
        verdict(!exists(victim.id), "it is there, deleted")?;
        let before = victim.count();
        verdict(counts_on(&mover) && victim.count() == before, "it counts on, deleted")?;
    }
    stop(&[mover])
}

/// Whether there is such a thread.
fn exists(id: ThreadId) -> bool {
    schedule::set_processor(id, 0).is_ok()
}

/// Two threads, on as many processors as there are others, delete the same one.
fn delete_twice(start: fn(usize, Part, u32) -> Actor) -> Verdict {
    VICTIM.store(0, Ordering::Relaxed);
    let both = [Actor::start(1, Part::Delete, 1), Actor::start(2, Part::Delete, last())];
    for round in 0..FEW {
        let victim = start(0, Part::Count, round as u32 % processors());
        let before = both.each_ref().map(Actor::count);
        VICTIM.store(victim.id.0, Ordering::Relaxed);
        let done = || both.iter().zip(before).all(|(one, before)| one.count() > before);
        let deleted = (0..400).any(|_| {
            rest();
            done()
        });
        verdict(deleted, "one of them does not come back")?;
        verdict(!exists(victim.id), "it is there, deleted twice")?;
    }
    stop(&both)
}

/// A thread of this task.
pub fn deleted_twice() -> Verdict {
    delete_twice(Actor::start)
}

/// A task.
pub fn task_deleted_twice() -> Verdict {
    delete_twice(Actor::start_apart)
}

/// Two threads on different processors delete each other: one of them does.
pub fn deleted_by_each_other() -> Verdict {
    for round in 0..FEW {
        VICTIM.store(0, Ordering::Relaxed);
        let homes = [round as u32 % processors(), last()];
        let both: [Actor; 2] =
            core::array::from_fn(|place| Actor::start(place, Part::DeletePartner, homes[place]));
        Actor::calls(0, &both[1]);
        Actor::calls(1, &both[0]);
        VICTIM.store(1, Ordering::Relaxed);
        let done = (0..400).any(|_| {
            rest();
            both.iter().any(|one| one.count() > 0)
        });
        verdict(done, "neither comes back")?;
        let (count, left) = (|one: &Actor| one.count(), both.iter().filter(|one| exists(one.id)));
        let (deleted, left) = (both.iter().map(count).sum::<u64>(), left.count());
        verdict(deleted == 1 && left == 1, "both are deleted, or none")?;
        stop(&both)?;
    }
    Ok(())
}

/// How many calls `client` makes in a while in which this thread leaves the processor to others.
fn calls_of(client: &Actor) -> u64 {
    let (before, begin) = (client.count(), clock::now_us());
    while clock::now_us() - begin < LOOK_US {
        rest();
    }
    client.count() - before
}

/// Many clients call a server on a processor where two others talk with each other.
pub fn flooded() -> Verdict {
    let quiet = Actor::start(0, Part::Serve, 1);
    Actor::calls(1, &quiet);
    let talker = Actor::start(1, Part::Talk, 1);
    verdict(counts_on(&talker), "they do not talk")?;
    let alone = calls_of(&talker);
    let server = Actor::start(2, Part::Serve, 1);
    let flood: [Actor; 4] = core::array::from_fn(|index| {
        Actor::calls(3 + index, &server);
        Actor::start(3 + index, Part::Talk, [0, last()][index % 2])
    });
    let each_is_served = flood.iter().all(counts_on);
    let beside = calls_of(&talker);
    let again = flood.iter().all(counts_on);
    stop(&flood)?;
    stop(&[talker, quiet, server])?;
    verdict(each_is_served && again, "one who floods is not served")?;
    // Where nothing is counted the emulator may have no time for them.
    let is_a_share = beside * 4 > alone || !clock::counts_instructions();
    verdict(beside > 0 && is_a_share, "the others have lost their share")
}

/// Moves whoever the victim is from processor to processor, for ever, and leaves it time to do something
/// where it is.
pub fn move_about(count: &AtomicU64) -> ! {
    loop {
        let round = count.fetch_add(1, Ordering::Relaxed);
        let victim = ThreadId(VICTIM.load(Ordering::Relaxed));
        let _ = schedule::set_processor(victim, round as u32 % processors());
        ipc::sleep(STAY_US);
    }
}

/// Deletes each victim, once.
pub fn delete(count: &AtomicU64) -> ! {
    let (mut last, mut looks) = (0, 0);
    loop {
        let victim = VICTIM.load(Ordering::Relaxed);
        if victim != last {
            last = victim;
            if kernel::delete(ThreadId(victim)).is_err() {
                cast::WRONG.fetch_add(1, Ordering::Relaxed);
            }
            count.fetch_add(1, Ordering::Relaxed);
        }
        looks += 1;
        end_turn(looks);
    }
}

/// Deletes `partner` when there is a victim, and counts that.
pub fn delete_partner(partner: ThreadId, count: &AtomicU64) -> ! {
    while VICTIM.load(Ordering::Acquire) == 0 {
        spin_loop();
    }
    if kernel::delete(partner).is_ok() {
        count.fetch_add(1, Ordering::Relaxed);
    }
    loop {
        ipc::sleep(LOOK_US);
    }
}

/// Vector registers are kept while their owners move.
pub fn vectors() -> Verdict {
    kernel::use_vector_registers().map_err(|_| "the kernel was not told of vector registers")?;
    let kept = vectors_kept();
    kernel::use_no_vector_registers().map_err(|_| "the kernel was not told of their end")?;
    kept
}

fn vectors_kept() -> Verdict {
    let actors: [Actor; PLACES] =
        core::array::from_fn(|place| Actor::start(place, Part::Hold, 1 + place as u32 % last()));
    for round in 0..60 {
        machine::leave(round);
        busy();
        let _ = schedule::set_processor(actors[0].id, round as u32 % processors());
        let _ = ipc::receive(runtime::thread::me(), Time::micros(500));
    }
    actors.iter().for_each(Actor::stop);
    verdict(cast::WRONG.load(Ordering::Relaxed) == 0, "somebody else's word was there")
}
