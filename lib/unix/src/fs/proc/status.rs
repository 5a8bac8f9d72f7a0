//! `stat`, `statm` and `status` of a process.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::{Subject, figures};
use crate::call::Cx;
use crate::errno::Errno;
use crate::memory::PAGE;
use crate::mm::AddressSpace;
use crate::mm::space::Layout;
use crate::process::share::Tuning;
use crate::process::{numbers, seccomp};
use crate::thread::Doing;

/// The name of a thread, or of a process that has ended.
pub(super) fn name(subject: &Subject) -> Vec<u8> {
    let name = match &subject.thread {
        Some(thread) => thread.name.get(),
        None => subject.process.state.last_name.get(),
    };
    name.iter().copied().take_while(|byte| *byte != 0).collect()
}

/// The letter and word for what a thread does.
fn state(cx: &Cx, subject: &Subject) -> (char, &'static str) {
    if subject.process.ended.get().is_some() {
        return ('Z', "zombie");
    }
    if subject.process.signals.stopped.get().is_some() {
        return ('T', "stopped");
    }
    match &subject.thread {
        Some(thread) if Rc::ptr_eq(thread, cx.thread) => ('R', "running"),
        Some(thread) if thread.doing.get() == Doing::Running => ('R', "running"),
        Some(thread) if thread.doing.get() == Doing::Traced => ('t', "tracing stop"),
        Some(thread) if thread.doing.get() == Doing::Ended => ('X', "dead"),
        // Woken, and not had its turn.
        Some(thread) if thread.queued.get() => ('R', "running"),
        Some(_) => ('S', "sleeping"),
        None => ('Z', "zombie"),
    }
}

/// Device number and foreground group of the controlling terminal; 0 and -1 without.
fn terminal(cx: &Cx, subject: &Subject) -> (u64, i64) {
    match cx.unix.terminals.of_session(subject.process.session.get()) {
        Some(tty) => (tty.device, subject.shown(tty.foreground.get()).into()),
        None => (0, -1),
    }
}

fn is_alive(subject: &Subject) -> bool {
    subject.process.ended.get().is_none()
}

/// `/proc/PID/stat`.
pub(super) fn stat(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    let mut text = format!("{} (", subject.shown(subject.tid)).into_bytes();
    text.extend_from_slice(&name(subject));
    let mut rest = String::from(") ");
    stat_process(cx, subject, &mut rest);
    // Where a program was placed at random is nothing for everybody.
    let seen = super::check_close_look(cx, &subject.process).is_ok();
    let layout = if seen { subject.process.space().layout.get() } else { Layout::default() };
    stat_memory(subject, &layout, &mut rest);
    stat_end(subject, &layout, &mut rest);
    text.extend_from_slice(rest.as_bytes());
    Ok(text)
}

/// Fields 3 to 22: state, family, times.
fn stat_process(cx: &Cx, subject: &Subject, text: &mut String) {
    let process = &subject.process;
    let (device, foreground) = terminal(cx, subject);
    let times = figures::times(cx, subject);
    let Tuning { nice, .. } = tuning(subject);
    let priority = tuning(subject).told_priority();
    let _ = write!(
        text,
        "{} {} {} {} {device} {foreground} 0 {} 0 0 0 ",
        state(cx, subject).0,
        subject.shown(process.parent_pid.get()),
        subject.shown(process.group.get()),
        subject.shown(process.session.get()),
        process.space().faults.get(),
    );
    let _ = write!(
        text,
        "{} {} {} {} {priority} {nice} {} 0 {} ",
        times.user,
        times.system,
        times.children_user,
        times.children_system,
        process.threads.borrow().len(),
        times.start,
    );
}

/// Fields 23 to 30: sizes and addresses.
fn stat_memory(subject: &Subject, layout: &Layout, text: &mut String) {
    let process = &subject.process;
    let sizes = process.space().sizes();
    let alive = u64::from(is_alive(subject));
    let _ = write!(
        text,
        "{} {} {} {} {} {} 0 0 ",
        sizes.total * PAGE as u64 * alive,
        sizes.resident * alive,
        process.limit(linux_raw_sys::general::RLIMIT_RSS),
        layout.code.0 * alive,
        layout.code.1 * alive,
        layout.stack * alive,
    );
}

/// How it asks to be scheduled, or did when it ended.
fn tuning(subject: &Subject) -> Tuning {
    subject.thread.as_ref().map_or_else(|| subject.process.tuning(), |thread| thread.tuning.get())
}

/// Fields 31 to 52: signals, scheduling, more addresses, the wait status.
fn stat_end(subject: &Subject, layout: &Layout, text: &mut String) {
    let process = &subject.process;
    let [blocked, pending, ignored, caught] =
        figures::signals(subject).map(|signals| signals & 0x7fff_ffff);
    let own = tuning(subject);
    let (policy, priority) = (own.plain_policy(), own.priority);
    let processor = subject.thread.as_ref().map_or(0, |thread| thread.whereabouts.processor.get());
    let addresses = [
        layout.data.0,
        layout.data.1,
        layout.heap.0,
        layout.arguments.0,
        layout.arguments.1,
        layout.environment.0,
        layout.environment.1,
    ];
    let _ = write!(
        text,
        "{pending} {blocked} {ignored} {caught} 0 0 0 17 {processor} {priority} {policy} 0 0 0 "
    );
    for address in addresses {
        let _ = write!(text, "{} ", if is_alive(subject) { address } else { 0 });
    }
    let _ = writeln!(text, "{}", process.ended.get().unwrap_or(0));
}

/// `/proc/PID/statm`.
pub(super) fn statm(_: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    if !is_alive(subject) {
        return Ok(b"0 0 0 0 0 0 0\n".to_vec());
    }
    let sizes = subject.process.space().sizes();
    Ok(format!(
        "{} {} {} {} 0 {} 0\n",
        sizes.total,
        sizes.resident,
        sizes.shared,
        sizes.code,
        sizes.data + sizes.stack
    )
    .into_bytes())
}

/// `/proc/PID/status`.
pub(super) fn status(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    let process = &subject.process;
    let mut text = b"Name:\t".to_vec();
    text.extend_from_slice(&name(subject));
    let (letter, word) = state(cx, subject);
    let who = process.credentials.borrow().clone();
    let umask = process.place.borrow().umask.get();
    let mut rest = format!(
        "\nUmask:\t{umask:04o}\nState:\t{letter} ({word})\nTgid:\t{}\nNgid:\t0\nPid:\t{}\n\
         PPid:\t{}\nTracerPid:\t{}\n",
        subject.shown(process.pid),
        subject.shown(subject.tid),
        subject.shown(process.parent_pid.get()),
        subject.thread.as_ref().map_or(0, |one| subject.shown(crate::trace::tracer_of(one))),
    );
    let [uid, euid, suid, fsuid] =
        [who.uid, who.euid, who.suid, who.fsuid].map(|id| cx.user_told(id));
    let [gid, egid, sgid, fsgid] =
        [who.gid, who.egid, who.sgid, who.fsgid].map(|id| cx.group_told(id));
    let _ = writeln!(rest, "Uid:\t{uid}\t{euid}\t{suid}\t{fsuid}");
    let _ = writeln!(rest, "Gid:\t{gid}\t{egid}\t{sgid}\t{fsgid}");
    let _ = write!(rest, "FDSize:\t{}\nGroups:\t", process.files.borrow().capacity());
    for group in who.groups.iter() {
        let _ = write!(rest, "{} ", cx.group_told(*group));
    }
    let _ = writeln!(rest);
    in_namespaces(subject, &mut rest);
    if is_alive(subject) {
        memory(&mut rest, &process.space());
    }
    signals(subject, &mut rest);
    processors(cx, subject, &mut rest);
    text.extend_from_slice(rest.as_bytes());
    Ok(text)
}

/// The numbers in the namespace that looks, and in those below it down to the process's own.
fn in_namespaces(subject: &Subject, text: &mut String) {
    let process = &subject.process;
    let own = process.state.numbers.as_ref();
    for (name, pid) in [
        ("NStgid", process.pid),
        ("NSpid", subject.tid),
        ("NSpgid", process.group.get()),
        ("NSsid", process.session.get()),
    ] {
        let mut all = alloc::vec![];
        for level in numbers::levels(own) {
            if numbers::same(Some(level), subject.numbers.as_ref()) {
                break;
            }
            all.push(numbers::shown(Some(level), pid));
        }
        let _ = write!(text, "{name}:\t{}", subject.shown(pid));
        for number in all.iter().rev() {
            let _ = write!(text, "\t{number}");
        }
        let _ = writeln!(text);
    }
}

/// The end of `status`: processors, switches.
fn processors(cx: &Cx, subject: &Subject, text: &mut String) {
    let there = cx.unix.processors.mask();
    let allowed = subject.thread.as_ref().map_or(there, |thread| thread.affinity.get() & there);
    let list: Vec<String> = (0..64_u32)
        .filter(|number| allowed >> number & 1 != 0)
        .filter(|number| *number == 0 || allowed >> (number - 1) & 1 == 0)
        .map(|first| match (allowed >> first).trailing_ones() {
            1 => format!("{first}"),
            many => format!("{first}-{}", first + many - 1),
        })
        .collect();
    let list = list.join(",");
    let _ = write!(
        text,
        "Cpus_allowed:\t{allowed:x}\nCpus_allowed_list:\t{list}\n\
         Mems_allowed:\t1\nMems_allowed_list:\t0\n\
         voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n"
    );
}

/// What `status` says before: signals, privileges.
fn signals(subject: &Subject, text: &mut String) {
    let process = &subject.process;
    let [blocked, pending, ignored, caught] = figures::signals(subject);
    let own = process.credentials.borrow().capabilities;
    let limit = process.limit(linux_raw_sys::general::RLIMIT_SIGPENDING);
    let _ = writeln!(text, "Threads:\t{}\nSigQ:\t0/{limit}", process.threads.borrow().len());
    for (name, value) in [
        ("SigPnd", pending),
        ("ShdPnd", figures::shared_pending(process)),
        ("SigBlk", blocked),
        ("SigIgn", ignored),
        ("SigCgt", caught),
        ("CapInh", own.inheritable),
        ("CapPrm", own.permitted),
        ("CapEff", own.effective),
        ("CapBnd", own.bounding),
        ("CapAmb", own.ambient),
    ] {
        let _ = writeln!(text, "{name}:\t{value:016x}");
    }
    let _ = writeln!(
        text,
        "NoNewPrivs:\t{}\nSeccomp:\t{}\nSeccomp_filters:\t{}",
        u8::from(process.state.no_new_privileges.get()),
        subject.thread.as_ref().map_or(0, |thread| seccomp::mode(thread)),
        subject.thread.as_ref().map_or(0, |thread| seccomp::filter::count(thread)),
    );
}

fn memory(text: &mut String, space: &AddressSpace) {
    let sizes = space.sizes();
    let peak = space.peak() as u64;
    for (name, pages) in [
        ("VmPeak", sizes.total),
        ("VmSize", sizes.total),
        ("VmLck", sizes.locked),
        ("VmPin", 0),
        ("VmHWM", peak),
        ("VmRSS", sizes.resident),
        ("RssAnon", sizes.resident - sizes.shared.min(sizes.resident)),
        ("RssFile", 0),
        ("RssShmem", sizes.shared),
        ("VmData", sizes.data),
        ("VmStk", sizes.stack),
        ("VmExe", sizes.code),
        ("VmLib", 0),
        ("VmPTE", 0),
        ("VmSwap", 0),
    ] {
        let _ = writeln!(text, "{name}:\t{:>8} kB", pages * (PAGE as u64 / 1024));
    }
}
