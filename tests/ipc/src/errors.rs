//! Errors before a transfer begins, timeouts, and the order of waiting senders
//! (X.2 4.1, 4.7, 4.9, 4.11).

use abi::syscall::exregs;
use abi::{IpcErrorKind, MsgTag, Phase, ThreadId, Time};

use crate::forms::{PAIRS, PATHS, arrived, failed, pattern, succeeded};
use crate::puppet::{Order, Puppet};
use crate::stage::{Stage, pause, set_priority, settle};
use crate::verdict::{Test, Verdict};
use crate::{ensure, same};

/// The tests.
pub const TESTS: &[Test] = &[
    ("non_existing_partner", non_existing),
    ("old_version_does_not_exist", old_version),
    ("send_timeout_zero", send_zero),
    ("receive_timeout_zero", receive_zero),
    ("send_timeout_while_polling", send_timeout),
    ("receive_timeout", receive_timeout),
    ("points_in_time", points),
    ("receive_timeout_starts_after_the_send", starts_after_send),
    ("cancel_of_a_send", cancel_send),
    ("cancel_of_a_receive", cancel_receive),
    ("failed_send_skips_the_receive", skips_receive),
    ("waiting_senders_are_served_in_order", first_come),
    ("halt_of_a_waiting_thread", halt_waiting),
    ("halt_of_a_polling_thread", halt_polling),
];

/// A timer tick, µs, doubled: wake-ups may be so late.
const LATE_US: u64 = 2 * 1953 + 1024;

/// `failed`, and MR0 exactly.
fn failed_with_tag(
    puppet: &Puppet,
    step: usize,
    kind: IpcErrorKind,
    phase: Phase,
    tag: u64,
) -> Verdict {
    failed(puppet, step, kind, phase, 0)?;
    same!(format_args!("MR0 after {kind:?} in {phase:?}"), puppet.outcome(step).mr[0], tag);
    Ok(())
}

fn non_existing(stage: &Stage) -> Verdict {
    let nobody = ThreadId::global(stage.puppet(15).id.number() + 100, 1);
    let a = stage.puppet(4);
    for path in PATHS {
        for order in [Order::send(nobody), Order::call(nobody), Order::reply_wait(nobody)] {
            a.order(path(pattern(order, 5, 3)));
            settle();
            failed_with_tag(&a, 0, IpcErrorKind::NonExisting, Phase::Send, MsgTag::ERROR)?;
        }
        a.order(path(pattern(Order::receive(nobody), 5, 3)));
        settle();
        failed_with_tag(&a, 0, IpcErrorKind::NonExisting, Phase::Receive, MsgTag::ERROR)?;
    }
    Ok(())
}

/// Ids are unique in time: a message to an old version of a thread finds nobody.
fn old_version(stage: &Stage) -> Verdict {
    let spare = stage.create_spare(12, 4).map_err(|_| refused())?;
    spare.order(Order::wait());
    settle();
    let old = ThreadId::global(spare.id.number(), spare.id.version() + 1);
    let a = stage.puppet(0);
    a.order(Order::send(old));
    settle();
    let verdict = failed(&a, 0, IpcErrorKind::NonExisting, Phase::Send, 0);
    let _ = runtime::kernel::delete(spare.id);
    verdict?;
    a.order(Order::send(spare.id));
    settle();
    failed(&a, 0, IpcErrorKind::NonExisting, Phase::Send, 0)?;
    let next = stage.create_spare(12, 8).map_err(|_| refused())?;
    next.order(Order::wait());
    settle();
    a.start(&[Order::send(spare.id), pattern(Order::send(next.id), 3, 3)]);
    settle();
    let verdict = failed(&a, 0, IpcErrorKind::NonExisting, Phase::Send, 0)
        .and_then(|()| arrived(&next, 0, a.id, 3, 3));
    let _ = runtime::kernel::delete(next.id);
    verdict
}

fn refused() -> crate::verdict::Complaint {
    crate::verdict::Complaint::new(format_args!(
        "creating a thread was refused with error {}",
        runtime::utcb::error_code()
    ))
}

fn send_zero(stage: &Stage) -> Verdict {
    for (a, b) in PAIRS {
        for path in PATHS {
            stage.reset();
            let (a, b) = (stage.puppet(a), stage.puppet(b));
            a.order(path(pattern(Order::send(b.id).within(Time::ZERO, Time::NEVER), 5, 3)));
            settle();
            failed_with_tag(&a, 0, IpcErrorKind::Timeout, Phase::Send, MsgTag::ERROR)?;
        }
    }
    Ok(())
}

/// With a send phase before: that has taken place.
fn receive_zero(stage: &Stage) -> Verdict {
    for (a, b) in PAIRS {
        for path in PATHS {
            stage.reset();
            let (a, b) = (stage.puppet(a), stage.puppet(b));
            let near = crate::forms::together(a.index, b.index);
            a.order(path(Order::wait().within(Time::NEVER, Time::ZERO)));
            settle();
            failed_with_tag(&a, 0, IpcErrorKind::Timeout, Phase::Receive, MsgTag::ERROR)?;
            b.order(Order::wait());
            settle();
            a.order(path(pattern(Order::call(b.id).within(Time::NEVER, Time::ZERO), 6, 9)));
            settle();
            failed_with_tag(&a, 0, IpcErrorKind::Timeout, Phase::Receive, MsgTag::ERROR)?;
            arrived(&b, 0, a.name(near), 6, 9)?;
            // A sender that is already queued is taken.
            b.order(pattern(Order::send(a.id), 7, 2));
            settle();
            a.order(path(Order::wait().within(Time::NEVER, Time::ZERO)));
            settle();
            arrived(&a, 0, b.name(near), 7, 2)?;
        }
    }
    Ok(())
}

/// Complains unless step 0 of `puppet` took from `us` to a little more.
fn took(puppet: &Puppet, us: u64) -> Verdict {
    let outcome = puppet.outcome(0);
    let took_us = outcome.ended_us - outcome.began_us;
    ensure!(took_us >= us && took_us <= us + LATE_US, "a timeout of {us} us took {took_us} us");
    Ok(())
}

fn send_timeout(stage: &Stage) -> Verdict {
    for us in [300, 2_000, 7_000, 20_000] {
        let (a, b) = (stage.puppet(4), stage.puppet(8));
        let order = pattern(Order::send(b.id).within(Time::micros(us), Time::NEVER), 5, 3);
        a.order(order);
        settle();
        ensure!(a.done() == 0, "a send with a timeout of {us} us did not wait");
        pause(us + 2 * LATE_US);
        failed_with_tag(&a, 0, IpcErrorKind::Timeout, Phase::Send, order.mr[0] | MsgTag::ERROR)?;
        took(&a, Time::micros(us).period_us().unwrap_or(0))?;
        // It is in no queue any more.
        b.order(Order::wait().within(Time::NEVER, Time::ZERO));
        settle();
        failed(&b, 0, IpcErrorKind::Timeout, Phase::Receive, 0)?;
    }
    Ok(())
}

fn receive_timeout(stage: &Stage) -> Verdict {
    let b = stage.puppet(8);
    for us in [300, 2_000, 7_000, 20_000] {
        for from in [ThreadId::ANY, b.id, ThreadId::ANY_LOCAL] {
            let a = stage.puppet(4);
            a.order(Order::receive(from).within(Time::NEVER, Time::micros(us)));
            settle();
            ensure!(a.done() == 0, "a receive with a timeout of {us} us did not wait");
            pause(us + 2 * LATE_US);
            failed_with_tag(&a, 0, IpcErrorKind::Timeout, Phase::Receive, MsgTag::ERROR)?;
            took(&a, Time::micros(us).period_us().unwrap_or(0))?;
        }
    }
    Ok(())
}

fn points(stage: &Stage) -> Verdict {
    let a = stage.puppet(4);
    for ahead_us in [1_000u64, 9_000, 50_000] {
        let now_us = runtime::clock::now_us();
        let Some(point) = Time::point(now_us, now_us + ahead_us) else { continue };
        let abi::time::Deadline::At(at_us) = point.deadline(now_us) else { continue };
        a.order(Order::wait().within(Time::NEVER, point));
        settle();
        pause(ahead_us + 2 * LATE_US);
        failed(&a, 0, IpcErrorKind::Timeout, Phase::Receive, 0)?;
        let ended_us = a.outcome(0).ended_us;
        ensure!(
            ended_us >= at_us && ended_us <= at_us + LATE_US,
            "the point {at_us} us was noticed at {ended_us} us"
        );
    }
    // A point that is over.
    let now_us = runtime::clock::now_us();
    if let Some(point) = Time::point(now_us, now_us - 1) {
        a.order(Order::wait().within(Time::NEVER, point));
        settle();
        failed(&a, 0, IpcErrorKind::Timeout, Phase::Receive, 0)?;
    }
    Ok(())
}

fn starts_after_send(stage: &Stage) -> Verdict {
    let (a, b) = (stage.puppet(4), stage.puppet(8));
    a.order(Order::call(b.id).within(Time::NEVER, Time::micros(8_000)));
    settle();
    pause(20_000);
    ensure!(a.done() == 0, "the receive timeout ran while the thread waited to send");
    b.order(Order::wait());
    settle();
    ensure!(a.done() == 0, "the receive phase ended with the send phase");
    pause(8_000 + 2 * LATE_US);
    failed(&a, 0, IpcErrorKind::Timeout, Phase::Receive, 0)
}

fn cancel_send(stage: &Stage) -> Verdict {
    for (a, b) in PAIRS {
        stage.reset();
        let (a, b) = (stage.puppet(a), stage.puppet(b));
        let order = pattern(Order::call(b.id), 5, 3);
        a.order(order);
        settle();
        // Aborting the other phase does nothing.
        same!(
            "the control word of a polling thread",
            a.abort(exregs::ABORT_RECEIVE),
            exregs::ABORT_SEND
        );
        settle();
        ensure!(a.done() == 0, "aborting its receive phase ended a send");
        let _ = a.abort(exregs::ABORT_SEND);
        settle();
        failed_with_tag(&a, 0, IpcErrorKind::Cancelled, Phase::Send, order.mr[0] | MsgTag::ERROR)?;
        b.order(Order::wait().within(Time::NEVER, Time::ZERO));
        settle();
        failed(&b, 0, IpcErrorKind::Timeout, Phase::Receive, 0)?;
    }
    Ok(())
}

fn cancel_receive(stage: &Stage) -> Verdict {
    let (a, b) = (stage.puppet(4), stage.puppet(8));
    for from in [ThreadId::ANY, ThreadId::ANY_LOCAL, b.id, a.id] {
        for limit in [Time::NEVER, Time::micros(10_000_000)] {
            a.order(Order::receive(from).within(Time::NEVER, limit));
            settle();
            same!(
                "the control word of a waiting thread",
                a.abort(exregs::ABORT_SEND),
                exregs::ABORT_RECEIVE
            );
            settle();
            ensure!(a.done() == 0, "aborting its send phase ended a receive");
            let _ = a.abort(exregs::ABORT_RECEIVE);
            settle();
            failed_with_tag(&a, 0, IpcErrorKind::Cancelled, Phase::Receive, MsgTag::ERROR)?;
        }
    }
    Ok(())
}

/// A message that waits is not taken by a call whose send fails.
fn skips_receive(stage: &Stage) -> Verdict {
    let (a, b, c) = (stage.puppet(4), stage.puppet(8), stage.puppet(9));
    for path in PATHS {
        stage.reset();
        c.order(pattern(Order::send(a.id), 1, 1));
        settle();
        a.order(path(Order::reply_wait(b.id)));
        settle();
        failed(&a, 0, IpcErrorKind::Timeout, Phase::Send, 0)?;
        ensure!(c.done() == 0, "a failed reply was followed by a receive phase");
    }
    Ok(())
}

/// Ten senders of different priorities: first come, first served.
fn first_come(stage: &Stage) -> Verdict {
    let server = stage.puppet(8);
    let senders = [0, 4, 1, 9, 5, 2, 10, 6, 3, 11];
    for (at, index) in senders.into_iter().enumerate() {
        let sender = stage.puppet(index);
        set_priority(sender.id, [60, 200, 120, 30, 90][at % 5]);
        sender.order(pattern(Order::send(server.id), at as u64, 1));
        settle();
    }
    for (at, index) in senders.into_iter().enumerate() {
        let sender = stage.puppet(index);
        server.order(Order::wait());
        settle();
        arrived(&server, 0, sender.name(crate::forms::together(index, 8)), at as u64, 1)?;
        succeeded(&sender, 0)?;
    }
    Ok(())
}

fn halt(puppet: &Puppet, halted: u64) {
    let _ = puppet.abort(exregs::HALT_VALID | halted);
}

/// A halted thread's receive completes, but it runs only after it is resumed.
fn halt_waiting(stage: &Stage) -> Verdict {
    for (a, b) in PAIRS {
        for path in PATHS {
            stage.reset();
            let (a, b) = (stage.puppet(a), stage.puppet(b));
            b.order(path(Order::wait()));
            settle();
            halt(&b, exregs::HALT);
            a.order(path(pattern(Order::send(b.id), 4, 6)));
            settle();
            succeeded(&a, 0)?;
            ensure!(b.done() == 0, "a halted thread ran on after a message");
            halt(&b, 0);
            settle();
            arrived(&b, 0, a.name(crate::forms::together(a.index, b.index)), 4, 6)?;
        }
    }
    Ok(())
}

fn halt_polling(stage: &Stage) -> Verdict {
    let (a, b) = (stage.puppet(4), stage.puppet(8));
    a.start(&[pattern(Order::send(b.id), 4, 6), Order::NONE]);
    settle();
    halt(&a, exregs::HALT);
    b.order(Order::wait());
    settle();
    arrived(&b, 0, a.id, 4, 6)?;
    ensure!(a.done() == 0, "a halted thread ran on after its message was taken");
    halt(&a, 0);
    settle();
    ensure!(a.done() == 2, "a resumed thread did not run on");
    Ok(())
}
