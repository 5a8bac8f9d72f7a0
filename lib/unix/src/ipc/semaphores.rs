//! Sets of semaphores. Whoever waits tries all of its operations again whenever one of the set
//! has changed: they happen together or not at all.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;
use zerocopy::IntoBytes;

use super::table::{Object, READ, WRITE};
use super::{INFO, IPC_64, NO_WAIT, RMID, Record, SET, STAT, seconds, undo};
use crate::account::{Charge, What};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::process::Pid;
use crate::signal::OnSignal;
use crate::time::Timespec;
use crate::wait::WaitQueue;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_semget, "semget", semget),
    full(l::__NR_semop, "semop", semop),
    full(l::__NR_semtimedop, "semtimedop", semtimedop),
    full(l::__NR_semctl, "semctl", semctl),
];

/// Linux's limits: sets, semaphores of a set, operations of a call, a semaphore's value.
pub const MOST: u32 = 32_000;
pub const SET_MAX: u32 = 32_000;
pub const OPERATIONS_MAX: u64 = 500;
pub const VALUE_MAX: i32 = 32_767;

/// `semctl`'s own commands.
const GET_PID: u32 = 11;
const GET_VALUE: u32 = 12;
const GET_ALL: u32 = 13;
const COUNT_LESS: u32 = 14;
const COUNT_ZERO: u32 = 15;
const SET_VALUE: u32 = 16;
const SET_ALL: u32 = 17;
const STAT_AT: u32 = 18;
const INFO_NOW: u32 = 19;
const STAT_ANY: u32 = 20;
/// `SEM_UNDO`.
const UNDO: u32 = 0x1000;

/// A semaphore.
#[derive(Clone, Copy, Default)]
pub(super) struct One {
    pub value: i32,
    /// Who has changed it last.
    pub pid: Pid,
}

/// What a call waits for.
#[derive(Clone, Copy)]
enum Awaited {
    More,
    Zero,
}

impl Awaited {
    /// What the progress of a call is that waits for this of a semaphore.
    fn of(self, number: u16) -> u64 {
        u64::from(number) << 1 | self as u64
    }
}

/// A set.
pub struct Set {
    pub(super) all: RefCell<Vec<One>>,
    pub(super) undo: RefCell<BTreeMap<(Pid, u16), i32>>,
    pub(super) charge: Charge,
    pub(super) changed: WaitQueue,
    /// When: operated on, changed.
    times: [Cell<i64>; 2],
}

impl Set {
    /// What it costs has changed.
    pub(super) fn count(&self) {
        let undos = self.undo.borrow().len() as u64 * undo::BYTES;
        self.charge.set(undos + (self.all.borrow().len() * size_of::<One>()) as u64);
    }

    /// Semaphores were given values.
    fn was_set(&self, cx: &Cx) {
        self.count();
        self.times[1].set(seconds(cx.unix));
        self.changed.wake_all();
    }

    /// How many wait for this semaphore.
    fn waiting(&self, number: u16, awaited: Awaited) -> u64 {
        self.changed.count(|thread| thread.progress.get() == awaited.of(number)) as u64
    }
}

fn semget(cx: &Cx) -> Answer {
    let count = cx.int(1);
    let most = SET_MAX as i32;
    if !(0..=most).contains(&count) {
        return Err(Errno::EINVAL.into());
    }
    let count = count as usize;
    let fits = |old: &Set| if count > old.all.borrow().len() { Err(Errno::EINVAL) } else { Ok(()) };
    let make = || {
        if count == 0 {
            return Err(Errno::EINVAL);
        }
        let charge = cx.charge(What::Heap);
        charge.grow((count * size_of::<One>()) as u64)?;
        Ok(Set {
            all: RefCell::new(alloc::vec![One::default(); count]),
            undo: RefCell::default(),
            charge,
            changed: WaitQueue::default(),
            times: [Cell::new(0), Cell::new(seconds(cx.unix))],
        })
    };
    Ok(super::seen(cx).semaphores.get(cx, (cx.int(0), cx.uint(2)), fits, make)?)
}

/// One operation.
#[derive(Clone, Copy)]
struct Operation {
    number: u16,
    by: i32,
    flags: u32,
}

fn semop(cx: &Cx) -> Answer {
    operate(cx)
}

fn semtimedop(cx: &Cx) -> Answer {
    if !cx.is_retry() && cx.arg(3) != 0 {
        let ns = cx.user().read::<Timespec>(cx.arg(3))?.nanoseconds()?;
        cx.set_deadline(Some(cx.unix.machine.now_ns().saturating_add(ns)));
    }
    operate(cx)
}

/// `semop(id, operations, count)`.
fn operate(cx: &Cx) -> Answer {
    let count = cx.arg(2);
    if count == 0 || cx.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    if count > OPERATIONS_MAX {
        return Err(Errno::E2BIG.into());
    }
    let mut records = alloc::vec![[0_u16; 3]; count as usize];
    cx.user().read_bytes(cx.arg(1), records.as_mut_bytes())?;
    let read = |[number, by, flags]: [u16; 3]| Operation {
        number,
        by: i32::from(by as i16),
        flags: flags.into(),
    };
    let operations: Vec<Operation> = records.into_iter().map(read).collect();
    let object = super::seen(cx).semaphores.find_again(cx)?;
    let set = &object.of;
    let len = set.all.borrow().len();
    if operations.iter().any(|one| usize::from(one.number) >= len) {
        return Err(Errno::EFBIG.into());
    }
    let changes = operations.iter().any(|one| one.by != 0);
    object.owner.check(cx, if changes { WRITE } else { READ })?;
    let (all, undone) = match outcome(cx, set, &operations)? {
        Ok(outcome) => outcome,
        Err(waits) => return wait(cx, set, waits),
    };
    set.charge.grow(undone.len() as u64 * undo::BYTES)?;
    *set.all.borrow_mut() = all;
    for (number, back) in undone {
        cx.process.state.undoes.set(true);
        undo::note(set, cx.process.pid, number, back);
    }
    set.times[0].set(seconds(cx.unix));
    if changes {
        set.changed.wake_all();
    }
    Ok(0)
}

/// The semaphores after some operations, and what is to be taken back from them at the caller's end.
type Outcome = (Vec<One>, BTreeMap<u16, i32>);

/// What the operations lead to, or the first one that cannot be done now.
fn outcome<'a>(
    cx: &Cx,
    set: &Set,
    operations: &'a [Operation],
) -> Result<Result<Outcome, &'a Operation>, Errno> {
    let (mut all, mut undone) = (set.all.borrow().clone(), BTreeMap::new());
    for one in operations {
        let semaphore = &mut all[usize::from(one.number)];
        let value = semaphore.value + one.by;
        let waits = if one.by == 0 { semaphore.value != 0 } else { value < 0 };
        if waits {
            return Ok(Err(one));
        }
        if value > VALUE_MAX {
            return Err(Errno::ERANGE);
        }
        if one.flags & UNDO != 0 && one.by != 0 {
            let back = undone.entry(one.number);
            let back = back.or_insert_with(|| undo::of(set, cx.process.pid, one.number));
            *back -= one.by;
            undo::check(*back)?;
        }
        (semaphore.value, semaphore.pid) = (value, cx.process.pid);
    }
    Ok(Ok((all, undone)))
}

/// An operation cannot be done now.
fn wait(cx: &Cx, set: &Set, one: &Operation) -> Answer {
    if one.flags & NO_WAIT != 0 || cx.expired() {
        return Err(Errno::EAGAIN.into());
    }
    cx.on_signal(OnSignal::Return);
    let awaited = if one.by == 0 { Awaited::Zero } else { Awaited::More };
    cx.set_progress(awaited.of(one.number));
    Err(cx.block_on(&set.changed))
}

/// `semctl(id, number, command, argument)`.
fn semctl(cx: &Cx) -> Answer {
    let ipc = super::seen(cx);
    let (table, command) = (&ipc.semaphores, cx.uint(2) & !IPC_64);
    if cx.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    match command {
        INFO | INFO_NOW => {
            let used: u32 = table.all().map(|one| one.of.all.borrow().len() as u32).sum();
            let (sets, undos) = match command {
                INFO => (20, VALUE_MAX as u32),
                _ => (table.count(), used),
            };
            let most = table.most.get();
            let numbers = [
                1_024_000_000,
                most,
                1_024_000_000,
                1_024_000_000,
                SET_MAX,
                OPERATIONS_MAX as u32,
                OPERATIONS_MAX as u32,
                sets,
                VALUE_MAX as u32,
                undos,
            ];
            let told = numbers.into_iter().fold(Record::default(), Record::int);
            told.answer(cx, cx.arg(3), table.highest())
        }
        STAT_AT | STAT_ANY => {
            let object = table.at(cx.uint(0)).ok_or(Errno::EINVAL)?;
            if command == STAT_AT {
                object.owner.check(cx, READ)?;
            }
            told(cx, &object).answer(cx, cx.arg(3), object.id.into())
        }
        _ => control(cx, &table.find(cx.int(0))?, command),
    }
}

fn told(cx: &Cx, object: &Rc<Object<Set>>) -> Record {
    let set = &object.of;
    let record = object.record(cx).long(set.times[0].get() as u64).long(0);
    let record = record.long(set.times[1].get() as u64).long(0);
    record.long(set.all.borrow().len() as u64).long(0).long(0)
}

/// The commands about one set.
fn control(cx: &Cx, object: &Rc<Object<Set>>, command: u32) -> Answer {
    let set = &object.of;
    match command {
        STAT => {
            object.owner.check(cx, READ)?;
            told(cx, object).answer(cx, cx.arg(3), 0)
        }
        SET => {
            object.owner.set(cx, cx.arg(3))?;
            set.times[1].set(seconds(cx.unix));
            Ok(0)
        }
        RMID => {
            object.owner.check_own(cx)?;
            super::seen(cx).semaphores.remove(object);
            set.changed.wake_all();
            Ok(0)
        }
        GET_ALL => {
            object.owner.check(cx, READ)?;
            let values: Vec<u16> = set.all.borrow().iter().map(|one| one.value as u16).collect();
            cx.user().write_bytes(cx.arg(3), values.as_bytes())?;
            Ok(0)
        }
        SET_ALL => {
            object.owner.check(cx, WRITE)?;
            let mut values = alloc::vec![0_u16; set.all.borrow().len()];
            cx.user().read_bytes(cx.arg(3), values.as_mut_bytes())?;
            if values.iter().any(|value| i32::from(*value) > VALUE_MAX) {
                return Err(Errno::ERANGE.into());
            }
            let given = |value: u16| One { value: value.into(), pid: cx.process.pid };
            *set.all.borrow_mut() = values.into_iter().map(given).collect();
            // Nobody takes anything back from any of them.
            drop(set.undo.take());
            set.was_set(cx);
            Ok(0)
        }
        GET_PID | GET_VALUE | COUNT_LESS | COUNT_ZERO | SET_VALUE => one(cx, object, command),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// The commands about one semaphore.
fn one(cx: &Cx, object: &Rc<Object<Set>>, command: u32) -> Answer {
    let set = &object.of;
    object.owner.check(cx, if command == SET_VALUE { WRITE } else { READ })?;
    let number = cx.uint(1) as usize;
    let one = set.all.borrow().get(number).copied().ok_or(Errno::EINVAL)?;
    match command {
        GET_PID => Ok(cx.shown(one.pid).into()),
        GET_VALUE => Ok(one.value as u64),
        COUNT_LESS => Ok(set.waiting(number as u16, Awaited::More)),
        COUNT_ZERO => Ok(set.waiting(number as u16, Awaited::Zero)),
        _ => {
            let value = cx.int(3);
            if !(0..=VALUE_MAX).contains(&value) {
                return Err(Errno::ERANGE.into());
            }
            put(cx, set, number, value);
            Ok(0)
        }
    }
}

/// Gives a semaphore a value; nobody takes anything back from it any more.
fn put(cx: &Cx, set: &Set, number: usize, value: i32) {
    if let Some(one) = set.all.borrow_mut().get_mut(number) {
        *one = One { value, pid: cx.process.pid };
    }
    set.undo.borrow_mut().retain(|(_, which), _| usize::from(*which) != number);
    set.was_set(cx);
}

/// `/proc/sysvipc/sem`.
pub fn list(cx: &Cx, from: u64, text: &mut Vec<u8>) -> Option<u64> {
    let head =
        "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n";
    super::seen(cx).semaphores.told(from, text, head, |object| {
        let set = &object.of;
        let middle = alloc::format!(" {:10}", set.all.borrow().len());
        let end = alloc::format!("{:10} {:10}", set.times[0].get(), set.times[1].get());
        object.line(cx, &middle, &end)
    })
}
