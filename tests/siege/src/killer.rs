//! Kills one server after the other at moments that follow from the seed, sees to it that
//! each serves again, and gives the verdict.
//!
//! It has a higher priority than the servers, so its timer interrupts them wherever they
//! are; half of the kills come behind a while of work of its own, that is, at any time
//! between two ticks. One kill in four does not wait for the server to be back.

use core::fmt;

use abi::inspect::What;
use proto::root as op;
use runtime::{clock, ipc, kip, root, thread};

use crate::histogram::Histogram;
use crate::order::{self, Order};
use crate::tally::Tally;
use crate::victims::{ALL, Victim};
use crate::{caller, pattern, toucher, watcher, writer};

/// Longest pause before a kill, µs.
const PAUSE_US: u64 = 12_000;
/// Kills between two lines of progress, and two runs of the checker.
const PROGRESS: u64 = 50;
/// A canary may wake so late: the root task, above it, starts one server meanwhile.
const LATE_US: u64 = 8_000;
/// After so long the watcher has noticed a run of the checker, µs.
const FORGET_US: u64 = 20_000;
/// Sleeps to the end of the grain of time that is under way, µs.
const GRAIN_US: u64 = 1;
/// Frames by which the kernel's free memory may differ: what programs have at the moment.
const FRAMES: u64 = 600;

struct Killer {
    order: Order,
    state: u64,
    histograms: [Histogram; ALL.len()],
    kills: [u64; ALL.len()],
    failures: u64,
    /// Longest delay of the watcher but for the checker's runs, µs, and its wake-ups.
    late_us: u64,
}

/// Says something where no killed server is needed.
fn say(text: fmt::Arguments<'_>) {
    runtime::console::report(text);
}

/// Kills, judges, and stops the machine.
pub fn run() {
    let order = order::read();
    let mut killer = Killer {
        order,
        state: order.seed,
        histograms: [Histogram::default(); ALL.len()],
        kills: [0; ALL.len()],
        failures: 0,
        late_us: 0,
    };
    say(format_args!("siege: seed {}, {} kills\n", order.seed, order.kills));
    give_turns();
    killer.all_serve("before");
    // What the start of the system took does not count.
    let _ = Tally::ask(watcher::NAME);
    let before = free_frames();
    for number in 1..=order.kills {
        killer.kill_one();
        if number % PROGRESS == 0 {
            say(format_args!("siege: {number} kills, {} ms\n", clock::now_us() / 1000));
            killer.check();
        }
    }
    killer.all_serve("after");
    killer.report(before);
    say(format_args!("tests done\n"));
    let code = if killer.failures == 0 { op::SUCCESS } else { 0x11 };
    let _ = root::halt(code);
}

/// Where processors take turns, gives the others theirs in each grain of time, whomever the killer waits for.
fn give_turns() {
    if kip::get().processors() == 1 {
        return;
    }
    let turns = || {
        loop {
            ipc::sleep(GRAIN_US);
            core::hint::spin_loop();
        }
    };
    if let Err(why) = thread::spawn(turns) {
        say(format_args!("test siege ... FAILED: no thread gives turns: {why}\n"));
    }
}

/// Free frames of the kernel's pool.
fn free_frames() -> u64 {
    root::inspect(What::Kernel, 0, 0).map_or(0, |record| record[1])
}

impl Killer {
    fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(1);
        pattern::word(self.state, 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.word() % limit
    }

    fn choose(&mut self) -> usize {
        let total: u64 = ALL.iter().map(|victim| victim.weight).sum();
        let mut at = self.below(total);
        for (index, victim) in ALL.iter().enumerate() {
            if at < victim.weight {
                return index;
            }
            at -= victim.weight;
        }
        0
    }

    /// One kill from the choice to the recovery.
    fn kill_one(&mut self) {
        let pause_us = 1 + self.below(PAUSE_US);
        ipc::sleep(pause_us);
        if self.below(2) == 0 {
            // Some of a millisecond of work, which the victim does not get.
            let rounds = self.below(200_000);
            core::hint::black_box(
                (0..rounds).fold(0, |sum, round| sum ^ core::hint::black_box(round)),
            );
        }
        let index = self.choose();
        let victim = &ALL[index];
        let at_us = clock::now_us();
        self.kills[index] += 1;
        if root::kill(victim.task) != Ok(true) {
            return self.fail(format_args!("{} could not be killed", victim.task));
        }
        if self.below(4) != 0 {
            self.recover(index, at_us);
        }
    }

    fn recover(&mut self, index: usize, since_us: u64) {
        let victim: &Victim = &ALL[index];
        let number = self.word() >> 8;
        match victim.serves_again(since_us, number, self.order.slack) {
            Some(us) => self.histograms[index].add(us),
            None => self.fail(format_args!(
                "{} does not serve within {} us",
                victim.task,
                victim.limit_us * self.order.slack
            )),
        }
    }

    /// Whether all servers serve; they were not disturbed for a moment.
    fn all_serve(&mut self, when: &str) {
        for victim in &ALL {
            let number = self.word() >> 8;
            if victim.serves_again(clock::now_us(), number, self.order.slack).is_none() {
                self.fail(format_args!("{} does not serve {when} the siege", victim.task));
            }
        }
    }

    /// Runs the kernel's checker, which lets nobody in between: the watcher's delays are
    /// read before, and what it notices of this is forgotten.
    fn check(&mut self) {
        self.late_us =
            Tally::ask(watcher::NAME).map_or(!0, |tally| tally.late_us.max(self.late_us));
        self.ask_checker();
        ipc::sleep(FORGET_US * self.order.slack);
        let _ = Tally::ask(watcher::NAME);
    }

    fn ask_checker(&mut self) {
        match root::inspect(What::Check, 0, 0) {
            Ok([0, ..]) => {}
            Ok([count, ..]) => {
                self.fail(format_args!("the kernel's checker finds {count} violations"));
            }
            Err(why) => self.fail(format_args!("the kernel's checker cannot be asked: {why}")),
        }
    }

    fn fail(&mut self, why: fmt::Arguments<'_>) {
        self.failures += 1;
        let kills: u64 = self.kills.iter().sum();
        say(format_args!(
            "test siege ... FAILED: {why}, after {kills} kills from seed {}\n",
            self.order.seed
        ));
    }

    /// Figures of all, and what they have to be.
    fn report(&mut self, frames_before: u64) {
        for (index, victim) in ALL.iter().enumerate() {
            say(format_args!(
                "siege: {}: {} kills; served again {}\n",
                victim.task, self.kills[index], self.histograms[index]
            ));
            if self.kills[index] == 0 && self.order.kills >= 40 {
                self.fail(format_args!("{} was never killed", victim.task));
            }
        }
        self.check();
        for (name, missing) in [(caller::NAME, true), (writer::NAME, false), (toucher::NAME, false)]
        {
            self.load(name, missing);
        }
        say(format_args!(
            "siege: the canary above all servers woke {} us late at most\n",
            self.late_us
        ));
        let late_us = self.late_us;
        if late_us > LATE_US * self.order.slack {
            self.fail(format_args!("a task above all servers woke {late_us} us late"));
        }
        let frames = free_frames();
        say(format_args!("siege: {frames_before} frames free before, {frames} after\n"));
        if frames + FRAMES < frames_before {
            self.fail(format_args!("kernel memory is missing"));
        }
        if self.failures == 0 {
            say(format_args!("test siege ... ok\n"));
        }
    }

    /// One load task's own account.
    fn load(&mut self, name: &str, misses: bool) {
        let Some(tally) = Tally::ask(name) else {
            return self.fail(format_args!("the load task {name} does not answer"));
        };
        let Tally { done, missed, harm, .. } = tally;
        say(format_args!("siege: {name}: {done} done, {missed} missed, {harm} not whole\n"));
        if done == 0 || misses && missed == 0 {
            self.fail(format_args!("{name} was no load"));
        }
        if harm != 0 {
            self.fail(format_args!("{name} saw {harm} messages or pages that are not whole"));
        }
    }
}
