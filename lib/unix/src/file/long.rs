//! Reading and writing more than is done in one turn: all others wait while the server works for one.

use alloc::vec::Vec;

use super::transfer::{At, read_into, write_from};
use super::{Open, Sink, Source, UserRanges};
use crate::call::{Answer, Cx, Stop};

/// Bytes that are moved before others have their turn: a millisecond or two of work.
pub const TURN: usize = 4 << 20;

/// What this turn moves: the ranges behind what earlier turns have done, cut off.
fn of_turn(ranges: &[(u64, usize)], done: usize) -> Vec<(u64, usize)> {
    let (mut skip, mut room) = (done, TURN);
    let mut turn = Vec::new();
    for (address, len) in ranges {
        let skipped = skip.min(*len);
        skip -= skipped;
        let now = (*len - skipped).min(room);
        room -= now;
        if now > 0 {
            turn.push((address.wrapping_add(skipped as u64), now));
        }
    }
    turn
}

fn behind(at: At, done: u64) -> At {
    match at {
        At::Position => at,
        At::Offset(offset) => At::Offset(offset.wrapping_add(done)),
    }
}

fn len(ranges: &[(u64, usize)]) -> u64 {
    ranges.iter().map(|range| range.1 as u64).sum()
}

/// Reads into `ranges`, a turn's worth at a time.
pub(super) fn read_long(cx: &Cx, open: &Open, ranges: &[(u64, usize)], at: At) -> Answer {
    let done = cx.progress();
    let turn = of_turn(ranges, done as usize);
    let mut sink = Sink::User(UserRanges::new(cx.user(), &turn, 0));
    let count = match read_into(cx, open, &mut sink, behind(at, done)) {
        Err(Stop::Errno(_)) if done > 0 => return Ok(done),
        other => other?,
    };
    let now = done + count;
    let over = count < len(&turn) || now >= len(ranges);
    if over { Ok(now) } else { Err(cx.give_way(now)) }
}

/// Writes from `ranges`, a turn's worth at a time.
pub(super) fn write_long(cx: &Cx, open: &Open, ranges: &[(u64, usize)], at: At) -> Answer {
    let done = cx.progress();
    let turn = of_turn(ranges, done as usize);
    let mut source = Source::User(UserRanges::new(cx.user(), &turn, 0));
    let now = write_from(cx, open, &mut source, behind(at, done))?;
    let over = now - done < len(&turn) || now >= len(ranges);
    if over { Ok(now) } else { Err(cx.give_way(now)) }
}
