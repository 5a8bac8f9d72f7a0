//! Threads with which something is special while they run: vector state in the
//! registers, or the registers of a foreign thread that others do not have (FS and
//! GS base), or somebody waiting whom a direct switch could pass over
//! (`sched::keep_watch`). The fast path's limits are closed for them (`percpu`), so that
//! leaving them always passes through here, or through `foreign.S`, which does the same.

use super::asm::{read_bases, set_task_switched, write_fs_base, write_gs_base};
use super::features::{self, Features};
use super::percpu::{LIMITS_OPEN, cpu};
use super::tcbs::TcbRef;

/// Whether the processor has what the fast paths use.
fn fast() -> bool {
    crate::techniques::FAST_PATH && features::in_use().contains(Features::FSGSBASE)
}

/// Lets whoever runs next use the fast path, unless its first switch has to look at the
/// ready queue.
pub fn open() {
    let opens = fast() && !cpu().scheduler.look_first.get();
    cpu().tss.limits.set(if opens { LIMITS_OPEN } else { 0 });
}

/// Keeps the running thread out of the fast path.
pub fn close() {
    cpu().tss.limits.set(0);
}

/// Whether something about the running thread is special.
#[inline(always)]
pub fn is_closed() -> bool {
    cpu().tss.limits.get() != LIMITS_OPEN
}

/// `thread`, the current one, is about to lose the processor.
#[inline(never)]
pub fn leave(thread: TcbRef) {
    if cpu().vector_live.replace(false) {
        set_task_switched(true);
    }
    if thread.is_foreign() {
        let (fs, gs) = read_bases();
        thread.fs_base.set(fs);
        thread.gs_base.set(gs);
        write_fs_base(0);
    }
    open();
}

/// `thread`, a foreign one, is about to run: its own bases, and the vector unit if its
/// state is still there.
#[inline(never)]
pub fn enter(thread: TcbRef) {
    write_fs_base(thread.fs_base.get());
    write_gs_base(thread.gs_base.get(), features::in_use().contains(Features::FSGSBASE));
    if cpu().vector_owner.get() == Some(thread) {
        set_task_switched(false);
        cpu().vector_live.set(true);
    }
    close();
}
