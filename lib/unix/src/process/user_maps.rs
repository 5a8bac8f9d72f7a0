//! The maps of namespaces of users, as files of `/proc`: who may write which, and what they say.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use linux_raw_sys::general as l;

use super::Process;
use super::identity::Credentials;
use super::user_space::{Kind, Line, UserSpace, Users, called, meant};
use crate::call::Cx;
use crate::errno::Errno;

/// What a line of a map costs.
const LINE_BYTES: usize = 16;
/// Most lines of a map, and bytes of its text.
const LINES_MAX: usize = 340;
const TEXT_MAX: usize = 4095;

/// The text of a map, as the caller is told it.
pub fn map_text(cx: &Cx, process: &Process, kind: Kind) -> String {
    let mut text = String::new();
    let space = process.credentials.borrow().users.clone();
    let Some(space) = space else {
        return format!("{:10} {:10} {:10}\n", 0, 0, u32::MAX);
    };
    let own = cx.users();
    let seen = if own.as_ref() == Some(&space) { space.above.clone() } else { own };
    for line in space.lines(kind).borrow().iter() {
        let outside = called(&seen, kind, line.outside).unwrap_or(u32::MAX);
        let _ = writeln!(text, "{:10} {outside:10} {:10}", line.inside, line.count);
    }
    text
}

/// The lines of a map that is to be, numbers of the namespace above in place of ids.
fn parse(text: &[u8]) -> Result<Vec<Line>, Errno> {
    let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    let mut lines: Vec<Line> = Vec::new();
    if text.len() > TEXT_MAX {
        return Err(Errno::EINVAL);
    }
    for one in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        let mut words = one.split_ascii_whitespace().map(str::parse::<u32>);
        let mut word = || words.next().and_then(Result::ok).ok_or(Errno::EINVAL);
        let line = Line { inside: word()?, outside: word()?, count: word()? };
        let ends = |first: u32| first.checked_add(line.count).is_some();
        let meets = |one: u32, count: u32, other: u32, others: u32| {
            one < other + others && other < one + count
        };
        let again = |old: &Line| {
            meets(old.inside, old.count, line.inside, line.count)
                || meets(old.outside, old.count, line.outside, line.count)
        };
        let wrong = line.count == 0 || !ends(line.inside) || !ends(line.outside);
        if words.next().is_some() || wrong || lines.iter().any(again) || lines.len() >= LINES_MAX {
            return Err(Errno::EINVAL);
        }
        lines.push(line);
    }
    Ok(lines)
}

/// The ids that a row of numbers of `space` are, if they are in a row.
fn row(space: &Users, kind: Kind, first: u32, count: u32) -> Option<u32> {
    let Some(space) = space else { return Some(first) };
    let lines = space.lines(kind).borrow();
    let line = lines.iter().find(|line| first.wrapping_sub(line.inside) < line.count)?;
    let into = first - line.inside;
    (count <= line.count - into).then_some(line.outside + into)
}

/// Whether `opener`, who has opened the map's file, may map so; the caller writes it.
fn may_map(cx: &Cx, opener: &Credentials, space: &UserSpace, kind: Kind, lines: &[Line]) -> bool {
    let capability = if kind == Kind::Users { l::CAP_SETUID } else { l::CAP_SETGID };
    let own = opener.users.as_ref().is_some_and(|users| users.number == space.number);
    // User 0 of the namespace above is given away by none but who could have its files.
    let has_root = lines.iter().any(|line| line.outside == 0);
    if kind == Kind::Users && has_root {
        let may = match own {
            true => space.by_privileged,
            false => opener.may_in(&space.above, l::CAP_SETFCAP),
        };
        if !may {
            return false;
        }
    }
    if let [line] = lines
        && line.count == 1
        && space.owner == opener.euid
    {
        let id = meant(&space.above, kind, line.outside);
        if kind == Kind::Users && id == Some(opener.euid) {
            return true;
        }
        if kind == Kind::Groups && id == Some(opener.egid) && !space.sets_groups.get() {
            return true;
        }
    }
    let caller = cx.process.credentials.borrow();
    caller.may_in(&space.above, capability) && opener.may_in(&space.above, capability)
}

/// Writes a map, once.
///
/// # Errors
/// `EPERM`, `EINVAL`.
pub fn write_map(
    cx: &Cx,
    opener: &Credentials,
    process: &Process,
    kind: Kind,
    text: &[u8],
) -> Result<(), Errno> {
    let space = process.credentials.borrow().users.clone().ok_or(Errno::EPERM)?;
    let here = Some(space.clone());
    if opener.users != here && opener.users != space.above {
        return Err(Errno::EPERM);
    }
    if !space.lines(kind).borrow().is_empty() || !opener.may_in(&here, l::CAP_SYS_ADMIN) {
        return Err(Errno::EPERM);
    }
    let mut lines = parse(text)?;
    if !may_map(cx, opener, &space, kind, &lines) {
        return Err(Errno::EPERM);
    }
    for line in &mut lines {
        line.outside = row(&space.above, kind, line.outside, line.count).ok_or(Errno::EPERM)?;
    }
    let charge = cx.pay(lines.len() * LINE_BYTES)?;
    space.charges.borrow_mut().push(charge);
    space.lines(kind).replace(lines);
    Ok(())
}

/// `/proc/PID/setgroups`.
#[must_use]
pub fn groups_text(process: &Process) -> &'static str {
    let users = &process.credentials.borrow().users;
    let allowed = users.as_ref().is_none_or(|space| space.sets_groups.get());
    if allowed { "allow\n" } else { "deny\n" }
}

/// Writes it.
///
/// # Errors
/// `EPERM`, `EINVAL`.
pub fn write_groups(opener: &Credentials, process: &Process, text: &[u8]) -> Result<(), Errno> {
    let users = process.credentials.borrow().users.clone();
    if !opener.may_in(&users, l::CAP_SYS_ADMIN) {
        return Err(Errno::EPERM);
    }
    let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    let allow = match text.trim_end() {
        "allow" => true,
        "deny" => false,
        _ => return Err(Errno::EINVAL),
    };
    let Some(space) = users else { return if allow { Ok(()) } else { Err(Errno::EPERM) } };
    match allow {
        true if !space.sets_groups.get() => return Err(Errno::EPERM),
        false if !space.lines(Kind::Groups).borrow().is_empty() && space.sets_groups.get() => {
            return Err(Errno::EPERM);
        }
        _ => space.sets_groups.set(allow),
    }
    Ok(())
}
