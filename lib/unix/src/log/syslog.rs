//! `syslog`: the log by a call, as `dmesg` reads it.

use linux_raw_sys::general as l;

use super::{BYTES, Record};
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[partial(
    l::__NR_syslog,
    "syslog",
    syslog,
    "what other tasks print is not in the log; the console's level is without effect",
)];

/// What is wanted (`SYSLOG_ACTION_`).
const READ: i32 = 2;
const READ_ALL: i32 = 3;
const READ_CLEAR: i32 = 4;
const CLEAR: i32 = 5;
const CONSOLE_LEVEL: i32 = 8;
const SIZE_UNREAD: i32 = 9;
const SIZE_BUFFER: i32 = 10;

/// Whether the caller may read the log, which says what others did.
pub(super) fn may(cx: &Cx) -> Result<(), Errno> {
    let who = cx.process.credentials.borrow();
    if who.may(l::CAP_SYSLOG) || who.may(l::CAP_SYS_ADMIN) { Ok(()) } else { Err(Errno::EPERM) }
}

fn syslog(cx: &Cx) -> Answer {
    let (action, buffer, len) = (cx.int(0), cx.arg(1), cx.int(2));
    may(cx)?;
    let log = &cx.unix.log;
    match action {
        READ..=READ_CLEAR if buffer == 0 || len < 0 => Err(Errno::EINVAL.into()),
        READ..=READ_CLEAR if len == 0 => Ok(0),
        READ => take(cx, buffer, len as usize),
        READ_ALL | READ_CLEAR => {
            let lines = log.last(log.cleared.get(), len as usize);
            cx.user().write_bytes(buffer, &lines)?;
            if action == READ_CLEAR {
                log.cleared.set(log.next.get());
            }
            Ok(lines.len() as u64)
        }
        CLEAR => {
            log.cleared.set(log.next.get());
            Ok(0)
        }
        CONSOLE_LEVEL if !(1..=8).contains(&len) => Err(Errno::EINVAL.into()),
        SIZE_UNREAD => {
            let (first, part) = position(cx);
            let lines = (first..log.next.get())
                .filter_map(|number| log.with(number, |record| record.line().len()));
            Ok((lines.sum::<usize>() - part) as u64)
        }
        SIZE_BUFFER => Ok(BYTES as u64),
        // Opening and closing mean nothing, and the console shows what it shows.
        0..=CONSOLE_LEVEL => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// The record that is taken next, and how much of it is; one that is gone counts as taken.
fn position(cx: &Cx) -> (u64, usize) {
    let log = &cx.unix.log;
    let (number, part) = log.taken.get();
    if number < log.oldest() { (log.oldest(), 0) } else { (number, part) }
}

/// Takes lines that nobody took before; waits for the first.
fn take(cx: &Cx, buffer: u64, len: usize) -> Answer {
    let log = &cx.unix.log;
    let (mut number, mut part) = position(cx);
    let mut done = 0;
    while done < len {
        let Some(line) = log.with(number, Record::line) else { break };
        let rest = &line.as_bytes()[part..];
        let piece = rest.len().min(len - done);
        if done > 0 && piece < rest.len() {
            break;
        }
        cx.user().write_bytes(buffer.wrapping_add(done as u64), &rest[..piece])?;
        done += piece;
        (number, part) = if piece < rest.len() { (number, part + piece) } else { (number + 1, 0) };
        log.taken.set((number, part));
    }
    if done == 0 { Err(cx.block_on(&log.came)) } else { Ok(done as u64) }
}
