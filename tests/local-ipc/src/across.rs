//! Kernel IPC of armed threads (0062): with threads of another space, armed or not, and with
//! threads of their own that take no part.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA};
use abi::{CallError, Fpage, Rights, ThreadId, Time, Timeouts, utcb};
use runtime::space::Fault;
use runtime::{Msg, ipc, kernel};

use crate::cast::{Actor, Part, RIGHT, WRONG, count};
use crate::{Verdict, calls, me, pause};

const NUMBER: u32 = root_harness::FIRST_NUMBER + 8;
/// Log2 size of the other space's UTCB area.
const UTCB_BITS: u32 = 12;
/// Pages of kernel memory for the other space.
const QUOTA: i64 = 64;
const STACK_WORDS: usize = 512;
/// Rounds of each test.
const ROUNDS: u64 = 500;

#[repr(align(16))]
struct Stack([AtomicU64; STACK_WORDS]);
static STACKS: [Stack; 2] = [const { Stack([const { AtomicU64::new(0) }; STACK_WORDS]) }; 2];
static VERSION: AtomicU64 = AtomicU64::new(0);
/// Whom the other space's thread calls.
static SERVER: AtomicU64 = AtomicU64::new(0);

/// Where the other space's second thread has its UTCB.
const HELPER: u64 = INITIAL_UTCB_AREA + utcb::SIZE;

/// A thread in a space of its own, with this program's memory.
struct Other(ThreadId);

impl Other {
    /// Starts one at `entry`, and with it a thread that adds.
    fn start(entry: extern "C" fn() -> !) -> Result<Self, &'static str> {
        let version = 1 + VERSION.fetch_add(1, Ordering::Relaxed) as u32;
        let [id, helper] = [0, 1].map(|next| ThreadId::global(NUMBER + next, version));
        make_space(id, UTCB_BITS)?;
        begin(id, &STACKS[0].0, entry)?;
        let root = ThreadId::ROOT;
        kernel::create_active(helper, id, root, root, HELPER).map_err(refused)?;
        begin(helper, &STACKS[1].0, helper_main)?;
        Ok(Self(id))
    }

    fn stop(&self) {
        let helper = ThreadId::global(NUMBER + 1, self.0.version());
        for id in [helper, self.0] {
            let _ = kernel::delete(id);
        }
    }
}

fn refused(_: CallError) -> &'static str {
    "the kernel makes no space"
}

/// Makes the space whose first thread is `id`.
pub fn make_space(id: ThreadId, utcb_bits: u32) -> Verdict {
    kernel::create(id, id, ThreadId::ROOT, INITIAL_UTCB_AREA).map_err(refused)?;
    kernel::move_quota(id, QUOTA).map_err(refused)?;
    let kip = Fpage::memory(INITIAL_KIP, 12, Rights::NONE);
    let utcbs = Fpage::memory(INITIAL_UTCB_AREA, utcb_bits, Rights::NONE);
    kernel::configure_space(id, kip, utcbs).map_err(refused)?;
    kernel::set_pager(id, id, ThreadId::ROOT, !0).map_err(refused)
}

/// Faults of a thread that begins, at most: more than it has kinds of pages.
const FAULTS: u32 = 8;

/// Lets `id` begin at `entry`, and gives it this program's pages until it says that it has all.
pub fn begin(id: ThreadId, stack: &[AtomicU64], entry: extern "C" fn() -> !) -> Verdict {
    let sp = stack.as_ptr() as u64 + size_of_val(stack) as u64 - 8;
    let gone = |_| "a thread of the other space does not start";
    ipc::send(id, &Msg::default().words(&[entry as usize as u64, sp])).map_err(gone)?;
    let mut message = ipc::receive(id, Time::NEVER).map_err(gone)?;
    // All of the image comes at once: who faults again faults where nobody has a page, and for ever.
    for _ in 0..FAULTS {
        if Fault::decode(&message).is_none() {
            return Ok(());
        }
        message = ipc::call(id, &root_harness::image()).map_err(gone)?;
    }
    Err("a thread of the other space faults outside the image")
}

/// To whoever has begun this thread.
pub fn ready() {
    let _ = ipc::send(ThreadId::ROOT, &Msg::default());
}

/// Answers with the sum of two words and the sender's name.
fn sum(client: ThreadId, request: &Msg) -> Msg {
    Msg::default().words(&[request.get(0).wrapping_add(request.get(1)), client.0])
}

extern "C" fn helper_main() -> ! {
    ready();
    let (mut client, mut request) = ipc::request();
    loop {
        let reply = sum(client, &request);
        (client, request) =
            ipc::local_reply_wait(client, &reply).unwrap_or_else(|_| ipc::request());
    }
}

extern "C" fn serve() -> ! {
    ready();
    let (mut client, mut request) = ipc::request();
    loop {
        (client, request) = ipc::next_request(Some((client, sum(client, &request))));
    }
}

/// Lets the helper of its own space add.
extern "C" fn serve_armed() -> ! {
    ready();
    let helper = ThreadId::local(HELPER + utcb::POINTER_OFFSET);
    let (mut client, mut request) = ipc::request();
    loop {
        let words = [request.get(0), request.get(1)];
        let answer = ipc::local_call(helper, &Msg::default().words(&words)).unwrap_or_default();
        let reply = Msg::default().words(&[answer.get(0), client.0]);
        (client, request) = ipc::next_request(Some((client, reply)));
    }
}

extern "C" fn call() -> ! {
    ready();
    let server = ThreadId(SERVER.load(Ordering::Relaxed));
    for round in 0.. {
        count(round, ipc::call(server, &Msg::default().words(&[round, 3])));
    }
    unreachable!()
}

/// Calls of `server` by kernel IPC among calls of `local` without; `name` is how `server` knows us.
fn alternate(local: ThreadId, server: ThreadId, name: ThreadId) -> Verdict {
    for round in 0..ROUNDS {
        calls(local, round % 4)?;
        for _ in 0..round % 3 {
            let answer =
                ipc::lipc(server, server, Timeouts::NEVER, &Msg::default().words(&[round, 5]));
            let (from, answer) = answer.map_err(|_| "a call through the kernel failed")?;
            if answer.get(0) != round + 5 || answer.get(1) != name.0 {
                return Err("a call through the kernel was answered otherwise");
            }
            if from != server && name != me() {
                return Err("another thread answered than the one that was called");
            }
        }
    }
    Ok(())
}

fn with(entry: extern "C" fn() -> !) -> Verdict {
    let adder = Actor::start(0, Part::Add);
    let other = Other::start(entry)?;
    let verdict = alternate(adder.local, other.0, ThreadId::ROOT);
    other.stop();
    adder.stop();
    verdict
}

/// A server of another space that takes no part, and of one's own.
pub fn unarmed() -> Verdict {
    with(serve)?;
    let (adder, plain) = (Actor::start(0, Part::Add), Actor::start(1, Part::Plain));
    let verdict = alternate(adder.local, plain.id, me());
    plain.stop();
    adder.stop();
    verdict
}

/// A server of another space that does.
pub fn armed() -> Verdict {
    with(serve_armed)
}

/// The armed server of this space is called from the other one and from here, in any order.
pub fn called() -> Verdict {
    RIGHT.store(0, Ordering::Relaxed);
    WRONG.store(0, Ordering::Relaxed);
    let adder = Actor::start(0, Part::Add);
    SERVER.store(adder.id.0, Ordering::Relaxed);
    let other = Other::start(call)?;
    let verdict = (0..ROUNDS).try_for_each(|round| {
        pause(20 + round as u32 % 37);
        calls(adder.local, round % 5)
    });
    other.stop();
    adder.stop();
    verdict?;
    let (right, wrong) = (RIGHT.load(Ordering::Relaxed), WRONG.load(Ordering::Relaxed));
    if wrong > 0 {
        return Err("a call from the other space was answered otherwise");
    }
    if right > ROUNDS { Ok(()) } else { Err("the other space did not get on") }
}

/// Who has been woken from its wait in public by kernel IPC is told when its next partner, a kernel's too,
/// is deleted.
pub fn missed() -> Verdict {
    for _ in 0..20 {
        let answers = Actor::start(0, Part::Global);
        let silent = Actor::start(1, Part::Silent);
        let killer = Actor::start(2, Part::Kill);
        for round in 0..3 {
            let msg = Msg::default().words(&[round, 3]);
            let answer = ipc::local_call(answers.local, &msg).map_err(|_| "a call failed")?;
            if answer.get(0) != round + 3 {
                return Err("a call was answered otherwise");
            }
        }
        let answer = ipc::call(silent.id, &Msg::default());
        killer.stop();
        answers.stop();
        if answer.is_ok() {
            return Err("a thread that is gone has answered");
        }
    }
    Ok(())
}
