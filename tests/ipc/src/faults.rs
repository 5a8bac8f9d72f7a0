//! Page faults in the middle of a string: who raises them, transfer timeouts on
//! either side, aborts, deletions, preemption (X.2 4.5, 4.9, 4.12).

use abi::syscall::exregs;
use abi::{IpcErrorKind, Phase, Rights, StringItem, Time};
use runtime::kernel;

use crate::forms::{PAIRS, failed, succeeded, together};
use crate::puppet::{self, Order};
use crate::raw::{differs, fill};
use crate::stage::{Stage, pause, set_priority, settle};
use crate::strings::{SENT, Scene, TARGET};
use crate::verdict::{Test, Verdict};
use crate::{ensure, pager, same};

/// The tests.
pub const TESTS: &[Test] = &[
    ("fault_in_the_senders_buffer", in_sender),
    ("fault_in_the_receivers_buffer", in_receiver),
    ("each_page_faults_once", counted),
    ("transfer_timeout_zero", timeout_zero),
    ("transfer_timeout_expires", timeout_expires),
    ("transfer_timeout_never", timeout_never),
    ("aborted_while_a_page_is_missing", aborted),
    ("receive_phase_after_a_faulting_send", receive_after),
    ("others_run_during_a_long_copy", preemption),
];

/// Bytes of the string; its third page is where pages are missing.
const LEN: u64 = 5 * 4096;
/// Bytes that go before the missing page.
pub const BEFORE_GAP: u64 = 2 * 4096;
pub const ORDINARY: fn(&Scene) -> (Order, Order) = |scene| {
    let send = Order::send(scene.receiver.id).label(3).string(scene.memory, LEN);
    (send, Order::wait().buffer(scene.memory + TARGET, LEN))
};

/// Where a page is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gap {
    Sender,
    Receiver,
}

impl Gap {
    pub const BOTH: [Self; 2] = [Self::Sender, Self::Receiver];

    pub fn address(self, scene: &Scene) -> u64 {
        scene.memory + BEFORE_GAP + if self == Self::Receiver { TARGET } else { 0 }
    }
}

/// The pairs that have no memory of their own, so that all their pages can be missing.
pub fn pairs() -> impl Iterator<Item = (usize, usize)> {
    PAIRS.into_iter().filter(|pair| pair.0 >= 4 && pair.1 >= 4)
}

pub fn scene(stage: &Stage, pair: (usize, usize)) -> Scene {
    stage.reset();
    stage.unmap_memory();
    let memory = stage.memory.base();
    fill(memory, LEN, SENT, 0);
    Scene { sender: stage.puppet(pair.0), receiver: stage.puppet(pair.1), memory }
}

/// Plays an ordinary transfer, during which the page at the gap never comes.
pub fn stuck(stage: &Stage, scene: &Scene, gap: Gap, send: Order, receive: Order) -> Verdict {
    let address = gap.address(scene);
    pager::leave_unanswered(address, address + 4096);
    scene.play(send, receive);
    let waits = scene.sender.done() == 0 && scene.receiver.done() == 0;
    ensure!(waits, "the transfer went on without the page missing at the {gap:?}");
    let violations = root_harness::violations();
    ensure!(
        violations == 0,
        "the kernel found {violations} broken invariants in a transfer that waits for a page"
    );
    let _ = stage;
    Ok(())
}

/// Runs `test` for each pair and gap; afterwards all faults are answered again.
pub fn for_gaps(stage: &Stage, test: impl Fn(&Scene, Gap) -> Verdict) -> Verdict {
    for pair in pairs() {
        for gap in Gap::BOTH {
            let scene = scene(stage, pair);
            let verdict = test(&scene, gap);
            pager::leave_unanswered(0, 0);
            verdict?;
        }
    }
    Ok(())
}

fn one_fault(stage: &Stage, gap: Gap) -> Verdict {
    for pair in pairs() {
        let scene = scene(stage, pair);
        let address = gap.address(&scene);
        pager::watch(address, address + 4096);
        let (send, receive) = ORDINARY(&scene);
        scene.play(send, receive);
        succeeded(&scene.sender, 0)?;
        succeeded(&scene.receiver, 0)?;
        ensure!(
            differs(scene.memory + TARGET, LEN, SENT, 0).is_none(),
            "the string did not arrive whole"
        );
        same!("the number of faults on one page", pager::faults(), 1);
        let (fault, thread) = pager::last();
        same!("the fault address", fault.address, address);
        let by_receiver = gap == Gap::Receiver && !together(pair.0, pair.1);
        let raiser = if by_receiver { scene.receiver } else { scene.sender };
        same!("the thread that faults", thread.0, raiser.id.0);
        match gap {
            Gap::Receiver => {
                same!("the IP of a fault in the receiver's buffer", fault.ip, !0);
                same!("the access", u64::from(fault.access.0), u64::from(Rights::W.0));
            }
            Gap::Sender => {
                ensure!(
                    fault.ip >> 63 == 1 && fault.ip != !0,
                    "the IP {:#x} is no address of the kernel",
                    fault.ip
                );
                same!("the access", u64::from(fault.access.0), u64::from(Rights::R.0));
            }
        }
    }
    Ok(())
}

fn in_sender(stage: &Stage) -> Verdict {
    one_fault(stage, Gap::Sender)
}

fn in_receiver(stage: &Stage) -> Verdict {
    one_fault(stage, Gap::Receiver)
}

fn counted(stage: &Stage) -> Verdict {
    for pair in pairs() {
        let scene = scene(stage, pair);
        let (low, high) = (scene.memory, scene.memory + stage.memory.bytes());
        pager::watch(low, high);
        let (send, receive) = ORDINARY(&scene);
        scene.play(send, receive);
        succeeded(&scene.receiver, 0)?;
        same!("the number of faults of 5 pages on either side", pager::faults(), 10);
        scene.play(send, receive);
        same!("the number of faults when all is mapped", pager::faults(), 10);
    }
    Ok(())
}

/// Both partners' error words after a transfer timeout (X.2 4.9, as Pistachio has
/// it): the codes follow whose timeout was strictly shorter.
fn timed_out(scene: &Scene, receivers: bool, offset: u64) -> Verdict {
    let (here, there) = if receivers {
        (IpcErrorKind::XferTimeoutPartner, IpcErrorKind::XferTimeoutOwn)
    } else {
        (IpcErrorKind::XferTimeoutOwn, IpcErrorKind::XferTimeoutPartner)
    };
    failed(&scene.sender, 0, here, Phase::Send, offset)?;
    failed(&scene.receiver, 0, there, Phase::Receive, offset)?;
    let tag = 3 << 16 | 0x8080;
    same!("the sender's tag after a timeout", scene.sender.outcome(0).mr[0], tag);
    scene.told(tag)?;
    Ok(())
}

fn timeout_zero(stage: &Stage) -> Verdict {
    let cases = [
        (Time::ZERO, Time::NEVER, false),
        (Time::NEVER, Time::ZERO, true),
        (Time::ZERO, Time::ZERO, false),
    ];
    for pair in pairs() {
        for gap in Gap::BOTH {
            for (own, partner, receivers) in cases {
                let scene = scene(stage, pair);
                // All pages but the gap's are there.
                let (send, receive) = ORDINARY(&scene);
                scene.play(send, receive);
                let address = gap.address(&scene);
                let _ = kernel::unmap(abi::Fpage::memory(address, 12, Rights::RWX));
                let others = Time::micros(5);
                scene.play(
                    send.transfer_within(own, others),
                    receive.transfer_within(others, partner),
                );
                timed_out(&scene, receivers, BEFORE_GAP)?;
            }
        }
    }
    Ok(())
}

fn timeout_expires(stage: &Stage) -> Verdict {
    let (short, long) = (Time::micros(6_000), Time::micros(60_000_000));
    for (own, partner, receivers) in [
        (short, Time::NEVER, false),
        (Time::NEVER, short, true),
        (short, long, false),
        (long, short, true),
        (short, short, false),
    ] {
        for_gaps(stage, |scene, gap| {
            let (send, receive) = ORDINARY(scene);
            let (send, receive) = (
                send.transfer_within(own, Time::ZERO),
                receive.transfer_within(Time::ZERO, partner),
            );
            stuck(stage, scene, gap, send, receive)?;
            pause(12_000);
            timed_out(scene, receivers, BEFORE_GAP)
        })?;
    }
    Ok(())
}

fn timeout_never(stage: &Stage) -> Verdict {
    for_gaps(stage, |scene, gap| {
        let (send, receive) = ORDINARY(scene);
        stuck(stage, scene, gap, send, receive)?;
        pause(50_000);
        ensure!(
            scene.sender.done() == 0 && scene.receiver.done() == 0,
            "a transfer without timeouts ended"
        );
        Ok(())
    })
}

/// Complains unless both were told: aborted after the bytes before the gap.
pub fn both_aborted(scene: &Scene) -> Verdict {
    failed(&scene.sender, 0, IpcErrorKind::Aborted, Phase::Send, BEFORE_GAP)?;
    failed(&scene.receiver, 0, IpcErrorKind::Aborted, Phase::Receive, BEFORE_GAP)
}

fn aborted(stage: &Stage) -> Verdict {
    for of_sender in [true, false] {
        for_gaps(stage, |scene, gap| {
            let (send, receive) = ORDINARY(scene);
            stuck(stage, scene, gap, send, receive)?;
            let (thread, bit) = if of_sender {
                (scene.sender, exregs::ABORT_SEND)
            } else {
                (scene.receiver, exregs::ABORT_RECEIVE)
            };
            same!(
                "the control word in a transfer",
                thread.abort(exregs::ABORT_SEND | exregs::ABORT_RECEIVE & !bit),
                bit
            );
            let _ = thread.abort(bit);
            settle();
            both_aborted(scene)
        })?;
    }
    Ok(())
}

/// A call whose send phase faulted has its receive phase with the caller's own
/// from-specifier and timeouts.
fn receive_after(stage: &Stage) -> Verdict {
    for pair in pairs() {
        let scene = scene(stage, pair);
        let (near, third) = (together(pair.0, pair.1), stage.puppet(0));
        let send = Order::new(scene.receiver.id, third.id)
            .within(Time::NEVER, Time::micros(9_000))
            .string(scene.memory, LEN);
        scene.play(send, Order::receive(scene.sender.id).buffer(scene.memory + TARGET, LEN));
        succeeded(&scene.receiver, 0)?;
        same!("the sender's name", scene.receiver.outcome(0).from.0, scene.sender.name(near).0);
        ensure!(scene.sender.done() == 0, "the sender does not wait for its reply");
        scene.receiver.order(Order::send(scene.sender.id).within(Time::ZERO, Time::NEVER));
        settle();
        failed(&scene.receiver, 0, IpcErrorKind::Timeout, Phase::Send, 0)?;
        pause(16_000);
        failed(&scene.sender, 0, IpcErrorKind::Timeout, Phase::Receive, 0)?;
    }
    Ok(())
}

/// A message of eight strings of 4 MiB takes long: a thread of higher priority that
/// sleeps and one of the same priority both make progress meanwhile.
fn preemption(stage: &Stage) -> Verdict {
    let scene = scene(stage, (4, 8));
    let len = 4 << 20;
    let mut send = [scene.memory; 31];
    let mut receive = [scene.memory + TARGET; 31];
    send[0] = StringItem::new(len, 30, false).0;
    receive[0] = send[0];
    let ticker = stage.puppet(0);
    set_priority(ticker.id, 200);
    scene.receiver.order(Order::wait().buffers(&receive));
    settle();
    puppet::clear_log();
    ticker.start(&[Order::receive(ticker.id).within(Time::NEVER, Time::micros(1_000)); 4]);
    scene.sender.order(Order::send(scene.receiver.id).item(&send));
    settle();
    succeeded(&scene.sender, 0)?;
    succeeded(&scene.receiver, 0)?;
    let took_us = scene.sender.outcome(0).ended_us - scene.sender.outcome(0).began_us;
    ensure!(took_us > 12_000, "120 MiB were copied in {took_us} us: too fast for this test");
    let events: [(usize, usize); 4] = core::array::from_fn(puppet::event);
    ensure!(
        events.iter().all(|event| event.0 == ticker.index),
        "a long copy kept a thread of higher priority from running: {events:?}"
    );
    for step in 0..4 {
        let outcome = ticker.outcome(step);
        let slept_us = outcome.ended_us - outcome.began_us;
        ensure!(slept_us < 6_000, "during a long copy a sleep of 1000 us took {slept_us} us");
    }
    Ok(())
}
