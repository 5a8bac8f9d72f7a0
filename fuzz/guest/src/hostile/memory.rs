//! Unmap and flush.

use abi::layout::stub;

use super::Me;
use crate::call::{MRS, reg};
use crate::machine;

impl Me {
    pub(super) fn unmap(&mut self) {
        let mut registers = self.any_registers();
        let count = 1 + self.rng.below_either(8, 63, 4);
        for index in 0..count {
            let fpage = match self.fpage() {
                // Its own code and den are lost rarely: the judge has to give them again.
                complete if complete & !0xF == 0x10 && !self.rng.one_in(16) => 0,
                fpage => fpage,
            };
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
