//! A terminal's settings, as programs set them.

use linux_raw_sys::general::{
    B38400, CREAD, CS8, ECHO, ECHOCTL, ECHOE, ECHOK, ECHOKE, ICANON, ICRNL, IEXTEN, ISIG, IXON,
    ONLCR, OPOST, TABDLY, XTABS,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct termios2` of the kernel; its first 36 bytes are `struct termios`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Termios {
    pub input: u32,
    pub output: u32,
    pub control: u32,
    pub local: u32,
    pub line: u8,
    pub characters: [u8; 19],
    pub input_speed: u32,
    pub output_speed: u32,
}

/// `struct termios` of the kernel, without speeds.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct OldTermios {
    pub input: u32,
    pub output: u32,
    pub control: u32,
    pub local: u32,
    pub line: u8,
    pub characters: [u8; 19],
}

/// `struct termio`, of times before POSIX: half of each word.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Termio {
    pub input: u16,
    pub output: u16,
    pub control: u16,
    pub local: u16,
    pub line: u8,
    pub characters: [u8; 8],
    pub pad: u8,
}

/// `struct winsize`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct WindowSize {
    pub rows: u16,
    pub columns: u16,
    pub width_pixels: u16,
    pub height_pixels: u16,
}

impl Default for Termios {
    fn default() -> Self {
        Self {
            input: ICRNL | IXON,
            output: OPOST | ONLCR,
            control: B38400 | CS8 | CREAD,
            local: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
            line: 0,
            // ^C ^\ DEL ^U ^D, VTIME 0, VMIN 1, no switch, ^Q ^S ^Z, no EOL, ^R ^O ^W ^V.
            characters: [3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0],
            input_speed: 38_400,
            output_speed: 38_400,
        }
    }
}

impl Termios {
    /// No bit set.
    pub const NOTHING: Self = Self {
        input: 0,
        output: 0,
        control: 0,
        local: 0,
        line: 0,
        characters: [0; 19],
        input_speed: 0,
        output_speed: 0,
    };

    /// These settings with those bits, and characters, of `old` that `locked` has.
    #[must_use]
    pub fn keeping(mut self, old: &Self, locked: &Self) -> Self {
        let keep = |new: &mut u32, old: u32, locked: u32| *new = *new & !locked | old & locked;
        keep(&mut self.input, old.input, locked.input);
        keep(&mut self.output, old.output, locked.output);
        keep(&mut self.control, old.control, locked.control);
        keep(&mut self.local, old.local, locked.local);
        let old = core::iter::once(old.line).chain(old.characters);
        let locked = core::iter::once(locked.line).chain(locked.characters);
        let new = core::iter::once(&mut self.line).chain(&mut self.characters);
        for ((new, old), locked) in new.zip(old).zip(locked) {
            if locked != 0 {
                *new = old;
            }
        }
        self
    }

    /// Whether an input flag is set.
    #[must_use]
    pub fn i(&self, flag: u32) -> bool {
        self.input & flag != 0
    }

    /// Whether an output flag is set.
    #[must_use]
    pub fn o(&self, flag: u32) -> bool {
        self.output & flag != 0
    }

    /// Whether a local flag is set.
    #[must_use]
    pub fn l(&self, flag: u32) -> bool {
        self.local & flag != 0
    }

    /// Whether `byte` is the control character at `index` (`VINTR`, ...); 0 disables one.
    #[must_use]
    pub fn is(&self, index: u32, byte: u8) -> bool {
        byte != 0 && self.character(index) == byte
    }

    /// The control character or number at `index`.
    #[must_use]
    pub fn character(&self, index: u32) -> u8 {
        self.characters.get(index as usize).copied().unwrap_or(0)
    }

    /// Whether tabs are written as spaces.
    #[must_use]
    pub fn expands_tabs(&self) -> bool {
        self.output & TABDLY == XTABS
    }

    /// What a [`Termio`] holds of the settings.
    #[must_use]
    pub fn ancient(&self) -> Termio {
        let mut characters = [0; 8];
        characters.copy_from_slice(&self.characters[..8]);
        Termio {
            input: self.input as u16,
            output: self.output as u16,
            control: self.control as u16,
            local: self.local as u16,
            line: self.line,
            characters,
            pad: 0,
        }
    }

    /// The settings with those that a [`Termio`] holds.
    #[must_use]
    pub fn with_ancient(&self, new: &Termio) -> Self {
        let half = |old: u32, new: u16| old & 0xffff_0000 | u32::from(new);
        let mut all = Self {
            input: half(self.input, new.input),
            output: half(self.output, new.output),
            control: half(self.control, new.control),
            local: half(self.local, new.local),
            line: new.line,
            ..*self
        };
        all.characters[..8].copy_from_slice(&new.characters);
        all
    }

    /// The settings without the speeds.
    #[must_use]
    pub fn old(&self) -> OldTermios {
        OldTermios {
            input: self.input,
            output: self.output,
            control: self.control,
            local: self.local,
            line: self.line,
            characters: self.characters,
        }
    }

    /// These settings with the speeds that they had.
    #[must_use]
    pub fn with(self, new: &OldTermios) -> Self {
        Self {
            input: new.input,
            output: new.output,
            control: new.control,
            local: new.local,
            line: new.line,
            characters: new.characters,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_linuxs() {
        use core::mem::{offset_of, size_of};
        use linux_raw_sys::general as linux;
        assert_eq!(size_of::<Termios>(), size_of::<linux::termios2>());
        assert_eq!(size_of::<OldTermios>(), size_of::<linux::termios>());
        assert_eq!(offset_of!(Termios, characters), offset_of!(linux::termios2, c_cc));
        assert_eq!(offset_of!(Termios, input_speed), offset_of!(linux::termios2, c_ispeed));
        assert_eq!(size_of::<WindowSize>(), size_of::<linux::winsize>());
        assert_eq!(size_of::<Termio>(), size_of::<linux::termio>());
    }
}
