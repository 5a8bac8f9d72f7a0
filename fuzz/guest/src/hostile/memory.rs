//! Unmap and flush.

use abi::Fpage;
use abi::layout::stub;

use super::Me;
use crate::call::{MRS, reg};
use crate::machine;

/// Log2 size beyond which a region is large, and how rarely one is flushed.
const LARGE_BITS: u32 = 16;
const RARE: u64 = 128;

impl Me {
    pub(super) fn unmap(&mut self) {
        let mut registers = self.any_registers();
        let count = 1 + self.rng.below_either(32, 63, 3);
        for index in 0..count {
            // Large regions, its own code among them, rarely: that takes long.
            let mut fpage = self.fpage();
            if Fpage(fpage).bits() > LARGE_BITS && !self.rng.one_in(RARE) {
                fpage = 0;
            }
            match MRS.get(index as usize) {
                Some(register) => registers[*register] = fpage,
                None => machine::write(self.utcb + index * 8, fpage),
            }
        }
        let flush = u64::from(self.rng.one_in(2)) << 6;
        registers[reg::RDX] = (count - 1) | flush;
        if self.rng.one_in(16) {
            registers[reg::RDX] = self.word();
        }
        registers[reg::RDI] = self.utcb;
        self.stub(registers, stub::UNMAP);
    }
}
