//! A terminal as an open file: reading lines or bytes by number and time, writing, polling.

use alloc::rc::Rc;

use linux_raw_sys::general::{ICANON, TOSTOP, VMIN, VTIME};

use super::terminal::Tty;
use super::{CONSOLE, session};
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::wait::WaitQueue;

/// Bytes of a write that are worked on at a time.
const CHUNK: usize = 512;
/// A tenth of a second, the unit of `VTIME`.
const DECISECOND_NS: u64 = 100_000_000;

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
