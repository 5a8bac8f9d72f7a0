//! Tables that change while whoever uses them stands still elsewhere (docs/decisions/0108).

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Fpage, MapItem, Rights, ThreadId, Time};
use root_harness::{Verdict, verdict};
use runtime::{Msg, ipc, sigma0};

use crate::cast::{Actor, OWN_ADDRESSES, Part};
use crate::machine;

/// Where a page is the only one below its entry of the root table.
const FAR: u64 = 1 << 40;
/// A port that has no effect when it is read.
pub const PORT: u16 = 0x80;
/// How long a fault may take to come.
const SOON: Time = Time::micros(100_000);

/// With the last page below an entry of the root table the tables go, too, and are another space's soon: whoever
/// stood still meanwhile has gone on without them.
pub fn far() -> Verdict {
    let near = &raw const OWN_ADDRESSES as u64;
    let go = |place: usize, address| OWN_ADDRESSES[place].store(address, Ordering::Relaxed);
    go(0, near);
    go(1, near);
    let actors = [Actor::start_apart(0, Part::Read, 1), Actor::start_apart(1, Part::Read, 0)];
    let [there, here] = &actors;
    verdict(there.counts_on(), "it does not run while this one does")?;
    for _ in 0..10 {
        let page = sigma0::memory(None, 12).ok_or("no page")?;
        go(0, FAR);
        give(there, page.base())?;
        verdict(there.counts_on(), "it does not read while this one runs")?;
        go(0, near);
        verdict(there.counts_on(), "it does not run while this one does")?;
        machine::flush(Fpage::memory(page.base(), 12, Rights::RWX));
        // Somebody else has a page there, by tables that were the other's a moment ago.
        let other = sigma0::memory(None, 12).ok_or("no page")?;
        go(1, FAR);
        give(here, other.base())?;
        go(0, FAR);
        let seen = there.count();
        crate::busy();
        verdict(there.count() <= seen + 1, "it reads what is somebody else's")?;
        go(1, near);
        let _ = ipc::receive(here.id, Time::micros(1_000));
        machine::flush(Fpage::memory(other.base(), 12, Rights::RWX));
    }
    actors.iter().for_each(Actor::stop);
    (0..2).for_each(|place| go(place, 0));
    Ok(())
}

/// Answers the fault of `actor` with the page at `page`.
fn give(actor: &Actor, page: u64) -> Verdict {
    let fault = ipc::receive(actor.id, SOON).map_err(|_| "no fault came")?;
    verdict(fault.get(0) & !0xFFF == FAR, "it faults elsewhere")?;
    let _ = machine::read(page);
    let whole = Fpage::memory(page, 12, Rights::RWX);
    ipc::send(actor.id, &Msg::default().map(MapItem::map(whole, FAR))).map_err(|_| "it is gone")
}

/// A task's ports are open to it on every processor, in a bitmap that each shows in tables of its own.
pub fn ports() -> Verdict {
    let computes = Actor::start(1, Part::Count, 1);
    verdict(computes.counts_on(), "nobody of the space runs there")?;
    // The space gets a bitmap of its own now.
    verdict(sigma0::ports(PORT, 0), "the port is not to be had")?;
    let reads = Actor::start(0, Part::ReadPort, 1);
    let run = (0..3).all(|_| reads.counts_on() && computes.counts_on());
    reads.stop();
    computes.stop();
    verdict(run, "it does not read the port while this one runs")
}

/// Calls `partner` for ever, when it has been called itself.
pub fn relay(partner: ThreadId) -> ! {
    let _ = ipc::wait(Time::NEVER);
    loop {
        let _ = ipc::call(partner, &Msg::default());
    }
}

/// Reads where the thread at `place` is told to, or the port if that is nowhere, when it has been called.
pub fn probe(place: usize, count: &AtomicU64) -> ! {
    let _ = ipc::wait(Time::NEVER);
    loop {
        let _ = match OWN_ADDRESSES[place].load(Ordering::Relaxed) {
            0 => machine::read_port(PORT),
            address => machine::read(address),
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether `actor` counts while this thread sleeps.
fn runs_on(actor: &Actor) -> bool {
    let before = actor.count();
    (0..20).any(|_| {
        ipc::sleep(5_000);
        actor.count() > before + 2
    })
}

/// Of four threads whose numbers are far from each other three have a place there: the space of the fourth, which
/// has ports by then, is none of those whose tables are looked at when they have stood still.
pub fn ports_of_others() -> Verdict {
    let go = |address| OWN_ADDRESSES[0].store(address, Ordering::Relaxed);
    let near = &raw const OWN_ADDRESSES as u64;
    go(near);
    verdict(sigma0::ports(PORT, 0), "the port is not to be had")?;
    let page = sigma0::memory(None, 12).ok_or("no page")?;
    let first = Actor::start_far(0, Part::Probe, 1, None);
    Actor::calls(1, &first);
    let second = Actor::start_far(1, Part::Relay, 1, Some(&first));
    Actor::calls(2, &second);
    let third = Actor::start_far(2, Part::Relay, 1, Some(&first));
    Actor::calls(3, &third);
    let other = Actor::start_far(3, Part::Relay, 1, None);
    ipc::send(other.id, &Msg::default()).map_err(|_| "it does not wait")?;
    verdict(runs_on(&first), "they do not call each other")?;
    go(FAR);
    give(&first, page.base())?;
    go(near);
    verdict(runs_on(&first), "it does not read its page")?;
    // The other space gets a bitmap of its own, and the tables of the first one change.
    let reads = Actor::start_beside(4, Part::ReadPort, 0, &other);
    let port = Msg::default().map(MapItem::map(Fpage::io(PORT, 0), 0));
    ipc::send(reads.id, &port).map_err(|_| "it does not ask for the port")?;
    verdict(runs_on(&reads), "it does not read its port")?;
    reads.stop();
    machine::flush(Fpage::memory(page.base(), 12, Rights::RWX));
    verdict(runs_on(&first), "it does not go on")?;
    go(0);
    let fault = ipc::receive(first.id, SOON);
    [other, third, second, first].iter().for_each(Actor::stop);
    verdict(fault.is_ok(), "it reads a port that is another space's")
}
