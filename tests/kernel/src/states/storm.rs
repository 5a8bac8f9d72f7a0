//! Interrupts at the highest rate do not stop a thread of higher priority.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{ThreadId, Time};
use runtime::{Msg, clock, ipc, kernel, schedule};

use crate::protocols::interrupts;
use crate::report::{Outcome, because, case};
use crate::victim::{COUNT, Victim, at};
use crate::{check, machine, world};

/// The clock's line.
const LINE: u32 = 8;
/// 8192 interrupts a second, the most that the clock makes.
const RATE: u8 = 3;

static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Runs the tests.
pub fn run() {
    case("an_interrupt_storm_stops_nobody_above_its_handler", storm);
}

/// Takes interrupts, works for a while, acknowledges: never in time for the next.
extern "C" fn slow(_: u64) -> ! {
    let irq = ThreadId::irq(LINE);
    loop {
        if ipc::receive(irq, Time::micros(100_000)).is_ok() {
            TAKEN.fetch_add(1, Ordering::Relaxed);
            let begin = clock::now_us();
            while clock::now_us() - begin < 1_000 {}
            interrupts::calm();
            let _ = ipc::send(irq, &Msg::new(0));
        }
    }
}

/// What a thread of priority 200 counts to in 60 ms.
fn counted() -> Outcome<u64> {
    let victim = Victim::task()?;
    because(schedule::set_priority(victim.id(), 200), "setting a priority")?;
    machine::write(victim.data(), 0);
    victim.begin(COUNT, at(victim.data(), 0))?;
    ipc::sleep(60_000);
    let count = machine::read(victim.data());
    victim.delete()?;
    Ok(count)
}

fn storm() -> Outcome {
    let calm = counted()?;
    let handler = world::spawn(slow, 0)?;
    because(schedule::set_priority(handler, 50), "setting a priority")?;
    because(kernel::attach_irq(LINE, handler), "attaching the clock's line")?;
    TAKEN.store(0, Ordering::Relaxed);
    interrupts::start(RATE);
    ipc::sleep(20_000);
    let taken = TAKEN.load(Ordering::Relaxed);
    let stormy = counted();
    // While the higher thread runs the handler cannot; afterwards it can.
    ipc::sleep(20_000);
    let later = TAKEN.load(Ordering::Relaxed);
    interrupts::stop();
    because(kernel::detach_irq(LINE), "detaching the clock's line")?;
    world::delete(handler)?;
    let stormy = stormy?;
    check!(taken >= 5, "in 20 ms of storm the handler took {taken} interrupts");
    check!(later > taken, "after the higher thread had run no interrupt came");
    check!(
        stormy >= calm * 8 / 10,
        "beside the storm a thread counted to {stormy}, without it to {calm}"
    );
    Ok(())
}
