//! Starts at every byte of the stub page.

use abi::layout::STUBS;
use abi::protocol::exception as reg;
use abi::{Time, utcb};

use super::canary::Canary;
use crate::report::{Outcome, case};
use crate::rng::Rng;
use crate::victim::{Event, Victim, registers};
use crate::{check, machine, same};

/// Runs the tests.
pub fn run() {
    case("the_stub_page_entered_at_every_byte", every_byte);
}

fn every_byte() -> Outcome {
    let mut canary = Canary::start()?;
    let victim = Victim::task()?;
    let mut rng = Rng::new(0x57_0B);
    for offset in 0..4096 {
        for random in [false, true] {
            let mut regs = registers();
            if random {
                regs.iter_mut().for_each(|word| *word = rng.word() >> rng.below(64));
                regs[reg::RFLAGS] = 0;
                // No IPC with others than this thread.
                (regs[reg::RSI], regs[reg::RDX]) = (0, 0);
            } else {
                regs[reg::RDI] = victim.utcb;
            }
            // A `ret` leads back.
            for word in 0..4 {
                machine::write(victim.stack_top() + word * 8, victim.back_address());
            }
            (regs[reg::RIP], regs[reg::RSP]) = (STUBS + offset, victim.stack_top());
            victim.go(regs)?;
            match victim.event_within(Time::micros(2_000)) {
                Event::Exception(seen) => check!(
                    seen[reg::VECTOR] <= 19,
                    "offset {offset:#x} raised vector {}",
                    seen[reg::VECTOR]
                ),
                Event::PageFault(_) | Event::IoFault(..) | Event::Message | Event::Nothing => {}
            }
            check!(
                victim.recover(),
                "a thread started at offset {offset:#x} of the stubs was lost"
            );
        }
        if offset % 512 == 511 {
            canary.well()?;
        }
    }
    same!("the victim's id", victim.word(utcb::MY_GLOBAL_ID)?, victim.id().0);
    victim.delete()?;
    canary.end()
}
