//! Controlling terminals: which session a terminal belongs to, who may read from it and
//! change it, and what ends with it.

use alloc::rc::Rc;

use linux_raw_sys::general::{SIGCONT, SIGHUP, SIGTTIN, SIGTTOU};

use super::Tty;
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::process::{Pid, Process};
use crate::signal::{self, Info};
use crate::unix::Unix;

/// Whether a signal would do nothing to the calling thread.
fn is_immune(cx: &Cx, signal: u32) -> bool {
    let blocked = cx.thread.signals.blocked.get() & 1 << (signal - 1) != 0;
    blocked || cx.process.actions.borrow().ignores(signal)
}

/// Whether the caller is in the background of its controlling terminal `tty`.
fn is_background(cx: &Cx, tty: &Tty) -> bool {
    tty.session.get().is_some()
        && tty.session.get() == cx.process.session.get()
        && tty.foreground.get().is_some()
        && tty.foreground.get() != cx.process.group.get()
}

/// The caller wants to read.
///
/// # Errors
/// Waits with SIGTTIN on its way in the background; `EIO` if that signal cannot stop it.
pub(super) fn check_read(cx: &Cx, tty: &Tty) -> Result<(), Stop> {
    if !is_background(cx, tty) {
        return Ok(());
    }
    let group = cx.process.group.get();
    if is_immune(cx, SIGTTIN) || crate::process::is_orphaned(cx.unix, group) {
        return Err(Errno::EIO.into());
    }
    signal::send_group(cx.unix, group, SIGTTIN);
    Err(cx.block_on(&tty.can_read))
}

/// The caller wants to change the terminal (or to write, with `TOSTOP`).
///
/// # Errors
/// Waits with SIGTTOU on its way in the background, unless that signal does nothing; `EIO`
/// if it could not stop the caller.
pub(super) fn check_change(cx: &Cx, tty: &Tty) -> Result<(), Stop> {
    if !is_background(cx, tty) || is_immune(cx, SIGTTOU) {
        return Ok(());
    }
    let group = cx.process.group.get();
    if crate::process::is_orphaned(cx.unix, group) {
        return Err(Errno::EIO.into());
    }
    signal::send_group(cx.unix, group, SIGTTOU);
    Err(cx.block_on(&tty.can_read))
}

/// Whether a process leads its session.
fn is_leader(process: &Process) -> bool {
    process.session.get() == process.pid
}

/// Whether `tty` is the caller's controlling terminal.
pub(super) fn is_own(cx: &Cx, tty: &Tty) -> bool {
    tty.session.get().is_some() && tty.session.get() == cx.process.session.get()
}

/// Opening a terminal makes it the controlling one of a session leader that has none.
pub(super) fn opened(cx: &Cx, tty: &Rc<Tty>) {
    let session = cx.process.session.get();
    if !tty.session.get().is_some()
        && is_leader(cx.process)
        && cx.unix.terminals.of_session(session).is_none()
    {
        tty.session.set(session);
        tty.foreground.set(cx.process.group.get());
    }
}

/// `TIOCSCTTY`.
///
/// # Errors
/// `EPERM` if the caller leads no session or has a terminal, or somebody else has this one
/// and it is not to be stolen (which only root may).
pub(super) fn take(cx: &Cx, tty: &Rc<Tty>, steal: bool) -> Result<(), Errno> {
    let session = cx.process.session.get();
    if tty.session.get() == session && is_leader(cx.process) {
        return Ok(());
    }
    let has_one = cx.unix.terminals.of_session(session).is_some();
    if !is_leader(cx.process) || has_one {
        return Err(Errno::EPERM);
    }
    let may_steal =
        steal && cx.process.credentials.borrow().may(linux_raw_sys::general::CAP_SYS_ADMIN);
    if tty.session.get().is_some() && !may_steal {
        return Err(Errno::EPERM);
    }
    tty.session.set(session);
    tty.foreground.set(cx.process.group.get());
    Ok(())
}

/// `TIOCNOTTY`: the session gives its terminal up (if its leader says so).
pub(super) fn give_up(cx: &Cx, tty: &Tty) {
    if is_leader(cx.process) {
        let foreground = tty.foreground.take();
        tty.session.set(Pid::NONE);
        hang_up_group(cx.unix, foreground);
    }
}

/// SIGHUP and SIGCONT for a group that has lost its terminal.
fn hang_up_group(unix: &Unix, group: Pid) {
    if group.is_some() {
        signal::send_group(unix, group, SIGHUP);
        signal::send_group(unix, group, SIGCONT);
    }
}

/// The line of `tty` is cut: its files are dead, its session's leader hears of it, and
/// of the foreground group when the leader ends.
pub fn hang_up(unix: &Unix, tty: &Rc<Tty>) {
    tty.hang_ups.set(tty.hang_ups.get().wrapping_add(1));
    let session = tty.session.take();
    let foreground = tty.foreground.take();
    tty.flush_input();
    tty.stopped.set(false);
    tty.can_read.wake_all();
    tty.can_write.wake_all();
    if !session.is_some() {
        return;
    }
    unix.terminals.lost.borrow_mut().push((session, foreground));
    if let Some(leader) = unix.processes.process(session) {
        signal::send(unix, &leader, Info::kernel(SIGHUP));
        signal::send(unix, &leader, Info::kernel(SIGCONT));
    }
}

/// A process ends. If it leads a session, the session loses its terminal: the foreground
/// group gets SIGHUP, and nobody can use the files any more.
pub fn process_ends(unix: &Unix, process: &Process) {
    if !is_leader(process) {
        return;
    }
    let session = process.session.get();
    if let Some(tty) = unix.terminals.of_session(session) {
        let foreground = tty.foreground.get();
        // The leader itself is past hearing of it.
        tty.session.set(Pid::NONE);
        tty.foreground.set(Pid::NONE);
        hang_up(unix, &tty);
        hang_up_group(unix, foreground);
        return;
    }
    let mut lost = unix.terminals.lost.borrow_mut();
    let group = lost.iter().position(|entry| entry.0 == session).map(|at| lost.swap_remove(at).1);
    drop(lost);
    hang_up_group(unix, group.unwrap_or_default());
}
