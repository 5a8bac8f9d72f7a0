//! Runs the scenarios one after the other and says what came of each.

use core::sync::atomic::Ordering::Relaxed;

use abi::inspect::{What, state};
use abi::protocol::{EXCEPTION, PAGE_FAULT};
use abi::{Ceilings, Fpage, MapItem, Rights, ThreadId, Time};
use runtime::space::Fault;
use runtime::{Msg, direct_println, ipc, kernel, layout, schedule};

use super::canaries::{self, Canaries, HIGH_PRIORITY, Seen};
use super::hostile::{self, MADE, ODD, REFUSED};
use super::scenarios::{self, Scenario};
use super::{Length, interrupts, resources};
use crate::{machine, report};

/// The published bound: two grains of the wakeup lists (2 · 1,024 µs), and what the longest
/// stretch with interrupts off and the switch may take.
const BOUND_US: u64 = 2_100;
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
/// Log2 of the pieces in which memory is mapped.
const PIECE_BITS: u32 = 12;

/// The judge's state.
struct Judge {
    canaries: Canaries,
    next_life: u32,
    failures: u64,
    /// Thread that is deleted at the end of the scenario.
    first: ThreadId,
}

/// Runs everything and ends the machine.
pub fn run(length: Length) -> ! {
    let _ = schedule::set_priority(ThreadId::ROOT, 255);
    let _ = schedule::set_priority(ThreadId::SIGMA0, hostile::PRIORITY);
    let _ = runtime::sigma0::ports(0x70, 1);
    runtime::sigma0::close();
    machine::touch_image();
    warm_up();
    let Ok(canaries) = Canaries::start() else {
        report::end(0, &["the canaries could not be started"])
    };
    let mut judge = Judge { canaries, next_life: 1, failures: 0, first: ThreadId::NIL };
    judge.calibrate();
    for scenario in scenarios::all(length) {
        judge.play(&scenario);
    }
    for priority in (1..DELETING).step_by(scenarios::hog_step(length)) {
        judge.play(&scenarios::hog(priority));
    }
    judge.cycle(scenarios::tasks(length));
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
        let seen = self.canaries.end();
        direct_println!(
            "exhaust: nobody hostile: {} us late at most in {} wake-ups; {} us are allowed",
            seen.late_us,
            seen.woken,
            BOUND_US
        );
        if seen.late_us > BOUND_US {
            self.verdict("calm", Some("a canary wakes late although nobody is hostile"));
        }
    }

    /// One scenario from birth to report.
    fn play(&mut self, scenario: &Scenario) {
        let before = free();
        [&MADE, &REFUSED, &ODD].iter().for_each(|counter| counter.store(0, Relaxed));
        if self.create(scenario).is_err() {
            return self.verdict(scenario.name, Some("the hostile task could not be made"));
        }
        self.serve(WARM_UP_US);
        self.canaries.begin(scenario.priority);
        self.serve(scenario.span_us);
        let seen = self.canaries.end();
        let fair = self.fair_share(scenario.priority);
        let deleting_late_us = self.delete(scenario.priority);
        let after = free();
        self.judge(scenario, &seen, fair, deleting_late_us, [before, after]);
    }

    fn create(&mut self, scenario: &Scenario) -> kernel::Result<()> {
        self.next_life += 1;
        let id = ThreadId::global(hostile::FIRST, self.next_life << 6 | 1);
        self.first = id;
        hostile::make_space(id, hostile::UTCB_BITS)?;
        kernel::move_quota(id, scenario.quota)?;
        kernel::limit(
            id,
            Some(hostile::NUMBERS),
            Some(Ceilings { priority: scenario.priority, ..CEILINGS }),
        )?;
        schedule::set_priority(id, scenario.priority)?;
        hostile::start(id, &hostile::STACKS[0], scenario.body, 0);
        Ok(())
    }

    /// What a thread of `priority` may expect beside those that are ready. To count them
    /// takes the judge long, so nothing else is measured meanwhile.
    fn fair_share(&mut self, priority: u8) -> f64 {
        let mut sum = 0.0;
        for _ in 0..COUNTS {
            self.serve(COUNT_US);
            sum += 1.0 / (1 + self.rivals(priority)) as f64;
        }
        self.serve(2 * COUNT_US);
        sum / COUNTS as f64
    }

    /// Hostile threads of `priority` that are ready.
    fn rivals(&self, priority: u8) -> u64 {
        let (mut number, mut count) = (u64::from(hostile::FIRST), 0);
        while let Some(words) = kernel::inspect(What::Thread, number, 0) {
            number = u64::from(ThreadId(words[0]).number()) + 1;
            count += u64::from(words[1] == state::READY && words[3] == u64::from(priority));
        }
        count
    }

    /// Deletes all hostile threads; returns how late the canary of high priority woke
    /// meanwhile, µs.
    fn delete(&mut self, priority: u8) -> u64 {
        interrupts::silence();
        self.canaries.begin(priority);
        // At the highest priority: who is more urgent than the task was goes before its end.
        let _ = kernel::delete(self.first);
        let _ = schedule::set_priority(ThreadId::ROOT, DELETING);
        while let Some(words) = kernel::inspect(What::Thread, u64::from(hostile::FIRST), 0) {
            let _ = kernel::delete(ThreadId(words[0]));
        }
        let _ = schedule::set_priority(ThreadId::ROOT, 255);
        self.canaries.end().late_us
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
            match answer(from, &msg) {
                Some(answer) => {
                    let _ = ipc::reply(from, &answer);
                }
                None => self.verdict("fault", Some("somebody faulted who should not have")),
            }
        }
    }

    /// Says what came of `scenario`.
    fn judge(
        &mut self,
        scenario: &Scenario,
        seen: &Seen,
        fair: f64,
        deleting_late_us: u64,
        free: [(u64, u64); 2],
    ) {
        let (made, refused) = (MADE.load(Relaxed), REFUSED.load(Relaxed));
        direct_println!(
            "exhaust: {} at priority {}: share {:.1} % where {:.1} % are fair ({} turns); {} us late at most in {} wake-ups, {} us while it is deleted; {} frames free before, {} after; got {made}, refused {refused}",
            scenario.name,
            scenario.priority,
            seen.share * 100.0,
            fair * 100.0,
            seen.turns,
            seen.late_us,
            seen.woken,
            deleting_late_us,
            free[0].0,
            free[1].0
        );
        let wrong = kernel::inspect(What::Check, 0, 0).is_none_or(|record| record[0] != 0);
        let trouble = [
            (wrong, "the kernel's checker finds violations"),
            (seen.harm, "a canary's memory changed"),
            (
                seen.share < LEAST_SHARE * fair,
                "the canary of equal priority got less than 90 % of its fair share",
            ),
            (
                seen.late_us.max(deleting_late_us) > BOUND_US,
                "the canary of higher priority woke later than the bound",
            ),
            (seen.woken == 0, "the canary of higher priority did not wake at all"),
            (free[0] != free[1], "not all memory is back"),
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
        self.verdict(scenario.name, first);
    }

    /// Tasks made and deleted, many of them.
    fn cycle(&mut self, count: u64) {
        let scenario = Scenario {
            name: "cycle",
            body: resources::cycle,
            quota: 200,
            ..scenarios::hog(hostile::PRIORITY)
        };
        let before = free();
        resources::WANTED.store(count, Relaxed);
        [&MADE, &REFUSED, &ODD].iter().for_each(|counter| counter.store(0, Relaxed));
        if self.create(&scenario).is_err() {
            return self.verdict("cycle", Some("the hostile task could not be made"));
        }
        self.serve(WARM_UP_US);
        self.canaries.begin(hostile::PRIORITY);
        let mut last = !0;
        while MADE.load(Relaxed) < count && MADE.load(Relaxed) != last {
            last = MADE.load(Relaxed);
            self.serve(500_000);
        }
        let seen = self.canaries.end();
        let deleting_late_us = self.delete(hostile::PRIORITY);
        let after = free();
        let made = MADE.load(Relaxed);
        self.judge(
            &Scenario { gets: true, ..scenario },
            &seen,
            0.5,
            deleting_late_us,
            [before, after],
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

/// The answer to a message, if there is one.
fn answer(from: ThreadId, msg: &Msg) -> Option<Msg> {
    if msg.label() == interrupts::LABEL {
        return Some(interrupts::grant(from));
    }
    let fault = Fault::decode(msg).filter(|_| msg.tag.protocol_label() == PAGE_FAULT);
    let page = fault.and_then(|fault| page_for(&fault));
    if page.is_none() {
        direct_println!(
            "exhaust: thread {from} (a canary: {}) sent tag {:#x}, exception: {}, {:#x?}",
            canaries::is_one(from),
            msg.tag.0,
            msg.tag.protocol_label() == EXCEPTION,
            msg.mr
        );
    }
    page
}

/// All of this program, at the same addresses; its text is not for writing.
fn page_for(fault: &Fault) -> Option<Msg> {
    let (low, high) = layout::image();
    let text = fault.address < layout::text_end();
    let rights = if text { Rights::RX } else { Rights::RW };
    let allowed = (low..high).contains(&fault.address) && rights.contains(fault.access);
    let base = fault.address >> PIECE_BITS << PIECE_BITS;
    let page = Fpage::memory(base, PIECE_BITS, rights);
    allowed.then(|| Msg::default().map(MapItem::map(page, base)))
}
