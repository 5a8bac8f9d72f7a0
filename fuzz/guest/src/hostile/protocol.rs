//! Messages of those who know the protocols: requests of the servers (all of `proto`'s
//! labels), and what only the kernel, σ0, a pager or a chief may say. Words are those that
//! belong there, mixed with others.

use abi::id::SYSTEM_BASE;
use abi::{MsgTag, ThreadId, Time, Timeouts, protocol};
use proto::{Name, console, layout, pager, root, unix};

use super::Me;
use crate::call::{MRS, Registers, reg};
use crate::den::SERVERS;

/// Labels of the root task. [`root::EXIT`] ends the task: it comes with [`Me::end`].
const ROOT: [u64; 29] = [
    root::REGISTER,
    root::LOOKUP,
    root::PORTS,
    root::IRQ,
    root::MEMORY,
    root::CREATE_THREAD,
    root::CREATE_SPACE,
    root::DELETE_THREAD,
    root::IS_ALIVE,
    root::LOG,
    root::ARGUMENTS,
    root::FILE,
    root::CLIENT,
    root::DRAINED,
    root::DESCRIBE,
    root::START,
    root::KILL,
    root::RESTART,
    root::WAIT,
    root::INSPECT,
    root::MEMORY_USE,
    root::HALT,
    root::TASK_IMAGE,
    root::BAD_FAULT,
    root::POOL_BYTES,
    root::MEMORY_USE + 8,
    root::POOL_BYTES + 1,
    0,
    1,
];
const CONSOLE: [u64; 11] = [
    console::WRITE,
    console::WRITE_LONG,
    console::READ_LINE,
    console::READ_CHAR,
    console::STATISTICS,
    console::WRITE_RAW,
    console::READ_RAW,
    console::COMPLETE,
    console::WRITE_FOR,
    console::DRAIN,
    console::DRAIN + 1,
];
const PAGER: [u64; 3] = [pager::STATISTICS, pager::FORGET, pager::FORGET + 1];
const UNIX: [u64; 2] = [unix::STATISTICS, unix::STATISTICS + 1];
/// Labels of the kernel's and of σ0's messages.
const PROTOCOLS: [i64; 9] = [
    protocol::INTERRUPT,
    protocol::PAGE_FAULT,
    protocol::PREEMPTION,
    protocol::EXCEPTION,
    protocol::SIGMA0,
    protocol::IO_FAULT,
    protocol::SYSTEM_CALL,
    protocol::SIGMA0_EXTENDED,
    -9,
];
/// Names of tasks, servers and files.
const NAMES: [&str; 10] = [
    "console",
    "pager",
    "unix",
    "serial",
    "judge",
    "canary",
    "hostile-0",
    "initramfs",
    "command",
    "nobody",
];
/// Longest text that is written: a console takes its time.
const TEXT_BYTES: u64 = 24;
/// How long a request is left with a server, µs.
const PATIENCE_US: u64 = 400;

impl Me {
    fn name(&mut self) -> [u64; 2] {
        let index = self.rng.below(NAMES.len() as u64 + 1) as usize;
        match NAMES.get(index) {
            Some(name) => Name::new(name).words(),
            None => [self.word(), self.word()],
        }
    }

    /// A word that a request may have.
    fn argument(&mut self) -> u64 {
        match self.rng.below(8) {
            0 => self.thread(),
            1 => self.rng.below(64),
            2 => 12 + self.rng.below(20),
            3 => layout::HEAP + self.rng.below(1 << 20),
            4 => layout::STACKS + self.rng.below(layout::STACKS_BYTES),
            5 => self.rng.pick(&[!0, 0xFEE0_0000, 0xB8000, 0x100_0000, 0x3F8, 0xCF8, 4]),
            _ => self.word(),
        }
    }

    /// A request of a server, with some words more or fewer, to it or to another one.
    pub(super) fn request(&mut self) {
        let (server, label) = match self.rng.below(8) {
            0..=4 => (0, self.rng.pick(&ROOT)),
            5 => (1, self.rng.pick(&PAGER)),
            6 => (2, self.rng.pick(&CONSOLE)),
            _ => (3, self.rng.pick(&UNIX)),
        };
        let server = if self.rng.one_in(16) { self.rng.below(SERVERS as u64) } else { server };
        let to = self.den.servers[server as usize].load(core::sync::atomic::Ordering::Relaxed);
        let mut registers = [0; 15];
        let words = self.request_words(&mut registers, label);
        self.deliver(registers, MsgTag::new(label, words, 0), to);
    }

    fn request_words(&mut self, registers: &mut Registers, label: u64) -> u32 {
        if matches!(label, root::START | root::KILL | root::RESTART | root::WAIT)
            && !self.rng.one_in(8)
        {
            // A name as text: its length first.
            let name = self.name();
            let len = name.iter().flat_map(|word| word.to_le_bytes()).take_while(|b| *b != 0);
            let len = len.count() as u64;
            self.set_mr(registers, 1, len);
            (2..).zip(name).for_each(|(at, word)| self.set_mr(registers, at, word));
            return 1 + len.div_ceil(8) as u32;
        }
        if matches!(label, console::WRITE | console::WRITE_RAW | console::COMPLETE | root::LOG) {
            // Text: printable, and its length mostly true.
            let bytes = self.rng.below(TEXT_BYTES);
            let told = if self.rng.one_in(8) { self.word() } else { bytes };
            self.set_mr(registers, 1, told);
            let text = u64::from_le_bytes(*b"hostile ");
            (2..6).for_each(|at| self.set_mr(registers, at, text));
            return 1 + bytes.div_ceil(8) as u32;
        }
        let words = self.rng.below(8);
        for at in 1..=words as usize {
            let word = self.argument();
            self.set_mr(registers, at, word);
        }
        if !self.rng.one_in(4) {
            let name = self.name();
            (1..).zip(name).for_each(|(at, word)| self.set_mr(registers, at, word));
        }
        words as u32
    }

    /// What only the kernel says, σ0 is asked, or a new thread waits for, to anybody.
    pub(super) fn hand_made(&mut self) {
        let label = PROTOCOLS[self.rng.below(PROTOCOLS.len() as u64) as usize];
        let (untyped, n) = match label {
            protocol::EXCEPTION => (20, 0),
            protocol::INTERRUPT => (0, 0),
            protocol::SYSTEM_CALL => (7, 0),
            _ => (2, self.rng.below(8) as u32),
        };
        let untyped = if self.rng.one_in(16) { self.rng.below(64) as u32 } else { untyped };
        let mut registers = [0; 15];
        for at in 1..=untyped as usize {
            let word = self.argument();
            self.set_mr(&mut registers, at, word);
        }
        // A start message has label 0.
        let tag = if self.rng.one_in(8) {
            MsgTag::new(0, 2, 0)
        } else {
            MsgTag::protocol(label, n, untyped, 0)
        };
        let to = match self.rng.below(8) {
            0..=3 => {
                let server = self.rng.below(SERVERS as u64) as usize;
                self.den.servers[server].load(core::sync::atomic::Ordering::Relaxed)
            }
            4 => ThreadId::SIGMA0.0,
            5 => ThreadId::irq(self.rng.below(u64::from(SYSTEM_BASE)) as u32).0,
            _ => self.thread(),
        };
        self.deliver(registers, tag, to);
    }

    /// Sends `registers` with `tag`, now and then in another's name, and waits for the answer.
    fn deliver(&mut self, mut registers: Registers, tag: MsgTag, to: u64) {
        let tag = if self.rng.one_in(8) { self.propagated(tag) } else { tag };
        if self.rng.one_in(4) {
            self.accept();
        }
        registers[MRS[0]] = tag.0;
        registers[reg::RSI] = to;
        registers[reg::RDX] = if self.rng.one_in(8) { 0 } else { to };
        let patience = Time::micros(1 + self.rng.below(PATIENCE_US));
        registers[reg::R8] = Timeouts::new(patience, patience).0;
        registers[reg::RDI] = self.utcb;
        self.send(registers);
    }

    /// The end of the task, by itself or by a fault.
    pub(super) fn end(&mut self) {
        let mut registers = [0; 15];
        let code = self.rng.pick(&[0, 1, 101]);
        self.set_mr(&mut registers, 1, code);
        self.deliver(registers, MsgTag::new(root::EXIT, 1, 0), ThreadId::ROOT.0);
    }
}
