//! A file opened by its path: regular files, directories, simple devices, `/proc`.
//! (Pipes, sockets and terminals are files of other modules.)

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::any::Any;
use core::cell::{Cell, OnceCell, RefCell};

use linux_raw_sys::general as linux;

use super::directory::Name;
use super::inode::{Inode, Kind};
use super::mount_space::MountSpace;
use super::mounts::Mount;
use super::proc::records::Records;
use super::regular::Regular;
use super::spot::Spot;
use super::{device, proc};
use crate::account::Charge;
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::process::{Credentials, namespace};
use crate::unix::Unix;
use crate::wait::WaitQueue;

/// What a file of `/proc` has said, and what it costs to keep that.
type Text = Rc<(Vec<u8>, Charge)>;

/// A file opened by its path.
pub struct TreeFile {
    inode: Rc<Inode>,
    /// The mount in which it was found.
    mount: Rc<Mount>,
    /// The directory and the name under which it was found, unless it is a directory itself.
    location: Option<(Rc<Inode>, Name)>,
    /// It counts as a writer of its inode.
    writes: bool,
    /// What a file of `/proc` says, since it was first read.
    text: RefCell<Option<Text>>,
    /// What one about areas has said last.
    records: RefCell<Option<Box<Records>>>,
    /// Of a list of mounts: how often they had changed when somebody looked whether they had.
    seen: Cell<u64>,
    /// Who has opened it, where that matters to who writes.
    opener: OnceCell<Credentials>,
}

impl TreeFile {
    /// Opens what is at `spot`, found at `location`; `writes` if for writing (or reading and writing).
    ///
    /// # Errors
    /// `ETXTBSY`.
    pub fn new(
        spot: Spot,
        location: Option<(Rc<Inode>, Name)>,
        writes: bool,
    ) -> Result<Rc<Self>, Errno> {
        let Spot { mount, inode } = spot;
        let writes = writes && inode.is_regular();
        if writes {
            inode.begin_write()?;
        }
        inode.locks.leases.count(true);
        Ok(Rc::new(Self {
            inode,
            mount,
            location,
            writes,
            text: RefCell::default(),
            records: RefCell::default(),
            seen: Cell::new(0),
            opener: OnceCell::new(),
        }))
    }

    /// Where it was found.
    #[must_use]
    pub fn location(&self) -> Option<&(Rc<Inode>, Name)> {
        self.location.as_ref()
    }

    /// The caller has opened it.
    pub(super) fn opened_by(&self, cx: &Cx) {
        if let Kind::Proc(node) = &self.inode.kind
            && node.is_owned()
        {
            let _ = self.opener.set(cx.process.credentials.borrow().clone());
        }
    }

    /// The mount in which it was found.
    #[must_use]
    pub fn mount(&self) -> &Rc<Mount> {
        &self.mount
    }

    /// Those who watch it hear of `mask`.
    #[inline(always)]
    pub(super) fn happened(&self, unix: Option<&Unix>, mask: u32) {
        self.inode.happened_at(unix, self.location.as_ref(), mask);
    }

    /// The mounts that it lists.
    fn listed_mounts(&self, cx: &Cx) -> Option<Rc<MountSpace>> {
        let Kind::Proc(node) = &self.inode.kind else { return None };
        proc::mounts::of(cx, node)
    }

    /// Mounts that have changed by now are no news.
    pub(super) fn look_at_mounts(&self, cx: &Cx) {
        if let Some(space) = self.listed_mounts(cx) {
            self.seen.set(space.changes());
        }
    }

    /// Reads from what the file said when it was last read from its beginning.
    #[inline(never)]
    fn read_text(
        &self,
        cx: &Cx,
        node: &proc::Node,
        sink: &mut Sink,
        offset: u64,
    ) -> Result<usize, Stop> {
        let text = self.text.borrow().clone().filter(|_| offset != 0);
        let text = match text {
            Some(text) => text,
            None => {
                let text = proc::read(cx, node)?;
                let charge = cx.pay(text.capacity())?;
                Rc::new((text, charge))
            }
        };
        drop(self.text.replace(Some(text.clone())));
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.0.len());
        Ok(sink.put(&text.0[start..])?)
    }

    fn write_regular(
        &self,
        cx: &Cx,
        regular: &Regular,
        source: &mut Source,
        offset: u64,
    ) -> Result<usize, Stop> {
        let left = source.left() as u64;
        if left == 0 {
            return Ok(0);
        }
        let seals = regular.seals.get();
        let grows = offset.saturating_add(left) > regular.size();
        if seals & (linux::F_SEAL_WRITE | linux::F_SEAL_FUTURE_WRITE) != 0
            || grows && seals & linux::F_SEAL_GROW != 0
        {
            return Err(Errno::EPERM.into());
        }
        let limit = size_limit(cx, offset)?;
        drop_set_id(cx, &self.inode);
        let wrote = regular.write(&self.inode.fs, source, offset, limit)?;
        self.inode.touch_modified(cx.unix);
        if wrote > 0 {
            self.happened(Some(cx.unix), linux::IN_MODIFY);
        }
        Ok(wrote)
    }
}

/// The largest size a write at `offset` may make of a file.
///
/// # Errors
/// `EFBIG`, and SIGXFSZ, if nothing may be written.
pub(super) fn size_limit(cx: &Cx, offset: u64) -> Result<u64, Errno> {
    let limit = cx.process.limits.borrow()[linux::RLIMIT_FSIZE as usize].0;
    if offset >= limit {
        super::size_exceeded(cx);
        return Err(Errno::EFBIG);
    }
    Ok(limit)
}

/// Contents that somebody without privileges changes lose their set-id bits.
pub(super) fn drop_set_id(cx: &Cx, inode: &Inode) {
    let mode = inode.mode.get();
    if mode & (linux::S_ISUID | linux::S_ISGID) != 0
        && !cx.process.credentials.borrow().may(linux::CAP_FSETID)
    {
        inode.mode.set(without_set_id(mode));
    }
}

/// A mode without set-user-id, and without set-group-id if the group may execute.
pub(super) fn without_set_id(mode: u32) -> u32 {
    let group = if mode & linux::S_IXGRP != 0 { linux::S_ISGID } else { 0 };
    mode & !(linux::S_ISUID | group)
}

impl File for TreeFile {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, offset: u64) -> Result<usize, Stop> {
        match &self.inode.kind {
            Kind::Regular(regular) => {
                let read = regular.read(&self.inode.fs, sink, offset)?;
                if open.flags.get() & linux::O_NOATIME == 0 {
                    self.inode.touch_accessed(cx.unix);
                }
                if read > 0 {
                    self.happened(Some(cx.unix), linux::IN_ACCESS);
                }
                Ok(read)
            }
            Kind::Character(device) => device::read(cx, *device, sink),
            Kind::Proc(node) if proc::memory::is_memory(node) => {
                proc::memory::read(cx, node, sink, offset)
            }
            Kind::Proc(node) if proc::records::are_in(node) => {
                proc::records::read(cx, node, &self.records, (sink, offset))
            }
            Kind::Proc(node) if !self.inode.is_directory() => {
                self.read_text(cx, node, sink, offset)
            }
            Kind::Directory(_) | Kind::Pts | Kind::Proc(_) => Err(Errno::EISDIR.into()),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn write(&self, cx: &Cx, _: &Open, source: &mut Source, offset: u64) -> Result<usize, Stop> {
        match &self.inode.kind {
            Kind::Regular(regular) => self.write_regular(cx, regular, source, offset),
            Kind::Character(device) => device::write(*device, source),
            Kind::Proc(node) => proc::write(cx, node, self.opener.get(), source, offset),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn ioctl(&self, cx: &Cx, _: &Open, request: u32, argument: u64) -> Result<u64, Stop> {
        match &self.inode.kind {
            Kind::Character(device) => device::ioctl(cx, *device, request, argument),
            Kind::Namespace(one) => namespace::ioctl(cx, one, request, argument),
            _ => Err(Errno::ENOTTY.into()),
        }
    }

    fn poll(&self, cx: &Cx) -> Events {
        let mut events = Events::READABLE | Events::WRITABLE;
        if let Some(space) = self.listed_mounts(cx) {
            let changes = space.changes();
            events.set(Events::PRI | Events::ERR, self.seen.replace(changes) != changes);
        }
        events
    }

    fn watch(&self, cx: &Cx, _: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        if let Some(space) = self.listed_mounts(cx) {
            visit(&space.changed);
        }
    }

    fn can_wait(&self) -> bool {
        matches!(&self.inode.kind, Kind::Proc(node) if proc::mounts::is_list(node))
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn has_position(&self) -> bool {
        true
    }

    fn stays_at_start(&self) -> bool {
        matches!(self.inode.kind, Kind::Character(_))
    }

    fn size(&self) -> u64 {
        if self.inode.is_directory() { 0 } else { self.inode.size() }
    }

    fn seek_hole(&self, offset: u64, hole: bool) -> u64 {
        let size = self.inode.size();
        self.inode.regular().and_then(|regular| regular.seek(offset, !hole)).unwrap_or(size)
    }

    fn closed(&self, open: &Open) {
        let writes = open.can_write();
        self.happened(None, if writes { linux::IN_CLOSE_WRITE } else { linux::IN_CLOSE_NOWRITE });
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for TreeFile {
    fn drop(&mut self) {
        self.inode.locks.leases.count(false);
        if self.writes {
            self.inode.end_write();
        }
    }
}

/// A descriptor that only names its file (`O_PATH`).
pub struct PathFile {
    spot: Spot,
    location: Option<(Rc<Inode>, Name)>,
}

impl PathFile {
    /// Names what is at `spot`, found at `location`.
    #[must_use]
    pub fn new(spot: Spot, location: Option<(Rc<Inode>, Name)>) -> Rc<Self> {
        Rc::new(Self { spot, location })
    }

    /// The mount in which it was found.
    #[must_use]
    pub fn mount(&self) -> &Rc<Mount> {
        &self.spot.mount
    }

    /// Where it was found.
    #[must_use]
    pub fn location(&self) -> Option<&(Rc<Inode>, Name)> {
        self.location.as_ref()
    }
}

impl File for PathFile {
    fn read(&self, _: &Cx, _: &Open, _: &mut Sink, _: u64) -> Result<usize, Stop> {
        Err(Errno::EBADF.into())
    }

    fn write(&self, _: &Cx, _: &Open, _: &mut Source, _: u64) -> Result<usize, Stop> {
        Err(Errno::EBADF.into())
    }

    fn inode(&self) -> Rc<Inode> {
        self.spot.inode.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
