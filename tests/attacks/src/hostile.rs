//! An attacker: one attack a life.

use abi::{ThreadId, Time};
use alloc::string::String;
use proto::{console, layout};
use runtime::{Msg, ipc, root, thread};

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
        let (from, msg) = ipc::next_request(None);
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

    /// An id of the task's own numbers: thread `index`, which the root task has not made.
    pub fn own_id(&self, index: u64, version: u32) -> ThreadId {
        let slot = layout::slot_of(thread::me().number()).map_or(0, |(slot, _)| slot);
        ThreadId::global(layout::thread_number(slot, index), version)
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
