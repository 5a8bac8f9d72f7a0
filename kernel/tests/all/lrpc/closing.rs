//! The end of clerks with many bindings, and of tasks that have many or have inherited many: in steps, between which
//! interrupts are handled and others run.

use abi::lrpc::Status;
use abi::syscall::Call;
use abi::{MsgTag, ThreadId};
use kernel::arch::{cpu, entry};
use kernel::space::SpaceRef;
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, current, lookup, set_current};
use kernel::{check, sched};

use crate::common::tasks::{QUIET_LINE, UTCBS, ipc, registers, thread};
use crate::lrpc::play::{
    CLIENT_WINDOW, Play, SERVER_WINDOW, bind_at, calls, checked, returns, status, system_call,
};

/// An interrupt comes in every window from now on until one is handled.
fn interrupt() {
    cpu().pending_lines.set(1 << QUIET_LINE);
}

/// `boss` deletes `thread`, and is interrupted; who runs next.
fn begins_to_delete(boss: TcbRef, thread: TcbRef) -> TcbRef {
    boss.space().expect("it has one").task.privileged.set(true);
    interrupt();
    system_call(boss, Call::ThreadControl, [thread.id.get().0, 0, 0, 0, !0])
}

/// `boss` goes on with its call, and is interrupted again.
fn goes_on(boss: TcbRef) {
    interrupt();
    goes_on_quietly(boss);
}

/// `boss` goes on with its call.
fn goes_on_quietly(boss: TcbRef) {
    cpu().scheduler.ready.remove(boss);
    set_current(boss);
    let _ = entry::resume(boss);
}

/// `client` binds `count` times with `a_stacks` each, with places from `first` on.
fn bind_often(play: &Play, client: TcbRef, first: u64, count: u64, a_stacks: u64) {
    for index in first..first + count {
        let windows = [CLIENT_WINDOW, SERVER_WINDOW].map(|window| window + index * 0x1000);
        bind_at(client, play.clerk, windows, a_stacks).expect("agreed");
    }
}

fn bindings_of(space: SpaceRef) -> usize {
    space.task.linkages.get().map_or(0, |page| page.bindings().count())
}

#[test]
fn a_clerk_with_many_bindings_ends_in_steps() {
    let play = Play::new();
    let boss = thread(play.spaces[2], 10, ThreadId::NIL);
    bind_often(&play, play.client, 0, 15, 1);
    bind_often(&play, boss, 15, 15, 1);
    let id = play.clerk.id.get();
    let left = || play.clerk.served.iter().count();
    let _ = begins_to_delete(boss, play.clerk);
    let mut steps = 1;
    while boss.resume.get() == Resume::Again {
        assert!(lookup(id).is_some() && left() + steps >= 30, "more than one binding in a step");
        checked();
        if steps == 5 {
            let _ = closed(&play);
        }
        goes_on(boss);
        steps += 1;
    }
    assert!(lookup(id).is_none() && steps >= 30 + play.hosts.len(), "in {steps} steps");
    assert_eq!((boss.resume.get(), boss.frame().results()[0]), (Resume::Frame, 1));
    assert!(play.hosts.iter().all(|host| status(*host) == Some(Status::Withdrawn)));
    checked();
}

#[test]
fn a_binding_that_interrupts_meet_is_made() {
    let play = Play::new();
    sched::requeue(current());
    let _ = ipc(play.clerk, ThreadId::NIL, ThreadId::ANY);
    let arguments = [play.clerk.id.get().0, CLIENT_WINDOW, 31, 1024, 0];
    assert_eq!(system_call(play.client, Call::LrpcBind, arguments), play.clerk);
    let utcb = registers(play.clerk);
    utcb.set_mr(0, MsgTag::new(0, 3, 0).0);
    [SERVER_WINDOW, 1, 0].into_iter().zip(1..).for_each(|(word, at)| utcb.set_mr(at, word));
    play.clerk.resume.set(Resume::Ipc);
    let _ = ipc(play.clerk, play.client.id.get(), ThreadId::ANY);
    let mut times = 0;
    while play.client.resume.get() == Resume::Bind {
        let before = play.clerk.served.iter().count();
        goes_on(play.client);
        let bound = play.clerk.served.iter().count() - before;
        assert_eq!(bound, usize::from(play.client.resume.get() != Resume::Bind));
        times += 1;
    }
    assert!(times > 8, "each of eight pages takes a frame: {times}");
    assert_eq!(play.client.frame().results()[0], 1);
    cpu().pending_lines.set(0);
    checked();
}

/// While a clerk ends, nobody binds to it, and nobody is lent to it: so it comes to an end.
fn closed(play: &Play) -> Option<()> {
    let windows = [CLIENT_WINDOW, SERVER_WINDOW].map(|window| window + 31 * 0x1000);
    cpu().pending_lines.set(0);
    assert_eq!(bind_at(play.client, play.clerk, windows, 1), Err(2));
    let late = thread(play.spaces[1], 20, ThreadId::NIL);
    assert_eq!(returns(late, play.clerk), late);
    assert_eq!(status(late), Some(Status::NoClerk));
    Some(())
}

#[test]
fn a_new_version_of_a_clerk_begins_without_bindings() {
    let play = Play::new();
    let boss = thread(play.spaces[2], 10, ThreadId::NIL);
    boss.space().expect("it has one").task.privileged.set(true);
    bind_often(&play, play.client, 0, 3, 2);
    let new = ThreadId::global(play.clerk.id.get().number(), 2);
    interrupt();
    system_call(boss, Call::ThreadControl, [new.0, 0, 0, new.0, !0]);
    let mut steps = 0;
    while boss.resume.get() == Resume::Again {
        goes_on(boss);
        steps += 1;
    }
    assert!(steps >= 3 && play.clerk.id.get() == new, "in {steps} steps");
    cpu().pending_lines.set(0);
    let windows = [CLIENT_WINDOW, SERVER_WINDOW].map(|window| window + 9 * 0x1000);
    play.clerk.resume.set(Resume::Ipc);
    bind_at(play.client, play.clerk, windows, 1).expect("it is a clerk again");
    checked();
}

#[test]
fn a_clerk_whose_end_is_not_gone_on_with_is_one() {
    let play = Play::new();
    let boss = thread(play.spaces[2], 10, ThreadId::NIL);
    let second = thread(play.spaces[2], 11, ThreadId::NIL);
    bind_often(&play, play.client, 0, 3, 1);
    let _ = begins_to_delete(boss, play.clerk);
    assert_eq!((boss.resume.get(), play.clerk.closing.get()), (Resume::Again, true));
    cpu().pending_lines.set(0);
    // The one who was ending it is deleted.
    second.space().expect("it has one").task.privileged.set(true);
    system_call(second, Call::ThreadControl, [boss.id.get().0, 0, 0, 0, !0]);
    assert!(lookup(boss.id.get()).is_none());
    binds_again(&play);
}

#[test]
fn a_clerk_whose_end_is_refused_is_one() {
    let play = Play::new();
    let boss = thread(play.spaces[2], 10, ThreadId::NIL);
    bind_often(&play, play.client, 0, 3, 1);
    let _ = begins_to_delete(boss, play.clerk);
    assert_eq!((boss.resume.get(), play.clerk.closing.get()), (Resume::Again, true));
    // It may not, any more.
    boss.space().expect("it has one").task.privileged.set(false);
    cpu().pending_lines.set(0);
    goes_on_quietly(boss);
    assert_eq!((boss.resume.get(), boss.frame().results()[0]), (Resume::Frame, 0));
    assert!(lookup(play.clerk.id.get()).is_some());
    binds_again(&play);
}

#[test]
fn a_new_version_that_is_refused_ends_no_binding() {
    let play = Play::new();
    let boss = thread(play.spaces[2], 10, ThreadId::NIL);
    boss.space().expect("it has one").task.privileged.set(true);
    bind_often(&play, play.client, 0, 3, 1);
    let new = ThreadId::global(play.clerk.id.get().number(), 2);
    // An active thread keeps the UTCB that it has.
    system_call(boss, Call::ThreadControl, [new.0, 0, 0, new.0, UTCBS]);
    assert_eq!((boss.resume.get(), boss.frame().results()[0]), (Resume::Frame, 0));
    assert_eq!((play.clerk.served.iter().count(), play.clerk.closing.get()), (3, false));
    checked();
}

/// The clerk can be bound to.
fn binds_again(play: &Play) {
    let windows = [CLIENT_WINDOW, SERVER_WINDOW].map(|window| window + 9 * 0x1000);
    play.clerk.resume.set(Resume::Ipc);
    bind_at(play.client, play.clerk, windows, 1).expect("it is a clerk");
    checked();
}

#[test]
fn a_client_with_many_bindings_ends_in_steps() {
    let play = Play::new();
    let boss = thread(play.spaces[2], 10, ThreadId::NIL);
    bind_often(&play, play.client, 0, 12, 4);
    let client = play.spaces[0];
    let _ = begins_to_delete(boss, play.client);
    let mut before = bindings_of(client);
    assert!(before >= 11, "{before} of 12 are left after the first step");
    while before != 0 {
        assert_eq!(check::violations(), 0, "with {before} bindings");
        goes_on(boss);
        let now = bindings_of(client);
        assert!(now + 1 >= before, "from {before} to {now} in a step");
        before = now;
    }
    while boss.resume.get() == Resume::Destroy {
        goes_on(boss);
    }
    assert!(play.clerk.served.is_empty());
    checked();
}

#[test]
fn what_a_task_has_inherited_goes_on_in_steps() {
    let play = Play::new();
    let boss = thread(play.spaces[2], 10, ThreadId::NIL);
    // Two clients end in visits: the one's records are with the other, both with the boss in the end.
    let worker = play.hosts.clone();
    bind_often(&play, play.client, 0, 1, 1);
    let page = play.spaces[0].task.linkages.get().expect("it has a binding");
    let token = page.records().next().expect("it has an A-stack").full_token();
    let host = calls(play.client, token, 0);
    assert!(worker.contains(&host));
    play.spaces[0].task.chief.set(Some(play.spaces[2]));
    let _ = begins_to_delete(boss, play.client);
    while boss.resume.get() == Resume::Destroy {
        checked();
        goes_on(boss);
    }
    cpu().pending_lines.set(0);
    assert_eq!(play.spaces[2].task.inherited.iter().count(), 1);
    checked();
    sched::requeue(boss);
    let _ = returns(host, play.clerk);
    assert!(play.spaces[2].task.inherited.is_empty());
    checked();
}
