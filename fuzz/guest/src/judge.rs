//! The judge: pager and exception handler of everybody, at the highest priority.

use abi::inspect::What;
use abi::protocol::{EXCEPTION, PAGE_FAULT};
use abi::{ThreadId, Time};
use runtime::space::Fault;
use runtime::{Msg, direct_println, ipc, kernel, kip, schedule};

use crate::canary::{self, CANARIES, Canaries};
use crate::config::Config;
use crate::den::REMEMBERED;
use crate::hostile::NAMES;
use crate::rng::{Rng, mix};
use crate::tasks::{self, MADE, TASKS, Task};
use crate::{machine, report};

use core::sync::atomic::Ordering;

/// How often the judge looks around, µs.
const LOOK_US: u64 = 1_000;
/// Looks between two sweeps of running children, and between two new tasks.
const SWEEP_LOOKS: u64 = 4;
const RENEW_LOOKS: u64 = 40;
/// What the judge does counts as one piece of work unless it waits for so long in between, µs.
const PAUSE_US: u64 = 30;
/// Calls between two lines of progress.
const PROGRESS: u64 = 100_000;
/// Calls that are shown after a violation.
const SHOWN: usize = 40;

/// The judge's state.
pub struct Judge {
    config: Config,
    playground: u64,
    rng: Rng,
    tasks: [Task; TASKS],
    canaries: Canaries,
    looks: u64,
    next_look_us: u64,
    /// Since when it has not waited, without what it has left to other processors.
    busy_since_us: u64,
    check_at: u64,
    told_at: u64,
    faults: u64,
    repairs: u64,
    checks: u64,
    renewals: u64,
    quota_at_start: (u64, u64),
}

impl Judge {
    /// Nothing runs yet.
    #[must_use]
    pub fn new(config: Config, playground: u64) -> Self {
        Self {
            config,
            playground,
            rng: Rng::new(mix(config.seed, 0)),
            tasks: [0, 1, 2, 3, 4].map(Task::new),
            canaries: Canaries::new(config.slack),
            looks: 0,
            next_look_us: 0,
            busy_since_us: 0,
            check_at: 0,
            told_at: 0,
            faults: 0,
            repairs: 0,
            checks: 0,
            renewals: 0,
            quota_at_start: (0, 0),
        }
    }

    /// Runs to the verdict.
    pub fn run(mut self) -> ! {
        let _ = schedule::set_priority(ThreadId::ROOT, 255);
        direct_println!("fuzz: seed {}, {} calls", self.config.seed, self.config.calls);
        self.warm_up();
        if self.canaries.start().is_err() {
            report::end(0, &["the canaries could not be started"]);
        }
        for task in 0..TASKS {
            self.tasks[task].prepare(self.config.seed, &self.config.weights);
            self.renew(task);
        }
        // With several processors to the next grain of time, or those would wait for two of them.
        let rest_us = if kip::get().processors() > 1 { 1 } else { LOOK_US };
        self.busy_since_us = machine::now_us();
        loop {
            let begin = machine::now_us();
            let message = ipc::wait(Time::micros(rest_us));
            let woken = machine::now_us();
            if woken - begin >= PAUSE_US {
                self.busy_since_us = woken;
            }
            canary::judge_works(self.busy_since_us);
            match message {
                Ok((from, msg)) => self.answer(from, &msg),
                Err(_) => self.others_have_their_turn(),
            }
            if machine::now_us() >= self.next_look_us {
                self.look();
            }
            canary::judge_pauses(self.busy_since_us, machine::now_us());
        }
    }

    /// Creates and deletes everything once, so that the pages that this takes are there
    /// before the root task's memory is counted.
    fn warm_up(&mut self) {
        for task in &mut self.tasks {
            let _ = task.create();
        }
        for task in &mut self.tasks {
            task.end();
        }
        for index in 0..CANARIES {
            let id = canary::id(index);
            let _ = kernel::create(id, id, ThreadId::ROOT, !0);
            let _ = kernel::delete(id);
        }
        self.quota_at_start = quota();
    }

    /// Makes hostile task number `task` anew and introduces everybody to everybody.
    fn renew(&mut self, task: usize) {
        self.renewals += 1;
        if let Err(error) = self.tasks[task].create() {
            report::violation(format_args!("hostile task {task} could not be made: {error:?}"));
        }
        self.introduce();
    }

    fn introduce(&self) {
        let mut all = [ThreadId::NIL; TASKS * MADE + CANARIES + 2];
        let canaries = [0, 1, 2, 3].map(canary::id);
        let hostile = self.tasks.iter().flat_map(|task| task.ids().iter().copied());
        let others = canaries.into_iter().chain([ThreadId::ROOT, ThreadId::SIGMA0]);
        for (slot, id) in all.iter_mut().zip(hostile.chain(others)) {
            *slot = id;
        }
        self.tasks.iter().for_each(|task| task.introduce(&all));
    }

    fn calls(&self) -> u64 {
        self.tasks.iter().map(Task::calls).sum()
    }

    /// Answers whatever came.
    fn answer(&mut self, from: ThreadId, msg: &Msg) {
        let fault = Fault::decode(msg).filter(|_| msg.tag.protocol_label() == PAGE_FAULT);
        if let Some(canary) = canary::index_of(from) {
            return self.answer_canary(from, canary, fault, msg);
        }
        let Some(number) = tasks::owner(from) else { return };
        self.faults += 1;
        let index = self.tasks[number].index_of(from);
        let fault = fault.filter(|fault| !self.tasks[number].faults_in_vain(index, fault));
        let page = fault.and_then(|f| tasks::page_for(number, &f, self.playground, &mut self.rng));
        match (page, index) {
            (Some(page), _) => {
                let _ = ipc::reply(from, &page);
            }
            (None, Some(index)) => {
                self.repairs += 1;
                // Only the answer to an exception sets all flags (single step!).
                let exception = msg.tag.protocol_label() == EXCEPTION;
                if exception && machine::is_starting(msg.mr[0]) {
                    // Single step; it is about to clear the flag, which nobody else can.
                    let _ = ipc::reply(from, &Msg::new(0));
                } else {
                    self.tasks[number].repair(index);
                }
            }
            // A child goes.
            (None, None) => {
                let _ = kernel::delete(from);
            }
        }
    }

    fn answer_canary(&mut self, from: ThreadId, index: usize, fault: Option<Fault>, msg: &Msg) {
        match fault.and_then(|fault| canary::page_for(index, &fault)) {
            Some(page) => {
                let _ = ipc::reply(from, &page);
            }
            None => report::violation(format_args!(
                "canary {index} was led astray: tag {:#x}, {:#x}, {:#x}",
                msg.tag.0, msg.mr[0], msg.mr[1]
            )),
        }
    }

    /// Where processors take turns, the others have theirs now, whatever runs on this one. That is none of the
    /// judge's own work.
    fn others_have_their_turn(&mut self) {
        let begin = machine::now_us();
        canary::judge_pauses(self.busy_since_us, begin);
        core::hint::spin_loop();
        self.busy_since_us += machine::now_us() - begin;
        canary::judge_works(self.busy_since_us);
    }

    /// Looks after everybody; ends the run when it is time.
    fn look(&mut self) {
        self.looks += 1;
        self.others_have_their_turn();
        for task in &mut self.tasks {
            self.repairs += task.look_after();
        }
        if self.looks.is_multiple_of(SWEEP_LOOKS) {
            self.sweep();
        }
        if self.looks.is_multiple_of(RENEW_LOOKS) {
            let task = (self.looks / RENEW_LOOKS) as usize % TASKS;
            self.renew(task);
        } else if self.looks.is_multiple_of(4) {
            self.introduce();
        }
        self.canaries.check();
        let calls = self.calls();
        if calls >= self.check_at {
            self.check_at = calls + 1 + self.rng.below(2 * self.config.check_every);
            self.check();
        }
        if calls / PROGRESS != self.told_at {
            self.told_at = calls / PROGRESS;
            self.tell(calls);
        }
        if report::any() || calls >= self.config.calls {
            self.end();
        }
        self.next_look_us = machine::now_us() + LOOK_US;
    }

    /// Deletes about half of the children that use the processor.
    fn sweep(&mut self) {
        let mut number = 0;
        while let Some(words) = kernel::inspect(What::Thread, number, 0) {
            let id = ThreadId(words[0]);
            number = u64::from(id.number()) + 1;
            let ready = words[1] == abi::inspect::state::READY;
            let owner = tasks::owner(id);
            let child = owner.is_some_and(|task| self.tasks[task].index_of(id).is_none());
            if child && ready && self.rng.one_in(2) {
                let _ = kernel::delete(id);
            }
        }
    }

    /// Asks the kernel's checker.
    fn check(&mut self) {
        self.checks += 1;
        match kernel::inspect(What::Check, 0, 0) {
            Some(record) if record[0] == 0 => {}
            Some(record) => report::violation(format_args!(
                "the kernel's checker finds {} violations",
                record[0]
            )),
            None => report::violation(format_args!("the kernel's checker cannot be asked")),
        }
    }

    fn tell(&self, calls: u64) {
        let (rounds, late_us) = self.canaries.figures();
        direct_println!(
            "fuzz: {calls} calls, {} faults, {} repairs, {} tasks, {} checks, {} ms, canaries {rounds:?}, at most {late_us} us late",
            self.faults,
            self.repairs,
            self.renewals,
            self.checks,
            machine::now_us() / 1_000
        );
    }

    fn end(&mut self) -> ! {
        let calls = self.calls();
        if report::any() {
            self.show_last();
            report::end(calls, &[]);
        }
        self.tell(calls);
        for task in &mut self.tasks {
            task.end();
        }
        self.sweep_all();
        self.check();
        let quota = quota();
        if quota != self.quota_at_start {
            report::violation(format_args!(
                "limit and use of the root task's kernel memory were {:?} pages at the beginning, and are {quota:?} at the end",
                self.quota_at_start
            ));
        }
        report::end(calls, &[])
    }

    /// Deletes everybody but the initial threads, which cannot be deleted. The number of
    /// σ1, which is not there, is free for anybody.
    fn sweep_all(&self) {
        let mut number = u64::from(ThreadId::SIGMA0.number()) + 1;
        while let Some(words) = kernel::inspect(What::Thread, number, 0) {
            let id = ThreadId(words[0]);
            number = u64::from(id.number()) + 1;
            let _ = kernel::delete(id);
        }
    }

    /// Prints the last calls of all hostile threads, oldest first.
    fn show_last(&self) {
        direct_println!("fuzz: seed {}; the last calls:", self.config.seed);
        let mut from = 0;
        let total = TASKS * (MADE + 1) * REMEMBERED;
        for rank in 0..total {
            let Some((at, task, thread, call)) = self.next_call(from) else { return };
            from = at;
            if total - rank > SHOWN && self.later_than(at) > SHOWN {
                continue;
            }
            let call = &self.tasks[task].den().threads[thread].last[call];
            let what = call.what.load(Ordering::Relaxed);
            let words = [0, 1, 2, 3, 4, 5, 7, 8]
                .map(|word: usize| call.words[word].load(Ordering::Relaxed));
            let name = NAMES.get((what & 0xFF) as usize).copied().unwrap_or("?");
            direct_println!(
                "  {at} task {task} thread {thread}: {name} at {:#x}: {words:x?}",
                what >> 8
            );
        }
    }

    /// The remembered call that is the first after `from`.
    fn next_call(&self, from: u64) -> Option<(u64, usize, usize, usize)> {
        let mut best: Option<(u64, usize, usize, usize)> = None;
        for (task, owner) in self.tasks.iter().enumerate() {
            for (thread, last) in owner.den().threads.iter().enumerate() {
                for (index, call) in last.last.iter().enumerate() {
                    let at = call.at.load(Ordering::Relaxed);
                    if at > from && best.is_none_or(|best| at < best.0) {
                        best = Some((at, task, thread, index));
                    }
                }
            }
        }
        best
    }

    /// How many remembered calls came after `at`.
    fn later_than(&self, at: u64) -> usize {
        let all = self.tasks.iter().flat_map(|task| &task.den().threads);
        all.flat_map(|thread| &thread.last)
            .filter(|call| call.at.load(Ordering::Relaxed) > at)
            .count()
    }
}

/// Limit and use of the root task's kernel memory, pages. All is there again when the
/// hostile are gone; whether every frame is accounted for is the checker's business.
fn quota() -> (u64, u64) {
    kernel::move_quota(ThreadId::ROOT, 0).unwrap_or_default()
}
