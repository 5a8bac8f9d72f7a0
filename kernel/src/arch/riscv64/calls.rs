//! Which registers of a frame are a call's arguments and results, and which the words of a
//! foreign thread's call. X.2 has no binding for RISC-V; this is Baton's: the call's word in
//! a7, arguments and results from a0 on, as functions have them.

use abi::inspect::Back;
use abi::riscv64::EXCEPTION_WORDS;
use abi::{MsgTag, ThreadId};

use super::frame::{Frame, TrapFrame, exception_words, set_exception_words};
use super::trap::Cause;
use crate::arch::exchange::Exchange;

/// The register a0.
const A0: usize = 10;
/// The register a7.
const A7: usize = 17;
/// In place of a cause: the thread's time is used up; no processor has it.
const OUT_OF_TIME: u64 = !0;

/// Length in bytes of the instruction with which a program calls its system.
pub const SYSTEM_CALL_BYTES: u64 = 4;

impl TrapFrame {
    fn a<const COUNT: usize>(&self) -> [u64; COUNT] {
        core::array::from_fn(|index| self.x(A0 + index).get())
    }

    fn set_a(&self, words: impl IntoIterator<Item = u64>) {
        (A0..).zip(words).for_each(|(number, word)| self.x(number).set(word));
    }

    /// The word that names the call (`abi::syscall::Call::decode`).
    #[must_use]
    pub fn call(&self) -> u64 {
        self.x(A7).get()
    }

    /// The arguments of every call but ExchangeRegisters, the one that names whom it concerns
    /// first.
    #[must_use]
    pub fn arguments(&self) -> [u64; 5] {
        self.a()
    }

    /// The arguments of ExchangeRegisters: destination, control, stack pointer, instruction
    /// pointer, flags, handle, pager.
    #[must_use]
    pub fn exchange_arguments(&self) -> [u64; 7] {
        self.a()
    }

    /// The results of ExchangeRegisters, in the same order.
    pub fn set_exchange_results(&self, words: [u64; 7]) {
        self.set_a(words);
    }

    /// The four attributes of MemoryControl, behind its third argument.
    #[must_use]
    pub fn attributes(&self) -> [u64; 4] {
        let [_, _, _, attributes @ ..] = self.a::<7>();
        attributes
    }

    /// A call's result: 1 for success, 0 for failure, or what the call says.
    pub fn set_result(&self, word: u64) {
        self.x(A0).set(word);
    }

    /// A call's second result.
    pub fn set_second(&self, word: u64) {
        self.x(A0 + 1).set(word);
    }

    /// A call's third result.
    pub fn set_third(&self, word: u64) {
        self.x(A0 + 2).set(word);
    }

    /// What [`Self::set_result`], [`Self::set_second`] and [`Self::set_third`] have set: for tests.
    #[must_use]
    pub fn results(&self) -> [u64; 3] {
        self.a()
    }

    /// Fills the registers as a program does that makes the call that `word` names: for tests.
    pub fn make_call(&self, word: u64, arguments: [u64; 5]) {
        self.x(A7).set(word);
        self.set_a(arguments);
    }

    /// The record of Inspect: a1 to a7, then s2.
    pub fn set_record(&self, words: [u64; 8]) {
        (A0 + 1..).zip(words).for_each(|(number, word)| self.x(number).set(word));
    }

    /// Leads back to the call that left it: it is made once more, with `index` as its second
    /// argument.
    pub fn call_again(&self, index: u64) {
        self.x(A0 + 1).set(index);
        self.ip.set(self.ip.get().wrapping_sub(SYSTEM_CALL_BYTES));
    }

    /// Makes the frame lead back from an IPC: there is no binding that would say where the
    /// message registers are, and no other processor on which the thread could go on.
    pub fn return_from_ipc(&self, _from: u64, _utcb: u64, _mr: impl Fn(usize) -> u64) {}

    /// Whether a system call or an exception left it, no interrupt.
    #[must_use]
    pub fn is_of_an_entry(&self) -> bool {
        self.vector.get() >> 63 == 0
    }

    /// Why whoever left it elsewhere has come back: nobody is elsewhere.
    #[must_use]
    pub fn why_back(&self) -> Back {
        Back::Call
    }

    /// The message with which it has come back: it has not.
    #[must_use]
    pub fn exchange(&self) -> Option<Exchange> {
        None
    }

    /// Whether registers can hold a message: for tests.
    pub fn make_exchange(
        &self,
        _to: ThreadId,
        _from: ThreadId,
        _tag: MsgTag,
        _words: [u64; 7],
    ) -> bool {
        false
    }

    /// The words of such a message: there is none.
    pub fn exchange_words(&self, _count: usize, _each: impl FnMut(usize, u64)) {}

    /// Makes the frame one from which the entry that left it is made again: all that an instruction makes are made
    /// at it.
    #[must_use]
    pub fn make_again(&self) -> bool {
        if self.vector.get() == Cause::SystemCall.code() {
            self.ip.set(self.ip.get().wrapping_sub(SYSTEM_CALL_BYTES));
        }
        !self.is_out_of_time()
    }

    /// The vector by which a processor is told to look.
    pub const HELLO: u64 = Cause::Software.code();

    /// The thread, which was interrupted elsewhere, has used up its time.
    pub fn set_out_of_time(&self) {
        self.vector.set(OUT_OF_TIME);
    }

    /// Whether [`Self::set_out_of_time`] has said so.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.vector.get() == OUT_OF_TIME
    }

    /// The answer to a foreign thread's call.
    pub fn set_answer(&self, word: u64) {
        self.x(A0).set(word);
    }
}

/// Calls `each` with the index, from 1 on, and the value of every word of the message about
/// the system call in `frame`: its number, then its six arguments.
pub fn system_call_words(frame: Frame, mut each: impl FnMut(usize, u64)) {
    each(1, frame.call());
    (2..).zip(frame.a::<6>()).for_each(|(index, word)| each(index, word));
}

/// Registers that are a foreign thread's own and not in its frame: there are none.
#[derive(Default)]
#[repr(C)]
pub struct OwnRegisters;

/// Calls `each` with the index, from 0 on, and the value of every register of a foreign thread.
pub fn all_registers(frame: Frame, _own: &OwnRegisters, mut each: impl FnMut(usize, u64)) {
    exception_words(frame, |index, word| each(index - 1, word));
}

/// Sets every register of a foreign thread, as far as user code may have the values.
pub fn set_all_registers(frame: Frame, _own: &OwnRegisters, word: impl Fn(usize) -> u64) {
    set_exception_words(frame, EXCEPTION_WORDS, |index| word(index - 1));
}
