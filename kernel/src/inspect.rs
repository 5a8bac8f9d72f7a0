//! Inspect, Baton's extension: read-only records about the kernel's objects for
//! the monitor and the tests (`abi::inspect`). Nothing here changes anything.

use crate::elsewhere::visits;
use crate::space::spaces;
use crate::thread::{STRETCH, TcbRef, has_stretch, last_version, registry, set_error};
use abi::id::{THREAD_BITS, USER_BASE};
use abi::inspect::What;
use abi::{CallError, ThreadId, utcb};

use crate::arch::preemption::{self, Pace};
use crate::arch::{Frame, cpu};
use crate::control::schedule::inspect_state;
use crate::elsewhere;
use crate::mem;
use crate::space::SpaceRef;
use crate::thread;
use crate::usermem::Utcb;

/// A record: the words of `abi::inspect`.
type Record = [u64; 8];

/// Carries out Inspect for `caller`.
pub fn call(caller: TcbRef, frame: Frame) {
    let Some(own) = caller.space() else { return };
    let [what, index, argument, ..] = frame.arguments();
    let record = match what {
        what if what == What::Thread as u64 => match thread_record(own, index) {
            Ok(record) => record,
            Err(PutOff(rest)) => return frame.call_again(rest),
        },
        what if what == What::Space as u64 => match space_record(own, index) {
            Ok(record) => record,
            Err(PutOff(rest)) => return frame.call_again(rest),
        },
        what if what == What::Time as u64 => time_record(own, ThreadId(index)),
        what if what == What::Number as u64 => number_record(own, index),
        // These tell about everybody, and the check keeps others waiting for as long as it takes.
        what if whole(what) && !own.is_privileged() => {
            frame.set_result(0);
            return set_error(caller, CallError::NoPrivilege);
        }
        what if what == What::Mapping as u64 => mapping_record(argument, index),
        what if what == What::Kernel as u64 => Some(kernel_record()),
        what if what == What::Check as u64 => {
            Some([crate::check::violations(), 0, 0, 0, 0, 0, 0, 0])
        }
        what if what == What::Visits as u64 => visits_record(index, argument),
        _ => {
            frame.set_result(0);
            return set_error(caller, CallError::InvalidParameter);
        }
    };
    frame.set_result(u64::from(record.is_some()));
    frame.set_record(record.unwrap_or_default());
}

/// Interrupts wait, and the search for a record was not at its end: it goes on here.
struct PutOff(u64);

/// Whether the record is about the whole machine.
fn whole(what: u64) -> bool {
    [What::Mapping, What::Kernel, What::Check, What::Visits]
        .iter()
        .any(|known| *known as u64 == what)
}

/// Whether `own` is told about `space`: itself and the tasks below it.
fn sees(own: SpaceRef, space: Option<SpaceRef>, pace: &mut Pace) -> bool {
    pace.rounds(space.map_or(0, SpaceRef::clan_rounds));
    own.may_control(space).is_ok()
}

/// How often threads have come back from processor `index`, for eight reasons from `part` times eight on.
fn visits_record(index: u64, part: u64) -> Option<Record> {
    if !elsewhere::exists(index) {
        return None;
    }
    let other = visits::other(index as u32)?;
    let mut counts = other.came_back().chunks(8);
    let counts = counts.nth(usize::try_from(part).ok()?)?;
    let mut record = Record::default();
    record.iter_mut().zip(counts).for_each(|(word, count)| *word = count.get());
    Some(record)
}

/// Node `index` in preorder of the mapping tree of the frame at `phys`.
fn mapping_record(phys: u64, index: u64) -> Option<Record> {
    let sigma0 = thread::lookup(ThreadId::SIGMA0)?.space()?;
    let node = mem::trees::Tree::of(sigma0, phys).nth(index as usize)?;
    let (depth, space, bits) = (u64::from(node.depth), u64::from(node.space), u64::from(node.bits));
    Some([depth, space, node.vaddr, bits, u64::from(node.rights.0), 0, 0, 0])
}

/// The thread with the smallest number ≥ `index` of those that `own` is told about.
fn thread_record(own: SpaceRef, index: u64) -> Result<Option<Record>, PutOff> {
    let mut pace = Pace::default();
    let mut number = u32::try_from(index).unwrap_or(u32::MAX).max(USER_BASE);
    let mut is_new = true;
    while number < 1 << THREAD_BITS {
        pace.round();
        if preemption::is_due() {
            return Err(PutOff(number.into()));
        }
        if (is_new || number.is_multiple_of(STRETCH)) && !has_stretch(number) {
            number = (number / STRETCH + 1) * STRETCH;
            continue;
        }
        is_new = false;
        match thread::lookup_number(number) {
            Some(thread) if sees(own, thread.space(), &mut pace) => {
                return Ok(Some(record_of(thread)));
            }
            _ => number += 1,
        }
    }
    Ok(None)
}

fn record_of(thread: TcbRef) -> Record {
    let (ip, sp) = thread.user_ip_sp();
    let pager = Utcb::of(thread).map_or(0, |utcb| utcb.word(utcb::PAGER));
    let space = thread.space().map_or(!0, number);
    let id = thread.id.get().0;
    let (state, priority) = (inspect_state(thread), u64::from(thread.priority.get()));
    [id, state, space, priority, thread.partner.get().0, ip, sp, pager]
}

/// The processor time of the thread `id`.
fn time_record(own: SpaceRef, id: ThreadId) -> Option<Record> {
    let thread = thread::lookup(id).filter(|thread| own.may_control(thread.space()).is_ok())?;
    Some([thread.id.get().0, thread.used_us.get(), 0, 0, 0, 0, 0, 0])
}

/// Who has thread number `index`, and the last version that it had.
fn number_record(own: SpaceRef, index: u64) -> Option<Record> {
    let number = u32::try_from(index).ok().filter(|number| own.owns(*number))?;
    let id = thread::lookup_number(number).map_or(0, |thread| thread.id.get().0);
    Some([id, u64::from(last_version(number)), 0, 0, 0, 0, 0, 0])
}

/// The space with the smallest id ≥ `index` of those that `own` is told about. Interrupts make it
/// begin anew: what it has seen says nothing about the rest.
fn space_record(own: SpaceRef, index: u64) -> Result<Option<Record>, PutOff> {
    let mut best: Option<SpaceRef> = None;
    let mut pace = Pace::default();
    for space in spaces().all() {
        let nearer = number(space) >= index && best.is_none_or(|best| number(space) < number(best));
        if nearer && sees(own, Some(space), &mut pace) {
            best = Some(space);
        }
        if preemption::is_due() {
            return Err(PutOff(index));
        }
    }
    Ok(best.map(|space| facts(own, space)))
}

fn facts(own: SpaceRef, space: SpaceRef) -> Record {
    let chief = space.task.chief.get().map_or(!0, number);
    let quota = space.quota();
    // Where things are in physical memory is nothing for those who cannot map it.
    let root = if own.is_privileged() { space.root().table().address() } else { 0 };
    let (pages, nodes) = (space.table_pages(), space.nodes());
    let threads = space.task.thread_count.get();
    [number(space), quota.limit(), quota.used(), threads, pages, nodes, chief, root]
}

/// A space's number as a word.
fn number(space: SpaceRef) -> u64 {
    u64::from(space.id())
}

fn kernel_record() -> Record {
    let cpu = cpu();
    let (total, free) = (mem::frames::total(), mem::frames::free());
    let ticks = cpu.scheduler.ticks.get();
    [total, free, registry().count(), spaces().count(), cpu.entries.get(), ticks, 0, 0]
}
