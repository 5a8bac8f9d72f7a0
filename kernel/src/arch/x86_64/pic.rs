//! The pair of 8259 interrupt controllers: lines 0..15 become vectors 32..47.
//!
//! Every line starts masked. The interrupt object masks a line when it delivers
//! the interrupt and unmasks it on acknowledgement, so the controllers get their
//! end-of-interrupt at once and never hold back other lines.

use super::cpu::{in_byte, out_byte};

/// Vector of line 0.
const FIRST_VECTOR: u8 = super::vectors::LEGACY;
/// The line of the first controller that the second one hangs on.
const CASCADE: u8 = 2;

#[derive(Clone, Copy)]
struct Controller {
    command: u16,
    data: u16,
}

const FIRST: Controller = Controller { command: 0x20, data: 0x21 };
const SECOND: Controller = Controller { command: 0xA0, data: 0xA1 };

/// Initialisation word 1: edge-triggered, cascaded, word 4 follows.
const ICW1: u8 = 0x11;
/// Initialisation word 4: 8086 mode, normal end of interrupt.
const ICW4: u8 = 0x01;
/// Operation word 2: non-specific end of interrupt.
const END: u8 = 0x20;
/// Operation word 3: the next read of the command port gives the in-service register.
const READ_IN_SERVICE: u8 = 0x0B;

impl Controller {
    fn command(self, value: u8) {
        // SAFETY: the kernel owns both controllers.
        unsafe { out_byte(self.command, value) };
    }

    fn write(self, value: u8) {
        // SAFETY: as above.
        unsafe { out_byte(self.data, value) };
    }

    fn masks(self) -> u8 {
        // SAFETY: reading the mask register has no effect.
        unsafe { in_byte(self.data) }
    }

    fn in_service(self) -> u8 {
        self.command(READ_IN_SERVICE);
        // SAFETY: the command selected the register; reading has no effect.
        unsafe { in_byte(self.command) }
    }

    fn init(self, first_vector: u8, cascade: u8) {
        self.command(ICW1);
        self.write(first_vector);
        self.write(cascade);
        self.write(ICW4);
    }
}

/// The controller of a line and the line's bit there.
const fn place(line: u8) -> (Controller, u8) {
    if line < 8 { (FIRST, 1 << line) } else { (SECOND, 1 << (line & 7)) }
}

/// Moves the lines to [`FIRST_VECTOR`] and masks all but the cascade.
pub fn init() {
    FIRST.init(FIRST_VECTOR, 1 << CASCADE);
    SECOND.init(FIRST_VECTOR + 8, CASCADE);
    FIRST.write(!(1 << CASCADE));
    SECOND.write(0xFF);
}

/// Masks all: the APICs have the lines.
pub fn close() {
    FIRST.write(0xFF);
}

/// Keeps `line` from interrupting.
pub fn mask(line: u8) {
    let (controller, bit) = place(line);
    controller.write(controller.masks() | bit);
}

/// Lets `line` interrupt.
pub fn unmask(line: u8) {
    let (controller, bit) = place(line);
    controller.write(controller.masks() & !bit);
}

/// Whether `line` is masked.
#[must_use]
pub fn is_masked(line: u8) -> bool {
    let (controller, bit) = place(line);
    controller.masks() & bit != 0
}

/// Accepts the interrupt of `line`: false if it is spurious (a line that went
/// away again shows as 7 or 15), and then there is nothing to handle. Sends what
/// end-of-interrupt is due in either case.
#[must_use]
pub fn accept(line: u8) -> bool {
    let (controller, bit) = place(line);
    let genuine = bit != 1 << 7 || controller.in_service() & bit != 0;
    if genuine {
        controller.command(END);
    }
    // A spurious 15 did pass through the first controller's cascade line.
    if line >= 8 {
        FIRST.command(END);
    }
    genuine
}
