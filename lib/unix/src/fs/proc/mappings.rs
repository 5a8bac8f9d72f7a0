//! `maps` and `smaps` of a process.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::call::Cx;
use crate::machine::Access;
use crate::memory::PAGE;
use crate::mm::AddressSpace;
use crate::mm::area::{Area, AreaFlags, Backing};
use crate::mm::space::Layout;

/// Room for an area's line of `maps` while the text grows, and for what `smaps` tells of it.
pub(super) const LINE_BYTES: usize = 512;
pub(super) const AREA_BYTES: usize = 2048;

/// `/proc/PID/maps`.
pub(super) fn maps(cx: &Cx, space: &AddressSpace) -> Vec<u8> {
    let layout = space.layout.get();
    space.areas().iter().flat_map(|area| line(cx, area, layout)).collect()
}

/// `/proc/PID/smaps`.
pub(super) fn smaps(cx: &Cx, space: &AddressSpace) -> Vec<u8> {
    let layout = space.layout.get();
    let mut text = Vec::new();
    for area in space.areas() {
        text.extend(line(cx, &area, layout));
        text.extend(figures(cx, space, &area).into_bytes());
    }
    text
}

/// The line of an area.
fn line(cx: &Cx, area: &Area, layout: Layout) -> Vec<u8> {
    let letter = |access, letter| if area.access.contains(access) { letter } else { '-' };
    let shared = area.flags.contains(AreaFlags::SHARED);
    let (name, inode, device) = origin(cx, area, layout);
    let offset = if matches!(area.backing, Backing::File { .. }) { area.offset } else { 0 };
    let mut line = format!(
        "{:08x}-{:08x} {}{}{}{} {offset:08x} {:02x}:{:02x} {inode}",
        area.start,
        area.end,
        letter(Access::READ, 'r'),
        letter(Access::WRITE, 'w'),
        letter(Access::EXECUTE, 'x'),
        if shared { 's' } else { 'p' },
        device >> 8,
        device & 0xff,
    )
    .into_bytes();
    line.push(b' ');
    if !name.is_empty() {
        line.resize(line.len().max(73), b' ');
        line.extend_from_slice(&name);
    }
    line.push(b'\n');
    line
}

/// What of an area is there, and whose it is too. Who else has a page is counted by frames: the file
/// that it belongs to is one of them. Nobody knows which pages were written.
fn figures(cx: &Cx, space: &AddressSpace, area: &Area) -> String {
    let (mut there, mut alone, mut part) = (0, 0, 0);
    space.each_present(area.start, area.end, |frame| {
        let count = u64::from(cx.unix.memory.count(frame).max(1));
        there += PAGE as u64;
        part += PAGE as u64 / count;
        alone += if count == 1 { PAGE as u64 } else { 0 };
    });
    let locked = if area.flags.contains(AreaFlags::LOCKED) { part } else { 0 };
    let anonymous = if matches!(area.backing, Backing::Anonymous) { there } else { 0 };
    let mut text = String::new();
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
        let _ = writeln!(text, "{:<16}{:>8} kB", format!("{name}:"), bytes / 1024);
    }
    let _ = writeln!(text, "THPeligible:           0\nVmFlags:{} ", flags(area));
    text
}

/// The flags of an area, two letters each.
fn flags(area: &Area) -> String {
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
    all.iter().filter(|(_, set)| *set).fold(String::new(), |text, (name, _)| text + " " + name)
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
