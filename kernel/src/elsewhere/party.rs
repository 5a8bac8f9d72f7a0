//! Parties: threads of one other processor that are there at the same time, one of which runs
//! while the others wait for it or for anybody (docs/decisions/0060-conversations-stay.md).
//!
//! While a thread is in a party, what the fast paths read and write of it is its *shadow*, in a
//! seat of that processor; its tcb here says that it is seated, and whoever wants to know
//! more ([`rendezvous::waits`]) or to change it calls the whole party back first. A party is closed:
//! nobody in it waits for anybody outside. So no deletion outside concerns it.
//!
//! Everything here is the first processor's, with interrupts off, and nothing of a party that
//! is out is looked at but whether somebody belongs to it.

use core::cell::Cell;

use abi::ThreadId;
use abi::id::USER_BASE;

use super::other::Other;
use super::queueing::{self, lookup};
use super::seat::Seats;
use super::{hidden, procedure_calls};
use crate::arch::{cpu, preemption};
use crate::between::SEATS;
use crate::between::set::bits;
use crate::elsewhere::visits;
use crate::mem::RootWord;
use crate::space::SpaceRef;
use crate::thread;
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::thread::state::State;
use crate::thread::tcb::{ELSEWHERE, Resume, USES_VECTOR};
use crate::thread::{Kind, TcbRef};

/// In place of seats: whoever is there may hand over to others in user mode ([`hidden`]).
const HIDES: u8 = 1 << 7;
const _: () = assert!(SEATS < 7);

/// Who is on a processor together.
pub struct Party {
    pub(super) seats: Seats,
    /// Who is there: a bit for each seat, or [`HIDES`]. None: whoever is there is alone.
    out: Cell<u8>,
}

impl Party {
    /// Nobody.
    pub(super) const fn new() -> Self {
        Self { seats: Seats::new(), out: Cell::new(0) }
    }

    fn is_out(&self, seat: usize) -> bool {
        self.out.get() >> seat & 1 != 0
    }

    /// Whether whoever is there may hand over to others in user mode.
    #[inline(always)]
    pub(super) fn hides(&self) -> bool {
        self.out.get() == HIDES
    }

    /// Whether those who are out have seats.
    pub(super) fn is_together(&self) -> bool {
        self.out.get() & !HIDES != 0
    }

    /// Those who are out, with their seats.
    fn members(&self) -> impl Iterator<Item = (usize, TcbRef)> {
        let seats = bits((self.out.get() & !HIDES).into());
        seats.filter_map(|seat| Some((seat as usize, self.seats.owner(seat as usize)?)))
    }

    /// Whether `thread` is out.
    pub(super) fn has(&self, thread: TcbRef) -> bool {
        self.members().any(|(_, member)| member == thread)
    }

    /// Whether anybody of `space` is out.
    pub(super) fn has_space(&self, space: SpaceRef) -> bool {
        self.out.get() != 0 && self.members().any(|(_, member)| member.space() == Some(space))
    }

    /// The lowest priority of those who are out.
    pub(super) fn least(&self) -> Option<u8> {
        self.members().map(|(_, member)| member.priority.get()).min()
    }

    /// The highest.
    pub(super) fn most(&self) -> Option<u8> {
        self.members().map(|(_, member)| member.priority.get()).max()
    }

    /// Whether somebody with a seat may come to processor `number` with `guest`. Whomever it has
    /// called last has one.
    fn has_company(&self, guest: TcbRef, number: u32) -> bool {
        let called = thread::lookup(guest.partner.get());
        let has_called = called.is_some_and(|called| {
            called != guest && may_come(called, number) && self.seat_of(called).is_some()
        });
        let calls = |it: TcbRef| it.partner.get() == guest.id.get() && may_come(it, number);
        has_called || self.seats.taken().filter_map(|(_, id)| thread::lookup(id)).any(calls)
    }

    /// Somebody on processor `number` of at least the priority `least` who has a place there, and
    /// waits for one of those who are out, or for anybody and has been called by one of them.
    fn next_member(&self, number: u32, least: u8) -> Option<(usize, RootWord)> {
        let mut others = self.seats.taken().filter(|(seat, _)| !self.is_out(*seat));
        others.find_map(|(seat, id)| {
            let thread = lookup(id).filter(|thread| may_come(*thread, number))?;
            let fits = procedure_calls::priority(thread) >= least
                && self.members().any(|(_, member)| is_wanted(thread, member));
            if fits { place(number, seat, thread).map(|root| (seat, root)) } else { None }
        })
    }

    /// A seat for `thread`, not that of one who is out; none if its space cannot pay for it.
    fn seat_of(&self, thread: TcbRef) -> Option<usize> {
        let number = thread.processor.get().into();
        self.seats.of(number, thread, |seat| self.is_out(seat), waits_for_others)
    }
}

/// Whether `thread`, which waits, does so for `member`, or for anybody and has been called by it.
fn is_wanted(thread: TcbRef, member: TcbRef) -> bool {
    match thread.partner.get() {
        ThreadId::ANY => member.partner.get() == thread.id.get(),
        partner => member.id.get() == partner,
    }
}

/// Whether `thread`, whose processor is another, waits in such a way that a fast path could end
/// it, whom it waits for apart.
fn waits_plainly(thread: TcbRef) -> bool {
    let partner = thread.partner.get();
    let is_users = partner.is_global() && partner.number() >= USER_BASE;
    rendezvous::plain_wait(thread).is_some()
        && (partner == ThreadId::ANY || is_users)
        && thread.kind.get() == Kind::User
        && thread.resume.get() == Resume::Ipc
        && thread.wake_at_us.get() == 0
        && !thread.halted.get()
        && thread.senders.is_empty()
        && thread.lines.get() == 0
        && thread.transfer.part.get().is_none()
}

/// The same, or for a procedure call's return, or as a host for a call.
fn waits_for_others(thread: TcbRef) -> bool {
    waits_plainly(thread) || procedure_calls::waits(thread)
}

/// Whether `thread` is one whom the fast paths of its processor may meet.
fn is_usual(thread: TcbRef) -> bool {
    let special = thread.special.get();
    let has_path = special == ELSEWHERE || thread::has_vector_gate();
    special & !USES_VECTOR == ELSEWHERE && has_path && !thread.is_foreign()
}

/// `thread`, whose processor is another, has begun to wait: if it waits for one of its like, it gets
/// a seat.
pub(super) fn remember(thread: TcbRef) {
    let Some(other) = visits::other(thread.processor.get().into()) else { return };
    if !is_usual(thread) || !waits_for_others(thread) || !visits::may_meet() {
        return;
    }
    let is_near = |it: TcbRef| it.processor.get() == thread.processor.get();
    if thread::lookup(thread.partner.get()).is_some_and(is_near) {
        let _ = other.party.seat_of(thread);
    }
}

/// `guest` is about to go to processor `number`: those with whom it talks come with it. Whether
/// there is anybody.
pub(super) fn invite(number: u32, other: &Other, guest: TcbRef) -> bool {
    let party = &other.party;
    visits::alone(number);
    if !is_usual(guest) {
        let hides = guest.is_armed() && hidden::goes(other, guest);
        if hides {
            party.out.set(HIDES);
        }
        return hides;
    }
    if other.keeps_to_itself() || !party.has_company(guest, number) {
        return false;
    }
    // What led here may have chosen a seat for somebody else, and all home.
    preemption::let_in();
    let Some(seat) = party.seat_of(guest) else { return false };
    let mut roots = [RootWord::default(); SEATS];
    let Some(root) = place(number, seat, guest) else { return false };
    roots[seat] = root;
    party.out.set(1 << seat);
    let least = other.first().map_or(0, |first| first.priority.get());
    // Until nobody else has to do with one of them. To look at all seats once is some hundreds of instructions.
    while let Some((seat, root)) = party.next_member(number, least) {
        roots[seat] = root;
        party.out.set(party.out.get() | 1 << seat);
        preemption::let_in();
    }
    if party.out.get() == 1 << seat {
        party.out.set(0);
        return false;
    }
    send(number, party, guest, &roots);
    visits::together(number, seat);
    true
}

/// Whether `thread` may be in a party on processor `number` as one who waits.
#[inline(always)] // most live elsewhere
fn may_come(thread: TcbRef, number: u32) -> bool {
    u32::from(thread.processor.get()) == number && can_come(thread)
}

/// Whether `thread` may be in a party on its processor as one who waits.
#[inline(never)]
fn can_come(thread: TcbRef) -> bool {
    // The registers of the current one may not be saved yet.
    is_usual(thread) && waits_for_others(thread) && thread != thread::current()
}

/// Shows the shadow of `thread` on processor `number`; what its space is entered with there.
fn place(number: u32, seat: usize, thread: TcbRef) -> Option<RootWord> {
    let space = thread.space()?;
    // At a number there is never a shadow of another: whoever chose the id that is compared could
    // make it seem to wait.
    let shadow = visits::shadow(number, seat);
    shadow.id.set(thread.id.get());
    rendezvous::forbid_armed(shadow);
    rendezvous::set_busy(shadow, Busy::Halted);
    // A room comes last: the processor looks at the tables of all that have one, and those of a space of which nobody
    // comes are not kept for it.
    if visits::show(number, seat, thread.id.get().number()) {
        visits::room(number, space)
    } else {
        None
    }
}

/// Fills the shadows of those who are out; nobody meets the others.
fn send(number: u32, party: &Party, guest: TcbRef, roots: &[RootWord; SEATS]) {
    for (seat, _) in party.seats.taken().filter(|(seat, _)| !party.is_out(*seat)) {
        rendezvous::set_busy(visits::shadow(number, seat), Busy::Halted);
    }
    for (seat, thread) in party.members() {
        let shadow = visits::shadow(number, seat);
        fill(shadow, thread);
        shadow.root.set(roots[seat]);
        match thread.partner.get() {
            _ if thread == guest => {
                visits::copy_frame(thread, shadow);
                rendezvous::set_busy(shadow, Busy::Ready);
            }
            partner => match State::seen(thread) {
                State::Calls => rendezvous::set_busy(shadow, Busy::Calls),
                State::Lent => rendezvous::set_busy(shadow, Busy::Lent),
                _ if partner == ThreadId::ANY => rendezvous::set_open(shadow),
                _ => rendezvous::set_closed(shadow, partner),
            },
        }
        if shadow.special.get() != 0 {
            rendezvous::seal(shadow);
        }
    }
    copy_records(number, party);
    for (_, thread) in party.members() {
        // Who waits may still be queued here (1993, 5.3.4), and comes back to another queue.
        queueing::remove(&cpu().scheduler.ready, thread);
        rendezvous::set_seated(thread);
    }
}

/// Those who call each other's procedures have copies of the records between them.
fn copy_records(number: u32, party: &Party) {
    for (seat, host) in party.members() {
        let Some((record, client)) = procedure_calls::pair(host) else { continue };
        let Some((own, _)) = party.members().find(|(_, member)| *member == client) else {
            continue;
        };
        let shadow = visits::shadow(number, seat);
        // One that waits would make the party seem less urgent than it is, copy or not: it has come along as one of
        // this priority, and would be called back for somebody who may not come before it.
        host.priority.set(procedure_calls::priority(host));
        shadow.priority.set(host.priority.get());
        let Some(page) = party.seats.linkages(number, own) else { continue };
        let Some(copy) = page.beside(record) else { continue };
        procedure_calls::copy(record, copy, host, client);
        shadow.linkage.set(copy.word());
        visits::shadow(number, own).linkages.set(page.word());
    }
}

/// What the fast paths see of `thread`.
fn fill(shadow: TcbRef, thread: TcbRef) {
    shadow.id.set(thread.id.get());
    shadow.partner.set(thread.partner.get());
    for (to, from) in [
        (&shadow.utcb, &thread.utcb),
        (&shadow.utcb_k, &thread.utcb_k),
        (&shadow.ip, &thread.ip),
        (&shadow.sp, &thread.sp),
        (&shadow.flags, &thread.flags),
        (&shadow.vector_area, &thread.vector_area),
        (&shadow.vector_initial, &thread.vector_initial),
        (&shadow.vector_from, &thread.vector_from),
    ] {
        to.set(from.get());
    }
    // Somebody may wait to send to the one that runs.
    shadow.open_from.set(thread.open_from.get());
    shadow.resume.set(Resume::Ipc);
    shadow.kind.set(Kind::User);
    shadow.special.set(thread.special.get() & USES_VECTOR);
    shadow.priority.set(thread.priority.get());
    // Until it is known of whose record there is a copy.
    shadow.linkages.set(0);
    shadow.linkage.set(0);
}

/// The party of processor `number` is back, its shadows are the first processor's again: what
/// has become of everybody. Who of them runs, whose registers are in its frame; `None` if
/// there was no party.
#[inline(always)]
pub(super) fn home(number: u32, other: &Other) -> Option<TcbRef> {
    if other.party.out.get() == 0 { None } else { all_home(number, other) }
}

/// The same for a party.
#[inline(never)]
fn all_home(number: u32, other: &Other) -> Option<TcbRef> {
    let party = &other.party;
    if party.hides() {
        party.out.set(0);
        return other.guest.get().map(hidden::come_home);
    }
    let mut runner = None;
    for (seat, thread) in party.members() {
        let shadow = visits::shadow(number, seat);
        thread.ip.set(shadow.ip.get());
        thread.sp.set(shadow.sp.get());
        thread.flags.set(shadow.flags.get());
        thread.vector_from.set(shadow.vector_from.get());
        // A host goes on with its caller's.
        thread.priority.set(shadow.priority.get());
        procedure_calls::come_home(thread, shadow);
        match rendezvous::peek(shadow) {
            Waits::Open => waits(thread, ThreadId::ANY, Busy::Waiting),
            Waits::Closed(partner) => waits(thread, partner, Busy::Waiting),
            Waits::Busy(busy @ (Busy::Calls | Busy::Lent)) => {
                waits(thread, thread.partner.get(), busy);
            }
            _ => {
                visits::copy_frame(shadow, thread);
                thread.fault_address.set(shadow.fault_address.get());
                thread.resume.set(Resume::Frame);
                rendezvous::set_away(thread);
                runner = Some(thread);
            }
        }
    }
    party.out.set(0);
    runner
}

fn waits(thread: TcbRef, partner: ThreadId, busy: Busy) {
    thread.partner.set(partner);
    thread.resume.set(Resume::Ipc);
    rendezvous::set_busy(thread, busy);
}
