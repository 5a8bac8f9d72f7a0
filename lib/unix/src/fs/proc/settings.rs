//! `/proc/sys`: settings.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt::Write;

use super::system::{directory, line, text};
use super::{Fixed, What};
use crate::call::Cx;
use crate::dump;
use crate::errno::Errno;
use crate::file::{MAX_DESCRIPTORS, MIN_DESCRIPTORS};
use crate::ipc::{messages, posix, segments};
use crate::memory::PAGE;
use crate::mm::area::AREAS_MAX;
use crate::process::limits;
use crate::process::namespace::names;
use crate::process::system::{RELEASE, VERSION};
use crate::stream::{aio, inotify, pipe};

/// `/proc/sys`.
pub(super) const SYS: &[Fixed] =
    &[directory("fs", FS), directory("kernel", KERNEL), directory("vm", VM)];

const FS: &[Fixed] = &[
    text("aio-max-nr", |_| line(aio::EVENTS_MAX)),
    text("aio-nr", |cx| line(cx.unix.streams.aio_events.get())),
    text("file-max", |_| b"65536\n".to_vec()),
    directory("inotify", INOTIFY),
    Fixed {
        name: "lease-break-time",
        mode: 0o644,
        what: What::Setting(
            |cx| line(cx.unix.fs.lease_seconds.get()),
            |cx, bytes| {
                cx.unix.fs.lease_seconds.set(number(bytes)?);
                Ok(())
            },
        ),
    },
    directory("mqueue", QUEUES),
    Fixed {
        name: "nr_open",
        mode: 0o644,
        what: What::Setting(
            |cx| line(cx.unix.streams.most_descriptors.get()),
            set_most_descriptors,
        ),
    },
    Fixed {
        name: "pipe-max-size",
        mode: 0o644,
        what: What::Setting(|cx| line(cx.unix.streams.pipe_max.get() as u64), set_pipe_max),
    },
    text("pipe-user-pages-hard", |_| b"0\n".to_vec()),
    text("pipe-user-pages-soft", |_| line(crate::account::PIPE_PAGES)),
];

const QUEUES: &[Fixed] = &[
    text("msg_default", |_| line(posix::MESSAGES)),
    text("msg_max", |_| line(posix::MESSAGES)),
    text("msgsize_default", |_| line(posix::BYTES)),
    text("msgsize_max", |_| line(posix::BYTES)),
    Fixed {
        name: "queues_max",
        mode: 0o644,
        what: What::Setting(
            |cx| line(crate::ipc::of(cx.unix, cx.process).queues.most.get()),
            |cx, bytes| {
                crate::ipc::of(cx.unix, cx.process).queues.most.set(number(bytes)?);
                Ok(())
            },
        ),
    },
];

const INOTIFY: &[Fixed] = &[
    text("max_queued_events", |_| line(inotify::EVENTS_MAX as u64)),
    Fixed {
        name: "max_user_instances",
        mode: 0o644,
        what: What::Setting(
            |cx| line(cx.unix.streams.inotifies.get()),
            |cx, bytes| {
                cx.unix.streams.inotifies.set(number(bytes)?);
                Ok(())
            },
        ),
    },
    text("max_user_watches", |_| b"65536\n".to_vec()),
];

/// A number that is written to a setting.
fn number(bytes: &[u8]) -> Result<u64, Errno> {
    let text = core::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    text.trim().parse().map_err(|_| Errno::EINVAL)
}

const KERNEL: &[Fixed] = &[
    text("cap_last_cap", |_| b"40\n".to_vec()),
    Fixed {
        name: "core_pattern",
        mode: 0o644,
        what: What::Setting(core_pattern, set_core_pattern),
    },
    Fixed { name: "domainname", mode: 0o644, what: What::Setting(domain_name, set_domain_name) },
    Fixed { name: "hostname", mode: 0o644, what: What::Setting(hostname, set_hostname) },
    super::ipc::NEXT[0],
    text("msgmax", |_| line(messages::MESSAGE_MAX)),
    text("msgmnb", |_| line(messages::QUEUE_MAX)),
    super::ipc::QUEUES,
    Fixed { name: "ns_last_pid", mode: 0o644, what: What::Setting(last_id, set_last_id) },
    text("ngroups_max", |_| b"65536\n".to_vec()),
    text("osrelease", |_| with_line_feed(RELEASE.as_bytes())),
    text("ostype", |_| b"Linux\n".to_vec()),
    text("overflowgid", |_| b"65534\n".to_vec()),
    text("overflowuid", |_| b"65534\n".to_vec()),
    text("pid_max", |_| b"32768\n".to_vec()),
    Fixed {
        name: "printk",
        mode: 0o644,
        what: What::Setting(|_| b"7\t4\t1\t7\n".to_vec(), ignore),
    },
    directory("random", RANDOM),
    Fixed {
        name: "randomize_va_space",
        mode: 0o644,
        what: What::Setting(randomize, set_randomize),
    },
    directory("seccomp", SECCOMP),
    super::ipc::SEMAPHORES,
    super::ipc::NEXT[1],
    super::ipc::NEXT[2],
    text("shmall", |_| line(segments::BYTES_MAX)),
    text("shmmax", |_| line(segments::BYTES_MAX)),
    super::ipc::SEGMENTS,
    text("tainted", |_| b"0\n".to_vec()),
    text("threads-max", |cx| line(limits::max_threads(cx.unix))),
    text("version", |_| with_line_feed(VERSION.as_bytes())),
];

const SECCOMP: &[Fixed] =
    &[text("actions_avail", |_| b"kill_process kill_thread trap errno trace log allow\n".to_vec())];

const RANDOM: &[Fixed] = &[
    text("boot_id", boot_id),
    text("entropy_avail", |_| b"256\n".to_vec()),
    text("poolsize", |_| b"256\n".to_vec()),
    text("uuid", uuid),
];

const VM: &[Fixed] = &[
    Fixed { name: "max_map_count", mode: 0o644, what: What::Setting(most_areas, keep_most_areas) },
    text("mmap_min_addr", |_| b"4096\n".to_vec()),
    Fixed {
        name: "overcommit_memory",
        mode: 0o644,
        what: What::Setting(|_| b"1\n".to_vec(), ignore),
    },
    text("overcommit_ratio", |_| b"50\n".to_vec()),
    text("swappiness", |_| b"60\n".to_vec()),
];

/// Descriptors that a process has at most.
fn set_most_descriptors(cx: &Cx, bytes: &[u8]) -> Result<(), Errno> {
    let most = number(bytes)?;
    if !(MIN_DESCRIPTORS..=MAX_DESCRIPTORS).contains(&most) {
        return Err(Errno::EINVAL);
    }
    cx.unix.streams.most_descriptors.set(most);
    Ok(())
}

/// Between a page and the highest capacity of all, a power of two.
fn set_pipe_max(cx: &Cx, bytes: &[u8]) -> Result<(), Errno> {
    let wanted = usize::try_from(number(bytes)?).map_err(|_| Errno::EINVAL)?;
    if wanted > pipe::CAPACITY_MAX {
        return Err(Errno::EINVAL);
    }
    cx.unix.streams.pipe_max.set(wanted.max(PAGE).next_power_of_two());
    Ok(())
}

fn most_areas(_: &Cx) -> Vec<u8> {
    line(AREAS_MAX as u64)
}

/// There is no other limit than the one that there is.
fn keep_most_areas(cx: &Cx, text: &[u8]) -> Result<(), Errno> {
    if text.trim_ascii() == most_areas(cx).trim_ascii() { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Written, but without an effect.
fn ignore(_: &Cx, _: &[u8]) -> Result<(), Errno> {
    Ok(())
}

fn core_pattern(cx: &Cx) -> Vec<u8> {
    with_line_feed(&cx.unix.core_pattern.borrow())
}

/// Where core files go; no program gets them (`|`).
fn set_core_pattern(cx: &Cx, bytes: &[u8]) -> Result<(), Errno> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.len() > dump::PATTERN_MAX || bytes.contains(&0) || bytes.first() == Some(&b'|') {
        return Err(Errno::EINVAL);
    }
    cx.unix.core_pattern.replace(bytes.to_vec());
    Ok(())
}

fn hostname(cx: &Cx) -> Vec<u8> {
    with_line_feed(&names(cx.unix, cx.process).host.borrow())
}

fn with_line_feed(text: &[u8]) -> Vec<u8> {
    [text, b"\n"].concat()
}

fn set_hostname(cx: &Cx, bytes: &[u8]) -> Result<(), Errno> {
    set_name(cx, &names(cx.unix, cx.process).host, bytes)
}

fn domain_name(cx: &Cx) -> Vec<u8> {
    with_line_feed(&names(cx.unix, cx.process).domain.borrow())
}

fn set_domain_name(cx: &Cx, bytes: &[u8]) -> Result<(), Errno> {
    set_name(cx, &names(cx.unix, cx.process).domain, bytes)
}

fn last_id(cx: &Cx) -> Vec<u8> {
    line(super::system::last_id(cx).into())
}

fn set_last_id(cx: &Cx, bytes: &[u8]) -> Result<(), Errno> {
    let users = crate::process::numbers::owner(cx.numbers());
    let who = cx.process.credentials.borrow();
    if !who.may_in(&users, linux_raw_sys::general::CAP_CHECKPOINT_RESTORE) {
        return Err(Errno::EPERM);
    }
    match cx.numbers() {
        None => cx.unix.processes.set_last_id(number(bytes)?),
        Some(space) => space.set_last(number(bytes)?),
    }
}

fn set_name(cx: &Cx, to: &RefCell<Vec<u8>>, bytes: &[u8]) -> Result<(), Errno> {
    if !cx.process.credentials.borrow().may(linux_raw_sys::general::CAP_SYS_ADMIN) {
        return Err(Errno::EPERM);
    }
    let name = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let len = name.len().min(64);
    *to.borrow_mut() = name[..len].to_vec();
    Ok(())
}

fn randomize(cx: &Cx) -> Vec<u8> {
    line(cx.unix.randomize.get().into())
}

fn set_randomize(cx: &Cx, bytes: &[u8]) -> Result<(), Errno> {
    let text = core::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    match text.trim().parse() {
        Ok(level @ 0..=2) => cx.unix.randomize.set(level),
        _ => return Err(Errno::EINVAL),
    }
    Ok(())
}

/// A number that is the same until the next start.
fn boot_id(cx: &Cx) -> Vec<u8> {
    let boot = cx.unix.machine.boot_time_ns();
    let mixed = boot.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&boot.to_be_bytes());
    bytes[8..].copy_from_slice(&mixed.to_be_bytes());
    uuid_text(bytes)
}

fn uuid(cx: &Cx) -> Vec<u8> {
    let mut bytes = [0; 16];
    cx.unix.machine.random(&mut bytes);
    uuid_text(bytes)
}

/// A random UUID (version 4) of these bytes.
fn uuid_text(mut bytes: [u8; 16]) -> Vec<u8> {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    text.into_bytes()
}
