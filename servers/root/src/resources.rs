//! Blocks of contiguous memory given to tasks on request (drivers' buffers,
//! devices' memory). A block of a task that is over is used again.

use proto::Refusal;
use runtime::sigma0;
use runtime::window::Window;

/// Blocks that can be given out.
const BLOCKS: usize = 24;
/// No task's slot: what the machine had before this system.
const NOBODY: usize = usize::MAX;

struct Block {
    window: Window,
    /// The slot of the task that has it.
    owner: Option<usize>,
    /// The slot of the task that had it last, whose data it may hold.
    holds: usize,
    /// Whether it was asked for by its address (and is not conventional memory).
    fixed: bool,
}

/// All blocks.
pub struct Blocks {
    list: [Option<Block>; BLOCKS],
}

impl Blocks {
    /// None yet.
    pub const fn new() -> Self {
        Self { list: [const { None }; BLOCKS] }
    }

    /// Bytes that tasks have.
    pub fn bytes_in_use(&self) -> u64 {
        self.list
            .iter()
            .flatten()
            .filter(|block| block.owner.is_some())
            .map(|block| block.window.bytes())
            .sum()
    }

    /// The task in `slot` is over.
    pub fn release(&mut self, slot: usize) {
        for block in self.list.iter_mut().flatten().filter(|block| block.owner == Some(slot)) {
            block.owner = None;
        }
    }

    /// A block of 2^`bits` bytes for the task in `slot`, which may have `limit`
    /// bytes. Returns its physical address, and whether it holds what that same task
    /// left in it: to zero that is left to the task, since here everybody would wait.
    /// Other conventional memory is zeroed.
    pub fn take(
        &mut self,
        slot: usize,
        bits: u32,
        physical: Option<u64>,
        limit: u64,
    ) -> Result<(u64, bool), Refusal> {
        let bytes = 1u64 << bits;
        let has: u64 = self
            .list
            .iter()
            .flatten()
            .filter(|b| b.owner == Some(slot))
            .map(|b| b.window.bytes())
            .sum();
        if physical.is_none() && has + bytes > limit {
            return Err(Refusal::Exhausted);
        }
        let fits = |block: &Block| {
            block.owner.is_none()
                && block.window.bytes() == bytes
                && physical.map_or(!block.fixed, |base| block.window.base() == base >> bits << bits)
        };
        if let Some(block) = self.list.iter_mut().flatten().find(|block| fits(block)) {
            block.owner = Some(slot);
            return Ok((block.window.base(), prepare(block, slot)));
        }
        let free = self.list.iter_mut().find(|block| block.is_none()).ok_or(Refusal::Exhausted)?;
        let window = sigma0::memory(physical, bits).ok_or(Refusal::Taken)?;
        let fixed = physical.is_some();
        let block = free.insert(Block { window, owner: Some(slot), holds: NOBODY, fixed });
        Ok((block.window.base(), prepare(block, slot)))
    }
}

/// Makes sure that the task in `slot` sees nobody else's data; whether it sees its own.
fn prepare(block: &mut Block, slot: usize) -> bool {
    let last = core::mem::replace(&mut block.holds, slot);
    let own = last == slot && !block.fixed;
    if !own && !block.fixed {
        block.window.zero(0, block.window.bytes());
    }
    own
}
