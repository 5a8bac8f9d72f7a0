//! `brk`: the heap's end.

use linux_raw_sys::general as linux;

use super::area::AreaFlags;
use super::map::{limit, may_grow, may_lock};
use super::{PAGE, USER_END, page_up};
use crate::call::{Answer, Cx, Entry, full};
use crate::machine::Access;

pub(super) const BRK: Entry = full(linux::__NR_brk, "brk", brk);

fn brk(cx: &Cx) -> Answer {
    let space = cx.process.space();
    let mut layout = space.layout.get();
    let (start, old) = layout.heap;
    let new = cx.arg(0);
    let (Some(old_end), Some(new_end)) = (page_up(old), page_up(new)) else { return Ok(old) };
    let data = (layout.data.1 - layout.data.0).saturating_add(new.wrapping_sub(start));
    if new < start || new_end > USER_END || data > limit(cx, linux::RLIMIT_DATA) {
        return Ok(old);
    }
    if new_end < old_end {
        space.unmap(cx.unix, new_end, old_end);
    } else if new_end > old_end {
        let len = new_end - old_end;
        if space.make_room().is_err() {
            return Ok(old);
        }
        let taken = !space.areas.borrow().within(old_end, new_end + PAGE).is_empty();
        let locked = space.lock_future.get();
        let too_much = len / PAGE > cx.unix.memory.total() as u64;
        if taken
            || too_much
            || may_grow(cx, &space, len, true).is_err()
            || locked && !may_lock(cx, &space, len)
        {
            return Ok(old);
        }
        let flags = if locked { AreaFlags::LOCKED } else { AreaFlags::empty() };
        space.add_anonymous(old_end, new_end, Access::READ | Access::WRITE, flags);
        if locked {
            space.populate_some(cx.unix, old_end, new_end, Access::WRITE);
        }
    }
    layout.heap.1 = new;
    space.layout.set(layout);
    Ok(new)
}
