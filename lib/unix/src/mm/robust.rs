//! What a thread leaves to others when it ends: the futexes it holds (robust lists) and
//! the word that `set_tid_address` named.

use alloc::rc::Rc;

use linux_raw_sys::general as linux;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::AddressSpace;
use super::futex::wake;
use crate::thread::Thread;
use crate::unix::Unix;

/// Most entries of a robust list that are looked at.
const ROBUST_LIMIT: usize = 2048;

/// A thread ends or leaves its space: what `set_tid_address` named is cleared and one
/// waiter there woken, if somebody else has the space, too.
pub fn clear_child_tid(unix: &Unix, thread: &Rc<Thread>) {
    let address = thread.clear_child_tid.replace(0);
    let space = thread.process().space();
    // This function and the process hold it, and whoever else has it.
    let alone = Rc::strong_count(&space) <= 2 && thread.process.threads.borrow().len() <= 1;
    if address == 0 || alone {
        return;
    }
    let user = crate::user::UserMemory::new(unix, space.clone());
    if user.write(address, &0_u32).is_ok() {
        wake(unix, &space, address, 1);
    }
}

/// The head of a thread's robust list.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RobustHead {
    next: u64,
    offset: i64,
    pending: u64,
}

/// A thread ends: the futexes of its robust list that it holds are marked, and one waiter
/// of each is woken. Call it while the thread still has its space.
pub fn release_robust(unix: &Unix, thread: &Rc<Thread>) {
    let head_at = thread.robust_list.replace(0);
    if head_at == 0 {
        return;
    }
    let space = thread.process().space();
    let user = crate::user::UserMemory::new(unix, space.clone());
    let Ok(head) = user.read::<RobustHead>(head_at) else { return };
    let tid = thread.own_tid.get();
    let release = |entry: u64, pending: bool| {
        let (address, inherits) = ((entry & !1).wrapping_add(head.offset as u64), entry & 1 != 0);
        release_one(unix, &space, address, tid, pending && !inherits);
    };
    let mut entry = head.next;
    for _ in 0..ROBUST_LIMIT {
        if entry & !1 == head_at {
            break;
        }
        let next = user.read::<u64>(entry & !1);
        if entry != head.pending {
            release(entry, false);
        }
        match next {
            Ok(next) => entry = next,
            Err(_) => break,
        }
    }
    if head.pending != 0 {
        release(head.pending, true);
    }
}

/// Linux's `handle_futex_death`.
fn release_one(unix: &Unix, space: &AddressSpace, address: u64, tid: u32, pending: bool) {
    if !address.is_multiple_of(4) {
        return;
    }
    let Ok((frame, offset)) = space.word(unix, address, true) else { return };
    let old = unix.memory.load_u32(frame, offset);
    if pending && old == 0 {
        wake(unix, space, address, 1);
        return;
    }
    if old & linux::FUTEX_TID_MASK != tid {
        return;
    }
    let new = old & linux::FUTEX_WAITERS | linux::FUTEX_OWNER_DIED;
    unix.memory.compare_exchange_u32(frame, offset, old, new);
    if old & linux::FUTEX_WAITERS != 0 {
        wake(unix, space, address, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_linux_s() {
        assert_eq!(size_of::<RobustHead>(), size_of::<linux::robust_list_head>());
    }
}
