//! Quotas, chiefs, and the account of all frames of the kernel's memory.

use super::Findings;
use crate::elsewhere;
use crate::lrpc;
use crate::mem::check;
use crate::space::{self, MAX_DEPTH, SpaceRef};
use crate::thread;
use crate::thread::frames_of;

/// Frames behind a thread's block.
const FRAMES_OF_THREAD: u64 = 2;

/// Checks quotas and frames.
pub(super) fn check(found: &mut Findings) {
    let (mut limits, mut spaces) = (0, 0);
    space::spaces().for_each(|space| {
        let quota = space.quota();
        found.note(
            quota.used() > quota.limit(),
            format_args!(
                "space {} uses {} pages and may use {}",
                space.id(),
                quota.used(),
                quota.limit()
            ),
        );
        found.note(
            !has_chiefs(space),
            format_args!("the chiefs of space {} do not lead to an initial task", space.id()),
        );
        space.task.below.each(|task| {
            found.note(
                task.task.chief.get() != Some(space),
                format_args!("space {} is listed with a chief that it does not have", task.id()),
            );
        });
        lrpc::check::bindings(space, &mut |wrong, what| {
            found.note(wrong, format_args!("space {} {what}", space.id()));
        });
        limits += quota.limit();
        spaces += 1;
    });
    let count = space::spaces().count();
    found.note(spaces != count, format_args!("{spaces} spaces are listed, and {count} counted"));
    if check::is_sealed() {
        let sealed = check::sealed_limits();
        found.note(
            limits != sealed,
            format_args!("the quotas of all spaces come to {limits} pages instead of {sealed}"),
        );
        frames(found);
    }
}

/// Whether the chain of chiefs ends.
fn has_chiefs(space: SpaceRef) -> bool {
    let mut chief = Some(space);
    for _ in 0..=MAX_DEPTH + 1 {
        match chief {
            Some(above) => chief = above.task.chief.get(),
            None => return true,
        }
    }
    false
}

fn frames(found: &mut Findings) {
    let mut broken = Findings::default();
    let mut report = |violation| broken.note(true, format_args!("{violation}"));
    let mut ledger = check::ledger(&mut report);
    space::spaces().for_each(|space| {
        let threads = space.task.thread_count.get() * FRAMES_OF_THREAD;
        let linkages = lrpc::check::frames(space, |frame| ledger.claim(space.id(), frame));
        let seats = elsewhere::frames_of_seats(space, |frame| ledger.claim(space.id(), frame));
        let owned = ledger.space(space) + threads + linkages + seats;
        let used = space.quota().used();
        found.note(
            owned != used,
            format_args!("space {} pays for {used} frames and has {owned}", space.id()),
        );
    });
    thread::for_each(|thread| {
        let space = thread.space().map_or(u32::MAX, |space| space.id());
        frames_of(thread).into_iter().for_each(|frame| ledger.claim(space, frame));
    });
    let lost = ledger.lost();
    found.count += broken.count;
    found.note(lost != 0, format_args!("{lost} frames of the kernel's memory belong to nobody"));
}
