//! signalfd: a descriptor to read signals from. It shows the signals of whoever reads or
//! polls, as on Linux.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use linux_raw_sys::general::{
    O_CLOEXEC, O_NONBLOCK, O_RDWR, SI_TIMER, SIGBUS, SIGCHLD, SIGFPE, SIGILL, SIGIO, SIGKILL,
    SIGSEGV, SIGSTOP, SIGTRAP,
};

use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::signal::{self, Info, MASK_BYTES};
use crate::wait::WaitQueue;

/// Bytes of a `struct signalfd_siginfo`.
const RECORD: usize = 128;

/// Signals to be read.
struct SignalFile {
    mask: Cell<u64>,
    inode: Rc<Inode>,
}

/// A `struct signalfd_siginfo` in the making.
struct Record([u8; RECORD]);

impl Record {
    fn put(&mut self, offset: usize, bytes: &[u8]) {
        if let Some(place) = self.0.get_mut(offset..offset + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn put32(&mut self, offset: usize, value: u32) {
        self.put(offset, &value.to_ne_bytes());
    }

    fn put64(&mut self, offset: usize, value: u64) {
        self.put(offset, &value.to_ne_bytes());
    }

    /// About a signal: which fields there are depends on what sent it.
    fn new(info: &Info) -> Self {
        let mut record = Self([0; RECORD]);
        record.put32(0, info.signal);
        record.put32(4, info.errno as u32);
        record.put32(8, info.code as u32);
        let from_kernel = info.code > 0 && info.code != 0x80;
        match info.signal {
            _ if info.code == SI_TIMER => {
                record.put32(24, info.data[0] as u32);
                record.put32(32, (info.data[0] >> 32) as u32);
                record.put32(44, info.value() as u32);
                record.put64(48, info.value());
            }
            SIGCHLD if from_kernel => {
                record.put32(12, info.pid());
                record.put32(16, info.uid());
                record.put32(40, info.status());
                record.put64(56, info.data[2]);
                record.put64(64, info.data[3]);
            }
            SIGSEGV | SIGBUS | SIGILL | SIGFPE | SIGTRAP if from_kernel => {
                record.put64(72, info.data[0]);
            }
            SIGIO if from_kernel => {
                record.put32(20, info.data[1] as u32);
                record.put32(28, info.data[0] as u32);
            }
            _ => {
                record.put32(12, info.pid());
                record.put32(16, info.uid());
                record.put32(44, info.value() as u32);
                record.put64(48, info.value());
            }
        }
        record
    }
}

impl File for SignalFile {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, _offset: u64) -> Result<usize, Stop> {
        if sink.room() < RECORD {
            return Err(Errno::EINVAL.into());
        }
        let mut done = 0;
        while sink.room() >= RECORD {
            let Some(info) = signal::take(cx, self.mask.get()) else { break };
            match sink.put(&Record::new(&info).0) {
                Ok(count) => done += count,
                Err(errno) if done == 0 => return Err(errno.into()),
                Err(_) => break,
            }
        }
        if done > 0 {
            Ok(done)
        } else if open.is_nonblocking() {
            Err(Errno::EAGAIN.into())
        } else {
            Err(cx.block_on(&cx.process.signals.arrived))
        }
    }

    fn write(&self, _: &Cx, _: &Open, _: &mut Source, _: u64) -> Result<usize, Stop> {
        Err(Errno::EINVAL.into())
    }

    fn poll(&self, cx: &Cx) -> Events {
        let pending = signal::pending_for(cx.thread) & self.mask.get();
        if pending == 0 { Events::empty() } else { Events::IN }
    }

    fn watch(&self, cx: &Cx, _interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        visit(&cx.process.signals.arrived);
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// `signalfd(fd, mask, size)`.
pub(super) fn signalfd(cx: &Cx) -> Answer {
    create(cx, 0)
}

/// `signalfd4(fd, mask, size, flags)`.
pub(super) fn signalfd4(cx: &Cx) -> Answer {
    create(cx, cx.uint(3))
}

fn create(cx: &Cx, flags: u32) -> Answer {
    if cx.arg(2) != MASK_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let mask = cx.user().read::<u64>(cx.arg(1))?;
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mask = mask & !(1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1));
    if cx.int(0) != -1 {
        let open = cx.file(cx.uint(0))?;
        let file = open.file.as_any().downcast_ref::<SignalFile>().ok_or(Errno::EINVAL)?;
        file.mask.set(mask);
        cx.process.signals.arrived.wake_all();
        return Ok(cx.arg(0));
    }
    let inode = cx.unix.fs.anonymous(cx, "[signalfd]")?;
    let file = SignalFile { mask: Cell::new(mask), inode };
    let open = Open::new(cx, Rc::new(file), O_RDWR | flags & O_NONBLOCK, Vec::new())?;
    Ok(cx.add_file(open, flags & O_CLOEXEC != 0)?.into())
}
