//! Jobs that interrupt each other, in spaces of which some are poor.

use abi::{Fpage, MapItem, Rights};
use kernel::arch::cpu;
use kernel::mem::frames::FRAME;
use kernel::mem::trees::Tree;
use kernel::mem::{
    Access, AddressSpace, DestroyJob, MapJob, STEP_BUDGET, Scope, Step, UnmapJob, frames,
};

use crate::common::{Machine, RAM, Random, marker};
use crate::memory::page;

/// A job of any kind.
enum Job {
    Map(MapJob),
    Unmap(UnmapJob),
}

impl Job {
    /// A step, as short as possible, or as many as there are windows until an interrupt
    /// comes; whether the job is done.
    fn go_on(&mut self, random: &mut Random) -> bool {
        if random.one_in(3) {
            let windows = random.below(6) as u32;
            return interrupted_after(windows, || self.advance());
        }
        let budget = 1 + random.below(12) as u32;
        match self {
            Job::Map(job) => job.step(budget) != Ok(Step::More),
            Job::Unmap(job) => job.step(budget) == Step::Done,
        }
    }

    fn advance(&mut self) -> bool {
        match self {
            Job::Map(job) => job.advance() != Ok(Step::More),
            Job::Unmap(job) => job.advance() == Step::Done,
        }
    }

    /// Its thread is deleted.
    fn abandon(self) {
        match self {
            Job::Map(mut job) => job.abandon(),
            Job::Unmap(mut job) => job.abandon(),
        }
    }
}

/// Does `work`; an interrupt comes after so many windows.
fn interrupted_after<T>(windows: u32, work: impl FnOnce() -> T) -> T {
    cpu().interrupt.set(Some((windows, 0)));
    let result = work();
    cpu().interrupt.set(None);
    cpu().pending_lines.set(0);
    result
}

fn start(machine: &Machine, random: &mut Random, pages: u64, grants: u64) -> Job {
    let bits = [0, 0, 0, 1, 3, 5, 9][random.below(7) as usize].min(pages.ilog2());
    let place = |random: &mut Random| RAM + (random.below(pages >> bits) << (12 + bits));
    let space = |random: &mut Random| machine.spaces[random.below(6) as usize];
    let rights = if random.one_in(3) { Rights(random.below(8) as u8) } else { Rights::RWX };
    let fpage = page(place(random), 12 + bits, rights);
    if random.one_in(3) {
        let space = space(random);
        let scope = if random.one_in(2) { Scope::Own } else { Scope::Derived };
        return Job::Unmap(UnmapJob::new(space, fpage, scope, marker()));
    }
    let item = MapItem { send_base: place(random), fpage, grant: random.one_in(grants) };
    Job::Map(MapJob::new(space(random), space(random), item, Fpage::COMPLETE, marker()))
}

/// Up to eight jobs at a time, some spaces poor, steps as short as possible.
fn interleave(seed: u64, hole: bool, pages: u64, steps: u32) {
    let grants = 2 + seed % 3;
    let mut machine = Machine::new(3, 2048, hole);
    for (id, quota) in [(20, 14), (21, 40)] {
        let space = AddressSpace::create(id, &machine.bank, quota).expect("the pool is fresh");
        machine.spaces.push(space);
    }
    let mut random = Random::seeded(seed);
    let mut jobs: Vec<Job> = Vec::new();
    for number in 0..steps {
        if jobs.len() < 8 && (jobs.is_empty() || random.one_in(6)) {
            jobs.push(start(&machine, &mut random, pages, grants));
        }
        let index = random.below(jobs.len() as u64) as usize;
        if jobs[index].go_on(&mut random) {
            jobs.swap_remove(index);
        }
        if number % 512 == 0 {
            assert_eq!(machine.violations(true), [], "jobs under way, step {number}");
        }
        if number % 4096 == 0 {
            drain(&mut jobs);
            assert_eq!(machine.violations(false), [], "all jobs done, step {number}");
        }
    }
    drain(&mut jobs);
    while machine.spaces.len() > 1 {
        let space = machine.spaces.pop().expect("there is one");
        let mut job = DestroyJob::new(space, marker());
        while interrupted_after(random.below(4) as u32, || job.advance()) == Step::More {}
        assert_eq!(space.quota().used(), 2);
        space.free(&machine.bank);
    }
    UnmapJob::new(machine.sigma0(), Fpage::COMPLETE.with_rights(Rights::RWX), Scope::Own, marker())
        .finish();
    assert_eq!(frames::free(), machine.free_at_start);
}

fn drain(jobs: &mut Vec<Job>) {
    for job in jobs.drain(..) {
        match job {
            Job::Map(mut job) => drop(job.finish()),
            Job::Unmap(mut job) => job.finish(),
        }
    }
}

/// Takes back, hands on or grants one of the mappings of the page at [`RAM`], mostly the first one, so that much
/// is derived from it.
fn start_in_a_crowd(machine: &Machine, random: &mut Random) -> Job {
    let sigma0 = machine.sigma0();
    let all: Vec<_> = Tree::of(sigma0, RAM).filter(|mapping| mapping.depth > 0).collect();
    let is_first = random.one_in(2);
    let index = if is_first { 0 } else { random.below(all.len().max(1) as u64) };
    let (src, from) = all.get(index as usize).map_or((sigma0, RAM), |mapping| {
        let space = machine.spaces.iter().find(|space| space.id() == mapping.space);
        (*space.expect("it is one of these"), mapping.vaddr)
    });
    let rights = if random.one_in(4) { Rights::W } else { Rights::RWX };
    if random.one_in(if is_first { 32 } else { 4 }) {
        let scope = if random.one_in(2) { Scope::Own } else { Scope::Derived };
        return Job::Unmap(UnmapJob::new(src, page(from, 12, rights), scope, marker()));
    }
    let grant = random.one_in(3);
    // Where the first one is granted to nothing is mapped, or it would be flushed soon.
    let slot = if grant && is_first { 64 + random.below(16) } else { random.below(64) };
    let fpage = page(from, 12, if grant { Rights::RWX } else { rights.or(Rights::RX) });
    let item = MapItem { send_base: slot << 12, fpage, grant };
    let dst = machine.spaces[1 + random.below(3) as usize];
    Job::Map(MapJob::new(src, dst, item, Fpage::COMPLETE, marker()))
}

/// Up to eight threads at a time are at one page, which many have; some of them are deleted.
fn crowd(seed: u64, steps: u32) {
    let machine = Machine::new(3, 2048, true);
    let mut random = Random::seeded(seed);
    let mut jobs: Vec<Job> = Vec::new();
    for number in 1..=steps {
        if jobs.len() < 8 && (jobs.is_empty() || random.one_in(4)) {
            jobs.push(start_in_a_crowd(&machine, &mut random));
        }
        let index = random.below(jobs.len() as u64) as usize;
        if random.one_in(32) {
            jobs.swap_remove(index).abandon();
        } else if jobs[index].go_on(&mut random) {
            jobs.swap_remove(index);
        }
        if number % 4 == 0 {
            assert_eq!(machine.violations(true), [], "step {number}");
        }
        if number % 1024 == 0 {
            jobs.drain(..).for_each(Job::abandon);
            let all = page(RAM, 12, Rights::RWX);
            UnmapJob::new(machine.sigma0(), all, Scope::Derived, marker()).finish();
            let left: Vec<_> = machine.spaces[1..].iter().map(|space| space.nodes()).collect();
            assert_eq!((left, machine.violations(false)), (vec![0; 3], vec![]), "step {number}");
        }
    }
}

#[test]
fn threads_that_are_deleted_at_a_page_of_many_leave_a_tree() {
    for seed in 0..4 {
        let round = std::thread::spawn(move || crowd(700 + seed, 8_192));
        round.join().expect("the round holds; its seed is printed above");
    }
}

/// A job goes on through its windows as long as no interrupt comes, and stops in the one in
/// which it does; it can be gone on with as often as that happens.
#[test]
fn a_job_stops_only_for_an_interrupt() {
    const CHILDREN: u64 = 100;
    let machine = Machine::new(3, 64, false);
    let [sigma0, parent, child] = [0, 1, 2].map(|index| machine.spaces[index]);
    let derive = || {
        let own = MapItem::map(page(RAM, 12, Rights::RWX), RAM);
        MapJob::new(sigma0, parent, own, Fpage::COMPLETE, marker()).finish().expect("it can pay");
        for number in 0..CHILDREN {
            let item = MapItem::map(page(RAM, 12, Rights::RWX), RAM + number * 4096);
            MapJob::new(parent, child, item, Fpage::COMPLETE, marker())
                .finish()
                .expect("it can pay");
        }
    };
    derive();
    let unmap = || UnmapJob::new(parent, page(RAM, 12, Rights::RWX), Scope::Derived, marker());
    let left = || (0..CHILDREN).filter(|at| child.page(RAM + at * 4096).is_some()).count();
    assert_eq!(left(), CHILDREN as usize);
    let mut job = unmap();
    let mut pauses = 0;
    while interrupted_after(3, || job.advance()) == Step::More {
        assert_eq!(machine.violations(true), []);
        pauses += 1;
        assert!(left() < CHILDREN as usize, "it gets on between any two interrupts");
    }
    assert!((CHILDREN / 20..CHILDREN).contains(&pauses), "{pauses} pauses");
    assert_eq!(left(), 0);
    derive();
    assert_eq!(interrupted_after(1_000_000, || unmap().advance()), Step::Done);
    assert_eq!(left(), 0);
    assert_eq!(machine.violations(false), []);
}

/// A large page that is being taken away is handed on no more, not even in small parts.
#[test]
fn parts_of_a_large_page_that_goes_are_not_handed_on() {
    let machine = Machine::new(2, 64, false);
    let [sigma0, parent, child] = [0, 1, 2].map(|index| machine.spaces[index]);
    let map = |src, dst, from, bits, to| {
        let item = MapItem::map(page(from, bits, Rights::RWX), to);
        MapJob::new(src, dst, item, Fpage::COMPLETE, marker()).finish().expect("it can pay");
    };
    map(sigma0, parent, RAM, 21, RAM);
    for number in 0..100 {
        map(parent, child, RAM + number * 4096, 12, number * 4096);
    }
    let mut job = UnmapJob::new(parent, page(RAM, 21, Rights::RWX), Scope::Own, marker());
    assert_eq!(interrupted_after(3, || job.advance()), Step::More);
    assert!(parent.page(RAM).is_some() && child.page(0).is_some(), "it has only begun");
    map(parent, child, RAM, 12, 150 * 4096);
    assert_eq!(child.page(150 * 4096), None);
    job.finish();
    assert_eq!((parent.nodes(), child.nodes(), machine.violations(false)), (0, 0, vec![]));
}

#[test]
fn jobs_that_interrupt_each_other_keep_the_invariants() {
    for seed in 0..6 {
        let (hole, pages) = if seed % 2 == 0 { (true, 4 << seed) } else { (false, 1024) };
        let round = std::thread::spawn(move || interleave(400 + seed, hole, pages, 60_000));
        round.join().expect("the round holds; its seed is printed above");
    }
}

/// An interrupt waits for one frame to be filled with zeros, however many a page needs: nothing of it is
/// there before all of them are ready.
#[test]
fn the_frames_of_a_new_page_are_filled_in_steps() {
    let machine = Machine::new(2, 2048, false);
    let far = page(0x70_0000_0000, 12, Rights::RWX);
    let item = MapItem { send_base: far.base(), fpage: page(RAM, 12, Rights::RWX), grant: false };
    let (sigma0, to) = (machine.sigma0(), machine.spaces[1]);
    let mut job = MapJob::new(sigma0, to, item, far, marker());
    let before = (to.quota().used(), frames::free());
    let mut steps = 0;
    while interrupted_after(0, || job.advance()) == Ok(Step::More) {
        steps += 1;
        let (used, free) = (to.quota().used(), frames::free());
        let is_made = sigma0.resolve(RAM, Access::Read).is_some();
        assert!(used == before.0 && (free == before.1 || is_made), "step {steps} took several");
        assert_eq!(machine.violations(true), []);
    }
    assert!(steps > 5, "tables, a twin, nodes of both: {steps} steps");
    assert!(to.resolve(far.base(), Access::Read).is_some());
    assert_eq!(machine.violations(false), []);
}

/// What was in the way has taken most of a step: the page that comes in its place is for the next one.
#[test]
fn a_page_does_not_come_in_the_step_in_which_much_has_gone() {
    let machine = Machine::new(3, 2048, false);
    let [_, from, to, third] = machine.spaces[..] else { panic!("four spaces") };
    let map = |src, dst, at: u64, place: u64| {
        let item = MapItem { send_base: place, fpage: page(at, 12, Rights::RWX), grant: false };
        MapJob::new(src, dst, item, Fpage::COMPLETE, marker())
    };
    for (at, place) in [(RAM, RAM), (RAM + FRAME, RAM + FRAME)] {
        map(machine.sigma0(), from, at, place).finish().expect("there is room");
    }
    // So that the table stays.
    map(from, to, RAM, RAM + FRAME).finish().expect("there is room");
    map(from, to, RAM, RAM).finish().expect("there is room");
    map(to, third, RAM, RAM).finish().expect("there is room");
    let there = || to.resolve(RAM, Access::Read).map(|found| found.phys);
    assert_eq!(there(), Some(RAM));
    let mut job = map(from, to, RAM + FRAME, RAM);
    let mut was_empty = false;
    while interrupted_after(0, || job.advance()) == Ok(Step::More) {
        was_empty |= there().is_none();
    }
    assert_eq!(there(), Some(RAM + FRAME));
    assert!(was_empty, "what was there has gone in the step in which the next one came");
    assert_eq!(machine.violations(false), []);
}

/// Each page with nothing beside it costs the way to it.
#[test]
fn a_step_passes_few_pages_that_lie_apart() {
    let machine = Machine::new(2, 2048, true);
    let (sigma0, space) = (machine.sigma0(), machine.spaces[1]);
    for number in 0..64 {
        let at = RAM + number * 2 * FRAME;
        let item = MapItem { send_base: at, fpage: page(at, 12, Rights::RWX), grant: false };
        let mut job = MapJob::new(sigma0, space, item, Fpage::COMPLETE, marker());
        job.finish().expect("there is room");
    }
    let all = page(RAM, 19, Rights::RWX);
    let mut job = UnmapJob::new(space, all, Scope::Derived, marker());
    let mut steps = 1;
    while job.step(STEP_BUDGET) == Step::More {
        steps += 1;
    }
    assert!(steps >= 32, "64 pages in {steps} steps");
}
