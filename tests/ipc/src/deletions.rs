//! Deletions in the middle of a string: of the sender, the receiver, the pager, a
//! whole space. The partner learns it by error 2 or 7 and nobody hangs.

use abi::syscall::exregs;
use abi::{IpcErrorKind, Phase, Rights, ThreadId};
use runtime::kernel;
use runtime::syscall::ThreadRegisters;

use crate::faults::{BEFORE_GAP, Gap, ORDINARY, both_aborted, for_gaps, pairs, scene, stuck};
use crate::forms::together;
use crate::puppet::{Order, Puppet};
use crate::stage::{Stage, settle};
use crate::strings::Scene;
use crate::verdict::{Complaint, Test, Verdict};
use crate::{ensure, pager, same};

/// The tests.
pub const TESTS: &[Test] = &[
    ("partner_deleted_while_a_page_is_missing", partner_deleted),
    ("pager_deleted_while_a_page_is_missing", pager_deleted),
    ("space_deleted_while_a_page_is_missing", space_deleted),
];

/// A scene in which one partner is a spare that can be deleted.
fn with_spare(stage: &Stage, sender: bool, gap: Gap, pair: (usize, usize)) -> Verdict {
    let whole = scene(stage, pair);
    let spare =
        stage.create_spare(12, if sender { pair.0 } else { pair.1 }).map_err(|_| not_created())?;
    let scene =
        if sender { Scene { sender: spare, ..whole } } else { Scene { receiver: spare, ..whole } };
    let (send, receive) = ORDINARY(&scene);
    let verdict = stuck(stage, &scene, gap, send, receive);
    let _ = kernel::delete(spare.id);
    settle();
    verdict?;
    let (left, phase) =
        if sender { (scene.receiver, Phase::Receive) } else { (scene.sender, Phase::Send) };
    gone_or_aborted(&left, phase)
}

fn not_created() -> Complaint {
    Complaint::new(format_args!(
        "creating a thread was refused with error {}",
        runtime::utcb::error_code()
    ))
}

/// The partner of a deleted thread learns it by error 2 or 7.
fn gone_or_aborted(puppet: &Puppet, phase: Phase) -> Verdict {
    ensure!(puppet.done() == 1, "puppet {} hangs after its partner was deleted", puppet.id);
    let outcome = puppet.outcome(0);
    match outcome.failure() {
        Some(error)
            if error.phase == phase
                && [IpcErrorKind::Aborted, IpcErrorKind::NonExisting].contains(&error.kind) =>
        {
            same!(
                "the offset",
                error.offset,
                if error.kind == IpcErrorKind::Aborted { BEFORE_GAP } else { 0 }
            );
            Ok(())
        }
        _ => Err(Complaint::new(format_args!(
            "after its partner was deleted, puppet {} has tag {:#x} and error word {:#x}",
            puppet.id, outcome.mr[0], outcome.error
        ))),
    }
}

fn partner_deleted(stage: &Stage) -> Verdict {
    for pair in pairs() {
        for gap in Gap::BOTH {
            for sender in [true, false] {
                let verdict = with_spare(stage, sender, gap, pair);
                pager::leave_unanswered(0, 0);
                verdict?;
            }
        }
    }
    Ok(())
}

/// The raiser's pager: a spare that does not take the fault, or takes it and does
/// not answer; then it is deleted.
fn pager_deleted(stage: &Stage) -> Verdict {
    for takes in [false, true] {
        for_gaps(stage, |scene, gap| {
            let spare = stage.create_spare(13, 0).map_err(|_| not_created())?;
            let apart = !together(scene.sender.index, scene.receiver.index);
            let raiser = if gap == Gap::Receiver && apart { scene.receiver } else { scene.sender };
            let (send, receive) = ORDINARY(scene);
            // Everything is mapped, except the page at the gap.
            scene.play(send, receive);
            let _ = kernel::unmap(abi::Fpage::memory(gap.address(scene), 12, Rights::RWX));
            let pagers = |pager: ThreadId| {
                raiser
                    .exchange(ThreadRegisters {
                        control: exregs::PAGER | exregs::DELIVER,
                        pager: pager.0,
                        ..Default::default()
                    })
                    .1
                    .pager
            };
            let usual = ThreadId(pagers(spare.id));
            if takes {
                spare.order(Order::wait());
            }
            scene.play(send, receive);
            let took = spare.done() == usize::from(takes);
            let waits = scene.sender.done() == 0;
            let _ = kernel::delete(spare.id);
            settle();
            let _ = pagers(usual);
            ensure!(
                took && waits,
                "the page fault did not go to the pager set by ExchangeRegisters"
            );
            both_aborted(scene)
        })?;
    }
    Ok(())
}

/// A whole space goes while one of its threads is in a transfer.
fn space_deleted(stage: &Stage) -> Verdict {
    for gap in Gap::BOTH {
        for sender in [true, false] {
            let whole = scene(stage, (4, 8));
            let spare = stage.create_spare_space(14).map_err(|_| not_created())?;
            let scene = if sender {
                Scene { sender: spare, ..whole }
            } else {
                Scene { receiver: spare, ..whole }
            };
            let (send, receive) = ORDINARY(&scene);
            let verdict = stuck(stage, &scene, gap, send, receive);
            let _ = kernel::delete(spare.id);
            settle();
            pager::leave_unanswered(0, 0);
            verdict?;
            let (left, phase) =
                if sender { (scene.receiver, Phase::Receive) } else { (scene.sender, Phase::Send) };
            gone_or_aborted(&left, phase)?;
            let violations = root_harness::violations();
            ensure!(
                violations == 0,
                "the kernel found {violations} broken invariants after a space was deleted"
            );
        }
    }
    Ok(())
}
