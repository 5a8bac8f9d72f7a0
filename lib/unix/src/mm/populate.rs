//! Pages that come before they are touched (`MAP_POPULATE`, `MADV_POPULATE_*`, `mlock`): so many at a time that others
//! have their turn.

use super::area::Area;
use super::{AddressSpace, PAGE};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::machine::Access;
use crate::unix::Unix;

/// Pages that come in one turn: a millisecond or two of work.
const TURN: u64 = 1024;
/// A mapping's progress is the number of its first page and, in this many bits, how many of its pages have come.
const COUNT_BITS: u32 = 29;

impl AddressSpace {
    /// Has the pages of a range come, a turn's worth of them; where to go on, if there is more. `write` says whether
    /// those of an area come to be written, or not at all, and `failed`, whether that one of them cannot come is an
    /// error; if it is not, the rest of its area does not come.
    ///
    /// # Errors
    /// What `write` and `failed` say.
    pub(super) fn populate(
        &self,
        unix: &Unix,
        (start, end): (u64, u64),
        write: impl Fn(&Area) -> Result<Option<bool>, Errno>,
        failed: impl Fn(Errno) -> Result<(), Errno>,
    ) -> Result<Option<u64>, Errno> {
        let (mut at, mut left) = (start, TURN);
        while let Some(area) = self.area_from(at).filter(|area| area.start < end) {
            at = at.max(area.start);
            if let Some(write) = write(&area)? {
                while at < area.end.min(end) {
                    if left == 0 {
                        return Ok(Some(at));
                    }
                    left -= 1;
                    if let Err(errno) = self.frame_for(unix, at, write) {
                        failed(errno)?;
                        break;
                    }
                    at += PAGE;
                }
            }
            at = area.end;
        }
        Ok(None)
    }

    /// As many pages of a range as one turn has time for, to be used as `access` says; the others come when they are touched.
    pub(super) fn populate_some(&self, unix: &Unix, start: u64, end: u64, access: Access) {
        let write = access.contains(Access::WRITE);
        let _ = self.populate(unix, (start, end), |_| Ok(Some(write)), |_| Ok(()));
    }
}

/// The pages of a new mapping from `start` to `end` come, those from `at` on in this turn; then its address is told.
pub(super) fn mapped(cx: &Cx, (start, end): (u64, u64), at: u64) -> Answer {
    let write = |area: &Area| Ok(Some(area.access.contains(Access::WRITE)));
    let space = cx.process.space();
    match space.populate(cx.unix, (at, end), write, |_| Ok(()))? {
        Some(at) => Err(cx.give_way(start / PAGE << COUNT_BITS | (at - start) / PAGE)),
        None => Ok(start),
    }
}

/// A mapping of `len` bytes, of which earlier turns have made so much progress, goes on.
pub(super) fn go_on(cx: &Cx, progress: u64, len: u64) -> Answer {
    let start = (progress >> COUNT_BITS) * PAGE;
    let done = progress & ((1 << COUNT_BITS) - 1);
    mapped(cx, (start, start.saturating_add(len)), start + done * PAGE)
}
