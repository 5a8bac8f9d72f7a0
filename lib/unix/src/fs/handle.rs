//! Handles of files (`name_to_handle_at`, `open_by_handle_at`): numbers by which who may read
//! everything opens a file again without a path.

use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use core::cell::RefCell;

use linux_raw_sys::general as l;

use super::filesystem::Kind;
use super::inode::Inode;
use super::open::{KNOWN, check_open, open_inode};
use super::spot::Spot;
use super::walk;
use crate::call::{Answer, Cx};
use crate::errno::Errno;

/// Bytes of a handle, and what kind they are.
const BYTES: u32 = 8;
const TYPE: i32 = 1;
/// More bytes no handle has (`MAX_HANDLE_SZ`).
const BYTES_MAX: u32 = 128;
/// Where a handle's bytes are behind its two numbers.
const HEAD: u64 = 8;

/// The inodes of a file system of which somebody has a handle.
#[derive(Default)]
pub(super) struct Handles {
    inodes: RefCell<BTreeMap<u64, Weak<Inode>>>,
}

impl Handles {
    fn add(&self, inode: &Rc<Inode>) {
        self.inodes.borrow_mut().insert(inode.number, Rc::downgrade(inode));
    }

    /// `inode` ends.
    pub(super) fn forget(&self, inode: &Inode) {
        let mut inodes = self.inodes.borrow_mut();
        let found = inodes.get(&inode.number);
        if found.is_some_and(|found| core::ptr::eq(found.as_ptr(), inode)) {
            inodes.remove(&inode.number);
        }
    }

    fn find(&self, number: u64) -> Option<Rc<Inode>> {
        self.inodes.borrow().get(&number).and_then(Weak::upgrade)
    }
}

/// `name_to_handle_at(fd, path, handle, mount, flags)`.
pub(super) fn name_to_handle_at(cx: &Cx) -> Answer {
    let (handle, mount, flags) = (cx.arg(2), cx.arg(3), cx.uint(4));
    if flags & !(l::AT_SYMLINK_FOLLOW | l::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let follow = if flags & l::AT_SYMLINK_FOLLOW != 0 { 0 } else { l::AT_SYMLINK_NOFOLLOW };
    let at_flags = follow | flags & l::AT_EMPTY_PATH;
    let inode = walk::inode_at(cx, cx.int(0), cx.arg(1), at_flags)?;
    if !matches!(inode.fs.kind, Kind::Tmpfs | Kind::Devtmpfs) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let room: u32 = cx.user().read(handle)?;
    if room > BYTES_MAX {
        return Err(Errno::EINVAL.into());
    }
    cx.user().write(mount, &(inode.fs.device as i32))?;
    cx.user().write(handle, &BYTES)?;
    if room < BYTES {
        return Err(Errno::EOVERFLOW.into());
    }
    cx.user().write(handle + 4, &TYPE)?;
    cx.user().write(handle + HEAD, &inode.number)?;
    inode.fs.handles.add(&inode);
    Ok(0)
}

/// `open_by_handle_at(fd of the mount, handle, flags)`.
pub(super) fn open_by_handle_at(cx: &Cx) -> Answer {
    let (mount, handle, flags) = (cx.int(0), cx.arg(1), cx.uint(2) & KNOWN);
    if !cx.process.credentials.borrow().may(l::CAP_DAC_READ_SEARCH) {
        return Err(Errno::EPERM.into());
    }
    let spot = match mount {
        l::AT_FDCWD => cx.process.place.borrow().directory(),
        fd => Spot::of(cx, &*cx.file_or_path(fd as u32)?),
    };
    let [bytes, kind] = cx.user().read::<[u32; 2]>(handle)?;
    if bytes == 0 || bytes > BYTES_MAX {
        return Err(Errno::EINVAL.into());
    }
    if bytes != BYTES || kind != TYPE as u32 {
        return Err(Errno::ESTALE.into());
    }
    let number: u64 = cx.user().read(handle + HEAD)?;
    let inode = spot.fs.handles.find(number).filter(|inode| inode.links.get() > 0);
    let inode = Spot { mount: spot.mount.clone(), inode: inode.ok_or(Errno::ESTALE)? };
    if inode.is_symlink() && flags & l::O_PATH == 0 {
        return Err(Errno::ELOOP.into());
    }
    if flags & l::O_DIRECTORY != 0 && !inode.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    if flags & l::O_PATH == 0 {
        check_open(&inode, &cx.process.credentials.borrow(), flags)?;
        let writes = flags & l::O_ACCMODE != l::O_RDONLY || flags & l::O_TRUNC != 0;
        inode.locks.leases.break_for(cx, writes, flags & l::O_NONBLOCK == 0)?;
    }
    let open = open_inode(cx, inode, None, flags & !(l::O_CREAT | l::O_EXCL))?;
    Ok(cx.add_file(open, flags & l::O_CLOEXEC != 0)?.into())
}
