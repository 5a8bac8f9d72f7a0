//! The files of `/proc/PID`.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use linux_raw_sys::general as linux;

use super::super::listing::Item;
use super::records::Tell;
use super::{
    Node, Subject, SubjectText, Target, What, WriteOwned, Written, check_close_look, mappings,
    mounts, status,
};
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::user_maps::{self, map_text, write_map};
use crate::process::user_space::Kind;
use crate::process::{Pid, clocks};
use crate::stream::socket::netlink::connector;
use crate::user::UserMemory;

/// Longest argument list or environment that is shown, in bytes.
const STRINGS_MAX: u64 = 2 << 20;

/// What a name in `/proc/PID` is.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    Text(SubjectText),
    Mounts(SubjectText),
    Setting(SubjectText, fn(&Cx, &Subject, &[u8]) -> Result<(), Errno>),
    Link(fn(&Cx, &Subject) -> Result<Target, Errno>),
    Owned(SubjectText, WriteOwned),
    Areas(Tell),
    Memory,
    Pages,
    Tasks,
    Namespaces,
    Descriptors(bool),
}

impl Entry {
    fn what(self, pid: Pid, tid: Pid) -> What {
        match self {
            Self::Text(make) => What::SubjectText(pid, tid, make),
            Self::Mounts(make) => What::Mounts(pid, tid, make),
            Self::Setting(make, set) => What::SubjectSetting(pid, tid, make, set),
            Self::Link(find) => What::SubjectLink(pid, tid, find),
            Self::Owned(make, set) => What::SubjectOwned(pid, tid, make, set),
            Self::Areas(tell) => What::Areas(pid, tid, tell),
            Self::Memory => What::Memory(pid, tid),
            Self::Pages => What::Pages(pid, tid),
            Self::Tasks => What::Tasks(pid),
            Self::Namespaces => What::Namespaces(pid, tid),
            Self::Descriptors(info) => What::Descriptors(pid, info),
        }
    }
}

/// All names; the first two are not in `/proc/PID/task/TID`, the last only there.
const ENTRIES: &[Named] = &[
    ("task", 0o555, Entry::Tasks),
    ("timens_offsets", 0o644, Entry::Owned(clock_offsets, set_clock_offsets)),
    ("auxv", 0o400, Entry::Text(auxv)),
    ("cgroup", 0o444, Entry::Text(|_, _| Ok(b"0::/\n".to_vec()))),
    ("cmdline", 0o444, Entry::Text(cmdline)),
    ("comm", 0o644, Entry::Setting(comm, set_comm)),
    ("coredump_filter", 0o444, Entry::Text(|_, _| Ok(b"00000033\n".to_vec()))),
    ("cwd", 0o777, Entry::Link(cwd)),
    ("environ", 0o400, Entry::Text(environ)),
    ("exe", 0o777, Entry::Link(exe)),
    ("fd", 0o500, Entry::Descriptors(false)),
    ("fdinfo", 0o555, Entry::Descriptors(true)),
    ("gid_map", 0o644, Entry::Owned(group_map, set_group_map)),
    ("limits", 0o444, Entry::Text(limits)),
    ("maps", 0o444, Entry::Areas(mappings::maps)),
    ("mem", 0o600, Entry::Memory),
    ("mountinfo", 0o444, Entry::Mounts(mounts::mountinfo)),
    ("mounts", 0o444, Entry::Mounts(mounts::mounts)),
    ("ns", 0o511, Entry::Namespaces),
    ("numa_maps", 0o444, Entry::Areas(mappings::numa_maps)),
    ("oom_score", 0o444, Entry::Text(|_, _| Ok(b"0\n".to_vec()))),
    ("oom_score_adj", 0o644, Entry::Setting(oom_adjustment, set_oom_adjustment)),
    ("pagemap", 0o400, Entry::Pages),
    ("root", 0o777, Entry::Link(root)),
    ("setgroups", 0o644, Entry::Owned(sets_groups, set_sets_groups)),
    ("smaps", 0o444, Entry::Areas(mappings::smaps)),
    ("stat", 0o444, Entry::Text(status::stat)),
    ("statm", 0o444, Entry::Text(status::statm)),
    ("status", 0o444, Entry::Text(status::status)),
    ("timerslack_ns", 0o666, Entry::Setting(timer_slack, set_timer_slack)),
    ("uid_map", 0o644, Entry::Owned(user_map, set_user_map)),
    ("wchan", 0o444, Entry::Text(|_, _| Ok(b"0".to_vec()))),
    ("children", 0o444, Entry::Text(children)),
];

/// Name, permissions, and what it is.
pub(super) type Named = (&'static str, u32, Entry);

/// Names of `/proc/PID`.
pub(super) fn of_process() -> &'static [Named] {
    &ENTRIES[..ENTRIES.len() - 1]
}

/// Names of `/proc/PID/task/TID`.
pub(super) fn of_thread() -> &'static [Named] {
    &ENTRIES[2..]
}

/// What `name` is in `/proc/PID`, and its permissions.
pub(super) fn find(table: &[Named], pid: Pid, tid: Pid, name: &[u8]) -> Option<(What, u32)> {
    let (_, mode, entry) = table.iter().find(|entry| entry.0.as_bytes() == name)?;
    Some((entry.what(pid, tid), *mode))
}

/// The entry at or behind `position`.
pub(super) fn list(
    table: &[Named],
    node: &Node,
    (pid, tid): (Pid, Pid),
    position: u64,
) -> Option<Item> {
    let index = usize::try_from(position.saturating_sub(2)).ok()?;
    let (name, _, entry) = table.get(index)?;
    Some(Item {
        name: name.as_bytes().into(),
        number: u64::from(node.shown(tid)) << 8 | position | 1 << 33,
        file_type: entry.what(pid, tid).file_type(),
        next: position + 1,
    })
}

fn clock_offsets(_: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    Ok(clocks::text(&subject.process))
}

/// At any place: on Linux the file's position stays where it is.
fn set_clock_offsets(cx: &Cx, one: &Subject, written: &Written) -> Result<usize, Errno> {
    clocks::write(cx, written.by, &one.process, written.text)
}

fn user_map(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    Ok(map_text(cx, &subject.process, Kind::Users).into_bytes())
}

fn group_map(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    Ok(map_text(cx, &subject.process, Kind::Groups).into_bytes())
}

fn sets_groups(_: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    Ok(user_maps::groups_text(&subject.process).into())
}

fn set_user_map(cx: &Cx, one: &Subject, written: &Written) -> Result<usize, Errno> {
    set_map(cx, one, Kind::Users, written)
}

fn set_group_map(cx: &Cx, one: &Subject, written: &Written) -> Result<usize, Errno> {
    set_map(cx, one, Kind::Groups, written)
}

fn set_map(cx: &Cx, one: &Subject, kind: Kind, written: &Written) -> Result<usize, Errno> {
    let text = written.whole()?;
    write_map(cx, written.by, &one.process, kind, text)?;
    Ok(text.len())
}

fn set_sets_groups(_: &Cx, one: &Subject, written: &Written) -> Result<usize, Errno> {
    let text = written.whole()?;
    user_maps::write_groups(written.by, &one.process, text)?;
    Ok(text.len())
}

/// The children that the thread has made, and if it is the first that lives, those whose maker is gone.
fn children(_: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    let threads = subject.process.threads.borrow();
    let is_first = threads.first().is_some_and(|first| first.tid.get() == subject.tid);
    let is_made_here = |maker| {
        let lives = || threads.iter().any(|thread| thread.tid.get() == maker);
        maker == subject.tid || is_first && !lives()
    };
    let mut text = String::new();
    for child in subject.process.children.borrow().iter() {
        let number = subject.shown(child.pid);
        if number != 0 && is_made_here(child.state.maker.get()) {
            let _ = write!(text, "{number} ");
        }
    }
    Ok(text.into_bytes())
}

/// Bytes of the process's memory; what cannot be read is left out.
fn strings(cx: &Cx, subject: &Subject, (start, end): (u64, u64)) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    if subject.process.ended.get().is_some() || end <= start {
        return Ok(bytes);
    }
    let len = (end - start).min(STRINGS_MAX) as usize;
    cx.check_heap(len)?;
    bytes.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
    bytes.resize(len, 0);
    let memory = UserMemory::new(cx.unix, subject.process.space());
    let len = memory.read_some(start, &mut bytes).unwrap_or(0);
    bytes.truncate(len);
    Ok(bytes)
}

/// Whether the caller may see and set how late timers of the process may be.
fn check_slack(cx: &Cx, subject: &Subject) -> Result<(), Errno> {
    let own = Rc::ptr_eq(cx.process, &subject.process);
    if own || cx.process.credentials.borrow().may(linux::CAP_SYS_NICE) {
        return Ok(());
    }
    Err(Errno::EPERM)
}

fn timer_slack(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    check_slack(cx, subject)?;
    Ok(format!("{}\n", subject.process.state.timer_slack.get()).into_bytes())
}

fn set_timer_slack(cx: &Cx, subject: &Subject, bytes: &[u8]) -> Result<(), Errno> {
    check_slack(cx, subject)?;
    let text = core::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    let state = &subject.process.state;
    let slack = text.trim().parse().map_err(|_| Errno::EINVAL)?;
    state.timer_slack.set(if slack == 0 { state.first_slack.get() } else { slack });
    Ok(())
}

fn cmdline(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    let layout = subject.process.space().layout.get();
    strings(cx, subject, layout.arguments)
}

fn environ(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    check_close_look(cx, &subject.process)?;
    let layout = subject.process.space().layout.get();
    strings(cx, subject, layout.environment)
}

fn auxv(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    check_close_look(cx, &subject.process)?;
    let layout = subject.process.space().layout.get();
    strings(cx, subject, layout.auxiliary)
}

fn comm(_: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    let mut name = status::name(subject);
    name.push(b'\n');
    Ok(name)
}

fn set_comm(cx: &Cx, subject: &Subject, bytes: &[u8]) -> Result<(), Errno> {
    if !Rc::ptr_eq(&subject.process, cx.process) {
        return Err(Errno::EINVAL);
    }
    let thread = subject.thread.as_ref().ok_or(Errno::ESRCH)?;
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let len = bytes.len().min(15);
    let mut name = [0; 16];
    name[..len].copy_from_slice(&bytes[..len]);
    thread.name.set(name);
    connector::named(cx.unix, thread);
    Ok(())
}

/// `oom_score_adj`: how much rather than others it is killed when memory is used up.
fn oom_adjustment(_: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    Ok(format!("{}\n", subject.process.state.out_of_memory.get()).into_bytes())
}

fn set_oom_adjustment(cx: &Cx, subject: &Subject, bytes: &[u8]) -> Result<(), Errno> {
    let text = core::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    let new: i32 = text.trim().parse().map_err(|_| Errno::EINVAL)?;
    if !(-1000..=1000).contains(&new) {
        return Err(Errno::EINVAL);
    }
    let adjustment = &subject.process.state.out_of_memory;
    let may_lower = cx.process.credentials.borrow().may(linux_raw_sys::general::CAP_SYS_RESOURCE);
    if new < adjustment.get() && !may_lower {
        return Err(Errno::EACCES);
    }
    adjustment.set(new);
    Ok(())
}

fn cwd(_: &Cx, subject: &Subject) -> Result<Target, Errno> {
    check_alive(subject)?;
    Ok(Target::Spot(subject.process.place.borrow().directory()))
}

fn root(_: &Cx, subject: &Subject) -> Result<Target, Errno> {
    check_alive(subject)?;
    Ok(Target::Spot(subject.process.place.borrow().root()))
}

fn exe(_: &Cx, subject: &Subject) -> Result<Target, Errno> {
    check_alive(subject)?;
    let path = subject.process.executable.borrow().clone();
    if path.is_empty() { Err(Errno::ENOENT) } else { Ok(Target::Path(path)) }
}

fn check_alive(subject: &Subject) -> Result<(), Errno> {
    if subject.process.ended.get().is_some() { Err(Errno::ENOENT) } else { Ok(()) }
}

/// Name, unit and `RLIMIT_*` of the limits.
const LIMITS: [(&str, &str, u32); 16] = [
    ("Max cpu time", "seconds", linux::RLIMIT_CPU),
    ("Max file size", "bytes", linux::RLIMIT_FSIZE),
    ("Max data size", "bytes", linux::RLIMIT_DATA),
    ("Max stack size", "bytes", linux::RLIMIT_STACK),
    ("Max core file size", "bytes", linux::RLIMIT_CORE),
    ("Max resident set", "bytes", linux::RLIMIT_RSS),
    ("Max processes", "processes", linux::RLIMIT_NPROC),
    ("Max open files", "files", linux::RLIMIT_NOFILE),
    ("Max locked memory", "bytes", linux::RLIMIT_MEMLOCK),
    ("Max address space", "bytes", linux::RLIMIT_AS),
    ("Max file locks", "locks", linux::RLIMIT_LOCKS),
    ("Max pending signals", "signals", linux::RLIMIT_SIGPENDING),
    ("Max msgqueue size", "bytes", linux::RLIMIT_MSGQUEUE),
    ("Max nice priority", "", linux::RLIMIT_NICE),
    ("Max realtime priority", "", linux::RLIMIT_RTPRIO),
    ("Max realtime timeout", "us", linux::RLIMIT_RTTIME),
];

fn limits(_: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    let limits = subject.process.limits.borrow();
    let value = |limit: u64| match limit {
        u64::MAX => String::from("unlimited"),
        limit => format!("{limit}"),
    };
    let mut text =
        format!("{:<25} {:<20} {:<20} {:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    for (name, unit, which) in LIMITS {
        let Some((soft, hard)) = limits.get(which as usize).copied() else { continue };
        let _ = writeln!(text, "{name:<25} {:<20} {:<20} {unit:<10}", value(soft), value(hard));
    }
    Ok(text.into_bytes())
}
