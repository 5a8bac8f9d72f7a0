//! Faults and exceptions as sentences: who, what, where, and what was missing.
//!
//! Used by the root task; pure formatting.
#![no_std]
#![forbid(unsafe_code)]

mod trace;

pub use trace::{Memory, Trace};

use core::fmt;

use abi::protocol::exception;
use abi::{Rights, ThreadId};

/// A page fault that cannot be resolved.
pub struct BadFault<'a> {
    /// The task's name.
    pub task: &'a str,
    /// The thread.
    pub thread: ThreadId,
    /// Where it tried to go.
    pub address: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// How.
    pub access: Rights,
    /// The missing right, ending the sentence.
    pub why: &'a str,
}

impl fmt::Display for BadFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.access {
            access if access.contains(Rights::W) => "write to",
            access if access.contains(Rights::X) => "execute",
            _ => "read",
        };
        write!(
            f,
            "{}: thread {} at {:#x} tried to {verb} {:#x}, but {}.",
            self.task, self.thread, self.ip, self.address, self.why
        )
    }
}

/// An I/O port access without the right.
pub struct BadPort<'a> {
    /// The task's name.
    pub task: &'a str,
    /// The thread.
    pub thread: ThreadId,
    /// First port.
    pub port: u16,
    /// Instruction pointer.
    pub ip: u64,
    /// The missing right, ending the sentence.
    pub why: &'a str,
}

impl fmt::Display for BadPort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: thread {} at {:#x} tried to use I/O port {:#x}, but {}.",
            self.task, self.thread, self.ip, self.port, self.why
        )
    }
}

/// A processor exception.
pub struct Exception<'a> {
    /// The task's name.
    pub task: &'a str,
    /// The thread.
    pub thread: ThreadId,
    /// The exception message's words, from MR1.
    pub words: &'a [u64],
}

impl Exception<'_> {
    fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }
}

/// Error code of #GP, bit 1: the cause was an INT instruction (Intel SDM vol. 3, 6.13).
const BY_INT: u64 = 1 << 1;

/// What the processor objected to, to end a sentence (Intel SDM vol. 3, 6.15).
#[must_use]
pub const fn vector_text(vector: u64) -> &'static str {
    match vector {
        0 => "divided by zero or the quotient did not fit (#DE)",
        1 => "reached a debug condition (#DB)",
        3 => "executed a breakpoint with no debugger attached (#BP)",
        4 => "overflowed with INTO (#OF)",
        5 => "left the range of BOUND (#BR)",
        6 => "executed an invalid instruction (#UD)",
        7 => "used a coprocessor that is not there (#NM)",
        11 => "used a segment that is not present (#NP)",
        12 => "left the stack segment or used a non-canonical stack address (#SS)",
        13 => "executed a privileged instruction or used a non-canonical address (#GP)",
        16 => "had an unmasked x87 error pending (#MF)",
        17 => "made a misaligned access with alignment checks on (#AC)",
        19 => "had an unmasked SIMD floating-point exception (#XM)",
        _ => "raised an exception that has no name here",
    }
}

impl fmt::Display for Exception<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (vector, error) = (self.word(exception::VECTOR), self.word(exception::ERROR));
        let what = match vector {
            13 if error & BY_INT != 0 => {
                "executed an INT instruction: there is no debugger for breakpoints (#GP)"
            }
            _ => vector_text(vector),
        };
        write!(
            f,
            "{}: thread {} at {:#x} {what}: vector {vector}, error code {error:#x}, sp {:#x}.",
            self.task,
            self.thread,
            self.word(exception::RIP),
            self.word(exception::RSP)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::string::ToString;

    const THREAD: ThreadId = ThreadId::global(81, 3);

    #[test]
    fn a_fault_names_thread_address_access_and_cause() {
        let fault = BadFault {
            task: "crash-me",
            thread: THREAD,
            address: 8,
            ip: 0x40_0123,
            access: Rights::W,
            why: "nothing is there",
        };
        assert_eq!(
            fault.to_string(),
            "crash-me: thread 81.3 at 0x400123 tried to write to 0x8, but nothing is there."
        );
    }

    #[test]
    fn an_exception_names_vector_and_cause() {
        let mut words = [0; abi::protocol::EXCEPTION_WORDS];
        words[exception::RIP] = 0x40_0400;
        words[exception::VECTOR] = 13;
        words[exception::ERROR] = 0x100;
        words[exception::RSP] = 0x7FFF_F000;
        let text = Exception { task: "a", thread: THREAD, words: &words }.to_string();
        assert_eq!(
            text,
            "a: thread 81.3 at 0x400400 executed a privileged instruction or used a \
            non-canonical address (#GP): vector 13, error code 0x100, sp 0x7ffff000."
        );
        words[exception::ERROR] = 0x1A;
        let breakpoint = Exception { task: "a", thread: THREAD, words: &words }.to_string();
        assert!(breakpoint.contains("no debugger for breakpoints"), "{breakpoint}");
        let short = Exception { task: "a", thread: THREAD, words: &words[..2] }.to_string();
        assert!(short.contains("vector 0"));
    }

    #[test]
    fn a_port_names_the_port() {
        let text = BadPort { task: "d", thread: THREAD, port: 0x60, ip: 1, why: "it has no right" }
            .to_string();
        assert_eq!(text, "d: thread 81.3 at 0x1 tried to use I/O port 0x60, but it has no right.");
    }
}
