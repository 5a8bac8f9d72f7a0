//! `FUTEX_WAKE_OP`: changes one word, and wakes who waits at another, or at both.

use linux_raw_sys::general as linux;

use super::futex::ANY;
use super::futex_held::check_not_held;
use crate::call::{Answer, Cx};
use crate::errno::Errno;

/// The low 12 bits of `value` as a signed number.
fn signed_12(value: u32) -> i32 {
    (value << 20) as i32 >> 20
}

/// What `FUTEX_WAKE_OP` makes of the word; `None`: no such operation.
fn operate(encoded: u32, old: u32) -> Option<u32> {
    let mut operand = signed_12(encoded >> 12) as u32;
    if encoded & linux::FUTEX_OP_OPARG_SHIFT << 28 != 0 {
        operand = 1 << (operand & 31);
    }
    Some(match encoded >> 28 & 7 {
        linux::FUTEX_OP_SET => operand,
        linux::FUTEX_OP_ADD => old.wrapping_add(operand),
        linux::FUTEX_OP_OR => old | operand,
        linux::FUTEX_OP_ANDN => old & !operand,
        linux::FUTEX_OP_XOR => old ^ operand,
        _ => return None,
    })
}

/// Whether the old value compares as `FUTEX_WAKE_OP` asks; `None`: no such comparison.
fn compares(encoded: u32, old: u32) -> Option<bool> {
    let (old, operand) = (old as i32, signed_12(encoded));
    Some(match encoded >> 24 & 15 {
        linux::FUTEX_OP_CMP_EQ => old == operand,
        linux::FUTEX_OP_CMP_NE => old != operand,
        linux::FUTEX_OP_CMP_LT => old < operand,
        linux::FUTEX_OP_CMP_GE => old >= operand,
        linux::FUTEX_OP_CMP_LE => old <= operand,
        linux::FUTEX_OP_CMP_GT => old > operand,
        _ => return None,
    })
}

/// `FUTEX_WAKE_OP`.
pub(super) fn wake_op(cx: &Cx, private: bool) -> Answer {
    let space = cx.process.space();
    let (first, second, encoded) = (cx.arg(0), cx.arg(4), cx.uint(5));
    let first = space.futex_key(cx.unix, first, private)?;
    let second_key = space.futex_key(cx.unix, second, private)?;
    let memory = &cx.unix.memory;
    operate(encoded, 0).ok_or(Errno::ENOSYS)?;
    check_not_held(cx.unix, first)?;
    let (frame, offset) = space.word(cx.unix, second, true)?;
    let old = loop {
        let old = memory.load_u32(frame, offset);
        let new = operate(encoded, old).ok_or(Errno::ENOSYS)?;
        if memory.compare_exchange_u32(frame, offset, old, new) {
            break old;
        }
    };
    let also = compares(encoded, old).ok_or(Errno::ENOSYS)?;
    let futexes = &cx.unix.mm.futexes;
    let mut woken = futexes.wake(first, cx.int(2).max(1) as usize, ANY);
    if also {
        check_not_held(cx.unix, second_key)?;
        woken += futexes.wake(second_key, cx.int(3).max(1) as usize, ANY);
    }
    Ok(woken as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_op_computes_as_linux() {
        let set_5 = linux::FUTEX_OP_SET << 28 | 5 << 12;
        assert_eq!(operate(set_5, 9), Some(5));
        let add_minus_1 = linux::FUTEX_OP_ADD << 28 | 0xfff << 12;
        assert_eq!(operate(add_minus_1, 9), Some(8));
        let or_bit = (linux::FUTEX_OP_OR | linux::FUTEX_OP_OPARG_SHIFT) << 28 | 4 << 12;
        assert_eq!(operate(or_bit, 1), Some(17));
        assert_eq!(operate(7 << 28, 1), None);
        assert_eq!(compares(linux::FUTEX_OP_CMP_LT << 24 | 0xfff, -2_i32 as u32), Some(true));
        assert_eq!(compares(linux::FUTEX_OP_CMP_GT << 24, 0), Some(false));
        assert_eq!(compares(6 << 24, 0), None);
    }
}
