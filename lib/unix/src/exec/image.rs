//! A file that is to be run, read through its frames.

use alloc::rc::Rc;

use crate::call::Cx;
use crate::errno::Errno;
use crate::file::Open;
use crate::fs::inode::Inode;
use crate::fs::permission;
use crate::memory::PAGE;
use crate::unix::Unix;

/// A file that is to be run.
pub struct Image<'a> {
    unix: &'a Unix,
    /// As opened.
    pub open: Rc<Open>,
    /// Its inode, a regular file's.
    pub inode: Rc<Inode>,
}

impl<'a> Image<'a> {
    /// The file behind `open`.
    #[must_use]
    pub fn new(unix: &'a Unix, open: Rc<Open>) -> Self {
        let inode = open.file.inode();
        Self { unix, open, inode }
    }

    /// Whether who runs it may read it, too.
    #[must_use]
    pub fn may_be_read(&self, cx: &Cx) -> bool {
        permission::check(&self.inode, &cx.process.credentials.borrow(), permission::READ).is_ok()
    }

    /// Copies bytes from `offset` on; how many the file has of them.
    ///
    /// # Errors
    /// As [`Inode::page`].
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        let left = self.inode.size().saturating_sub(offset);
        let len = usize::try_from(left).map_or(to.len(), |left| left.min(to.len()));
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let frame = self.inode.page(self.unix, at / PAGE as u64, false)?;
            let start = at as usize % PAGE;
            let piece = (PAGE - start).min(len - done);
            self.unix.memory.read(frame, start, &mut to[done..done + piece]);
            done += piece;
        }
        Ok(len)
    }
}

/// The program a space runs; while it does, nobody can write the file.
pub struct Running {
    /// The file.
    pub open: Rc<Open>,
    inode: Rc<Inode>,
}

impl Running {
    /// A program starts to run from the file.
    ///
    /// # Errors
    /// `ETXTBSY` if somebody has it open for writing.
    pub fn new(image: &Image) -> Result<Rc<Self>, Errno> {
        image.inode.begin_execution()?;
        Ok(Rc::new(Self { open: image.open.clone(), inode: image.inode.clone() }))
    }

    /// The file's inode.
    #[must_use]
    pub fn inode(&self) -> &Rc<Inode> {
        &self.inode
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.inode.end_execution();
    }
}
