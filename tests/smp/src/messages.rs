//! A device's message that names another processor than the first: its driver chooses whom.

use abi::id::MESSAGE_BASE;
use abi::{ThreadId, Time};
use root_harness::{Verdict, edu, verdict};
use runtime::{Msg, ipc, kernel, kip};

use crate::cast::{Actor, Part};
use crate::{busy, processors};

const LINE: u32 = MESSAGE_BASE;
/// Where the number of an APIC is in a message's address.
const APIC: u32 = 12;
/// Messages to each processor.
const MESSAGES: u32 = 20;

/// They arrive, whether somebody is on that processor or it idles, and who is there goes on.
pub fn anywhere() -> Verdict {
    let message = kip::get().message(LINE).ok_or("the interface page names no message")?;
    kernel::attach_irq(LINE, ThreadId::ROOT).map_err(|_| "the line cannot be attached")?;
    let mut all = Ok(());
    for number in 0..processors() {
        // The emulator numbers its APICs as the kernel does its processors.
        let address = message.address & !(0xFF << APIC) | u64::from(number) << APIC;
        edu::signal_by(abi::kip::LineMessage { address, ..message })?;
        all = all.and(idle()).and(beside(Actor::start(0, Part::Count, number)));
    }
    kernel::detach_irq(LINE).map_err(|_| "the line cannot be detached")?;
    all
}

/// A message comes, once.
fn arrives() -> Verdict {
    let irq = ThreadId::irq(LINE);
    edu::raise();
    ipc::receive(irq, Time::micros(100_000)).map_err(|_| "the message is lost")?;
    ipc::send(irq, &Msg::new(0)).map_err(|_| "it cannot be acknowledged")
}

fn idle() -> Verdict {
    (0..MESSAGES).try_for_each(|_| arrives())
}

fn beside(actor: Actor) -> Verdict {
    let result = (0..MESSAGES).try_for_each(|_| {
        arrives()?;
        busy();
        Ok(())
    });
    let before = actor.count();
    let goes_on = (0..100).any(|_| {
        ipc::sleep(2_000);
        actor.count() > before
    });
    actor.stop();
    result.and(verdict(goes_on, "who is there does not go on"))
}
