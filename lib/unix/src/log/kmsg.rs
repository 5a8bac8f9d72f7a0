//! `/dev/kmsg`: the log as a device. Each opening reads from the oldest record on, one at a
//! time; what is written becomes a record.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec;
use core::any::Any;
use core::cell::Cell;

use linux_raw_sys::general::{O_ACCMODE, O_WRONLY, SEEK_DATA, SEEK_END, SEEK_SET};

use super::Record;
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::wait::WaitQueue;

/// Longest text that is written at once, bytes.
const LONGEST: usize = 1024;
/// Level of what is written without one (`warning`), and the facility that programs have (`user`).
const LEVEL: u8 = 4;
const USER: u8 = 1 << 3;

/// An opening of the device.
struct Reader {
    inode: Rc<Inode>,
    /// The next record to be read.
    next: Cell<u64>,
}

/// Opens the device.
pub(crate) fn open(cx: &Cx, inode: &Rc<Inode>, flags: u32) -> Result<Rc<dyn File>, Errno> {
    if flags & O_ACCMODE != O_WRONLY {
        super::syslog::may(cx)?;
    }
    let next = Cell::new(cx.unix.log.oldest());
    Ok(Rc::new(Reader { inode: inode.clone(), next }))
}

impl File for Reader {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, _offset: u64) -> Result<usize, Stop> {
        let log = &cx.unix.log;
        let number = self.next.get();
        if number < log.oldest() {
            self.next.set(log.oldest());
            return Err(Errno::EPIPE.into());
        }
        let told = |record: &Record| {
            format!("{},{number},{},-;{}\n", record.priority, record.at_us, record.text)
        };
        match log.with(number, told) {
            Some(line) if line.len() > sink.room() => Err(Errno::EINVAL.into()),
            Some(line) => {
                let put = sink.put(line.as_bytes())?;
                self.next.set(number + 1);
                Ok(put)
            }
            None if open.is_nonblocking() => Err(Errno::EAGAIN.into()),
            None => Err(cx.block_on(&log.came)),
        }
    }

    fn write(&self, cx: &Cx, _: &Open, source: &mut Source, _: u64) -> Result<usize, Stop> {
        let mut line = vec![0; source.left().min(LONGEST)];
        let len = source.take(&mut line)?;
        let text = String::from_utf8_lossy(&line[..len]);
        let (priority, text) = split(&text);
        // On the console it stands behind a name that it cannot choose: nobody's line looks like
        // the server's, or another's. In the log the facility says so.
        let pid = cx.process.pid.first();
        for line in text.lines() {
            cx.unix.tell(&format!("unix: process {pid} logs: {line}"));
            cx.unix.log.add(cx.unix.machine.now_ns(), priority, &crate::unix::visible(line));
        }
        Ok(len + source.left())
    }

    fn seek(&self, cx: &Cx, offset: i64, whence: u32) -> Result<u64, Errno> {
        let log = &cx.unix.log;
        self.next.set(match whence {
            _ if offset != 0 => return Err(Errno::ESPIPE),
            SEEK_SET => log.oldest(),
            SEEK_DATA => log.cleared.get().max(log.oldest()),
            SEEK_END => log.next.get(),
            _ => return Err(Errno::EINVAL),
        });
        Ok(0)
    }

    fn poll(&self, cx: &Cx) -> Events {
        let log = &cx.unix.log;
        let mut events = Events::WRITABLE;
        events.set(Events::READABLE, self.next.get() < log.next.get());
        events.set(Events::ERR, self.next.get() < log.oldest());
        events
    }

    fn watch(&self, cx: &Cx, _interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        visit(&cx.unix.log.came);
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Priority and text of what is written: `<N>` before it says the level, and the facility if it
/// is not the kernel's.
fn split(text: &str) -> (u8, &str) {
    let said = text.strip_prefix('<').and_then(|rest| {
        let (number, text) = rest.split_once('>')?;
        Some((number.parse::<u8>().ok()?, text))
    });
    match said {
        Some((number, text)) if number < 8 => (USER | number, text),
        Some((number, text)) => (number, text),
        None => (USER | LEVEL, text),
    }
}
