//! Which registers of a frame are a call's arguments and results (X.2 5.1, and what
//! `abi::syscall` says of the trap), and which the words of a foreign thread's call.
//!
//! Everything is inlined where it is used: a call reads the registers that it needs.

use core::cell::Cell;

use abi::inspect::Back;
use abi::x86_64::state::{FS_BASE, GS_BASE};
use abi::x86_64::{EXCEPTION_WORDS, exception};
use abi::{MsgTag, ThreadId};

use super::frame::{Frame, TrapFrame, USER_CS, USER_SS, VECTOR_CALL};
use super::frame::{exception_words, set_exception_words};
use crate::arch::exchange::Exchange;

/// Length in bytes of the instruction with which a program calls its system.
pub const SYSTEM_CALL_BYTES: u64 = 2;

/// The first vector of interrupts.
const FIRST_INTERRUPT: u64 = 32;
/// Words of a message that are in registers, the tag included.
const WORDS: usize = 8;
/// In place of a vector: the thread has used up its time elsewhere.
const OUT_OF_TIME: u64 = VECTOR_CALL + 1;

impl TrapFrame {
    /// The word that names the call (`abi::syscall::Call::decode`).
    #[inline(always)]
    #[must_use]
    pub fn call(&self) -> u64 {
        self.r8.get()
    }

    /// The arguments of every call but ExchangeRegisters, the one that names whom it concerns
    /// first.
    #[inline(always)]
    #[must_use]
    pub fn arguments(&self) -> [u64; 5] {
        [&self.rdi, &self.rsi, &self.rdx, &self.r12, &self.r9].map(Cell::get)
    }

    /// The arguments of ExchangeRegisters: destination, control, stack pointer, instruction
    /// pointer, flags, handle, pager.
    #[inline(always)]
    #[must_use]
    pub fn exchange_arguments(&self) -> [u64; 7] {
        [&self.rax, &self.rsi, &self.rdx, &self.r12, &self.r9, &self.r10, &self.rdi].map(Cell::get)
    }

    /// The results of ExchangeRegisters, in the same order.
    #[inline(always)]
    pub fn set_exchange_results(&self, words: [u64; 7]) {
        let registers = [&self.rax, &self.rsi, &self.rdx, &self.r8, &self.r9, &self.r10, &self.rdi];
        registers.into_iter().zip(words).for_each(|(register, word)| register.set(word));
    }

    /// The four attributes of MemoryControl.
    #[inline(always)]
    #[must_use]
    pub fn attributes(&self) -> [u64; 4] {
        [&self.rbp, &self.rsi, &self.r12, &self.r13].map(Cell::get)
    }

    /// A call's result: 1 for success, 0 for failure, or what the call says.
    #[inline(always)]
    pub fn set_result(&self, word: u64) {
        self.rax.set(word);
    }

    /// A call's second result, in the place of its third argument.
    #[inline(always)]
    pub fn set_second(&self, word: u64) {
        self.rdx.set(word);
    }

    /// A call's third result, in the place of its second argument.
    #[inline(always)]
    pub fn set_third(&self, word: u64) {
        self.rsi.set(word);
    }

    /// What [`Self::set_result`], [`Self::set_second`] and [`Self::set_third`] have set: for tests.
    #[must_use]
    pub fn results(&self) -> [u64; 3] {
        [&self.rax, &self.rdx, &self.rsi].map(Cell::get)
    }

    /// Fills the registers as a program does that makes the call that `word` names: for tests.
    pub fn make_call(&self, word: u64, arguments: [u64; 5]) {
        self.r8.set(word);
        let registers = [&self.rdi, &self.rsi, &self.rdx, &self.r12, &self.r9];
        registers.into_iter().zip(arguments).for_each(|(register, word)| register.set(word));
    }

    /// Makes the frame lead into the kernel, as none of a thread's may: for the checker's tests.
    pub fn lead_astray(&self) {
        self.cs.set(8);
    }

    /// The record of Inspect.
    pub fn set_record(&self, words: [u64; 8]) {
        let slots =
            [&self.rdx, &self.rsi, &self.r9, &self.r10, &self.r12, &self.r13, &self.r14, &self.r15];
        slots.into_iter().zip(words).for_each(|(slot, word)| slot.set(word));
    }

    /// Leads back to the call that left it: it is made once more, with `index` as its second
    /// argument.
    pub fn call_again(&self, index: u64) {
        self.rsi.set(index);
        self.ip.set(self.ip.get().wrapping_sub(SYSTEM_CALL_BYTES));
    }

    /// Makes the frame lead back from an IPC as the assembly does: `mr` are the message
    /// registers, `from` and `utcb` the results; instruction and stack pointer and flags are the
    /// caller's to set.
    pub fn return_from_ipc(&self, from: u64, utcb: u64, mr: impl Fn(usize) -> u64) {
        (0..).zip(self.message_words()).for_each(|(index, word)| word.set(mr(index)));
        self.rsi.set(from);
        self.rdi.set(utcb);
        for register in [&self.r11, &self.rbp, &self.r8, &self.rcx, &self.rdx, &self.error] {
            register.set(0);
        }
        self.vector.set(VECTOR_CALL);
        self.cs.set(u64::from(USER_CS));
        self.ss.set(u64::from(USER_SS));
    }

    /// The registers that hold the first words of a message.
    #[inline(always)]
    fn message_words(&self) -> [&Cell<u64>; WORDS] {
        [&self.r9, &self.rax, &self.rbx, &self.r10, &self.r12, &self.r13, &self.r14, &self.r15]
    }

    /// The message with which an IPC came whose frame this is, of which [`Self::why_back`] says that it
    /// is one ([`Back::Message`]), if all its words are in registers.
    #[must_use]
    pub fn exchange(&self) -> Option<Exchange> {
        /// Of what stands in RDI: the vector registers need not be kept.
        const DEAD: u64 = 1;
        let exchange = Exchange {
            to: ThreadId(self.rsi.get()),
            from: ThreadId(self.rdx.get()),
            timeouts: self.r8.get(),
            tag: MsgTag(self.r9.get()),
            keeps_vector: self.rdi.get() & DEAD == 0,
        };
        (exchange.tag.untyped() < WORDS).then_some(exchange)
    }

    /// Fills the registers as a program does that sends such a message; whether they can hold one: for tests.
    pub fn make_exchange(
        &self,
        to: ThreadId,
        from: ThreadId,
        tag: MsgTag,
        words: [u64; 7],
    ) -> bool {
        (1..).zip(words).for_each(|(index, word)| self.message_words()[index].set(word));
        let registers = [&self.r9, &self.rsi, &self.rdx, &self.r8, &self.rdi];
        let words = [tag.0, to.0, from.0, 0, 0];
        registers.into_iter().zip(words).for_each(|(register, word)| register.set(word));
        true
    }

    /// Calls `each` with the index and the value of the words 1 to `count` of such a message.
    pub fn exchange_words(&self, count: usize, mut each: impl FnMut(usize, u64)) {
        let words = (0..).zip(self.message_words()).take(count + 1).skip(1);
        words.for_each(|(index, word)| each(index, word.get()));
    }

    /// Whether a system call or an exception left it, no interrupt.
    #[must_use]
    pub fn is_of_an_entry(&self) -> bool {
        let vector = self.vector.get();
        vector == VECTOR_CALL || vector < FIRST_INTERRUPT
    }

    /// Why whoever left it elsewhere has come back; a foreign thread's
    /// call is any call.
    #[must_use]
    pub fn why_back(&self) -> Back {
        /// Bits of the timeouts that fast paths leave alone (`fast_path.rs`).
        const LIMITS: u64 = 0x8000_FFFF;
        const PAGE_FAULT: u64 = 14;
        /// Everything of a tag but the words, the label, and what it says only where it is received: who answers with the tag
        /// that came may have that of another processor.
        const ITEMS: u64 = 0xFFC0 & !MsgTag::XCPU;
        match self.vector.get() {
            PAGE_FAULT => Back::PageFault,
            VECTOR_CALL if self.r8.get() >> 63 != 0 => Back::Call,
            VECTOR_CALL if self.r9.get() & ITEMS != 0 => Back::Items,
            VECTOR_CALL if self.r8.get() & LIMITS != 0 => Back::Limit,
            VECTOR_CALL if self.rsi.get() == 0 => Back::Wait,
            VECTOR_CALL => Back::Message,
            _ => Back::Exception,
        }
    }

    /// Makes the frame one from which the entry that left it is made again. Not if it was made
    /// behind its instruction.
    #[must_use]
    pub fn make_again(&self) -> bool {
        const DEBUG: u64 = 1;
        const BREAKPOINT: u64 = 3;
        const OVERFLOW: u64 = 4;
        match self.vector.get() {
            VECTOR_CALL => self.ip.set(self.ip.get().wrapping_sub(SYSTEM_CALL_BYTES)),
            DEBUG | BREAKPOINT | OVERFLOW | OUT_OF_TIME => return false,
            _ => {}
        }
        true
    }

    /// The vector by which a processor is told to look.
    pub const HELLO: u64 = super::vectors::HELLO as u64;

    /// The thread, which was interrupted, has used up its time.
    pub fn set_out_of_time(&self) {
        self.vector.set(OUT_OF_TIME);
    }

    /// Whether [`Self::set_out_of_time`] has said so.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.vector.get() == OUT_OF_TIME
    }

    /// The answer to a foreign thread's call.
    #[inline(always)]
    pub fn set_answer(&self, word: u64) {
        self.rax.set(word);
    }
}

/// Calls `each` with the index, from 1 on, and the value of every word of the message about
/// the system call in `frame`.
#[inline(always)]
pub fn system_call_words(frame: Frame, mut each: impl FnMut(usize, u64)) {
    each(1, frame.rax.get());
    each(2, frame.rdi.get());
    each(3, frame.r10.get());
    each(4, frame.rsi.get());
    each(5, frame.rdx.get());
    each(6, frame.r8.get());
    each(7, frame.r9.get());
}

/// Registers that are a foreign thread's own and not in its frame, while it does not run.
#[derive(Default)]
#[repr(C)]
pub struct OwnRegisters {
    /// FS base.
    pub fs_base: Cell<u64>,
    /// GS base.
    pub gs_base: Cell<u64>,
}

/// Calls `each` with the index, from 0 on, and the value of every register of a foreign thread.
pub fn all_registers(frame: Frame, own: &OwnRegisters, mut each: impl FnMut(usize, u64)) {
    exception_words(frame, |index, word| each(index - 1, word));
    each(FS_BASE, own.fs_base.get());
    each(GS_BASE, own.gs_base.get());
}

/// Sets every register of a foreign thread, as far as user code may have the values.
pub fn set_all_registers(frame: Frame, own: &OwnRegisters, word: impl Fn(usize) -> u64) {
    set_exception_words(frame, EXCEPTION_WORDS, |index| word(index - 1));
    frame.set_foreign_flags(word(exception::RFLAGS));
    let canonical = |base: u64| if base >> 47 == 0 { base } else { 0 };
    own.fs_base.set(canonical(word(FS_BASE)));
    own.gs_base.set(canonical(word(GS_BASE)));
}
