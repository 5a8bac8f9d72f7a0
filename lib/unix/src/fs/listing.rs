//! getdents, getdents64.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general::{IN_ACCESS, O_NOATIME, S_IFDIR};

use super::inode::{Inode, Kind};
use super::{devpts, proc};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::file::Open;

/// Records are gathered in the server up to this many bytes a call.
const BUFFER_MAX: usize = 32 * 1024;

/// One entry of a directory.
pub(super) struct Item {
    /// Name.
    pub name: Rc<[u8]>,
    /// Inode number.
    pub number: u64,
    /// `S_IFMT` part of the mode.
    pub file_type: u32,
    /// Position of the next one.
    pub next: u64,
}

/// One entry, as a record shows it.
struct Record<'a> {
    name: &'a [u8],
    number: u64,
    file_type: u32,
    next: u64,
}

/// Layout of the records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// `struct linux_dirent`: the type is the record's last byte.
    Old,
    /// `struct linux_dirent64`: the type is before the name.
    New,
}

/// Bytes before the name.
const fn header(layout: Layout) -> usize {
    match layout {
        Layout::Old => 18,
        Layout::New => 19,
    }
}

/// `getdents(fd, buffer, size)`.
pub(super) fn getdents(cx: &Cx) -> Answer {
    list(cx, Layout::Old)
}

/// `getdents64(fd, buffer, size)`.
pub(super) fn getdents64(cx: &Cx) -> Answer {
    list(cx, Layout::New)
}

fn list(cx: &Cx, layout: Layout) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let inode = open.file.inode();
    if !inode.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    if inode.directory().is_some_and(super::directory::Directory::is_removed) {
        return Err(Errno::ENOENT.into());
    }
    let size = (cx.uint(2) as usize).min(BUFFER_MAX);
    let mut records = Vec::with_capacity(size.min(4096));
    let mut position = open.position.get();
    // The two that every directory has.
    while position < 2 {
        let (name, inode) = match position {
            0 => (&b"."[..], inode.clone()),
            _ => (&b".."[..], inode.parent().unwrap_or_else(|| inode.clone())),
        };
        let record = Record { name, number: inode.number, file_type: S_IFDIR, next: position + 1 };
        if !append(&mut records, &record, layout, size) {
            return finish(cx, &open, &inode, &records, position);
        }
        position += 1;
    }
    while let Some(item) = next(cx, &inode, position)? {
        let Item { name, number, file_type, next } = item;
        let record = Record { name: &name, number, file_type, next };
        if !append(&mut records, &record, layout, size) {
            if records.is_empty() {
                return Err(Errno::EINVAL.into());
            }
            break;
        }
        position = next;
    }
    finish(cx, &open, &inode, &records, position)
}

/// Gives the program the records; the next ones are those from `position` on.
fn finish(cx: &Cx, open: &Open, inode: &Inode, records: &[u8], position: u64) -> Answer {
    if records.is_empty() && position < 2 {
        return Err(Errno::EINVAL.into());
    }
    cx.user().write_bytes(cx.arg(1), records)?;
    open.position.set(position);
    if open.flags.get() & O_NOATIME == 0 {
        inode.touch_accessed(cx.unix);
    }
    inode.happened(cx.unix, IN_ACCESS);
    Ok(records.len() as u64)
}

/// The entry at or behind `position`.
fn next(cx: &Cx, inode: &Rc<Inode>, position: u64) -> Result<Option<Item>, Errno> {
    match &inode.kind {
        Kind::Directory(directory) => Ok(directory.next(position).map(|entry| Item {
            name: entry.name,
            number: entry.inode.number,
            file_type: entry.inode.file_type(),
            next: entry.next,
        })),
        Kind::Proc(node) => proc::list(cx, node, position),
        Kind::Pts => Ok(devpts::list(cx, position)),
        _ => Err(Errno::ENOTDIR),
    }
}

/// Appends a record, if it fits.
fn append(records: &mut Vec<u8>, item: &Record, layout: Layout, size: usize) -> bool {
    let kind = (item.file_type >> 12) as u8;
    let with_zero = header(layout) + item.name.len() + 1;
    let len = (with_zero + usize::from(layout == Layout::Old)).next_multiple_of(8);
    if records.len() + len > size {
        return false;
    }
    let start = records.len();
    records.extend_from_slice(&item.number.to_ne_bytes());
    records.extend_from_slice(&item.next.to_ne_bytes());
    records.extend_from_slice(&(len as u16).to_ne_bytes());
    if layout == Layout::New {
        records.push(kind);
    }
    records.extend_from_slice(item.name);
    records.resize(start + len, 0);
    if layout == Layout::Old
        && let Some(last) = records.last_mut()
    {
        *last = kind;
    }
    true
}
