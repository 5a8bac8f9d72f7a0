//! Strings: 4 KiB to the partner and an empty reply.

use abi::{MsgTag, ThreadId};
use runtime::accept::{self, TransferLimit};
use runtime::{Msg, clock, ipc};

use crate::measure::{ROUNDS, call_paging};

/// Length of the string.
pub const BYTES: usize = 4096;
/// Announces a series of strings; then the strings themselves.
pub const LABEL: u64 = 2;
/// Ends the series.
const END: u64 = 3;

/// Ticks of a round trip.
pub struct Ticks {
    minimum: u64,
    mean: u64,
}

impl core::fmt::Display for Ticks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} (mean {})", self.minimum, self.mean)
    }
}

impl Ticks {
    /// From the minimum and the sum over all rounds.
    pub const fn new(minimum: u64, sum: u64) -> Self {
        Self { minimum, mean: sum / ROUNDS }
    }
}

/// Sends strings to `partner`.
pub fn measure(partner: ThreadId) -> Ticks {
    let source = [0x5A; BYTES];
    let message = Msg::new(LABEL).string(&source);
    let _ = call_paging(partner, &Msg::new(LABEL));
    for _ in 0..4 {
        let _ = call_paging(partner, &message);
    }
    let (mut minimum, mut sum) = (u64::MAX, 0);
    for _ in 0..ROUNDS {
        let before = clock::ticks();
        let _ = ipc::call(partner, &message);
        let ticks = clock::ticks() - before;
        minimum = minimum.min(ticks);
        sum += ticks;
    }
    let _ = call_paging(partner, &Msg::new(END));
    Ticks::new(minimum, sum)
}

/// The partner: takes strings from `client` until the series ends; returns the
/// tag of the reply that is still due.
pub fn serve(client: ThreadId) -> MsgTag {
    let mut buffer = [0; BYTES];
    accept::string(&mut buffer, TransferLimit::micros(1_000_000), || {
        while ipc::call(client, &Msg::default()).is_ok_and(|message| message.label() == LABEL) {}
    });
    MsgTag::default()
}
