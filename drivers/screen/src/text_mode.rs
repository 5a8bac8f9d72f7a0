//! A PC's text mode: 25 rows of 80 words at 0xB8000, character and colours, and a cursor (IBM VGA; the
//! cursor's place is in registers 14 and 15 of the CRT controller).

use runtime::port::Ports;
use runtime::root::{self, Refusal};
use runtime::window::Window;
use screen::Cell;

use crate::display::{COLUMNS, ROWS};

/// Where the words are, and where they are shown in this task.
const MEMORY: u64 = 0xB_8000;
const BYTES: u64 = 0x1000;
const WINDOW: u64 = 0x100_0000_0000;
/// The CRT controller: which register, and its value.
const CONTROLLER: u16 = 0x3D4;
const CURSOR_HIGH: u8 = 14;
const CURSOR_LOW: u8 = 15;
/// A place that is not on the screen.
const NOWHERE: usize = ROWS * COLUMNS;
/// What is shown instead of a character that the font has not.
const STRANGE: u8 = 0xFE;
/// Characters of the font beyond ASCII (code page 437).
const FONT: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
                    └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■";

/// The words and the cursor.
pub struct TextMode {
    window: Window,
    ports: Ports,
}

impl TextMode {
    /// That which the description names.
    pub fn open() -> Result<Self, Refusal> {
        let mut window = Window::claim(WINDOW, BYTES).ok_or(Refusal::Exhausted)?;
        root::memory(&mut window, Some(MEMORY))?;
        Ok(Self { window, ports: root::ports(CONTROLLER, 2)? })
    }

    /// Whether there is a controller, as on all that is compatible with a VGA: its registers keep
    /// what is written to them.
    pub fn is_there(&self) -> bool {
        [0x05, 0x0A].into_iter().all(|value| {
            self.ports.write8(0, CURSOR_HIGH);
            self.ports.write8(1, value);
            self.ports.read8(1) == value
        })
    }

    /// Shows a row.
    pub fn show(&mut self, row: usize, cells: &[Cell; COLUMNS]) {
        for (index, four) in cells.chunks_exact(4).enumerate() {
            let word = four.iter().rev().fold(0, |word, cell| word << 16 | u64::from(glyph(*cell)));
            self.window.write((row * COLUMNS * 2 + index * 8) as u64, word);
        }
    }

    /// Shows the cursor.
    pub fn point(&mut self, cursor: Option<(usize, usize)>) {
        let place = cursor.map_or(NOWHERE, |(row, column)| row * COLUMNS + column);
        for (register, value) in [(CURSOR_HIGH, place >> 8), (CURSOR_LOW, place)] {
            self.ports.write8(0, register);
            self.ports.write8(1, value as u8);
        }
    }
}

/// A cell as the display has it.
fn glyph(cell: Cell) -> u16 {
    let code = match cell.character {
        character @ ' '..='~' => character as u8,
        other => {
            FONT.chars().position(|known| known == other).map_or(STRANGE, |at| 0x80 + at as u8)
        }
    };
    u16::from(cell.colours.back << 4 | cell.colours.front) << 8 | u16::from(code)
}
