//! A driver that makes its devices interrupt as often as they can: the real-time clock
//! 8,192 times a second, the serial port as soon as each interrupt was acknowledged.

use core::sync::atomic::Ordering::Relaxed;

use abi::{Fpage, MapItem, Rights, ThreadId, Time};
use runtime::port::Ports;
use runtime::{Msg, accept, ipc, kernel, utcb};

use super::hostile::{MADE, REFUSED};
use super::turns::Account;

/// Label of the request to the root task for both devices.
pub const LABEL: u64 = 0x51;
const CLOCK: (u16, u32) = (0x70, 1);
const SERIAL: (u16, u32) = (0x3F8, 3);
/// Lines of the clock and of the serial port.
pub const CLOCK_IRQ: u32 = 8;
pub const SERIAL_IRQ: u32 = 4;

/// What the root task answers: both devices' ports. Their interrupts go to `to`.
pub fn grant(to: ThreadId) -> Msg {
    for line in [CLOCK_IRQ, SERIAL_IRQ] {
        let _ = kernel::attach_irq(line, to);
    }
    [CLOCK, SERIAL].iter().fold(Msg::new(0), |msg, (base, bits)| {
        msg.map(MapItem::map(Fpage::io(*base, *bits).with_rights(Rights::RWX), u64::from(*base)))
    })
}

/// The end of it: the devices are quiet again.
pub fn silence() {
    for line in [CLOCK_IRQ, SERIAL_IRQ] {
        let _ = kernel::detach_irq(line);
    }
    let clock = Ports::new(CLOCK.0, 2);
    write(&clock, 0x0B, read(&clock, 0x0B) & !(1 << 6));
    Ports::new(SERIAL.0, 8).write8(1, 0);
}

fn read(ports: &Ports, register: u8) -> u8 {
    ports.write8(0, register);
    ports.read8(1)
}

fn write(ports: &Ports, register: u8, value: u8) {
    ports.write8(0, register);
    ports.write8(1, value);
}

/// The driver.
pub extern "C" fn storm(_: u64) -> ! {
    utcb::set_exception_handler(ThreadId::ROOT);
    let granted = accept::ports(|| ipc::call(ThreadId::ROOT, &Msg::new(LABEL)));
    if granted.is_err() {
        REFUSED.fetch_add(1, Relaxed);
    }
    let (clock, serial) = (Ports::new(CLOCK.0, 2), Ports::new(SERIAL.0, 8));
    // Rate code 3: 8,192 a second; register B, bit 6: periodic interrupts.
    write(&clock, 0x0A, read(&clock, 0x0A) & 0xF0 | 3);
    write(&clock, 0x0B, read(&clock, 0x0B) | 1 << 6);
    let _ = read(&clock, 0x0C);
    // OUT2 lets the port's interrupts through.
    serial.write8(4, 0x0B);
    let mut account = Account::open();
    loop {
        account.settle();
        // The transmitter is empty: to allow its interrupt is to have it.
        serial.write8(1, 0);
        serial.write8(1, 2);
        let Ok((from, _)) = ipc::wait(Time::micros(5_000)) else { continue };
        MADE.fetch_add(1, Relaxed);
        if from == ThreadId::irq(CLOCK_IRQ) {
            let _ = read(&clock, 0x0C);
        }
        let _ = ipc::reply(from, &Msg::default());
    }
}
