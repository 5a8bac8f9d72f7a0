//! The call `ptrace`.

use alloc::rc::Rc;
use alloc::vec;

use linux_raw_sys::general as l;
use linux_raw_sys::ptrace as p;
use zerocopy::{FromBytes, IntoBytes};

use super::stops::{self, resume};
use super::{Mode, Tracee, Why, attach, memory, registers};
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;
use crate::machine::VECTOR_STATE_MAX;
use crate::process::control;
use crate::process::seccomp::filter::ARCH;
use crate::signal::info::SIGINFO_BYTES;
use crate::signal::{self, Info, set};
use crate::stream::socket::netlink::connector;
use crate::thread::Thread;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[partial(
    l::__NR_ptrace,
    "ptrace",
    ptrace,
    "breakpoints by debug registers (ENOSPC), PTRACE_SYSEMU, SINGLEBLOCK and the 32-bit areas (EIO)",
)];

/// Types of the notes that hold registers (`elf.h`).
const NT_PRSTATUS: u32 = 1;
const NT_PRFPREG: u32 = 2;
const NT_X86_XSTATE: u32 = 0x202;

fn ptrace(cx: &Cx) -> Answer {
    let (request, pid) = (cx.arg(0) as u32, cx.uint(1));
    match request {
        p::PTRACE_TRACEME => return trace_me(cx),
        p::PTRACE_ATTACH => return begin(cx, pid, None),
        p::PTRACE_SEIZE => return begin(cx, pid, Some(cx.arg(3))),
        _ => {}
    }
    let tracee = find(cx, pid)?;
    let thread = tracee.thread().ok_or(Errno::ESRCH)?;
    match request {
        p::PTRACE_KILL => {
            signal::send(cx.unix, &thread.process, l::SIGKILL);
            return Ok(0);
        }
        p::PTRACE_INTERRUPT => return interrupt(cx, &tracee, &thread),
        _ => {}
    }
    let why = tracee.stopped.get().filter(|_| !tracee.listens.get()).ok_or(Errno::ESRCH)?;
    if let Some(mode) = mode_of(request) {
        let signal = signal_of(cx.arg(3))?;
        resume(cx.unix, &tracee, mode, signal);
        return Ok(0);
    }
    match request {
        p::PTRACE_DETACH => {
            attach::detach(cx.unix, &tracee, signal_of(cx.arg(3))?);
            connector::traced(cx, &thread, None);
            Ok(0)
        }
        p::PTRACE_LISTEN => listen(cx, &tracee, why),
        p::PTRACE_SETOPTIONS => set_options(cx, &tracee),
        p::PTRACE_GETEVENTMSG => done(cx.user().write(cx.arg(3), &tracee.message.get())),
        p::PTRACE_GETSIGINFO => {
            done(cx.user().write_bytes(cx.arg(3), &info_of(&tracee, &thread, why)?.bytes()))
        }
        p::PTRACE_SETSIGINFO => set_info(cx, &tracee, why),
        p::PTRACE_GETSIGMASK | p::PTRACE_SETSIGMASK => mask(cx, &thread, request),
        p::PTRACE_PEEKSIGINFO => peek_signals(cx, &thread),
        p::PTRACE_GET_SYSCALL_INFO => call_info(cx, &tracee, &thread, why),
        _ => look(cx, request, &tracee, &thread),
    }
}

fn done(result: Result<(), Errno>) -> Answer {
    result.map_err(Into::into).map(|()| 0)
}

/// What reads or writes registers and memory.
fn look(cx: &Cx, request: u32, tracee: &Rc<Tracee>, thread: &Rc<Thread>) -> Answer {
    let (unix, address, data) = (cx.unix, cx.arg(2), cx.arg(3));
    let space = thread.process.space();
    let memory = [p::PTRACE_PEEKTEXT, p::PTRACE_PEEKDATA, p::PTRACE_POKETEXT, p::PTRACE_POKEDATA];
    if memory.contains(&request) && !attach::may_see_memory(cx.process, &thread.process) {
        return Err(Errno::EIO.into());
    }
    match request {
        p::PTRACE_PEEKTEXT | p::PTRACE_PEEKDATA => {
            let word = memory::read_word(unix, &space, address)?;
            done(cx.user().write(data, &word))
        }
        p::PTRACE_POKETEXT | p::PTRACE_POKEDATA => {
            done(memory::write_word(unix, &space, address, data))
        }
        p::PTRACE_PEEKUSR => {
            let word = registers::read_word(unix, thread, tracee, address)?;
            done(cx.user().write(data, &word))
        }
        p::PTRACE_POKEUSR => done(registers::write_word(unix, thread, tracee, address, data)),
        p::PTRACE_GETREGS => done(
            cx.user().write_bytes(data, registers::bytes(&registers::read(unix, thread, tracee))),
        ),
        p::PTRACE_SETREGS => {
            let mut bytes = [0; registers::WORDS * 8];
            cx.user().read_bytes(data, &mut bytes)?;
            let mut words = [0; registers::WORDS];
            registers::merge(&mut words, &bytes);
            done(registers::write(unix, thread, tracee, &words))
        }
        p::PTRACE_GETFPREGS => {
            let state = registers::read_vector(unix, thread);
            done(cx.user().write_bytes(data, state.get(..registers::LEGACY).unwrap_or_default()))
        }
        p::PTRACE_SETFPREGS => {
            let mut legacy = [0; registers::LEGACY];
            cx.user().read_bytes(data, &mut legacy)?;
            registers::write_legacy(unix, thread, &legacy);
            Ok(0)
        }
        p::PTRACE_GETREGSET | p::PTRACE_SETREGSET => register_set(cx, request, tracee, thread),
        p::PTRACE_ARCH_PRCTL => arch(cx, tracee, thread),
        _ => Err(Errno::EIO.into()),
    }
}

/// The traced thread of this id.
fn find(cx: &Cx, tid: u32) -> Result<Rc<Tracee>, Errno> {
    let tracees = cx.process.state.tracees.borrow();
    let is = |tracee: &&Rc<Tracee>| tracee.tid.get() == tid && !tracee.ended.get();
    tracees.iter().find(is).cloned().ok_or(Errno::ESRCH)
}

fn mode_of(request: u32) -> Option<Mode> {
    match request {
        p::PTRACE_CONT => Some(Mode::Continue),
        p::PTRACE_SYSCALL => Some(Mode::Calls),
        p::PTRACE_SINGLESTEP => Some(Mode::Step),
        _ => None,
    }
}

/// A signal with which a thread goes on; 0 is none.
fn signal_of(data: u64) -> Result<u32, Errno> {
    u32::try_from(data).ok().filter(|signal| *signal <= set::LAST).ok_or(Errno::EIO)
}

fn trace_me(cx: &Cx) -> Answer {
    let parent = cx.process.parent.borrow().upgrade().ok_or(Errno::EPERM)?;
    if cx.thread.is_traced() || !attach::may_trace(&parent, cx.process) {
        return Err(Errno::EPERM.into());
    }
    let tracee = attach::attach(&parent, cx.thread, false, 0)?;
    tracee.privileged.set(attach::is_privileged(cx.process));
    // The call that made it is not one of its own.
    tracee.call.set(u64::from(l::__NR_ptrace));
    Ok(0)
}

/// `PTRACE_ATTACH`, or `PTRACE_SEIZE` with these options.
fn begin(cx: &Cx, tid: u32, seize: Option<u64>) -> Answer {
    let options = seize.unwrap_or(0);
    if seize.is_some() && (cx.arg(2) != 0 || options & !u64::from(p::PTRACE_O_MASK) != 0) {
        return Err(Errno::EIO.into());
    }
    let thread = cx.find_thread(tid).ok_or(Errno::ESRCH)?;
    let own = Rc::ptr_eq(&thread.process, cx.process);
    if own || !attach::may_trace(cx.process, &thread.process) {
        return Err(Errno::EPERM.into());
    }
    let tracee = attach::attach(cx.process, &thread, seize.is_some(), options as u32)?;
    tracee.privileged.set(attach::is_privileged(cx.process));
    attach::take_over_stop(cx.unix, &thread, &tracee);
    connector::traced(cx, &thread, Some(cx.thread));
    if seize.is_none() {
        signal::send_thread(cx.unix, &thread, Info::user(l::SIGSTOP, 0, 0, 0));
    }
    Ok(0)
}

fn interrupt(cx: &Cx, tracee: &Rc<Tracee>, thread: &Rc<Thread>) -> Answer {
    if !tracee.seized {
        return Err(Errno::EIO.into());
    }
    if tracee.listens.take() {
        // It is stopped, and says so once more.
        stops::tell(cx.unix, tracee, Why::Interrupt);
    } else if tracee.stopped.get().is_none() {
        stops::interrupt(cx.unix, thread, tracee);
    }
    Ok(0)
}

fn listen(cx: &Cx, tracee: &Tracee, why: Why) -> Answer {
    let may = tracee.seized && matches!(why, Why::Group(_) | Why::Interrupt);
    if !may {
        return Err(Errno::EIO.into());
    }
    tracee.report.set(None);
    if tracee.tells_again.take() {
        stops::tell(cx.unix, tracee, Why::Interrupt);
    } else {
        tracee.listens.set(true);
    }
    Ok(0)
}

fn set_options(cx: &Cx, tracee: &Tracee) -> Answer {
    let options = cx.arg(3);
    if options & !u64::from(p::PTRACE_O_MASK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    tracee.options.set(options as u32);
    Ok(0)
}

/// What the stop is about.
fn info_of(tracee: &Tracee, thread: &Thread, why: Why) -> Result<Info, Errno> {
    match why {
        Why::Signal(info) => Ok(info),
        Why::Group(_) if !tracee.seized => Err(Errno::EINVAL),
        _ => {
            let uid = thread.process.sees_user(thread.process.credentials.borrow().uid);
            let code = tracee.code(why) as i32;
            let signal = if let Why::Group(signal) = why { signal } else { l::SIGTRAP };
            Ok(Info::user(signal, code, thread.own_tid.get(), uid))
        }
    }
}

fn set_info(cx: &Cx, tracee: &Tracee, why: Why) -> Answer {
    let mut bytes = [0; SIGINFO_BYTES];
    cx.user().read_bytes(cx.arg(3), &mut bytes)?;
    let (info, _) = Info::read_from_prefix(&bytes).map_err(|_| Errno::EIO)?;
    let Why::Signal(old) = why else { return Err(Errno::EINVAL.into()) };
    let signal = if info.signal == 0 { old.signal } else { info.signal.min(set::LAST) };
    tracee.stopped.set(Some(Why::Signal(Info { signal, timer: old.timer, ..info })));
    Ok(0)
}

fn mask(cx: &Cx, thread: &Rc<Thread>, request: u32) -> Answer {
    if cx.arg(2) != signal::MASK_BYTES {
        return Err(Errno::EINVAL.into());
    }
    if request == p::PTRACE_GETSIGMASK {
        cx.user().write(cx.arg(3), &thread.signals.blocked.get())?;
    } else {
        let mask: u64 = cx.user().read(cx.arg(3))?;
        signal::set_mask(thread, mask);
    }
    Ok(0)
}

/// `PTRACE_PEEKSIGINFO`: offset, flags and number at the address; how many there were.
fn peek_signals(cx: &Cx, thread: &Thread) -> Answer {
    let [offset, flags_and_count]: [u64; 2] = cx.user().read(cx.arg(2))?;
    let (flags, count) = (flags_and_count as u32, (flags_and_count >> 32) as i32);
    if flags & !p::PTRACE_PEEKSIGINFO_SHARED != 0 || count < 0 {
        return Err(Errno::EINVAL.into());
    }
    let shared = flags & p::PTRACE_PEEKSIGINFO_SHARED != 0;
    let queue = if shared { &thread.process.signals.pending } else { &thread.signals.pending };
    let mut told = 0;
    while told < count as u64 {
        let Some(info) = queue.peek(offset.saturating_add(told)) else { break };
        let at = cx.arg(3).wrapping_add(told * SIGINFO_BYTES as u64);
        match cx.user().write_bytes(at, &info.bytes()) {
            Err(errno) if told == 0 => return Err(errno.into()),
            Err(_) => break,
            Ok(()) => told += 1,
        }
    }
    Ok(told)
}

/// `PTRACE_GET_SYSCALL_INFO`: as much as there is room for; how much there is.
fn call_info(cx: &Cx, tracee: &Tracee, thread: &Rc<Thread>, why: Why) -> Answer {
    let words = registers::read(cx.unix, thread, tracee);
    let result = words[registers::RAX];
    let (kind, len) = match why {
        Why::Entry => (p::PTRACE_SYSCALL_INFO_ENTRY, 80),
        Why::Event(p::PTRACE_EVENT_SECCOMP, _) => (p::PTRACE_SYSCALL_INFO_SECCOMP, 84),
        Why::Exit => (p::PTRACE_SYSCALL_INFO_EXIT, 33),
        _ => (p::PTRACE_SYSCALL_INFO_NONE, 24),
    };
    let mut all = [0_u64; 11];
    all[0] = u64::from(kind) | u64::from(ARCH) << 32;
    (all[1], all[2]) = (words[registers::RIP], words[registers::RSP]);
    match why {
        Why::Exit => {
            all[3] = result;
            all[4] = u64::from((-4095..0).contains(&(result as i64)));
        }
        _ if why.is_before_call() => {
            all[3] = tracee.call.get();
            all[4..10].copy_from_slice(&thread.arguments.get());
            all[10] = tracee.message.get();
        }
        _ => {}
    }
    let room = cx.arg(2).min(len) as usize;
    cx.user().write_bytes(cx.arg(3), &all.as_bytes()[..room])?;
    Ok(len)
}

/// `PTRACE_GETREGSET`, `PTRACE_SETREGSET`: a set of registers by its note's type, and where it is.
fn register_set(cx: &Cx, request: u32, tracee: &Rc<Tracee>, thread: &Rc<Thread>) -> Answer {
    let [base, len]: [u64; 2] = cx.user().read(cx.arg(3))?;
    let kind = cx.uint(2);
    let all = match kind {
        NT_PRSTATUS => registers::bytes(&registers::read(cx.unix, thread, tracee)).to_vec(),
        NT_PRFPREG | NT_X86_XSTATE => registers::read_vector(cx.unix, thread),
        _ => return Err(Errno::EINVAL.into()),
    };
    let size = if kind == NT_PRFPREG { registers::LEGACY } else { all.len() };
    let room = usize::try_from(len).unwrap_or(usize::MAX).min(size);
    if !len.is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    if request == p::PTRACE_GETREGSET {
        cx.user().write_bytes(base, all.get(..room).unwrap_or_default())?;
    } else {
        let mut bytes = vec![0; room.min(VECTOR_STATE_MAX)];
        cx.user().read_bytes(base, &mut bytes)?;
        set_register_set(cx, kind, tracee, thread, &bytes)?;
    }
    cx.user().write(cx.arg(3).wrapping_add(8), &(room as u64))?;
    Ok(0)
}

fn set_register_set(
    cx: &Cx,
    kind: u32,
    tracee: &Rc<Tracee>,
    thread: &Rc<Thread>,
    bytes: &[u8],
) -> Result<(), Errno> {
    match kind {
        NT_PRSTATUS => {
            let mut words = registers::read(cx.unix, thread, tracee);
            registers::merge(&mut words, bytes);
            registers::write(cx.unix, thread, tracee, &words)
        }
        NT_PRFPREG => {
            let legacy =
                <[u8; registers::LEGACY]>::read_from_bytes(bytes).map_err(|_| Errno::EINVAL)?;
            registers::write_legacy(cx.unix, thread, &legacy);
            Ok(())
        }
        _ => registers::write_vector(cx.unix, thread, bytes),
    }
}

/// `arch_prctl` on the thread's behalf: its bases.
fn arch(cx: &Cx, tracee: &Rc<Tracee>, thread: &Rc<Thread>) -> Answer {
    let mut words = registers::read(cx.unix, thread, tracee);
    let (address, code) = (cx.arg(2), cx.uint(3));
    match code {
        control::GET_FS => done(cx.user().write(address, &words[registers::FS_BASE])),
        control::GET_GS => done(cx.user().write(address, &words[registers::GS_BASE])),
        control::SET_FS | control::SET_GS => {
            let at = if code == control::SET_FS { registers::FS_BASE } else { registers::GS_BASE };
            words[at] = address;
            done(registers::write(cx.unix, thread, tracee, &words))
        }
        _ => Err(Errno::EINVAL.into()),
    }
}
