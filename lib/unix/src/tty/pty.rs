//! Pseudo-terminals: the master side, and what lies between both.

use alloc::rc::Rc;
use core::any::Any;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general::{O_ACCMODE, O_CLOEXEC, O_NOCTTY, O_NONBLOCK};
use linux_raw_sys::ioctl::{
    FIONREAD, TIOCGPTLCK, TIOCGPTN, TIOCGPTPEER, TIOCOUTQ, TIOCSIG, TIOCSPTLCK,
};

use super::terminal::Tty;
use super::termios::WindowSize;
use super::tty_file::TtyFile;
use super::{PTS_MAJOR, control};
use crate::account::{Charge, What};
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::device;
use crate::fs::inode::Inode;
use crate::memory::PAGE;
use crate::stream::ring::Ring;
use crate::wait::WaitQueue;

/// Bytes that the master has not read yet.
const OUTPUT: usize = 4 * PAGE;
/// What a terminal costs its user, with what was typed and not read.
const PTY_BYTES: usize = 4 * PAGE;

/// What a terminal has if its other side is a program.
pub struct Link {
    /// Number in `/dev/pts`.
    pub number: u32,
    /// What was written and is to be read by the master.
    output: Ring,
    /// The master is open.
    pub(super) master_open: Cell<bool>,
    /// The slave was open and is not any more.
    pub(super) slave_left: Cell<bool>,
    /// The slave cannot be opened yet.
    pub(super) locked: Cell<bool>,
    /// The master waits for output, or for room to type.
    pub(super) can_read: WaitQueue,
    pub(super) can_write: WaitQueue,
    /// Owner of the slave's inode: who opened the master.
    pub owner: (u32, u32),
    /// The inode in `/dev/pts`, kept there as long as the terminal lives.
    pub inode: RefCell<Option<Rc<Inode>>>,
    /// What the terminal costs.
    _charges: [Charge; 2],
}

impl Link {
    /// How much the master has not read.
    pub(super) fn room(&self) -> usize {
        self.output.room()
    }

    /// Appends output; what there is no room for is lost.
    pub(super) fn show(&self, bytes: &[u8]) {
        // Without memory, output is lost as on a broken line.
        let _ = self.output.fill(&mut Source::Server(bytes), bytes.len());
        self.can_read.wake_all();
    }

    pub(super) fn flush(&self) {
        self.output.skip(self.output.len());
    }
}

/// The master side of a pseudo-terminal.
pub struct Master {
    /// The terminal it drives.
    pub tty: Rc<Tty>,
    inode: Rc<Inode>,
    /// Where terminals are put whose master is gone.
    cut: super::Cut,
}

/// Opens `/dev/ptmx`: a new pseudo-terminal.
pub(super) fn open_master(cx: &Cx, inode: Rc<Inode>) -> Result<Rc<dyn File>, Errno> {
    let terminals = &cx.unix.terminals;
    let number = terminals.free_number().ok_or(Errno::ENOSPC)?;
    let share = Charge::share(&cx.process.user(), What::Terminals, 1, terminals.ptys())?;
    let owner = {
        let credentials = cx.process.credentials.borrow();
        (credentials.fsuid, credentials.fsgid)
    };
    let link = Link {
        number,
        output: Ring::new(&cx.unix.memory, OUTPUT)?.paid(cx.charge(What::Frames)),
        master_open: Cell::new(true),
        slave_left: Cell::new(false),
        locked: Cell::new(true),
        can_read: WaitQueue::default(),
        can_write: WaitQueue::default(),
        owner,
        inode: RefCell::new(None),
        _charges: [share, cx.pay(PTY_BYTES)?],
    };
    let device = device::number(PTS_MAJOR, number.into());
    let window = WindowSize { rows: 0, columns: 0, width_pixels: 0, height_pixels: 0 };
    let tty = Tty::new(device, window, Some(link));
    terminals.add_pty(&tty);
    Ok(Rc::new(Master { tty, inode, cut: terminals.cut.clone() }))
}

impl Master {
    /// The link, which every terminal with a master has.
    fn link(&self) -> Result<&Link, Errno> {
        self.tty.link.as_ref().ok_or(Errno::EIO)
    }

    /// `TIOCGPTPEER`: opens the slave.
    fn peer(&self, cx: &Cx, flags: u32) -> Result<u64, Errno> {
        if flags & !(O_ACCMODE | O_NOCTTY | O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(Errno::EINVAL);
        }
        let inode = cx.unix.terminals.pty_inode(cx, &self.tty)?;
        if flags & O_NOCTTY == 0 {
            super::session::opened(cx, &self.tty);
        }
        let file = TtyFile::new(&self.tty, inode);
        let path = alloc::format!("/dev/pts/{}", self.link()?.number).into_bytes();
        let open = Open::new(cx, file, flags & !(O_NOCTTY | O_CLOEXEC), path)?;
        Ok(cx.add_file(open, flags & O_CLOEXEC != 0)?.into())
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if let Some(link) = &self.tty.link {
            link.master_open.set(false);
        }
        self.cut.borrow_mut().push(self.tty.clone());
    }
}

impl File for Master {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, _offset: u64) -> Result<usize, Stop> {
        let link = self.link()?;
        if sink.room() == 0 {
            return Ok(0);
        }
        if link.output.is_empty() {
            return if link.slave_left.get() {
                Err(Errno::EIO.into())
            } else if open.is_nonblocking() {
                Err(Errno::EAGAIN.into())
            } else {
                Err(cx.block_on(&link.can_read))
            };
        }
        let count = link.output.drain(sink, usize::MAX)?;
        self.tty.can_write.wake_all();
        Ok(count)
    }

    fn write(
        &self,
        cx: &Cx,
        open: &Open,
        source: &mut Source,
        _offset: u64,
    ) -> Result<usize, Stop> {
        let link = self.link()?;
        let mut done = 0;
        while source.left() > 0 {
            let mut chunk = [0; 256];
            let room = self.tty.input_room().min(chunk.len());
            if room == 0 && open.is_nonblocking() {
                return if done > 0 { Ok(done) } else { Err(Errno::EAGAIN.into()) };
            }
            if room == 0 {
                return crate::stream::wait_for_rest(cx, source, done, &link.can_write);
            }
            match source.take(&mut chunk[..room]) {
                Ok(count) => {
                    self.tty.receive(cx.unix, &chunk[..count]);
                    done += count;
                }
                Err(errno) if done == 0 => return Err(errno.into()),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn poll(&self, _cx: &Cx) -> Events {
        let Some(link) = &self.tty.link else { return Events::ERR };
        let mut events = Events::empty();
        events.set(Events::READABLE, !link.output.is_empty());
        events.set(Events::WRITABLE, self.tty.input_room() > 0);
        events.set(Events::HUP, link.slave_left.get());
        events
    }

    fn watch(&self, _cx: &Cx, interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        if let Some(link) = &self.tty.link {
            visit(&link.can_read);
            if interest.intersects(Events::WRITABLE) {
                visit(&link.can_write);
            }
        }
    }

    fn ioctl(&self, cx: &Cx, _open: &Open, request: u32, argument: u64) -> Result<u64, Stop> {
        let link = self.link()?;
        match request {
            TIOCGPTN => cx.user().write(argument, &link.number)?,
            TIOCSPTLCK => link.locked.set(cx.user().read::<i32>(argument)? != 0),
            TIOCGPTLCK => cx.user().write(argument, &i32::from(link.locked.get()))?,
            TIOCGPTPEER => return Ok(self.peer(cx, argument as u32)?),
            TIOCSIG => {
                if argument == 0 || argument > 64 {
                    return Err(Errno::EINVAL.into());
                }
                self.tty.signal_foreground(cx.unix, argument as u32);
            }
            FIONREAD => cx.user().write(argument, &(link.output.len() as i32))?,
            TIOCOUTQ => cx.user().write(argument, &0_i32)?,
            _ => return control::ioctl(cx, &self.tty, true, request, argument),
        }
        Ok(0)
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
