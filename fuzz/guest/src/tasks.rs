//! The hostile tasks as the judge sees them: made, repaired, given memory, replaced.

use core::sync::atomic::Ordering;

use abi::id::USER_BASE;
use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA};
use abi::syscall::exregs as bit;
use abi::{Ceilings, Fpage, MapItem, Numbers, Rights, ThreadId, Time};
use runtime::space::Fault;
use runtime::syscall::ThreadRegisters;
use runtime::{Msg, ipc, kernel, kip, layout, schedule};

use crate::den::{Den, IDS, THREADS};
use crate::hostile::{PLAYGROUND, PLAYGROUND_BYTES};
use crate::machine;
use crate::rng::{Rng, mix};

/// Hostile tasks.
pub const TASKS: usize = 5;
/// Threads of each that the judge makes; the last of the den is for children.
pub const MADE: usize = THREADS - 1;
/// Thread numbers per task, and where its children's begin.
const NUMBERS: u32 = 64;
const CHILDREN: u32 = 16;
const FIRST: u32 = USER_BASE + 64;
/// Kernel memory of each task beyond the usual: their standing differs.
const QUOTAS: [i64; TASKS] = [0, 100, 300, 60, 1000];
/// Priority of the hostile, above that of the children they make (X.2 5.5: 100).
pub const PRIORITY: u8 = 120;
/// Ceilings of their time, as a root task gives them.
const CEILINGS: Ceilings = Ceilings {
    priority: PRIORITY + 2,
    slice: Time::micros(10_000),
    quantum: Time::NEVER,
    delay_us: 500,
};
/// Log2 size of the UTCB area.
const UTCB_BITS: u32 = 16;
/// Log2 size of the pieces in which code is mapped.
const CODE_BITS: u32 = 15;
/// More calls than a thread can make between two looks.
const MOST_CALLS: u64 = 50_000;
/// What an inspection without progress may come to before a thread is repaired.
const PATIENCE: u32 = 2;
/// How often a thread may ask for the same page from the same instruction without a call
/// in between. With SMAP, QEMU 7.2 faults for ever at an IRET in user mode.
const SAME_FAULTS: u32 = 3;
/// Repairs of a thread that has made no call since the last one after which its task is
/// made anew: it may have put other memory in the place of its stack, for instance.
const VAIN_REPAIRS: u32 = 3;

static DENS: [Den; TASKS] = [const { Den::new() }; TASKS];

/// The den at `base`, or some other.
#[must_use]
pub fn den_at(base: u64) -> &'static Den {
    let distance = base.wrapping_sub(DENS.as_ptr() as u64);
    &DENS[(distance / size_of::<Den>() as u64) as usize % TASKS]
}

/// The number of the hostile task to whose numbers `id` belongs.
#[must_use]
pub fn owner(id: ThreadId) -> Option<usize> {
    let index = id.number().checked_sub(FIRST)? / NUMBERS;
    ((index as usize) < TASKS).then_some(index as usize)
}

/// One hostile task.
pub struct Task {
    number: usize,
    generation: u32,
    ids: [ThreadId; MADE],
    seen: [u64; THREADS],
    counted: u64,
    idle: [u32; MADE],
    last_fault: [(u64, u64, u32); THREADS],
    vain_repairs: [u32; MADE],
}

impl Task {
    /// Nothing exists yet.
    #[must_use]
    pub const fn new(number: usize) -> Self {
        let ids = [ThreadId::NIL; MADE];
        Self {
            number,
            generation: 0,
            ids,
            seen: [0; THREADS],
            counted: 0,
            idle: [0; MADE],
            last_fault: [(0, 0, 0); THREADS],
            vain_repairs: [0; MADE],
        }
    }

    /// Its den.
    #[must_use]
    pub fn den(&self) -> &'static Den {
        &DENS[self.number]
    }

    /// The ids of its threads.
    #[must_use]
    pub fn ids(&self) -> &[ThreadId] {
        &self.ids
    }

    /// Calls of all its threads, as far as they were counted.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.counted
    }

    /// Counts the calls of thread `index` since the last time. The counter is in the den,
    /// where anything may have overwritten it.
    fn count(&mut self, index: usize) {
        let calls = self.den().threads[index].calls.load(Ordering::Relaxed);
        let made = calls.wrapping_sub(self.seen[index]);
        self.seen[index] = calls;
        let plausible = if made <= MOST_CALLS { made } else { 0 };
        self.counted += plausible;
        if plausible != 0 {
            self.last_fault[index].2 = 0;
            if index < MADE {
                self.idle[index] = 0;
                self.vain_repairs[index] = 0;
            }
        }
    }

    /// Whether thread `index` or, without one, some child asks for the same page again and
    /// again, because its task cannot pay for a page table, for instance.
    pub fn faults_in_vain(&mut self, index: Option<usize>, fault: &Fault) -> bool {
        let index = index.unwrap_or(THREADS - 1);
        self.count(index);
        let (address, ip, times) = self.last_fault[index];
        let again = (address, ip) == (fault.address, fault.ip);
        self.last_fault[index] = (fault.address, fault.ip, if again { times + 1 } else { 0 });
        again && times >= SAME_FAULTS
    }

    /// Fills the den for a run.
    pub fn prepare(&self, seed: u64, weights: &[u64]) {
        let den = self.den();
        den.number.store(self.number as u64, Ordering::Relaxed);
        den.children.store(u64::from(self.base() + CHILDREN), Ordering::Relaxed);
        for (slot, weight) in den.weights.iter().zip(weights) {
            slot.store(*weight, Ordering::Relaxed);
        }
        for (index, thread) in den.threads.iter().enumerate() {
            let own = mix(seed, (self.number * THREADS + index) as u64 + 1);
            thread.rng.store(own, Ordering::Relaxed);
        }
    }

    /// Tells its threads who there is.
    pub fn introduce(&self, all: &[ThreadId]) {
        let own = self.ids.iter().chain(self.ids.first());
        let everybody = own.chain(all.iter().cycle()).take(IDS);
        for (slot, id) in self.den().ids.iter().zip(everybody) {
            slot.store(id.0, Ordering::Relaxed);
        }
    }

    const fn base(&self) -> u32 {
        FIRST + self.number as u32 * NUMBERS
    }

    /// A new id for thread `index`; whoever has the number goes.
    fn fresh(&mut self, index: usize) -> ThreadId {
        self.generation += 1;
        let id = ThreadId::global(self.base() + index as u32, self.generation << 6 | 1);
        let _ = kernel::delete(id);
        self.ids[index] = id;
        id
    }

    /// Makes the task anew.
    pub fn create(&mut self) -> kernel::Result<()> {
        self.end();
        let first = self.fresh(0);
        kernel::create(first, first, ThreadId::ROOT, !0)?;
        let kip = Fpage::memory(INITIAL_KIP, 12, Rights::NONE);
        let utcbs = Fpage::memory(INITIAL_UTCB_AREA, UTCB_BITS, Rights::NONE);
        kernel::configure_space(first, kip, utcbs)?;
        kernel::move_quota(first, QUOTAS[self.number])?;
        let numbers = Numbers { first: self.base(), count: NUMBERS };
        kernel::limit(first, Some(numbers), Some(CEILINGS))?;
        kernel::set_pager(first, first, ThreadId::ROOT, INITIAL_UTCB_AREA)?;
        self.start(0);
        for index in 1..MADE {
            self.create_thread(index, first)?;
        }
        Ok(())
    }

    fn create_thread(&mut self, index: usize, member: ThreadId) -> kernel::Result<()> {
        let id = self.fresh(index);
        let location = INITIAL_UTCB_AREA + index as u64 * 1024;
        kernel::create_active(id, member, ThreadId::ROOT, ThreadId::ROOT, location)?;
        self.start(index);
        Ok(())
    }

    fn start(&mut self, index: usize) {
        let msg = Msg::new(0).word(machine::hostile_start()).word(self.den().start_of(index));
        let _ = ipc::send_within(self.ids[index], &msg, Time::ZERO);
        let _ = schedule::set_priority(self.ids[index], PRIORITY + self.number as u8 % 3);
        place(self.ids[index], self.number + index);
    }

    /// Deletes all threads that have one of the task's numbers.
    pub fn end(&mut self) {
        for number in self.base()..self.base() + CHILDREN + CHILDREN {
            let _ = kernel::delete(ThreadId::global(number, 1));
        }
        self.idle = [0; MADE];
        self.vain_repairs = [0; MADE];
    }

    /// Looks whether its threads get on; repairs those that do not. Returns how many.
    pub fn look_after(&mut self) -> u64 {
        let mut repaired = 0;
        self.count(THREADS - 1);
        for index in 0..MADE {
            self.count(index);
            self.idle[index] += 1;
            if self.idle[index] > PATIENCE {
                self.idle[index] = 0;
                self.repair(index);
                repaired += 1;
            }
        }
        repaired
    }

    /// The index of the judge's own thread `id`.
    #[must_use]
    pub fn index_of(&self, id: ThreadId) -> Option<usize> {
        self.ids.iter().position(|own| *own == id)
    }

    /// Lets thread `index` begin again, whatever it is doing; makes what is missing.
    pub fn repair(&mut self, index: usize) {
        self.count(index);
        self.vain_repairs[index] += 1;
        self.last_fault[index].2 = 0;
        if self.vain_repairs[index] > VAIN_REPAIRS {
            let _ = self.create();
            return;
        }
        let control =
            bit::HALT_VALID | bit::ABORT_RECEIVE | bit::ABORT_SEND | bit::SP | bit::IP | bit::PAGER;
        let (sp, ip) = (self.den().start_of(index), machine::hostile_start());
        let pager = ThreadId::ROOT.0;
        let regs = ThreadRegisters { control, sp, ip, pager, ..ThreadRegisters::default() };
        if machine::exchange(self.ids[index], regs).0 {
            return;
        }
        let alive = |id: &&ThreadId| runtime::thread::registers(**id).is_some();
        let member = self.ids.iter().find(alive).copied();
        let made = member.is_some_and(|member| self.create_thread(index, member).is_ok());
        if !made {
            let _ = self.create();
        }
    }
}

/// The answer to `fault` of a thread of task `number`, if it may have the page.
#[must_use]
pub fn page_for(number: usize, fault: &Fault, playground: u64, rng: &mut Rng) -> Option<Msg> {
    let (low, high) = layout::image();
    let address = fault.address;
    let code = address >> CODE_BITS << CODE_BITS;
    if low <= code && code + (1 << CODE_BITS) <= DENS.as_ptr() as u64 {
        let fpage = Fpage::memory(code, CODE_BITS, Rights::RX);
        let reads = !fault.access.contains(Rights::W);
        return reads.then(|| Msg::default().map(MapItem::map(fpage, code)));
    }
    let den = DENS[number].base();
    if (den..den + size_of::<Den>() as u64).contains(&address) {
        return Some(fault.same_page(Rights::RW));
    }
    if (low..high).contains(&address) && !fault.access.contains(Rights::W) {
        return Some(fault.same_page(Rights::RX));
    }
    if !(PLAYGROUND..PLAYGROUND + PLAYGROUND_BYTES).contains(&address) {
        return None;
    }
    // Pages of all sizes and rights, but always what was asked for.
    let bits = match rng.below(64) {
        0 => 21,
        1 | 2 => 12 + rng.below(10) as u32,
        _ => 12,
    };
    let rights = if rng.one_in(4) { fault.access.or(Rights::R) } else { Rights::RWX };
    let offset = (address - PLAYGROUND) >> bits << bits;
    let fpage = Fpage::memory(playground + offset, bits, rights);
    Some(Msg::default().map(MapItem::map(fpage, PLAYGROUND + offset)))
}

/// Spreads threads over the processors: `index` counts them.
pub fn place(id: ThreadId, index: usize) {
    let count = kip::get().processors();
    if count > 1 {
        let _ = schedule::set_processor(id, index as u32 % count);
    }
}
