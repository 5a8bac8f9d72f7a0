//! Every form of Ipc, inside one space and between spaces: phases, from-specifiers,
//! words, tags (X.2 4.1, 4.6, 4.10).

use abi::layout::stub;
use abi::{IpcErrorKind, MsgTag, Phase, ThreadId, Time};

use crate::places;
use crate::puppet::{Order, Puppet};
use crate::stage::{Stage, settle};
use crate::verdict::{Test, Verdict};
use crate::{ensure, same};

/// The tests.
pub const TESTS: &[Test] = &[
    ("send_and_receive", send_and_receive),
    ("send_first_then_receive", send_first),
    ("call_and_reply_wait", call_and_reply_wait),
    ("two_phases_two_partners", two_partners),
    ("words_0_to_63", words),
    ("local_and_global_names_by_both_links", names),
    ("any_local_takes_local_senders_only", any_local),
    ("closed_wait_leaves_others_queued", closed_wait),
    ("neither_phase", neither),
    ("sleep_on_own_id", sleep),
    ("stale_flags_are_cleared", stale_flags),
    ("more_than_63_words_overflow", too_many),
    ("send_keeps_own_tag", keeps_tag),
];

/// Sender and receiver pairs: inside the root space, inside another, between two.
pub const PAIRS: [(usize, usize); 4] = [(0, 1), (4, 5), (4, 8), (0, 8)];

/// Whether two puppets share a space.
pub fn together(a: usize, b: usize) -> bool {
    crate::stage::space_of(a) == crate::stage::space_of(b)
}

/// A message with all its words known.
pub fn pattern(order: Order, seed: u64, words: usize) -> Order {
    let values: [u64; 63] = core::array::from_fn(|at| word(seed, at));
    order.label(seed & 0xFFFF_FFFF_FFFF).words(&values[..words])
}

/// Word `at` of the pattern.
pub fn word(seed: u64, at: usize) -> u64 {
    (seed ^ at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(at as u32)
}

/// Complains unless `receiver` got the pattern, from `sender`.
pub fn arrived(
    receiver: &Puppet,
    step: usize,
    sender: ThreadId,
    seed: u64,
    words: usize,
) -> Verdict {
    ensure!(
        receiver.done() > step,
        "receiver {} still waits in step {step} ({words} words)",
        receiver.id
    );
    let outcome = receiver.outcome(step);
    same!(
        "the tag received",
        outcome.mr[0],
        MsgTag::new(seed & 0xFFFF_FFFF_FFFF, words as u32, 0).0
            | places::flag(sender, receiver.index)
    );
    same!("the sender received", outcome.from.0, sender.0);
    for at in 0..words {
        same!(format_args!("word {} of {words}", at + 1), outcome.mr[at + 1], word(seed, at));
    }
    kept(receiver, step)
}

/// Complains unless the registers that a call keeps were kept.
pub fn kept(puppet: &Puppet, step: usize) -> Verdict {
    let outcome = puppet.outcome(step);
    same!("RDI after Ipc", outcome.rdi, puppet.local.0);
    same!("the change of RSP", outcome.sp_change, 0);
    // The links may change arithmetic flags (X.2 5.1).
    let mask = if outcome.link == 0 { 0xDD5 } else { 0x500 };
    same!("RFLAGS after Ipc", outcome.flags & mask, Order::NONE.flags & mask);
    Ok(())
}

/// Complains unless step `step` of `puppet` succeeded.
pub fn succeeded(puppet: &Puppet, step: usize) -> Verdict {
    ensure!(puppet.done() > step, "puppet {} still waits in step {step}", puppet.id);
    let outcome = puppet.outcome(step);
    ensure!(
        !outcome.tag().is_error(),
        "puppet {} failed in step {step} with error word {:#x}",
        puppet.id,
        outcome.error
    );
    Ok(())
}

/// Complains unless step `step` of `puppet` failed so.
pub fn failed(
    puppet: &Puppet,
    step: usize,
    kind: IpcErrorKind,
    phase: Phase,
    offset: u64,
) -> Verdict {
    ensure!(
        puppet.done() > step,
        "puppet {} still waits in step {step}, expected {kind:?} while in {phase:?}",
        puppet.id
    );
    let outcome = puppet.outcome(step);
    ensure!(
        outcome.tag().is_error(),
        "puppet {} succeeded, expected {kind:?} while in {phase:?}",
        puppet.id
    );
    same!(
        format_args!("the error word ({kind:?})"),
        outcome.error,
        abi::IpcError { kind, phase, offset }.word()
    );
    kept(puppet, step)
}

/// Runs `test` for each pair, on both paths.
fn for_pairs(
    stage: &Stage,
    test: impl Fn(Puppet, Puppet, bool, fn(Order) -> Order) -> Verdict,
) -> Verdict {
    for (a, b) in PAIRS {
        for path in PATHS {
            stage.reset();
            test(stage.puppet(a), stage.puppet(b), together(a, b), path)?;
        }
    }
    Ok(())
}

fn send_and_receive(stage: &Stage) -> Verdict {
    for_pairs(stage, |a, b, near, path| {
        for from in [a.id, ThreadId::ANY] {
            b.order(path(Order::receive(from)));
            settle();
            a.order(path(pattern(Order::send(b.id), 77, 5)));
            settle();
            succeeded(&a, 0)?;
            arrived(&b, 0, a.name(near), 77, 5)?;
        }
        Ok(())
    })
}

fn send_first(stage: &Stage) -> Verdict {
    for_pairs(stage, |a, b, near, path| {
        for from in [a.id, ThreadId::ANY] {
            a.order(path(pattern(Order::send(b.id), 78, 63)));
            settle();
            ensure!(a.done() == 0, "a send to a thread that does not wait returned");
            b.order(path(Order::receive(from)));
            settle();
            succeeded(&a, 0)?;
            arrived(&b, 0, a.name(near), 78, 63)?;
        }
        Ok(())
    })
}

fn call_and_reply_wait(stage: &Stage) -> Verdict {
    for_pairs(stage, |a, b, near, path| {
        b.start(&[
            path(Order::wait()),
            path(pattern(Order::reply_wait(a.id), 2, 7)),
            path(pattern(Order::reply_wait(a.id), 4, 20)),
        ]);
        settle();
        a.start(&[path(pattern(Order::call(b.id), 1, 3)), path(pattern(Order::call(b.id), 3, 63))]);
        settle();
        arrived(&b, 0, a.name(near), 1, 3)?;
        arrived(&a, 0, b.name(near), 2, 7)?;
        arrived(&b, 1, a.name(near), 3, 63)?;
        arrived(&a, 1, b.name(near), 4, 20)?;
        ensure!(b.done() == 2, "the server does not wait for its next client");
        Ok(())
    })
}

/// a sends to b and receives from c, in one call.
fn two_partners(stage: &Stage) -> Verdict {
    let (c, near) = (stage.puppet(9), false);
    for_pairs(stage, |a, b, ab, path| {
        b.order(path(Order::wait()));
        settle();
        a.order(path(pattern(Order::new(b.id, c.id), 5, 4)));
        settle();
        arrived(&b, 0, a.name(ab), 5, 4)?;
        b.order(path(pattern(Order::send(a.id), 6, 4).within(Time::ZERO, Time::NEVER)));
        settle();
        failed(&b, 0, IpcErrorKind::Timeout, Phase::Send, 0)?;
        c.order(path(pattern(Order::send(a.id), 7, 4)));
        settle();
        arrived(&a, 0, c.name(near), 7, 4)
    })
}

fn words(stage: &Stage) -> Verdict {
    for_pairs(stage, |a, b, near, path| {
        for count in 0..=63 {
            b.start(&[
                path(Order::wait()),
                path(pattern(Order::reply_wait(a.id), 200 + count as u64, 63 - count)),
            ]);
            settle();
            a.order(path(pattern(Order::call(b.id), 100 + count as u64, count)));
            settle();
            arrived(&b, 0, a.name(near), 100 + count as u64, count)?;
            arrived(&a, 0, b.name(near), 200 + count as u64, 63 - count)?;
        }
        Ok(())
    })
}

fn names(stage: &Stage) -> Verdict {
    let (a, b) = (stage.puppet(4), stage.puppet(5));
    for to in [b.id, b.local] {
        for from in [a.id, a.local, ThreadId::ANY, ThreadId::ANY_LOCAL] {
            b.order(Order::receive(from).by(stub::LIPC));
            settle();
            a.order(pattern(Order::call(to), 9, 2).by(if from.is_local() {
                stub::IPC
            } else {
                stub::LIPC
            }));
            settle();
            // However anyone was addressed: local inside one space.
            arrived(&b, 0, a.local, 9, 2)?;
            b.order(pattern(Order::send(a.local), 10, 1));
            settle();
            arrived(&a, 0, b.local, 10, 1)?;
        }
    }
    Ok(())
}

fn any_local(stage: &Stage) -> Verdict {
    let (b, far, near) = (stage.puppet(4), stage.puppet(8), stage.puppet(5));
    for first_far in [true, false] {
        stage.reset();
        let receive = || b.order(Order::receive(ThreadId::ANY_LOCAL));
        if !first_far {
            receive();
            settle();
        }
        far.order(pattern(Order::send(b.id), 1, 1));
        settle();
        near.order(pattern(Order::send(b.id), 2, 1));
        settle();
        if first_far {
            receive();
            settle();
        }
        arrived(&b, 0, near.local, 2, 1)?;
        ensure!(far.done() == 0, "a sender of another space got through a local wait");
        b.order(Order::wait());
        settle();
        arrived(&b, 0, far.id, 1, 1)?;
    }
    Ok(())
}

fn closed_wait(stage: &Stage) -> Verdict {
    for_pairs(stage, |a, b, near, path| {
        let other = stage.puppet(10);
        b.order(path(Order::receive(a.id)));
        settle();
        other.order(path(pattern(Order::send(b.id), 3, 2)));
        settle();
        ensure!(b.done() == 0 && other.done() == 0, "a closed wait took another thread's message");
        a.order(path(pattern(Order::send(b.id), 4, 2)));
        settle();
        arrived(&b, 0, a.name(near), 4, 2)?;
        b.order(path(Order::wait()));
        settle();
        arrived(&b, 0, other.name(together(b.index, other.index)), 3, 2)
    })
}

fn neither(stage: &Stage) -> Verdict {
    let a = stage.puppet(4);
    a.order(pattern(Order::NONE, 5, 7));
    settle();
    succeeded(&a, 0)?;
    same!("MR0 of an Ipc without phases", a.outcome(0).mr[0], MsgTag::new(5, 7, 0).0);
    kept(&a, 0)
}

fn sleep(stage: &Stage) -> Verdict {
    for own in [stage.puppet(4).id, stage.puppet(4).local] {
        let a = stage.puppet(4);
        a.order(Order::receive(own).within(Time::NEVER, Time::micros(5000)));
        settle();
        ensure!(a.done() == 0, "sleeping on the own id returned at once");
        crate::stage::pause(12_000);
        failed(&a, 0, IpcErrorKind::Timeout, Phase::Receive, 0)?;
        same!("MR0 after sleeping", a.outcome(0).mr[0], MsgTag::ERROR);
    }
    Ok(())
}

fn stale_flags(stage: &Stage) -> Verdict {
    for_pairs(stage, |a, b, near, path| {
        b.order(path(Order::wait()));
        settle();
        let mut order = pattern(Order::call(b.id), 8, 3);
        order.mr[0] |= MsgTag::ERROR | MsgTag::XCPU | MsgTag::REDIRECTED;
        a.order(path(order));
        settle();
        arrived(&b, 0, a.name(near), 8, 3)
    })
}

fn too_many(stage: &Stage) -> Verdict {
    for_pairs(stage, |a, b, _, path| {
        b.order(path(Order::wait()));
        settle();
        let mut order = Order::send(b.id);
        order.mr[0] = MsgTag::new(0x1234, 40, 24).0;
        a.order(path(order));
        settle();
        failed(&a, 0, IpcErrorKind::Overflow, Phase::Send, 0)?;
        failed(&b, 0, IpcErrorKind::Overflow, Phase::Receive, 0)?;
        same!("the sender's tag", a.outcome(0).mr[0], order.mr[0] | MsgTag::ERROR);
        let seen = order.mr[0] | MsgTag::ERROR | places::flag(a.id, b.index);
        same!("the receiver's tag", b.outcome(0).mr[0], seen);
        Ok(())
    })
}

fn keeps_tag(stage: &Stage) -> Verdict {
    for_pairs(stage, |a, b, _, path| {
        b.order(path(Order::wait()));
        settle();
        let order = pattern(Order::send(b.id), 0xABCD, 6);
        a.order(path(order));
        settle();
        same!("MR0 after a send", a.outcome(0).mr[0], order.mr[0]);
        kept(&a, 0)
    })
}

/// An order as it is (the fast path, where it fits), and on the complete path.
pub const PATHS: [fn(Order) -> Order; 2] = [|order| order, Order::complete];
