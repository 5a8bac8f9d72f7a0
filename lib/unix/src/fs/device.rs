//! The simple devices of `/dev`: null, zero, full, random, urandom; numbers of the others.

use linux_raw_sys::ioctl::RNDGETENTCNT;

use super::regular::put_zeroes;
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Sink, Source};

/// Number of a device (`makedev`), for majors below 4,096.
#[must_use]
pub const fn number(major: u64, minor: u64) -> u64 {
    major << 8 | minor & 0xff | (minor & 0xf_ff00) << 12
}

/// Minor part of a device number.
#[must_use]
pub const fn minor(device: u64) -> u64 {
    device & 0xff | device >> 12 & 0xf_ff00
}

/// Major part of a device number.
#[must_use]
pub const fn major(device: u64) -> u64 {
    (device >> 8) & 0xfff
}

const NULL: u64 = number(1, 3);
const ZERO: u64 = number(1, 5);
const FULL: u64 = number(1, 7);
const RANDOM: u64 = number(1, 8);
const URANDOM: u64 = number(1, 9);
/// The log ([`crate::log::kmsg`]).
pub const KMSG: u64 = number(1, 11);
/// What is told of the randomness there is.
const ENTROPY_BITS: u32 = 256;

/// Name, number and permissions of the devices that `/dev` begins with.
pub const DEVICES: [(&str, u64, u32); 10] = [
    ("null", NULL, 0o666),
    ("zero", ZERO, 0o666),
    ("full", FULL, 0o666),
    ("random", RANDOM, 0o666),
    ("urandom", URANDOM, 0o666),
    ("kmsg", KMSG, 0o644),
    ("tty", number(5, 0), 0o666),
    ("console", number(5, 1), 0o600),
    ("ptmx", number(5, 2), 0o666),
    ("ttyS0", number(4, 64), 0o660),
];

/// Whether it is one of this module's.
#[must_use]
pub fn is_simple(device: u64) -> bool {
    [NULL, ZERO, FULL, RANDOM, URANDOM].contains(&device)
}

/// Whether it is a terminal, which `tty` opens.
#[must_use]
pub fn is_terminal(device: u64) -> bool {
    matches!(major(device), 4 | 5 | 136..=143)
}

/// Reads from a device.
pub(super) fn read(cx: &Cx, device: u64, sink: &mut Sink) -> Result<usize, Stop> {
    let room = sink.room();
    match device {
        NULL => Ok(0),
        ZERO | FULL => Ok(put_zeroes(sink, room)?),
        RANDOM | URANDOM => random(cx, sink, room),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn random(cx: &Cx, sink: &mut Sink, room: usize) -> Result<usize, Stop> {
    let mut done = 0;
    while done < room {
        let mut bytes = [0; 256];
        let len = bytes.len().min(room - done);
        cx.unix.machine.random(&mut bytes[..len]);
        match sink.put(&bytes[..len]) {
            Ok(put) => done += put,
            Err(errno) if done == 0 => return Err(errno.into()),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// A control request: how much randomness there is.
pub(super) fn ioctl(cx: &Cx, device: u64, request: u32, argument: u64) -> Result<u64, Stop> {
    if !matches!(device, RANDOM | URANDOM) || request != RNDGETENTCNT {
        return Err(Errno::ENOTTY.into());
    }
    cx.user().write(argument, &ENTROPY_BITS)?;
    Ok(0)
}

/// Writes to a device.
pub(super) fn write(device: u64, source: &mut Source) -> Result<usize, Stop> {
    match device {
        NULL | ZERO | RANDOM | URANDOM => Ok(source.left()),
        FULL => Err(Errno::ENOSPC.into()),
        _ => Err(Errno::EINVAL.into()),
    }
}
