//! ThreadSwitch: giving up the slice, donating it, doing nothing.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::ThreadId;
use abi::layout::stub;
use abi::protocol::exception as reg;
use runtime::{clock, ipc, schedule, syscall};

use crate::report::{Outcome, because, case};
use crate::victim::{COUNT, SPIN, Victim, at, registers};
use crate::{check, machine, same, world};

/// Runs the tests.
pub fn run() {
    case("thread_switch_to_self_or_nobody_returns", returns);
    case("thread_switch_donates_the_slice", donates);
    case("thread_switch_takes_turns", turns);
}

fn returns() -> Outcome {
    let victim = Victim::task()?;
    let deaf = world::new_task()?;
    for dest in [
        victim.id(),
        ThreadId(victim.utcb),
        ThreadId::NIL,
        ThreadId::ANY,
        deaf,
        world::fresh(),
        ThreadId::irq(3),
        ThreadId::global(abi::id::SYSTEM_BASE, 1),
    ] {
        let mut regs = super::interface::pattern(3);
        regs[reg::RDI] = dest.0;
        let seen = victim.call(stub::THREAD_SWITCH, regs)?;
        same!("RSP after ThreadSwitch", seen[reg::RSP], victim.stack_top());
    }
    let before = clock::now_us();
    for _ in 0..100 {
        syscall::thread_switch(ThreadId::ROOT.0);
        syscall::thread_switch(0);
    }
    check!(
        clock::now_us() - before < 100_000,
        "switching to nobody took {} us",
        clock::now_us() - before
    );
    world::delete(deaf)?;
    victim.delete()
}

fn donates() -> Outcome {
    let (low, middle) = (Victim::task()?, Victim::task()?);
    for victim in [&low, &middle] {
        machine::write(victim.data(), 0);
        victim.store(victim.data(), 0)?;
    }
    because(schedule::set_priority(low.id(), 10), "setting a priority")?;
    low.begin(COUNT, at(low.data(), 0))?;
    middle.begin(COUNT, at(middle.data(), 0))?;
    same!("what the low thread counted before", machine::read(low.data()), 0);
    syscall::thread_switch(low.id().0);
    let counted = machine::read(low.data());
    check!(counted > 0, "the thread that got the slice did not run");
    // Without another gift the middle thread has the processor.
    ipc::sleep(30_000);
    let later = machine::read(low.data());
    check!(machine::read(middle.data()) > 0, "the middle thread never ran");
    same!("what the low thread counted without a gift", later, counted);
    low.delete()?;
    middle.delete()
}

static TURNS: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicU64 = AtomicU64::new(0);

/// Counts the times it finds another's mark, giving up its slice each time.
extern "C" fn taker(mark: u64) -> ! {
    static LAST: AtomicU64 = AtomicU64::new(0);
    while STOP.load(Ordering::Relaxed) == 0 {
        if LAST.swap(mark, Ordering::Relaxed) != mark {
            TURNS.fetch_add(1, Ordering::Relaxed);
        }
        syscall::thread_switch(0);
    }
    runtime::thread::park()
}

fn turns() -> Outcome {
    TURNS.store(0, Ordering::Relaxed);
    STOP.store(0, Ordering::Relaxed);
    let pair = [world::spawn(taker, 1)?, world::spawn(taker, 2)?];
    ipc::sleep(5_000);
    STOP.store(1, Ordering::Relaxed);
    ipc::sleep(30_000);
    let turns = TURNS.load(Ordering::Relaxed);
    for id in pair {
        world::delete(id)?;
    }
    check!(turns > 50, "in 5 ms two yielding threads took only {turns} turns");
    let spinner = Victim::task()?;
    spinner.begin(SPIN, registers())?;
    spinner.abandon()?;
    spinner.delete()
}
