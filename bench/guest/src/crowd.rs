//! A device's handler, the most urgent thread of all, on the first processor, while many others call the kernel all the
//! time from the other processors: what it waits for.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use abi::{ThreadId, Time, Timeouts};
use runtime::port::Ports;
use runtime::{Msg, ipc, kernel, schedule, sigma0};

use crate::marks::{self, READY};
use crate::partner::{self, Result, STACK_WORDS_OF_A_LINK, link_inside, program_inside, why};
use crate::smp::{MOST, move_to};

/// The real-time clock, which interrupts 8,192 times a second: its ports, line, and registers.
const CLOCK: (u16, u32) = (0x70, 1);
const LINE: u32 = 8;
const RATE: u8 = 0x0A;
const FASTEST: u8 = 3;
const CONTROL: u8 = 0x0B;
const PERIODIC: u8 = 1 << 6;
const CAUSE: u8 = 0x0C;
/// Interrupts of each phase.
const INTERRUPTS: u32 = 400;
/// Threads on each other processor.
const EACH: usize = 8;
/// Their priority: below everybody else's.
const LOW: u8 = 100;

static STACKS: [[AtomicU64; STACK_WORDS_OF_A_LINK]; EACH * (MOST - 1)] =
    [const { [const { AtomicU64::new(0) }; STACK_WORDS_OF_A_LINK] }; EACH * (MOST - 1)];
/// The handler has had all interrupts of the phase.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Without a crowd: phase 7. With it: phase 8.
pub fn run(processors: u32) -> Result<()> {
    if !sigma0::ports(CLOCK.0, CLOCK.1) {
        return Err("sigma0 does not give the ports of the clock");
    }
    let handler = program_inside(handle, 0)?;
    schedule::set_priority(handler.id, 255).map_err(why)?;
    kernel::attach_irq(LINE, handler.id).map_err(|_| "the kernel does not attach the clock")?;
    interrupt(handler.id)?;
    for (index, stack) in STACKS.iter().take(EACH * (processors as usize - 1)).enumerate() {
        let one = link_inside(stack, call, 0)?;
        schedule::set_priority(one.id, LOW).map_err(why)?;
        move_to(&one, 1 + index as u32 % (processors - 1))?;
    }
    interrupt(handler.id)?;
    let _ = kernel::detach_irq(LINE);
    handler.delete();
    Ok(())
}

/// A phase: the clock interrupts while this computes.
fn interrupt(handler: ThreadId) -> Result<()> {
    IS_OVER.store(false, Relaxed);
    marks::phase();
    let clock = Ports::new(CLOCK.0, 2);
    write(&clock, RATE, read(&clock, RATE) & 0xF0 | FASTEST);
    write(&clock, CONTROL, read(&clock, CONTROL) | PERIODIC);
    let _ = read(&clock, CAUSE);
    ipc::call(handler, &Msg::default()).map_err(|_| "the clock's handler does not answer")?;
    // Less urgent than the crowd, or nobody of it would have a turn here.
    schedule::set_priority(ThreadId::ROOT, LOW - 1).map_err(why)?;
    while !IS_OVER.load(Relaxed) {
        // The emulator gives others their turn.
        spin_loop();
    }
    schedule::set_priority(ThreadId::ROOT, partner::PRIORITY).map_err(why)?;
    write(&clock, CONTROL, read(&clock, CONTROL) & !PERIODIC);
    Ok(())
}

fn read(ports: &Ports, register: u8) -> u8 {
    ports.write8(0, register);
    ports.read8(1)
}

fn write(ports: &Ports, register: u8, value: u8) {
    ports.write8(0, register);
    ports.write8(1, value);
}

extern "C" fn handle(_: u64) -> ! {
    let clock = Ports::new(CLOCK.0, 2);
    let line = ThreadId::irq(LINE);
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    loop {
        let _ = ipc::receive(ThreadId::ROOT, Time::NEVER);
        let _ = ipc::reply(ThreadId::ROOT, &Msg::default());
        let _ = ipc::receive(line, Time::NEVER);
        marks::handler();
        for _ in 1..INTERRUPTS {
            let _ = read(&clock, CAUSE);
            let _ = ipc::ipc(line, line, Timeouts::NEVER, &Msg::default());
            marks::handler();
        }
        let _ = read(&clock, CAUSE);
        IS_OVER.store(true, Relaxed);
        let _ = ipc::ipc(line, ThreadId::NIL, Timeouts::NEVER, &Msg::default());
    }
}

/// Calls the kernel for ever.
extern "C" fn call(_: u64) -> ! {
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    loop {
        schedule::yield_now();
    }
}
