//! Terminals: the line discipline, the console, pseudo-terminals, controlling terminals.
//!
//! `fs` calls [`open`] for terminal devices and lists [`Terminals::pty_from`] in
//! `/dev/pts`; `process` calls [`process_ends`] when a process ends; whoever closes files
//! calls [`Terminals::settle`] afterwards.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{OnceCell, RefCell};

use linux_raw_sys::general::{__NR_vhangup, O_NOCTTY};

use crate::call::{Answer, Cx, Entry, Stop, full};
use crate::errno::Errno;
use crate::file::File;
use crate::fs::device;
use crate::fs::inode::Inode;
use crate::process::Pid;
use crate::unix::Unix;

mod control;
pub mod discipline;
mod erase;
pub mod output;
pub mod pty;
pub mod session;
pub mod terminal;
pub mod termios;
pub mod tty_file;

pub use session::process_ends;
pub use terminal::Tty;
use termios::WindowSize;
pub use tty_file::TtyFile;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[full(__NR_vhangup, "vhangup", vhangup)];

/// Device number of the serial line behind the console.
pub const SERIAL: u64 = 4 << 8 | 64;
/// Device number of `/dev/tty`, whatever terminal controls the process.
pub const OWN: u64 = 5 << 8;
/// Device number of `/dev/console`; hang-ups do not touch what was opened under this name.
pub const CONSOLE: u64 = 5 << 8 | 1;
/// Device number of `/dev/ptmx`.
pub const PTMX: u64 = 5 << 8 | 2;
/// Major number of the slaves in `/dev/pts`.
pub const PTS_MAJOR: u64 = 136;
/// Pseudo-terminals there can be.
const PTYS: u32 = 4096;

/// Terminals whose master side is gone.
type Cut = Rc<RefCell<Vec<Rc<Tty>>>>;

/// All terminals.
#[derive(Default)]
pub struct Terminals {
    console: OnceCell<Rc<Tty>>,
    ptys: RefCell<BTreeMap<u32, Rc<Tty>>>,
    cut: Cut,
    /// Sessions whose terminal was hung up, and the group that was in its foreground.
    lost: RefCell<Vec<(Pid, Pid)>>,
}

impl Terminals {
    /// The console.
    #[must_use]
    pub fn console(&self) -> &Rc<Tty> {
        let window = WindowSize { rows: 24, columns: 80, width_pixels: 0, height_pixels: 0 };
        self.console.get_or_init(|| Tty::new(SERIAL, window, None))
    }

    /// How large the terminal at the console is, before anybody has it open.
    pub fn size_console(&self, rows: u16, columns: u16) {
        self.console().window.set(WindowSize { rows, columns, ..self.console().window.get() });
    }

    /// Bytes from the console's keyboard.
    pub fn console_input(&self, unix: &Unix, bytes: &[u8]) {
        self.console().receive(unix, bytes);
    }

    /// The terminal that controls a session.
    #[must_use]
    pub fn of_session(&self, session: Pid) -> Option<Rc<Tty>> {
        let controls = |tty: &&Rc<Tty>| session.is_some() && tty.session.get() == session;
        let console = self.console.get().filter(controls).cloned();
        console.or_else(|| self.ptys.borrow().values().find(controls).cloned())
    }

    /// The first pseudo-terminal there is from this number on, for `/dev/pts`.
    #[must_use]
    pub fn pty_from(&self, number: u32) -> Option<u32> {
        self.ptys.borrow().range(number..).next().map(|(number, _)| *number)
    }

    /// How many pseudo-terminals there are, and how many there can be.
    fn ptys(&self) -> (u64, u64) {
        (self.ptys.borrow().len() as u64, PTYS.into())
    }

    /// A pseudo-terminal.
    #[must_use]
    pub fn pty(&self, number: u32) -> Option<Rc<Tty>> {
        self.ptys.borrow().get(&number).cloned()
    }

    /// The inode of a pseudo-terminal in `/dev/pts`, made once.
    ///
    /// # Errors
    /// `ENOENT` for a terminal without a master, `ENOSPC`.
    pub fn pty_inode(&self, cx: &Cx, tty: &Rc<Tty>) -> Result<Rc<Inode>, Errno> {
        let link = tty.link.as_ref().ok_or(Errno::ENOENT)?;
        if let Some(inode) = link.inode.borrow().as_ref() {
            return Ok(inode.clone());
        }
        let inode = crate::fs::new_pty_inode(cx, tty.device, link.owner)?;
        *link.inode.borrow_mut() = Some(inode.clone());
        Ok(inode)
    }

    fn free_number(&self) -> Option<u32> {
        let ptys = self.ptys.borrow();
        // Nobody looks for long while all are taken.
        if ptys.len() >= PTYS as usize {
            return None;
        }
        let is_next = |(taken, number): &(&u32, u32)| **taken == *number;
        Some(ptys.keys().zip(0..).take_while(is_next).count() as u32)
    }

    fn add_pty(&self, tty: &Rc<Tty>) {
        if let Some(link) = &tty.link {
            self.ptys.borrow_mut().insert(link.number, tty.clone());
        }
    }

    /// Does what the closing of files has left to be done: hang-ups of terminals that have
    /// lost their master.
    pub fn settle(&self, unix: &Unix) {
        while !self.cut.borrow().is_empty() {
            let Some(tty) = self.cut.borrow_mut().pop() else { return };
            if let Some(link) = &tty.link {
                self.ptys.borrow_mut().remove(&link.number);
                let inode = link.inode.borrow_mut().take();
                drop(inode);
            }
            session::hang_up(unix, &tty);
        }
    }
}

/// Opens a terminal device.
///
/// # Errors
/// `ENXIO` for `/dev/tty` without a controlling terminal and for numbers that are no
/// terminal, `EIO` for a pseudo-terminal whose slave is locked, `EBUSY` after `TIOCEXCL`.
pub fn open(cx: &Cx, inode: &Rc<Inode>, flags: u32) -> Result<Rc<dyn File>, Stop> {
    let terminals = &cx.unix.terminals;
    let device = inode.device();
    let tty = match device {
        CONSOLE | SERIAL => terminals.console().clone(),
        OWN => terminals.of_session(cx.process.session.get()).ok_or(Errno::ENXIO)?,
        PTMX => return Ok(pty::open_master(cx, inode.clone())?),
        _ if device::major(device) == PTS_MAJOR => {
            let number = device::minor(device) as u32;
            let tty = terminals.pty(number).ok_or(Errno::EIO)?;
            if tty.link.as_ref().is_some_and(|link| link.locked.get()) {
                return Err(Errno::EIO.into());
            }
            tty
        }
        _ => return Err(Errno::ENXIO.into()),
    };
    let root = cx.process.credentials.borrow().may(linux_raw_sys::general::CAP_SYS_ADMIN);
    if tty.exclusive.get() && tty.opens.get() > 0 && !root {
        return Err(Errno::EBUSY.into());
    }
    let file = TtyFile::new(&tty, inode.clone());
    if flags & O_NOCTTY == 0 && device != OWN {
        session::opened(cx, &tty);
    }
    Ok(file)
}

/// `vhangup()`.
fn vhangup(cx: &Cx) -> Answer {
    if !cx.process.credentials.borrow().may(linux_raw_sys::general::CAP_SYS_TTY_CONFIG) {
        return Err(Errno::EPERM.into());
    }
    if let Some(tty) = cx.unix.terminals.of_session(cx.process.session.get()) {
        session::hang_up(cx.unix, &tty);
    }
    Ok(0)
}
