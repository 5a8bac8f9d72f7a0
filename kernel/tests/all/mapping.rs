//! Memory mappings against the model of Liedtke 1995, Appendix A: random
//! sequences of map, grant, unmap and flush among six spaces, in steps of random
//! size; every page of every space, its rights and the status words are compared.
//! A sequence that goes wrong is shortened to the operations that are to blame.

use crate::common::model::{LARGE, Model};
use crate::common::shrink::shortest_failure;
use crate::common::{Machine, RAM, Random};
use abi::{Fpage, MapItem, Rights};
use kernel::mem::{Access, DestroyJob, MapJob, Scope, Step, UnmapJob, frames};

/// Rounds with small pages and with large ones, and operations of each: 1,002,000 in all.
const SMALL: (u64, usize) = (40, 25_000);
const LARGE_ROUNDS: (u64, usize) = (2, 1_000);
/// Operations between two comparisons of every page; status words and faults are compared
/// at once.
const COMPARE_EVERY: usize = 16;
/// Operations between two visits of the kernel's own checker.
const CHECK_EVERY: usize = 500;

/// 2^`bits` pages of a space, aligned.
#[derive(Clone, Copy, Debug)]
struct Pages {
    space: usize,
    first: usize,
    bits: u32,
}

impl Pages {
    fn count(self) -> usize {
        1 << self.bits
    }

    fn fpage(self, rights: Rights) -> Fpage {
        Fpage::memory(address(self.first), 12 + self.bits, rights)
    }
}

/// One operation; how long its steps are follows from `pace`.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Transfer { from: Pages, to: (usize, usize), rights: Rights, grant: bool, pace: u64 },
    Unmap { pages: Pages, revoke: Rights, flush: bool, pace: u64 },
    Touch { space: usize, page: usize, write: bool },
}

fn address(page: usize) -> u64 {
    RAM + page as u64 * 4096
}

/// Length of a step. Steps that are all shorter than a look at a page get nowhere, so
/// there are long ones among them.
fn budget(pace: &mut Random) -> u32 {
    1 + pace.below(60) as u32
}

fn any_rights(random: &mut Random) -> Rights {
    match random.below(4) {
        0 => Rights(random.below(8) as u8),
        1 => Rights::RX,
        _ => Rights::RWX,
    }
}

/// A random aligned range of at most `pages` pages.
fn any_pages(random: &mut Random, pages: usize) -> Pages {
    let most = pages.ilog2();
    let bits = match random.below(8) {
        0..4 => 0,
        4..6 => random.below(4).min(u64::from(most)) as u32,
        6 => random.below(u64::from(most) + 1) as u32,
        _ => most.min(9),
    };
    let first = (random.below((pages >> bits) as u64) as usize) << bits;
    Pages { space: random.below(6) as usize, first, bits }
}

fn any_operation(random: &mut Random, pages: usize) -> Operation {
    let pace = random.next();
    match random.below(8) {
        0..4 => {
            let (rights, from) = (any_rights(random), any_pages(random, pages));
            let slot = random.below((pages >> from.bits) as u64) as usize;
            let to = (random.below(6) as usize, slot << from.bits);
            Operation::Transfer { from, to, rights, grant: random.one_in(4), pace }
        }
        4..6 => {
            let revoke = if random.one_in(2) { Rights::RWX } else { any_rights(random) };
            let pages = any_pages(random, pages);
            Operation::Unmap { pages, revoke, flush: random.one_in(2), pace }
        }
        _ => {
            let page = random.below(pages as u64) as usize;
            Operation::Touch { space: random.below(6) as usize, page, write: random.one_in(2) }
        }
    }
}

/// The kernel's memory and the model's.
struct Pair {
    machine: Machine,
    model: Model,
    pages: usize,
    status: bool,
}

impl Pair {
    fn new(pages: usize, large: bool) -> Self {
        let machine = Machine::new(5, 1024, !large);
        let model = Model::new(6, pages, large);
        Self { machine, model, pages, status: !large }
    }

    fn take(&mut self, operation: Operation) {
        match operation {
            Operation::Transfer { from, to, rights, grant, pace } => {
                let (source, target) = (self.machine.spaces[from.space], self.machine.spaces[to.0]);
                let item = MapItem { send_base: address(to.1), fpage: from.fpage(rights), grant };
                let mut job =
                    MapJob::new(source, target, item, Fpage::COMPLETE, self.machine.marker);
                let mut pace = Random::new(pace);
                while job.step(budget(&mut pace)).expect("quotas suffice") == Step::More {}
                self.model.transfer((from.space, from.first), to, from.count(), rights, grant);
            }
            Operation::Unmap { pages, revoke, flush, pace } => {
                let space = self.machine.spaces[pages.space];
                let scope = if flush { Scope::Own } else { Scope::Derived };
                let mut job = UnmapJob::new(space, pages.fpage(revoke), scope, self.machine.marker);
                let mut pace = Random::new(pace);
                while job.step(budget(&mut pace)) == Step::More {}
                let start = (pages.space, pages.first);
                let status = self.model.unmap(start, pages.count(), revoke, flush);
                assert!(!self.status || job.status() == status, "status of {pages:?}");
            }
            Operation::Touch { space, page, write } => self.touch(space, page, write),
        }
    }

    /// A user touches a page.
    fn touch(&mut self, space: usize, page: usize, write: bool) {
        if space == 0 {
            return;
        }
        let access = if write { Access::Write } else { Access::Read };
        let hit = self.machine.spaces[space].resolve(address(page), access);
        if let Some(page) = &mut self.model.sigma[space][page] {
            assert_eq!(hit.is_some(), !write || page.rights.contains(Rights::W));
            let status = if write { Rights::RWX } else { Rights::RX };
            page.status = if hit.is_some() { page.status.or(status) } else { page.status };
        } else {
            assert_eq!(hit, None);
        }
    }

    fn frame_of(&self, at: (usize, usize)) -> usize {
        let (mut space, mut page) = at;
        while space != 0 {
            (space, page) = self.model.sigma[space][page].expect("parents exist").parent;
        }
        page
    }

    /// Compares every page; takes over how large the kernel's pages are.
    fn compare(&mut self) {
        for space in 1..6 {
            for page in 0..self.pages {
                let real = self.machine.spaces[space].page(address(page));
                let expected = self.model.sigma[space][page];
                assert_eq!(
                    real.map(|page| (page.phys, page.rights)),
                    expected.map(|entry| (address(self.frame_of((space, page))), entry.rights)),
                    "space {space} page {page}: {expected:?}"
                );
                if let (Some(real), Some(model)) = (real, &mut self.model.sigma[space][page]) {
                    model.large = real.bits == 21;
                }
            }
        }
    }

    /// Destroys all spaces but σ0: the frames must be back.
    fn destroy(mut self) {
        while self.machine.spaces.len() > 1 {
            let space = self.machine.spaces.pop().expect("there is one");
            let mut job = DestroyJob::new(space, self.machine.marker);
            while job.step(17) == Step::More {}
            assert_eq!(space.quota().used(), 2, "descriptor and root table");
            space.free(&self.machine.bank);
            assert_eq!(self.machine.violations(false), []);
        }
        let sigma0 = self.machine.sigma0();
        UnmapJob::new(
            sigma0,
            Fpage::COMPLETE.with_rights(Rights::RWX),
            Scope::Own,
            self.machine.marker,
        )
        .finish();
        assert_eq!(sigma0.nodes(), 0);
        assert_eq!(frames::free(), self.machine.free_at_start);
    }
}

/// A new machine carries out `operations`.
fn run(operations: &[Operation], pages: usize, large: bool) -> Result<(), String> {
    let mut pair = Pair::new(pages, large);
    for (number, operation) in (1..).zip(operations) {
        pair.take(*operation);
        // The model learns from the comparison how large the kernel's pages are.
        if large || number % COMPARE_EVERY == 0 || number == operations.len() {
            pair.compare();
        }
        if number % CHECK_EVERY == 0 || number == operations.len() {
            assert_eq!(pair.machine.violations(false), [], "after {number} operations");
        }
    }
    pair.destroy();
    Ok(())
}

fn rounds((rounds, operations): (u64, usize), seed: u64, size: impl Fn(u64) -> usize, large: bool) {
    for number in 0..rounds {
        let (mut random, pages) = (Random::seeded(seed + number), size(number));
        let operations = (0..operations).map(|_| any_operation(&mut random, pages)).collect();
        let failure = shortest_failure(operations, move |some| run(some, pages, large));
        if let Some((operations, why)) = failure {
            panic!("{why} at the end of {operations:#?}");
        }
    }
    println!("{} operations", rounds * operations as u64);
}

#[test]
fn small_pages_behave_like_the_model() {
    rounds(SMALL, 100, |number| 8 << (number % 3), false);
}

#[test]
fn large_pages_behave_like_the_model() {
    rounds(LARGE_ROUNDS, 200, |_| 2 * LARGE, true);
}

/// The shortening itself: of a thousand operations it leaves the three that are needed,
/// in their order.
#[test]
fn a_failure_is_reduced_to_those_who_are_to_blame() {
    let fails = |numbers: &[u64]| {
        let mut wanted = [17, 400, 23].iter().peekable();
        for number in numbers {
            wanted.next_if(|next| *next == number);
        }
        if wanted.peek().is_none() { Err(format!("{} numbers", numbers.len())) } else { Ok(()) }
    };
    let mut numbers: Vec<u64> = (0..1000).collect();
    assert_eq!(shortest_failure(numbers.clone(), fails), None);
    numbers.insert(700, 23);
    let found = shortest_failure(numbers, fails);
    assert_eq!(found, Some((vec![17, 400, 23], "3 numbers".to_owned())));
    let panics = |numbers: &[u64]| {
        assert!(!numbers.contains(&5), "five is there");
        Ok(())
    };
    let found = shortest_failure((0..10).collect(), panics);
    assert_eq!(found, Some((vec![5], "five is there".to_owned())));
}
