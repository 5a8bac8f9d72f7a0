//! What runs in a hostile task: one random action after the other.
//!
//! A hostile thread has code (this program's, read-only), its den, the playground,
//! and nothing else; it uses no static data. Whatever it breaks, its keeper (the judge,
//! or a thread of its own task) starts it again, and it goes on with its random numbers.

mod calls;
mod ipc;
mod memory;
mod protocol;
mod threads;
mod visits;
mod words;

use core::sync::atomic::Ordering;

use abi::layout::{INITIAL_UTCB_BITS, STUB_SIZE, STUBS, stub, stub_address};
use abi::utcb;

use crate::call::{self, Registers};
use crate::den::{Den, THREADS};
use crate::machine;
use crate::rng::Rng;

/// Where the memory is that all hostile tasks share, in every one of them.
pub const PLAYGROUND: u64 = 0x6000_0000;
/// Bytes of it.
pub const PLAYGROUND_BYTES: u64 = 1 << crate::PLAYGROUND_BITS;

/// Number of actions.
pub const ACTIONS: usize = 26;
/// Their names, for the report.
pub const NAMES: [&str; ACTIONS] = [
    "short message",
    "long message",
    "string",
    "map or grant",
    "receive",
    "unmap",
    "ExchangeRegisters",
    "ThreadControl",
    "children",
    "Schedule",
    "SpaceControl",
    "ThreadSwitch",
    "quota and others",
    "raw trap",
    "scribble over a UTCB",
    "jump into the stubs",
    "misbehave",
    "vector registers",
    "touch memory",
    "sleep",
    "message with faulting string",
    "local message",
    "request",
    "hand-made message of the kernel",
    "end",
    "procedure call",
];
/// How often each is taken unless the host says otherwise.
pub const DEFAULT_WEIGHTS: [u64; ACTIONS] =
    [10, 6, 8, 12, 14, 10, 6, 3, 4, 4, 1, 3, 3, 6, 4, 2, 2, 2, 6, 2, 6, 4, 0, 0, 0, 12];

/// A hostile thread at work.
pub struct Me {
    den: &'static Den,
    index: usize,
    rng: Rng,
    utcb: u64,
    action: usize,
}

/// The body of a hostile thread of `den`, which started with the stack pointer `sp`.
pub fn live(den: &'static Den, sp: u64) -> ! {
    let index = den.thread_of(sp);
    let utcb = utcb_of(den, index);
    // Somebody may have scribbled over it.
    machine::write(utcb.wrapping_add_signed(utcb::SELF as i64 * 8), utcb);
    let keeper = den.keeper.load(Ordering::Relaxed);
    machine::write(utcb.wrapping_add_signed(utcb::EXCEPTION_HANDLER as i64 * 8), keeper);
    loop {
        let rng = Rng::new(den.threads[index].rng.load(Ordering::Relaxed));
        let mut me = Me { den, index, rng, utcb, action: 0 };
        me.step();
    }
}

/// Where the area begins in which a UTCB is: spaces of the fuzzer's own have it elsewhere than tasks.
const fn area_of(utcb: u64) -> u64 {
    utcb & !((1 << INITIAL_UTCB_BITS) - 1)
}

/// The UTCB of the keeper's thread `index`, or of a child that joined the crowd.
fn utcb_of(den: &Den, index: usize) -> u64 {
    let offset = den.first_utcb.load(Ordering::Relaxed) & 7;
    let first = area_of(runtime::utcb::pointer()) + utcb::POINTER_OFFSET + offset * utcb::SIZE;
    if index + 1 < THREADS {
        return first + index as u64 * utcb::SIZE;
    }
    let own = runtime::utcb::pointer().wrapping_sub(first);
    if own < 16 * utcb::SIZE && own.is_multiple_of(utcb::SIZE) {
        first + own
    } else {
        first + 4 * utcb::SIZE
    }
}

impl Me {
    /// One action.
    fn step(&mut self) {
        self.action = self.choose();
        match self.action {
            0 => self.short_message(),
            1 => self.long_message(),
            2 => self.string_message(false),
            3 => self.map_message(),
            4 => self.receive(),
            5 => self.unmap(),
            6 => self.exchange_registers(),
            7 => self.thread_control(),
            8 => self.children(),
            9 => self.schedule(),
            10 => self.space_control(),
            11 => self.thread_switch(),
            12 => self.other_call(),
            13 => self.raw_trap(),
            14 => self.scribble(),
            15 => self.jump_into_stubs(),
            16 => self.misbehave(),
            17 => self.vectors(),
            18 => self.touch(),
            19 => self.sleep(),
            20 => self.string_message(true),
            21 => self.local_message(),
            22 => self.request(),
            23 => self.hand_made(),
            24 => self.end(),
            _ => self.procedures(),
        }
    }

    fn choose(&mut self) -> usize {
        let weight = |index: usize| self.den.weights[index].load(Ordering::Relaxed) & 0xFFFF;
        let total: u64 = (0..ACTIONS).map(weight).sum();
        let mut at = self.rng.below(total.max(1));
        for index in 0..ACTIONS {
            let own = weight(index);
            if at < own {
                return index;
            }
            at -= own;
        }
        0
    }

    /// Keeps the random state: after whatever comes, the thread goes on from here.
    fn commit(&self) {
        self.den.threads[self.index].rng.store(self.rng.state(), Ordering::Relaxed);
    }

    /// Remembers and makes a call.
    fn call(&mut self, mut registers: Registers, target: u64) -> Registers {
        let mut words = [0; 14];
        words.copy_from_slice(&registers[..14]);
        let what = target << 8 | self.action as u64;
        self.den.remember(self.index, machine::ticks(), what, &words);
        self.commit();
        call::call(&mut registers, target);
        registers
    }

    /// Remembers something that is no call.
    fn note(&mut self, words: [u64; 2]) {
        let mut all = [0; 14];
        all[..2].copy_from_slice(&words);
        self.den.remember(self.index, machine::ticks(), self.action as u64, &all);
        self.commit();
    }

    pub(super) fn stub(&mut self, registers: Registers, stub: u64) -> Registers {
        self.call(registers, stub_address(stub))
    }

    fn jump_into_stubs(&mut self) {
        let registers = self.any_registers();
        let stubs = stub::COUNT * STUB_SIZE;
        let offset = self.rng.below_either(4, 8192, stubs);
        self.call(registers, STUBS + offset);
    }

    fn misbehave(&mut self) {
        let (kind, word) = (self.rng.below(machine::MISDEEDS), self.word());
        self.note([kind, word]);
        machine::misbehave(kind, word);
    }

    fn vectors(&mut self) {
        let (way, word) = (self.rng.below(machine::VECTOR_WAYS), self.rng.word());
        let place = self.place();
        self.note([way, place]);
        machine::use_vectors(way, word, place);
    }

    fn touch(&mut self) {
        for _ in 0..8 {
            let address = if self.rng.one_in(64) { self.word() } else { self.place() } & !7;
            let write = self.rng.one_in(2);
            self.note([address, u64::from(write)]);
            if write {
                machine::write(address, address);
            } else {
                let _ = machine::read(address);
            }
        }
    }
}
