//! The exchange of short messages, with time stamps on both sides.
//!
//! The partner runs the same image, inside this space or in one of its own whose
//! pages are this task's (`Fault::same_page`), so its stamps can be read here.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::{MsgTag, Rights, ThreadId, Time};
use runtime::ipc::Message;
use runtime::space::Fault;
use runtime::syscall::TIMED_OVERHEAD;
use runtime::{Msg, ipc};

/// Round trips measured.
pub const ROUNDS: u64 = 100;
/// Round trips before that, to have all pages and tables in place.
const WARM_UP: u64 = 20;
/// Label of a plain exchange: the reply has as many words.
const PLAIN: u64 = 1;
/// Label of a partner's first message.
const READY: u64 = 4;

/// Per partner: when it received the last message, and when it sent the reply before.
static RECEIVED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static REPLIED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Kernel instructions of the two directions.
#[derive(Clone, Copy)]
pub struct Figures {
    call: u64,
    reply: u64,
    mean: u64,
}

impl Figures {
    /// Both directions together.
    pub const fn round_trip(&self) -> u64 {
        self.call + self.reply
    }
}

impl core::fmt::Display for Figures {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "        {:5} {:6} {:5}", self.call, self.reply, self.mean)
    }
}

/// Plays with `partner`, whose stamps are in place `place`.
pub fn exchange(partner: ThreadId, place: usize, words: u32) -> Figures {
    let tag = MsgTag::new(PLAIN, words, 0);
    warm_up(partner, tag);
    let (mut call, mut reply, mut sum, mut returned) = (u64::MAX, u64::MAX, 0, 0);
    for round in 0..=ROUNDS {
        let stamps = ipc::timed(partner, partner, tag);
        let there = RECEIVED[place].load(Relaxed).wrapping_sub(stamps.before);
        if round > 0 {
            // The partner knows when its last reply left only after this call.
            let back = u64::wrapping_sub(returned, REPLIED[place].load(Relaxed));
            call = call.min(there);
            reply = reply.min(back);
            sum += there + back;
        }
        returned = stamps.after;
    }
    let net = |ticks: u64| ticks.saturating_sub(TIMED_OVERHEAD);
    Figures { call: net(call), reply: net(reply), mean: net(sum / ROUNDS / 2) }
}

/// Calls until all pages are in place; a partner in a space of its own faults on
/// each of its pages once, and this thread is its pager.
fn warm_up(partner: ThreadId, tag: MsgTag) {
    let message = Msg { tag, ..Msg::default() };
    for _ in 0..WARM_UP {
        let _ = call_paging(partner, &message);
    }
}

/// A call of a partner whose page faults this thread answers.
pub fn call_paging(partner: ThreadId, message: &impl Message) -> ipc::Result<Msg> {
    let mut reply = ipc::call(partner, message)?;
    while let Some(fault) = Fault::decode(&reply) {
        reply = ipc::call(partner, &fault.same_page(Rights::RWX))?;
    }
    Ok(reply)
}

/// Answers `partner`'s page faults until it is ready to play.
///
/// It says so by a call: from then on it waits, and a message to it cannot meet
/// a fault that waits for this thread.
pub fn await_partner(partner: ThreadId) -> ipc::Result<()> {
    let mut message = ipc::receive(partner, Time::NEVER)?;
    while let Some(fault) = Fault::decode(&message) {
        message = ipc::call(partner, &fault.same_page(Rights::RWX))?;
    }
    Ok(())
}

/// The partner of `client`: sends back every plain message, and an empty reply
/// to a string.
pub fn serve(place: usize, client: ThreadId) {
    // Ready: a call; from then on as a server does, reply and wait for anybody.
    let mut from = client;
    let mut tag = MsgTag::new(READY, 0, 0);
    loop {
        let stamps = ipc::timed(client, from, tag);
        from = ThreadId::ANY;
        RECEIVED[place].store(stamps.after, Relaxed);
        REPLIED[place].store(stamps.before, Relaxed);
        tag = stamps.tag.without_flags();
        if tag.label() == crate::text::LABEL {
            tag = crate::text::serve(client);
        }
    }
}

/// [`serve`] in a space of its own, which has to say for itself that it uses no vector
/// registers: what the runtime says at the start is of the first space.
pub extern "C" fn serve_apart(client: u64) -> ! {
    let _ = runtime::kernel::use_no_vector_registers();
    serve(1, ThreadId(client));
    runtime::thread::park()
}
