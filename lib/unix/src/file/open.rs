//! An open file description: what `open` makes and descriptors share.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, OnceCell};

use linux_raw_sys::general::{O_ACCMODE, O_NONBLOCK, O_PATH, O_RDONLY, O_WRONLY};

use super::File;
use super::owner::Told;
use crate::account::Charge;
use crate::call::Cx;
use crate::errno::Errno;

/// An open file description: a file, a position, flags. Descriptors share it.
pub struct Open {
    /// The file.
    pub file: Rc<dyn File>,
    /// Position in bytes.
    pub position: Cell<u64>,
    /// `O_*` access mode and status flags.
    pub flags: Cell<u32>,
    /// Path under which it was opened, for `/proc/self/fd` and `..at` calls on directories.
    pub path: Vec<u8>,
    /// What is told of it by signals, once somebody wants that.
    pub(super) told: OnceCell<Box<Told>>,
    /// What it costs.
    _charge: Charge,
}

/// What a description costs, with its file.
const OPEN_BYTES: usize = 512;

impl Open {
    /// A description at position 0, for which the caller's user pays.
    ///
    /// # Errors
    /// `ENOMEM` if the user cannot.
    pub fn new(cx: &Cx, file: Rc<dyn File>, flags: u32, path: Vec<u8>) -> Result<Rc<Self>, Errno> {
        Self::with(cx, file, flags, path, 0)
    }

    /// As [`Self::new`], of a file that costs `more` beside.
    ///
    /// # Errors
    /// `ENOMEM` if the user cannot pay.
    pub fn with(
        cx: &Cx,
        file: Rc<dyn File>,
        flags: u32,
        path: Vec<u8>,
        more: usize,
    ) -> Result<Rc<Self>, Errno> {
        let charge = cx.pay(OPEN_BYTES + path.len() + more)?;
        Ok(Rc::new(Self {
            file,
            position: Cell::new(0),
            flags: Cell::new(flags),
            path,
            told: OnceCell::new(),
            _charge: charge,
        }))
    }

    /// Whether it was opened for reading.
    #[must_use]
    pub fn can_read(&self) -> bool {
        self.flags.get() & (O_ACCMODE | O_PATH) != O_WRONLY && self.flags.get() & O_PATH == 0
    }

    /// Whether it was opened for writing.
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.flags.get() & O_ACCMODE != O_RDONLY && self.flags.get() & O_PATH == 0
    }

    /// Whether calls on it never wait.
    #[must_use]
    pub fn is_nonblocking(&self) -> bool {
        self.flags.get() & O_NONBLOCK != 0
    }

    /// Whether it only names a file (`O_PATH`).
    #[must_use]
    pub fn is_path(&self) -> bool {
        self.flags.get() & O_PATH != 0
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let file = self.file.clone();
        file.inode().locks.description_closed(self);
        file.closed(self);
    }
}
