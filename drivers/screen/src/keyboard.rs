//! A PS/2 keyboard behind the PC's controller (Intel 8042). `pc-keyboard` knows what its codes mean, and
//! which characters are on the keys; which of its layouts it is, the task's arguments say.

use pc_keyboard::layouts::{
    AnyLayout, Azerty, Colemak, De105Key, Dvorak104Key, FiSe105Key, Jis109Key, No105Key, Uk105Key,
    Us104Key,
};
use pc_keyboard::{DecodedKey, HandleControl, KeyCode, PS2Keyboard, ScancodeSet1};
use runtime::port::Ports;
use runtime::root::{self, Refusal};

/// The controller's ports.
const DATA: u16 = 0x60;
const STATUS: u16 = 0x64;
/// Status: there is a byte; it takes none; the byte is the mouse's.
const FULL: u8 = 1 << 0;
const BUSY: u8 = 1 << 1;
const MOUSE: u8 = 1 << 5;
/// Commands: read and write the configuration.
const READ: u8 = 0x20;
const WRITE: u8 = 0x60;
/// Configuration: the keyboard interrupts, its clock is off, its codes become those of set 1.
const INTERRUPTS: u8 = 1 << 0;
const CLOCK_OFF: u8 = 1 << 4;
const TRANSLATED: u8 = 1 << 6;
/// How often the controller is looked at before it counts as absent.
const LOOKS: u32 = 10_000;
/// How an argument that names the layout begins.
const ARGUMENT: &str = "keys=";
/// The layouts' names, as a sentence has them.
pub const LAYOUTS: &str = "us, uk, de, fr, no, fi, se, jp, dvorak, colemak";

/// The keyboard.
pub struct Keyboard {
    data: Ports,
    status: Ports,
    keys: PS2Keyboard<AnyLayout, ScancodeSet1>,
    /// What is left of a key's bytes.
    rest: Rest,
}

/// Bytes of a key that nobody has had yet.
#[derive(Default)]
struct Rest {
    bytes: [u8; 4],
    first: usize,
    end: usize,
}

impl Rest {
    fn of(text: &[u8]) -> Self {
        let mut rest = Self { end: text.len(), ..Self::default() };
        rest.bytes[..text.len()].copy_from_slice(text);
        rest
    }

    fn take(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.first..self.end)?.first()?;
        self.first += 1;
        Some(byte)
    }
}

/// The layout that `arguments` name: American without one; `Err` with the name of one that is not known.
pub fn layout(arguments: &str) -> Result<AnyLayout, &str> {
    let mut named = arguments.split_whitespace().filter_map(|word| word.strip_prefix(ARGUMENT));
    Ok(match named.next_back().unwrap_or("us") {
        "us" => AnyLayout::Us104Key(Us104Key),
        "uk" => AnyLayout::Uk105Key(Uk105Key),
        "de" => AnyLayout::De105Key(De105Key),
        "fr" => AnyLayout::Azerty(Azerty),
        "no" => AnyLayout::No105Key(No105Key),
        "fi" | "se" => AnyLayout::FiSe105Key(FiSe105Key),
        "jp" => AnyLayout::Jis109Key(Jis109Key),
        "dvorak" => AnyLayout::Dvorak104Key(Dvorak104Key),
        "colemak" => AnyLayout::Colemak(Colemak),
        other => return Err(other),
    })
}

impl Keyboard {
    /// That which the description names, with what is written on its keys.
    pub fn open(layout: AnyLayout) -> Result<Self, Refusal> {
        let keys =
            PS2Keyboard::new(ScancodeSet1::new(), layout, HandleControl::MapLettersToUnicode);
        let (data, status) = (root::ports(DATA, 1)?, root::ports(STATUS, 1)?);
        let keyboard = Self { data, status, keys, rest: Rest::default() };
        // Firmware that has polled the keyboard may have left it without interrupts.
        let _is_there = keyboard.configure();
        Ok(keyboard)
    }

    /// The keyboard on, with interrupts, in the codes of set 1; `None` where no controller answers, as
    /// where firmware makes a USB keyboard look like one and knows no more than codes.
    fn configure(&self) -> Option<()> {
        for _ in 0..LOOKS {
            if self.status.read8(0) & FULL == 0 {
                break;
            }
            let _old = self.data.read8(0);
        }
        self.wait(BUSY, 0)?;
        self.status.write8(0, READ);
        self.wait(FULL, FULL)?;
        let now = self.data.read8(0);
        self.wait(BUSY, 0)?;
        self.status.write8(0, WRITE);
        self.wait(BUSY, 0)?;
        self.data.write8(0, (now | INTERRUPTS | TRANSLATED) & !CLOCK_OFF);
        self.wait(BUSY, 0)
    }

    /// Until the status has `bits` so.
    fn wait(&self, bits: u8, so: u8) -> Option<()> {
        (0..LOOKS).find(|_| self.status.read8(0) & bits == so).map(|_| ())
    }

    /// The next byte that was typed.
    pub fn receive(&mut self) -> Option<u8> {
        loop {
            if let Some(byte) = self.rest.take() {
                return Some(byte);
            }
            let status = self.status.read8(0);
            if status & FULL == 0 {
                return None;
            }
            let code = self.data.read8(0);
            if status & MOUSE == 0 {
                self.rest = self.key(code).unwrap_or_default();
            }
        }
    }

    /// What a code from the keyboard types: UTF-8, or a control character or sequence.
    fn key(&mut self, code: u8) -> Option<Rest> {
        let event = self.keys.add_byte(code).ok()??;
        let key = self.keys.process_keyevent(event)?;
        Some(match key {
            DecodedKey::Unicode('\n') => Rest::of(b"\r"),
            DecodedKey::Unicode('\x08') => Rest::of(b"\x7F"),
            // Control makes characters of letters only; of those between, here.
            DecodedKey::Unicode(character @ '@'..='_') if self.keys.get_modifiers().is_ctrl() => {
                Rest::of(&[character as u8 & 0x1F])
            }
            DecodedKey::Unicode(character) => {
                Rest::of(character.encode_utf8(&mut [0; 4]).as_bytes())
            }
            DecodedKey::RawKey(key) => Rest::of(sequence(key)),
        })
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
