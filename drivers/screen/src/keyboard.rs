//! A PS/2 keyboard behind the PC's controller (Intel 8042), with the keys of an American one; `pc-keyboard`
//! knows what its codes mean.

use pc_keyboard::layouts::Us104Key;
use pc_keyboard::{DecodedKey, HandleControl, KeyCode, PS2Keyboard, ScancodeSet1};
use runtime::port::Ports;
use runtime::root::{self, Refusal};

/// The controller's ports.
const DATA: u16 = 0x60;
const STATUS: u16 = 0x64;
/// Status: there is a byte, and it is the mouse's.
const FULL: u8 = 1 << 0;
const MOUSE: u8 = 1 << 5;

/// The keyboard.
pub struct Keyboard {
    data: Ports,
    status: Ports,
    keys: PS2Keyboard<Us104Key, ScancodeSet1>,
    /// What is left of a key's bytes.
    rest: &'static [u8],
}

impl Keyboard {
    /// That which the description names.
    pub fn open() -> Result<Self, Refusal> {
        let keys =
            PS2Keyboard::new(ScancodeSet1::new(), Us104Key, HandleControl::MapLettersToUnicode);
        Ok(Self { data: root::ports(DATA, 1)?, status: root::ports(STATUS, 1)?, keys, rest: &[] })
    }

    /// The next byte that was typed.
    pub fn receive(&mut self) -> Option<u8> {
        loop {
            if let Some((first, rest)) = self.rest.split_first() {
                self.rest = rest;
                return Some(*first);
            }
            let status = self.status.read8(0);
            if status & FULL == 0 {
                return None;
            }
            let code = self.data.read8(0);
            if status & MOUSE == 0
                && let Some(byte) = self.key(code)
            {
                return Some(byte);
            }
        }
    }

    /// What a code from the keyboard types; what is more than a byte is left in `rest`.
    fn key(&mut self, code: u8) -> Option<u8> {
        let event = self.keys.add_byte(code).ok()??;
        let key = self.keys.process_keyevent(event)?;
        match key {
            DecodedKey::Unicode('\n') => Some(b'\r'),
            DecodedKey::Unicode('\x08') => Some(0x7F),
            // The keyboard's names for them, not characters: only letters are given with Control.
            DecodedKey::Unicode(character) if self.keys.get_modifiers().is_ctrl() => {
                Some(if matches!(character, '@'..='_') {
                    character as u8 & 0x1F
                } else {
                    character as u8
                })
            }
            DecodedKey::Unicode(character) => u8::try_from(character).ok(),
            DecodedKey::RawKey(key) => {
                self.rest = sequence(key);
                None
            }
        }
    }
}

/// What a key that is no character sends, as a Linux console's does.
fn sequence(key: KeyCode) -> &'static [u8] {
    match key {
        KeyCode::ArrowUp => b"\x1B[A",
        KeyCode::ArrowDown => b"\x1B[B",
        KeyCode::ArrowRight => b"\x1B[C",
        KeyCode::ArrowLeft => b"\x1B[D",
        KeyCode::Home => b"\x1B[1~",
        KeyCode::Insert => b"\x1B[2~",
        KeyCode::Delete => b"\x1B[3~",
        KeyCode::End => b"\x1B[4~",
        KeyCode::PageUp => b"\x1B[5~",
        KeyCode::PageDown => b"\x1B[6~",
        _ => b"",
    }
}
