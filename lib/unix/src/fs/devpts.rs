//! `/dev/pts`: one name per pseudo-terminal, as `tty` has them; and `ptmx`.

use alloc::rc::Rc;

use linux_raw_sys::general::S_IFCHR;

use super::device;
use super::inode::{Inode, Kind};
use super::listing::Item;
use super::time::Time;
use crate::call::Cx;
use crate::errno::Errno;

/// Group `tty`, to which terminals belong.
const TTY_GROUP: u32 = 5;
/// Inode numbers of terminals are their own plus this.
const FIRST_NUMBER: u64 = 3;

/// The inode of a new pseudo-terminal (`makedev` number) that belongs to user `owner.0`.
///
/// # Errors
/// `ENOSPC`.
pub fn new_pty_inode(cx: &Cx, number: u64, owner: (u32, u32)) -> Result<Rc<Inode>, Errno> {
    let now = Time::now(cx.unix);
    let fs = &cx.unix.fs.pts;
    fs.new_number()?;
    let kind = Kind::Character(number);
    let inode = FIRST_NUMBER + device::minor(number);
    Ok(Inode::with_number(fs, inode, kind, 0o620, (owner.0, TTY_GROUP), now))
}

/// What `name` is in `/dev/pts`.
pub(super) fn lookup(cx: &Cx, name: &[u8]) -> Result<Option<Rc<Inode>>, Errno> {
    if name == b"ptmx" {
        let now = Time::now(cx.unix);
        let kind = Kind::Character(device::number(5, 2));
        let fs = &cx.unix.fs.pts;
        fs.new_number()?;
        return Ok(Some(Inode::with_number(fs, 2, kind, 0, (0, 0), now)));
    }
    let number = core::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    let canonical = name.len() == 1 || name.first() != Some(&b'0') && name.first() != Some(&b'+');
    let terminals = &cx.unix.terminals;
    match number.filter(|_| canonical).and_then(|number| terminals.pty(number)) {
        Some(tty) => Ok(Some(terminals.pty_inode(cx, &tty)?)),
        None => Ok(None),
    }
}

/// The entry at or behind `position`.
pub(super) fn list(cx: &Cx, position: u64) -> Option<Item> {
    let item = |name: &str, number, next| Item {
        name: name.as_bytes().into(),
        number,
        file_type: S_IFCHR,
        next,
    };
    if position == 2 {
        return Some(item("ptmx", 2, 3));
    }
    let first = u32::try_from(position.saturating_sub(3)).ok()?;
    let number = cx.unix.terminals.pty_from(first)?;
    let name = alloc::format!("{number}");
    Some(item(&name, FIRST_NUMBER + u64::from(number), u64::from(number) + 4))
}
