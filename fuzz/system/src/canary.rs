//! Canaries by themselves: memory, registers, names, time, the console.

use core::fmt::Write as _;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::{ThreadId, Time};
use fuzzing::registers::{self, PATTERNS};
use fuzzing::rng::mix;
use interfaces::console::Client;
use proto::console;
use runtime::service::Thread;
use runtime::{Msg, clock, ipc, kernel, root, utcb};

use crate::order::{self, PROBE};

/// What can happen to a canary; [`crate::report::HARMS`] are the words.
#[derive(Clone, Copy)]
#[repr(u64)]
pub enum Harm {
    Register = 1,
    Memory = 2,
    Name = 3,
    Clock = 4,
    Message = 5,
    Forged = 6,
    Text = 7,
    Beyond = 8,
    Lookup = 9,
}

/// What a canary has to tell.
#[derive(Default)]
pub struct Tale {
    judge: ThreadId,
    rounds: u64,
    harm: u64,
    details: [u64; 2],
    late_us: u64,
    /// What was due before does not count as late until then.
    excused_us: u64,
}

/// Rounds of the register check.
const ROUNDS: u64 = 40;
/// Words of memory that are looked at.
const MEMORY: usize = 1024;
/// How long the canary above all servers sleeps, µs.
const NAP_US: u64 = 3_000;
/// How long the one that works rests, µs.
const REST_US: u64 = 2_000;
/// How long the console may take for a line, and the pause between two, µs.
const LINE_US: u64 = 1_000_000;
const PAUSE_US: u64 = 50_000;

static WORDS: [AtomicU64; MEMORY] = [const { AtomicU64::new(0) }; MEMORY];

impl Tale {
    /// Nothing has happened.
    pub fn new() -> Self {
        let judge = order::find("judge").map_or(ThreadId::NIL, |about| about.main);
        Self { judge, ..Self::default() }
    }

    /// One round is done.
    pub const fn got_on(&mut self) {
        self.rounds += 1;
    }

    /// Rounds that are done.
    pub const fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Notes how late it is now for what was due at `due_us`.
    fn late(&mut self, due_us: u64) {
        let late_us = clock::now_us().saturating_sub(due_us.max(self.excused_us));
        self.late_us = self.late_us.max(late_us);
    }

    /// Notes harm, the first only.
    pub const fn harm(&mut self, what: Harm, details: [u64; 2]) {
        if self.harm == 0 {
            (self.harm, self.details) = (what as u64, details);
        }
    }

    /// Answers `msg` if it is the judge's question; whether it was.
    pub fn answer(&mut self, from: ThreadId, msg: &Msg) -> bool {
        if from != self.judge || msg.label() != PROBE {
            return false;
        }
        let [one, two] = self.details;
        let words = [self.rounds, self.harm, one, two, self.late_us];
        let _ = ipc::reply(from, &Msg::new(proto::OK).words(&words));
        if msg.mr[0] == 1 {
            (self.late_us, self.excused_us) = (0, clock::now_us());
        }
        true
    }

    /// Takes messages for `us`; those of strangers are for nobody.
    pub fn listen(&mut self, us: u64) {
        let end = clock::now_us() + us;
        loop {
            let left = end.saturating_sub(clock::now_us());
            if left == 0 {
                return;
            }
            if let Ok((from, msg)) = ipc::wait(Time::micros(left)) {
                self.answer(from, &msg);
            }
        }
    }
}

/// The tale of a canary that uses vector registers, as it tells the kernel.
fn vector_tale() -> Tale {
    let mut tale = Tale::new();
    if let Err(error) = kernel::use_vector_registers() {
        tale.harm(Harm::Register, [0, error as u64]);
    }
    tale
}

/// The canary above all servers.
pub fn watch() -> ! {
    let mut tale = vector_tale();
    loop {
        let due_us = clock::now_us() + NAP_US;
        tale.listen(NAP_US);
        let now_us = clock::now_us();
        if now_us < due_us {
            tale.harm(Harm::Clock, [now_us, due_us]);
        }
        tale.late(due_us);
        check(&mut tale, 1);
        tale.got_on();
    }
}

/// The canary that works, beside the hostile: how long it works on the same thing tells its
/// share of the processor.
pub fn work() -> ! {
    let mut tale = vector_tale();
    loop {
        tale.listen(REST_US);
        let begin_us = clock::now_us();
        check(&mut tale, ROUNDS);
        tale.late(begin_us);
        tale.got_on();
    }
}

/// Memory, registers and name, filled and looked at again.
fn check(tale: &mut Tale, rounds: u64) {
    let seed = mix(tale.rounds, 5);
    for (index, word) in (0..).zip(&WORDS) {
        word.store(mix(seed, index), Ordering::Relaxed);
    }
    let mut table = [0; PATTERNS];
    for (index, word) in (7..).zip(&mut table) {
        *word = mix(seed, index);
    }
    if let Err(changed) = registers::kept(rounds, &mut table) {
        tale.harm(Harm::Register, [changed as u64, seed]);
    }
    for (index, word) in (0..).zip(&WORDS) {
        let value = word.load(Ordering::Relaxed);
        if value != mix(seed, index) {
            tale.harm(Harm::Memory, [index, value]);
        }
    }
    let (name, task) = (utcb::my_global_id(), runtime::thread::me());
    if name != task || name.is_nil() {
        tale.harm(Harm::Name, [name.0, task.0]);
    }
}

/// A line of text.
struct Line([u8; 64], usize);

impl core::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            *self.0.get_mut(self.1).ok_or(core::fmt::Error)? = byte;
            self.1 += 1;
        }
        Ok(())
    }
}

/// The canary that writes numbered lines.
pub fn write() -> ! {
    let mut tale = Tale::new();
    loop {
        tale.listen(PAUSE_US);
        let Ok(driver) = root::find(console::NAME, 1_000) else { continue };
        let mut line = Line([0; 64], 0);
        let _ = writeln!(line, "canary: line {:08} and nothing else", tale.rounds);
        let start_us = clock::now_us();
        let written = Client::new(Thread(driver)).write(&line.0[..line.1]);
        if written == Ok(Ok(())) && clock::now_us() - start_us <= LINE_US {
            tale.got_on();
        }
    }
}
