//! Blocks of contiguous memory given to a task on request (drivers' buffers, devices' memory).
//!
//! Each task has a table of its own. What it has got once stays its own: when it is over, its
//! blocks wait for its next life, so that nobody takes from others by ending and beginning.

use proto::Refusal;
use runtime::sigma0;
use runtime::window::Window;

/// Blocks that a task can have.
pub const BLOCKS: usize = 16;

struct Block {
    window: Window,
    /// Whether the task has it now.
    given: bool,
    /// Whether it was asked for by its address (and is not conventional memory).
    fixed: bool,
}

/// The blocks of one task.
pub struct Blocks {
    list: [Option<Block>; BLOCKS],
}

impl Blocks {
    /// None yet.
    pub const fn new() -> Self {
        Self { list: [const { None }; BLOCKS] }
    }

    /// Bytes that the task has.
    pub fn bytes_in_use(&self) -> u64 {
        self.bytes(|block| block.given)
    }

    fn bytes(&self, counts: impl Fn(&Block) -> bool) -> u64 {
        let counted = self.list.iter().flatten().filter(|block| counts(block));
        counted.map(|block| block.window.bytes()).sum()
    }

    /// The task is over.
    pub fn release(&mut self) {
        self.list.iter_mut().flatten().for_each(|block| block.given = false);
    }

    /// A block of 2^`bits` bytes, of which the task may have `limit` bytes. Returns its
    /// physical address, and whether it holds what the task left in it in an earlier life: to
    /// zero that is left to the task, since here everybody would wait. Conventional memory
    /// that is new is zeroed.
    pub fn take(
        &mut self,
        bits: u32,
        physical: Option<u64>,
        limit: u64,
    ) -> Result<(u64, bool), Refusal> {
        let bytes = 1u64 << bits;
        let fits = |block: &Block| {
            !block.given
                && block.window.bytes() == bytes
                && physical.map_or(!block.fixed, |base| block.window.base() == base)
        };
        if let Some(block) = self.list.iter_mut().flatten().find(|block| fits(block)) {
            block.given = true;
            return Ok((block.window.base(), !block.fixed));
        }
        // What waits for the next life counts: it is not there for anybody else.
        if physical.is_none() && self.bytes(|block| !block.fixed) + bytes > limit {
            return Err(Refusal::Exhausted);
        }
        let free = self.list.iter_mut().find(|block| block.is_none()).ok_or(Refusal::Exhausted)?;
        let window = sigma0::memory(physical, bits).ok_or(Refusal::Taken)?;
        let fixed = physical.is_some();
        if !fixed {
            window.zero(0, window.bytes());
        }
        let base = window.base();
        *free = Some(Block { window, given: true, fixed });
        Ok((base, false))
    }
}
