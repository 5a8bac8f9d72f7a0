//! An attacker: one attack a life.

use abi::{ThreadId, Time};
use alloc::string::String;
use proto::console;
use runtime::{Msg, ipc, kernel, root, thread};

use crate::attack::ATTACKS;
use crate::machine;
use crate::order::{HELP, Help, ORDER, RESULT};

/// What an attack reached; `None` if it was refused.
pub type Reached = Option<String>;

/// An attacker at work.
pub struct Hostile {
    judge: ThreadId,
}

/// Waits for its order, attacks, tells what came of it, and waits for its end.
pub fn run() -> ! {
    machine::touch_image();
    loop {
        let (from, msg) = ipc::request();
        let attack = ATTACKS.get(msg.mr[0] as usize).filter(|_| msg.label() == ORDER);
        let Some(attack) = attack else { continue };
        let reached = (attack.act)(&Hostile { judge: from }).unwrap_or_default();
        let text = &reached.as_bytes()[..reached.len().min(console::WORD_BYTES)];
        let _ = ipc::call(from, &root::text_message(RESULT, text));
    }
}

impl Hostile {
    /// Asks the judge for help; the first two words of its answer.
    pub fn ask(&self, help: Help, argument: u64) -> [u64; 2] {
        let msg = Msg::new(HELP).words(&[help as u64, argument]);
        ipc::call(self.judge, &msg).map_or([0, 0], |answer| [answer.mr[0], answer.mr[1]])
    }

    /// The judge's thread.
    pub const fn judge(&self) -> ThreadId {
        self.judge
    }

    /// A new id of the task's own numbers, from which the kernel lets it make threads.
    pub fn own_id(&self, index: u64) -> ThreadId {
        let first = kernel::limits(thread::me()).map_or(0, |(numbers, _)| numbers.first);
        let number = first + index as u32;
        let last = kernel::number(number).map_or(0, |(_, last)| last);
        ThreadId::global(number, ((last >> 6) + 1) << 6 | 1)
    }
}

/// Waits until `done`, for at most `us`; whether it is.
pub fn wait_until(us: u64, done: impl Fn() -> bool) -> bool {
    for _ in 0..us / 1_000 {
        if done() {
            return true;
        }
        ipc::sleep(1_000);
    }
    done()
}

/// Waits for nothing, for ever.
pub fn rest() -> ! {
    loop {
        let _ = ipc::receive(thread::me(), Time::NEVER);
    }
}
