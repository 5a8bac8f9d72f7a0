//! Calls that end otherwise than by a return: everybody who takes part, halted, deleted or revoked.

use abi::ThreadId;
use abi::lrpc::{Status, control as what, step};
use abi::syscall::Call;
use kernel::arch::cpu;
use kernel::control;
use kernel::ipc::wait;
use kernel::lrpc::visit_of;
use kernel::thread::set_current;
use kernel::thread::state::State;
use kernel::thread::tcb::Resume;

use crate::common::apart;
use crate::common::tasks::thread;
use crate::lrpc::play::{
    CLIENT_WINDOW, COOKIE, Play, SERVER_WINDOW, bind, bind_at, calls, checked, returns, run,
    set_priority, status, system_call,
};

#[test]
fn an_aborted_caller_goes_on_and_the_visit_ends_alone() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 1);
    let host = calls(play.client, token, 0);
    set_current(host);
    kernel::ipc::cancel::cancel(play.client);
    assert_eq!(
        (status(play.client), wait::state(play.client)),
        (Some(Status::Aborted), State::Ready)
    );
    checked();
    assert_eq!(calls(play.client, token, 0), play.client, "its A-stack is still in use");
    assert_eq!(status(play.client), Some(Status::InUse));
    let _ = returns(host, play.clerk);
    assert_eq!(wait::state(host), State::Lent);
    checked();
    assert_eq!(calls(play.client, token, 0), host);
}

#[test]
fn a_halted_caller_stops_at_the_return() {
    use abi::syscall::exregs as bit;
    let play = Play::new();
    let token = bind(play.client, play.clerk, 1);
    let host = calls(play.client, token, 0);
    assert!(visit_of(host).is_some_and(|record| record.caller.get().is_some()));
    let boss = thread(play.spaces[0], 9, ThreadId::NIL);
    let new = kernel::control::exregs::Registers {
        control: bit::HALT | bit::HALT_VALID | bit::IP,
        ip: 0x7000,
        ..Default::default()
    };
    assert!(
        kernel::control::exregs::exchange_registers(boss, play.client.id.get(), &new).is_some()
    );
    checked();
    let _ = returns(host, play.clerk);
    assert_eq!((wait::state(play.client), play.client.ip.get()), (State::Halted, 0x7000));
    checked();
}

#[test]
fn a_caller_that_becomes_less_urgent_waits_at_the_return() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 1);
    set_priority(play.client, 50);
    let (boss, other) =
        (thread(play.spaces[0], 9, ThreadId::NIL), thread(play.spaces[2], 10, ThreadId::NIL));
    set_priority(boss, 40);
    set_priority(other, 45);
    let host = calls(play.client, token, 0);
    let request = control::schedule::Change {
        dest: play.client.id.get(),
        priority: 40,
        time: !0,
        processor: !0,
        preemption: !0,
    };
    cpu().look_first.set(true);
    assert!(control::schedule::schedule(boss, &request).is_ok());
    assert!(visit_of(host).is_some_and(|record| record.caller.get().is_none()), "the fast path");
    checked();
    assert_eq!(returns(host, play.clerk), other, "somebody more urgent waits");
    checked();
}

#[test]
fn a_host_that_fails_gives_its_caller_back() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 1);
    // Deleted.
    let host = calls(play.client, token, 0);
    play.delete(host);
    assert_eq!(status(play.client), Some(Status::ServerFailed));
    assert_eq!(wait::state(play.client), State::Ready);
    checked();
    // Its fault has no handler; the other host has come in.
    let host = calls(play.client, token, 0);
    assert_eq!(host, play.hosts[1]);
    set_current(host);
    host.resume.set(Resume::Frame);
    let next = kernel::ipc::kernel_message::exception(host);
    assert_eq!((next, wait::state(host)), (play.client, State::Halted));
    assert_eq!(status(play.client), Some(Status::ServerFailed));
    run(next);
    checked();
    assert_eq!(calls(play.client, token, 0), play.client);
    assert_eq!(status(play.client), Some(Status::NoHost));
}

#[test]
fn a_binding_revoked_in_a_call_ends_with_it() {
    let play = Play::new();
    let free = kernel::mem::frames::free();
    let token = bind(play.client, play.clerk, 2);
    let host = calls(play.client, token, 0);
    system_call(
        play.clerk,
        Call::LrpcControl,
        [play.clerk.id.get().0, what::REVOKE_COOKIE, COOKIE, 0, 0],
    );
    play.clerk.resume.set(Resume::Ipc);
    let [ok, _, count] = play.clerk.frame().results();
    assert_eq!([ok, count], [1, 1]);
    checked();
    assert!(play.spaces[1].page(SERVER_WINDOW).is_some(), "the visit needs it");
    assert_eq!(returns(host, play.clerk), play.client);
    assert_eq!(status(play.client), Some(Status::Revoked));
    assert!(play.spaces[1].page(SERVER_WINDOW).is_none());
    checked();
    assert!(play.spaces[0].page(CLIENT_WINDOW).is_some(), "taken from under the client's hands");
    assert_eq!(calls(play.client, token, 0), play.client);
    assert_eq!(status(play.client), Some(Status::NoBinding));
    let let_go = [0, what::REVOKE, token, 0, 0];
    system_call(play.client, Call::LrpcControl, let_go);
    assert_eq!(play.client.frame().results()[0], 1);
    assert!(play.spaces[0].page(CLIENT_WINDOW).is_none());
    system_call(play.client, Call::LrpcControl, let_go);
    assert_eq!(play.client.frame().results()[0], 0, "it is gone");
    checked();
    assert!(free - kernel::mem::frames::free() <= 3, "tables and the page of records");
}

#[test]
fn a_dead_client_leaves_nothing_but_the_visit() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 2);
    let used = play.spaces[0].quota().used();
    let host = calls(play.client, token, 0);
    play.delete(play.client);
    // What is left of it is another's to pay; the visit goes on.
    assert_eq!(play.spaces[2].task.inherited.iter().count(), 1);
    assert!(used > play.spaces[0].quota().used());
    assert!(play.spaces[1].page(SERVER_WINDOW).is_some());
    assert_eq!(wait::state(host), State::Ready);
    let theirs = play.spaces[2].quota().used();
    let _ = returns(host, play.clerk);
    assert_eq!(wait::state(host), State::Lent);
    assert_eq!(
        play.spaces[2].quota().used(),
        theirs - 2,
        "the page of records and one of A-stacks"
    );
    assert!(play.spaces[1].page(SERVER_WINDOW).is_none());
    assert!(play.spaces[2].task.inherited.is_empty());
    checked();
}

#[test]
fn a_dead_server_gives_all_callers_back() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 2);
    let second = thread(play.spaces[0], 8, ThreadId::NIL);
    calls(play.client, token, 0);
    calls(second, step(token, 1), 0);
    for (which, thread) in [play.hosts[0], play.clerk, play.hosts[1]].into_iter().enumerate() {
        play.delete(thread);
        checked();
        assert_eq!(wait::state(play.client), State::Ready, "{which}");
    }
    assert_eq!(
        (status(play.client), status(second)),
        (Some(Status::ServerFailed), Some(Status::ServerFailed))
    );
    assert!(play.spaces[0].page(CLIENT_WINDOW).is_some());
    assert_eq!(calls(second, token, 0), second);
    assert_eq!(status(second), Some(Status::NoBinding));
    // Its client, which still sees the A-stacks, ends after it.
    let used = play.spaces[0].quota().used();
    play.delete(second);
    play.delete(play.client);
    assert!(play.spaces[2].task.inherited.is_empty());
    assert_eq!(play.spaces[0].quota().used(), used - 2 * 2 - 2, "threads and pages");
    checked();
}

#[test]
fn nobody_ends_anothers_visit_and_nobody_ends_one_twice() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 2);
    let host = calls(play.client, token, 0);
    let (inside, outside) =
        (thread(play.spaces[1], 20, ThreadId::NIL), thread(play.spaces[2], 21, ThreadId::NIL));
    for other in [inside, outside] {
        let _ = returns(other, play.clerk);
        assert_eq!((wait::state(play.client), wait::state(host)), (State::Calls, State::Ready));
        checked();
    }
    assert_eq!((wait::state(inside), status(outside)), (State::Lent, Some(Status::NoClerk)));
    assert_eq!(returns(host, play.clerk), play.client);
    // It is taken out of its wait, and returns a second time: from nothing.
    set_current(play.client);
    kernel::ipc::cancel::cancel(host);
    assert_eq!(status(host), Some(Status::Withdrawn));
    let second = thread(play.spaces[0], 8, ThreadId::NIL);
    let visited = calls(second, token, 0);
    assert!(visited != host);
    assert_ne!(returns(host, play.clerk), second);
    assert_eq!((wait::state(second), wait::state(host)), (State::Calls, State::Lent));
    checked();
}

#[test]
fn stacks_to_nowhere_are_their_owners_matter() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 1);
    for nowhere in [0, 7, 1 << 47, 0x8000_0000_0000_0000, u64::MAX] {
        play.client.sp.set(nowhere);
        play.hosts[0].sp.set(!nowhere);
        let host = calls(play.client, token, 0);
        checked();
        assert_eq!(returns(host, play.clerk), play.client);
        assert_eq!(status(play.client), Some(Status::Done));
        assert_eq!((play.client.sp.get(), play.hosts[0].sp.get()), (nowhere, !nowhere));
        checked();
    }
}

/// The client, more urgent than all others, calls a host, that one another task's, and that a third.
fn chain(deleted: bool, floor: u64) {
    let play = Play::new();
    let clerk = thread(play.spaces[2], 10, ThreadId::NIL);
    returns(thread(play.spaces[2], 11, ThreadId::NIL), clerk);
    system_call(clerk, Call::LrpcControl, [clerk.id.get().0, what::FLOOR, floor, 0, 0]);
    clerk.resume.set(Resume::Ipc);
    let (there, back) =
        (thread(play.spaces[1], 12, ThreadId::NIL), thread(play.spaces[2], 13, ThreadId::NIL));
    let windows = |at| [CLIENT_WINDOW, SERVER_WINDOW + at];
    let there = bind_at(there, clerk, windows(0x4000), 1).expect("agreed");
    let back = bind_at(back, play.clerk, windows(0x4000), 1).expect("agreed");
    let token = bind(play.client, play.clerk, 1);
    set_priority(play.client, 200);
    let first = calls(play.client, token, 0);
    let second = calls(first, there, 0);
    let third = calls(second, back, 0);
    assert!([first, second, third].iter().all(|host| host.priority.get() == 200));
    first.own_priority.set(60);
    if deleted {
        play.delete(play.client);
    } else {
        set_current(third);
        kernel::ipc::cancel::cancel(play.client);
    }
    let now = [first, second, third].map(|host| host.priority.get());
    let others = 60.max(floor as u8);
    assert_eq!(now, [60, others, others]);
    checked();
    let _ = returns(third, play.clerk);
    let _ = returns(second, clerk);
    let _ = returns(first, play.clerk);
    checked();
}

#[test]
fn nobody_in_a_chain_below_a_call_that_is_given_up_keeps_its_callers_priority() {
    for (deleted, floor) in [(false, 0), (true, 0), (false, 90)] {
        apart(move || chain(deleted, floor));
    }
}
