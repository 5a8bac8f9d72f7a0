//! `/proc/PID/fd` and `fdinfo`.

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;

use super::super::spot::Spot;
use super::{What, check_close_look, find_process};
use crate::call::Cx;
use crate::errno::Errno;
use crate::file::Open;
use crate::process::Pid;
use crate::stream::inotify;

/// A link's or file's inode, and its permissions, if the descriptor is there.
pub(super) fn find(cx: &Cx, pid: Pid, fd: u32, info: bool) -> Option<(What, u32)> {
    let open = find_process(cx, pid)?.files.borrow().get(fd)?;
    if info {
        return Some((What::DescriptorInfo(pid, fd), 0o444));
    }
    let readable = if open.can_read() || open.is_path() { 0o500 } else { 0o100 };
    let writable = if open.can_write() { 0o200 } else { 0 };
    Some((What::Descriptor(pid, fd), readable | writable))
}

/// What a descriptor of a process is.
pub(super) fn open_file(cx: &Cx, pid: Pid, fd: u32) -> Result<Rc<Open>, Errno> {
    let process = find_process(cx, pid).ok_or(Errno::ENOENT)?;
    check_close_look(cx, &process)?;
    let open = process.files.borrow().get(fd);
    open.ok_or(Errno::ENOENT)
}

/// The text of a file in `fdinfo`: a record about any file, and those of an inotify's watches
/// ([`super::records::TellOfAll`]).
pub(super) fn info(
    cx: &Cx,
    (pid, fd): (Pid, u32),
    open: &Open,
    from: u64,
    text: &mut Vec<u8>,
) -> Option<u64> {
    if from != 0 {
        return inotify::told(open, from, text);
    }
    let process = find_process(cx, pid)?;
    let close = process.files.borrow().close_on_exec(fd) == Some(true);
    let close = if close { linux_raw_sys::general::O_CLOEXEC } else { 0 };
    let inode = open.file.inode();
    let told = format!(
        "pos:\t{}\nflags:\t0{:o}\nmnt_id:\t{}\nino:\t{}\n",
        open.position.get(),
        open.flags.get() | close,
        Spot::of(cx, open).mount.id,
        inode.number
    );
    text.extend_from_slice(told.as_bytes());
    Some(1)
}
