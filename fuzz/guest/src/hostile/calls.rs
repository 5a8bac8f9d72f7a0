//! The remaining calls, and the trap with anything in its registers.

use abi::layout::{self, stub};
use abi::syscall::state;

use super::Me;
use crate::call::{self, Registers, reg};

impl Me {
    pub(super) fn other_call(&mut self) {
        let mut registers = self.any_registers();
        let calls = [
            stub::QUOTA_CONTROL,
            stub::QUOTA_CONTROL,
            stub::MEMORY_CONTROL,
            stub::PROCESSOR_CONTROL,
            stub::INSPECT,
            stub::TASK_CONTROL,
            stub::CREATE_THREAD,
            stub::SYSTEM_CLOCK,
            stub::THREAD_STATE,
            stub::THREAD_STATE,
        ];
        let call = self.rng.pick(&calls);
        match call {
            stub::QUOTA_CONTROL => {
                registers[reg::RDI] = self.thread();
                let pages = self.rng.below(16);
                registers[reg::RSI] = if self.rng.one_in(2) { pages } else { pages.wrapping_neg() };
                if self.rng.one_in(4) {
                    registers[reg::RSI] = self.word();
                }
            }
            stub::TASK_CONTROL => self.limits(&mut registers),
            stub::CREATE_THREAD => {
                registers[reg::RDI] = self.new_child().0;
                registers[reg::R8] = self.thread();
            }
            stub::MEMORY_CONTROL => registers[reg::RDI] = self.utcb,
            stub::THREAD_STATE => {
                let own = runtime::utcb::my_global_id().0;
                registers[reg::RDI] = if self.rng.one_in(2) { own } else { self.thread() };
                let control =
                    [state::NO_VECTOR, state::VECTOR, 1 << self.rng.below(10), self.word()];
                registers[reg::RSI] = self.rng.pick(&control);
                registers[reg::RDX] = self.place() & !63;
            }
            _ => registers[reg::RDI] = self.rng.below(7),
        }
        self.stub(registers, call);
    }

    /// Numbers and ceilings for somebody: a part of the own ones, others', anything.
    fn limits(&mut self, registers: &mut Registers) {
        registers[reg::RDI] = if self.rng.one_in(2) { self.child().0 } else { self.thread() };
        let first = u64::from(self.child().number()) - self.rng.below(20);
        let numbers = self.rng.below(20) << 32 | first;
        let ceilings = self.rng.below(256) | self.rng.below(1 << 15) << 32;
        let word = self.word();
        registers[reg::RSI] = self.rng.pick(&[!0, numbers, word]);
        registers[reg::RDX] = self.rng.pick(&[!0, ceilings, word]);
    }

    pub(super) fn raw_trap(&mut self) {
        let mut registers = self.any_registers();
        let numbers = [
            self.rng.below(27).wrapping_neg(),
            self.rng.below(27).wrapping_neg(),
            0,
            self.timeouts(),
            self.word(),
        ];
        registers[reg::R8] = self.rng.pick(&numbers);
        // An IPC that would wait for ever waits for the judge's help only.
        if registers[reg::R8] >> 63 == 0 && !self.rng.one_in(8) {
            registers[reg::R8] |= 0x0400_0400;
        }
        if self.rng.one_in(2) {
            registers[reg::RSI] = self.thread();
            registers[reg::RDX] = self.source(registers[reg::RSI]);
        }
        let target = if self.rng.one_in(8) {
            layout::stub_address(self.rng.below(stub::COUNT))
        } else {
            call::trap()
        };
        self.call(registers, target);
    }
}
