//! Address spaces and threads of programs. A space begins with its first thread and
//! ends with its last one, as X.2 has it; a `SpaceId` is the number of its first thread.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::inspect::What;
use abi::{CallError, Fpage, Numbers, Rights, ThreadId, Time};
use runtime::{kernel, schedule, thread};
use unix::Errno;
use unix::machine::{MachineThread, Share, SpaceId, Urgency};
use unix::thread::{Doing, Thread};

use crate::turns;

/// Where a program's UTCBs are: above all addresses that programs get.
const UTCBS: u64 = 0x7FFF_F000_0000;
/// Log2 size of the area: 1,024 UTCBs.
const UTCB_BITS: u32 = 20;
const UTCB_BYTES: u64 = 1024;
/// Where the kernel interface page is: behind it, where it needs no page table of its own.
const KIP: u64 = UTCBS + (1 << UTCB_BITS);
/// Kernel memory that a space gets for further threads when what it has is used up, pages.
const QUOTA_STEP: u64 = 24;
/// What the kernel gives a new space, if its creator has twice as much, pages.
const GIFT: i64 = 64;
/// Kernel memory for programs, pages: in all, and what is left of it.
static KERNEL_MEMORY: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Reads that.
pub fn kernel_gauge() -> (u64, u64) {
    let [total, left] = &KERNEL_MEMORY;
    (total.load(Relaxed), left.load(Relaxed))
}

/// Programs have so many pages more (or less).
fn given(pages: i64) {
    let left = &KERNEL_MEMORY[1];
    left.store(left.load(Relaxed).saturating_add_signed(-pages), Relaxed);
}

/// A new space, that of `id`, has `pages` of kernel memory instead of what the kernel gave it.
fn allot(id: ThreadId, pages: u64) -> kernel::Result<()> {
    let (limit, _) = kernel::move_quota(id, pages as i64 - GIFT)?;
    if limit == pages {
        return Ok(());
    }
    // There was less to give.
    kernel::move_quota(id, pages as i64 - limit as i64).map(|_| ())
}

/// Ticks of the kernel in a turn of a program that has not asked for anything else: its slice of time (X.2 5.5).
const TURN_TICKS: u32 = 10;
const TICK_US: u64 = 1_000;

/// What is known of a thread number.
#[derive(Default)]
struct Slot {
    /// Its id while it exists.
    id: Cell<ThreadId>,
    /// Times it was used: part of the version. `None`: an earlier life of this server knows.
    uses: Cell<Option<u32>>,
    /// The library's thread.
    thread: RefCell<Option<Rc<Thread>>>,
    /// Space and UTCB slot.
    space: Cell<u32>,
    utcb: Cell<u16>,
    /// Time stamps it was charged with.
    pub ticks: Cell<u64>,
    /// Those in which the server worked for it.
    system_ticks: Cell<u64>,
    /// Those of them that it has had since others last had their turn.
    owed_ticks: Cell<u64>,
    /// Microseconds that the kernel had counted when it was last asked.
    counted_us: Cell<u64>,
    /// Ticks in a turn of it.
    turn_ticks: Cell<u32>,
}

impl Slot {
    /// How often `number` was used, earlier lives of this server included.
    fn uses_of(&self, number: u32) -> u32 {
        let ask = || kernel::number(number).map_or(0, |(_, last)| last >> 6);
        self.uses.get().unwrap_or_else(ask)
    }

    /// Microseconds of the kernel's count since the last time.
    fn used_lately(&self) -> u64 {
        let record = kernel::inspect(What::Time, self.id.get().0, 0);
        let now_us = record.map_or(0, |words| words[1]);
        now_us.saturating_sub(self.counted_us.replace(now_us))
    }
}

/// A space with threads.
struct Space {
    /// Ids of its threads; one of them names the space in ThreadControl.
    threads: Vec<ThreadId>,
    /// UTCB slots in use.
    utcbs: Vec<u64>,
    /// Pages of kernel memory that it gets, and whether it has them.
    pages: u64,
    is_fed: bool,
}

/// All spaces and threads of programs.
pub struct Tasks {
    /// The thread numbers that this task owns.
    numbers: Numbers,
    slots: Vec<Slot>,
    next: Cell<u32>,
    next_space: Cell<u32>,
    /// Who runs first while the server waits.
    latest: Cell<ThreadId>,
    spaces: RefCell<BTreeMap<u32, Space>>,
}

impl Tasks {
    /// None; they will have thread numbers that this task owns, if it owns some.
    pub fn new() -> Result<Self, String> {
        let numbers = kernel::limits(thread::me()).map_or(Numbers::NONE, |limits| limits.0);
        if numbers.is_empty() {
            return Err(String::from(
                "the root task gave no thread numbers for programs; set threads = 16384 for the task `unix`",
            ));
        }
        let (limit, used) = kernel::move_quota(thread::me(), 0).unwrap_or_default();
        KERNEL_MEMORY.iter().for_each(|pages| pages.store(limit.saturating_sub(used), Relaxed));
        let mut slots = Vec::new();
        slots.resize_with(numbers.count as usize, Slot::default);
        Ok(Self {
            numbers,
            slots,
            next: Cell::new(0),
            next_space: Cell::new(1),
            latest: Cell::new(ThreadId::NIL),
            spaces: RefCell::new(BTreeMap::new()),
        })
    }

    fn slot(&self, id: ThreadId) -> Option<&Slot> {
        self.slots.get(id.number().wrapping_sub(self.numbers.first) as usize)
    }

    /// The library's thread behind `id`.
    pub fn thread(&self, id: ThreadId) -> Option<Rc<Thread>> {
        self.slot(id).filter(|slot| slot.id.get() == id)?.thread.borrow().clone()
    }

    /// Says whose thread this is.
    pub fn bind(&self, machine: MachineThread, thread: Option<&Rc<Thread>>) {
        if let Some(slot) = self.slot(ThreadId(machine.0)) {
            slot.thread.replace(thread.cloned());
        }
    }

    /// The library's thread behind `id`, which has raised an event after `ticks` of time.
    #[inline(always)]
    pub fn event_of(&self, id: ThreadId, ticks: u64) -> Option<Rc<Thread>> {
        let slot = self.slot(id)?;
        if slot.id.get() != id {
            return None;
        }
        slot.ticks.set(slot.ticks.get() + ticks);
        self.latest.set(id);
        slot.thread.borrow().clone()
    }

    /// Who runs next: it gets the last answer before the server waits.
    #[inline(always)]
    pub fn runs_next(&self, id: ThreadId) {
        self.latest.set(id);
    }

    /// Charges a short time before an event that no program raised: to the one that ran
    /// first in it, if it can still run. Else nobody did.
    pub fn charge_latest(&self, ticks: u64) {
        let Some(slot) = self.slot(self.latest.get()) else { return };
        let runs = |thread: &Rc<Thread>| thread.doing.get() == Doing::Running;
        if slot.thread.borrow().as_ref().is_some_and(runs) {
            slot.ticks.set(slot.ticks.get() + ticks);
        }
    }

    /// Charges a time in which all of `running` could run and no program raised an event:
    /// by what the kernel's ticks say about each since this was last asked.
    pub fn share(&self, running: &[MachineThread], ticks: u64, us: u64) {
        let slots: Vec<(&Slot, u64)> = running
            .iter()
            .filter_map(|machine| self.slot(ThreadId(machine.0)))
            .map(|slot| (slot, slot.used_lately().min(us.max(1))))
            .collect();
        let sum: u64 = slots.iter().map(|(_, used)| used).sum();
        // Shorter than a tick for each: equal shares.
        let (sum, least) = if sum == 0 { (slots.len() as u64, 1) } else { (sum, 0) };
        for (slot, used) in slots {
            let share = u128::from(ticks) * u128::from(used.max(least)) / u128::from(sum);
            slot.ticks.set(slot.ticks.get() + share as u64);
        }
    }

    /// Time stamps that a thread was charged with.
    pub fn ticks(&self, machine: MachineThread) -> u64 {
        self.slot(ThreadId(machine.0)).map_or(0, |slot| slot.ticks.get())
    }

    /// The server has worked so long for whoever ran latest.
    pub fn charge_system(&self, ticks: u64) {
        let latest = self.latest.get();
        if let Some(slot) = self.slot(latest).filter(|slot| slot.id.get() == latest) {
            slot.system_ticks.set(slot.system_ticks.get() + ticks);
            slot.owed_ticks.set(slot.owed_ticks.get() + ticks);
        }
    }

    /// Whether the server has worked for `id` for as long as a turn of it, if a tick is `tick` time stamps, since others
    /// last had theirs, which they have now.
    pub fn owes_a_turn(&self, id: ThreadId, tick: u64) -> bool {
        let slot = self.slot(id).filter(|slot| slot.id.get() == id).filter(|slot| {
            slot.owed_ticks.get() >= tick.saturating_mul(u64::from(slot.turn_ticks.get()))
        });
        slot.inspect(|slot| slot.owed_ticks.set(0)).is_some()
    }

    /// What a thread has of the processor from now on.
    pub fn set_share(&self, machine: MachineThread, share: Share) {
        let id = ThreadId(machine.0);
        let Some(slot) = self.slot(id).filter(|slot| slot.id.get() == id) else { return };
        slot.turn_ticks.set(share.ticks);
        let priority = turns::priority(share.urgency);
        // Over between two ticks, so that it is the right one at which it ends.
        let turn = Time::micros(u64::from(share.ticks) * TICK_US - TICK_US / 2);
        // Where this task may not have turns as long, they are as long as they were.
        if schedule::set_turns(id, priority, turn).is_err() {
            let _ = schedule::set_priority(id, priority);
        }
    }

    /// Time stamps in which the server worked for a thread.
    pub fn system_ticks(&self, machine: MachineThread) -> u64 {
        self.slot(ThreadId(machine.0)).map_or(0, |slot| slot.system_ticks.get())
    }

    /// A new space; nothing happens before its first thread.
    pub fn create_space(&self, pages: u64) -> SpaceId {
        let id = self.next_space.get();
        self.next_space.set(id.wrapping_add(1).max(1));
        let utcbs = alloc::vec![0; 16];
        let space = Space { threads: Vec::new(), utcbs, pages, is_fed: false };
        self.spaces.borrow_mut().insert(id, space);
        SpaceId(id)
    }

    /// The space is over: its threads have ended.
    pub fn destroy_space(&self, space: SpaceId) {
        let gone = self.spaces.borrow_mut().remove(&space.0);
        for thread in gone.into_iter().flat_map(|space| space.threads) {
            let _ = kernel::delete(thread);
        }
    }

    /// A free thread number, with a version it has never had.
    fn fresh(&self) -> Result<ThreadId, Errno> {
        for _ in 0..self.numbers.count {
            let index = self.next.get();
            self.next.set((index + 1) % self.numbers.count);
            let (slot, number) = (&self.slots[index as usize], self.numbers.first + index);
            // A number whose versions are used up stays out.
            if slot.id.get().is_nil()
                && let Some(uses) = slot.uses_of(number).checked_add(1).filter(|n| *n >> 26 == 0)
            {
                slot.uses.set(Some(uses));
                return Ok(ThreadId::global(number, uses << 6 | 1));
            }
        }
        Err(Errno::EAGAIN)
    }

    /// A new foreign thread in `space`, waiting for its first answer.
    pub fn create_thread(&self, space: SpaceId) -> Result<MachineThread, Errno> {
        let id = self.fresh()?;
        let (of, utcb) = {
            let mut spaces = self.spaces.borrow_mut();
            let known = spaces.get_mut(&space.0).ok_or(Errno::ENOMEM)?;
            let utcb = free_utcb(&mut known.utcbs).ok_or(Errno::EAGAIN)?;
            (known.threads.first().copied().ok_or(known.pages), utcb)
        };
        let made = self.make_fed(id, of, UTCBS + u64::from(utcb) * UTCB_BYTES);
        let mut spaces = self.spaces.borrow_mut();
        let known = spaces.get_mut(&space.0).ok_or(Errno::ENOMEM)?;
        if made.is_err() {
            let _ = kernel::delete(id);
            if let Some(slot) = self.slot(id) {
                slot.uses.set(None);
            }
            known.utcbs[usize::from(utcb) / 64] &= !(1 << (utcb % 64));
            return Err(Errno::EAGAIN);
        }
        if !core::mem::replace(&mut known.is_fed, true) {
            given(known.pages as i64);
        }
        known.threads.push(id);
        if let Some(slot) = self.slot(id) {
            slot.id.set(id);
            slot.space.set(space.0);
            slot.utcb.set(utcb);
            slot.ticks.set(0);
            slot.system_ticks.set(0);
            slot.owed_ticks.set(0);
            slot.counted_us.set(0);
            slot.turn_ticks.set(TURN_TICKS);
        }
        Ok(MachineThread(id.0))
    }

    /// Ends a thread; with its last thread a space's mappings go.
    pub fn destroy_thread(&self, machine: MachineThread) {
        let id = ThreadId(machine.0);
        let Some(slot) = self.slot(id).filter(|slot| slot.id.get() == id) else { return };
        let _ = kernel::delete(id);
        slot.id.set(ThreadId::NIL);
        slot.thread.replace(None);
        if let Some(space) = self.spaces.borrow_mut().get_mut(&slot.space.get()) {
            space.threads.retain(|thread| *thread != id);
            if space.threads.is_empty() && core::mem::take(&mut space.is_fed) {
                given(-(space.pages as i64));
            }
            let utcb = slot.utcb.get();
            space.utcbs[usize::from(utcb) / 64] &= !(1 << (utcb % 64));
        }
    }

    /// Microseconds that a thread has run, by the kernel's count: where several run at once, the
    /// time between two events says nothing.
    pub fn counted_us(machine: MachineThread) -> u64 {
        kernel::inspect(What::Time, machine.0, 0).map_or(0, |words| words[1])
    }

    /// [`make`]; if the space has used its kernel memory up (for page tables, for other
    /// threads), it gets more.
    fn make_fed(&self, id: ThreadId, of: Result<ThreadId, u64>, utcb: u64) -> kernel::Result<()> {
        let made = make(id, of, utcb);
        match (made, of) {
            (Err(CallError::NoMemory), Ok(member)) if self.feed(member, QUOTA_STEP) => {
                let _ = kernel::delete(id);
                make(id, of, utcb)
            }
            _ => made,
        }
    }

    /// Gives the space of `id` so many pages of kernel memory more.
    pub fn feed(&self, id: ThreadId, pages: u64) -> bool {
        let fed = kernel::move_quota(id, pages as i64).is_ok();
        let number = self.slot(id).filter(|_| fed).map_or(0, |slot| slot.space.get());
        if let Some(space) = self.spaces.borrow_mut().get_mut(&number) {
            space.pages += pages;
            given(pages as i64);
        }
        fed
    }
}

/// Takes the lowest free UTCB slot.
fn free_utcb(used: &mut [u64]) -> Option<u16> {
    let word = used.iter().position(|word| *word != !0)?;
    let bit = used[word].trailing_ones();
    used[word] |= 1 << bit;
    Some((word * 64) as u16 + bit as u16)
}

/// The kernel's part: a thread in the space of another one, or in one of its own, which has so many pages of
/// kernel memory.
fn make(id: ThreadId, of: Result<ThreadId, u64>, utcb: u64) -> kernel::Result<()> {
    let me = thread::me();
    match of {
        Ok(member) => kernel::create_active(id, member, me, me, utcb)?,
        Err(pages) => {
            kernel::create(id, id, me, utcb)?;
            allot(id, pages)?;
            let kip = Fpage::memory(KIP, 12, Rights::NONE);
            let utcbs = Fpage::memory(UTCBS, UTCB_BITS, Rights::NONE);
            kernel::configure_space(id, kip, utcbs)?;
            kernel::set_pager(id, id, me, !0)?;
        }
    }
    let _ = schedule::set_priority(id, turns::priority(Urgency::Ordinary));
    kernel::make_foreign(id)
}
