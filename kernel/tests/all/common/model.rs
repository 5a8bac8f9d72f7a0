//! The model of address spaces: Liedtke 1995, Appendix A, transcribed.
//!
//! Every space is a table from page to (space, page), with rights added as in
//! section 2.1; σ0 maps to frames. Replacing an entry flushes it first. As in the
//! appendix's implementation (a granted node's values are replaced in its tree),
//! what was derived from a granted page stays; as in its equations, what was derived from a
//! part of a large one does not. For large pages the model keeps
//! two facts that the equations lack: how large the page is now, and how large
//! it was when it was mapped.

use abi::Rights;

/// Pages in a large page.
pub const LARGE: usize = 512;

/// One page of a space: where it came from and what it may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    pub parent: (usize, usize),
    pub rights: Rights,
    /// Part of a large page of the page table.
    pub large: bool,
    /// Was mapped as part of a large page.
    pub born_large: bool,
    /// Referenced or written, as in the page table.
    pub status: Rights,
    /// What vanished children left.
    pub left: Rights,
}

/// All spaces; index 0 is σ0.
pub struct Model {
    pub sigma: Vec<Vec<Option<Page>>>,
    /// σ0's pages are large.
    large_frames: bool,
}

impl Model {
    pub fn new(spaces: usize, pages: usize, large_frames: bool) -> Self {
        let mut sigma = vec![vec![None; pages]; spaces];
        sigma[0] = (0..pages).map(|v| Some(Self::frame(v, large_frames))).collect();
        Self { sigma, large_frames }
    }

    fn frame(v: usize, large: bool) -> Page {
        Page {
            parent: (usize::MAX, v),
            rights: Rights::RWX,
            large,
            born_large: large,
            status: Rights::NONE,
            left: Rights::NONE,
        }
    }

    fn children(&self, of: (usize, usize)) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (s, table) in self.sigma.iter().enumerate().skip(1) {
            for (v, page) in table.iter().enumerate() {
                if page.is_some_and(|page| page.parent == of) {
                    found.push((s, v));
                }
            }
        }
        found
    }

    /// flush(σ, v): everything derived becomes nil. Returns its status.
    pub fn flush(&mut self, at: (usize, usize)) -> Rights {
        let mut status = Rights::NONE;
        for child in self.children(at) {
            status = status.or(self.flush(child));
            if let Some(page) = self.sigma[child.0][child.1].take() {
                status = status.or(page.status).or(page.left);
            }
        }
        status
    }

    /// flush(σ, v), then σ_v := nil (σ0 keeps its identity).
    pub fn remove(&mut self, at: (usize, usize)) -> Rights {
        let mut status = self.flush(at);
        let Some(page) = self.sigma[at.0][at.1] else { return status };
        status = status.or(page.left);
        if at.0 != 0 {
            status = status.or(page.status);
            self.sigma[at.0][at.1] = None;
            let (s, v) = page.parent;
            if let Some(parent) = &mut self.sigma[s][v] {
                parent.left = parent.left.or(status);
            }
        }
        status
    }

    /// Takes `revoke` from what is derived, and with `own` from the page itself.
    fn restrict(&mut self, at: (usize, usize), revoke: Rights, own: bool, reset: bool) -> Rights {
        let mut status = Rights::NONE;
        for child in self.children(at) {
            status = status.or(self.restrict(child, revoke, true, reset));
        }
        let Some(page) = &mut self.sigma[at.0][at.1] else { return status };
        status = status.or(page.left);
        if reset {
            page.left = Rights::NONE;
        }
        if own && at.0 != 0 {
            status = status.or(page.status);
            page.rights = page.rights.without(revoke);
            if reset {
                page.status = Rights::NONE;
            }
        }
        status
    }

    /// Unmap of `count` pages from `at`; returns the status word.
    pub fn unmap(&mut self, at: (usize, usize), count: usize, revoke: Rights, own: bool) -> Rights {
        let mut status = Rights::NONE;
        for v in at.1..at.1 + count {
            let here = (at.0, v);
            status = status.or(if !revoke.contains(Rights::R) {
                self.restrict(here, revoke, own, true)
            } else if own {
                self.remove_and_reset(here)
            } else {
                let left = self.restrict(here, Rights::NONE, false, true);
                left.or(self.flush(here))
            });
        }
        self.settle();
        status
    }

    fn remove_and_reset(&mut self, at: (usize, usize)) -> Rights {
        let status = self.remove(at);
        if let Some(page) = &mut self.sigma[at.0][at.1] {
            page.left = Rights::NONE;
        }
        status
    }

    /// Map or grant of `count` pages.
    pub fn transfer(
        &mut self,
        from: (usize, usize),
        to: (usize, usize),
        count: usize,
        rights: Rights,
        grant: bool,
    ) {
        let grant = grant && from.0 != 0;
        if to.0 == 0 {
            return;
        }
        let mut done = 0;
        while done < count {
            let (source, target) = ((from.0, from.1 + done), (to.0, to.1 + done));
            let Some(page) = self.sigma[source.0][source.1] else {
                done += 1;
                continue;
            };
            let aligned = (source.1 | target.1) % LARGE == 0 && count - done >= LARGE;
            let size = if page.large && aligned { LARGE } else { 1 };
            let effective = page.rights.and(rights);
            if source == target || !effective.contains(Rights::R) {
                done += 1;
                continue;
            }
            if !self.is_same(source, target, size, grant) && self.clear(target, size) {
                self.settle();
                continue;
            }
            for i in 0..size {
                let (s, t) = ((source.0, source.1 + i), (target.0, target.1 + i));
                self.assign(s, t, effective, size == LARGE, grant);
            }
            self.settle();
            done += size;
        }
    }

    fn is_same(
        &self,
        source: (usize, usize),
        target: (usize, usize),
        size: usize,
        grant: bool,
    ) -> bool {
        !grant
            && self.sigma[target.0][target.1]
                .is_some_and(|there| there.parent == source && (size == 1 || there.large))
    }

    /// Makes room at `at`; true if anything was there.
    fn clear(&mut self, at: (usize, usize), size: usize) -> bool {
        let mut any = false;
        for v in at.1..at.1 + size {
            any |= self.sigma[at.0][v].is_some();
            self.remove((at.0, v));
        }
        any
    }

    fn assign(
        &mut self,
        from: (usize, usize),
        to: (usize, usize),
        rights: Rights,
        large: bool,
        grant: bool,
    ) {
        let Some(source) = self.sigma[from.0][from.1] else { return };
        let parent = if grant { source.parent } else { from };
        match &mut self.sigma[to.0][to.1] {
            Some(there) => there.rights = there.rights.or(rights),
            None => {
                let fresh =
                    Page { parent, rights, large, born_large: large, ..Self::frame(0, false) };
                self.sigma[to.0][to.1] = Some(fresh);
            }
        }
        if grant {
            self.hand_over(from, to, source, rights, large);
        }
    }

    /// The rest of a grant: what was derived from `from` is now derived from `to`.
    fn hand_over(
        &mut self,
        from: (usize, usize),
        to: (usize, usize),
        source: Page,
        rights: Rights,
        large: bool,
    ) {
        for child in self.children(from) {
            if source.born_large && !large {
                self.remove(child);
                continue;
            }
            self.restrict(child, source.rights.without(rights), true, false);
            if let Some(page) = &mut self.sigma[child.0][child.1] {
                page.parent = to;
            }
        }
        let left = self.sigma[from.0][from.1].map_or(Rights::NONE, |page| page.left);
        if let Some(there) = &mut self.sigma[to.0][to.1] {
            there.status = there.status.or(source.status);
            there.left = there.left.or(left);
        }
        self.sigma[from.0][from.1] = None;
        let (s, v) = source.parent;
        if let Some(parent) = &mut self.sigma[s][v] {
            parent.left = parent.left.or(source.status);
        }
    }

    /// A large page whose parts differ has been split.
    fn settle(&mut self) {
        for table in self.sigma.iter_mut().skip(1) {
            for chunk in table.chunks_mut(LARGE) {
                let first = chunk[0];
                let uniform = chunk.iter().all(|page| match (page, first) {
                    (Some(page), Some(first)) => page.large && page.rights == first.rights,
                    _ => false,
                });
                if !uniform {
                    chunk.iter_mut().flatten().for_each(|page| page.large = false);
                }
            }
        }
        debug_assert!(self.sigma[0].iter().flatten().all(|page| page.large == self.large_frames));
    }
}
