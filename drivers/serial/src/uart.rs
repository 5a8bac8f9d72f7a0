//! The 16550's registers (National Semiconductor PC16550D data sheet).

use console::Device;
use runtime::port::Ports;

const DATA: u16 = 0;
const INTERRUPT_ENABLE: u16 = 1;
const FIFO_CONTROL: u16 = 2;
const LINE_CONTROL: u16 = 3;
const MODEM_CONTROL: u16 = 4;
const LINE_STATUS: u16 = 5;

/// Interrupt enable: received data.
const RECEIVED: u8 = 1 << 0;
/// Interrupt enable: transmitter empty.
const TRANSMITTED: u8 = 1 << 1;
/// Line status: data ready.
const READY: u8 = 1 << 0;
/// Line status: transmitter holding register (and FIFO) empty.
const EMPTY: u8 = 1 << 5;
/// Characters that the transmit FIFO takes when it is empty.
const FIFO: usize = 16;

/// The device.
pub struct Uart {
    ports: Ports,
    enabled: u8,
}

impl Uart {
    /// 115200 baud, 8 bits, no parity, FIFOs on, interrupts for received data.
    pub fn new(ports: Ports) -> Self {
        ports.write8(INTERRUPT_ENABLE, 0);
        ports.write8(LINE_CONTROL, 0x80); // divisor latch
        ports.write8(DATA, 1);
        ports.write8(INTERRUPT_ENABLE, 0);
        ports.write8(LINE_CONTROL, 0x03);
        ports.write8(FIFO_CONTROL, 0x01);
        ports.write8(MODEM_CONTROL, 0x0B); // DTR, RTS, OUT2: the interrupt line
        ports.write8(INTERRUPT_ENABLE, RECEIVED);
        Self { ports, enabled: RECEIVED }
    }

    fn status(&self) -> u8 {
        self.ports.read8(LINE_STATUS)
    }
}

impl Device for Uart {
    fn receive(&mut self) -> Option<u8> {
        (self.status() & READY != 0).then(|| self.ports.read8(DATA))
    }

    fn fill(&mut self, mut next: impl FnMut() -> Option<u8>) -> bool {
        if self.status() & EMPTY != 0 {
            (0..FIFO).map_while(|_| next()).for_each(|byte| self.ports.write8(DATA, byte));
        }
        false
    }

    fn is_idle(&self) -> bool {
        self.status() & EMPTY != 0
    }

    fn wants_interrupt(&mut self, wants: bool) {
        let enabled = if wants { RECEIVED | TRANSMITTED } else { RECEIVED };
        if enabled != self.enabled {
            self.ports.write8(INTERRUPT_ENABLE, enabled);
            self.enabled = enabled;
        }
    }
}
