//! The key before a key that is for the console itself.

/// Control and `]`: no shell, editor or pager needs it, and it is not the emulator's (^A).
pub const PREFIX: u8 = 0x1D;

/// What a typed character is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Typed {
    /// For whoever reads.
    Character(u8),
    /// Half of a command.
    Half,
    /// The console itself is told by this key.
    Command(u8),
}

/// Whether the prefix has just been typed.
#[derive(Default)]
pub struct Prefix {
    typed: bool,
}

impl Prefix {
    /// It has not.
    #[must_use]
    pub const fn new() -> Self {
        Self { typed: false }
    }

    /// A character is typed. The prefix typed twice is the character.
    pub fn take(&mut self, byte: u8) -> Typed {
        match (core::mem::take(&mut self.typed), byte) {
            (false, PREFIX) => {
                self.typed = true;
                Typed::Half
            }
            (false, byte) | (true, byte @ PREFIX) => Typed::Character(byte),
            (true, byte) => Typed::Command(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_behind_the_prefix_is_a_command() {
        let mut prefix = Prefix::new();
        let typed = [b'a', PREFIX, b'm', b'a', PREFIX, PREFIX, PREFIX, b'\r', b'b'];
        let all = typed.map(|byte| prefix.take(byte));
        use Typed::{Character, Command, Half};
        assert_eq!(
            all,
            [
                Character(b'a'),
                Half,
                Command(b'm'),
                Character(b'a'),
                Half,
                Character(PREFIX),
                Half,
                Command(b'\r'),
                Character(b'b'),
            ]
        );
    }
}
