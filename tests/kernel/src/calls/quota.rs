//! QuotaControl: kernel memory moves, runs out for its owner alone, comes back.

use abi::inspect::What;
use abi::layout::{INITIAL_UTCB_AREA, stub};
use abi::protocol::exception as reg;
use abi::{CallError, Fpage, MapItem, Rights, ThreadId};
use runtime::{kernel, sigma0};

use crate::report::{Outcome, Sentence, because, case};
use crate::victim::{Event, STORE, Victim, at, registers};
use crate::{check, free_pages, same, world};

/// Runs the tests.
pub fn run() {
    case("quota_moves", moves);
    case("quota_is_refused_to_strangers", refused);
    case("quota_exhaustion_hurts_the_payer_only", exhaustion);
    case("a_thousand_spaces_leave_nothing", thousand);
}

/// Limit and use of the space of `id`.
fn account(id: ThreadId) -> Outcome<(u64, u64)> {
    because(kernel::move_quota(id, 0), "asking for a quota")
}

fn moves() -> Outcome {
    let id = world::new_task()?;
    let ((limit, used), (own, _)) = (account(id)?, account(ThreadId::ROOT)?);
    check!(used > 0 && used <= limit, "a new space uses {used} of {limit} pages");
    same!("after 10 pages more", kernel::move_quota(id, 10), Ok((limit + 10, used)));
    same!("the root task's limit", account(ThreadId::ROOT)?.0, own - 10);
    let spare = (limit + 10 - used) as i64;
    same!("taking what is in use", kernel::move_quota(id, -(spare + 1)), Err(CallError::NoMemory));
    same!("taking all that is not", kernel::move_quota(id, -spare), Ok((used, used)));
    let refused = kernel::create_active(
        world::fresh(),
        id,
        ThreadId::ROOT,
        ThreadId::ROOT,
        INITIAL_UTCB_AREA + 1024,
    );
    same!("a thread in a space without quota", refused, Err(CallError::NoMemory));
    for amount in [i64::MAX, i64::MIN, i64::MIN + 1] {
        same!("an absurd amount", kernel::move_quota(id, amount), Err(CallError::NoMemory));
    }
    same!(
        "the quota of nobody",
        kernel::move_quota(world::fresh(), 1),
        Err(CallError::InvalidSpace)
    );
    let root = account(ThreadId::ROOT)?;
    same!("moving to oneself", kernel::move_quota(ThreadId::ROOT, 5), Ok(root));
    world::delete(id)?;
    same!("the root task's limit afterwards", account(ThreadId::ROOT)?.0, own + limit);
    Ok(())
}

fn refused() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    for (dest, pages) in
        [(other.id(), 1), (other.id(), !0u64), (ThreadId::ROOT, !0), (ThreadId::SIGMA0, !0)]
    {
        let mut regs = registers();
        (regs[reg::RDI], regs[reg::RSI]) = (dest.0, pages);
        same!("a stranger's quota", one.call(stub::QUOTA_CONTROL, regs)?[reg::RAX], 0);
        same!("its error", one.error_code()?, CallError::NoPrivilege as u64);
    }
    one.delete()?;
    other.delete()
}

fn exhaustion() -> Outcome {
    let before = free_pages();
    let Some(window) = sigma0::memory(None, 12) else {
        return Err(Sentence::new(format_args!("sigma0 gave no page")));
    };
    let (poor, rich) = (Victim::task()?, Victim::task()?);
    let (limit, used) = account(poor.id())?;
    because(kernel::move_quota(poor.id(), used as i64 - limit as i64), "taking the rest")?;
    // Each page at a place of its own needs tables: these are not to be had.
    let item = |place: u64| MapItem::map(Fpage::memory(window.base(), 12, Rights::RW), place);
    for (victim, works) in [(&poor, false), (&rich, true)] {
        let place = 0x1_0000_0000 * if works { 3 } else { 5 };
        victim.begin(STORE, at(place, 1))?;
        check!(matches!(victim.event(), Event::PageFault(_)), "an empty page did not fault");
        let _ = victim.give(item(place));
        let seen = victim.event();
        same!("whether the access worked", matches!(seen, Event::Exception(_)), works);
        victim.abandon()?;
    }
    check!(free_pages() > 0, "no kernel memory is left for anybody");
    world::sound()?;
    poor.delete()?;
    rich.delete()?;
    // The page of the initial space may have needed tables: once.
    let after = free_pages();
    check!(
        before - after.min(before) <= 4,
        "{before} pages of kernel memory were free, now {after}"
    );
    Ok(())
}

fn thousand() -> Outcome {
    let cycle = || -> Outcome {
        let id = world::new_task()?;
        let second = world::new_member(id, 5)?;
        world::delete(id)?;
        world::delete(second)
    };
    (0..128).try_for_each(|_| cycle())?;
    let (pages, totals) = (free_pages(), kernel::inspect(What::Kernel, 0, 0).unwrap_or_default());
    for _ in 0..1000 {
        cycle()?;
    }
    same!("the kernel's free pages after 1000 spaces", free_pages(), pages);
    let after = kernel::inspect(What::Kernel, 0, 0).unwrap_or_default();
    same!("the number of threads", after[2], totals[2]);
    same!("the number of spaces", after[3], totals[3]);
    Ok(())
}
