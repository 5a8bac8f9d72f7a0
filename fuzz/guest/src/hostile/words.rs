//! Random words with structure: threads, times, flexpages, addresses; valid ones
//! mixed with values at the borders.

use core::sync::atomic::Ordering;

use abi::inspect::What;
use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA, STUBS, USER_END, stub};
use abi::{Fpage, Rights, ThreadId, Time};

use super::{Me, PLAYGROUND, PLAYGROUND_BYTES};
use crate::call::{Registers, reg};
use crate::den::{CHILDREN, IDS, THREADS};

/// Values at borders.
const BORDERS: [u64; 24] = [
    0,
    1,
    2,
    0x3F,
    0x40,
    0x1000,
    0x1C3,
    !0,
    !1,
    0xFFFF_FFFF_FFFF_FFC0,
    1 << 63,
    1 << 47,
    1 << 32,
    USER_END,
    USER_END - 1,
    USER_END - 4096,
    STUBS,
    STUBS + 0x1000,
    INITIAL_KIP,
    INITIAL_UTCB_AREA,
    INITIAL_UTCB_AREA + 512,
    0xFFFF_8000_0000_0000,
    0xFFFF_FFFF_A000_0000,
    0xFFFF_FFFF_8020_0000,
];

impl Me {
    /// Any word at all.
    pub(super) fn word(&mut self) -> u64 {
        match self.rng.below(10) {
            0 | 1 => self.rng.pick(&BORDERS),
            2 => self.thread(),
            3 => self.rng.below(256),
            4 => self.rng.word() >> self.rng.below(64),
            5 => self.place(),
            6 => self.fpage(),
            7 => self.utcb.wrapping_add(self.rng.below(1024)).wrapping_sub(512),
            8 => self.pairs(),
            _ => self.rng.word(),
        }
    }

    /// Two 16-bit times.
    fn pairs(&mut self) -> u64 {
        self.timeouts()
    }

    /// All registers random.
    pub(super) fn any_registers(&mut self) -> Registers {
        let mut registers = [0; 15];
        for register in &mut registers {
            *register = self.word();
        }
        // Read as the control word of Unmap: rarely dozens of regions.
        if !self.rng.one_in(16) {
            registers[reg::RDX] &= !0x3E;
        }
        registers
    }

    /// A thread id: mostly one that exists.
    pub(super) fn thread(&mut self) -> u64 {
        let id = |index: u64| self.den.ids[index as usize % IDS].load(Ordering::Relaxed);
        match self.rng.below(16) {
            0..=4 => id(self.rng.below(THREADS as u64)),
            5..=10 => id(self.rng.below(IDS as u64)),
            11 => self.child().0,
            12 => self.rng.pick(&[ThreadId::NIL.0, ThreadId::ANY.0, ThreadId::ANY_LOCAL.0]),
            13 => INITIAL_UTCB_AREA + 512 + self.rng.below(8) * 1024,
            14 => id(self.rng.below(IDS as u64)) ^ 1 << self.rng.below(64),
            _ => self.rng.pick(&[
                ThreadId::ROOT.0,
                ThreadId::SIGMA0.0,
                ThreadId::irq(8).0,
                ThreadId::irq(0).0,
                ThreadId::global(abi::id::SYSTEM_BASE, 1).0,
                ThreadId::global(abi::id::USER_BASE + 22, 1).0,
                ThreadId::global(1 << 17, 1).0,
            ]),
        }
    }

    /// A thread that exists, of this task or another.
    pub(super) fn partner(&mut self) -> u64 {
        if self.rng.one_in(16) {
            return self.thread();
        }
        let known = if self.rng.one_in(3) { THREADS } else { IDS };
        self.den.ids[self.rng.below(known as u64) as usize].load(Ordering::Relaxed)
    }

    /// The id of one of the threads that this task makes.
    pub(super) fn child(&mut self) -> ThreadId {
        let base = self.den.children.load(Ordering::Relaxed) as u32;
        let index = self.rng.below(CHILDREN as u64) as usize;
        let known = self.den.versions[index].load(Ordering::Relaxed) as u32;
        let version = if self.rng.one_in(8) { self.rng.below(4) as u32 } else { known };
        ThreadId::global(base + index as u32, version)
    }

    /// An id for a child that its number never had: the kernel accepts no other.
    pub(super) fn new_child(&mut self) -> ThreadId {
        let number = self.child().number();
        let mut registers = [0; 15];
        registers[reg::RDI] = What::Number as u64;
        registers[reg::RSI] = number.into();
        let last = self.stub(registers, stub::INSPECT)[reg::RSI] as u32;
        let next = last.wrapping_add(1);
        let id = ThreadId::global(number, if next & 63 == 0 { next + 1 } else { next });
        let base = self.den.children.load(Ordering::Relaxed) as u32;
        if let Some(known) = self.den.versions.get(number.wrapping_sub(base) as usize) {
            known.store(id.version().into(), Ordering::Relaxed);
        }
        id
    }

    /// From whom to receive.
    pub(super) fn source(&mut self, to: u64) -> u64 {
        match self.rng.below(8) {
            0..=2 => to,
            3..=5 => ThreadId::ANY.0,
            6 => ThreadId::ANY_LOCAL.0,
            _ => self.thread(),
        }
    }

    fn time(&mut self) -> Time {
        match self.rng.below(64) {
            0..=31 => Time::ZERO,
            32..=58 => Time::micros(1 + self.rng.below(600)),
            59 => Time::micros(self.rng.below(20_000)),
            60 => Time(0x8000 | self.rng.word() as u16),
            61 => Time::NEVER,
            _ => Time(self.rng.word() as u16 & 0x1FFF),
        }
    }

    /// A timeouts word.
    pub(super) fn timeouts(&mut self) -> u64 {
        let send = u64::from(self.time().0) << 16;
        let both = send | u64::from(self.time().0);
        // Sometimes around the fast path, for tests (`abi::syscall::COMPLETE_PATH`).
        if self.rng.one_in(8) { both | 1 << 32 } else { both }
    }

    /// Long waits, so that the fast path is taken.
    pub(super) fn patient(&mut self) -> u64 {
        if self.rng.one_in(4) { 0 } else { u64::from(Time::ZERO.0) << 16 }
    }

    /// An address where there may be memory of the task's.
    pub(super) fn place(&mut self) -> u64 {
        match self.rng.below(8) {
            0..=5 => {
                // Few pages, so that what is done to them meets.
                let page = match self.rng.below(4) {
                    0 | 1 => self.rng.below(8),
                    2 => 508 + self.rng.below(8),
                    _ => self.rng.below(PLAYGROUND_BYTES >> 12),
                };
                PLAYGROUND + page * 4096 + self.rng.below(4096)
            }
            6 => PLAYGROUND + PLAYGROUND_BYTES + self.rng.below(64) * 4096,
            _ => self.den.scratch_base() + self.rng.below(crate::den::SCRATCH as u64),
        }
    }

    /// A flexpage.
    pub(super) fn fpage(&mut self) -> u64 {
        let rights = Rights(self.rng.below(8) as u8);
        // Large ones are rare: each takes as long as a thousand calls.
        match self.rng.below(64) {
            0 => Fpage::COMPLETE.with_rights(rights).0,
            1 => Fpage::memory(PLAYGROUND, 20 + self.rng.below(5) as u32, rights).0,
            2..=5 => self.ports(),
            6 | 7 => Fpage::memory(self.word(), self.rng.below(64) as u32, rights).0,
            8 => self.rng.word(),
            9 => Fpage::NIL.0,
            _ => {
                let bits = 12 + self.rng.below_either(24, 11, 3) as u32;
                let rights = if self.rng.one_in(2) { Rights::RWX } else { rights };
                Fpage::memory(self.place(), bits, rights).0
            }
        }
    }

    fn ports(&mut self) -> u64 {
        let (base, bits) = crate::HARMLESS_PORTS;
        match self.rng.below(4) {
            0 => Fpage::COMPLETE_IO.0,
            1 => Fpage::io(self.rng.word() as u16, self.rng.below(17) as u32).0,
            _ => {
                let port = base + self.rng.below(1 << bits) as u16;
                Fpage::io(port, self.rng.below(u64::from(bits) + 1) as u32).0
            }
        }
    }

    /// A receive window.
    pub(super) fn window(&mut self) -> u64 {
        match self.rng.below(8) {
            0 => 0,
            1 => self.ports(),
            2 | 3 => Fpage::COMPLETE.0,
            4 => self.fpage(),
            _ => Fpage::memory(PLAYGROUND, 12 + self.rng.below(12) as u32, Rights::NONE).0,
        }
    }

    /// The length of a string.
    pub(super) fn length(&mut self) -> u64 {
        match self.rng.below(16) {
            0 => 0,
            1 => self.rng.below(1 << 22),
            2 => self.rng.word() >> self.rng.below(64),
            3 => 4096,
            4..=8 => self.rng.below(9000),
            _ => self.rng.below(256),
        }
    }
}
