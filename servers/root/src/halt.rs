//! The end of the machine: the console's driver first sends what it still has.

use abi::ThreadId;
use interfaces::voice::Client;
use proto::{Name, console as op};
use runtime::port::Ports;
use runtime::service::Thread;
use runtime::{clock, thread};

use crate::boot::EXIT_PORT;
use crate::{Root, output, say};

/// How long the driver may take, µs.
const PATIENCE_US: u64 = 2_000_000;

/// An end that has been asked for.
#[derive(Clone, Copy)]
pub struct Halt {
    code: u64,
    due_us: u64,
    /// Whether the driver has been told.
    told: bool,
}

impl Root {
    /// The machine is to end with `code`.
    pub fn halt(&mut self, code: u64) {
        say!("root: the machine is halted.");
        let due_us = clock::now_us() + PATIENCE_US;
        self.halt.get_or_insert(Halt { code, due_us, told: false });
    }

    /// The console's driver says that it has sent all.
    pub fn drained(&self, from: ThreadId) {
        if let Some(halt) = self.halt.filter(|_| self.is_console(from)) {
            stop(halt.code);
        }
    }

    /// Tells the driver, once it has all text; ends the machine if there is none, or if it
    /// takes too long.
    pub fn go_on_halting(&mut self) {
        let Some(mut halt) = self.halt else { return };
        let late = clock::now_us() >= halt.due_us;
        match self.service(Name::new(op::NAME)) {
            Some(driver) if !late => {
                if !halt.told && !self.has_text() {
                    halt.told = Client::new(Thread(driver)).drain().is_ok();
                }
            }
            _ => stop(halt.code),
        }
        self.halt = Some(halt);
    }
}

/// Ends the machine: by the emulator's exit device, or by doing nothing any more.
fn stop(code: u64) -> ! {
    output::flush();
    Ports::new(EXIT_PORT, 4).write32(0, code as u32);
    thread::park()
}
