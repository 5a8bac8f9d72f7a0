//! The console on a PC's screen and keyboard: the boot loader's framebuffer, or text mode as the firmware leaves
//! it, and a PS/2 keyboard
//! (USB keyboards look like one while the firmware serves them). What a console is besides its device is in
//! `lib/console`, what bytes make of the screen in `lib/screen`.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod display;
mod keyboard;
mod pixels;
mod text_mode;

use console::Device;
use display::{COLUMNS, Display, ROWS};
use keyboard::{Keyboard, LAYOUTS};
use runtime::{entry, root};
use screen::Screen;

entry!(main);

/// Interrupt line of the keyboard.
const IRQ: u32 = 1;

/// Screen and keyboard, as a device of the console's.
struct Seat {
    screen: Screen<ROWS, COLUMNS>,
    display: Display,
    keyboard: Keyboard,
}

impl Device for Seat {
    fn receive(&mut self) -> Option<u8> {
        self.screen.answer().or_else(|| self.keyboard.receive())
    }

    fn fill(&mut self, next: impl FnMut() -> Option<u8>) -> bool {
        let mut any = false;
        for byte in core::iter::from_fn(next) {
            self.screen.write(&[byte]);
            any = true;
        }
        if any {
            let display = &mut self.display;
            self.screen.changed(|row, cells| display.show(row, cells));
            self.display.point(self.screen.cursor());
        }
        true
    }

    fn is_idle(&self) -> bool {
        true
    }

    fn wants_interrupt(&mut self, _wants: bool) {}
}

fn main() {
    let in_vain = |what: &str, why| -> ! {
        panic!("the screen's driver asked for {what} in vain: {why}; its description must name it")
    };
    let display = Display::open().unwrap_or_else(|why| panic!("the screen's driver {why}"));
    let mut text = [0; proto::console::WORD_BYTES];
    let layout = keyboard::layout(root::arguments(&mut text)).unwrap_or_else(|name| {
        panic!("the screen's driver knows no keys called `{name}`; it knows {LAYOUTS}")
    });
    let keyboard = Keyboard::open(layout).unwrap_or_else(|why| in_vain("the keyboard", why));
    let irq = root::attach_irq(IRQ).unwrap_or_else(|why| in_vain("interrupt 1", why));
    console::serve(Seat { screen: Screen::new(), display, keyboard }, &[irq])
}
