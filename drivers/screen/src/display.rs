//! What the screen is: the boot loader's framebuffer where there is one, else a PC's text mode.

use runtime::root::Refusal;
use screen::Cell;

use crate::pixels::{NoPicture, Pixels};
use crate::text_mode::TextMode;

pub const ROWS: usize = 25;
pub const COLUMNS: usize = 80;

/// The display.
#[expect(clippy::large_enum_variant, reason = "there is one, and no heap")]
pub enum Display {
    Pixels(Pixels),
    Text(TextMode),
}

/// Why there is none.
pub enum NoDisplay {
    /// The description does not name it, or another task has it.
    Refused(Refusal),
    /// There is nothing that could be used.
    Nothing,
    /// The framebuffer is too small.
    Small(u32, u32),
}

impl Display {
    /// That which the description names and the machine has.
    pub fn open() -> Result<Self, NoDisplay> {
        let picture = match Pixels::open() {
            Ok(pixels) => return Ok(Self::Pixels(pixels)),
            Err(picture) => picture,
        };
        match (picture, TextMode::open()) {
            // In graphics mode nobody sees text.
            (NoPicture::Small(width, height), _) => Err(NoDisplay::Small(width, height)),
            (_, Ok(text)) if text.is_there() => Ok(Self::Text(text)),
            (_, Ok(_)) => Err(NoDisplay::Nothing),
            (NoPicture::Refused(Refusal::Unknown), Err(Refusal::NotAllowed)) => {
                Err(NoDisplay::Nothing)
            }
            (_, Err(why)) => Err(NoDisplay::Refused(why)),
        }
    }

    /// Shows a row.
    pub fn show(&mut self, row: usize, cells: &[Cell; COLUMNS]) {
        match self {
            Self::Pixels(pixels) => pixels.show(row, cells),
            Self::Text(text) => text.show(row, cells),
        }
    }

    /// Shows the cursor.
    pub fn point(&mut self, cursor: Option<(usize, usize)>) {
        match self {
            Self::Pixels(pixels) => pixels.point(cursor),
            Self::Text(text) => text.point(cursor),
        }
    }
}

impl core::fmt::Display for NoDisplay {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Refused(why) => {
                write!(f, "asked for the display in vain: {why}; its description must name it")
            }
            Self::Nothing => f.write_str(
                "found neither a framebuffer of the boot loader's nor text mode; start a system \
                 whose console is the serial port",
            ),
            Self::Small(width, height) => write!(
                f,
                "needs 480 by 300 pixels, and the boot loader has set up {width} by {height}; \
                 choose another mode there"
            ),
        }
    }
}
