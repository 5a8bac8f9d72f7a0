//! Faults and exceptions as sentences: who, what, where, and what was missing.
//!
//! Used by the root task; pure formatting.
#![no_std]
#![forbid(unsafe_code)]

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

/// Longest list of return addresses.
pub const TRACE: usize = 16;

/// What led to a fault: words of a thread's stack that point into its program, the latest
/// first. Not all of them are return addresses (`./baton explain` knows which).
pub struct Trace<'a> {
    /// The task's name.
    pub task: &'a str,
    /// The thread.
    pub thread: ThreadId,
    words: [u64; TRACE],
    len: usize,
}

impl<'a> Trace<'a> {
    /// Goes through the stack from `sp` on: `read` gives eight words at a multiple of 64,
    /// as long as there are any (a stack that overflowed has the first ones on its next
    /// page); `text` is the program. At most `lines` times eight words are read.
    #[must_use]
    pub fn of(
        task: &'a str,
        thread: ThreadId,
        sp: u64,
        text: core::ops::Range<u64>,
        lines: u64,
        read: impl Fn(u64) -> Option<[u64; 8]>,
    ) -> Self {
        let mut trace = Self { task, thread, words: [0; TRACE], len: 0 };
        let here = sp & !63;
        let next_page = || (sp | 0xFFF).checked_add(1).unwrap_or(here);
        let first = if read(here).is_some() { here } else { next_page() };
        let mut at = first;
        while let Some(line) = read(at).filter(|_| at - first < lines * 64 && trace.len < TRACE) {
            for (index, word) in line.into_iter().enumerate() {
                if at + 8 * index as u64 >= sp && text.contains(&word) && trace.len < TRACE {
                    trace.words[trace.len] = word;
                    trace.len += 1;
                }
            }
            let Some(next) = at.checked_add(64) else { break };
            at = next;
        }
        trace
    }

    /// Whether there is nothing to tell.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Display for Trace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: thread {} has on its stack:", self.task, self.thread)?;
        self.words[..self.len].iter().try_for_each(|word| write!(f, " {word:#x}"))
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
    fn a_trace_has_what_points_into_the_program() {
        let stack =
            |at: u64| (at < 0x10_0100).then(|| core::array::from_fn(|word| at + word as u64));
        let trace = Trace::of("a", THREAD, 0x10_0048, 0x10_0041..0x10_0083, 9, stack);
        assert_eq!(
            trace.to_string(),
            "a: thread 81.3 has on its stack: 0x100041 0x100042 0x100043 0x100044 0x100045 \
            0x100046 0x100047 0x100080 0x100081 0x100082"
        );
        assert!(Trace::of("a", THREAD, 0x20_0000, 0..u64::MAX, 9, stack).is_empty(), "no stack");
        assert!(Trace::of("a", THREAD, 0x10_0000, 0..u64::MAX, 0, stack).is_empty(), "no lines");
        let all = Trace::of("a", THREAD, 0x10_0000, 0..u64::MAX, 9, stack).to_string();
        assert_eq!(all.matches(" 0x").count(), TRACE);
        let low = Trace::of("a", THREAD, 0xF_FF00, 0x10_0000..0x10_0002, 9, |at| {
            stack(at).filter(|_| at >= 0x10_0000)
        });
        assert!(low.to_string().ends_with(": 0x100000 0x100001"), "the guard is passed over");
        let end = Trace::of("a", THREAD, u64::MAX - 7, 0..1, 9, |_| Some([0; 8]));
        assert_eq!(end.to_string().matches(" 0x0").count(), 1, "only the last word is on it");
    }

    #[test]
    fn a_port_names_the_port() {
        let text = BadPort { task: "d", thread: THREAD, port: 0x60, ip: 1, why: "it has no right" }
            .to_string();
        assert_eq!(text, "d: thread 81.3 at 0x1 tried to use I/O port 0x60, but it has no right.");
    }
}
