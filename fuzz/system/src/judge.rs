//! The judge: starts and ends the hostile, looks after canaries, servers and the kernel.

use core::sync::atomic::Ordering;

use abi::inspect::What;
use abi::{ThreadId, Time, Timeouts};
use fuzzing::PLAYGROUND_BITS;
use fuzzing::den::REMEMBERED;
use fuzzing::hostile::NAMES as ACTIONS;
use fuzzing::rng::{Rng, mix};
use proto::{console, layout, pager, unix};
use runtime::window::Window;
use runtime::{Msg, clock, ipc, kip, root, thread};

use crate::life::{DEN_BITS, Life, TASKS};
use crate::order::{self, LOST, Order, PROBE, find};
use crate::report;

/// How often the judge looks around, µs.
const LOOK_US: u64 = 2_000;
/// Sleeps to the end of the grain of time that is under way, µs.
const GRAIN_US: u64 = 1;
/// Looks between two inspections of canaries, and of servers.
const CANARY_LOOKS: u64 = 10;
const SERVER_LOOKS: u64 = 50;
/// One look in so many ends a hostile task.
const END_ONE_IN: u64 = 60;
/// Log2 size of the judge's memory: the playground and the dens.
const MEMORY_BITS: u32 = 23;
/// How long a canary or a server may take for an answer, µs: dozens of threads of its priority
/// may each have a slice before it.
const PATIENCE_US: u64 = 1_000_000;
/// How long Linux programs may make no system call, µs.
const LINUX_US: u64 = 4_000_000;
/// The canary above all servers may wake so late, µs: the root task starts a task meanwhile.
const LATE_US: u64 = 8_000;
/// A round of the canary of the hostile's priority may take so long, µs: its work needs two of
/// its slices at most, and before each of them the hostile threads, 16 in each of three tasks,
/// may have one of 10 ms each.
const SHARE_US: u64 = 960_000;
/// Calls between two lines of progress.
const PROGRESS: u64 = 50_000;
/// Looks after which there is one anyway.
const QUIET_LOOKS: u64 = 1_000;
/// Threads, and frames, by which the kernel's figures may differ at the end: programs'.
const THREADS: u64 = 40;
const FRAMES: u64 = 800;
/// Remembered calls that are shown after a violation.
const SHOWN: usize = 24;

/// A canary: its task, how long it may make no round, µs, and what was seen last.
struct Canary {
    name: &'static str,
    patience_us: u64,
    rounds: u64,
    since_us: u64,
}

/// Tasks that have to live.
const SERVERS: [&str; 3] = ["pager", "serial", "unix"];
/// Names that the judge's description uses, and the tasks that provide them.
const NAMES: [(&str, &str); 4] =
    [(console::NAME, "serial"), (pager::NAME, "pager"), (unix::NAME, "unix"), ("canary", "serve")];

struct Judge {
    order: Order,
    rng: Rng,
    lives: [Life; TASKS],
    canaries: [Canary; 5],
    looks: u64,
    checks: u64,
    check_at: u64,
    told: u64,
    late_us: u64,
    share_us: u64,
    linux: (u64, u64),
    before: [u64; 2],
}

/// Judges to the verdict.
pub fn run() -> ! {
    let order = order::read();
    report::say(format_args!("fuzz: seed {}, {} calls\n", order.seed, order.calls));
    let Some(memory) = memory() else {
        report::violation(format_args!("the judge got no memory for dens"));
        report::end(0)
    };
    let canary = |name, patience_us| Canary {
        name,
        patience_us: patience_us * order.slack,
        rounds: 0,
        since_us: clock::now_us(),
    };
    let den = |number: usize| memory + (1 << PLAYGROUND_BITS) + ((number as u64) << DEN_BITS);
    ipc::sleep(300_000);
    let mut judge = Judge {
        order,
        rng: Rng::new(mix(order.seed, 0)),
        lives: [0, 1, 2].map(|number| Life::new(number, den(number), memory, order.seed)),
        canaries: [
            canary("watch", 200_000),
            canary("work", 2_000_000),
            canary("serve", 2_000_000),
            canary("call", 2_000_000),
            canary("write", 2_000_000),
        ],
        looks: 0,
        checks: 0,
        check_at: 0,
        told: 0,
        late_us: 0,
        share_us: 0,
        linux: (0, clock::now_us()),
        before: kernel(),
    };
    judge.check_canaries(1);
    (judge.late_us, judge.share_us) = (0, 0);
    give_turns();
    loop {
        judge.listen(LOOK_US);
        judge.look();
    }
}

/// Memory for playground and dens, all of it there.
fn memory() -> Option<u64> {
    let mut window = Window::claim(layout::WINDOWS, 1 << MEMORY_BITS)?;
    root::memory(&mut window, None).ok()?;
    Some(window.into_raw().0)
}

/// Where processors take turns, gives the others theirs in each grain of time, whatever runs on this one, and
/// whomever the judge waits for.
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
        report::violation(format_args!("the judge got no thread that gives turns: {why}"));
    }
}

/// Threads and free frames of the kernel.
fn kernel() -> [u64; 2] {
    root::inspect(What::Kernel, 0, 0).map_or([0, 0], |record| [record[2], record[1]])
}

/// How long a canary or a server may take for its answer.
fn patience(slack: u64) -> Timeouts {
    let time = Time::micros(PATIENCE_US * slack);
    Timeouts::new(time, time)
}

/// The first word of a server's statistics.
fn statistics(name: &str, label: u64, slack: u64) -> Option<u64> {
    let server = root::lookup(name).ok()?;
    ipc::call_within(server, &Msg::new(label), patience(slack)).ok().map(|reply| reply.mr[0])
}

impl Judge {
    fn calls(&self) -> u64 {
        self.lives.iter().map(Life::calls).sum()
    }

    /// Gives the hostile the pages that they have lost, for `us`.
    fn listen(&self, us: u64) {
        let end = clock::now_us() + us;
        loop {
            let left = end.saturating_sub(clock::now_us());
            if left == 0 {
                return;
            }
            let Ok((from, msg)) = ipc::wait(Time::micros(left)) else { continue };
            let life = self.lives.iter().find(|life| life.main() == from);
            if let Some(life) = life.filter(|_| msg.label() == LOST) {
                life.give(from, msg.mr[0]);
            }
        }
    }

    fn look(&mut self) {
        self.looks += 1;
        let others = self.everybody();
        for life in &mut self.lives {
            life.look(&others);
        }
        if self.rng.one_in(END_ONE_IN) {
            let victim = self.rng.below(TASKS as u64) as usize;
            self.lives[victim].end();
        }
        if self.looks.is_multiple_of(CANARY_LOOKS) {
            self.check_canaries(0);
        }
        if self.looks.is_multiple_of(SERVER_LOOKS) {
            self.check_servers();
        }
        let calls = self.calls();
        if calls >= self.check_at {
            self.check_at = calls + 1 + self.rng.below(2 * self.order.check_every);
            self.check_kernel();
        }
        if calls / PROGRESS != self.told || self.looks.is_multiple_of(QUIET_LOOKS) {
            self.told = calls / PROGRESS;
            self.tell(calls);
        }
        if report::any() || calls >= self.order.calls {
            self.end(calls);
        }
    }

    /// The ids of all others: initial servers, interrupts, servers, canaries, programs.
    fn everybody(&self) -> [ThreadId; 24] {
        let mut all = [ThreadId::ROOT; 24];
        let names = SERVERS.into_iter().chain(self.canaries.iter().map(|canary| canary.name));
        let tasks = names.filter_map(|name| find(name).map(|about| about.main));
        let hostile = self.lives.iter().map(Life::main).filter(|id| !id.is_nil());
        let fixed = [
            ThreadId::SIGMA0,
            ThreadId::SIGMA1,
            ThreadId::irq(4),
            ThreadId::irq(8),
            ThreadId::global(4096, 65),
            ThreadId::global(4100, 65),
        ];
        for (slot, id) in all.iter_mut().zip(tasks.chain(hostile).chain(fixed)) {
            *slot = id;
        }
        all
    }

    /// Asks all canaries; with `forget` 1, delays until now do not count.
    fn check_canaries(&mut self, forget: u64) {
        let slack = self.order.slack;
        let patience = patience(slack);
        for canary in &mut self.canaries {
            let main = find(canary.name).map_or(ThreadId::NIL, |about| about.main);
            let answer = ipc::call_within(main, &Msg::new(PROBE).word(forget), patience);
            let name = canary.name;
            let Ok(Msg { mr: [rounds, harm, one, two, late_us, ..], .. }) = answer else {
                report::violation(format_args!("the canary {name} does not answer"));
                continue;
            };
            if name == "work" {
                self.share_us = self.share_us.max(late_us);
            } else {
                self.late_us = self.late_us.max(late_us);
            }
            if harm != 0 {
                let what = report::HARMS.get(harm as usize - 1).copied().unwrap_or("?");
                report::violation(format_args!("the canary {name}: {what} ({one:#x}, {two:#x})"));
            }
            let now_us = clock::now_us();
            if rounds != canary.rounds {
                (canary.rounds, canary.since_us) = (rounds, now_us);
            } else if now_us - canary.since_us > canary.patience_us {
                let us = now_us - canary.since_us;
                report::violation(format_args!("the canary {name} has not got on for {us} us"));
            }
        }
        if self.share_us > SHARE_US * slack && forget == 0 {
            let us = self.share_us;
            report::violation(format_args!("the canary work waited {us} us for its share"));
        }
        if self.late_us > LATE_US * slack && forget == 0 {
            let us = self.late_us;
            report::violation(format_args!("the canary above all servers woke {us} us late"));
        }
    }

    fn check_servers(&mut self) {
        for name in SERVERS {
            let restarts = find(name).map_or(0, |about| about.restarts);
            if restarts != 0 {
                report::violation(format_args!("the server {name} died {restarts} times"));
            }
        }
        for (name, task) in NAMES {
            let (found, main) = (root::lookup(name).ok(), find(task).map(|about| about.main));
            if found.is_none() || found != main {
                report::violation(format_args!("the name {name} does not lead to {task}"));
            }
        }
        for (name, label) in
            [(console::NAME, console::STATISTICS), (pager::NAME, pager::STATISTICS)]
        {
            if statistics(name, label, self.order.slack).is_none() {
                report::violation(format_args!("the server {name} does not answer"));
            }
        }
        let now_us = clock::now_us();
        match statistics(unix::NAME, unix::STATISTICS, self.order.slack) {
            None => report::violation(format_args!("the Unix server does not answer")),
            Some(calls) if calls != self.linux.0 => self.linux = (calls, now_us),
            Some(_) if now_us - self.linux.1 > LINUX_US * self.order.slack => {
                report::violation(format_args!("Linux programs make no more system calls"));
            }
            Some(_) => {}
        }
    }

    /// Asks the kernel's checker; the delays that this makes do not count.
    fn check_kernel(&mut self) {
        self.checks += 1;
        match root::inspect(What::Check, 0, 0) {
            Ok([0, ..]) => {}
            Ok([count, ..]) => {
                report::violation(format_args!("the kernel's checker finds {count} violations"))
            }
            Err(why) => {
                report::violation(format_args!("the kernel's checker cannot be asked: {why}"));
            }
        }
        let before = (self.late_us, self.share_us);
        self.check_canaries(1);
        (self.late_us, self.share_us) = before;
    }

    fn tell(&self, calls: u64) {
        let lives: u64 = self.lives.iter().map(|life| life.lives).sum();
        let rounds = self.canaries.each_ref().map(|canary| canary.rounds);
        report::say(format_args!(
            "fuzz: {calls} calls, {lives} tasks, {} checks, {} ms, canaries {rounds:?}, at most {} us late, {} us for a round, Linux {}\n",
            self.checks,
            clock::now_us() / 1_000,
            self.late_us,
            self.share_us,
            self.linux.0
        ));
    }

    /// Ends the hostile; nothing of them may be left.
    fn end(&mut self, calls: u64) -> ! {
        if report::any() {
            self.show_last();
            report::end(calls);
        }
        self.tell(calls);
        for life in &mut self.lives {
            life.end();
        }
        ipc::sleep(100_000);
        self.check_kernel();
        self.check_canaries(0);
        self.check_servers();
        let ([threads, frames], after) = (self.before, kernel());
        report::say(format_args!(
            "fuzz: {threads} threads and {frames} free frames before, {} and {} after\n",
            after[0], after[1]
        ));
        if after[0] > threads + THREADS {
            report::violation(format_args!("threads of the hostile live on"));
        }
        if after[1] + FRAMES < frames {
            report::violation(format_args!("kernel memory is missing"));
        }
        report::end(calls)
    }

    /// Prints the last calls of all hostile threads.
    fn show_last(&self) {
        let mut from = u64::MAX;
        for _ in 0..SHOWN {
            let Some((at, task, thread, index)) = self.call_before(from) else { return };
            from = at;
            let call = &self.lives[task].den().threads[thread].last[index];
            let what = call.what.load(Ordering::Relaxed);
            let words = [0, 1, 2, 3, 4, 5, 7, 8]
                .map(|word: usize| call.words[word].load(Ordering::Relaxed));
            let name = ACTIONS.get((what & 0xFF) as usize).copied().unwrap_or("?");
            report::say(format_args!(
                "  {at} task {task} thread {thread}: {name} at {:#x}: {words:x?}\n",
                what >> 8
            ));
        }
    }

    /// The remembered call that is the last before `limit`.
    fn call_before(&self, limit: u64) -> Option<(u64, usize, usize, usize)> {
        let mut best: Option<(u64, usize, usize, usize)> = None;
        for (task, life) in self.lives.iter().enumerate() {
            for (thread, last) in life.den().threads.iter().enumerate() {
                for index in 0..REMEMBERED {
                    let at = last.last[index].at.load(Ordering::Relaxed);
                    if at != 0 && at < limit && best.is_none_or(|best| at > best.0) {
                        best = Some((at, task, thread, index));
                    }
                }
            }
        }
        best
    }
}
