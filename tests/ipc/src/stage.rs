//! The stage: three spaces with puppets, the pager, test memory, and the conductor
//! (the root task's first thread), which runs whenever all puppets wait.

use core::cell::Cell;

use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA, INITIAL_UTCB_BITS};
use abi::{CallError, Fpage, Rights, ThreadId, Time, utcb};
use root_harness::{FIRST_NUMBER, location};
use runtime::window::Window;
use runtime::{Msg, ipc, kernel, schedule, syscall};

use crate::places;
use crate::puppet::{self, PUPPETS, Puppet};

/// Puppets of the root task's space: the first ones.
pub const ROOTS: core::ops::Range<usize> = 0..4;
/// Puppets of the second space.
pub const ONES: core::ops::Range<usize> = 4..8;
/// Puppets of the third space.
pub const TWOS: core::ops::Range<usize> = 8..12;
/// Numbers that tests may create and delete puppets with.
pub const SPARES: core::ops::Range<usize> = 12..PUPPETS;

/// The pager of all puppets.
pub const PAGER: ThreadId = ThreadId::global(abi::id::USER_BASE + 8, 1);
const TOP: u8 = 255;
const BOTTOM: u8 = 10;
const PAGER_PRIORITY: u8 = 250;
/// Priority of a puppet unless a test says otherwise.
pub const USUAL: u8 = 100;
/// Log2 size of the test memory.
pub const MEMORY_BITS: u32 = 24;
/// Kernel memory for a space, pages.
const QUOTA: i64 = 2000;

/// Everything there is.
pub struct Stage {
    puppets: [Puppet; PUPPETS],
    /// Test memory: mapped here, lazily in the other spaces.
    pub memory: Window,
    versions: [Cell<u32>; PUPPETS],
}

fn id(index: usize, version: u32) -> ThreadId {
    ThreadId::global(FIRST_NUMBER + index as u32, version)
}

/// Which of the three spaces puppet `index` is in; spares are in none at first.
pub fn space_of(index: usize) -> usize {
    index / 4
}

impl Stage {
    /// Sets it up; says what failed.
    pub fn build() -> Result<Self, &'static str> {
        let memory = runtime::sigma0::memory(None, MEMORY_BITS)
            .ok_or("taking 16 MiB of memory from sigma0")?;
        (0..memory.bytes()).step_by(4096).for_each(|at| memory.touch(at));
        start_pager().map_err(|_| "creating the pager")?;
        let puppet = |index| Puppet { index, id: id(index, 1), local: root_harness::local(index) };
        let stage = Self {
            puppets: core::array::from_fn(puppet),
            memory,
            versions: [const { Cell::new(1) }; PUPPETS],
        };
        for index in ROOTS.chain(ONES).chain(TWOS) {
            stage.create(index).map_err(|_| "creating a puppet")?;
        }
        stage.reset();
        Ok(stage)
    }

    fn create(&self, index: usize) -> Result<(), CallError> {
        let dest = self.puppets[index].id;
        match index {
            4 | 8 => create_space(dest, location(index))?,
            _ => {
                let member = if ROOTS.contains(&index) {
                    ThreadId::ROOT
                } else {
                    self.puppets[index & !3].id
                };
                kernel::create_active(dest, member, ThreadId::ROOT, PAGER, location(index))?;
            }
        }
        prepare(dest, index);
        Ok(())
    }

    /// Puppet `index`.
    pub fn puppet(&self, index: usize) -> Puppet {
        self.puppets[index]
    }

    /// Spare puppet `index` with a version that it never had.
    fn next_spare(&self, index: usize) -> Puppet {
        let next = self.versions[index].get() + 1;
        // The low six bits of a version must not all be zero (X.2 1.2).
        let version = if next.is_multiple_of(64) { next + 1 } else { next };
        self.versions[index].set(version);
        Puppet { id: id(index, version), ..self.puppets[index] }
    }

    /// Creates spare puppet `index` in the space of puppet `member`, with a new version.
    pub fn create_spare(&self, index: usize, member: usize) -> Result<Puppet, CallError> {
        let spare = self.next_spare(index);
        let member = if ROOTS.contains(&member) { ThreadId::ROOT } else { self.puppets[member].id };
        kernel::create_active(spare.id, member, ThreadId::ROOT, PAGER, location(index))?;
        prepare(spare.id, index);
        spare.stop();
        settle();
        Ok(spare)
    }

    /// Creates spare puppet `index` in a space of its own.
    pub fn create_spare_space(&self, index: usize) -> Result<Puppet, CallError> {
        let spare = self.next_spare(index);
        create_space(spare.id, location(index))?;
        prepare(spare.id, index);
        spare.stop();
        settle();
        Ok(spare)
    }

    /// All puppets park, with the usual priority, and no event is logged.
    pub fn reset(&self) {
        for puppet in &self.puppets[..SPARES.start] {
            puppet.stop();
            set_priority(puppet.id, USUAL);
        }
        settle();
        puppet::clear_log();
    }

    /// Takes the test memory away from the other spaces: it is lazily mapped again.
    pub fn unmap_memory(&self) {
        if let Some(fpage) = self.memory.fpage() {
            let _ = kernel::unmap(fpage.with_rights(Rights::RWX));
        }
    }
}

fn create_space(dest: ThreadId, location: u64) -> Result<(), CallError> {
    kernel::create(dest, dest, ThreadId::ROOT, location)?;
    kernel::move_quota(dest, QUOTA)?;
    let utcbs = Fpage::memory(INITIAL_UTCB_AREA, INITIAL_UTCB_BITS, Rights::NONE);
    kernel::configure_space(dest, Fpage::memory(INITIAL_KIP, 12, Rights::NONE), utcbs)?;
    kernel::set_pager(dest, dest, PAGER, location)
}

/// Slices without end: what runs when then depends on priorities and IPC alone. On the processor of puppet `index`.
fn prepare(thread: ThreadId, index: usize) {
    let _ = syscall::schedule(thread.0, 0, places::of(index).into(), u64::from(USUAL), !0);
}

fn start_pager() -> Result<(), CallError> {
    static STACK: [core::sync::atomic::AtomicU64; 1024] =
        [const { core::sync::atomic::AtomicU64::new(0) }; 1024];
    let location = INITIAL_UTCB_AREA + utcb::SIZE;
    kernel::create_active(PAGER, ThreadId::ROOT, ThreadId::ROOT, ThreadId::ROOT, location)?;
    set_priority(PAGER, PAGER_PRIORITY);
    let sp = STACK.as_ptr() as u64 + size_of_val(&STACK) as u64 - 8;
    let entry: extern "C" fn() -> ! = crate::pager::run;
    let start = Msg::default().words(&[entry as usize as u64, sp]);
    let _ = ipc::send(PAGER, &start);
    schedule::set_processor(PAGER, places::of(places::PAGER))
}

/// Changes a thread's priority.
pub fn set_priority(thread: ThreadId, priority: u8) {
    let _ = schedule::set_priority(thread, priority);
}

/// Lets the puppets run until all of them wait, wherever they are.
pub fn settle() {
    set_priority(ThreadId::ROOT, BOTTOM);
    syscall::thread_switch(0);
    while !places::are_at_rest() {
        // Where instructions are counted, that is the others' turn.
        core::hint::spin_loop();
    }
    set_priority(ThreadId::ROOT, TOP);
}

/// Lets the puppets run for `us` microseconds at least.
pub fn pause(us: u64) {
    let _ = ipc::receive(ThreadId::ROOT, Time::micros(us));
    settle();
}
