//! Memory mappings against the model of Liedtke 1995, Appendix A: random
//! sequences of map, grant, unmap and flush among six spaces, in steps of random
//! size; every page of every space, its rights and the status words are compared.

mod common;

use abi::{Fpage, MapItem, Rights};
use common::model::{LARGE, Model};
use common::{Machine, RAM, Random};
use kernel::mem::{DestroyJob, MapJob, Step, UnmapJob, frames};

struct Pair {
    machine: Machine,
    model: Model,
    random: Random,
    pages: usize,
    status: bool,
}

fn address(page: usize) -> u64 {
    RAM + page as u64 * 4096
}

impl Pair {
    fn new(pages: usize, large: bool, seed: u64) -> Self {
        let machine = Machine::new(5, 1024, !large);
        let model = Model::new(6, pages, large);
        Self { machine, model, random: Random::seeded(seed), pages, status: !large }
    }

    /// A random aligned range of pages, and its flexpage with `rights`.
    fn range(&mut self, rights: Rights) -> (usize, usize, Fpage) {
        let most = self.pages.ilog2();
        let bits = match self.random.below(8) {
            0..4 => 0,
            4..6 => self.random.below(4).min(u64::from(most)) as u32,
            6 => self.random.below(u64::from(most) + 1) as u32,
            _ => most.min(9),
        };
        let start = self.random.below((self.pages >> bits) as u64) as usize;
        let first = start << bits;
        (first, 1 << bits, Fpage::memory(address(first), 12 + bits, rights))
    }

    fn rights(&mut self) -> Rights {
        match self.random.below(4) {
            0 => Rights(self.random.below(8) as u8),
            1 => Rights::RX,
            _ => Rights::RWX,
        }
    }

    fn transfer(&mut self) {
        let rights = self.rights();
        let (from, count, fpage) = self.range(rights);
        let slots = self.pages / count;
        let to = self.random.below(slots as u64) as usize * count;
        let (src, dst) = (self.random.below(6) as usize, self.random.below(6) as usize);
        let item = MapItem { send_base: address(to), fpage, grant: self.random.one_in(4) };
        let (source, target) = (self.machine.spaces[src], self.machine.spaces[dst]);
        let mut job = MapJob::new(source, target, item, Fpage::COMPLETE);
        while job.step(1 + self.random.below(60) as u32).expect("quotas suffice") == Step::More {}
        self.model.transfer((src, from), (dst, to), count, rights, item.grant);
    }

    fn unmap(&mut self) {
        let revoke = if self.random.one_in(2) { Rights::RWX } else { self.rights() };
        let (from, count, fpage) = self.range(revoke);
        let space = self.random.below(6) as usize;
        let flush = self.random.one_in(2);
        let mut job = UnmapJob::new(self.machine.spaces[space], fpage, flush);
        while job.step(1 + self.random.below(60) as u32) == Step::More {}
        let status = self.model.unmap((space, from), count, revoke, flush);
        if self.status {
            assert_eq!(job.status(), status, "status of space {space} page {from} x{count}");
        }
    }

    /// A user touches a page.
    fn touch(&mut self) {
        let (space, page) = (self.random.below(6) as usize, self.random.below(self.pages as u64));
        let write = self.random.one_in(2);
        if space == 0 {
            return;
        }
        let hit = self.machine.spaces[space].resolve(address(page as usize), write);
        if let Some(page) = &mut self.model.sigma[space][page as usize] {
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

    fn run(&mut self, operations: u32, check_every: u32) {
        for number in 1..=operations {
            match self.random.below(8) {
                0..4 => self.transfer(),
                4..6 => self.unmap(),
                _ => self.touch(),
            }
            self.compare();
            if number % check_every == 0 {
                assert_eq!(self.machine.violations(false), [], "after {number} operations");
            }
        }
    }

    /// Destroys all spaces but σ0: the frames must be back.
    fn destroy(mut self) {
        while self.machine.spaces.len() > 1 {
            let space = self.machine.spaces.pop().expect("there is one");
            let mut job = DestroyJob::new(space);
            while job.step(1 + self.random.below(60) as u32) == Step::More {}
            assert_eq!(space.quota().used(), 2, "descriptor and root table");
            space.free(&self.machine.bank);
            assert_eq!(self.machine.violations(false), []);
        }
        let sigma0 = self.machine.sigma0();
        UnmapJob::new(sigma0, Fpage::COMPLETE.with_rights(Rights::RWX), true).finish();
        assert_eq!(sigma0.nodes(), 0);
        assert_eq!(frames::free(), self.machine.free_at_start);
    }
}

/// A machine belongs to its thread: every round gets a new one.
fn round(pages: usize, large: bool, seed: u64, operations: u32) {
    let thread = std::thread::spawn(move || {
        let mut pair = Pair::new(pages, large, seed);
        pair.run(operations, 100);
        pair.destroy();
    });
    thread.join().expect("the round holds; its seed is printed above");
}

#[test]
fn small_pages_behave_like_the_model() {
    for number in 0..8 {
        round(8 << (number % 3), false, 100 + number, 25_000);
    }
}

#[test]
fn large_pages_behave_like_the_model() {
    for number in 0..2 {
        round(2 * LARGE, true, 200 + number, 1_000);
    }
}
