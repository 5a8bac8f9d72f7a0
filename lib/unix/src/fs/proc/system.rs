//! The files of `/proc` that are about the system: memory, processors, time.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::super::filesystem::Kind as FsKind;
use super::super::mounts::Mount;
use super::{Fixed, Node, What};
use crate::call::Cx;
use crate::errno::Errno;
use crate::memory::PAGE;
use crate::process::averages::ONE;
use crate::process::system::{RELEASE, VERSION};
use crate::time::Clock;
use crate::time::clock::boot_time_ns;

pub(super) const fn text(name: &'static str, make: fn(&Cx) -> Vec<u8>) -> Fixed {
    Fixed { name, mode: 0o444, what: What::Text(make) }
}

const fn link(name: &'static str, make: fn(&Cx, &Node) -> Option<Vec<u8>>) -> Fixed {
    Fixed { name, mode: 0o777, what: What::Link(make) }
}

pub(super) const fn directory(name: &'static str, table: &'static [Fixed]) -> Fixed {
    Fixed { name, mode: 0o555, what: What::Directory(table) }
}

/// `/proc`, without the processes.
pub(super) const ROOT: &[Fixed] = &[
    text("cmdline", |_| b"baton\n".to_vec()),
    text("cpuinfo", super::cpuinfo::cpuinfo),
    text("devices", |_| DEVICES.as_bytes().to_vec()),
    text("filesystems", |_| FILESYSTEMS.as_bytes().to_vec()),
    text("loadavg", loadavg),
    text("meminfo", meminfo),
    link("mounts", |_, _| Some(b"self/mounts".to_vec())),
    directory("net", super::net::NET),
    text("partitions", |_| b"major minor  #blocks  name\n\n".to_vec()),
    link("self", own),
    text("stat", stat),
    text("swaps", |_| SWAPS.as_bytes().to_vec()),
    directory("sys", super::settings::SYS),
    Fixed { name: "sysrq-trigger", mode: 0o200, what: What::Setting(|_| Vec::new(), trigger) },
    link("thread-self", own_thread),
    text("uptime", uptime),
    directory("sysvipc", super::ipc::LISTS),
    text("version", version),
    text("vmstat", vmstat),
];

/// The caller, if it is seen here.
fn own(cx: &Cx, node: &Node) -> Option<Vec<u8>> {
    let number = node.shown(cx.process.pid);
    (number != 0).then(|| format!("{number}").into_bytes())
}

fn own_thread(cx: &Cx, node: &Node) -> Option<Vec<u8>> {
    let mut text = own(cx, node)?;
    text.extend(format!("/task/{}", node.shown(cx.thread.tid.get())).into_bytes());
    Some(text)
}

/// What the system request key does, as far as it is there: a failure of the server.
fn trigger(cx: &Cx, text: &[u8]) -> Result<(), Errno> {
    if text.first() == Some(&b'c') {
        cx.unix.machine.fail();
    }
    Ok(())
}

const DEVICES: &str = "Character devices:\n  1 mem\n  4 ttyS\n  5 /dev/tty\n  5 /dev/console\n  \
    5 /dev/ptmx\n136 pts\n\nBlock devices:\n";
const FILESYSTEMS: &str =
    "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\nnodev\tdevpts\n";
const SWAPS: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

pub(super) fn line(value: u64) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

/// Hundredths of a second since the machine started.
fn centiseconds(cx: &Cx) -> u64 {
    cx.unix.machine.now_ns() / 10_000_000
}

fn uptime(cx: &Cx) -> Vec<u8> {
    let now = Clock::Boot.told(cx, cx.unix.machine.now_ns()) / 10_000_000;
    let idle: u64 = processor_times(cx).iter().map(|[_, _, idle]| idle).sum();
    format!("{}.{:02} {}.{:02}\n", now / 100, now % 100, idle / 100, idle % 100).into_bytes()
}

/// Load averages, how many threads have something to do, and how many there are.
fn loadavg(cx: &Cx) -> Vec<u8> {
    let mut text = String::new();
    for average in cx.unix.processors.averages(cx.unix.machine.now_ns()) {
        // Rounded to hundredths.
        let average = average + ONE / 200;
        let _ = write!(text, "{}.{:02} ", average / ONE, average % ONE * 100 / ONE);
    }
    let (running, threads) = (running(cx), cx.unix.processes.by_tid.borrow().len());
    let _ = writeln!(text, "{running}/{threads} {}", last_id(cx));
    text.into_bytes()
}

/// Threads that have something to do, the caller among them.
fn running(cx: &Cx) -> u32 {
    cx.unix.processors.total_load().max(1)
}

/// The number given last in the caller's namespace.
pub(super) fn last_id(cx: &Cx) -> u32 {
    cx.numbers().map_or_else(|| cx.unix.processes.last_id(), |space| space.last())
}

/// Bytes in files of all file systems in memory.
fn cached(cx: &Cx) -> u64 {
    let mounts = cx.unix.fs.first.mounts();
    let whole = |mount: &&Rc<Mount>| Rc::ptr_eq(mount.root(), mount.tree_root());
    let tmpfs = mounts.iter().filter(whole).map(|mount| &mount.root().fs);
    tmpfs.filter(|fs| fs.kind == FsKind::Tmpfs).map(|fs| fs.bytes()).sum()
}

fn meminfo(cx: &Cx) -> Vec<u8> {
    let memory = &cx.unix.memory;
    let kib = |frames: usize| (frames * PAGE / 1024) as u64;
    let (total, free, files) = (kib(memory.total()), kib(memory.available()), cached(cx) / 1024);
    let mut text = String::new();
    for (name, value) in [
        ("MemTotal", total),
        ("MemFree", free),
        ("MemAvailable", free),
        ("Buffers", 0),
        ("Cached", files),
        ("SwapCached", 0),
        ("Active", files),
        ("Inactive", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Dirty", 0),
        ("Writeback", 0),
        ("AnonPages", total.saturating_sub(free + files)),
        ("Mapped", 0),
        ("Shmem", files),
        ("Slab", 0),
        ("SReclaimable", 0),
        ("CommitLimit", total),
        ("Committed_AS", total.saturating_sub(free)),
    ] {
        let _ = writeln!(text, "{:<15}{value:>9} kB", format!("{name}:"));
    }
    text.into_bytes()
}

/// User, system and idle time of each processor, in hundredths of a second.
fn processor_times(cx: &Cx) -> Vec<[u64; 3]> {
    let since = centiseconds(cx);
    let used = crate::process::processors::used(cx.unix).into_iter();
    let told = used.map(|it| [it.user_ns, it.system_ns].map(|ns| ns / 10_000_000));
    told.map(|[user, system]| [user, system, since.saturating_sub(user + system)]).collect()
}

fn stat(cx: &Cx) -> Vec<u8> {
    // So that what has been up for longer has begun earlier.
    let boot = Clock::Boot.meant(cx, boot_time_ns(cx.unix)) / 1_000_000_000;
    let last = cx.unix.processes.last_id();
    let times = processor_times(cx);
    let all = [0, 1, 2].map(|kind| times.iter().map(|of_one| of_one[kind]).sum());
    let told = |[user, system, idle]: [u64; 3]| format!("{user} 0 {system} {idle} 0 0 0 0 0 0");
    let mut text = format!("cpu  {}\n", told(all));
    for (number, of_one) in times.into_iter().enumerate() {
        let _ = writeln!(text, "cpu{number} {}", told(of_one));
    }
    let _ = write!(
        text,
        "intr 0\nctxt {}\nbtime {boot}\nprocesses {last}\nprocs_running {}\nprocs_blocked 0\n",
        cx.unix.calls.get(),
        running(cx)
    );
    text.into_bytes()
}

fn vmstat(cx: &Cx) -> Vec<u8> {
    let memory = &cx.unix.memory;
    format!("nr_free_pages {}\npgfault 0\npgmajfault 0\n", memory.available()).into_bytes()
}

fn version(_: &Cx) -> Vec<u8> {
    format!("Linux version {RELEASE} (baton) {VERSION}\n").into_bytes()
}
