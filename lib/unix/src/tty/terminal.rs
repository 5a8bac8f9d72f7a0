//! A terminal: settings, line discipline, who it belongs to; and what lies behind it, the
//! console or the master side of a pseudo-terminal.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general::{ICANON, SIGWINCH, TOSTOP, VMIN, VTIME};

use super::discipline::{Discipline, Effect};
use super::output::{GROWTH, Output};
use super::pty::Link;
use super::termios::{Termios, WindowSize};
use super::{CONSOLE, session};
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::unix::Unix;
use crate::wait::WaitQueue;

/// Typed bytes that wait until the discipline has room for them.
const BACKLOG: usize = 65_536;
/// Bytes of a write that are worked on at a time.
const CHUNK: usize = 512;
/// A tenth of a second, the unit of `VTIME`.
const DECISECOND_NS: u64 = 100_000_000;

/// A terminal.
pub struct Tty {
    /// Device number.
    pub device: u64,
    /// Settings.
    pub termios: Cell<Termios>,
    /// Size of the window.
    pub window: Cell<WindowSize>,
    /// Input.
    pub(super) discipline: RefCell<Discipline>,
    output: RefCell<Output>,
    /// The session it controls, 0 if none.
    pub session: Cell<u32>,
    /// The foreground process group, 0 if none.
    pub foreground: Cell<u32>,
    /// Who waits for input.
    pub(super) can_read: WaitQueue,
    /// Who waits to write.
    pub(super) can_write: WaitQueue,
    /// Output is stopped (`^S`).
    pub(super) stopped: Cell<bool>,
    /// When something was typed last.
    last_input_ns: Cell<u64>,
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
            window: Cell::new(window),
            discipline: RefCell::default(),
            output: RefCell::default(),
            session: Cell::new(0),
            foreground: Cell::new(0),
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
    fn work_off(&self, unix: &Unix) {
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
        if self.foreground.get() != 0 {
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
    fn show(&self, unix: &Unix, bytes: &[u8]) {
        let mut out = Vec::with_capacity(bytes.len() + 16);
        self.output.borrow_mut().process(&self.termios.get(), bytes, &mut out);
        match &self.link {
            None => unix.machine.console_write(&out),
            Some(link) => link.show(&out),
        }
    }

    /// How many bytes a write could show now.
    fn output_room(&self) -> usize {
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

    /// Changes the settings.
    pub(super) fn set_termios(&self, unix: &Unix, new: Termios) {
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

/// A terminal that was opened.
pub struct TtyFile {
    /// The terminal.
    pub tty: Rc<Tty>,
    inode: Rc<Inode>,
    hang_ups: u32,
}

impl TtyFile {
    pub(super) fn new(tty: &Rc<Tty>, inode: Rc<Inode>) -> Rc<Self> {
        tty.opens.set(tty.opens.get() + 1);
        if let Some(link) = &tty.link {
            link.slave_left.set(false);
        }
        Rc::new(Self { tty: tty.clone(), inode, hang_ups: tty.hang_ups.get() })
    }

    /// Whether the terminal was hung up after this was opened.
    pub(super) fn is_dead(&self) -> bool {
        self.hang_ups != self.tty.hang_ups.get() && self.inode.device() != CONSOLE
    }

    /// When a read in raw mode has enough: it gets so many bytes now, or it waits (until
    /// then).
    fn enough(&self, cx: &Cx, there: usize, room: usize) -> Result<(), Option<u64>> {
        let termios = self.tty.termios.get();
        if termios.l(ICANON) {
            return if there > 0 { Ok(()) } else { Err(None) };
        }
        let (min, time) = (termios.character(VMIN), termios.character(VTIME));
        let wait_ns = u64::from(time) * DECISECOND_NS;
        let now = cx.unix.machine.now_ns();
        if there >= usize::from(min).max(1).min(room) || (min == 0 && time == 0) {
            return Ok(());
        }
        let until = match cx.thread.deadline_ns.get().filter(|_| cx.is_retry()) {
            // The timer between bytes begins anew with every byte.
            Some(until) if min > 0 => until.max(self.tty.last_input_ns.get() + wait_ns),
            Some(until) => until,
            None => now + wait_ns,
        };
        if time == 0 || min > 0 && there == 0 {
            Err(None)
        } else if now >= until {
            Ok(())
        } else {
            Err(Some(until))
        }
    }
}

impl Drop for TtyFile {
    fn drop(&mut self) {
        let tty = &self.tty;
        tty.opens.set(tty.opens.get().saturating_sub(1));
        if tty.opens.get() == 0 {
            tty.exclusive.set(false);
            if let Some(link) = &tty.link {
                link.slave_left.set(true);
                link.can_read.wake_all();
                link.can_write.wake_all();
            }
        }
    }
}

impl File for TtyFile {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, _offset: u64) -> Result<usize, Stop> {
        let tty = &self.tty;
        if self.is_dead() || sink.room() == 0 {
            return Ok(0);
        }
        session::check_read(cx, tty)?;
        let termios = tty.termios.get();
        let there = tty.discipline.borrow().readable(&termios);
        match self.enough(cx, there, sink.room()) {
            Ok(()) => {}
            Err(_) if tty.is_cut_off() => return Ok(0),
            Err(_) if open.is_nonblocking() => return Err(Errno::EAGAIN.into()),
            Err(until) => {
                cx.thread.deadline_ns.set(until);
                return Err(cx.block_on(&tty.can_read));
            }
        }
        let (bytes, _) = tty.discipline.borrow_mut().take(&termios, sink.room());
        tty.work_off(cx.unix);
        if let Some(link) = &tty.link {
            link.can_write.wake_all();
        }
        Ok(sink.put(&bytes)?)
    }

    fn write(
        &self,
        cx: &Cx,
        open: &Open,
        source: &mut Source,
        _offset: u64,
    ) -> Result<usize, Stop> {
        let tty = &self.tty;
        if self.is_dead() || tty.is_cut_off() {
            return Err(Errno::EIO.into());
        }
        if tty.termios.get().l(TOSTOP) {
            session::check_change(cx, tty)?;
        }
        let mut done = 0;
        while source.left() > 0 {
            let room = tty.output_room().min(CHUNK);
            if room == 0 && open.is_nonblocking() {
                return if done > 0 { Ok(done) } else { Err(Errno::EAGAIN.into()) };
            }
            if room == 0 {
                return crate::stream::wait_for_rest(cx, source, done, &tty.can_write);
            }
            let mut chunk = [0; CHUNK];
            match source.take(&mut chunk[..room]) {
                Ok(count) => {
                    tty.show(cx.unix, &chunk[..count]);
                    done += count;
                }
                Err(errno) if done == 0 => return Err(errno.into()),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn poll(&self, _cx: &Cx) -> Events {
        let tty = &self.tty;
        if self.is_dead() {
            return Events::READABLE | Events::WRITABLE | Events::ERR | Events::HUP;
        }
        let termios = tty.termios.get();
        let (min, time) = (termios.character(VMIN), termios.character(VTIME));
        let raw = !termios.l(ICANON) && time == 0 && min > 0;
        let wanted = if raw { usize::from(min) } else { 1 };
        let mut events = Events::empty();
        events.set(Events::READABLE, tty.discipline.borrow().readable(&termios) >= wanted);
        events.set(Events::WRITABLE, tty.output_room() > 0);
        if tty.is_cut_off() {
            events |= Events::HUP | Events::READABLE | Events::WRITABLE;
        }
        events
    }

    fn watch(&self, _cx: &Cx, interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        visit(&self.tty.can_read);
        if interest.intersects(Events::WRITABLE) {
            visit(&self.tty.can_write);
        }
    }

    fn ioctl(&self, cx: &Cx, _open: &Open, request: u32, argument: u64) -> Result<u64, Stop> {
        if self.is_dead() {
            return Err(Errno::EIO.into());
        }
        super::control::ioctl(cx, &self.tty, false, request, argument)
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
