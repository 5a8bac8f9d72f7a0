//! Shared memory. A segment that was removed stays as long as somebody has it attached, but its
//! pages are nobody's afterwards: what holds them is the mappings alone.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::table::{Object, READ, WRITE};
use super::{INFO, IPC_64, RMID, Record, SET, STAT, seconds};
use crate::account::What;
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::memory::PAGE;
use crate::mm::attach::attach;
use crate::mm::shared::SharedMemory;
use crate::process::Pid;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_shmget, "shmget", shmget, "huge pages"),
    full(l::__NR_shmat, "shmat", shmat),
    full(l::__NR_shmdt, "shmdt", shmdt),
    partial(l::__NR_shmctl, "shmctl", shmctl, "SHM_LOCK locks nothing: nothing is swapped"),
];

/// Linux's limits: segments, bytes of one, pages of all.
pub const MOST: u32 = 4096;
pub const BYTES_MAX: u64 = u64::MAX - (1 << 24);

const HUGE: u32 = 0o4000;
/// `shmat`'s flags.
const READ_ONLY: u32 = 0o10_000;
const ROUND: u32 = 0o20_000;
const REPLACE: u32 = 0o40_000;
const EXECUTE: u32 = 0o100_000;
/// In a mode: it ends with its last attachment.
const DOOMED: u32 = 0o1000;
/// In a mode: locked.
const LOCKED: u32 = 0o2000;
/// `shmctl`'s own commands.
const LOCK: u32 = 11;
const UNLOCK: u32 = 12;
const STAT_AT: u32 = 13;
const INFO_NOW: u32 = 14;
const STAT_ANY: u32 = 15;

/// A segment.
pub struct Segment {
    bytes: u64,
    /// None when it was removed.
    kept: RefCell<Option<Rc<SharedMemory>>>,
    memory: Weak<SharedMemory>,
    /// When: attached, detached, changed.
    times: [Cell<i64>; 3],
    maker: Pid,
    last: Cell<Pid>,
}

impl Segment {
    /// How many mappings there are.
    fn attached(&self) -> u64 {
        (self.memory.strong_count() - usize::from(self.kept.borrow().is_some())) as u64
    }

    fn pages(&self) -> u64 {
        self.bytes.div_ceil(PAGE as u64)
    }
}

/// Forgets those that were removed and are attached no more.
fn tidy(cx: &Cx) {
    let ipc = super::seen(cx);
    let (table, doomed) = (&ipc.segments, &ipc.doomed);
    if doomed.get() == 0 {
        return;
    }
    for gone in table.all().filter(|one| one.of.memory.strong_count() == 0) {
        table.remove(&gone);
        doomed.set(doomed.get() - 1);
    }
}

fn shmget(cx: &Cx) -> Answer {
    tidy(cx);
    let (bytes, flags) = (cx.arg(1), cx.uint(2));
    let fits = |old: &Segment| if bytes > old.bytes { Err(Errno::EINVAL) } else { Ok(()) };
    let make = || {
        if bytes == 0 || bytes > BYTES_MAX {
            return Err(Errno::EINVAL);
        }
        if flags & HUGE != 0 {
            return Err(Errno::ENOMEM);
        }
        // No process has to answer for the frames: its maker's user pays for all of them.
        let frames = cx.charge(What::Frames);
        frames.grow(bytes.div_ceil(PAGE as u64))?;
        let whole = bytes.next_multiple_of(PAGE as u64);
        let memory = SharedMemory::paid(cx.unix, whole, cx.charge(What::Heap), frames)?;
        Ok(Segment {
            bytes,
            memory: Rc::downgrade(&memory),
            kept: RefCell::new(Some(memory)),
            times: [Cell::new(0), Cell::new(0), Cell::new(seconds(cx.unix))],
            maker: cx.process.pid,
            last: Cell::default(),
        })
    };
    Ok(super::seen(cx).segments.get(cx, (cx.int(0), flags), fits, make)?)
}

/// `shmat(id, address, flags)`.
fn shmat(cx: &Cx) -> Answer {
    tidy(cx);
    let (address, flags) = (cx.arg(1), cx.uint(2));
    let object = super::seen(cx).segments.find(cx.int(0))?;
    let offset = address % PAGE as u64;
    if offset != 0 && flags & ROUND == 0 || address == 0 && flags & REPLACE != 0 {
        return Err(Errno::EINVAL.into());
    }
    let at = address - offset;
    if address != 0 && at == 0 {
        return Err(Errno::EINVAL.into());
    }
    let write = flags & READ_ONLY == 0;
    object.owner.check(cx, if write { READ | WRITE } else { READ })?;
    let memory = object.of.memory.upgrade().ok_or(Errno::EIDRM)?;
    let mut prot = l::PROT_READ;
    prot |= if write { l::PROT_WRITE } else { 0 };
    prot |= if flags & EXECUTE != 0 { l::PROT_EXEC } else { 0 };
    let place = match flags & REPLACE {
        _ if at == 0 => 0,
        0 => l::MAP_FIXED_NOREPLACE,
        _ => l::MAP_FIXED,
    };
    let start = attach(cx, memory, (at, object.of.bytes), prot, place)?;
    object.of.times[0].set(seconds(cx.unix));
    object.of.last.set(cx.process.pid);
    Ok(start)
}

/// `shmdt(address)`.
fn shmdt(cx: &Cx) -> Answer {
    let address = cx.arg(0);
    let memory = cx.process.space().shared_at(address).filter(|memory| memory.is_segment());
    let memory = memory.ok_or(Errno::EINVAL)?;
    let mut all = super::seen(cx).segments.all();
    // One of another namespace tells nobody here about itself.
    let object = all.find(|one| core::ptr::eq(one.of.memory.as_ptr(), Rc::as_ptr(&memory)));
    cx.process.space().detach(cx.unix, address, &memory);
    if let Some(object) = &object {
        object.of.times[1].set(seconds(cx.unix));
        object.of.last.set(cx.process.pid);
    }
    drop((object, memory));
    tidy(cx);
    cx.unix.mm.bury(cx.unix);
    Ok(0)
}

/// `shmctl(id, command, record)`.
fn shmctl(cx: &Cx) -> Answer {
    tidy(cx);
    let ipc = super::seen(cx);
    let (table, command, record) = (&ipc.segments, cx.uint(1) & !IPC_64, cx.arg(2));
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
            object.owner.set(cx, record)?;
            object.of.times[2].set(seconds(cx.unix));
            Ok(0)
        }
        LOCK | UNLOCK => lock(cx, &table.find(cx.int(0))?, command),
        RMID => {
            let object = table.find(cx.int(0))?;
            object.owner.check_own(cx)?;
            table.forget_key(&object);
            object.owner.mode.set(object.owner.mode.get() | DOOMED);
            let kept = object.of.kept.take();
            if let Some(memory) = kept {
                memory.remove();
                ipc.doomed.set(ipc.doomed.get() + 1);
            }
            drop(object);
            tidy(cx);
            cx.unix.mm.bury(cx.unix);
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

/// `SHM_LOCK` and `SHM_UNLOCK`.
fn lock(cx: &Cx, object: &Rc<Object<Segment>>, command: u32) -> Answer {
    if !cx.process.credentials.borrow().may(l::CAP_IPC_LOCK) {
        object.owner.check_own(cx)?;
        if command == LOCK && crate::mm::map::limit(cx, l::RLIMIT_MEMLOCK) == 0 {
            return Err(Errno::EPERM.into());
        }
    }
    let mode = object.owner.mode.get() & !LOCKED;
    object.owner.mode.set(mode | if command == LOCK { LOCKED } else { 0 });
    Ok(0)
}

/// The commands about all segments.
fn about_all(cx: &Cx, command: u32) -> Answer {
    let ipc = super::seen(cx);
    let (table, record) = (&ipc.segments, cx.arg(2));
    match command {
        INFO => {
            let numbers = [BYTES_MAX, 1, table.most.get().into(), table.most.get().into()];
            let told = numbers.into_iter().fold(Record::default(), Record::long);
            let told = [BYTES_MAX, 0, 0, 0, 0].into_iter().fold(told, Record::long);
            told.answer(cx, record, table.highest())
        }
        _ => {
            let pages: u64 = table.all().map(|one| one.of.pages()).sum();
            let resident = table.all().filter_map(|one| one.of.memory.upgrade());
            let resident: u64 = resident.map(|memory| memory.resident()).sum();
            let told = Record::default().int(table.count()).int(0).long(pages).long(resident);
            told.long(0).long(0).long(0).answer(cx, record, table.highest())
        }
    }
}

fn told(cx: &Cx, object: &Rc<Object<Segment>>) -> Record {
    let segment = &object.of;
    let times = segment.times.iter();
    times
        .fold(object.record(cx).long(segment.bytes), |record, time| record.long(time.get() as u64))
        .int(cx.shown(segment.maker))
        .int(cx.shown(segment.last.get()))
        .long(segment.attached())
        .long(0)
        .long(0)
}

/// `/proc/sysvipc/shm`.
pub fn list(cx: &Cx, from: u64, text: &mut Vec<u8>) -> Option<u64> {
    if from == 0 {
        tidy(cx);
    }
    let head = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  \
         cgid      atime      dtime      ctime                   rss                  swap\n";
    super::seen(cx).segments.told(from, text, head, |object| {
        let segment = &object.of;
        let middle = alloc::format!(
            "{:21} {:5} {:5}  {:5}",
            segment.bytes,
            cx.shown(segment.maker),
            cx.shown(segment.last.get()),
            segment.attached()
        );
        let [attached, detached, changed] = segment.times.each_ref().map(Cell::get);
        let resident = segment.memory.upgrade().map_or(0, |memory| memory.resident());
        let end = alloc::format!(
            "{attached:10} {detached:10} {changed:10} {:21} {:21}",
            resident * PAGE as u64,
            0
        );
        object.line(cx, &middle, &end)
    })
}
