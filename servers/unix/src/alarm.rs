//! Deadlines: a helper thread that sleeps until the earliest one and then calls the
//! server. While it sleeps it can be told an earlier time.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{ThreadId, Time, Timeouts};
use runtime::{Msg, clock, ipc, thread};

/// Label of its message.
pub const LABEL: u64 = 0x400;
/// No deadline.
const NEVER: u64 = !0;
/// Longest sleep at a time, µs.
const NAP_US: u64 = 10_000_000;

/// Helper and what it was told last.
pub struct Alarm {
    helper: ThreadId,
    /// Its name inside this task, which is how its messages come.
    local: ThreadId,
    /// Microseconds of the kernel's clock at which it will call.
    set: AtomicU64,
}

impl Alarm {
    /// Starts the helper; it calls `server`.
    pub fn start(server: ThreadId) -> Result<Self, runtime::root::Refusal> {
        let helper = thread::spawn(move || sleep_and_call(server))?;
        let local = thread::other_id(helper).unwrap_or(helper);
        Ok(Self { helper, local, set: AtomicU64::new(NEVER) })
    }

    /// Asks for a call at `at_us` of the kernel's clock. Later than now asked for: it
    /// calls early, which does no harm.
    pub fn set(&self, at_us: Option<u64>) {
        let at = at_us.unwrap_or(NEVER);
        if at >= self.set.load(Ordering::Relaxed) {
            return;
        }
        // If it is just calling, it gets the time as the answer.
        if ipc::send_within(self.helper, &Msg::new(LABEL).word(at), Time::ZERO).is_ok() {
            self.set.store(at, Ordering::Relaxed);
        }
    }

    /// Whether `id` is the helper.
    pub fn is(&self, id: ThreadId) -> bool {
        id == self.local
    }

    /// It has called: from now on it sleeps until it is told a time.
    pub fn called(&self) {
        self.set.store(NEVER, Ordering::Relaxed);
        let _ = ipc::send_within(self.helper, &Msg::new(LABEL).word(NEVER), Time::ZERO);
    }
}

fn sleep_and_call(server: ThreadId) {
    let mut until = NEVER;
    loop {
        let now = clock::now_us();
        let told = if until == NEVER {
            ipc::receive(server, Time::NEVER).ok()
        } else if until > now {
            ipc::receive(server, Time::micros((until - now).min(NAP_US))).ok()
        } else {
            until = NEVER;
            ipc::call_within(server, &Msg::new(LABEL), Timeouts::NEVER).ok()
        };
        if let Some(msg) = told {
            until = msg.mr[0];
        }
    }
}
