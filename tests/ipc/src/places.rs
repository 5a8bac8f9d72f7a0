//! Where the puppets and their pager live. The boot image may bring a raw file that says so: a line
//! `# processors`, then one digit for each puppet, and one for the pager. Without it all live where the conductor
//! does, on the first processor.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use abi::inspect::{What, state};
use abi::{MsgTag, ThreadId};
use root_harness::FIRST_NUMBER;
use runtime::kernel;

use crate::puppet::PUPPETS;
use crate::same;
use crate::strings::Scene;
use crate::verdict::Verdict;

/// What a file of places begins with.
const FIRST_LINE: &str = "# processors";
/// The pager's place in the line.
pub const PAGER: usize = PUPPETS;

static PROCESSORS: [AtomicU8; PUPPETS + 1] = [const { AtomicU8::new(0) }; PUPPETS + 1];
static APART: AtomicBool = AtomicBool::new(false);

/// Tests of one processor, and why.
const OF_ONE: [(&str, &str); 5] = [
    ("short_ipc_between_spaces", "it counts the instructions from one partner to the other"),
    ("short_ipc_inside_a_space", "likewise"),
    ("random_states", "it compares the order of events, which several processors do not promise"),
    ("vector_users_call_and_return", "it counts entries, and processors are entered by ticks, too"),
    ("a_fast_call_is_as_a_complete_one", "likewise"),
];

/// The same of one whose clock is puppet 0: where instructions are counted, the emulator gives no other processor a turn
/// while the first one copies (docs/multiprocessor.md). Uncounted, the test passes there.
const OF_A_CLOCK_HERE: (&str, &str) =
    ("others_run_during_a_long_copy", "its clock gets no turn of the emulator's elsewhere");

/// Reads the file, if there is one.
pub fn read() {
    let digits = root_harness::text(FIRST_LINE).filter(u8::is_ascii_digit);
    for (place, digit) in PROCESSORS.iter().zip(digits) {
        place.store(digit - b'0', Relaxed);
        APART.store(true, Relaxed);
    }
}

/// The processor of puppet `index`, or of the pager.
pub fn of(index: usize) -> u32 {
    PROCESSORS[index].load(Relaxed).into()
}

/// Why the test `name` is not for puppets that live as these do.
pub fn unfit(name: &str) -> Option<&'static str> {
    let clock = Some(&OF_A_CLOCK_HERE).filter(|_| of(0) != 0);
    let unfit = OF_ONE.iter().filter(|_| APART.load(Relaxed)).chain(clock);
    unfit.into_iter().find(|(test, _)| *test == name).map(|(_, why)| *why)
}

/// The flag of a message from whoever `sender` names to puppet `receiver`.
pub fn flag(sender: ThreadId, receiver: usize) -> u64 {
    let named = |index: &usize| {
        root_harness::local(*index) == sender || FIRST_NUMBER + *index as u32 == sender.number()
    };
    match (0..PUPPETS).find(named) {
        Some(index) if of(index) != of(receiver) => MsgTag::XCPU,
        _ => 0,
    }
}

impl Scene {
    /// Complains unless the receiver has this tag, and the flag that tells it where the sender lives.
    pub fn told(&self, tag: u64) -> Verdict {
        let expected = tag | flag(self.sender.id, self.receiver.index);
        same!("the receiver's tag", self.receiver.outcome(0).mr[0], expected);
        Ok(())
    }
}

/// Whether nobody runs on another processor, or is on the way. The conductor asks while it is the least urgent on
/// its own.
pub fn are_at_rest() -> bool {
    if !APART.load(Relaxed) {
        return true;
    }
    let before = entries();
    let mut asked = 0;
    for index in (0..=PAGER).filter(|index| of(*index) != 0) {
        asked += 1;
        if runs(index) {
            return false;
        }
    }
    // Nobody came in between, so that all of this was true at once.
    entries() == before + asked + 1
}

/// Whether puppet `index`, or the pager, is there and ready.
fn runs(index: usize) -> bool {
    let number = match index {
        PAGER => crate::stage::PAGER.number(),
        _ => FIRST_NUMBER + index as u32,
    };
    let record = kernel::inspect(What::Thread, number.into(), 0);
    record.is_some_and(|it| ThreadId(it[0]).number() == number && it[1] == state::READY)
}

/// Entries into the kernel's complete paths so far.
fn entries() -> u64 {
    kernel::inspect(What::Kernel, 0, 0).map_or(0, |record| record[4])
}
