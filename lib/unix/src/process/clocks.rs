//! Namespaces of clocks (time): how far those that count from boot are put forward, or back.
//!
//! Deadlines and timers are kept as the machine's time everywhere: what a program is told, and an absolute time that it
//! says, is moved where the call reads or writes it ([`Clock::told`], [`Clock::meant`]). The vDSO's page of data is the
//! namespace's own, so that who has none reads the time as if there were no such thing.
//!
//! Who makes one is not in it: its children are, and the program that it runs next. The first who is there settles it.

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use linux_raw_sys::general as l;

use super::user_space::Users;
use super::{Credentials, Process, namespace, program};
use crate::account::{Charge, What};
use crate::call::Cx;
use crate::errno::Errno;
use crate::exec::vdso::{self, Data};
use crate::mm::AddressSpace;
use crate::time::Clock;
use crate::time::types::SECOND_NS;
use crate::unix::Unix;

/// What a namespace costs its user in memory, without its page.
const BYTES: usize = 512;
/// Longest text that sets the offsets, in bytes.
const TEXT_MAX: usize = 4095;
/// Linux's `KTIME_SEC_MAX`: the last second that it counts to.
const LAST_SECOND: i64 = i64::MAX / SECOND_NS as i64;

/// By how many nanoseconds clocks are put forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offsets {
    /// `CLOCK_MONOTONIC`, and its kin.
    pub monotonic: i64,
    /// `CLOCK_BOOTTIME`.
    pub boot: i64,
}

/// A namespace; there is none of this type for the first.
pub struct Clocks {
    /// The number that its files have.
    pub number: u64,
    /// The namespace of users that it belongs to.
    pub users: Users,
    offsets: Cell<Offsets>,
    /// Somebody is there, or was: the offsets are what they are.
    settled: Cell<bool>,
    data: Data,
    _charges: [Charge; 2],
}

/// The namespace of users that one belongs to.
#[must_use]
pub fn owner(clocks: Option<&Rc<Clocks>>) -> Users {
    clocks.and_then(|clocks| clocks.users.clone())
}

fn same(one: Option<&Rc<Clocks>>, other: Option<&Rc<Clocks>>) -> bool {
    one.map(|one| one.number) == other.map(|other| other.number)
}

/// A namespace for the caller's children, with the offsets of the one that they had.
///
/// # Errors
/// `EPERM`, `ENOMEM`.
pub(super) fn new(cx: &Cx, users: Users) -> Result<Rc<Clocks>, Errno> {
    namespace::check_in(cx, &users)?;
    let frame = Charge::new(&cx.process.user(), What::Frames, 1)?;
    let charges = [cx.pay(BYTES)?, frame];
    let number = namespace::new_number(cx);
    let old = cx.process.state.clocks_of_children.borrow();
    let offsets = old.as_ref().map_or(Offsets::default(), |old| old.offsets.get());
    Ok(Rc::new(Clocks {
        number,
        users,
        offsets: Cell::new(offsets),
        settled: Cell::new(false),
        data: cx.unix.mm.vdso.new_data(cx.unix, number)?,
        _charges: charges,
    }))
}

/// Programs with this memory are in `clocks` from now on.
fn enter(unix: &Unix, space: &AddressSpace, clocks: Option<&Rc<Clocks>>) {
    settle(clocks);
    vdso::exchange_data(unix, space, data(clocks));
}

fn settle(clocks: Option<&Rc<Clocks>>) {
    if let Some(clocks) = clocks.filter(|clocks| !clocks.settled.replace(true)) {
        clocks.data.set_offsets(clocks.offsets.get());
    }
}

/// What programs there read the time from; none is what most do.
#[must_use]
pub fn data(clocks: Option<&Rc<Clocks>>) -> Option<&Data> {
    clocks.map(|clocks| &clocks.data)
}

/// A child has been born, with memory of its own if it is in another namespace than its parent.
pub(super) fn born(cx: &Cx, child: &Process) {
    let clocks = child.state.clocks.borrow();
    if !same(clocks.as_ref(), cx.process.state.clocks.borrow().as_ref()) {
        enter(cx.unix, &child.space(), clocks.as_ref());
    }
}

/// The process has a new program, made for its children's namespace: it is there now.
pub(super) fn has_program(process: &Process) {
    let clocks = process.state.clocks_of_children.borrow().clone();
    settle(clocks.as_ref());
    process.state.clocks.replace(clocks);
}

/// `setns`: nobody else may have the caller's memory, in which the page is.
///
/// # Errors
/// `EUSERS`, `EPERM`.
pub(super) fn enter_by_call(cx: &Cx, clocks: Option<Rc<Clocks>>) -> Result<(), Errno> {
    if program::shares_memory(cx) {
        return Err(Errno::EUSERS);
    }
    namespace::check_enter(cx, &owner(clocks.as_ref()))?;
    enter(cx.unix, &cx.process.space(), clocks.as_ref());
    cx.process.state.clocks_of_children.replace(clocks.clone());
    cx.process.state.clocks.replace(clocks);
    Ok(())
}

impl Clock {
    /// How far it is put forward for the caller.
    fn offset(&self, cx: &Cx) -> i64 {
        let offset = |choose: fn(Offsets) -> i64| {
            let clocks = cx.process.state.clocks.borrow();
            clocks.as_ref().map_or(0, |clocks| choose(clocks.offsets.get()))
        };
        match self {
            Self::Monotonic => offset(|one| one.monotonic),
            Self::Boot => offset(|one| one.boot),
            _ => 0,
        }
    }

    /// What the caller is told when it shows `ns`.
    #[must_use]
    pub fn told(&self, cx: &Cx, ns: u64) -> u64 {
        ns.saturating_add_signed(self.offset(cx))
    }

    /// What it shows when the caller is told `ns`; 0 if that was before boot.
    #[must_use]
    pub fn meant(&self, cx: &Cx, ns: u64) -> u64 {
        ns.saturating_add_signed(self.offset(cx).saturating_neg())
    }
}

/// `/proc/PID/timens_offsets`: those of the process's children.
#[must_use]
pub fn text(process: &Process) -> Vec<u8> {
    let clocks = process.state.clocks_of_children.borrow();
    let offsets = clocks.as_ref().map_or(Offsets::default(), |clocks| clocks.offsets.get());
    let second = SECOND_NS as i64;
    let line = |name: &str, ns: i64| {
        format!("{name:<10} {:>10} {:>9}\n", ns.div_euclid(second), ns.rem_euclid(second))
    };
    (line("monotonic", offsets.monotonic) + &line("boottime", offsets.boot)).into_bytes()
}

/// Sets them, by who has opened the file; how much of `text` has been read.
///
/// # Errors
/// `EINVAL`, `EPERM`, `ERANGE`, `EACCES` when somebody is or was there.
pub fn write(cx: &Cx, by: &Credentials, process: &Process, text: &[u8]) -> Result<usize, Errno> {
    if text.len() > TEXT_MAX {
        return Err(Errno::EINVAL);
    }
    let (lines, len) = lines(text)?;
    let clocks = process.state.clocks_of_children.borrow();
    if !by.may_in(&owner(clocks.as_ref()), l::CAP_SYS_TIME) {
        return Err(Errno::EPERM);
    }
    let mut offsets = clocks.as_ref().map_or(Offsets::default(), |clocks| clocks.offsets.get());
    for (clock, seconds, nanoseconds) in lines {
        let ns = offset(cx.unix.machine.now_ns(), seconds, nanoseconds)?;
        match clock {
            Clock::Boot => offsets.boot = ns,
            _ => offsets.monotonic = ns,
        }
    }
    let clocks = clocks.as_ref().filter(|clocks| !clocks.settled.get()).ok_or(Errno::EACCES)?;
    clocks.offsets.set(offsets);
    Ok(len)
}

/// An offset in nanoseconds, if the clock is not before 0 by it, nor so late that its end is near.
fn offset(now_ns: u64, seconds: i64, nanoseconds: u64) -> Result<i64, Errno> {
    let ns = i128::from(seconds) * i128::from(SECOND_NS) + i128::from(nanoseconds);
    let shown_s = (i128::from(now_ns) + ns).div_euclid(SECOND_NS.into());
    let in_range = (0..=i128::from(LAST_SECOND / 2)).contains(&shown_s);
    i64::try_from(ns).ok().filter(|_| in_range).ok_or(Errno::ERANGE)
}

/// A line: clock, seconds, nanoseconds.
type Line = (Clock, i64, u64);

/// The lines of a text, two at most, and how long they are; the text ends with its first zero.
fn lines(text: &[u8]) -> Result<(Vec<Line>, usize), Errno> {
    let mut lines = Vec::new();
    let mut rest = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let end = rest.len();
    loop {
        let (first, behind) = match rest.iter().position(|byte| *byte == b'\n') {
            Some(len) => (&rest[..len], &rest[len + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        lines.push(line(first).ok_or(Errno::EINVAL)?);
        rest = behind;
        if rest.is_empty() {
            return Ok((lines, text.len()));
        }
        if lines.len() == 2 {
            return Ok((lines, end - rest.len()));
        }
    }
}

/// A word of up to nine bytes and two numbers; what follows does not count.
fn line(text: &[u8]) -> Option<Line> {
    let text = text.trim_ascii_start();
    let len = text.iter().take(9).take_while(|byte| !byte.is_ascii_whitespace()).count();
    let (name, rest) = text.split_at(len);
    let clock = match name {
        b"monotonic" | b"1" => Clock::Monotonic,
        b"boottime" | b"7" => Clock::Boot,
        _ => return None,
    };
    let rest = rest.trim_ascii_start();
    let negative = rest.strip_prefix(b"-");
    let (seconds, rest) = digits(negative.unwrap_or(rest))?;
    let seconds = if negative.is_some() { -seconds } else { seconds };
    let (nanoseconds, _) = digits(rest.trim_ascii_start())?;
    let nanoseconds = u64::try_from(nanoseconds).ok().filter(|ns| *ns < SECOND_NS)?;
    Some((clock, seconds, nanoseconds))
}

/// The number at the beginning, and what follows.
fn digits(text: &[u8]) -> Option<(i64, &[u8])> {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(len);
    let add = |all: i64, digit: &u8| all.saturating_mul(10).saturating_add((digit - b'0').into());
    (len > 0).then(|| (digits.iter().fold(0, add), rest))
}
