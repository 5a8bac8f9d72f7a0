//! The filters of a thread, and what becomes of a call of which they say something.
//!
//! A thread has the newest of its filters, which has the one before it; threads and processes that it makes
//! have the same. All are asked, and what restricts most counts.

use alloc::rc::Rc;
use alloc::vec;

use linux_raw_sys::general as l;
use linux_raw_sys::ptrace as s;
use zerocopy::IntoBytes;

use super::bpf::{Data, Instruction, LONGEST, Program};
use super::{FILTERED, end};
use crate::account::Charge;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::machine::Reply;
use crate::signal::{self, Info, send};
use crate::thread::Thread;
use crate::trace;

/// Instructions in all filters of a thread, as Linux counts them: each filter costs some more.
const INSTRUCTIONS: usize = 32_768;
const PENALTY: usize = 4;
/// The largest error that a filter can answer with.
const LARGEST_ERROR: u64 = 4095;
/// What a filter costs its user beside its program.
const FILTER_BYTES: usize = 256;
/// `AUDIT_ARCH_X86_64`.
pub(crate) const ARCH: u32 = 0xC000_003E;
/// Flags that are known; all threads have the same view of speculation.
const FLAGS: u32 = s::SECCOMP_FILTER_FLAG_TSYNC
    | s::SECCOMP_FILTER_FLAG_LOG
    | s::SECCOMP_FILTER_FLAG_SPEC_ALLOW
    | s::SECCOMP_FILTER_FLAG_TSYNC_ESRCH;

/// A filter, and those before it.
pub struct Filter {
    program: Program,
    /// What it refuses is told to the operator.
    logs: bool,
    before: Option<Rc<Filter>>,
    /// What this one and those before cost of [`INSTRUCTIONS`].
    cost: usize,
    /// How many they are.
    count: u32,
    /// One of them looks at the address of the calling instruction.
    reads_address: bool,
    _charge: Charge,
}

impl Drop for Filter {
    /// One after the other: there may be thousands.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut filter) = next.and_then(Rc::into_inner) {
            next = filter.before.take();
        }
    }
}

impl Filter {
    /// It and those before it.
    fn all(self: &Rc<Self>) -> impl Iterator<Item = &Rc<Self>> {
        core::iter::successors(Some(self), |filter| filter.before.as_ref())
    }

    /// What restricts the call most, and whether that is to be told.
    fn verdict(self: &Rc<Self>, data: &Data) -> (u32, bool) {
        let (mut verdict, mut logs) = (s::SECCOMP_RET_ALLOW, false);
        for filter in self.all() {
            let one = filter.program.run(data);
            if severity(one) < severity(verdict) {
                (verdict, logs) = (one, filter.logs);
            }
        }
        (verdict, logs)
    }
}

/// Actions in their order: what restricts more is less.
fn severity(verdict: u32) -> i32 {
    (verdict & s::SECCOMP_RET_ACTION_FULL) as i32
}

/// How many filters a thread has.
#[must_use]
pub fn count(thread: &Thread) -> u32 {
    thread.filter.borrow().as_ref().map_or(0, |filter| filter.count)
}

/// What filters say about the call `number`: its answer, unless it is to be carried out.
#[must_use]
pub(super) fn judge(cx: &Cx, number: u32) -> Option<Answer> {
    if cx.is_retry() {
        return None;
    }
    let newest = cx.thread.filter.borrow().clone()?;
    let was_asked = cx.thread.asked.take();
    let (verdict, logs) = newest.verdict(&data(cx, number, newest.reads_address));
    let (action, value) = (verdict & s::SECCOMP_RET_ACTION_FULL, verdict & s::SECCOMP_RET_DATA);
    if action == s::SECCOMP_RET_ALLOW {
        return None;
    }
    tell(cx, number, action, logs);
    match action {
        s::SECCOMP_RET_LOG => None,
        s::SECCOMP_RET_ERRNO => Some(Ok(u64::from(value).min(LARGEST_ERROR).wrapping_neg())),
        s::SECCOMP_RET_TRACE if was_asked => None,
        s::SECCOMP_RET_TRACE => trace::system_calls::asked_for(cx, value),
        s::SECCOMP_RET_USER_NOTIF => Some(Err(Errno::ENOSYS.into())),
        s::SECCOMP_RET_TRAP => Some(Err(trap(cx, number, value))),
        _ => Some(Err(kill(cx, action))),
    }
}

/// `struct seccomp_data`.
fn data(cx: &Cx, number: u32, with_address: bool) -> Data {
    let address = if with_address { address(cx) } else { 0 };
    let mut words = [0; 16];
    (words[0], words[1]) = (number, ARCH);
    let wide = core::iter::once(address).chain(cx.thread.arguments.get());
    for (pair, value) in words[2..].chunks_exact_mut(2).zip(wide) {
        pair.copy_from_slice(&[value as u32, (value >> 32) as u32]);
    }
    words
}

/// Behind the instruction that called.
fn address(cx: &Cx) -> u64 {
    cx.unix.machine.registers(cx.thread.machine.get()).rip
}

/// The program gets SIGSYS instead of an answer, with its registers as they were.
fn trap(cx: &Cx, number: u32, value: u32) -> Stop {
    let machine = cx.thread.machine.get();
    let mut registers = cx.unix.machine.registers(machine);
    registers.rax = number.into();
    cx.unix.machine.set_registers(machine, &registers);
    send::force(cx.unix, cx.thread, Info::refused_call(registers.rip, number, value as i32));
    cx.unix.reply(cx.thread, Reply::Resume);
    Stop::Done
}

/// The thread ends, with its process if that is wanted, or if it is the last.
fn kill(cx: &Cx, action: u32) -> Stop {
    let alone = cx.process.threads.borrow().len() <= 1;
    if action == s::SECCOMP_RET_KILL_THREAD && !alone {
        end::end_thread(cx.unix, cx.thread, l::SIGSYS);
    } else {
        signal::deliver::end(cx.unix, cx.thread, l::SIGSYS);
    }
    Stop::Done
}

/// Tells the operator of what is not let pass silently.
fn tell(cx: &Cx, number: u32, action: u32, logs: bool) {
    let name = match action {
        s::SECCOMP_RET_LOG => "logs it",
        s::SECCOMP_RET_ERRNO if logs => "refuses it",
        s::SECCOMP_RET_TRACE if logs => "asks the tracer",
        s::SECCOMP_RET_USER_NOTIF if logs => "asks a listener that it has not",
        s::SECCOMP_RET_TRAP if logs => "sends SIGSYS",
        s::SECCOMP_RET_ERRNO
        | s::SECCOMP_RET_TRACE
        | s::SECCOMP_RET_USER_NOTIF
        | s::SECCOMP_RET_TRAP => return,
        _ => "ends it",
    };
    cx.unix.tell_filtered(cx, number, name);
}

/// Adds the filter whose `struct sock_fprog` is at this address.
pub(super) fn add(cx: &Cx, flags: u32, at: u64) -> Answer {
    if flags & !FLAGS != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (program, charge) = read(cx, at)?;
    let before = cx.thread.filter.borrow().clone();
    let (cost, count) = before.as_ref().map_or((0, 0), |filter| (filter.cost, filter.count));
    let cost = cost + program.len();
    if cost > INSTRUCTIONS {
        return Err(Errno::ENOMEM.into());
    }
    if flags & s::SECCOMP_FILTER_FLAG_TSYNC != 0
        && let Some(other) = first_unlike(cx)
    {
        let silent = flags & s::SECCOMP_FILTER_FLAG_TSYNC_ESRCH != 0;
        return if silent { Err(Errno::ESRCH.into()) } else { Ok(other.into()) };
    }
    let above = before.as_ref().is_some_and(|filter| filter.reads_address);
    let filter = Rc::new(Filter {
        reads_address: above || program.reads_address(),
        program,
        logs: flags & s::SECCOMP_FILTER_FLAG_LOG != 0,
        before,
        cost: cost + PENALTY,
        count: count + 1,
        _charge: charge,
    });
    give(cx, &filter, flags & s::SECCOMP_FILTER_FLAG_TSYNC != 0);
    Ok(0)
}

/// Reads the program of a filter that the caller may have.
fn read(cx: &Cx, at: u64) -> Result<(Program, Charge), Errno> {
    let [len, code]: [u64; 2] = cx.user().read(at)?;
    let len = usize::from(len as u16);
    if !(1..=LONGEST).contains(&len) {
        return Err(Errno::EINVAL);
    }
    let may = cx.process.credentials.borrow().may_here(l::CAP_SYS_ADMIN);
    if !may && !cx.process.state.no_new_privileges.get() {
        return Err(Errno::EACCES);
    }
    let charge = cx.pay(FILTER_BYTES + len * size_of::<Instruction>())?;
    let mut instructions = vec![Instruction::default(); len];
    cx.user().read_bytes(code, instructions.as_mut_bytes())?;
    Ok((Program::new(instructions)?, charge))
}

/// A thread of the process that could not have the caller's filters instead of its own.
fn first_unlike(cx: &Cx) -> Option<u32> {
    let own = cx.thread.filter.borrow();
    let has = |filter: &Rc<Filter>| {
        own.as_ref().is_some_and(|newest| newest.all().any(|one| Rc::ptr_eq(one, filter)))
    };
    let unlike = |thread: &Rc<Thread>| {
        let strict = super::mode(thread) == s::SECCOMP_MODE_STRICT;
        strict || thread.filter.borrow().as_ref().is_some_and(|filter| !has(filter))
    };
    let threads = cx.process.threads.borrow();
    threads.iter().find(|thread| unlike(thread)).map(|thread| thread.own_tid.get())
}

/// The caller has this filter from now on, or all threads of its process.
fn give(cx: &Cx, filter: &Rc<Filter>, all: bool) {
    let threads = cx.process.threads.borrow().clone();
    for thread in threads.iter().filter(|thread| all || Rc::ptr_eq(thread, cx.thread)) {
        thread.filter.replace(Some(filter.clone()));
        thread.set_own_table(&FILTERED);
    }
}

/// `SECCOMP_GET_ACTION_AVAIL`.
pub(super) fn tell_available(cx: &Cx, at: u64) -> Answer {
    match cx.user().read::<u32>(at)? {
        s::SECCOMP_RET_KILL_PROCESS
        | s::SECCOMP_RET_KILL_THREAD
        | s::SECCOMP_RET_TRAP
        | s::SECCOMP_RET_ERRNO
        | s::SECCOMP_RET_TRACE
        | s::SECCOMP_RET_LOG
        | s::SECCOMP_RET_ALLOW => Ok(0),
        _ => Err(Errno::EOPNOTSUPP.into()),
    }
}
