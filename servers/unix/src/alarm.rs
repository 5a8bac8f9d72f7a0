//! Deadlines: a helper thread that sleeps until the earliest one and then calls the
//! server. While it sleeps it can be told an earlier time.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

use abi::{ThreadId, Time, Timeouts};
use runtime::{Msg, clock, ipc, thread};

/// Label of its message.
pub const LABEL: u64 = 0x400;
/// No deadline.
const NEVER: u64 = !0;
/// After how long without the helper it is looked whether it calls, µs.
const LOOK_US: u64 = 500;
/// Longest sleep at a time, µs.
const NAP_US: u64 = 10_000_000;
/// The longest that IPC can say to the microsecond.
const EXACT_US: u64 = 1023;
/// How long before the time a longer sleep ends at least, µs: the kernel lets its timer interrupt no sooner after
/// that for the rest, which is exact.
const REST_US: u64 = 128;

/// The helper calls the server, or is about to: it receives nothing else before it has its answer.
static CALLS: AtomicBool = AtomicBool::new(false);

/// Helper and what it was told last.
pub struct Alarm {
    helper: ThreadId,
    /// Its name inside this task, which is how its messages come.
    local: ThreadId,
    /// Microseconds of the kernel's clock at which it will call.
    set: Cell<u64>,
    /// It waits for the answer to its call.
    calling: Cell<bool>,
}

impl Alarm {
    /// Starts the helper; it calls `server`.
    pub fn start(server: ThreadId) -> Result<Self, runtime::root::Refusal> {
        let helper = thread::spawn(move || sleep_and_call(server))?;
        let local = thread::other_id(helper).unwrap_or(helper);
        Ok(Self { helper, local, set: Cell::new(NEVER), calling: Cell::new(false) })
    }

    /// Asks for a call at `at_us` of the kernel's clock. Later than now asked for: it
    /// calls early, which does no harm.
    pub fn set(&self, at_us: Option<u64>) {
        let at = at_us.unwrap_or(NEVER);
        if at < self.set.get() {
            self.set.set(at);
            if !self.calling.get() {
                while !self.tell() && !CALLS.load(Ordering::Acquire) {}
            }
        }
    }

    /// Tells the helper the time; false if it has not received it. It may be just calling, and gets the next time as
    /// its answer, or have no processor for longer than one would think.
    fn tell(&self) -> bool {
        let msg = Msg::new(LABEL).word(self.set.get());
        ipc::send_within(self.helper, &msg, Time::micros(LOOK_US)).is_ok()
    }

    /// Whether `id` is the helper.
    pub fn is(&self, id: ThreadId) -> bool {
        id == self.local
    }

    /// It has called: `handle` does what is due and asks for the next time, which is the answer.
    pub fn called(&self, handle: impl FnOnce()) {
        CALLS.store(false, Ordering::Release);
        self.calling.set(true);
        self.set.set(NEVER);
        handle();
        self.calling.set(false);
        // It waits for this, and for nothing else.
        let _ = self.tell();
    }
}

/// How long to sleep now if it is to be `us` in all: what is left then can be said exactly, or is far.
fn nap(us: u64) -> u64 {
    if us > EXACT_US { (us - REST_US).min(NAP_US) } else { us }
}

fn sleep_and_call(server: ThreadId) {
    let mut until = NEVER;
    loop {
        let now = clock::now_us();
        let told = if until == NEVER {
            ipc::receive(server, Time::NEVER).ok()
        } else if until > now {
            ipc::receive(server, Time::micros(nap(until - now))).ok()
        } else {
            until = NEVER;
            CALLS.store(true, Ordering::Release);
            ipc::call_within(server, &Msg::new(LABEL), Timeouts::NEVER).ok()
        };
        if let Some(msg) = told {
            until = msg.mr[0];
        }
    }
}
