//! TaskControl and CreateThread: who owns which thread numbers, and how much time.

use abi::CallError::{InvalidParameter, InvalidSpace, InvalidThread, NoPrivilege};
use abi::layout::stub;
use abi::protocol::exception as reg;
use abi::task::UNCHANGED;
use abi::{CallError, Ceilings, Numbers, ThreadId, Time};
use runtime::{kernel, schedule};

use crate::report::{Outcome, because, case};
use crate::victim::{Victim, registers};
use crate::{check, same, world};

/// Runs the tests.
pub fn run() {
    case("task_control_gives_numbers_once", numbers);
    case("task_control_lowers_ceilings", ceilings);
    case("threads_are_made_in_the_own_range_only", range);
    case("ids_are_unique_in_time", unique);
    case("create_thread_does_not_change_a_thread", strict);
    case("a_task_schedules_itself_below_its_ceilings", own_scheduler);
    case("new_threads_are_no_more_urgent_than_their_creator", urgency);
}

const NIL: ThreadId = ThreadId::NIL;
/// What the root task gives ordinary tasks.
const ORDINARY: Ceilings =
    Ceilings { priority: 100, slice: Time::micros(10_000), quantum: Time::NEVER, delay_us: 0 };

/// `victim` calls ThreadControl (or CreateThread): dest, pager, scheduler, space.
fn threads(victim: &Victim, link: u64, ids: [ThreadId; 4]) -> Outcome<u64> {
    let mut regs = registers();
    [regs[reg::RDI], regs[reg::RSI], regs[reg::RDX], regs[reg::R8]] = ids.map(|id| id.0);
    regs[reg::R9] = !0;
    let ok = victim.call(link, regs)?[reg::RAX] == 1;
    if ok { Ok(0) } else { victim.error_code() }
}

/// `victim` creates `id` in its own space.
fn creates(victim: &Victim, id: ThreadId) -> Outcome<u64> {
    threads(victim, stub::CREATE_THREAD, [id, NIL, victim.id(), victim.id()])
}

/// `victim` calls TaskControl.
fn controls(victim: &Victim, of: ThreadId, numbers: u64, ceilings: u64) -> Outcome<u64> {
    let mut regs = registers();
    (regs[reg::RDI], regs[reg::RSI], regs[reg::RDX]) = (of.0, numbers, ceilings);
    let ok = victim.call(stub::TASK_CONTROL, regs)?[reg::RAX] == 1;
    if ok { Ok(0) } else { victim.error_code() }
}

fn numbers() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    let empty = because(kernel::limits(one.id()), "reading")?;
    same!("what a new task has", empty, (Numbers::NONE, Ceilings::NONE));
    let own = world::own_numbers(one.id(), 8)?;
    same!("what it has now", kernel::limits(one.id()).map(|limits| limits.0), Ok(own));
    let more = Some(Numbers { first: own.first + 8, count: 8 });
    same!("more of them", kernel::limit(one.id(), more, None), Err(InvalidParameter));
    let kernels = Some(Numbers { first: 16, count: 64 });
    same!("the kernel's", kernel::limit(other.id(), kernels, None), Err(NoPrivilege));
    same!("the root task's", kernel::limit(ThreadId::ROOT, more, None), Err(NoPrivilege));
    same!("nobody's", kernel::limits(ThreadId::global(99_999, 1)), Err(InvalidSpace));
    let refused = NoPrivilege as u64;
    let word = Numbers { first: own.first, count: 1 }.word();
    same!("by a stranger", controls(&other, one.id(), UNCHANGED, UNCHANGED)?, refused);
    same!("of nobody", controls(&other, ThreadId::global(99_999, 1), !0, !0)?, refused);
    same!("by itself", controls(&other, other.id(), word, UNCHANGED)?, refused);
    same!("reading by itself", controls(&one, one.id(), UNCHANGED, UNCHANGED)?, 0);
    one.delete()?;
    other.delete()
}

fn ceilings() -> Outcome {
    let victim = Victim::task()?;
    because(schedule::set_priority(victim.id(), 150), "raising the priority")?;
    because(kernel::limit(victim.id(), None, Some(ORDINARY)), "lowering the ceilings")?;
    let words = kernel::inspect(abi::inspect::What::Thread, victim.id().number().into(), 0);
    same!("the priority", words.map(|words| words[3]), Some(100));
    same!("above it", schedule::set_priority(victim.id(), 101), Err(NoPrivilege));
    same!("at it", schedule::set_priority(victim.id(), 100), Ok(()));
    let raised = kernel::limit(victim.id(), None, Some(Ceilings::NONE));
    same!("raising a ceiling", raised, Err(NoPrivilege));
    let point = Ceilings { slice: Time(0x8001), ..ORDINARY };
    same!("a point in time", kernel::limit(victim.id(), None, Some(point)), Err(InvalidParameter));
    world::sound()?;
    victim.delete()
}

fn range() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    let own = world::own_numbers(one.id(), 4)?;
    let theirs = world::own_numbers(other.id(), 4)?;
    let refused = NoPrivilege as u64;
    let there = ThreadId::global(theirs.first, 1);
    same!("a thread of the other's", creates(&other, there)?, 0);
    for number in [own.first + 4, theirs.first, theirs.first + 1, own.first - 1, 49, 40_000] {
        let id = ThreadId::global(number, 1);
        same!("creating elsewhere", creates(&one, id)?, refused);
        let all = [id, one.id(), NIL, one.id()];
        same!("changing elsewhere", threads(&one, stub::THREAD_CONTROL, all)?, refused);
        let gone = [id, NIL, NIL, NIL];
        same!("deleting elsewhere", threads(&one, stub::THREAD_CONTROL, gone)?, refused);
    }
    check!(world::state(there) != !0, "the other's thread is gone");
    for number in own.first..own.first + 4 {
        same!("creating at home", creates(&one, ThreadId::global(number, 1))?, 0);
    }
    let first = ThreadId::global(own.first, 1);
    same!("deleting at home", threads(&one, stub::THREAD_CONTROL, [first, NIL, NIL, NIL])?, 0);
    world::sound()?;
    one.delete()?;
    other.delete()
}

fn unique() -> Outcome {
    let victim = Victim::task()?;
    let own = world::own_numbers(victim.id(), 4)?;
    let wrong = InvalidThread as u64;
    let id = |version| ThreadId::global(own.first, version);
    same!("the first", creates(&victim, id(7))?, 0);
    same!("deleting it", threads(&victim, stub::THREAD_CONTROL, [id(7), NIL, NIL, NIL])?, 0);
    for version in [7, 6, 1, 7 + 129, 0xFFFF_FFFF] {
        same!("not the next", creates(&victim, id(version))?, wrong);
    }
    same!("the last version", kernel::number(own.first), Some((NIL, 7)));
    same!("the next", creates(&victim, id(8))?, 0);
    same!("who has it", kernel::number(own.first), Some((id(8), 8)));
    let member = victim.id();
    let back = [id(7), NIL, NIL, member];
    same!("back in time", threads(&victim, stub::THREAD_CONTROL, back)?, wrong);
    world::sound()?;
    victim.delete()
}

fn strict() -> Outcome {
    let victim = Victim::task()?;
    let id = world::new_space()?;
    let taken = Err(CallError::InvalidThread);
    same!("the same id", kernel::create(id, id, ThreadId::ROOT, !0), taken);
    let newer = ThreadId::global(id.number(), id.version() + 64);
    same!("a newer one", kernel::create(newer, newer, ThreadId::ROOT, !0), taken);
    same!("in another space", kernel::create(newer, victim.id(), ThreadId::ROOT, !0), taken);
    check!(world::state(id) != !0, "the thread that was there has been changed");
    world::delete(id)?;
    same!("in no space", kernel::create(id, NIL, ThreadId::ROOT, !0), taken);
    victim.delete()
}

fn own_scheduler() -> Outcome {
    let victim = Victim::task()?;
    let own = world::own_numbers(victim.id(), 4)?;
    because(kernel::limit(victim.id(), None, Some(ORDINARY)), "lowering the ceilings")?;
    let partner = ThreadId::global(own.first, 1);
    same!("its thread", creates(&victim, partner)?, 0);
    let refused = NoPrivilege as u64;
    let never = 0;
    let cases = [
        // Priority, time, preemption control, error.
        (UNCHANGED, never, UNCHANGED, refused),
        (UNCHANGED, u64::from(Time::micros(20_000).0) << 16, UNCHANGED, refused),
        (UNCHANGED, u64::from(Time::micros(5_000).0) << 16, UNCHANGED, 0),
        (UNCHANGED, UNCHANGED, 65_000, refused),
        (101, UNCHANGED, UNCHANGED, refused),
        (90, UNCHANGED, UNCHANGED, 0),
    ];
    for (priority, time, preemption, expected) in cases {
        let mut regs = registers();
        (regs[reg::RDI], regs[reg::RSI], regs[reg::RDX]) = (partner.0, priority, time);
        (regs[reg::R8], regs[reg::R9]) = (UNCHANGED, preemption);
        let state = victim.call(stub::SCHEDULE, regs)?[reg::RAX];
        let error = if state != 0 { 0 } else { victim.error_code()? };
        same!("the error of Schedule by a task's own scheduler", error, expected);
    }
    world::sound()?;
    victim.delete()
}

fn urgency() -> Outcome {
    let victim = Victim::task()?;
    let own = world::own_numbers(victim.id(), 4)?;
    because(schedule::set_priority(victim.id(), 60), "lowering the priority")?;
    same!("its thread", creates(&victim, ThreadId::global(own.first, 1))?, 0);
    let words = kernel::inspect(abi::inspect::What::Thread, own.first.into(), 0);
    same!("the new thread's priority", words.map(|words| words[3]), Some(60));
    victim.delete()
}
