//! Schedule: states, priorities, time slices, quanta, delayed preemption.

use abi::CallError::{InvalidParameter, InvalidThread, NoPrivilege};
use abi::layout::stub;
use abi::protocol::exception as reg;
use abi::{MsgTag, ThreadId, Time, protocol, utcb};
use runtime::{Msg, clock, ipc, kernel, schedule, syscall};

use crate::report::{Outcome, Sentence, because, case};
use crate::victim::{COUNT, SPIN, Victim, at, registers};
use crate::{check, machine, same, world};

const UNCHANGED: u64 = !0;
/// No tick is longer.
const TICK_US: u64 = 1_024;

/// Runs the tests.
pub fn run() {
    case("schedule_reports_states", states);
    case("schedule_errors", errors);
    case("schedule_is_for_schedulers", schedulers);
    case("equal_priorities_share_the_processor", fair);
    case("a_higher_priority_excludes_a_lower", strict);
    case("slice_lengths_are_kept", slices);
    case("an_exhausted_quantum_is_reported", quantum);
    case("preemption_can_be_delayed", delayed);
    case("processor_time_is_counted", counted);
    case("short_sleeps_end_between_two_ticks", sleeps);
}

fn state_of(id: ThreadId) -> u64 {
    syscall::schedule(id.0, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).0
}

fn states() -> Outcome {
    let inactive = world::new_space()?;
    same!("an inactive thread's state", state_of(inactive), 2);
    let deaf = world::new_task()?;
    same!("the state before the start message", state_of(deaf), 6);
    same!("the caller's state", state_of(ThreadId::ROOT), 3);
    let victim = Victim::task()?;
    same!("a parked thread's state", state_of(victim.id()), 6);
    victim.begin(SPIN, registers())?;
    same!("a ready thread's state", state_of(victim.id()), 3);
    victim.abandon()?;
    victim.begin_ipc(deaf, ThreadId::NIL, 0, [0; 8])?;
    ipc::sleep(500);
    same!("a sender's state", state_of(victim.id()), 4);
    victim.abandon()?;
    victim.begin(SPIN, registers())?;
    let stop = abi::syscall::exregs::HALT | abi::syscall::exregs::HALT_VALID;
    machine::exchange(
        victim.id(),
        syscall::ThreadRegisters { control: stop, ..Default::default() },
    );
    same!("a halted thread's state", state_of(victim.id()), 2);
    for id in [inactive, deaf] {
        world::delete(id)?;
    }
    victim.delete()
}

fn error_of(id: ThreadId, time: u64, processor: u64, priority: u64, preemption: u64) -> u64 {
    let state = syscall::schedule(id.0, time, processor, priority, preemption).0;
    if state == 0 { runtime::utcb::error_code() } else { 0 }
}

fn errors() -> Outcome {
    let victim = Victim::task()?;
    let id = victim.id();
    for bad in [
        world::fresh(),
        ThreadId::NIL,
        ThreadId::ANY,
        ThreadId::irq(5),
        ThreadId::global(id.number(), 77),
    ] {
        same!(
            "no such thread",
            error_of(bad, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED),
            InvalidThread as u64
        );
    }
    for points in [0x8001, 0x8001_0000] {
        let error = error_of(id, points, UNCHANGED, UNCHANGED, UNCHANGED);
        same!("points as time control", error, InvalidParameter as u64);
    }
    same!(
        "a processor that is not there",
        error_of(id, UNCHANGED, 1, UNCHANGED, UNCHANGED),
        InvalidParameter as u64
    );
    same!("the only processor", error_of(id, UNCHANGED, 0, UNCHANGED, UNCHANGED), 0);
    same!("a call for hierarchical scheduling", error_of(id, 1, UNCHANGED, 50, 1 << 25), 0);
    let words =
        kernel::inspect(abi::inspect::What::Thread, u64::from(id.number()), 0).unwrap_or_default();
    same!("the priority it leaves", words[3], 100);
    because(kernel::attach_irq(5, ThreadId::ROOT), "attaching a line")?;
    let attached = error_of(ThreadId::irq(5), UNCHANGED, UNCHANGED, 200, UNCHANGED);
    because(kernel::detach_irq(5), "detaching a line")?;
    same!("an attached interrupt", attached, 0);
    victim.delete()
}

/// Schedule by `victim`: error code.
fn try_call(victim: &Victim, dest: ThreadId, priority: u64, preemption: u64) -> Outcome<u64> {
    let mut regs = registers();
    (regs[reg::RDI], regs[reg::RSI], regs[reg::RDX]) = (dest.0, priority, UNCHANGED);
    (regs[reg::R8], regs[reg::R9]) = (UNCHANGED, preemption);
    let state = victim.call(stub::SCHEDULE, regs)?[reg::RAX];
    if state != 0 { Ok(0) } else { victim.error_code() }
}

fn schedulers() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    let refused = NoPrivilege as u64;
    same!("a stranger", try_call(&one, other.id(), UNCHANGED, UNCHANGED)?, refused);
    same!("sigma0", try_call(&one, ThreadId::SIGMA0, 1, UNCHANGED)?, refused);
    same!("a thread of its own space", try_call(&one, one.id(), 99, UNCHANGED)?, refused);
    // Made its scheduler, it may, up to its own priority.
    let made = machine::thread_control(other.id(), other.id(), one.id(), ThreadId::NIL, !0);
    same!("a change of scheduler", made, 0);
    same!("a priority above the caller's", try_call(&one, other.id(), 101, UNCHANGED)?, refused);
    same!(
        "a sensitive priority above the caller's",
        try_call(&one, other.id(), UNCHANGED, 101 << 16)?,
        refused
    );
    same!("the caller's priority", try_call(&one, other.id(), 100, UNCHANGED)?, 0);
    same!("a lower priority", try_call(&one, other.id(), 98, UNCHANGED)?, 0);
    same!("the thread itself", try_call(&other, other.id(), 97, UNCHANGED)?, refused);
    let words = kernel::inspect(abi::inspect::What::Thread, u64::from(other.id().number()), 0)
        .unwrap_or_default();
    same!("the priority it set", words[3], 98);
    one.delete()?;
    other.delete()
}

/// Two threads that count; returns them after they were started.
fn counters() -> Outcome<[Victim; 2]> {
    let pair = [Victim::task()?, Victim::task()?];
    for victim in &pair {
        machine::write(victim.data(), 0);
        // The data page is fetched before the race.
        victim.store(victim.data(), 0)?;
    }
    Ok(pair)
}

fn counts(pair: &[Victim; 2]) -> (u64, u64) {
    (machine::read(pair[0].data()), machine::read(pair[1].data()))
}

fn set_time(victim: &Victim, slice: Time, quantum: Time) -> Outcome {
    let word = u64::from(slice.0) << 16 | u64::from(quantum.0);
    let state = syscall::schedule(victim.id().0, word, UNCHANGED, UNCHANGED, UNCHANGED).0;
    check!(state != 0, "setting times failed with error {}", runtime::utcb::error_code());
    Ok(())
}

fn fair() -> Outcome {
    let pair = counters()?;
    for victim in &pair {
        victim.begin(COUNT, at(victim.data(), 0))?;
    }
    ipc::sleep(200_000);
    let (one, other) = counts(&pair);
    for victim in pair {
        victim.delete()?;
    }
    check!(one > 0 && other > 0, "two equal threads counted to {one} and {other}");
    check!(
        one.abs_diff(other) <= (one + other) / 8,
        "two equal threads counted to {one} and {other}"
    );
    Ok(())
}

fn strict() -> Outcome {
    let pair = counters()?;
    because(schedule::set_priority(pair[0].id(), 101), "setting a priority")?;
    pair[1].begin(COUNT, at(pair[1].data(), 0))?;
    pair[0].begin(COUNT, at(pair[0].data(), 0))?;
    ipc::sleep(40_000);
    let (high, low) = counts(&pair);
    for victim in pair {
        victim.delete()?;
    }
    check!(high > 0, "the higher thread did not run");
    same!("what the lower thread counted", low, 0);
    Ok(())
}

fn slices() -> Outcome {
    let pair = counters()?;
    set_time(&pair[0], Time::micros(30_000), Time::NEVER)?;
    set_time(&pair[1], Time::micros(10_000), Time::NEVER)?;
    for victim in &pair {
        victim.begin(COUNT, at(victim.data(), 0))?;
    }
    ipc::sleep(240_000);
    let (long, short) = counts(&pair);
    for victim in pair {
        victim.delete()?;
    }
    check!(short > 0, "the thread with the short slice did not run");
    let percent = long * 100 / short;
    check!((200..=400).contains(&percent), "slices of 30 and 10 ms gave {long} and {short} counts");
    Ok(())
}

fn quantum() -> Outcome {
    let victim = Victim::task()?;
    machine::write(victim.data(), 0);
    victim.store(victim.data(), 0)?;
    for round in 0..3 {
        set_time(&victim, Time::micros(10_000), Time::micros(20_000))?;
        let before = clock::now_us();
        if round == 0 {
            victim.begin(COUNT, at(victim.data(), 0))?;
        } else {
            victim.answer(&Msg::default())?;
        }
        let report = because(
            ipc::receive(victim.id(), Time::micros(200_000)),
            "waiting for the preemption message",
        )?;
        let now = clock::now_us();
        same!("the label", report.tag.protocol_label(), protocol::PREEMPTION);
        same!("its tag", report.tag, MsgTag::protocol(protocol::PREEMPTION, 0, 2, 0));
        check!(
            report.mr[0] >= before && report.mr[0] <= now,
            "the message's clock {} lies outside {before}..{now}",
            report.mr[0]
        );
        same!("its second word", report.mr[1], 0);
        let used = report.mr[0] - before;
        check!((18_000..40_000).contains(&used), "a quantum of 20000 us lasted {used} us");
    }
    let counted = machine::read(victim.data());
    ipc::sleep(5_000);
    same!("what it counted without quantum", machine::read(victim.data()), counted);
    set_time(&victim, Time::micros(10_000), Time::NEVER)?;
    victim.answer(&Msg::default())?;
    ipc::sleep(50_000);
    check!(machine::read(victim.data()) > counted, "with a new quantum it does not run");
    victim.abandon()?;
    victim.delete()
}

/// Sleeps 20 ms, then stores the clock at RBX for ever.
extern "C" fn late(result: u64) -> ! {
    ipc::sleep(20_000);
    machine::write(result, clock::now_us());
    runtime::thread::park()
}

/// How late a thread of priority 120 wakes up beside a spinning one.
fn lateness(delay: bool) -> Outcome<(u64, u64)> {
    static RESULT: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
    let spinner = Victim::task()?;
    let control = if delay { 130 << 16 | 15_000 } else { UNCHANGED };
    let state = syscall::schedule(spinner.id().0, UNCHANGED, UNCHANGED, UNCHANGED, control).0;
    check!(state != 0, "setting the preemption control failed");
    set_time(&spinner, Time::micros(500_000), Time::NEVER)?;
    spinner.set_word(utcb::FLAGS, if delay { utcb::PREEMPT_DELAY } else { 0 })?;
    RESULT.store(0, core::sync::atomic::Ordering::Relaxed);
    let sleeper = world::new_local()?;
    because(schedule::set_priority(sleeper, 120), "setting a priority")?;
    let begin = clock::now_us();
    world::start(sleeper, late, RESULT.as_ptr() as u64)?;
    ipc::sleep(2_000);
    spinner.begin(SPIN, registers())?;
    ipc::sleep(80_000);
    let woke = RESULT.load(core::sync::atomic::Ordering::Relaxed);
    spinner.abandon()?;
    let flags = spinner.word(utcb::FLAGS)?;
    world::delete(sleeper)?;
    spinner.delete()?;
    if woke == 0 {
        return Err(Sentence::new(format_args!("the sleeper did not run at all")));
    }
    Ok((woke - begin - 20_000, flags & utcb::PREEMPT_PENDING))
}

fn delayed() -> Outcome {
    let (prompt, pending) = lateness(false)?;
    check!(prompt < 500, "a higher thread woke {prompt} us late");
    same!("the pending flag without delay", pending, 0);
    let (late, pending) = lateness(true)?;
    same!("the pending flag after a delay", pending, utcb::PREEMPT_PENDING);
    check!(
        (10_000..25_000).contains(&late),
        "with a delay of 15000 us a higher thread woke {late} us late"
    );
    Ok(())
}

/// Microseconds of processor time that a thread has used.
fn used_us(id: ThreadId) -> Option<u64> {
    let words = kernel::inspect(abi::inspect::What::Time, id.0, 0)?;
    (words[0] == id.0).then_some(words[1])
}

fn counted() -> Outcome {
    let pair = counters()?;
    let waiting = Victim::task()?;
    let before = clock::now_us();
    for victim in &pair {
        victim.begin(COUNT, at(victim.data(), 0))?;
    }
    ipc::sleep(200_000);
    let span_us = clock::now_us() - before;
    let used = pair.each_ref().map(|victim| used_us(victim.id()).unwrap_or(0));
    let idle = used_us(waiting.id());
    for victim in pair {
        victim.delete()?;
    }
    let gone = waiting.id();
    waiting.delete()?;
    let sum = used[0] + used[1];
    // A tick charges all that has passed since the last one to whom it meets.
    check!(
        sum <= span_us + TICK_US && sum >= span_us * 9 / 10,
        "two threads that took all of {span_us} us used {} and {}",
        used[0],
        used[1]
    );
    check!(
        used[0].abs_diff(used[1]) <= sum / 8,
        "two equal threads used {} and {} us",
        used[0],
        used[1]
    );
    check!(idle.is_some_and(|us| us <= 2_000), "a thread that waits has used {idle:?} us");
    check!(used_us(gone).is_none(), "a thread that is gone has a time");
    Ok(())
}

/// Least time between two of the timer's interrupts, and what waking somebody takes.
const LATE_US: u64 = 100 + 20;

fn sleeps() -> Outcome {
    for us in [1, 50, 300, 700, 1_000, 1_500, 5_000, 20_000] {
        for _ in 0..10 {
            let before = clock::now_us();
            ipc::sleep(us);
            let slept_us = clock::now_us() - before;
            check!(slept_us >= us, "a sleep of {us} us ended after {slept_us}");
            check!(slept_us <= us + LATE_US, "a sleep of {us} us took {slept_us}");
        }
    }
    Ok(())
}
