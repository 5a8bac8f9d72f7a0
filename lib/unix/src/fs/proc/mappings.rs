//! `maps`, `smaps` and `numa_maps` of a process. Who has a thousand areas has a text of 700 KB: lines are put together here rather than
//! by the language's formatter, which takes ten times as long.

use alloc::vec::Vec;

use crate::call::Cx;
use crate::machine::Access;
use crate::memory::PAGE;
use crate::mm::AddressSpace;
use crate::mm::area::{Area, AreaFlags, Backing};
use crate::mm::policy::Policy;
use crate::mm::space::Layout;

/// A record of `/proc/PID/maps` ([`super::records::Tell`]).
pub(super) fn maps(cx: &Cx, space: &AddressSpace, from: u64, text: &mut Vec<u8>) -> Option<u64> {
    let area = space.area_from(from)?;
    line(text, cx, &area, space.layout.get());
    Some(area.end)
}

/// A record of `/proc/PID/smaps`.
pub(super) fn smaps(cx: &Cx, space: &AddressSpace, from: u64, text: &mut Vec<u8>) -> Option<u64> {
    let area = space.area_from(from)?;
    line(text, cx, &area, space.layout.get());
    figures(text, cx, space, &area);
    Some(area.end)
}

/// A record of `/proc/PID/numa_maps`.
pub(super) fn numa_maps(
    cx: &Cx,
    space: &AddressSpace,
    from: u64,
    text: &mut Vec<u8>,
) -> Option<u64> {
    let area = space.area_from(from)?;
    let (name, ..) = origin(cx, &area, space.layout.get());
    let (policy, nodes) = Policy::told(area.flags);
    hexadecimal(text, area.start, 8);
    for part in [" ", policy, nodes] {
        text.extend_from_slice(part.as_bytes());
    }
    match (&area.backing, name.as_slice()) {
        (Backing::File { .. } | Backing::Shared(_), path) => {
            text.extend_from_slice(b" file=");
            text.extend_from_slice(path);
        }
        (_, b"[heap]") => text.extend_from_slice(b" heap"),
        (_, b"[stack]") => text.extend_from_slice(b" stack"),
        _ => {}
    }
    let mut there = 0;
    space.each_present(area.start, area.end, |_| there += 1);
    if there > 0 {
        let kind = match area.backing {
            Backing::Anonymous => " anon=",
            _ => " mapped=",
        };
        for part in [kind, " N0="] {
            text.extend_from_slice(part.as_bytes());
            number(text, there, 10, (1, b' '));
        }
        text.extend_from_slice(b" kernelpagesize_kB=4");
    }
    text.push(b'\n');
    Some(area.end)
}

/// Appends `value` in the base, with at least so many digits, of which those in front are `fill`.
fn number(text: &mut Vec<u8>, value: u64, base: u64, (width, fill): (usize, u8)) {
    let mut digits = [fill; 20];
    let (mut at, mut left) = (digits.len(), value);
    while left > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b"0123456789abcdef"[(left % base) as usize];
        left /= base;
    }
    text.extend_from_slice(&digits[at.min(digits.len() - width)..]);
}

fn hexadecimal(text: &mut Vec<u8>, value: u64, width: usize) {
    number(text, value, 16, (width, b'0'));
}

/// Appends the line of an area.
fn line(text: &mut Vec<u8>, cx: &Cx, area: &Area, layout: Layout) {
    let begin = text.len();
    let letter = |access, letter| if area.access.contains(access) { letter } else { b'-' };
    let shared = area.flags.contains(AreaFlags::SHARED);
    let (name, inode, device) = origin(cx, area, layout);
    let offset = if matches!(area.backing, Backing::File { .. }) { area.offset } else { 0 };
    hexadecimal(text, area.start, 8);
    text.push(b'-');
    hexadecimal(text, area.end, 8);
    text.extend_from_slice(&[
        b' ',
        letter(Access::READ, b'r'),
        letter(Access::WRITE, b'w'),
        letter(Access::EXECUTE, b'x'),
        if shared { b's' } else { b'p' },
        b' ',
    ]);
    hexadecimal(text, offset, 8);
    text.push(b' ');
    hexadecimal(text, device >> 8, 2);
    text.push(b':');
    hexadecimal(text, device & 0xff, 2);
    text.push(b' ');
    number(text, inode, 10, (1, b' '));
    text.push(b' ');
    if !name.is_empty() {
        text.resize(text.len().max(begin + 73), b' ');
        text.extend_from_slice(&name);
    }
    text.push(b'\n');
}

/// What of an area is there, and whose it is too. Who else has a page is counted by frames: the file
/// that it belongs to is one of them. Nobody knows which pages were written.
fn figures(text: &mut Vec<u8>, cx: &Cx, space: &AddressSpace, area: &Area) {
    let (mut there, mut alone, mut part) = (0, 0, 0);
    space.each_present(area.start, area.end, |frame| {
        let count = u64::from(cx.unix.memory.count(frame).max(1));
        there += PAGE as u64;
        part += PAGE as u64 / count;
        alone += if count == 1 { PAGE as u64 } else { 0 };
    });
    let locked = if area.flags.contains(AreaFlags::LOCKED) { part } else { 0 };
    let anonymous = if matches!(area.backing, Backing::Anonymous) { there } else { 0 };
    for (name, bytes) in [
        ("Size", area.len()),
        ("KernelPageSize", PAGE as u64),
        ("MMUPageSize", PAGE as u64),
        ("Rss", there),
        ("Pss", part),
        ("Shared_Clean", 0),
        ("Shared_Dirty", there - alone),
        ("Private_Clean", 0),
        ("Private_Dirty", alone),
        ("Referenced", there),
        ("Anonymous", anonymous),
        ("LazyFree", 0),
        ("AnonHugePages", 0),
        ("ShmemPmdMapped", 0),
        ("FilePmdMapped", 0),
        ("Shared_Hugetlb", 0),
        ("Private_Hugetlb", 0),
        ("Swap", 0),
        ("SwapPss", 0),
        ("Locked", locked),
    ] {
        let begin = text.len();
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        text.resize(begin + 16, b' ');
        number(text, bytes / 1024, 10, (8, b' '));
        text.extend_from_slice(b" kB\n");
    }
    text.extend_from_slice(b"THPeligible:           0\nVmFlags:");
    flags(text, area);
    text.extend_from_slice(b" \n");
}

/// Appends the flags of an area, two letters each.
fn flags(text: &mut Vec<u8>, area: &Area) {
    let has = |flag| area.flags.contains(flag);
    let (is, may) = (|access| area.access.contains(access), |access| area.may.contains(access));
    let all = [
        ("rd", is(Access::READ)),
        ("wr", is(Access::WRITE)),
        ("ex", is(Access::EXECUTE)),
        ("sh", has(AreaFlags::SHARED)),
        ("mr", may(Access::READ)),
        ("mw", may(Access::WRITE)),
        ("me", may(Access::EXECUTE)),
        ("ms", has(AreaFlags::SHARED)),
        ("gd", has(AreaFlags::GROWS_DOWN)),
        ("lo", has(AreaFlags::LOCKED)),
        ("dc", has(AreaFlags::DONT_FORK)),
        ("dd", has(AreaFlags::DONT_DUMP)),
        ("wf", has(AreaFlags::WIPE_ON_FORK)),
        ("nr", has(AreaFlags::NO_RESERVE)),
    ];
    for (name, _) in all.iter().filter(|(_, set)| *set) {
        text.push(b' ');
        text.extend_from_slice(name.as_bytes());
    }
}

/// Name, inode number and device of what an area shows.
fn origin(cx: &Cx, area: &Area, layout: Layout) -> (Vec<u8>, u64, u64) {
    match &area.backing {
        Backing::File { open, inode } => {
            (crate::fs::path_of(cx.unix, open), inode.number, inode.fs.device)
        }
        Backing::Special(name, _) => (name.as_bytes().to_vec(), 0, 0),
        Backing::Shared(_) => (b"/dev/zero (deleted)".to_vec(), 0, 1),
        Backing::Anonymous if area.flags.contains(AreaFlags::GROWS_DOWN) => {
            (b"[stack]".to_vec(), 0, 0)
        }
        Backing::Anonymous if area.start < layout.heap.1 && area.end > layout.heap.0 => {
            (b"[heap]".to_vec(), 0, 0)
        }
        Backing::Anonymous => (Vec::new(), 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_formatter_writes_them() {
        for value in [0, 7, 10, 255, 256, 99_999_999, 100_000_000, u64::MAX >> 16, u64::MAX] {
            let written = |base, shape| {
                let mut text = Vec::new();
                number(&mut text, value, base, shape);
                alloc::string::String::from_utf8(text).unwrap()
            };
            assert_eq!(written(16, (8, b'0')), alloc::format!("{value:08x}"));
            assert_eq!(written(16, (2, b'0')), alloc::format!("{value:02x}"));
            assert_eq!(written(10, (8, b' ')), alloc::format!("{value:>8}"));
            assert_eq!(written(10, (1, b' ')), alloc::format!("{value}"));
        }
    }
}
