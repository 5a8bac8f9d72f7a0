//! Runs the scenarios one after the other and says what came of each.

use core::sync::atomic::Ordering::Relaxed;

use abi::inspect::What;
use abi::{Ceilings, ThreadId, Time};
use runtime::{direct_println, ipc, kernel, schedule};

use super::canaries::{self, Canaries, HIGH_PRIORITY, MOST, Place, Seen};
use super::hostile::{self, MADE, ODD, REFUSED};
use super::scenarios::{self, Scenario};
use super::{Length, interrupts, pager, resources, rivals, turns};
use crate::{machine, report};

/// A slice: a measurement that begins and ends anywhere may find one less than is due.
const SLICE_US: f64 = 10_000.0;
/// Least part of its fair share that a canary keeps.
const LEAST_SHARE: f64 = 0.9;
/// How long a hostile task may get ready, µs.
const WARM_UP_US: u64 = 60_000;
/// How often the ready threads are counted, and how long the judge sleeps between, µs.
const COUNTS: u64 = 4;
const COUNT_US: u64 = 5_300;
/// Priority at which the judge deletes all but the first thread: the canary of high priority has to get through,
/// no hog may.
const DELETING: u8 = HIGH_PRIORITY - 1;

/// The judge's state.
struct Judge {
    canaries: Canaries,
    /// By how much times are stretched.
    slack: u64,
    next_life: u32,
    failures: u64,
    /// Thread that is deleted at the end of the scenario.
    first: ThreadId,
}

/// What was measured in a scenario, of each processor's canaries.
struct Measured {
    seen: [Seen; MOST],
    /// What is fair.
    fair: [f64; MOST],
    /// How late they woke while the task was deleted, µs.
    deleting_late_us: [u64; MOST],
    /// Memory before and after.
    free: [(u64, u64); 2],
}

/// Runs everything and ends the machine.
pub fn run(length: Length, slack: u64) -> ! {
    let _ = schedule::set_priority(ThreadId::ROOT, 255);
    let _ = schedule::set_priority(ThreadId::SIGMA0, hostile::PRIORITY);
    let _ = runtime::sigma0::ports(0x70, 1);
    runtime::sigma0::close();
    machine::touch_image();
    warm_up();
    let Ok(canaries) = Canaries::start(length) else {
        report::end(0, &["the canaries could not be started"])
    };
    let mut judge = Judge { canaries, slack, next_life: 1, failures: 0, first: ThreadId::NIL };
    judge.calibrate();
    for scenario in scenarios::all(length) {
        judge.play(&scenario);
    }
    for priority in (1..DELETING).step_by(scenarios::hog_step(length)) {
        judge.play(&scenarios::hog(priority, length));
    }
    judge.cycle(length);
    direct_println!("tests done");
    report::leave(judge.failures == 0)
}

/// What a root task gives an ordinary task: no endless slice, no delays.
const CEILINGS: Ceilings = Ceilings { slice: Time::micros(10_000), delay_us: 0, ..Ceilings::NONE };

/// Every number that a hostile thread can have is used once, so that the tables of the
/// tcb array, which stay, are there before anything is counted.
fn warm_up() {
    let count = hostile::CHILDREN + 64;
    for number in (hostile::FIRST..hostile::FIRST + count).step_by(64) {
        let id = ThreadId::global(number, 1);
        let _ = kernel::create(id, id, ThreadId::ROOT, !0);
        let _ = kernel::delete(id);
    }
}

/// Frames that nobody uses, and what is left of the root task's own quota.
fn free() -> (u64, u64) {
    let frames = kernel::inspect(What::Kernel, 0, 0).map_or(0, |words| words[1]);
    let (limit, used) = kernel::move_quota(ThreadId::ROOT, 0).unwrap_or_default();
    (frames, limit - used)
}

impl Judge {
    fn calibrate(&mut self) {
        // They have all their pages after a moment.
        self.serve(50_000);
        self.canaries.begin(hostile::PRIORITY);
        self.serve(200_000);
        self.canaries.calibrate();
        for processor in 0..canaries::count() {
            let seen = self.canaries.end(processor);
            let bound_us = self.bound_us(processor);
            direct_println!(
                "exhaust: nobody hostile{}: {} us late at most in {} wake-ups; {bound_us} us are allowed",
                Place(processor),
                self.late_us(&seen),
                seen.woken,
            );
            if self.late_us(&seen) > bound_us {
                self.verdict("calm", Some("a canary wakes late although nobody is hostile"));
            }
        }
    }

    /// How late the canary of high priority may wake on `processor`, µs.
    fn bound_us(&self, processor: usize) -> u64 {
        let processors = canaries::count() as u64;
        match processor {
            _ if self.slack > 1 => turns::at_once_us(processor),
            0 => turns::first_us(processors),
            _ => turns::elsewhere_us(processors),
        }
    }

    /// How late it woke: where processors run at once, by what less urgent ones have computed meanwhile.
    const fn late_us(&self, seen: &Seen) -> u64 {
        if self.slack > 1 { seen.outrun_us } else { seen.late_us }
    }

    /// The same while the judge ends a task, above the canaries.
    fn deleting_bound_us(&self, processor: usize) -> u64 {
        self.bound_us(processor) + turns::at_an_end_us(processor)
    }

    /// One scenario from birth to report.
    fn play(&mut self, scenario: &Scenario) {
        let before = free();
        [&MADE, &REFUSED, &ODD].iter().for_each(|counter| counter.store(0, Relaxed));
        if self.create(scenario).is_err() {
            return self.verdict(scenario.name, Some("the hostile task could not be made"));
        }
        self.serve(WARM_UP_US);
        let seen = self.measure(scenario, |judge| judge.serve(scenario.span_us));
        let fair = self.fair_shares(scenario);
        let deleting_late_us = self.delete(scenario.priority);
        let free = [before, free()];
        self.judge(scenario, &Measured { seen, fair, deleting_late_us, free });
    }

    /// Ends a measurement.
    fn end(&self) -> [Seen; MOST] {
        core::array::from_fn(|processor| self.canaries.end(processor))
    }

    fn create(&mut self, scenario: &Scenario) -> kernel::Result<()> {
        self.next_life += 1;
        let id = ThreadId::global(hostile::FIRST, self.next_life << 6 | 1);
        self.first = id;
        hostile::settle(scenario.seat(self.next_life), scenario.is_spread);
        hostile::make_space(id, hostile::UTCB_BITS)?;
        kernel::move_quota(id, scenario.quota)?;
        kernel::limit(
            id,
            Some(hostile::NUMBERS),
            Some(Ceilings { priority: scenario.priority, ..CEILINGS }),
        )?;
        schedule::set_priority(id, scenario.priority)?;
        hostile::place(id, hostile::seat());
        hostile::start(id, &hostile::STACKS[0], scenario.body, 0);
        Ok(())
    }

    /// What a thread of the scenario's priority may expect on each processor beside those that are ready. To
    /// count them takes the judge long, so nothing else is measured meanwhile.
    fn fair_shares(&mut self, scenario: &Scenario) -> [f64; MOST] {
        let mut sums = [0.0; MOST];
        for _ in 0..COUNTS {
            self.serve(COUNT_US);
            for (sum, rivals) in sums.iter_mut().zip(rivals::ready(scenario, self.first)) {
                *sum += 1.0 / (1 + rivals) as f64;
            }
        }
        self.serve(2 * COUNT_US);
        sums.map(|sum| sum / COUNTS as f64)
    }

    /// Measures during `wait`, in which `scenario` is played.
    fn measure(&mut self, scenario: &Scenario, wait: impl FnOnce(&mut Self)) -> [Seen; MOST] {
        let before = (self.slack > 1).then(|| rivals::Taken::until_now(scenario, self.first));
        self.canaries.begin(scenario.priority);
        wait(self);
        let mut seen = self.end();
        if let Some(before) = before {
            let shares = rivals::Taken::until_now(scenario, self.first).shares_since(&before);
            seen.iter_mut().zip(shares).for_each(|(seen, share)| seen.share = share);
        }
        seen
    }

    /// Deletes all hostile threads; returns how late the canaries of high priority woke
    /// meanwhile, µs.
    fn delete(&mut self, priority: u8) -> [u64; MOST] {
        interrupts::silence();
        self.canaries.begin(priority);
        // At the highest priority: who is more urgent than the task was goes before its end.
        let _ = kernel::delete(self.first);
        let _ = schedule::set_priority(ThreadId::ROOT, DELETING);
        while let Some(words) = kernel::inspect(What::Thread, u64::from(hostile::FIRST), 0) {
            let _ = kernel::delete(ThreadId(words[0]));
        }
        let _ = schedule::set_priority(ThreadId::ROOT, 255);
        self.end().map(|seen| seen.late_us)
    }

    /// Answers whatever comes for so long, µs.
    fn serve(&mut self, span_us: u64) {
        let end = machine::now_us() + span_us;
        loop {
            let now = machine::now_us();
            if now >= end {
                return;
            }
            let Ok((from, msg)) = ipc::wait(Time::micros(end - now)) else { continue };
            match pager::answer(from, &msg) {
                Some(answer) => {
                    let _ = ipc::reply(from, &answer);
                }
                None => self.verdict("fault", Some("somebody faulted who should not have")),
            }
        }
    }

    /// Says what came of `scenario`.
    fn judge(&mut self, scenario: &Scenario, measured: &Measured) {
        let (made, refused) = (MADE.load(Relaxed), REFUSED.load(Relaxed));
        for processor in 0..canaries::count() {
            let (seen, free) = (&measured.seen[processor], measured.free);
            direct_println!(
                "exhaust: {} at priority {}{}: share {:.1} % where {:.1} % are fair ({} turns); {} us late at most in {} wake-ups, {} us while it is deleted; {} frames free before, {} after; got {made}, refused {refused}",
                scenario.name,
                scenario.priority,
                Place(processor),
                seen.share * 100.0,
                measured.fair[processor] * 100.0,
                seen.turns,
                seen.late_us,
                seen.woken,
                measured.deleting_late_us[processor],
                free[0].0,
                free[1].0
            );
        }
        if self.slack > 1 {
            let most_us = measured.seen.iter().map(|seen| seen.outrun_us).max().unwrap_or(0);
            direct_println!(
                "exhaust: {most_us} us less urgent ones computed at most while one was to wake"
            );
        }
        let wrong = kernel::inspect(What::Check, 0, 0).is_none_or(|record| record[0] != 0);
        let trouble = [
            (wrong, "the kernel's checker finds violations"),
            (measured.free[0] != measured.free[1], "not all memory is back"),
            (scenario.gets && made == 0, "the hostile task got nothing, so nothing was tested"),
            (
                scenario.refused && refused == 0,
                "the hostile task was refused nothing, so nothing was exhausted",
            ),
            (
                ODD.load(Relaxed) != 0,
                "the hostile task was refused something for a reason that is not memory",
            ),
        ];
        let first = trouble.iter().find(|(bad, _)| *bad).map(|(_, why)| *why);
        let canaries = (0..canaries::count()).find_map(|at| self.trouble_of(at, measured));
        self.verdict(scenario.name, canaries.or_else(|| self.idled(measured)).or(first));
    }

    /// What the canaries of `processor` should not have seen.
    fn trouble_of(&self, processor: usize, measured: &Measured) -> Option<&'static str> {
        let (seen, fair) = (&measured.seen[processor], measured.fair[processor]);
        let is_late = self.late_us(seen) > self.bound_us(processor)
            || self.slack == 1
                && measured.deleting_late_us[processor] > self.deleting_bound_us(processor);
        // One processor's is measured from turn to turn; at once, a turn ends as late as somebody wakes.
        let late = if self.slack > 1 { seen.late_us as f64 } else { 0.0 };
        let margin = if canaries::count() > 1 || self.slack > 1 {
            (SLICE_US + late) / seen.own_us
        } else {
            0.0
        };
        let trouble = [
            (seen.harm, "a canary's memory changed"),
            (
                seen.share + margin < LEAST_SHARE * fair,
                "the canary of equal priority got less than 90 % of its fair share",
            ),
            (is_late, "the canary of higher priority woke later than the bound"),
            (seen.woken == 0, "the canary of higher priority did not wake at all"),
            (seen.work == 0.0, "the canary of equal priority computed nothing"),
        ];
        trouble.iter().find(|(bad, _)| *bad).map(|(_, why)| *why)
    }

    /// With several processors in turns: what all canaries have computed, each counted as often as there are
    /// others with the same right, is 90 % of what the machine could at least.
    fn idled(&self, measured: &Measured) -> Option<&'static str> {
        let count = canaries::count();
        if count == 1 || self.slack > 1 {
            return None;
        }
        let pairs = measured.seen.iter().zip(&measured.fair).take(count);
        let sum: f64 = pairs.map(|(seen, fair)| (seen.work + SLICE_US / seen.own_us) / fair).sum();
        direct_println!("exhaust: they computed {:.1} % of what was theirs", sum * 100.0);
        (sum < LEAST_SHARE).then_some("the canaries computed less than 90 % of what was theirs")
    }

    /// Tasks made and deleted, many of them.
    fn cycle(&mut self, length: Length) {
        let count = scenarios::tasks(length);
        let scenario = Scenario {
            name: "cycle",
            body: resources::cycle,
            quota: 200,
            is_spread: false,
            ..scenarios::hog(hostile::PRIORITY, length)
        };
        let before = free();
        resources::WANTED.store(count, Relaxed);
        [&MADE, &REFUSED, &ODD].iter().for_each(|counter| counter.store(0, Relaxed));
        if self.create(&scenario).is_err() {
            return self.verdict("cycle", Some("the hostile task could not be made"));
        }
        self.serve(WARM_UP_US);
        let seen = self.measure(&scenario, |judge| {
            let (mut last, mut in_vain) = (0, 0);
            while MADE.load(Relaxed) < count && in_vain < 2 * judge.slack {
                judge.serve(500_000);
                in_vain = if MADE.load(Relaxed) == last { in_vain + 1 } else { 0 };
                last = MADE.load(Relaxed);
            }
        });
        let mut fair = [1.0; MOST];
        // What it asks for is done on the first.
        fair[0] = 0.5;
        fair[hostile::seat() as usize % MOST] = 0.5;
        let deleting_late_us = self.delete(hostile::PRIORITY);
        let free = [before, free()];
        let made = MADE.load(Relaxed);
        self.judge(
            &Scenario { gets: true, ..scenario },
            &Measured { seen, fair, deleting_late_us, free },
        );
        if made != count {
            self.verdict("cycle-count", Some("not all tasks were made"));
        }
    }

    /// The line of one test.
    fn verdict(&mut self, name: &str, trouble: Option<&str>) {
        match trouble {
            None => direct_println!("test exhaust-{name} ... ok"),
            Some(why) => {
                self.failures += 1;
                direct_println!("test exhaust-{name} ... FAILED: {why}");
            }
        }
    }
}
