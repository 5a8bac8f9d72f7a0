//! Waiting for one of several files: poll, ppoll, select, pselect6.

use alloc::vec;
use alloc::vec::Vec;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, Open};
use crate::signal::{OnSignal, mask};

/// `struct pollfd`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct PollFd {
    fd: i32,
    events: u16,
    found: u16,
}

/// Nanoseconds in a second.
const SECOND_NS: u64 = 1_000_000_000;

/// What is always reported.
const ALWAYS: Events = Events::ERR.union(Events::HUP);

/// Sets the deadline of a call that waits for `timeout_ns`; `None` is for ever.
pub(super) fn set_timeout(cx: &Cx, timeout_ns: Option<u64>) {
    if let Some(timeout_ns) = timeout_ns
        && timeout_ns > 0
    {
        cx.set_deadline(Some(cx.unix.machine.now_ns().saturating_add(timeout_ns)));
    }
}

/// Reads a `struct timespec` (address 0: for ever).
///
/// # Errors
/// `EINVAL` if it is none, `EFAULT`.
pub(super) fn read_timespec(cx: &Cx, address: u64) -> Result<Option<u64>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let [seconds, ns] = cx.user().read::<[i64; 2]>(address)?;
    if seconds < 0 || !(0..SECOND_NS as i64).contains(&ns) {
        return Err(Errno::EINVAL);
    }
    Ok(Some((seconds as u64).saturating_mul(SECOND_NS).saturating_add(ns as u64)))
}

/// Reads a `struct timeval`; Linux takes more than a million microseconds.
fn read_timeval(cx: &Cx, address: u64) -> Result<Option<u64>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let [seconds, us] = cx.user().read::<[i64; 2]>(address)?;
    let seconds = seconds.saturating_add(us / 1_000_000);
    let us = us % 1_000_000;
    if seconds < 0 || us < 0 {
        return Err(Errno::EINVAL);
    }
    Ok(Some((seconds as u64).saturating_mul(SECOND_NS).saturating_add(us as u64 * 1000)))
}

/// How much of a timeout is left, to be written back.
fn remaining(cx: &Cx, timeout_ns: u64) -> u64 {
    match cx.thread.deadline_ns.get() {
        Some(deadline) => deadline.saturating_sub(cx.unix.machine.now_ns()),
        None => timeout_ns,
    }
}

/// `STICKY_TIMEOUTS` of `personality`: timeouts stay as the program wrote them.
const STICKY_TIMEOUTS: u32 = 0x0400_0000;

/// Whether the program wants to be told what is left of a timeout.
fn is_told(cx: &Cx) -> bool {
    cx.process.state.personality.get() & STICKY_TIMEOUTS == 0
}

/// What it costs to wait for a file.
const WAIT_BYTES: usize = 64;

/// The call waits, for the files it has registered with and the deadline.
fn wait(cx: &Cx) -> Stop {
    cx.on_signal(OnSignal::Return);
    Stop::Block
}

/// Whether a call whose timeout is `timeout_ns` may not wait (any more).
pub(super) fn is_over(cx: &Cx, timeout_ns: Option<u64>) -> bool {
    timeout_ns == Some(0) || cx.expired()
}

/// `poll(fds, count, timeout_ms)`.
pub(super) fn poll(cx: &Cx) -> Answer {
    let timeout = cx.int(2);
    let timeout_ns = u64::try_from(timeout).ok().map(|ms| ms * 1_000_000);
    set_timeout(cx, timeout_ns);
    poll_files(cx, timeout_ns)
}

/// `ppoll(fds, count, timeout, mask, size)`.
pub(super) fn ppoll(cx: &Cx) -> Answer {
    // What is left is written over the timeout: only the first try's is the program's.
    let timeout_ns = match cx.thread.deadline_ns.get().filter(|_| cx.is_retry()) {
        Some(_) => Some(u64::MAX),
        None => read_timespec(cx, cx.arg(2))?,
    };
    mask::set_temporary_mask_from(cx, cx.arg(3), cx.arg(4))?;
    set_timeout(cx, timeout_ns);
    let answer = poll_files(cx, timeout_ns);
    if !matches!(answer, Err(Stop::Block)) {
        write_timespec(cx, cx.arg(2), timeout_ns);
    }
    answer
}

/// Writes what is left of a timeout; that it cannot be written is no error.
fn write_timespec(cx: &Cx, address: u64, timeout_ns: Option<u64>) {
    if let Some(timeout_ns) = timeout_ns {
        let left = remaining(cx, timeout_ns);
        if !is_told(cx) {
            return;
        }
        let _ = cx.user().write(address, &[left / SECOND_NS, left % SECOND_NS]);
    }
}

fn poll_files(cx: &Cx, timeout_ns: Option<u64>) -> Answer {
    let (address, count) = (cx.arg(0), u64::from(cx.uint(1)));
    if count > cx.descriptor_limit() {
        return Err(Errno::EINVAL.into());
    }
    cx.check_heap(count as usize * WAIT_BYTES)?;
    let mut fds = vec![PollFd { fd: -1, events: 0, found: 0 }; count as usize];
    cx.user().read_bytes(address, fds.as_mut_bytes())?;
    let mut ready = 0;
    for entry in &mut fds {
        entry.found = look(cx, entry);
        ready += u64::from(entry.found != 0);
    }
    if ready == 0 && !is_over(cx, timeout_ns) {
        for entry in &fds {
            if let Ok(open) = cx.file(entry.fd as u32) {
                watch(cx, &open, Events::from_bits_retain(entry.events.into()))?;
            }
        }
        return Err(wait(cx));
    }
    for (index, entry) in fds.iter().enumerate() {
        let place = address + (index * size_of::<PollFd>() + 6) as u64;
        cx.user().write(place, &entry.found)?;
    }
    Ok(ready)
}

/// What is to be reported for an entry now.
fn look(cx: &Cx, entry: &PollFd) -> u16 {
    if entry.fd < 0 {
        return 0;
    }
    match cx.file(entry.fd as u32) {
        Err(_) => Events::NVAL.bits() as u16,
        Ok(open) => {
            let wanted = Events::from_bits_retain(entry.events.into()) | ALWAYS;
            (open.file.poll(cx) & wanted).bits() as u16
        }
    }
}

/// The call is tried again when the file's readiness changes.
///
/// # Errors
/// `ENOMEM`.
fn watch(cx: &Cx, open: &Open, interest: Events) -> Result<(), Errno> {
    let mut done = Ok(());
    open.file.watch(cx, interest, &mut |queue| {
        if done.is_ok() {
            done = queue.add(cx.thread);
        }
    });
    done
}

/// The three sets of `select`: what makes a descriptor count in each.
const SETS: [Events; 3] = [
    Events::IN.union(Events::RDNORM).union(Events::RDBAND).union(Events::HUP).union(Events::ERR),
    Events::OUT.union(Events::WRNORM).union(Events::WRBAND).union(Events::ERR),
    Events::PRI,
];

/// `select(count, in, out, except, timeout)`.
pub(super) fn select(cx: &Cx) -> Answer {
    let timeout_ns = match cx.thread.deadline_ns.get().filter(|_| cx.is_retry()) {
        Some(_) => Some(u64::MAX),
        None => read_timeval(cx, cx.arg(4))?,
    };
    set_timeout(cx, timeout_ns);
    let answer = select_files(cx, timeout_ns);
    if let Some(timeout_ns) = timeout_ns
        && !matches!(answer, Err(Stop::Block))
    {
        let left = remaining(cx, timeout_ns);
        let parts = [left / SECOND_NS, left % SECOND_NS / 1000];
        let _ = is_told(cx).then(|| cx.user().write(cx.arg(4), &parts));
    }
    answer
}

/// `pselect6(count, in, out, except, timeout, (mask, size))`.
pub(super) fn pselect6(cx: &Cx) -> Answer {
    let timeout_ns = match cx.thread.deadline_ns.get().filter(|_| cx.is_retry()) {
        Some(_) => Some(u64::MAX),
        None => read_timespec(cx, cx.arg(4))?,
    };
    if cx.arg(5) != 0 {
        let [address, size] = cx.user().read::<[u64; 2]>(cx.arg(5))?;
        mask::set_temporary_mask_from(cx, address, size)?;
    }
    set_timeout(cx, timeout_ns);
    let answer = select_files(cx, timeout_ns);
    if !matches!(answer, Err(Stop::Block)) {
        write_timespec(cx, cx.arg(4), timeout_ns);
    }
    answer
}

fn select_files(cx: &Cx, timeout_ns: Option<u64>) -> Answer {
    let count = usize::try_from(cx.int(0)).map_err(|_| Errno::EINVAL)?;
    let count = count.min(cx.process.files.borrow().capacity());
    let words = count.div_ceil(64);
    cx.check_heap(words * 2 * SETS.len() * size_of::<u64>())?;
    let mut wanted: [Vec<u64>; 3] = Default::default();
    for (index, set) in wanted.iter_mut().enumerate() {
        if cx.arg(1 + index) != 0 {
            *set = cx.user().read_words(cx.arg(1 + index), words)?;
        } else {
            set.resize(words, 0);
        }
    }
    let mut found = wanted.clone().map(|set| vec![0; set.len()]);
    let ready = select_scan(cx, count, &wanted, &mut found)?;
    if ready == 0 && !is_over(cx, timeout_ns) {
        let mut done = Ok(());
        each_selected(count, &wanted, |fd, interest| {
            if let (Ok(()), Ok(open)) = (done, cx.file(fd)) {
                done = watch(cx, &open, interest);
            }
        });
        done?;
        return Err(wait(cx));
    }
    for (index, set) in found.iter().enumerate() {
        if cx.arg(1 + index) != 0 {
            cx.user().write_bytes(cx.arg(1 + index), set.as_bytes())?;
        }
    }
    Ok(ready)
}

/// Calls `each` for the descriptors in any of the sets, with what is wanted of them.
fn each_selected(count: usize, wanted: &[Vec<u64>; 3], mut each: impl FnMut(u32, Events)) {
    for fd in 0..count {
        let (word, bit) = (fd / 64, 1_u64 << (fd % 64));
        let mut interest = Events::empty();
        for (set, events) in wanted.iter().zip(SETS) {
            if set.get(word).is_some_and(|word| word & bit != 0) {
                interest |= events;
            }
        }
        if !interest.is_empty() {
            each(fd as u32, interest);
        }
    }
}

/// Fills `found`; how many bits were set.
fn select_scan(
    cx: &Cx,
    count: usize,
    wanted: &[Vec<u64>; 3],
    found: &mut [Vec<u64>; 3],
) -> Result<u64, Errno> {
    let mut ready = 0;
    let mut bad = false;
    each_selected(count, wanted, |fd, _| {
        let Ok(open) = cx.file(fd) else {
            bad = true;
            return;
        };
        let events = open.file.poll(cx);
        let (word, bit) = (fd as usize / 64, 1_u64 << (fd % 64));
        for ((set, found), counts) in wanted.iter().zip(found.iter_mut()).zip(SETS) {
            let is_wanted = set.get(word).is_some_and(|word| word & bit != 0);
            if is_wanted
                && events.intersects(counts)
                && let Some(word) = found.get_mut(word)
            {
                *word |= bit;
                ready += 1;
            }
        }
    });
    if bad { Err(Errno::EBADF) } else { Ok(ready) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_raw_sys::general as l;

    #[test]
    fn layouts_are_linuxs() {
        assert_eq!(size_of::<PollFd>(), size_of::<l::pollfd>());
        assert_eq!(core::mem::offset_of!(PollFd, found), core::mem::offset_of!(l::pollfd, revents));
    }
}
