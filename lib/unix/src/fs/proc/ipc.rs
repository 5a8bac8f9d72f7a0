//! `/proc/sysvipc`, and the limits of its objects in `/proc/sys/kernel`.

use alloc::format;
use alloc::vec::Vec;
use core::cell::Cell;

use super::records::TellOfAll;
use super::system::line;
use super::{Fixed, What};
use crate::call::Cx;
use crate::errno::Errno;
use crate::ipc::{messages, of, segments, semaphores};

/// All objects there are.
pub(super) const LISTS: &[Fixed] = &[
    records("msg", messages::list),
    records("sem", semaphores::list),
    records("shm", segments::list),
];

const fn records(name: &'static str, tell: TellOfAll) -> Fixed {
    Fixed { name, mode: 0o444, what: What::Records(tell) }
}

const fn setting(
    name: &'static str,
    say: fn(&Cx) -> Vec<u8>,
    set: fn(&Cx, &[u8]) -> Result<(), Errno>,
) -> Fixed {
    Fixed { name, mode: 0o644, what: What::Setting(say, set) }
}

/// How many message queues there can be.
pub(super) const QUEUES: Fixed = setting(
    "msgmni",
    |cx| line(of(cx.unix, cx.process).messages.most.get().into()),
    |cx, bytes| set(&of(cx.unix, cx.process).messages.most, bytes, messages::MOST),
);

/// How many segments.
pub(super) const SEGMENTS: Fixed = setting(
    "shmmni",
    |cx| line(of(cx.unix, cx.process).segments.most.get().into()),
    |cx, bytes| set(&of(cx.unix, cx.process).segments.most, bytes, segments::MOST),
);

/// Semaphores of a set, of all, operations of a call, sets.
pub(super) const SEMAPHORES: Fixed = setting(
    "sem",
    |cx| {
        let most = of(cx.unix, cx.process).semaphores.most.get();
        let (set, calls) = (semaphores::SET_MAX, semaphores::OPERATIONS_MAX);
        format!("{set}\t1024000000\t{calls}\t{most}\n").into_bytes()
    },
    |cx, bytes| {
        let last = bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(3);
        last.map_or(Ok(()), |word| {
            set(&of(cx.unix, cx.process).semaphores.most, word, semaphores::MOST)
        })
    },
);

/// The number that the next object of a kind gets: -1 is any.
pub(super) const NEXT: [Fixed; 3] = [
    setting(
        "msg_next_id",
        |cx| next(&of(cx.unix, cx.process).messages.next),
        |cx, bytes| set_next(&of(cx.unix, cx.process).messages.next, bytes),
    ),
    setting(
        "sem_next_id",
        |cx| next(&of(cx.unix, cx.process).semaphores.next),
        |cx, bytes| set_next(&of(cx.unix, cx.process).semaphores.next, bytes),
    ),
    setting(
        "shm_next_id",
        |cx| next(&of(cx.unix, cx.process).segments.next),
        |cx, bytes| set_next(&of(cx.unix, cx.process).segments.next, bytes),
    ),
];

fn next(id: &Cell<Option<u32>>) -> Vec<u8> {
    match id.get() {
        Some(id) => line(id.into()),
        None => b"-1\n".to_vec(),
    }
}

fn set_next(id: &Cell<Option<u32>>, bytes: &[u8]) -> Result<(), Errno> {
    let text = core::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    let number: i32 = text.trim().parse().map_err(|_| Errno::EINVAL)?;
    id.set(u32::try_from(number).ok());
    Ok(())
}

/// Sets a limit, up to the one there is at the beginning.
fn set(limit: &Cell<u32>, bytes: &[u8], most: u32) -> Result<(), Errno> {
    let text = core::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    match text.trim().parse() {
        Ok(number) if number <= most => limit.set(number),
        _ => return Err(Errno::EINVAL),
    }
    Ok(())
}
