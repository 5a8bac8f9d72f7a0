//! Port mappings against a model port by port.

use crate::common::ports::Ports;
use crate::common::{Machine, Random, marker};
use abi::{Fpage, MapItem};
use kernel::arch::cpu;
use kernel::arch::x86_64::mem::iobitmap;
use kernel::mem::{DestroyJob, MapJob, PhysFrame, Scope, SpaceRef, Step, UnmapJob, frames, io};

/// Ports that take part, from 0 on.
const PORTS: usize = 64;

struct Pair {
    machine: Machine,
    model: Ports,
    random: Random,
}

impl Pair {
    fn range(&mut self) -> (usize, usize) {
        let bits = self.random.below(5) as usize;
        let start = self.random.below((PORTS >> bits) as u64) as usize;
        (start << bits, 1 << bits)
    }

    fn transfer(&mut self) {
        let (start, count) = self.range();
        let fpage = Fpage::io(start as u16, count.ilog2());
        let grant = self.random.one_in(4);
        let (src, dst) = (self.random.below(5) as usize, self.random.below(5) as usize);
        let item = MapItem { send_base: 0, fpage, grant };
        let (source, target) = (self.machine.spaces[src], self.machine.spaces[dst]);
        let mut job = MapJob::new(source, target, item, Fpage::COMPLETE_IO, marker());
        while job.step(1 + self.random.below(30) as u32).expect("quotas suffice") == Step::More {}
        for port in start..start + count {
            self.model.transfer(src, dst, port, grant);
        }
    }

    fn unmap(&mut self) {
        let (start, count) = self.range();
        let fpage = Fpage::io(start as u16, count.ilog2());
        let (space, flush) = (self.random.below(5) as usize, self.random.one_in(2));
        let scope = if flush { Scope::Own } else { Scope::Derived };
        let mut job = UnmapJob::new(self.machine.spaces[space], fpage, scope, marker());
        while job.step(1 + self.random.below(30) as u32) == Step::More {}
        for port in start..start + count {
            if flush {
                self.model.remove(space, port);
            } else {
                self.model.flush(space, port);
            }
        }
    }

    fn compare(&self) {
        for (index, space) in self.machine.spaces.iter().enumerate().skip(1) {
            for port in 0..PORTS {
                let expected = self.model.from[index][port].is_some();
                assert_eq!(io::allowed(*space, port as u16), expected, "space {index} port {port}");
                assert_eq!(
                    iobitmap::is_open(*space, port as u16),
                    expected,
                    "bitmap {index} {port}"
                );
            }
        }
    }
}

/// A machine whose spaces have port bitmaps.
fn machine() -> (Machine, u64) {
    let machine = Machine::new(0, 0, false);
    let template = machine.bank.take_zeroed_frame().expect("the pool is fresh");
    let tss = machine.bank.take_zeroed_frame().expect("the pool is fresh");
    kernel::mem::root::set_template(template.address());
    iobitmap::init(PhysFrame::at(tss.address()), template.address(), &machine.bank)
        .expect("the pool is fresh");
    let free = frames::free();
    (machine, free)
}

fn run(seed: u64, operations: u32) {
    let (mut machine, free) = machine();
    for id in 0..4 {
        let space = kernel::mem::AddressSpace::create(2 + id, &machine.bank, 64);
        machine.spaces.push(space.expect("the pool is fresh"));
    }
    let mut pair = Pair { machine, model: Ports::new(5, PORTS), random: Random::seeded(seed) };
    for number in 1..=operations {
        if pair.random.one_in(3) {
            pair.unmap()
        } else {
            pair.transfer()
        }
        pair.compare();
        if number % 500 == 0 {
            assert_eq!(pair.machine.violations(false), [], "after {number} operations");
        }
    }
    while pair.machine.spaces.len() > 1 {
        let space = pair.machine.spaces.pop().expect("there is one");
        DestroyJob::new(space, marker()).finish();
        assert_eq!(space.quota().used(), 2, "descriptor and root table");
        space.free(&pair.machine.bank);
    }
    UnmapJob::new(pair.machine.sigma0(), Fpage::COMPLETE_IO, Scope::Own, marker()).finish();
    assert_eq!(pair.machine.sigma0().nodes(), 0);
    assert_eq!(frames::free(), free);
}

#[test]
fn ports_behave_like_the_model() {
    for seed in 300..304 {
        std::thread::spawn(move || run(seed, 10_000)).join().expect("the round holds");
    }
}

/// Steps `job` to its end beside interrupts that never cease: the most frames that one step took,
/// and how many steps there were.
fn stepwise(machine: &Machine, mut job: MapJob, target: SpaceRef) -> (u64, u32) {
    let (mut most, mut steps) = (0, 0);
    cpu().pending_lines.set(1);
    loop {
        let before = frames::free();
        let more = job.advance().expect("quotas suffice") == Step::More;
        most = most.max(before - frames::free());
        // σ0 was made before the table that all spaces copy.
        let found = machine.violations(true).into_iter().filter(|one| one.space != 1).count();
        assert_eq!(found, 0, "after step {steps}");
        assert!(!more || !io::allowed(target, 0), "it has its ports before the last step");
        steps += 1;
        if !more {
            cpu().pending_lines.set(0);
            return (most, steps);
        }
    }
}

/// A page is 520 instructions in which a handler waits.
#[test]
fn a_bitmap_is_made_a_page_at_a_time() {
    let (mut machine, free) = machine();
    let space = kernel::mem::AddressSpace::create(2, &machine.bank, 64).expect("there is room");
    machine.spaces.push(space);
    let item = MapItem::map(Fpage::COMPLETE_IO, 0);
    let job = || MapJob::new(machine.sigma0(), space, item, Fpage::COMPLETE_IO, marker());
    let (most, steps) = stepwise(&machine, job(), space);
    // A page of the bitmap; and one for nodes, which need not be filled.
    assert!(most <= 2 && steps >= 10, "{most} frames in a step, {steps} steps");
    UnmapJob::new(machine.sigma0(), Fpage::COMPLETE_IO, Scope::Own, marker()).finish();
    assert_eq!(space.quota().used(), 2, "descriptor and root table");
    // A job that is given up on the way leaves nothing behind for good.
    cpu().pending_lines.set(1);
    let mut given_up = job();
    for _ in 0..9 {
        assert_eq!(given_up.advance(), Ok(Step::More));
    }
    given_up.abandon();
    cpu().pending_lines.set(0);
    assert!(space.quota().used() > 2);
    assert_eq!(machine.violations(false), []);
    DestroyJob::new(space, marker()).finish();
    assert_eq!(space.quota().used(), 2, "descriptor and root table");
    machine.spaces.pop();
    space.free(&machine.bank);
    UnmapJob::new(machine.sigma0(), Fpage::COMPLETE_IO, Scope::Own, marker()).finish();
    assert_eq!(frames::free(), free);
}

/// Who cannot pay for all of it has nothing of it.
#[test]
fn a_bitmap_that_cannot_be_paid_leaves_nothing() {
    let (mut machine, _) = machine();
    let item = MapItem::map(Fpage::io(0x60, 0), 0);
    for room in 2..8 {
        let space = kernel::mem::AddressSpace::create(2, &machine.bank, room);
        let Ok(space) = space else { continue };
        machine.spaces.push(space);
        let mut job = MapJob::new(machine.sigma0(), space, item, Fpage::COMPLETE_IO, marker());
        if job.finish().is_err() {
            assert_eq!(space.quota().used(), 2, "with {room} frames");
        } else {
            assert!(io::allowed(space, 0x60) && iobitmap::is_open(space, 0x60));
        }
        assert_eq!(machine.violations(false), []);
        DestroyJob::new(space, marker()).finish();
        machine.spaces.pop();
        space.free(&machine.bank);
    }
}

/// How often interrupts are let in meanwhile.
fn windows(what: impl FnOnce()) -> u32 {
    const MANY: u32 = 100_000;
    cpu().interrupt.set(Some((MANY, 5)));
    what();
    MANY - cpu().interrupt.take().map_or(0, |(left, _)| left)
}

#[test]
fn interrupts_are_let_in_while_ports_are_looked_for() {
    let (mut machine, _) = machine();
    let space = kernel::mem::AddressSpace::create(2, &machine.bank, 64).expect("the pool is fresh");
    machine.spaces.push(space);
    let sigma0 = machine.spaces[0];
    for range in 0..io::MAX_RANGES {
        let fpage = Fpage::io(2 * range as u16, 0);
        let item = MapItem { send_base: 0, fpage, grant: false };
        let mut job = MapJob::new(sigma0, space, item, Fpage::COMPLETE_IO, marker());
        while job.step(100).expect("quotas suffice") == Step::More {}
    }
    let looks = io::MAX_RANGES as u32 / 16;
    // Behind all of the space's.
    let search = windows(|| assert!(!io::allowed(space, 1)));
    assert!(search >= looks, "{search} windows in a search");
    // The oldest: behind all other children of its parent, and behind all others of the space.
    let mut job = UnmapJob::new(sigma0, Fpage::io(0, 0), Scope::Derived, marker());
    let removal = windows(|| while job.step(1) == Step::More {});
    assert!(!io::allowed(space, 0));
    assert!(removal >= 2 * looks - 2, "{removal} windows in a removal");
}
