//! What `ioctl` does to a terminal.

use alloc::rc::Rc;

use linux_raw_sys::general::{
    TCIFLUSH, TCIOFF, TCIOFLUSH, TCION, TCOFLUSH, TCOOFF, TCOON, VSTART, VSTOP,
};
use linux_raw_sys::ioctl::{
    FIONREAD, TCFLSH, TCGETA, TCGETS, TCGETS2, TCSBRK, TCSBRKP, TCSETA, TCSETAF, TCSETAW, TCSETS,
    TCSETS2, TCSETSF, TCSETSF2, TCSETSW, TCSETSW2, TCXONC, TIOCCBRK, TIOCEXCL, TIOCGDEV, TIOCGETD,
    TIOCGEXCL, TIOCGLCKTRMIOS, TIOCGPGRP, TIOCGSID, TIOCGWINSZ, TIOCNOTTY, TIOCNXCL, TIOCOUTQ,
    TIOCSBRK, TIOCSCTTY, TIOCSETD, TIOCSLCKTRMIOS, TIOCSPGRP, TIOCSTI, TIOCSWINSZ, TIOCVHANGUP,
};

use super::session::{self, check_change, is_own};
use super::terminal::Tty;
use super::termios::{OldTermios, Termio, Termios, WindowSize};
use crate::call::{Cx, Stop};
use crate::errno::Errno;

/// Carries out a request; `master` says on which side of a pseudo-terminal.
pub(super) fn ioctl(
    cx: &Cx,
    tty: &Rc<Tty>,
    master: bool,
    request: u32,
    argument: u64,
) -> Result<u64, Stop> {
    let user = cx.user();
    match request {
        TCGETS => user.write(argument, &tty.termios.get().old())?,
        TCGETS2 => user.write(argument, &tty.termios.get())?,
        TCSETS | TCSETSW | TCSETSF => {
            check_change(cx, tty)?;
            let new = tty.termios.get().with(&user.read::<OldTermios>(argument)?);
            set(cx, tty, new, request == TCSETSF);
        }
        TCSETS2 | TCSETSW2 | TCSETSF2 => {
            check_change(cx, tty)?;
            set(cx, tty, user.read::<Termios>(argument)?, request == TCSETSF2);
        }
        TCGETA => user.write(argument, &tty.termios.get().ancient())?,
        TCSETA | TCSETAW | TCSETAF => {
            check_change(cx, tty)?;
            let new = tty.termios.get().with_ancient(&user.read::<Termio>(argument)?);
            set(cx, tty, new, request == TCSETAF);
        }
        TIOCGLCKTRMIOS => user.write(argument, &tty.locked.get().old())?,
        TIOCSLCKTRMIOS if !is_root(cx) => return Err(Errno::EPERM.into()),
        TIOCSLCKTRMIOS => {
            tty.locked.set(Termios::NOTHING.with(&user.read::<OldTermios>(argument)?));
        }
        TIOCGWINSZ => user.write(argument, &tty.window.get())?,
        TIOCSWINSZ => tty.set_window(cx.unix, user.read::<WindowSize>(argument)?),
        TIOCGPGRP | TIOCSPGRP | TIOCGSID | TIOCSCTTY | TIOCNOTTY => {
            return job_control(cx, tty, master, request, argument);
        }
        FIONREAD => {
            let there = tty.discipline.borrow().readable(&tty.termios.get());
            user.write(argument, &(there as i32))?;
        }
        TIOCOUTQ => user.write(argument, &0_i32)?,
        TCSBRK | TCSBRKP | TIOCSBRK | TIOCCBRK => check_change(cx, tty)?,
        TCXONC => flow(cx, tty, argument as u32)?,
        TCFLSH => flush(cx, tty, argument as u32)?,
        TIOCSTI => {
            if !is_root(cx) && !is_own(cx, tty) {
                return Err(Errno::EPERM.into());
            }
            tty.receive(cx.unix, &[user.read::<u8>(argument)?]);
        }
        TIOCEXCL | TIOCNXCL => tty.exclusive.set(request == TIOCEXCL),
        TIOCGEXCL => user.write(argument, &i32::from(tty.exclusive.get()))?,
        TIOCGETD => user.write(argument, &0_i32)?,
        TIOCSETD if user.read::<i32>(argument)? == 0 => {}
        TIOCSETD => return Err(Errno::EINVAL.into()),
        TIOCGDEV => user.write(argument, &(tty.device as u32))?,
        TIOCVHANGUP if !is_root(cx) => return Err(Errno::EPERM.into()),
        TIOCVHANGUP => session::hang_up(cx.unix, tty),
        _ => return Err(Errno::ENOTTY.into()),
    }
    Ok(0)
}

fn is_root(cx: &Cx) -> bool {
    cx.process.credentials.borrow().may(linux_raw_sys::general::CAP_SYS_ADMIN)
}

/// New settings; `flush` throws typed input away first.
fn set(cx: &Cx, tty: &Tty, new: Termios, flush: bool) {
    if flush {
        tty.flush_input();
    }
    tty.set_termios(cx.unix, new);
}

/// Sessions and groups.
fn job_control(
    cx: &Cx,
    tty: &Rc<Tty>,
    master: bool,
    request: u32,
    argument: u64,
) -> Result<u64, Stop> {
    let own = is_own(cx, tty);
    match request {
        TIOCSCTTY if master => return Err(Errno::EINVAL.into()),
        TIOCSCTTY => session::take(cx, tty, argument == 1)?,
        TIOCNOTTY if !own => return Err(Errno::ENOTTY.into()),
        TIOCNOTTY => session::give_up(cx, tty),
        _ if !own && !master => return Err(Errno::ENOTTY.into()),
        TIOCGPGRP => cx.user().write(argument, &cx.shown(tty.foreground.get()))?,
        TIOCGSID if !tty.session.get().is_some() => return Err(Errno::ENOTTY.into()),
        TIOCGSID => cx.user().write(argument, &cx.shown(tty.session.get()))?,
        _ => {
            // As Linux has it: a group that could not be stopped hears ENOTTY here.
            check_change(cx, tty).map_err(|stop| match stop {
                Stop::Errno(Errno::EIO) => Stop::Errno(Errno::ENOTTY),
                other => other,
            })?;
            if !own {
                return Err(Errno::ENOTTY.into());
            }
            set_foreground(cx, tty, cx.user().read::<i32>(argument)?)?;
        }
    }
    Ok(0)
}

/// `TIOCSPGRP`: the group must be one of the terminal's session.
fn set_foreground(cx: &Cx, tty: &Tty, group: i32) -> Result<(), Errno> {
    let group = u32::try_from(group).map_err(|_| Errno::EINVAL)?;
    let group = cx.pid(group).ok_or(Errno::ESRCH)?;
    let members = crate::signal::send::members(cx.unix, group);
    let Some(first) = members.first() else { return Err(Errno::ESRCH) };
    if first.session.get() != cx.process.session.get() {
        return Err(Errno::EPERM);
    }
    tty.foreground.set(group);
    Ok(())
}

/// `tcflow`.
fn flow(cx: &Cx, tty: &Tty, action: u32) -> Result<(), Stop> {
    check_change(cx, tty)?;
    match action {
        TCOOFF => tty.set_stopped(cx.unix, true),
        TCOON => tty.set_stopped(cx.unix, false),
        TCIOFF | TCION => {
            let termios = tty.termios.get();
            let key = termios.character(if action == TCIOFF { VSTOP } else { VSTART });
            if key != 0 {
                tty.send_key(cx.unix, key);
            }
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(())
}

/// `tcflush`.
fn flush(cx: &Cx, tty: &Tty, which: u32) -> Result<(), Stop> {
    check_change(cx, tty)?;
    if which > TCIOFLUSH {
        return Err(Errno::EINVAL.into());
    }
    if matches!(which, TCIFLUSH | TCIOFLUSH) {
        tty.flush_input();
    }
    if matches!(which, TCOFLUSH | TCIOFLUSH) {
        tty.flush_output();
    }
    Ok(())
}
