//! What file systems there are, asked in the ways of old: `sysfs`, `ustat`.

use linux_raw_sys::general as linux;
use zerocopy::{Immutable, IntoBytes};

use super::filesystem::Kind;
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;

/// The calls this file carries out.
pub const CALLS: &[Entry] =
    &[full(linux::__NR_sysfs, "sysfs", sysfs), full(linux::__NR_ustat, "ustat", ustat)];

/// The kinds that can be mounted, as `/proc/filesystems` lists them.
const KINDS: [Kind; 5] = [Kind::Sysfs, Kind::Tmpfs, Kind::Proc, Kind::Devtmpfs, Kind::Devpts];
/// Longest name of a kind.
const NAME_MAX: usize = 4096;

/// `sysfs(option, ...)`: the number of a name (1), the name of a number (2), how many (3).
fn sysfs(cx: &Cx) -> Answer {
    match cx.int(0) {
        1 => {
            let name = cx.user().read_string(cx.arg(1), NAME_MAX, Errno::EINVAL)?;
            let found = KINDS.iter().position(|kind| kind.name().as_bytes() == name);
            Ok(found.ok_or(Errno::EINVAL)? as u64)
        }
        2 => {
            let kind = KINDS.get(cx.uint(1) as usize).ok_or(Errno::EINVAL)?;
            cx.user().write_bytes(cx.arg(2), &[kind.name().as_bytes(), &[0]].concat())?;
            Ok(0)
        }
        3 => Ok(KINDS.len() as u64),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// `struct ustat`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Ustat {
    free_blocks: u64,
    free_inodes: u64,
    names: [u8; 16],
}

/// `ustat(device, record)`.
fn ustat(cx: &Cx) -> Answer {
    let device = u64::from(cx.uint(0));
    let mounts = crate::process::namespace::mounts(cx.unix, cx.process).mounts();
    let mounted = mounts.iter().find(|mount| mount.root().fs.device == device);
    let [_, free, _, inodes] = mounted.ok_or(Errno::EINVAL)?.root().fs.usage();
    // The first is an int, and four bytes that nobody looks at.
    let free_blocks = free.min(i32::MAX as u64);
    cx.user().write(cx.arg(1), &Ustat { free_blocks, free_inodes: inodes, names: [0; 16] })?;
    Ok(0)
}
