//! clone, clone3, fork, vfork: what their arguments wish for.

use alloc::vec;
use alloc::vec::Vec;

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::birth::{Wish, bear, wait_for_vfork};
use super::numbers::MOST_LEVELS;
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::signal::set;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_clone, "clone", clone, MISSING),
    partial(l::__NR_clone3, "clone3", clone3, MISSING),
    full(l::__NR_fork, "fork", fork),
    full(l::__NR_vfork, "vfork", vfork),
];

const MISSING: &str = "namespaces of networks, CLONE_INTO_CGROUP (EINVAL); \
    threads of a process always share files and directories";

fn fork(cx: &Cx) -> Answer {
    bear(cx, &Wish { exit_signal: l::SIGCHLD, ..Wish::default() })
}

fn vfork(cx: &Cx) -> Answer {
    let flags = u64::from(l::CLONE_VFORK | l::CLONE_VM);
    bear(cx, &Wish { flags, exit_signal: l::SIGCHLD, ..Wish::default() })
}

/// The exit signal's bits in the flags of the old call.
const SIGNAL_BITS: u64 = 0xFF;

fn clone(cx: &Cx) -> Answer {
    let all = cx.arg(0) & 0xFFFF_FFFF;
    let wish = Wish {
        flags: all & !SIGNAL_BITS,
        stack: cx.arg(1),
        parent_tid: cx.arg(2),
        child_tid: cx.arg(3),
        pidfd: cx.arg(2),
        tls: cx.arg(4),
        exit_signal: (all & SIGNAL_BITS) as u32,
        numbers: Vec::new(),
    };
    let also = l::CLONE_PARENT_SETTID | l::CLONE_DETACHED;
    if wish.has(l::CLONE_PIDFD) && wish.flags & u64::from(also) != 0 {
        return Err(Errno::EINVAL.into());
    }
    bear(cx, &wish)
}

/// `struct clone_args`, up to its last version.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

fn clone3(cx: &Cx) -> Answer {
    if cx.is_retry() {
        return wait_for_vfork(cx);
    }
    let size = cx.arg(1) as usize;
    let known = size_of::<CloneArguments>();
    if size > crate::memory::PAGE {
        return Err(Errno::E2BIG.into());
    }
    if size < l::CLONE_ARGS_SIZE_VER0 as usize {
        return Err(Errno::EINVAL.into());
    }
    let mut from = CloneArguments::default();
    cx.user().read_bytes(cx.arg(0), &mut from.as_mut_bytes()[..size.min(known)])?;
    if size > known {
        let mut rest = alloc::vec![0; size - known];
        cx.user().read_bytes(cx.arg(0).wrapping_add(known as u64), &mut rest)?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Errno::E2BIG.into());
        }
    }
    let mut wish = wish_of(&from)?;
    wish.numbers = vec![0; from.set_tid_size as usize];
    cx.user().read_bytes(from.set_tid, wish.numbers.as_mut_bytes())?;
    bear(cx, &wish)
}

/// What the new call's arguments ask for.
fn wish_of(from: &CloneArguments) -> Result<Wish, Errno> {
    let family = u64::from(l::CLONE_THREAD | l::CLONE_PARENT);
    let reserved = SIGNAL_BITS & !u64::from(l::CLONE_NEWTIME) | u64::from(l::CLONE_DETACHED);
    let wrong = from.exit_signal > u64::from(set::LAST)
        || (from.stack == 0) != (from.stack_size == 0)
        || from.flags & reserved != 0
        || (from.flags & family != 0 && from.exit_signal != 0)
        || (from.set_tid == 0) != (from.set_tid_size == 0)
        || from.set_tid_size > MOST_LEVELS as u64;
    if wrong {
        return Err(Errno::EINVAL);
    }
    Ok(Wish {
        flags: from.flags,
        stack: from.stack.wrapping_add(from.stack_size),
        parent_tid: from.parent_tid,
        child_tid: from.child_tid,
        pidfd: from.pidfd,
        tls: from.tls,
        exit_signal: from.exit_signal as u32,
        numbers: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_arguments_are_the_kernel_s() {
        assert_eq!(size_of::<CloneArguments>(), size_of::<l::clone_args>());
        assert_eq!(size_of::<CloneArguments>(), l::CLONE_ARGS_SIZE_VER2 as usize);
    }
}
