//! How a thread has come to where it is: the calls on its stack.
//!
//! Programs keep no frame pointers, so the words of the stack are looked through: one
//! that leads behind a call instruction of the program's text is where a call returns
//! to. Now and then one is left over from a call that has ended.

use core::fmt;

/// Words of the stack that are looked at.
const WORDS: u64 = 1024;
/// Calls that are told.
const CALLS: usize = 16;

/// What can be read of a task that has failed.
pub trait Memory {
    /// The byte at `address`, if that is in the program's text.
    fn text(&self, address: u64) -> Option<u8>;
    /// What `address` is called in a report.
    fn as_linked(&self, address: u64) -> u64 {
        address
    }
    /// The word at `address`, a multiple of 8, if the task has memory there.
    fn word(&self, address: u64) -> Option<u64>;
}

/// The calls that a thread is in, the latest first, as `0x401234 < 0x405678`.
pub struct Trace<'a> {
    /// The task's memory.
    pub memory: &'a dyn Memory,
    /// The thread's stack pointer.
    pub sp: u64,
}

impl Trace<'_> {
    /// The addresses to which calls return, the latest first.
    pub fn returns(&self) -> impl Iterator<Item = u64> {
        let first = self.sp.checked_next_multiple_of(8);
        (0..WORDS)
            .map_while(move |index| self.memory.word(first?.checked_add(index * 8)?))
            .filter(|word| follows_call(self.memory, *word))
            .take(CALLS)
    }
}

impl fmt::Display for Trace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.returns().enumerate() {
            let sign = if index == 0 { "" } else { " < " };
            write!(f, "{sign}{:#x}", self.memory.as_linked(address))?;
        }
        Ok(())
    }
}

/// Whether a call instruction ends in front of `address` (Intel SDM 2A, CALL).
fn follows_call(memory: &dyn Memory, address: u64) -> bool {
    let back = |bytes: u64| memory.text(address.checked_sub(bytes)?);
    let Some(byte) = memory.text(address).and_then(|_| back(5)) else { return false };
    if byte == 0xE8 {
        let mut distance = [0; 4];
        for (at, byte) in distance.iter_mut().enumerate() {
            *byte = back(4 - at as u64).unwrap_or(0);
        }
        let target = address.wrapping_add_signed(i32::from_le_bytes(distance).into());
        if memory.text(target).is_some() {
            return true;
        }
    }
    // FF /2: through a register or memory; lengths by the ModR/M byte.
    (2..=7).any(|length| {
        back(length) == Some(0xFF) && back(length - 1).is_some_and(|modrm| fits(modrm, length))
    })
}

/// Whether a call through `modrm` has `length` bytes.
fn fits(modrm: u8, length: u64) -> bool {
    if modrm >> 3 & 7 != 2 {
        return false;
    }
    let (mode, register) = (modrm >> 6, modrm & 7);
    let displacement = match (mode, register) {
        (0, 5) | (2, _) => 4,
        (1, _) => 1,
        _ => 0,
    };
    let index = u64::from(mode != 3 && register == 4);
    // Index byte without base, and four bytes instead.
    let no_base = mode == 0 && index == 1 && length == 7;
    no_base || length == 2 + index + displacement
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::string::ToString;
    use std::vec::Vec;

    const TEXT: u64 = 0x40_0000;
    const STACK: u64 = 0x7000_0000;

    struct Task {
        text: Vec<u8>,
        stack: Vec<u64>,
    }

    impl Memory for Task {
        fn text(&self, address: u64) -> Option<u8> {
            self.text.get(usize::try_from(address.checked_sub(TEXT)?).ok()?).copied()
        }
        fn word(&self, address: u64) -> Option<u64> {
            self.stack.get(usize::try_from(address.checked_sub(STACK)? / 8).ok()?).copied()
        }
    }

    /// Text with one instruction at 0x20; the offset behind it.
    fn task(instruction: &[u8]) -> (Task, u64) {
        let mut text = std::vec![0x90; 0x100];
        text[0x20..0x20 + instruction.len()].copy_from_slice(instruction);
        (Task { text, stack: Vec::new() }, TEXT + 0x20 + instruction.len() as u64)
    }

    #[test]
    fn every_form_of_call_is_known() {
        for call in [
            &[0xE8, 0x10, 0, 0, 0][..],
            &[0xE8, 0xE0, 0xFF, 0xFF, 0xFF],
            &[0xFF, 0xD0],
            &[0x41, 0xFF, 0xD3],
            &[0xFF, 0x10],
            &[0xFF, 0x50, 0x18],
            &[0xFF, 0x54, 0x24, 0x08],
            &[0xFF, 0x14, 0xC8],
            &[0xFF, 0x94, 0xC8, 0, 1, 0, 0],
            &[0xFF, 0x14, 0x25, 0, 1, 0, 0],
            &[0xFF, 0x15, 0, 1, 0, 0],
            &[0xFF, 0x90, 0, 1, 0, 0],
        ] {
            let (task, behind) = task(call);
            assert!(follows_call(&task, behind), "{call:x?}");
            assert!(!follows_call(&task, behind + 8), "{call:x?}");
        }
        // A jump, a push, a call to nowhere, and calls cut short.
        for other in [
            &[0xE9, 0x10, 0, 0, 0][..],
            &[0xFF, 0xE0],
            &[0xFF, 0x75, 0x18],
            &[0xE8, 0, 0, 0, 0x10],
            &[0xFF, 0x54, 0x24],
        ] {
            let (task, behind) = task(other);
            assert!(!follows_call(&task, behind), "{other:x?}");
        }
    }

    #[test]
    fn the_stack_tells_the_calls() {
        let (mut task, behind) = task(&[0xE8, 0x10, 0, 0, 0]);
        task.stack = std::vec![behind, 5, STACK, behind - 1, TEXT, behind, !0];
        let trace = Trace { memory: &task, sp: STACK + 3 };
        assert_eq!(trace.to_string(), std::format!("{behind:#x}"));
        let trace = Trace { memory: &task, sp: STACK };
        assert_eq!(trace.to_string(), std::format!("{behind:#x} < {behind:#x}"));
        task.stack = std::vec![behind; 100];
        assert_eq!(Trace { memory: &task, sp: STACK }.returns().count(), CALLS);
        for sp in [0, 8, !0, !7] {
            assert_eq!(Trace { memory: &task, sp }.to_string(), "");
        }
    }
}
