//! A thread is not passed over by the direct switch of a busier server to its client.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{ThreadId, Time};
use runtime::{Msg, clock, ipc, schedule, thread};

use crate::report::{Outcome, because, case};
use crate::{check, world};

/// How long the server works for a call, µs: more than a tick, so that ticks meet the
/// server and next to never its client.
const SERVICE_US: u64 = 1_300;
/// How long the thread in between sleeps at a time, µs, and how often.
const SLEEP_US: u64 = 3_000;
const SLEEPS: u64 = 20;
/// A grain of the wakeup lists, a tick, and a service.
const LATE_US: u64 = 4_000;

static CLIENT: AtomicU64 = AtomicU64::new(0);
static LATE: AtomicU64 = AtomicU64::new(0);
static SLEPT: AtomicU64 = AtomicU64::new(0);
static SERVED: AtomicU64 = AtomicU64::new(0);

/// Runs the tests.
pub fn run() {
    case("a_server_does_not_hand_over_past_a_thread_that_waits", in_between);
}

/// Serves one client, by its global id: what comes from the same space has a local one.
extern "C" fn serve(_: u64) -> ! {
    let mut request = ipc::wait(Time::NEVER);
    while request.is_ok() {
        let begin = clock::now_us();
        while clock::now_us() - begin < SERVICE_US {}
        SERVED.fetch_add(1, Ordering::Relaxed);
        request = ipc::reply_wait(ThreadId(CLIENT.load(Ordering::Relaxed)), &Msg::new(0));
    }
    thread::park()
}

extern "C" fn call(server: u64) -> ! {
    while ipc::call(ThreadId(server), &Msg::new(0)).is_ok() {}
    thread::park()
}

extern "C" fn sleep(_: u64) -> ! {
    for _ in 0..SLEEPS {
        let due = clock::now_us() + SLEEP_US;
        ipc::sleep(SLEEP_US);
        LATE.fetch_max(clock::now_us() - due, Ordering::Relaxed);
        SLEPT.fetch_add(1, Ordering::Relaxed);
    }
    thread::park()
}

fn in_between() -> Outcome {
    let server = world::spawn(serve, 0)?;
    let client = world::spawn(call, server.0)?;
    CLIENT.store(client.0, Ordering::Relaxed);
    let sleeper = world::spawn(sleep, 0)?;
    for (id, priority) in [(server, 200), (client, 50), (sleeper, 120)] {
        because(schedule::set_priority(id, priority), "setting a priority")?;
    }
    ipc::sleep(200_000);
    let (late_us, slept) = (LATE.load(Ordering::Relaxed), SLEPT.load(Ordering::Relaxed));
    let served = SERVED.load(Ordering::Relaxed);
    for id in [sleeper, client, server] {
        world::delete(id)?;
    }
    check!(served > 50, "the server served {served} calls");
    check!(slept == SLEEPS, "{slept} of {SLEEPS} sleeps were over in time");
    check!(late_us <= LATE_US, "the thread in between woke {late_us} us late");
    Ok(())
}
