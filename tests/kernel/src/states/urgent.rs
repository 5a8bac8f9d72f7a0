//! A thread is not passed over by a direct switch: of a busier server to its client, of a
//! foreign thread to its handler.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::protocol::{self, exception as reg};
use abi::{Fpage, MapItem, MsgTag, Rights, ThreadId, Time};
use runtime::kernel::{self, STATE_WORDS};
use runtime::space::Fault;
use runtime::{Msg, clock, ipc, schedule, thread};

use crate::report::{Outcome, because, case};
use crate::{check, machine, world};

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

/// What the foreign thread does for ever: `mov ecx, 650000; 1: dec ecx; jnz 1b; syscall; jmp`,
/// a call after [`SERVICE_US`].
const PROGRAM: [u8; 13] =
    [0xB9, 0x10, 0xEB, 0x09, 0x00, 0xFF, 0xC9, 0x75, 0xFC, 0x0F, 0x05, 0xEB, 0xF3];
/// Where it sees its page.
const PLACE: u64 = 0x40_0000;

#[repr(C, align(4096))]
struct Page([u8; 4096]);
static CODE: Page = Page([0xCC; 4096]);

/// Runs the tests.
pub fn run() {
    case("a_server_does_not_hand_over_past_a_thread_that_waits", in_between);
    case("a_foreign_call_does_not_lose_a_watch", foreign_call);
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
    judge([(server, 200), (client, 50), (sleeper, 120)])
}

/// The three threads with their priorities run for a while: the last of them wakes in time.
fn judge(trio: [(ThreadId, u8); 3]) -> Outcome {
    [&LATE, &SLEPT, &SERVED].into_iter().for_each(|count| count.store(0, Ordering::Relaxed));
    for (id, priority) in trio {
        because(schedule::set_priority(id, priority), "setting a priority")?;
    }
    ipc::sleep(200_000);
    let (late_us, slept) = (LATE.load(Ordering::Relaxed), SLEPT.load(Ordering::Relaxed));
    let served = SERVED.load(Ordering::Relaxed);
    for (id, _) in trio.into_iter().rev() {
        world::delete(id)?;
    }
    check!(served > 50, "the server served {served} calls");
    check!(slept == SLEEPS, "{slept} of {SLEEPS} sleeps were over in time");
    check!(late_us <= LATE_US, "the thread in between woke {late_us} us late");
    Ok(())
}

/// Makes `program` foreign and answers its calls, each at once.
extern "C" fn handle(program: u64) -> ! {
    let program = ThreadId(program);
    let mut words = [0; STATE_WORDS];
    (words[reg::RIP], words[reg::RFLAGS]) = (PLACE, 0x202);
    let ready =
        kernel::make_foreign(program).and_then(|()| kernel::set_foreign_registers(program, &words));
    let mut answer = Msg::new(0);
    while ready.is_ok() {
        let Ok((_, msg)) = ipc::reply_wait(program, &answer) else { break };
        answer = if Fault::decode(&msg).is_some() {
            let fpage = Fpage::memory(CODE.0.as_ptr() as u64, 12, Rights::RX);
            Msg::default().map(MapItem { fpage, send_base: PLACE, grant: false })
        } else if msg.tag == MsgTag::protocol(protocol::SYSTEM_CALL, 0, 7, 0) {
            SERVED.fetch_add(1, Ordering::Relaxed);
            Msg::new(0).word(0)
        } else {
            break;
        };
    }
    thread::park()
}

/// The foreign thread is the most urgent, so that a tick that wakes the one in between leaves
/// it the processor; its handler is the least, and must not be handed it past that one.
fn foreign_call() -> Outcome {
    machine::write_bytes(CODE.0.as_ptr() as u64, &PROGRAM);
    let program = world::new_task()?;
    let handler = world::spawn(handle, program.0)?;
    let sleeper = world::spawn(sleep, 0)?;
    judge([(program, 200), (handler, 50), (sleeper, 120)])
}
