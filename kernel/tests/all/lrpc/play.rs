//! The client and the server of the tests, and what they do.

use abi::syscall::Call;
use abi::{MsgTag, ThreadId};
use kernel::arch::{cpu, entry};
use kernel::control::lifecycle;
use kernel::ipc::wait;
use kernel::lrpc::{call, give_back};
use kernel::mem::Step;
use kernel::space::SpaceRef;
use kernel::thread::state::State;
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, current, set_current};
use kernel::{check, lrpc, sched};

use crate::common::Machine;
pub use crate::common::tasks::system_call;
use crate::common::tasks::{UTCBS, ipc, machine, registers, thread};
use abi::lrpc::Status;

pub const CLIENT_WINDOW: u64 = UTCBS + 0x1_0000;
pub const SERVER_WINDOW: u64 = UTCBS + 0x2_0000;
pub const PROCEDURES: u64 = 3;
pub const COOKIE: u64 = 0xC00C;

/// A client and a server with a clerk and hosts, on a machine.
pub struct Play {
    _machine: Machine,
    pub spaces: Vec<SpaceRef>,
    pub client: TcbRef,
    pub clerk: TcbRef,
    pub hosts: Vec<TcbRef>,
}

pub fn checked() {
    assert_eq!(check::violations(), 0, "the checker has said what");
}

/// Makes `next` current as the processor does.
pub fn run(next: TcbRef) -> TcbRef {
    sched::requeue(current());
    set_current(next);
    if next.resume.get() == Resume::Bind {
        return run(entry::resume(next));
    }
    next.resume.set(Resume::Ipc);
    next
}

pub fn set_priority(thread: TcbRef, priority: u8) {
    cpu().scheduler.ready.remove(thread);
    thread.priority.set(priority);
    sched::requeue(thread);
}

/// `client` binds to `clerk`, who says yes; the first token.
pub fn bind_at(client: TcbRef, clerk: TcbRef, windows: [u64; 2], count: u64) -> Result<u64, u64> {
    sched::requeue(current());
    let _ = ipc(clerk, ThreadId::NIL, ThreadId::ANY);
    let arguments = [clerk.id.get().0, windows[0], count, 256, 0];
    let next = system_call(client, Call::LrpcBind, arguments);
    if next == clerk {
        let utcb = registers(clerk);
        assert_eq!(utcb.mr(1), count);
        utcb.set_mr(0, MsgTag::new(0, 3, 0).0);
        [windows[1], PROCEDURES, COOKIE].into_iter().zip(1..).for_each(|(w, i)| utcb.set_mr(i, w));
        clerk.resume.set(Resume::Ipc);
        let next = ipc(clerk, client.id.get(), ThreadId::ANY);
        assert_eq!(next, client);
        // An interrupt may come before there are frames enough.
        while client.resume.get() == Resume::Bind {
            run(next);
        }
    }
    client.resume.set(Resume::Ipc);
    let [ok, _, token] = client.frame().results();
    if ok == 1 { Ok(token) } else { Err(registers(client).word(abi::utcb::ERROR_CODE)) }
}

pub fn bind(client: TcbRef, clerk: TcbRef, count: u64) -> u64 {
    bind_at(client, clerk, [CLIENT_WINDOW, SERVER_WINDOW], count).expect("the clerk agrees")
}

/// `caller` calls `procedure` at `token`; who runs next.
pub fn calls(caller: TcbRef, token: u64, procedure: u64) -> TcbRef {
    sched::requeue(current());
    set_current(caller);
    registers(caller).set_mr(0, procedure);
    run(call(caller, token))
}

pub fn returns(host: TcbRef, clerk: TcbRef) -> TcbRef {
    returns_to(host, clerk.id.get())
}

/// The same with a clerk that may be gone.
pub fn returns_to(host: TcbRef, clerk: ThreadId) -> TcbRef {
    sched::requeue(current());
    set_current(host);
    run(give_back(host, clerk))
}

pub fn status(thread: TcbRef) -> Option<Status> {
    Status::decode(thread.result_from.get().0)
}

/// Deletes `thread`, and its task with the last one; `heir` has what is left.
pub fn delete(thread: TcbRef, heir: SpaceRef) {
    sched::requeue(current());
    set_current(cpu().scheduler.idle.get().expect("there is one"));
    if let Some(space) = lifecycle::delete(thread) {
        while lrpc::revocation::client_ends(space) == Step::More {}
        while lrpc::revocation::inherit(space, heir) == Step::More {}
    }
}

impl Play {
    pub fn new() -> Self {
        let (machine, spaces) = machine(3);
        let nobody = ThreadId::NIL;
        let client = thread(spaces[0], 0, nobody);
        let clerk = thread(spaces[1], 1, nobody);
        let hosts: Vec<_> = (2..4).map(|index| thread(spaces[1], index, nobody)).collect();
        for host in &hosts {
            returns(*host, clerk);
            assert_eq!(wait::state(*host), State::Lent);
        }
        checked();
        Self { _machine: machine, spaces, client, clerk, hosts }
    }

    /// Deletes `thread`, and its task with the last one.
    pub fn delete(&self, thread: TcbRef) {
        delete(thread, self.spaces[2]);
    }
}
