//! Propagation (X.2 4.8), and partners that are deleted while they wait or are
//! waited for (4.9, 5.5): nobody hangs.

use abi::{IpcErrorKind, MsgTag, Phase, ThreadId, Time};
use runtime::kernel;

use crate::forms::{failed, pattern, succeeded, together, word};
use crate::places;
use crate::puppet::{Order, Puppet};
use crate::stage::{Stage, settle};
use crate::verdict::{Complaint, Test, Verdict};
use crate::{ensure, same};

/// The tests.
pub const TESTS: &[Test] = &[
    ("propagation_inside_the_senders_space", for_own_space),
    ("propagation_to_a_receiver_of_the_senders_space", to_own_space),
    ("propagation_not_allowed_is_a_normal_message", not_allowed),
    ("propagation_by_a_queued_sender", queued),
    ("propagation_matches_a_wait_for_either", matches),
    ("propagation_retargets_the_virtual_senders_wait", retargets),
    ("deleted_receiver_frees_its_senders", receiver_deleted),
    ("deleted_sender_frees_its_waiters", sender_deleted),
    ("deleted_polling_sender_leaves_the_queue", polling_deleted),
    ("deleted_while_its_call_is_served", caller_deleted),
    ("new_version_ends_old_ipc", new_version),
];

/// Complains unless `b` got the pattern 5 from `name`, propagated by `real` or not.
fn got(b: &Puppet, name: ThreadId, real: Option<ThreadId>) -> Verdict {
    succeeded(b, 0)?;
    let outcome = b.outcome(0);
    same!("the sender's name", outcome.from.0, name.0);
    same!(
        "the flags",
        outcome.mr[0] & 0xF000,
        if real.is_some() { MsgTag::PROPAGATED } else { 0 }
            | places::flag(real.unwrap_or(name), b.index)
    );
    if let Some(real) = real {
        same!("the actual sender", outcome.actual_sender.0, real.0);
    }
    same!("the word beside", outcome.mr[1], word(5, 0));
    Ok(())
}

fn propagated(a: &Puppet, b: &Puppet, virtual_sender: ThreadId) {
    a.order(pattern(Order::send(b.id), 5, 3).propagate(virtual_sender));
    settle();
}

fn for_own_space(stage: &Stage) -> Verdict {
    for receiver in [4, 8, 0] {
        let (a, v, b) = (stage.puppet(5), stage.puppet(6), stage.puppet(receiver));
        b.order(Order::wait());
        settle();
        propagated(&a, &b, v.id);
        got(&b, v.name(together(receiver, 6)), Some(a.id))?;
        succeeded(&a, 0)?;
    }
    Ok(())
}

fn to_own_space(stage: &Stage) -> Verdict {
    let (a, v, b) = (stage.puppet(5), stage.puppet(8), stage.puppet(6));
    b.order(Order::wait());
    settle();
    propagated(&a, &b, v.id);
    got(&b, v.id, Some(a.id))
}

/// A virtual sender of a third space, or one that does not exist.
fn not_allowed(stage: &Stage) -> Verdict {
    let (a, b) = (stage.puppet(5), stage.puppet(8));
    let nobody = ThreadId::global(a.id.number(), a.id.version() + 1);
    for name in [stage.puppet(0).id, nobody, ThreadId::NIL] {
        b.order(Order::wait());
        settle();
        propagated(&a, &b, name);
        got(&b, a.id, None)?;
    }
    Ok(())
}

fn queued(stage: &Stage) -> Verdict {
    let (a, v, b) = (stage.puppet(5), stage.puppet(6), stage.puppet(8));
    for from in [ThreadId::ANY, a.id, v.id] {
        propagated(&a, &b, v.id);
        b.order(Order::receive(from));
        settle();
        got(&b, v.id, Some(a.id))?;
        succeeded(&a, 0)?;
    }
    Ok(())
}

fn matches(stage: &Stage) -> Verdict {
    let (a, v, b) = (stage.puppet(5), stage.puppet(6), stage.puppet(8));
    for from in [a.id, v.id] {
        b.order(Order::receive(from));
        settle();
        propagated(&a, &b, v.id);
        got(&b, v.id, Some(a.id))?;
    }
    // Not one for anybody else.
    b.order(Order::receive(stage.puppet(0).id));
    settle();
    propagated(&a, &b, v.id);
    ensure!(
        b.done() == 0 && a.done() == 0,
        "a closed wait for another thread took a propagated message"
    );
    Ok(())
}

/// v calls a, which passes the request on to b in v's name: b's reply reaches v.
fn retargets(stage: &Stage) -> Verdict {
    for limit in [Time::NEVER, Time::micros(10_000_000)] {
        let (a, v, b) = (stage.puppet(5), stage.puppet(6), stage.puppet(8));
        a.order(Order::wait());
        b.order(Order::wait());
        settle();
        v.order(Order::call(a.id).within(Time::NEVER, limit));
        settle();
        propagated(&a, &b, v.id);
        got(&b, v.id, Some(a.id))?;
        a.order(Order::send(v.id).within(Time::ZERO, Time::NEVER));
        settle();
        failed(&a, 0, IpcErrorKind::Timeout, Phase::Send, 0)?;
        b.order(pattern(Order::send(v.id), 6, 1));
        settle();
        succeeded(&b, 0)?;
        succeeded(&v, 0)?;
        same!("the replier", v.outcome(0).from.0, b.id.0);
    }
    Ok(())
}

fn refused() -> Complaint {
    Complaint::new(format_args!(
        "creating a thread was refused with error {}",
        runtime::utcb::error_code()
    ))
}

fn receiver_deleted(stage: &Stage) -> Verdict {
    let spare = stage.create_spare(12, 8).map_err(|_| refused())?;
    let senders = [0, 4, 8, 9].map(|index| stage.puppet(index));
    for (at, sender) in senders.iter().enumerate() {
        let order = if at % 2 == 0 { Order::send(spare.id) } else { Order::call(spare.id) };
        sender.order(
            order.within(if at > 1 { Time::micros(9_000_000) } else { Time::NEVER }, Time::NEVER),
        );
        settle();
    }
    let _ = kernel::delete(spare.id);
    settle();
    senders
        .iter()
        .try_for_each(|sender| failed(sender, 0, IpcErrorKind::NonExisting, Phase::Send, 0))
}

fn sender_deleted(stage: &Stage) -> Verdict {
    let spare = stage.create_spare(12, 8).map_err(|_| refused())?;
    let waiters = [0, 4, 8, 9].map(|index| stage.puppet(index));
    for (at, waiter) in waiters.iter().enumerate() {
        let limit = if at % 2 == 0 { Time::NEVER } else { Time::micros(9_000_000) };
        waiter.order(Order::receive(spare.id).within(Time::NEVER, limit));
        settle();
    }
    let open = stage.puppet(5);
    open.order(Order::wait());
    settle();
    let _ = kernel::delete(spare.id);
    settle();
    ensure!(open.done() == 0, "an open wait ended because some thread was deleted");
    waiters
        .iter()
        .try_for_each(|waiter| failed(waiter, 0, IpcErrorKind::NonExisting, Phase::Receive, 0))
}

fn polling_deleted(stage: &Stage) -> Verdict {
    let spare = stage.create_spare(12, 4).map_err(|_| refused())?;
    let (b, next) = (stage.puppet(8), stage.puppet(9));
    spare.order(Order::send(b.id));
    settle();
    next.order(pattern(Order::send(b.id), 5, 3));
    settle();
    let _ = kernel::delete(spare.id);
    settle();
    b.start(&[Order::wait(), Order::wait().within(Time::NEVER, Time::ZERO)]);
    settle();
    got(&b, next.local, None)?;
    failed(&b, 1, IpcErrorKind::Timeout, Phase::Receive, 0)
}

/// The client goes while the server works for it: the reply finds nobody.
fn caller_deleted(stage: &Stage) -> Verdict {
    for index in [4, 8] {
        let spare = stage.create_spare(12, index).map_err(|_| refused())?;
        let server = stage.puppet(8);
        server.order(Order::wait());
        settle();
        spare.order(Order::call(server.id));
        settle();
        succeeded(&server, 0)?;
        let _ = kernel::delete(spare.id);
        server.order(Order::reply_wait(spare.id));
        settle();
        failed(&server, 0, IpcErrorKind::NonExisting, Phase::Send, 0)?;
    }
    Ok(())
}

/// A version change ends every IPC with the old id, and the thread's own.
fn new_version(stage: &Stage) -> Verdict {
    let spare = stage.create_spare(12, 8).map_err(|_| refused())?;
    let (sender, waiter) = (stage.puppet(4), stage.puppet(5));
    spare.order(Order::receive(stage.puppet(0).id));
    sender.order(Order::send(spare.id));
    waiter.order(Order::receive(spare.id));
    settle();
    let new = Puppet { id: ThreadId::global(spare.id.number(), spare.id.version() + 64), ..spare };
    let done = kernel::set_pager(new.id, spare.id, ThreadId::NIL, !0);
    settle();
    let own = failed(&spare, 0, IpcErrorKind::Cancelled, Phase::Receive, 0);
    let _ = kernel::delete(new.id);
    settle();
    ensure!(done.is_ok(), "changing a version was refused with {:?}", done.err());
    failed(&sender, 0, IpcErrorKind::NonExisting, Phase::Send, 0)?;
    failed(&waiter, 0, IpcErrorKind::NonExisting, Phase::Receive, 0)?;
    own
}
