//! How threads and processes end, and what becomes of those they leave behind.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::{Pid, Process, accounting, groups, numbers, processors, wait};
use crate::call::{Answer, Cx, Entry, Stop, full};
use crate::file;
use crate::machine::MachineThread;
use crate::mm::{futex, futex_held};
use crate::signal::{self, Info, send};
use crate::stream::socket::netlink::connector;
use crate::thread::{Doing, Thread};
use crate::time;
use crate::trace;
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] =
    &[full(l::__NR_exit, "exit", exit), full(l::__NR_exit_group, "exit_group", exit_group)];

/// The wait status of a process that has exited with a code.
const fn exited(code: i32) -> u32 {
    ((code & 0xFF) << 8) as u32
}

fn exit(cx: &Cx) -> Answer {
    end_thread(cx.unix, cx.thread, exited(cx.int(0)));
    Err(Stop::Done)
}

fn exit_group(cx: &Cx) -> Answer {
    end_process(cx.unix, cx.process, exited(cx.int(0)));
    Err(Stop::Done)
}

/// Ends a thread; with the last one its process ends, with this status.
pub fn end_thread(unix: &Unix, thread: &Rc<Thread>, status: u32) {
    let process = thread.process.clone();
    if process.threads.borrow().len() <= 1 {
        return end_process(unix, &process, status);
    }
    trace::thread_ended(thread, status);
    remove(unix, thread, status);
    // What the process was sent, another thread takes now.
    signal::recalculate(&process);
    let rest = process.threads.borrow().clone();
    for other in rest.iter().filter(|other| other.signals.interrupts()) {
        send::tell(unix, other);
    }
}

/// A signal ends the process.
pub fn end_by_signal(unix: &Unix, process: &Rc<Process>, signal: u32) {
    end_process(unix, process, signal);
}

/// Ends a process with this wait status, whatever its threads do.
pub fn end_process(unix: &Unix, process: &Rc<Process>, status: u32) {
    if process.ended.get().is_some() {
        return;
    }
    process.state.last_name.set(process.name());
    process.state.last_tuning.set(process.tuning());
    process.times.forget_timers(process);
    process.times.forget_intervals();
    process.times.forget_limit();
    let threads = process.threads.borrow().clone();
    trace::tracer_ended(unix, process);
    for thread in &threads {
        trace::thread_ended(thread, status);
        remove(unix, thread, status);
    }
    process.times.leave_memory(process);
    if let Some(first) = threads.first() {
        accounting::record(unix, first, status);
    }
    process.ended.set(Some(status));
    process.signals.stopped.set(None);
    let nowhere = unix.processes.nowhere(unix, process);
    drop(process.set_space(nowhere));
    unix.mm.bury(unix);
    release_vfork(process);
    let files = process.files.take();
    file::release(unix, files);
    unix.fs.process_ended(process.pid);
    crate::ipc::of(unix, process).process_ended(process);
    crate::tty::process_ends(unix, process);
    leave_children(unix, process);
    groups::tell_orphans(unix, process, None);
    if process.pid == Pid::FIRST {
        unix.machine.halt(status);
    }
    process.state.keys.leave(true);
    process.state.lingers.set(numbers::ended(unix, process));
    if !process.state.lingers.get() {
        tell_end(unix, process);
    }
    numbers::after_end(unix, process);
}

/// Tells whoever wants to know that a process has ended.
pub(super) fn tell_end(unix: &Unix, process: &Rc<Process>) {
    wait::report_end(unix, process);
    process.state.end_watched.wake_all();
}

/// Ends all threads of the process but this one, which gets the process's id.
pub fn end_others(unix: &Unix, thread: &Rc<Thread>) {
    let process = &thread.process;
    let others = process.threads.borrow().clone();
    for other in others.iter().filter(|other| !Rc::ptr_eq(other, thread)) {
        trace::thread_ended(other, 0);
        remove(unix, other, l::SIGKILL);
    }
    unix.lender.forget(thread);
    let tid = thread.tid.replace(process.pid);
    thread.own_tid.set(process.number);
    if tid != process.pid {
        let mut threads = unix.processes.by_tid.borrow_mut();
        threads.remove(&tid);
        threads.insert(process.pid, thread.clone());
        drop(threads);
        numbers::release(unix, tid);
    }
}

/// Takes a thread out of the world, that ends with this wait status.
fn remove(unix: &Unix, thread: &Rc<Thread>, status: u32) {
    connector::ended(unix, thread, status);
    release_futexes(unix, thread);
    unix.end_wait(thread);
    thread.doing.set(Doing::Ended);
    thread.reply.take();
    unix.lender.forget(thread);
    unix.boost.ends(unix, thread);
    let process = &thread.process;
    process.times.thread_ended(time::of_thread(unix, thread));
    processors::ends(unix, thread);
    let machine = thread.machine.replace(MachineThread::default());
    unix.machine.bind(machine, None);
    unix.machine.destroy_thread(machine);
    unix.processes.by_tid.borrow_mut().remove(&thread.tid.get());
    process.state.keys.thread_ended(thread.tid.get());
    process.threads.borrow_mut().retain(|other| !Rc::ptr_eq(other, thread));
    numbers::release(unix, thread.tid.get());
}

/// Releases the futexes a thread holds, and tells who waits for its end.
pub fn release_futexes(unix: &Unix, thread: &Rc<Thread>) {
    futex_held::release_held(unix, thread);
    if thread.robust_list.get() != 0 {
        futex::release_robust(unix, thread);
        thread.robust_list.set(0);
    }
    if thread.clear_child_tid.get() != 0 {
        // Where nobody else can see the memory, there is nobody to tell.
        let alone = thread.process.threads.borrow().len() <= 1
            && Rc::strong_count(&thread.process.space()) <= 2;
        if alone {
            thread.clear_child_tid.set(0);
        } else {
            futex::clear_child_tid(unix, thread);
        }
    }
}

/// A parent that waits in vfork for `process` goes on.
pub fn release_vfork(process: &Process) {
    if process.state.vforked.replace(false) {
        process.state.vfork_done.wake_all();
    }
}

/// A process that could not be born after all.
pub fn discard_unborn(unix: &Unix, process: &Rc<Process>) {
    let nowhere = unix.processes.nowhere(unix, process);
    drop(process.set_space(nowhere));
    unix.mm.bury(unix);
    let files = process.files.take();
    file::release(unix, files);
}

/// The children of an ended process get another parent: the next reaper above, or process 1.
fn leave_children(unix: &Unix, process: &Rc<Process>) {
    if process.children.borrow().is_empty() || is_init_of_others(process) {
        return;
    }
    let children = process.children.take();
    let Some(heir) = reaper_above(unix, process) else { return };
    for child in children {
        child.set_parent(&heir);
        child.state.exit_signal.set(l::SIGCHLD);
        heir.children.borrow_mut().push(child.clone());
        let death_signal = child.state.death_signal.get();
        if child.ended.get().is_some() {
            if !child.state.lingers.get() {
                wait::report_end(unix, &child);
            }
            continue;
        }
        if death_signal != 0 {
            let uid = process.credentials.borrow().uid;
            let info = Info::user(death_signal, 0, child.sees(process.pid), child.sees_user(uid));
            send::send_by(unix, process, &child, info);
        }
        groups::tell_orphans(unix, &child, Some(process));
    }
}

/// Who takes the children of an ended process.
fn reaper_above(unix: &Unix, process: &Rc<Process>) -> Option<Rc<Process>> {
    let own = process.state.numbers.as_ref();
    let mut above = process.parent.borrow().upgrade();
    while let Some(one) = above.filter(|one| numbers::same(one.state.numbers.as_ref(), own)) {
        if one.state.reaper.get() && one.ended.get().is_none() {
            return Some(one);
        }
        above = one.parent.borrow().upgrade();
    }
    match own {
        // Also one that has ended, and waits for all of its namespace to end.
        Some(_) => numbers::find(own, 1).and_then(|pid| unix.processes.process(pid)),
        None => unix.processes.process(Pid::FIRST).filter(|first| first.ended.get().is_none()),
    }
}

/// Whether it is an init, but process 1: its children end with it.
fn is_init_of_others(process: &Process) -> bool {
    process.state.numbers.is_some() && numbers::is_init(process)
}
