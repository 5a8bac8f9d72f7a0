//! Who has the seats of a processor, and who pays for them
//! (docs/decisions/0124-who-sits-pays-for-the-seat.md).
//!
//! A seat is a frame for the shadow of whoever has it, and one for copies of linkage records once some are
//! needed. The owner's space pays for both until the thread is deleted, is moved, gets another name, or
//! loses the seat to somebody else. Who cannot pay has none, and is in no party.
//!
//! Everything here is the first processor's, with interrupts off. No frame is freed while a party is there.

use core::cell::Cell;

use abi::ThreadId;
use abi::inspect::Back;

use super::queueing::lookup;
use super::{call_back, for_each};
use crate::between::SEATS;
use crate::elsewhere::visits;
use crate::mem::NoMemory;
use crate::sched::leaving::look_soon;
use crate::space::SpaceRef;
use crate::thread::{self, LinkagesRef, TcbRef};

/// Who has them.
pub(super) struct Seats {
    /// Whose each is, there or not.
    ids: [Cell<ThreadId>; SEATS],
    /// Who pays for it; none: it is nobody's, and has no frame.
    payers: [Cell<Option<SpaceRef>>; SEATS],
    /// The one that is taken next from its owner.
    next: Cell<usize>,
}

impl Seats {
    /// They are nobody's.
    pub(super) const fn new() -> Self {
        Self {
            ids: [const { Cell::new(ThreadId::NIL) }; SEATS],
            payers: [const { Cell::new(None) }; SEATS],
            next: Cell::new(0),
        }
    }

    /// Those that are somebody's, with whose they are.
    pub(super) fn taken(&self) -> impl Iterator<Item = (usize, ThreadId)> {
        let ids = self.ids.iter().map(Cell::get).enumerate();
        ids.filter(|(_, id)| !id.is_nil())
    }

    /// Whose `seat` is.
    pub(super) fn owner(&self, seat: usize) -> Option<TcbRef> {
        thread::lookup(self.ids[seat % SEATS].get())
    }

    /// A seat on processor `number` for `thread`, which is paid: its own, one whose owner is not here any
    /// more, one of somebody who does not wait, or the next in turn; not one that `is_out`.
    pub(super) fn of(
        &self,
        number: u32,
        thread: TcbRef,
        is_out: impl Fn(usize) -> bool,
        waits: fn(TcbRef) -> bool,
    ) -> Option<usize> {
        let free = || (0..SEATS).filter(|seat| !is_out(*seat));
        let first = self.next.get();
        let rank = |seat: &usize| match self.ids[*seat].get() {
            ThreadId::NIL => 0,
            id if !lookup(id).is_some_and(waits) => 1,
            _ => 2 + (SEATS + seat - first) % SEATS,
        };
        let own = free().find(|seat| self.ids[*seat].get() == thread.id.get());
        let seat = own.or_else(|| {
            let seat = free().min_by_key(rank)?;
            if rank(&seat) >= 2 {
                self.next.set((first + 1) % SEATS);
            }
            Some(seat)
        })?;
        self.pay(number, seat, thread.space()?).ok()?;
        self.ids[seat].set(thread.id.get());
        Some(seat)
    }

    /// `space` pays for `seat` from now on.
    fn pay(&self, number: u32, seat: usize, space: SpaceRef) -> Result<(), NoMemory> {
        match self.payers[seat].get() {
            Some(payer) if payer == space => return Ok(()),
            Some(payer) => {
                // The frame stays where it is: whoever is there may still see it.
                space.quota().reserve(1)?;
                payer.quota().release(1);
                // Of somebody who is not there nobody sees this one.
                let page = visits::take_linkages(number, seat);
                page.into_iter().for_each(|page| payer.quota().give_back(page));
            }
            None => visits::put_up(number, seat, space.quota().take_zeroed_frame()?),
        }
        self.payers[seat].set(Some(space));
        Ok(())
    }

    /// Where copies of the linkage records of whoever has `seat` are; none if its space cannot pay for that.
    pub(super) fn linkages(&self, number: u32, seat: usize) -> Option<LinkagesRef> {
        visits::linkages(number, seat).or_else(|| {
            let page = self.payers[seat].get()?.quota().take_zeroed_frame().ok()?;
            visits::put_up_linkages(number, seat, page);
            visits::linkages(number, seat)
        })
    }

    /// `seat` is nobody's.
    fn vacate(&self, number: u32, seat: usize) {
        self.ids[seat].set(ThreadId::NIL);
        if let Some(payer) = self.payers[seat].take() {
            let frames = [visits::take_linkages(number, seat), visits::take_down(number, seat)];
            frames.into_iter().flatten().for_each(|frame| payer.quota().give_back(frame));
        }
    }

    /// Whether each is that of somebody whose processor is number `number` and whose space pays for it; for the
    /// checker.
    pub(super) fn are_sound(&self, number: u32) -> bool {
        self.ids.iter().zip(&self.payers).enumerate().all(|(seat, (id, payer))| {
            let owner = lookup(id.get());
            let lives_there = |it: TcbRef| u32::from(it.processor.get()) == number;
            let payer = payer.get();
            let is_paid =
                owner.map_or(payer.is_none(), |it| lives_there(it) && it.space() == payer);
            is_paid && visits::is_up(number, seat) == payer.is_some()
        })
    }
}

/// `thread`, which is here, is being deleted, or moves, or gets another name: it has no seat any more.
pub fn leave_seat(thread: TcbRef) {
    let number = thread.processor.get().into();
    let Some(other) = visits::other(number) else { return };
    let seats = &other.party.seats;
    let own = seats.taken().find(|(_, id)| *id == thread.id.get());
    if let Some((seat, _)) = own {
        if other.party.is_together() {
            let _ = call_back(number, other, Back::Control);
            look_soon();
        }
        seats.vacate(number, seat);
    }
}

/// How many frames `space` pays for as seats; `claim` is told each one's address.
pub fn frames_of_seats(space: SpaceRef, mut claim: impl FnMut(u64)) -> u64 {
    let mut count = 0;
    for_each(|number, other| {
        let payers = other.party.seats.payers.iter().enumerate();
        for (seat, _) in payers.filter(|(_, payer)| payer.get() == Some(space)) {
            for frame in visits::frames_of_seat(number, seat).into_iter().flatten() {
                claim(frame.address());
                count += 1;
            }
        }
    });
    count
}
