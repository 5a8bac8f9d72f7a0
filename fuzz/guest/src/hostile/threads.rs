//! Threads and tasks: created, changed, started, stopped, deleted.

use abi::layout::{INITIAL_KIP, STUBS, stub};
use abi::syscall::exregs as bit;
use abi::{Fpage, Rights, ThreadId};

use runtime::kip;

use super::Me;
use crate::call::{self, Registers, reg};
use crate::den::THREADS;
use crate::machine;

impl Me {
    pub(super) fn exchange_registers(&mut self) {
        let mut registers = self.any_registers();
        registers[reg::RAX] = if self.rng.one_in(2) { self.partner() } else { self.thread() };
        let control = match self.rng.below(4) {
            0 => self.rng.below(1 << 10),
            1 => bit::ABORT_SEND | bit::ABORT_RECEIVE,
            2 => bit::HALT_VALID | self.rng.below(2),
            _ => self.rng.below(1 << 10) & !(bit::IP | bit::SP | bit::PAGER),
        };
        registers[reg::RSI] = control;
        // Where it may go on; the other register holds whatever it holds.
        registers[reg::R8] = match self.rng.below(32) {
            0..=7 => STUBS + self.rng.below(0x700),
            8 => call::spin(),
            9..=20 => call::echo(),
            _ => registers[reg::R8],
        };
        self.stub(registers, stub::EXCHANGE_REGISTERS);
    }

    fn control(&mut self, words: [u64; 5]) -> Registers {
        let mut registers = [0; 15];
        let [dest, pager, scheduler, space, utcb] = words;
        registers[reg::RDI] = dest;
        registers[reg::RSI] = pager;
        registers[reg::RDX] = scheduler;
        registers[reg::R8] = space;
        registers[reg::R9] = utcb;
        self.stub(registers, stub::THREAD_CONTROL)
    }

    /// A random ThreadControl: often for nobody, sometimes a sibling's end.
    pub(super) fn thread_control(&mut self) {
        let dest = match self.rng.below(8) {
            0 => self.partner(),
            1..=3 => self.thread(),
            4..=5 => self.new_child().0,
            _ => self.child().0,
        };
        let mut words = [dest, self.thread(), self.thread(), self.thread(), self.location()];
        for word in &mut words[1..] {
            if self.rng.one_in(4) {
                *word = self.rng.pick(&[0, !0, dest, dest]);
            }
        }
        self.control(words);
    }

    fn location(&mut self) -> u64 {
        match self.rng.below(6) {
            0 => !0,
            1 => self.word(),
            2 => super::area_of(self.utcb) + self.rng.below(1 << 15),
            _ => super::area_of(self.utcb) + self.rng.below(16) * 1024,
        }
    }

    /// Children done properly: a thread or a task, made, started, or deleted.
    pub(super) fn children(&mut self) {
        let id = self.new_child().0;
        let own = machine::read(self.utcb.wrapping_add_signed(abi::utcb::MY_GLOBAL_ID as i64 * 8));
        match self.rng.below(16) {
            0..=4 => {
                self.control([id, 0, 0, 0, !0]);
            }
            5..=12 => {
                let location = super::area_of(self.utcb) + (4 + self.rng.below(12)) * 1024;
                let pager = if self.rng.one_in(2) { own } else { ThreadId::ROOT.0 };
                self.control([id, pager, own, own, location]);
                self.start(id);
            }
            _ => {
                self.control([id, 0, own, id, !0]);
                self.areas(id);
                let pager = if self.rng.one_in(2) { own } else { ThreadId::ROOT.0 };
                self.control([id, pager, 0, id, super::area_of(self.utcb)]);
                self.start(id);
            }
        }
    }

    fn areas(&mut self, id: u64) {
        let mut registers = [0; 15];
        registers[reg::RDI] = id;
        registers[reg::RDX] = Fpage::memory(INITIAL_KIP, 12, Rights::NONE).0;
        registers[reg::R8] = Fpage::memory(super::area_of(self.utcb), 14, Rights::NONE).0;
        self.stub(registers, stub::SPACE_CONTROL);
    }

    /// Starts a child: it answers messages, spins, or joins the crowd of random callers.
    fn start(&mut self, id: u64) {
        let last = THREADS - 1;
        let (ip, sp) = match self.rng.below(32) {
            0 => (call::spin(), 0),
            1..=8 => (machine::hostile_start(), self.den.start_of(last)),
            _ => (call::echo(), self.den.stack_top(last)),
        };
        let mut registers = [0; 15];
        registers[reg::RAX] = id;
        registers[reg::RSI] = bit::HALT_VALID | bit::ABORT_RECEIVE | bit::SP | bit::IP;
        (registers[reg::RDX], registers[reg::R8]) = (sp, ip);
        self.stub(registers, stub::EXCHANGE_REGISTERS);
    }

    pub(super) fn schedule(&mut self) {
        let mut registers = self.any_registers();
        registers[reg::RDI] = if self.rng.one_in(2) { self.child().0 } else { self.thread() };
        for register in [reg::RSI, reg::RDX, reg::R8, reg::R9] {
            registers[register] = match self.rng.below(4) {
                0 | 1 => !0,
                2 => self.rng.word() >> 32,
                _ => self.word(),
            };
        }
        if self.rng.one_in(2) {
            registers[reg::RSI] = self.rng.below(101);
        }
        let processors = u64::from(kip::get().processors());
        if processors > 1 && self.rng.one_in(2) {
            // One too many among them.
            registers[reg::R8] = self.rng.below(processors + 1);
        }
        self.stub(registers, stub::SCHEDULE);
    }

    pub(super) fn space_control(&mut self) {
        let mut registers = self.any_registers();
        registers[reg::RDI] = self.thread();
        registers[reg::RDX] = self.fpage();
        registers[reg::R8] = self.fpage();
        self.stub(registers, stub::SPACE_CONTROL);
    }

    pub(super) fn thread_switch(&mut self) {
        let mut registers = self.any_registers();
        registers[reg::RDI] = self.thread();
        self.stub(registers, stub::THREAD_SWITCH);
    }
}
