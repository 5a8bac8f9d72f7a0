//! From bytes to keys: control characters, and what terminals send for keys that have no
//! character (`ESC [ A`, `ESC O H`, `ESC [ 3 ~`, ...).

/// What was pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// A character to be put into the line.
    Character(u8),
    /// The line is done.
    Return,
    /// One to the left.
    Left,
    /// One to the right.
    Right,
    /// To the beginning of the line.
    Home,
    /// To its end.
    End,
    /// The line before.
    Up,
    /// The line behind.
    Down,
    /// Erase to the left.
    Backspace,
    /// Erase under the cursor.
    Delete,
    /// Erase the word to the left.
    EraseWord,
    /// Erase all to the left.
    EraseLeft,
    /// Erase all to the right.
    EraseRight,
    /// Complete the word.
    Tab,
    /// Clear the screen.
    Clear,
    /// Forget the line.
    Cancel,
    /// A byte in the middle of something, or a key without a meaning here.
    Nothing,
    /// A character that cannot be in a line.
    Refused,
}

/// Where in a sequence of bytes we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Plain,
    /// Behind a carriage return: a line feed belongs to it.
    Return,
    /// Behind ESC.
    Escape,
    /// Behind `ESC [` or `ESC O`, with the number so far.
    Sequence(u8),
}

/// Reads keys.
#[derive(Default)]
pub struct Keys {
    state: State,
}

impl Keys {
    /// A terminal nobody has typed at.
    pub const fn new() -> Self {
        Self { state: State::Plain }
    }

    /// The key that `byte` completes.
    pub fn key(&mut self, byte: u8) -> Key {
        match core::mem::take(&mut self.state) {
            State::Escape if matches!(byte, b'[' | b'O') => {
                self.state = State::Sequence(0);
                Key::Nothing
            }
            State::Sequence(number) => self.sequence(number, byte),
            State::Return if byte == b'\n' => Key::Nothing,
            State::Plain | State::Return | State::Escape => self.plain(byte),
        }
    }

    fn sequence(&mut self, number: u8, byte: u8) -> Key {
        match (byte, number) {
            (b'0'..=b'9', _) => {
                let number = number.wrapping_mul(10).wrapping_add(byte - b'0');
                self.state = State::Sequence(number);
                Key::Nothing
            }
            // `ESC [ 1 ; 5 C`: with Control or another key held.
            (b';', _) => {
                self.state = State::Sequence(0);
                Key::Nothing
            }
            (b'A', _) => Key::Up,
            (b'B', _) => Key::Down,
            (b'C', _) => Key::Right,
            (b'D', _) => Key::Left,
            (b'H', _) | (b'~', 1 | 7) => Key::Home,
            (b'F', _) | (b'~', 4 | 8) => Key::End,
            (b'~', 3) => Key::Delete,
            _ => Key::Nothing,
        }
    }

    fn plain(&mut self, byte: u8) -> Key {
        match byte {
            b'\r' => {
                self.state = State::Return;
                Key::Return
            }
            b'\n' => Key::Return,
            0x1B => {
                self.state = State::Escape;
                Key::Nothing
            }
            0x01 => Key::Home,
            0x02 => Key::Left,
            0x03 => Key::Cancel,
            0x04 => Key::Delete,
            0x05 => Key::End,
            0x06 => Key::Right,
            0x08 | 0x7F => Key::Backspace,
            b'\t' => Key::Tab,
            0x0B => Key::EraseRight,
            0x0C => Key::Clear,
            0x0E => Key::Down,
            0x10 => Key::Up,
            0x15 => Key::EraseLeft,
            0x17 => Key::EraseWord,
            b' '..=0x7E => Key::Character(byte),
            _ => Key::Refused,
        }
    }
}
