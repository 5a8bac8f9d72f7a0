//! Procedure calls: bindings, hosts that lend themselves, calls and returns, and clerks who say
//! yes, mostly to something that makes sense.

use core::sync::atomic::Ordering;

use abi::lrpc::{control, step};
use abi::protocol::LRPC_BIND;
use abi::syscall::Call;
use abi::{MsgTag, Time, Timeouts, utcb};

use super::Me;
use crate::call::{self, Registers, reg};
use crate::den::{THREADS, TOKENS};

/// Pages of the UTCB area that A-stacks are asked for in; the first have UTCBs.
const PAGES: u64 = 16;
/// Procedures that a clerk says it has.
const PROCEDURES: u64 = 4;

impl Me {
    /// One of the four calls.
    pub(super) fn procedures(&mut self) {
        let mut registers = self.any_registers();
        registers[reg::RDI] = self.utcb;
        let number = match self.rng.below(16) {
            0..=2 => self.bind(&mut registers),
            3..=6 => self.lend(&mut registers),
            7 => self.change_bindings(&mut registers),
            _ => self.procedure_call(&mut registers),
        };
        registers[reg::R8] = (number as u64).wrapping_neg();
        let result = self.call(registers, call::trap());
        if number == Call::LrpcBind && result[reg::RAX] == 1 {
            let slot = self.rng.below(TOKENS as u64) as usize;
            self.den.tokens[slot].store(result[reg::RSI], Ordering::Relaxed);
        }
    }

    fn bind(&mut self, registers: &mut Registers) -> Call {
        registers[reg::R14] = self.partner();
        registers[reg::RSI] = self.place_of_stacks();
        registers[reg::RDX] = 1 + self.rng.below(4);
        registers[reg::R12] = self.rng.pick(&[64, 256, 1024, 4096]);
        if self.rng.one_in(16) {
            registers[reg::RDX] = self.word();
            registers[reg::R12] = self.word();
        }
        Call::LrpcBind
    }

    /// To one of the own threads, mostly.
    fn lend(&mut self, registers: &mut Registers) -> Call {
        registers[reg::RSI] = self.own_clerk();
        Call::LrpcReturn
    }

    fn change_bindings(&mut self, registers: &mut Registers) -> Call {
        let what = [control::REVOKE, control::REVOKE_COOKIE, control::FLOOR, control::COUNT];
        registers[reg::RSI] = self.rng.pick(&what);
        registers[reg::R14] = self.own_clerk();
        registers[reg::RDX] = match registers[reg::RSI] {
            control::REVOKE => self.token(),
            _ if self.rng.one_in(8) => self.word(),
            _ => self.rng.below(4),
        };
        Call::LrpcControl
    }

    fn procedure_call(&mut self, registers: &mut Registers) -> Call {
        registers[reg::RSI] = self.token();
        registers[reg::R9] = self.rng.below(PROCEDURES + 1);
        Call::LrpcCall
    }

    fn own_clerk(&mut self) -> u64 {
        if self.rng.one_in(8) {
            return self.thread();
        }
        self.den.ids[self.rng.below(THREADS as u64) as usize].load(Ordering::Relaxed)
    }

    /// A token that this task, or another, has got; sometimes a little changed.
    fn token(&mut self) -> u64 {
        let slot = self.rng.below(TOKENS as u64) as usize;
        let token = step(self.den.tokens[slot].load(Ordering::Relaxed), self.rng.below(3));
        match self.rng.below(16) {
            0 => token ^ 1 << self.rng.below(64),
            1 => token ^ 0xFFFF_FFFF,
            2 => self.word(),
            _ => token,
        }
    }

    fn place_of_stacks(&mut self) -> u64 {
        if self.rng.one_in(8) {
            return self.word();
        }
        super::area_of(self.utcb) + (2 + self.rng.below(PAGES - 2)) * 4096
    }

    /// If a thread has asked for a binding, in what a call has brought: an answer, which mostly agrees.
    pub(super) fn answer_import(&mut self, result: &Registers) {
        if MsgTag(result[reg::R9]).protocol_label() != LRPC_BIND || self.rng.one_in(16) {
            return;
        }
        let mut registers = self.any_registers();
        let words = [self.place_of_stacks(), PROCEDURES, self.rng.below(4)];
        (1..).zip(words).for_each(|(index, word)| self.set_mr(&mut registers, index, word));
        registers[reg::R9] = MsgTag::new(0, 3, 0).0;
        registers[reg::RSI] = result[reg::RSI];
        registers[reg::RDX] = 0;
        registers[reg::R8] = Timeouts::new(Time::ZERO, Time::ZERO).0;
        registers[reg::RDI] = self.utcb;
        call::call(&mut registers, call::trap());
    }
}

const _: () = assert!(THREADS as u64 * utcb::SIZE <= 2 * 4096);
