//! Sleeps that end between two ticks: when the timer interrupts, and who is awake then.

use std::sync::atomic::Ordering;

use crate::common::tasks::{machine, thread};
use crate::common::{Machine, Random};
use abi::{ThreadId, Time, Timeouts};
use kernel::arch::clock::{self, TICK_US};
use kernel::arch::cpu;
use kernel::control::lifecycle;
use kernel::ipc::syscall;
use kernel::irq::{self, wake};
use kernel::sched::wakeup::GRAIN_US;
use kernel::sched::{self, slice};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, own, registry, set_current};

/// The kernel's own line.
const TIMER: u32 = 0;
/// Least time between two interrupts, µs.
const GAP_US: u64 = 100;
/// As many as its quota pays for.
const IN_A_TASK: u32 = 12;
/// When it all begins, µs: in the middle of a grain.
const BEGIN_US: u64 = 1_000_300;

/// A machine whose timer the test is.
struct Sleepers {
    _machine: Machine,
    running: TcbRef,
    threads: Vec<TcbRef>,
    now_us: u64,
}

impl Sleepers {
    fn new(count: u32) -> Self {
        let (machine, spaces) = machine(2 + count / IN_A_TASK);
        own::make_waker();
        let running = thread(spaces[0], 0, ThreadId::NIL);
        running.resume.set(Resume::Frame);
        let make = |index| {
            let space = spaces[1 + (index / IN_A_TASK) as usize];
            thread(space, 1 + index, ThreadId::NIL)
        };
        let threads: Vec<_> = (0..count).map(make).collect();
        for thread in threads.iter().chain([&running]) {
            cpu().scheduler.ready.remove(*thread);
        }
        set_current(running);
        let mut sleepers = Self { _machine: machine, running, threads, now_us: 0 };
        cpu().scheduler.wakeup.begin(BEGIN_US);
        sleepers.interrupt_at(BEGIN_US);
        sleepers
    }

    /// It is `now_us` from now on.
    fn set_clock(&mut self, now_us: u64) {
        self.now_us = now_us;
        clock::PAGE.offset_us.store(now_us, Ordering::Relaxed);
    }

    /// The timer interrupts.
    fn interrupt_at(&mut self, now_us: u64) {
        self.set_clock(now_us);
        let _ = irq::interrupt(self.running, TIMER);
        set_current(self.running);
        cpu().scheduler.ready.remove(self.running);
    }

    /// When the timer interrupts next.
    fn next_us() -> u64 {
        let scheduler = &cpu().scheduler;
        match scheduler.early_us.get() {
            0 => scheduler.ticked_us.get() + TICK_US,
            early_us => early_us,
        }
    }

    /// Lets the thread `who` sleep for `us`, of few bits.
    fn sleep(&self, who: usize, us: u64) {
        let thread = self.threads[who];
        cpu().scheduler.ready.remove(thread);
        set_current(thread);
        let timeouts = Timeouts::new(Time::NEVER, Time::micros(us));
        let _ = syscall::ipc(thread, ThreadId::NIL, ThreadId::ANY, timeouts.0);
        set_current(self.running);
    }

    /// The sleep of the thread `who` is broken off.
    fn wake(&self, who: usize) {
        sched::make_ready(self.threads[who]);
        cpu().scheduler.ready.remove(self.threads[who]);
    }

    /// The waker has something to do at `now_us`, for whatever reason.
    fn waker_looks(&mut self, now_us: u64) {
        self.set_clock(now_us);
        let waker = cpu().scheduler.waker.get().expect("there is one");
        while wake::go_on(waker) {}
    }

    fn is_awake(&self, who: usize) -> bool {
        self.threads[who].is_ready()
    }
}

#[test]
fn a_short_sleep_ends_between_two_ticks() {
    let mut sleepers = Sleepers::new(1);
    sleepers.sleep(0, 300);
    assert_eq!(Sleepers::next_us(), BEGIN_US + 300);
    sleepers.interrupt_at(BEGIN_US + 300);
    assert!(sleepers.is_awake(0));
    assert_eq!(Sleepers::next_us(), BEGIN_US + 300 + TICK_US, "it ticks again");
}

#[test]
fn a_tick_looks_ahead_to_the_next_one() {
    for us in [1_001, 1_500, 1_998] {
        let mut sleepers = Sleepers::new(1);
        sleepers.sleep(0, us);
        assert_eq!(Sleepers::next_us(), BEGIN_US + TICK_US);
        sleepers.interrupt_at(BEGIN_US + TICK_US);
        assert!(!sleepers.is_awake(0));
        assert_eq!(Sleepers::next_us(), BEGIN_US + us.max(TICK_US + GAP_US));
        sleepers.interrupt_at(Sleepers::next_us());
        assert!(sleepers.is_awake(0), "{us}");
    }
}

#[test]
fn a_sleep_that_is_broken_off_leaves_the_ticks() {
    for waker_looks in [false, true] {
        let mut sleepers = Sleepers::new(1);
        sleepers.sleep(0, 300);
        sleepers.wake(0);
        if waker_looks {
            sleepers.waker_looks(BEGIN_US + 200);
        }
        let next_us = Sleepers::next_us();
        assert_eq!(next_us, BEGIN_US + 300);
        sleepers.interrupt_at(next_us);
        assert_eq!(cpu().scheduler.early_us.get(), 0, "the waker has looked: {waker_looks}");
    }
}

#[test]
fn sleepers_whose_sleep_was_broken_off_hide_nobody() {
    let mut sleepers = Sleepers::new(17);
    (0..16).for_each(|who| sleepers.sleep(who, 320));
    sleepers.sleep(16, 300);
    (0..16).for_each(|who| sleepers.wake(who));
    sleepers.interrupt_at(BEGIN_US + 300);
    assert!(!sleepers.is_awake(16), "so many are not looked at");
    let next_us = Sleepers::next_us();
    sleepers.interrupt_at(next_us);
    assert!(sleepers.is_awake(16), "now they are gone");
}

#[test]
fn the_most_urgent_wake_in_time_whatever_crowd_sleeps() {
    const CROWD: usize = 40;
    let mut sleepers = Sleepers::new(CROWD as u32 + 1);
    (0..CROWD).for_each(|who| sleepers.sleep(who, 1_600));
    sleepers.threads[CROWD].priority.set(220);
    sleepers.sleep(CROWD, 1_500);
    sleepers.interrupt_at(BEGIN_US + TICK_US);
    sleepers.interrupt_at(Sleepers::next_us());
    assert!(sleepers.is_awake(CROWD) && sleepers.now_us == BEGIN_US + 1_500);
    let awake = |sleepers: &Sleepers| (0..CROWD).filter(|who| sleepers.is_awake(*who)).count();
    sleepers.interrupt_at(Sleepers::next_us());
    assert!(sleepers.now_us == BEGIN_US + 1_600);
    assert!((1..=8).contains(&awake(&sleepers)), "a look is short");
    let late_us = BEGIN_US + 1_600 + 2 * GRAIN_US;
    while sleepers.now_us < late_us && awake(&sleepers) < CROWD {
        sleepers.interrupt_at(Sleepers::next_us());
        sleepers.waker_looks(sleepers.now_us);
    }
    assert!(sleepers.now_us < late_us, "the crowd sleeps too long");
}

/// What goes on with every tick asks each of them for the next one.
#[test]
fn the_waker_leaves_a_sweep_its_ticks() {
    let mut sleepers = Sleepers::new(60);
    let _ = lifecycle::delete(sleepers.threads[59]);
    assert!(registry().sweep.is_under_way());
    for tick in 1..100 {
        let tick_us = BEGIN_US + tick * TICK_US;
        sleepers.waker_looks(tick_us - 500);
        assert!(!registry().sweep.is_under_way() || cpu().scheduler.wakeup.is_due(tick_us));
        sleepers.interrupt_at(tick_us);
    }
    assert!(!registry().sweep.is_under_way(), "a hundred ticks have not ended it");
}

/// Who gives way at each interrupt, and others who have the timer interrupt soon behind that each time.
#[test]
fn turns_that_others_are_given_are_no_longer_than_ones_own() {
    let mut sleepers = Sleepers::new(1);
    let other = sleepers.threads[0];
    other.priority.set(150);
    let (mut own_us, mut others_us) = (0, 0);
    for _ in 0..1_000 {
        // Its own turn is cut short.
        let began_us = sleepers.now_us;
        cpu().scheduler.early_us.set(began_us + GAP_US);
        cpu().scheduler.wakeup.look_until(began_us + GAP_US);
        sleepers.interrupt_at(began_us + GAP_US);
        own_us += GAP_US;
        cpu().scheduler.ready.insert(sleepers.running);
        cpu().scheduler.ready.insert(other);
        assert!(slice::give_way(sleepers.running, 120) == other);
        others_us += Sleepers::next_us() - sleepers.now_us;
        sleepers.interrupt_at(Sleepers::next_us());
    }
    assert!(others_us < own_us * 11 / 10, "{own_us} us, and {others_us} the others");
}

#[test]
fn the_shortest_sleeps_do_not_keep_the_timer_interrupting() {
    let mut sleepers = Sleepers::new(4);
    let mut interrupts = 0;
    while sleepers.now_us < BEGIN_US + 100 * TICK_US {
        for who in 0..4 {
            sleepers.sleep(who, 1 + who as u64);
        }
        sleepers.interrupt_at(Sleepers::next_us());
        interrupts += 1;
        assert!((0..4).all(|who| sleepers.is_awake(who)));
    }
    assert_eq!(interrupts, 100 * TICK_US / GAP_US);
}

/// Up to as many as a look ahead goes through: nobody sleeps longer than the gap between interrupts makes him.
#[test]
fn few_sleepers_wake_in_time() {
    let mut random = Random::seeded(61);
    let mut sleepers = Sleepers::new(8);
    let (mut until, mut woken) = ([0; 8], 0);
    while woken < 20_000 {
        let next_us = Sleepers::next_us();
        assert!(next_us > sleepers.now_us && next_us <= sleepers.now_us + TICK_US);
        let now_us = sleepers.now_us + 1 + random.below(400);
        if now_us < next_us {
            let who = random.below(8) as usize;
            sleepers.set_clock(now_us);
            if until[who] == 0 {
                // A time that it can say exactly.
                let us = Time::micros(1 + (random.next() >> (48 + random.below(16))));
                let us = us.period_us().expect("it is one");
                sleepers.sleep(who, us);
                until[who] = now_us + us;
            }
            continue;
        }
        sleepers.interrupt_at(next_us);
        for (who, until_us) in until.iter_mut().enumerate().filter(|(_, until)| **until != 0) {
            if sleepers.is_awake(who) {
                assert!(*until_us <= next_us, "{} µs early", *until_us - next_us);
                (*until_us, woken) = (0, woken + 1);
            } else {
                assert!(*until_us + GAP_US > next_us, "{} µs late", next_us - *until_us);
            }
        }
    }
}
