//! A terminal: settings, line discipline, who it belongs to; and what lies behind it, the
//! console or the master side of a pseudo-terminal.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general::SIGWINCH;

use super::discipline::{Discipline, Effect};
use super::output::{GROWTH, Output};
use super::pty::Link;
use super::termios::{Termios, WindowSize};
use crate::process::Pid;
use crate::unix::Unix;
use crate::wait::WaitQueue;

/// Typed bytes that wait until the discipline has room for them.
const BACKLOG: usize = 65_536;

/// A terminal.
pub struct Tty {
    /// Device number.
    pub device: u64,
    /// Settings.
    pub termios: Cell<Termios>,
    /// Bits of the settings that stay as they are (`TIOCSLCKTRMIOS`).
    pub(super) locked: Cell<Termios>,
    /// Size of the window.
    pub window: Cell<WindowSize>,
    /// Input.
    pub(super) discipline: RefCell<Discipline>,
    output: RefCell<Output>,
    /// The session it controls, 0 if none.
    pub session: Cell<Pid>,
    /// The foreground process group, if any.
    pub foreground: Cell<Pid>,
    /// Who waits for input.
    pub(super) can_read: WaitQueue,
    /// Who waits to write.
    pub(super) can_write: WaitQueue,
    /// Output is stopped (`^S`).
    pub(super) stopped: Cell<bool>,
    /// When something was typed last.
    pub(super) last_input_ns: Cell<u64>,
    backlog: RefCell<VecDeque<u8>>,
    /// How often it was hung up; files opened before the last time are dead.
    pub(super) hang_ups: Cell<u32>,
    /// How often it is open.
    pub(super) opens: Cell<u32>,
    /// `TIOCEXCL`: nobody else may open it.
    pub(super) exclusive: Cell<bool>,
    /// The other side, if it is a pseudo-terminal.
    pub(super) link: Option<Link>,
}

impl Tty {
    /// A terminal with the usual settings.
    pub(super) fn new(device: u64, window: WindowSize, link: Option<Link>) -> Rc<Self> {
        Rc::new(Self {
            device,
            termios: Cell::default(),
            locked: Cell::new(Termios::NOTHING),
            window: Cell::new(window),
            discipline: RefCell::default(),
            output: RefCell::default(),
            session: Cell::default(),
            foreground: Cell::default(),
            can_read: WaitQueue::default(),
            can_write: WaitQueue::default(),
            stopped: Cell::new(false),
            last_input_ns: Cell::new(0),
            backlog: RefCell::default(),
            hang_ups: Cell::new(0),
            opens: Cell::new(0),
            exclusive: Cell::new(false),
            link,
        })
    }

    /// How many more typed bytes it takes.
    #[must_use]
    pub fn input_room(&self) -> usize {
        let discipline = self.discipline.borrow();
        if discipline.has_room(&self.termios.get()) {
            BACKLOG
        } else {
            BACKLOG - self.backlog.borrow().len().min(BACKLOG)
        }
    }

    /// Somebody typed; what there is no room for is lost.
    pub fn receive(&self, unix: &Unix, bytes: &[u8]) {
        self.last_input_ns.set(unix.machine.now_ns());
        {
            let mut backlog = self.backlog.borrow_mut();
            let room = BACKLOG.saturating_sub(backlog.len());
            backlog.extend(&bytes[..bytes.len().min(room)]);
        }
        self.work_off(unix);
        if self.discipline.borrow().readable(&self.termios.get()) > 0 {
            self.can_read.wake_all();
        }
    }

    /// Gives the discipline what has been typed, as far as it has room.
    pub(super) fn work_off(&self, unix: &Unix) {
        loop {
            let termios = self.termios.get();
            if !self.discipline.borrow().has_room(&termios) {
                break;
            }
            let Some(byte) = self.backlog.borrow_mut().pop_front() else { break };
            if self.stopped.get() && Discipline::restarts(&termios, byte) {
                self.set_stopped(unix, false);
            }
            let effect = {
                let mut discipline = self.discipline.borrow_mut();
                if discipline.buffer.len() == discipline.lines_end && discipline.echo.is_empty() {
                    discipline.line_column = self.output.borrow().column;
                }
                discipline.receive(&termios, byte)
            };
            match effect {
                Effect::None => {}
                Effect::Stop => self.set_stopped(unix, true),
                Effect::Start => self.set_stopped(unix, false),
                Effect::Signal(signal, flush) => self.signal_typed(unix, signal, flush),
            }
            if self.discipline.borrow().buffer.len() == self.discipline.borrow().lines_end {
                self.show_echo(unix);
            }
        }
        self.show_echo(unix);
    }

    fn signal_typed(&self, unix: &Unix, signal: u32, flush: bool) {
        if flush {
            self.flush_output();
        }
        self.stopped.set(false);
        self.can_write.wake_all();
        self.signal_foreground(unix, signal);
    }

    /// Sends a signal to the foreground group.
    pub(super) fn signal_foreground(&self, unix: &Unix, signal: u32) {
        if self.foreground.get().is_some() {
            crate::signal::send_group(unix, self.foreground.get(), signal);
        }
    }

    /// Stops output, or lets it go on.
    pub(super) fn set_stopped(&self, unix: &Unix, stopped: bool) {
        self.stopped.set(stopped);
        if !stopped {
            self.show_echo(unix);
            self.can_write.wake_all();
        }
    }

    /// Throws away what was written and not yet shown.
    pub(super) fn flush_output(&self) {
        if let Some(link) = &self.link {
            link.flush();
        }
        self.can_write.wake_all();
    }

    /// Throws away what was typed and not yet read.
    pub(super) fn flush_input(&self) {
        self.discipline.borrow_mut().flush();
        self.backlog.borrow_mut().clear();
        if let Some(link) = &self.link {
            link.can_write.wake_all();
        }
    }

    /// Shows what the discipline wants to be shown.
    fn show_echo(&self, unix: &Unix) {
        if self.stopped.get() {
            return;
        }
        let echo = core::mem::take(&mut self.discipline.borrow_mut().echo);
        if !echo.is_empty() {
            self.show(unix, &echo);
        }
    }

    /// Writes bytes to the screen, by way of the output settings.
    pub(super) fn show(&self, unix: &Unix, bytes: &[u8]) {
        let mut out = Vec::with_capacity(bytes.len() + 16);
        self.output.borrow_mut().process(&self.termios.get(), bytes, &mut out);
        match &self.link {
            None => unix.machine.console_write(&out),
            Some(link) => link.show(&out),
        }
    }

    /// How many bytes a write could show now.
    pub(super) fn output_room(&self) -> usize {
        match &self.link {
            _ if self.stopped.get() => 0,
            None => usize::MAX,
            Some(link) => link.room() / GROWTH,
        }
    }

    /// A key that the terminal itself presses on the other side (`tcflow`).
    pub(super) fn send_key(&self, unix: &Unix, key: u8) {
        match &self.link {
            None => unix.machine.console_write(&[key]),
            Some(link) => link.show(&[key]),
        }
    }

    /// Changes the settings, but for those that are locked.
    pub(super) fn set_termios(&self, unix: &Unix, new: Termios) {
        let new = new.keeping(&self.termios.get(), &self.locked.get());
        let old = self.termios.replace(new);
        self.discipline.borrow_mut().change(&old, &new);
        if self.stopped.get() && !new.i(linux_raw_sys::general::IXON) {
            self.set_stopped(unix, false);
        }
        self.work_off(unix);
        if self.discipline.borrow().readable(&new) > 0 {
            self.can_read.wake_all();
        }
    }

    /// Changes the size of the window.
    pub(super) fn set_window(&self, unix: &Unix, window: WindowSize) {
        if self.window.replace(window) != window {
            self.signal_foreground(unix, SIGWINCH);
        }
    }

    /// Whether the master side is gone.
    pub(super) fn is_cut_off(&self) -> bool {
        self.link.as_ref().is_some_and(|link| !link.master_open.get())
    }
}
