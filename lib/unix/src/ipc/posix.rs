//! POSIX message queues: named queues with descriptors, of which the most urgent message comes
//! first. A queue is paid by its maker's user, whole: with the bytes of all messages that it
//! may come to hold.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::notices::{self, Notify};
use crate::account::Charge;
use crate::call::{Answer, Cx, Entry, Stop, full};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::fs::permission;
use crate::signal::OnSignal;
use crate::time::{Clock, Timespec};
use crate::wait::WaitQueue;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_mq_open, "mq_open", mq_open),
    full(l::__NR_mq_unlink, "mq_unlink", mq_unlink),
    full(l::__NR_mq_timedsend, "mq_timedsend", mq_timedsend),
    full(l::__NR_mq_timedreceive, "mq_timedreceive", mq_timedreceive),
    full(l::__NR_mq_notify, "mq_notify", notices::mq_notify),
    full(l::__NR_mq_getsetattr, "mq_getsetattr", mq_getsetattr),
];

/// Queues there can be, at first; messages of a queue and bytes of a message, for those who do
/// not say it, the most, and the most with CAP_SYS_RESOURCE.
pub const QUEUES: u64 = 256;
pub const MESSAGES: u64 = 10;
pub const BYTES: u64 = 8192;
const MESSAGES_MOST: u64 = 65_536;
const BYTES_MOST: u64 = 16 << 20;
/// Priorities are below.
const PRIORITIES: u32 = 32_768;
/// What a queue costs, and a message beside its bytes.
const QUEUE_BYTES: u64 = 1024;
const MESSAGE_BYTES: u64 = 96;
/// Longest name.
const NAME_MAX: usize = 255;

/// All queues that have names.
pub struct Queues {
    by_name: RefCell<BTreeMap<Vec<u8>, Rc<Queue>>>,
    /// How many there can be (`/proc/sys/fs/mqueue/queues_max`).
    pub most: Cell<u64>,
}

impl Default for Queues {
    fn default() -> Self {
        Self { by_name: RefCell::default(), most: Cell::new(QUEUES) }
    }
}

/// A queue.
pub(super) struct Queue {
    /// (most urgent first by the reversed priority, number): contents.
    messages: RefCell<BTreeMap<(u32, u64), Vec<u8>>>,
    sent: Cell<u64>,
    most: u64,
    bytes: u64,
    can_send: WaitQueue,
    can_receive: WaitQueue,
    /// Who is told.
    pub(super) notify: RefCell<Option<Notify>>,
    inode: Rc<Inode>,
    _charge: Charge,
}

/// An open queue.
struct Handle(Rc<Queue>);

impl File for Handle {
    fn read(&self, _: &Cx, _: &Open, sink: &mut Sink, offset: u64) -> Result<usize, Stop> {
        let bytes: usize = self.0.messages.borrow().values().map(Vec::len).sum();
        let text = alloc::format!("QSIZE:{bytes:<10} NOTIFY:0     SIGNO:0     NOTIFY_PID:0     \n");
        let start = text.len().min(offset as usize);
        Ok(sink.put(&text.as_bytes()[start..])?)
    }

    fn write(&self, _: &Cx, _: &Open, _: &mut Source, _: u64) -> Result<usize, Stop> {
        Err(Errno::EINVAL.into())
    }

    fn poll(&self, _: &Cx) -> Events {
        let count = self.0.messages.borrow().len() as u64;
        let mut events = Events::empty();
        events.set(Events::READABLE, count > 0);
        events.set(Events::WRITABLE, count < self.0.most);
        events
    }

    fn watch(&self, _: &Cx, _: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        visit(&self.0.can_receive);
        visit(&self.0.can_send);
    }

    fn closed(&self, open: &Open) {
        self.0.description_closed(open);
    }

    fn inode(&self) -> Rc<Inode> {
        self.0.inode.clone()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// The name at argument 0: without a slash, as the library passes it.
fn name(cx: &Cx) -> Result<Vec<u8>, Errno> {
    let name = cx.user().read_path(cx.arg(0))?;
    match name.len() {
        0 => Err(Errno::ENOENT),
        len if len > NAME_MAX => Err(Errno::ENAMETOOLONG),
        _ if name.contains(&b'/') || matches!(&name[..], b"." | b"..") => Err(Errno::EACCES),
        _ => Ok(name),
    }
}

/// `struct mq_attr`: flags, most messages, bytes of each, messages now.
type Attributes = [u64; 8];

/// `mq_open(name, flags, mode, attributes)`.
fn mq_open(cx: &Cx) -> Answer {
    let name = name(cx)?;
    let flags = cx.uint(1);
    let found = super::seen(cx).queues.by_name.borrow().get(&name).cloned();
    let is_new = found.is_none();
    let queue = match found {
        Some(_) if flags & l::O_CREAT != 0 && flags & l::O_EXCL != 0 => {
            return Err(Errno::EEXIST.into());
        }
        Some(queue) => {
            let wanted = match flags & l::O_ACCMODE {
                l::O_RDONLY => permission::READ,
                l::O_WRONLY => permission::WRITE,
                l::O_RDWR => permission::READ | permission::WRITE,
                _ => return Err(Errno::EINVAL.into()),
            };
            permission::check(&queue.inode, &cx.process.credentials.borrow(), wanted)?;
            queue
        }
        None if flags & l::O_CREAT == 0 => return Err(Errno::ENOENT.into()),
        None => create(cx, &name)?,
    };
    let kept = flags & (l::O_ACCMODE | l::O_NONBLOCK);
    let path = [b"/", &name[..]].concat();
    let opened = Open::new(cx, Rc::new(Handle(queue)), kept, path);
    let fd = opened.and_then(|opened| cx.add_file(opened, true));
    if fd.is_err() && is_new {
        // Nobody has it.
        let gone = super::seen(cx).queues.by_name.borrow_mut().remove(&name);
        drop(gone);
    }
    Ok(fd?.into())
}

fn create(cx: &Cx, name: &[u8]) -> Result<Rc<Queue>, Errno> {
    let ipc = super::seen(cx);
    let queues = &ipc.queues;
    let privileged = cx.process.credentials.borrow().may(l::CAP_SYS_RESOURCE);
    let (most, bytes) = match cx.arg(3) {
        0 => (MESSAGES, BYTES),
        address => {
            let [_, most, bytes, ..] = cx.user().read::<Attributes>(address)?;
            let limits = if privileged { (MESSAGES_MOST, BYTES_MOST) } else { (MESSAGES, BYTES) };
            if most == 0 || bytes == 0 || most > limits.0 || bytes > limits.1 {
                return Err(Errno::EINVAL);
            }
            (most, bytes)
        }
    };
    if queues.by_name.borrow().len() as u64 >= queues.most.get() && !privileged {
        return Err(Errno::ENOSPC);
    }
    let cost = QUEUE_BYTES + most * (bytes + MESSAGE_BYTES) + name.len() as u64;
    let charge = cx.pay(cost as usize).map_err(|_| Errno::ENOMEM)?;
    let inode = cx.unix.fs.queue(cx)?;
    let umask = cx.process.place.borrow().umask.get();
    inode.mode.set(inode.file_type() | cx.uint(2) & !umask & 0o777);
    let queue = Rc::new(Queue {
        messages: RefCell::default(),
        sent: Cell::new(0),
        most,
        bytes,
        can_send: WaitQueue::default(),
        can_receive: WaitQueue::default(),
        notify: RefCell::new(None),
        inode,
        _charge: charge,
    });
    queues.by_name.borrow_mut().insert(name.to_vec(), queue.clone());
    Ok(queue)
}

/// `mq_unlink(name)`.
fn mq_unlink(cx: &Cx) -> Answer {
    let name = name(cx)?;
    let ipc = super::seen(cx);
    let queues = &ipc.queues.by_name;
    let queue = queues.borrow().get(&name).cloned().ok_or(Errno::ENOENT)?;
    // The directory of queues is sticky: the owner's, and who may as if.
    if !permission::owns(&cx.process.credentials.borrow(), &queue.inode) {
        return Err(Errno::EACCES.into());
    }
    let gone = queues.borrow_mut().remove(&name);
    drop(gone);
    Ok(0)
}

/// The open queue of descriptor argument 0.
pub(super) fn queue(cx: &Cx) -> Result<(Rc<Open>, Rc<Queue>), Errno> {
    let open = cx.file(cx.uint(0))?;
    let queue = open.file.as_any().downcast_ref::<Handle>().map(|handle| handle.0.clone());
    Ok((open, queue.ok_or(Errno::EBADF)?))
}

/// The deadline of argument 4, if there is one.
fn set_deadline(cx: &Cx) -> Result<(), Errno> {
    if cx.arg(4) != 0 && !cx.is_retry() {
        let at_ns = cx.user().read::<Timespec>(cx.arg(4))?.nanoseconds()?;
        let clock = Clock::new(cx, l::CLOCK_REALTIME as i32)?;
        cx.set_deadline(Some(clock.machine_time(cx.unix, at_ns)));
    }
    Ok(())
}

/// The call waits, as far as it may.
fn wait(cx: &Cx, open: &Open, queue: &WaitQueue) -> Stop {
    if open.is_nonblocking() {
        return Errno::EAGAIN.into();
    }
    if cx.expired() {
        return Errno::ETIMEDOUT.into();
    }
    cx.on_signal(OnSignal::Restart);
    cx.block_on(queue)
}

/// `mq_timedsend(queue, bytes, len, priority, deadline)`.
fn mq_timedsend(cx: &Cx) -> Answer {
    let (len, priority) = (cx.arg(2), cx.uint(3));
    set_deadline(cx)?;
    if priority >= PRIORITIES {
        return Err(Errno::EINVAL.into());
    }
    let (open, queue) = queue(cx)?;
    if !open.can_write() {
        return Err(Errno::EBADF.into());
    }
    if len > queue.bytes {
        return Err(Errno::EMSGSIZE.into());
    }
    let mut bytes = alloc::vec![0; len as usize];
    cx.user().read_bytes(cx.arg(1), &mut bytes)?;
    let count = queue.messages.borrow().len();
    if count as u64 >= queue.most {
        return Err(wait(cx, &open, &queue.can_send));
    }
    let number = queue.sent.get();
    queue.sent.set(number + 1);
    queue.messages.borrow_mut().insert((PRIORITIES - priority, number), bytes);
    let taken = queue.can_receive.wake_everybody();
    if count == 0 && !taken {
        queue.tell(cx);
    }
    Ok(0)
}

/// `mq_timedreceive(queue, bytes, room, priority, deadline)`.
fn mq_timedreceive(cx: &Cx) -> Answer {
    set_deadline(cx)?;
    let (open, queue) = queue(cx)?;
    if !open.can_read() {
        return Err(Errno::EBADF.into());
    }
    if cx.arg(2) < queue.bytes {
        return Err(Errno::EMSGSIZE.into());
    }
    let Some(((priority, _), bytes)) = queue.messages.borrow_mut().pop_first() else {
        return Err(wait(cx, &open, &queue.can_receive));
    };
    queue.can_send.wake_all();
    cx.user().write_bytes(cx.arg(1), &bytes)?;
    if cx.arg(3) != 0 {
        cx.user().write(cx.arg(3), &(PRIORITIES - priority))?;
    }
    Ok(bytes.len() as u64)
}

/// `mq_getsetattr(queue, new, old)`.
fn mq_getsetattr(cx: &Cx) -> Answer {
    let nonblocking = u64::from(l::O_NONBLOCK);
    let new = match cx.arg(1) {
        0 => None,
        address => Some(cx.user().read::<Attributes>(address)?[0]),
    };
    if new.is_some_and(|flags| flags & !nonblocking != 0) {
        return Err(Errno::EINVAL.into());
    }
    let (open, queue) = queue(cx)?;
    let flags = open.flags.get();
    if cx.arg(2) != 0 {
        let count = queue.messages.borrow().len() as u64;
        let old = [u64::from(flags) & nonblocking, queue.most, queue.bytes, count, 0, 0, 0, 0];
        cx.user().write::<Attributes>(cx.arg(2), &old)?;
    }
    if let Some(new) = new {
        open.flags.set(flags & !l::O_NONBLOCK | new as u32);
    }
    Ok(0)
}
