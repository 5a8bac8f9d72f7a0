//! A simulated TLB: what a switch of address spaces costs in translations that have to be had
//! again, by the pages that a program works on (Liedtke 1995, section 4.1.2, Table 1, Figure 2).
//! It counts misses and weighs them with latencies that are written down here with their sources;
//! it knows nothing of caches, prefetching and walks that overlap, and claims nothing about them.

use std::collections::BTreeSet;

/// A processor, as far as addresses are translated.
pub struct Processor {
    /// What it is called.
    pub name: &'static str,
    /// Its first level for data and for code; the same one if it is unified.
    data: Shape,
    code: Option<Shape>,
    second: Option<Shape>,
    /// Cycles from the second level, if there is one.
    second_cycles: u64,
    /// Cycles of one access to a page table, at best and at worst, and what a miss costs beside.
    access: [u64; 2],
    miss: u64,
    /// Levels of a page table of which the last is looked up again and again, and those above
    /// are remembered until the table is changed.
    levels: u64,
    /// Whether translations of the kernel outlive a change of the page table.
    global: bool,
}

/// Entries and ways.
#[derive(Clone, Copy)]
struct Shape(usize, usize);

/// The 1995 paper's own, in its numbers (Tables 1 and 3): a miss takes 9 to 13 cycles. The 486.
pub const I486: Processor = Processor {
    name: "486",
    data: Shape(32, 4),
    code: None,
    second: None,
    second_cycles: 0,
    access: [9, 13],
    miss: 0,
    levels: 1,
    global: false,
};
/// The Pentium of the paper, 90 MHz.
pub const PENTIUM: Processor =
    Processor { name: "Pentium", data: Shape(64, 4), code: Some(Shape(32, 4)), ..I486 };
/// Sizes and cache latencies: Intel's optimization manual, Skylake client (L2 12 cycles, L3 44); what
/// the second level costs: 9 cycles, as Intel's top-down analysis counts its hits.
pub const SKYLAKE: Processor = Processor {
    name: "Skylake",
    data: Shape(64, 4),
    code: Some(Shape(128, 8)),
    second: Some(Shape(1536, 12)),
    second_cycles: 9,
    access: [12, 44],
    miss: 9,
    levels: 4,
    global: true,
};

impl Processor {
    /// Entries of the level that misses are dear from: all of it is lost with a page table.
    pub const fn entries(&self) -> usize {
        let Shape(data, _) = self.data;
        let code = if let Some(Shape(code, _)) = self.code { code } else { 0 };
        if let Some(Shape(second, _)) = self.second { second } else { data + code }
    }

    /// Cycles of a miss whose page table above the last level is remembered, at best and at worst.
    pub fn miss_cycles(&self) -> [u64; 2] {
        self.access.map(|access| self.miss + access)
    }
}

/// Whether entries say to which space they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// No: a change of the page table empties the TLB.
    None,
    /// Yes: entries stay.
    Spaces,
}

/// A page of a space; space 0 is the kernel, which is in all of them.
type Page = (u8, u64);

/// One set-associative memory, least recently used first.
struct Level {
    sets: Vec<Vec<Page>>,
    ways: usize,
}

impl Level {
    fn new(Shape(entries, ways): Shape) -> Self {
        Self { sets: vec![Vec::new(); entries / ways], ways }
    }

    /// Whether the page is there; it is afterwards.
    fn look_up(&mut self, page: Page) -> bool {
        let at = page.1 as usize % self.sets.len();
        let set = &mut self.sets[at];
        let found = set.iter().position(|other| *other == page);
        if let Some(found) = found {
            set.remove(found);
        } else if set.len() == self.ways {
            set.remove(0);
        }
        set.push(page);
        found.is_some()
    }

    fn flush(&mut self, keep: impl Fn(&Page) -> bool) {
        self.sets.iter_mut().for_each(|set| set.retain(&keep));
    }
}

/// A processor at work.
struct Machine<'a> {
    of: &'a Processor,
    tags: Tags,
    data: Level,
    code: Option<Level>,
    second: Option<Level>,
    /// Tables above the last level that are remembered: space, and 512 pages.
    upper: BTreeSet<Page>,
    cycles: [u64; 2],
}

/// What a page is touched for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Data,
    Code,
}

impl<'a> Machine<'a> {
    fn new(of: &'a Processor, tags: Tags) -> Self {
        Self {
            of,
            tags,
            data: Level::new(of.data),
            code: of.code.map(Level::new),
            second: of.second.map(Level::new),
            upper: BTreeSet::new(),
            cycles: [0; 2],
        }
    }

    fn touch(&mut self, page: Page, what: Use) {
        let first = match &mut self.code {
            Some(code) if what == Use::Code => code,
            _ => &mut self.data,
        };
        if first.look_up(page) {
            return;
        }
        if self.second.as_mut().is_some_and(|second| second.look_up(page)) {
            self.cycles = self.cycles.map(|cycles| cycles + self.of.second_cycles);
            return;
        }
        let above = if self.upper.insert((page.0, page.1 / 512)) { self.of.levels - 1 } else { 0 };
        for (cycles, access) in self.cycles.iter_mut().zip(self.of.access) {
            *cycles += self.of.miss + access * (1 + above);
        }
    }

    /// Another page table.
    fn switch(&mut self) {
        if self.tags == Tags::Spaces {
            return;
        }
        let kernel = self.of.global;
        let keep = |page: &Page| kernel && page.0 == 0;
        let code = self.code.iter_mut();
        for level in std::iter::once(&mut self.data).chain(code).chain(&mut self.second) {
            level.flush(keep);
        }
        // What is remembered of the tables above the last goes with every change, the kernel's too.
        self.upper.clear();
    }

    /// The application's round: its code, its stack, and the pages that it works on.
    fn application(&mut self, pages: u64) {
        self.touch((1, 0), Use::Code);
        self.touch((1, (1 << 20) + 5), Use::Data);
        (0..pages).for_each(|page| self.touch((1, 1000 + page), Use::Data));
    }

    /// A call of a server that works on two pages, and its answer: `kernel` pages each way.
    fn call(&mut self, kernel: u64) {
        for space in [2, 1] {
            self.touch((0, 0), Use::Code);
            (1..kernel).for_each(|page| self.touch((0, page * 513), Use::Data));
            self.switch();
            if space == 2 {
                self.touch((2, 0), Use::Code);
                self.touch((2, (1 << 20) + 9), Use::Data);
                (0..2).for_each(|page| self.touch((2, 2000 + page), Use::Data));
            }
        }
    }
}

/// Rounds until nothing changes any more.
const WARM: usize = 4;

/// Cycles, at best and at worst, for which translations are had again in a round of an
/// application that works on `pages` pages and calls a server, beyond the same round without a call.
pub fn refill(of: &Processor, tags: Tags, pages: u64, kernel: u64) -> [u64; 2] {
    let cost = |calls: bool| {
        let mut machine = Machine::new(of, tags);
        for _ in 0..=WARM {
            machine.cycles = [0; 2];
            machine.application(pages);
            if calls {
                machine.call(kernel);
            }
        }
        machine.cycles
    };
    let (with, without) = (cost(true), cost(false));
    [0, 1].map(|at| with[at].saturating_sub(without[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_own_bounds_are_those_of_the_model() {
        // Table 1: 4 pages at least; at most all entries but the 4 that the kernel needs anyway.
        for (processor, least, most) in [(I486, 36, 364), (PENTIUM, 36, 1196)] {
            let [best, worst] = processor.miss_cycles();
            assert_eq!((4 * best, (processor.entries() as u64 - 4) * worst), (least, most));
        }
    }

    #[test]
    fn tags_save_what_a_switch_costs() {
        for pages in [2, 4, 8] {
            for processor in [PENTIUM, SKYLAKE] {
                let [best, worst] = refill(&processor, Tags::None, pages, 3);
                assert!(best >= pages * processor.miss_cycles()[0] && worst > best);
                assert_eq!(refill(&processor, Tags::Spaces, pages, 3), [0, 0]);
            }
        }
        // Where both together are more than there are entries, pages push each other out, tagged or not.
        let [_, tagged] = refill(&PENTIUM, Tags::Spaces, 64, 3);
        assert!(tagged > 0 && tagged < refill(&PENTIUM, Tags::None, 64, 3)[0], "{tagged}");
    }

    #[test]
    fn with_tags_two_working_sets_that_do_not_fit_together_cost_something() {
        let [_, worst] = refill(&SKYLAKE, Tags::Spaces, 64, 3);
        assert!(worst > 0 && worst < refill(&SKYLAKE, Tags::None, 64, 3)[0]);
    }

    #[test]
    fn the_oldest_of_a_set_goes() {
        let mut level = Level::new(Shape(4, 2));
        assert!(!level.look_up((1, 0)) && !level.look_up((1, 2)));
        assert!(level.look_up((1, 0)) && !level.look_up((1, 4)));
        assert!(level.look_up((1, 0)) && !level.look_up((1, 2)));
        level.flush(|page| page.1 == 0);
        assert!(level.look_up((1, 0)) && !level.look_up((1, 4)));
    }
}
