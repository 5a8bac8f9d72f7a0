//! Message queues.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::table::{Object, READ, WRITE};
use super::{INFO, IPC_64, NO_WAIT, RMID, Record, SET, STAT, seconds};
use crate::account::{Charge, What};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::process::Pid;
use crate::room::Room;
use crate::signal::OnSignal;
use crate::wait::WaitQueue;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_msgget, "msgget", msgget),
    full(l::__NR_msgsnd, "msgsnd", msgsnd),
    full(l::__NR_msgrcv, "msgrcv", msgrcv),
    full(l::__NR_msgctl, "msgctl", msgctl),
];

/// Linux's limits: queues, bytes of a message, bytes of a queue.
pub const MOST: u32 = 32_000;
pub const MESSAGE_MAX: u64 = 8192;
pub const QUEUE_MAX: u64 = 16_384;

/// `msgctl`'s own commands.
const STAT_AT: u32 = 11;
const INFO_NOW: u32 = 12;
const STAT_ANY: u32 = 13;
/// What `msgrcv` can be told: cut, all kinds but this, leave it there.
const CUT: u32 = 0o10_000;
const EXCEPT: u32 = 0o20_000;
const COPY: u32 = 0o40_000;
/// What a message costs beside its bytes.
const MESSAGE_BYTES: u64 = 64;

struct Message {
    kind: i64,
    bytes: Vec<u8>,
}

/// A message queue.
pub struct Queue {
    messages: RefCell<VecDeque<Message>>,
    charge: Charge,
    bytes: Cell<u64>,
    most: Cell<u64>,
    /// When: sent, received, changed.
    times: [Cell<i64>; 3],
    /// Who was the last: sender, receiver.
    last: [Cell<Pid>; 2],
    can_send: WaitQueue,
    can_receive: WaitQueue,
}

fn msgget(cx: &Cx) -> Answer {
    let make = || {
        Ok(Queue {
            messages: RefCell::default(),
            charge: cx.charge(What::Heap),
            bytes: Cell::new(0),
            most: Cell::new(QUEUE_MAX),
            times: [Cell::new(0), Cell::new(0), Cell::new(seconds(cx.unix))],
            last: Default::default(),
            can_send: WaitQueue::default(),
            can_receive: WaitQueue::default(),
        })
    };
    Ok(super::seen(cx).messages.get(cx, (cx.int(0), cx.uint(1)), |_| Ok(()), make)?)
}

/// `msgsnd(id, message, len, flags)`.
fn msgsnd(cx: &Cx) -> Answer {
    let (from, len) = (cx.arg(1), cx.arg(2));
    let kind: i64 = cx.user().read(from)?;
    if len > MESSAGE_MAX || kind < 1 || cx.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let object = super::seen(cx).messages.find_again(cx)?;
    let queue = &object.of;
    object.owner.check(cx, WRITE)?;
    let count = queue.messages.borrow().len() as u64;
    if queue.bytes.get() + len > queue.most.get() || count + 1 > queue.most.get() {
        if cx.uint(3) & NO_WAIT != 0 {
            return Err(Errno::EAGAIN.into());
        }
        cx.on_signal(OnSignal::Return);
        return Err(cx.block_on(&queue.can_send));
    }
    queue.charge.grow(len + MESSAGE_BYTES)?;
    let mut bytes = alloc::vec![0; len as usize];
    if let Err(errno) = cx.user().read_bytes(from.wrapping_add(8), &mut bytes) {
        queue.charge.shrink(len + MESSAGE_BYTES);
        return Err(errno.into());
    }
    queue.messages.borrow_mut().push_back(Message { kind, bytes });
    queue.bytes.set(queue.bytes.get() + len);
    queue.times[0].set(seconds(cx.unix));
    queue.last[0].set(cx.process.pid);
    queue.can_receive.wake_all();
    Ok(0)
}

impl Queue {
    /// The place of the message that a receiver of `wanted` gets.
    fn find(&self, wanted: i64, flags: u32) -> Option<usize> {
        let messages = self.messages.borrow();
        let mut kinds = messages.iter().map(|message| message.kind);
        match wanted {
            _ if flags & COPY != 0 => {
                usize::try_from(wanted).ok().filter(|place| *place < messages.len())
            }
            0 => (!messages.is_empty()).then_some(0),
            1.. => kinds.position(|kind| (kind == wanted) != (flags & EXCEPT != 0)),
            _ => {
                let least = kinds.min().filter(|kind| *kind <= wanted.saturating_neg())?;
                messages.iter().position(|message| message.kind == least)
            }
        }
    }

    fn take(&self, place: usize) -> Option<Message> {
        let mut messages = self.messages.borrow_mut();
        let message = messages.remove(place)?;
        messages.trim();
        drop(messages);
        let len = message.bytes.len() as u64;
        self.bytes.set(self.bytes.get() - len);
        self.charge.shrink(len + MESSAGE_BYTES);
        self.can_send.wake_all();
        Some(message)
    }
}

/// `msgrcv(id, message, len, kind, flags)`.
fn msgrcv(cx: &Cx) -> Answer {
    let (to, room, wanted, flags) = (cx.arg(1), cx.arg(2), cx.arg(3) as i64, cx.uint(4));
    if room > i64::MAX as u64 || cx.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    if flags & COPY != 0 && (flags & EXCEPT != 0 || flags & NO_WAIT == 0) {
        return Err(Errno::EINVAL.into());
    }
    let object = super::seen(cx).messages.find_again(cx)?;
    let queue = &object.of;
    object.owner.check(cx, READ)?;
    let Some(place) = queue.find(wanted, flags) else {
        if flags & NO_WAIT != 0 {
            return Err(Errno::ENOMSG.into());
        }
        cx.on_signal(OnSignal::Return);
        return Err(cx.block_on(&queue.can_receive));
    };
    let len = queue.messages.borrow().get(place).map_or(0, |message| message.bytes.len() as u64);
    if len > room && flags & CUT == 0 {
        return Err(Errno::E2BIG.into());
    }
    let given = len.min(room);
    let write = |message: &Message| {
        cx.user().write(to, &message.kind)?;
        cx.user().write_bytes(to.wrapping_add(8), &message.bytes[..given as usize])
    };
    if flags & COPY != 0 {
        queue.messages.borrow().get(place).map_or(Ok(()), write)?;
        return Ok(given);
    }
    let message = queue.take(place);
    queue.times[1].set(seconds(cx.unix));
    queue.last[1].set(cx.process.pid);
    message.as_ref().map_or(Ok(()), write)?;
    Ok(given)
}

/// `msgctl(id, command, record)`.
fn msgctl(cx: &Cx) -> Answer {
    let ipc = super::seen(cx);
    let (table, command, record) = (&ipc.messages, cx.uint(1) & !IPC_64, cx.arg(2));
    if cx.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    match command {
        INFO | INFO_NOW => about_all(cx, command),
        STAT | STAT_AT | STAT_ANY => {
            let object = match command {
                STAT => table.find(cx.int(0))?,
                _ => table.at(cx.uint(0)).ok_or(Errno::EINVAL)?,
            };
            if command != STAT_ANY {
                object.owner.check(cx, READ)?;
            }
            let id = if command == STAT { 0 } else { object.id };
            told(cx, &object).answer(cx, record, id.into())
        }
        SET => {
            let object = table.find(cx.int(0))?;
            let most: u64 = cx.user().read(record.wrapping_add(88))?;
            object.owner.check_own(cx)?;
            if most > QUEUE_MAX && !cx.process.credentials.borrow().may(l::CAP_SYS_RESOURCE) {
                return Err(Errno::EPERM.into());
            }
            object.owner.set(cx, record)?;
            object.of.most.set(most);
            object.of.times[2].set(seconds(cx.unix));
            object.of.can_send.wake_all();
            Ok(0)
        }
        RMID => {
            let object = table.find(cx.int(0))?;
            object.owner.check_own(cx)?;
            table.remove(&object);
            object.of.can_send.wake_all();
            object.of.can_receive.wake_all();
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

/// The commands about all queues.
fn about_all(cx: &Cx, command: u32) -> Answer {
    let ipc = super::seen(cx);
    let table = &ipc.messages;
    let all = || table.all();
    let count = all().map(|one| one.of.messages.borrow().len() as u32).sum();
    let bytes = all().map(|one| one.of.bytes.get() as u32).sum();
    let (pool, map, headers) = match command {
        INFO => (table.most.get() * 16, QUEUE_MAX as u32, QUEUE_MAX as u32),
        _ => (table.count(), count, bytes),
    };
    let most = [MESSAGE_MAX as u32, QUEUE_MAX as u32, table.most.get(), 16];
    let record = Record::default().int(pool).int(map);
    let told = most.into_iter().fold(record, Record::int).int(headers).int(0xFFFF);
    told.answer(cx, cx.arg(2), table.highest())
}

fn told(cx: &Cx, object: &Rc<Object<Queue>>) -> Record {
    let queue = &object.of;
    let times = queue.times.iter();
    times
        .fold(object.record(cx), |record, time| record.long(time.get() as u64))
        .long(queue.bytes.get())
        .long(queue.messages.borrow().len() as u64)
        .long(queue.most.get())
        .int(cx.shown(queue.last[0].get()))
        .int(cx.shown(queue.last[1].get()))
        .long(0)
        .long(0)
}

/// `/proc/sysvipc/msg`.
pub fn list(cx: &Cx, from: u64, text: &mut Vec<u8>) -> Option<u64> {
    let head = "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      \
         stime      rtime      ctime\n";
    super::seen(cx).messages.told(from, text, head, |object| {
        let queue = &object.of;
        let middle = alloc::format!(
            " {:10} {:10} {:5} {:5}",
            queue.bytes.get(),
            queue.messages.borrow().len(),
            cx.shown(queue.last[0].get()),
            cx.shown(queue.last[1].get())
        );
        let [sent, received, changed] = queue.times.each_ref().map(Cell::get);
        object.line(cx, &middle, &alloc::format!("{sent:10} {received:10} {changed:10}"))
    })
}
