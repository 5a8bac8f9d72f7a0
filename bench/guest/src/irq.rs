//! An interrupt, from the device to its handler at user level.
//!
//! The serial port raises its line as soon as the "transmitter empty" interrupt is
//! enabled: an interrupt exactly when the measured program wants one.

use abi::{ThreadId, Time, Timeouts};
use runtime::port::Ports;
use runtime::{Msg, direct, ipc, kernel, schedule};

use crate::Samples;
use crate::marks;
use crate::partner::{self, Result};

const LINE: u32 = 4;
const INTERRUPT_ENABLE: u16 = 1;
const INTERRUPT_ID: u16 = 2;
const MODEM_CONTROL: u16 = 4;
const TRANSMITTER_EMPTY: u8 = 2;
/// OUT2 connects the port to the interrupt controller.
const OUT2: u8 = 8;
const ROUNDS: u64 = 8;

/// Row `ops/interrupt`: from the instruction that raises the line to the handler's
/// first instruction, in another thread of the space. Row `ops/interrupt-acknowledge`:
/// the handler's message back to the line.
pub fn interrupts() -> Result<()> {
    let handler = partner::program_inside(handle, 0)?;
    schedule::set_priority(handler.id, 255).map_err(partner::why)?;
    kernel::attach_irq(LINE, handler.id)
        .map_err(|_| "the kernel does not attach the serial port's line")?;
    let port = Ports::new(direct::BASE, 8);
    port.write8(MODEM_CONTROL, port.read8(MODEM_CONTROL) | OUT2);
    ipc::call(handler.id, &Msg::default()).map_err(|_| "the interrupt handler does not answer")?;
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        marks::begin();
        port.write8(INTERRUPT_ENABLE, TRANSMITTER_EMPTY);
        // The handler runs before this instruction; it ends the sample.
        let _ = ipc::call(handler.id, &Msg::default());
    }
    port.write8(INTERRUPT_ENABLE, 0);
    samples.row(format_args!("ops/interrupt"), 2, 2);
    samples.row(format_args!("ops/interrupt-acknowledge"), 3, 2);
    let _ = kernel::detach_irq(LINE);
    handler.delete();
    Ok(())
}

extern "C" fn handle(_: u64) -> ! {
    let port = Ports::new(direct::BASE, 8);
    let line = ThreadId::irq(LINE);
    let _ = ipc::call(ThreadId::ROOT, &Msg::new(marks::READY));
    loop {
        // Tells the root task to go on, then waits for the interrupt.
        let waited = ipc::ipc(
            ThreadId::ROOT,
            line,
            Timeouts::new(Time::NEVER, Time::NEVER),
            &Msg::default(),
        );
        marks::end();
        marks::note(1);
        port.write8(INTERRUPT_ENABLE, 0);
        let _ = port.read8(INTERRUPT_ID);
        if waited.is_err() {
            continue;
        }
        // The acknowledgement alone, then on to the next round.
        let _ = marks::sample(|| ipc::ipc(line, ThreadId::NIL, Timeouts::NEVER, &Msg::default()));
        let _ = ipc::receive(ThreadId::ROOT, Time::NEVER);
    }
}
