//! Procedure calls between spaces: bindings, calls and returns, and the ends of everybody who takes
//! part, at every moment. The kernel's own checker looks after each step.

mod closing;
mod ends;
mod model;
mod pairs;
mod play;
mod ring;
mod there;

use crate::common::Random;
use crate::common::tasks::{UTCBS, ipc, registers, thread};
use abi::lrpc::{Status, control as what, step};
use abi::syscall::Call;
use abi::{Ceilings, Fpage, MsgTag, Rights, ThreadId};
use kernel::control::{lifecycle, schedule};
use kernel::ipc::wait;
use kernel::lrpc::bind::first_run;
use kernel::lrpc::visit_of;
use kernel::thread::state::State;
use kernel::thread::tcb::{ELSEWHERE, Resume};
use kernel::thread::{current, lookup, set_current};
use kernel::{lrpc, sched};

use play::{
    CLIENT_WINDOW, COOKIE, PROCEDURES, Play, SERVER_WINDOW, bind, bind_at, calls, checked, returns,
    run, set_priority, status, system_call,
};

#[test]
fn a_call_reaches_the_procedure_and_returns() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 2);
    checked();
    registers(play.client).set_mr(3, 77);
    set_priority(play.client, 133);
    let host = calls(play.client, token, 2);
    assert_eq!(host, play.hosts[0]);
    assert_eq!(host.result_from.get().0, SERVER_WINDOW);
    let utcb = registers(host);
    assert_eq!((utcb.mr(0), utcb.mr(3), utcb.mr(7)), (2, 77, COOKIE));
    assert_eq!((host.priority.get(), wait::state(play.client)), (133, State::Calls));
    checked();
    utcb.set_mr(1, 99);
    assert_eq!(returns(host, play.clerk), play.client);
    assert_eq!((status(play.client), registers(play.client).mr(1)), (Some(Status::Done), 99));
    assert_eq!(wait::state(host), State::Lent);
    checked();
    // The second A-stack has a host of its own, and lies behind the first.
    let other = calls(play.client, step(token, 1), 0);
    assert_eq!((other, other.result_from.get().0), (play.hosts[1], SERVER_WINDOW + 256));
    assert_eq!(returns(other, play.clerk), play.client);
    checked();
}

#[test]
fn no_token_but_its_own_leads_anywhere() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 2);
    let stranger = thread(play.spaces[2], 7, ThreadId::NIL);
    let refused = |caller, token, procedure, why| {
        assert_eq!(calls(caller, token, procedure), caller);
        assert_eq!(status(caller), Some(why), "{token:#x}");
    };
    for bad in [0, 1, 64, 1024, !0, token ^ 1, token ^ 0xFFFF_FFFF, token + 4096, step(token, 2)] {
        refused(play.client, bad, 0, Status::NoBinding);
    }
    refused(stranger, token, 0, Status::NoBinding);
    refused(play.client, token, PROCEDURES, Status::NoProcedure);
    refused(play.client, token, !0, Status::NoProcedure);
    // In use, by another thread of the client.
    let second = thread(play.spaces[0], 8, ThreadId::NIL);
    let host = calls(play.client, token, 0);
    refused(second, token, 0, Status::InUse);
    refused(second, token ^ 0xFFFF_FFFF, 0, Status::NoBinding);
    // The hosts are used up: one lent to an A-stack that is free would be taken from it.
    assert_eq!(calls(second, step(token, 1), 0), play.hosts[1]);
    checked();
    returns(host, play.clerk);
    returns(play.hosts[1], play.clerk);
    // Revoked, and bound again: the old token is stale.
    system_call(play.client, Call::LrpcControl, [0, what::REVOKE, token, 0, 0]);
    play.client.resume.set(Resume::Ipc);
    checked();
    refused(play.client, token, 0, Status::NoBinding);
    let again = bind(play.client, play.clerk, 2);
    assert_ne!(again, token);
    refused(play.client, token, 0, Status::NoBinding);
    assert_eq!(calls(play.client, again, 0), play.hosts[0]);
    checked();
}

/// Another processor may write the register between the check and the visit. Here the kernel does: its note of the
/// call lies where the caller's first register is.
#[test]
fn the_number_that_a_host_gets_is_the_one_that_was_checked() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 1);
    let host = calls(play.client, token, 0);
    let record = visit_of(host).expect("it runs for the client");
    let mut notes = [&record.caller, &record.kept].into_iter();
    let note = notes.find(|note| note.get() == Some(play.client)).expect("one of them says so");
    returns(host, play.clerk);
    assert!(note.get().is_none(), "procedure 0");
    sched::requeue(current());
    set_current(play.client);
    let utcb = play.client.utcb_k.replace(std::ptr::from_ref(note) as u64);
    let next = lrpc::call(play.client, token);
    play.client.utcb_k.set(utcb);
    assert_eq!(run(next), host);
    assert_eq!(registers(host).mr(0), 0);
    checked();
}

#[test]
fn a_binding_is_refused_where_it_does_not_fit() {
    let play = Play::new();
    let used = play.spaces[0].quota().used();
    let bad = |windows, count| bind_at(play.client, play.clerk, windows, count).is_err();
    assert!(bad([CLIENT_WINDOW + 8, SERVER_WINDOW], 1), "crooked");
    assert!(bad([UTCBS, SERVER_WINDOW], 1), "on a UTCB");
    assert!(bad([CLIENT_WINDOW, UTCBS], 1), "on the clerk's UTCB");
    assert!(bad([0x1000, SERVER_WINDOW], 1), "outside the UTCB area");
    assert!(bad([CLIENT_WINDOW, 0xFFFF_FFFF_8000_0000], 1), "the kernel's half");
    assert!(bad([CLIENT_WINDOW, 0], 1), "refused by the clerk");
    assert!(bad([CLIENT_WINDOW, SERVER_WINDOW], 0) && bad([CLIENT_WINDOW, SERVER_WINDOW], 33));
    assert!(bad_end(&play), "over the end of the area");
    checked();
    let paid = play.spaces[0].quota().used() - used;
    assert!(paid <= 1, "a refused binding holds {paid} pages");
    // Limits: so many bindings and A-stacks a task, none of whom hold the next one's.
    let mut made = 0;
    let at = |index: u64| [CLIENT_WINDOW + index * 4096, SERVER_WINDOW + index * 4096];
    while bind_at(play.client, play.clerk, at(made), 4).is_ok() {
        made += 1;
    }
    assert_eq!(made, 12, "48 A-stacks");
    checked();
}

fn bad_end(play: &Play) -> bool {
    let end = UTCBS + (1 << 18) - 4096;
    bind_at(play.client, play.clerk, [end, SERVER_WINDOW], 32).is_err()
}

/// However the A-stacks of a task are used, no look at one is taken twice.
#[test]
fn each_a_stack_is_looked_at_once_for_a_free_run() {
    let mut random = Random::seeded(7);
    for count in 1..=32_usize {
        for free in (0..200).map(|_| random.next() | random.next()).chain([!0, 0, !1, !0 >> 32]) {
            let is_free = |index: usize| free >> index & 1 != 0;
            let first = (0..=48 - count).find(|first| (*first..*first + count).all(is_free));
            let mut looks = [0; 48];
            let found = first_run(48, count, |index| {
                looks[index] += 1;
                is_free(index)
            });
            assert_eq!(found, first, "{count} of {free:#b}");
            assert!(looks.iter().all(|times| *times <= 1), "{looks:?}");
        }
    }
}

#[test]
fn nobody_pays_for_a_client_without_memory() {
    let play = Play::new();
    let (quota, server) = (play.spaces[0].quota(), play.spaces[1].quota());
    let spare = quota.limit() - quota.used();
    quota.transfer(play.spaces[2].quota(), spare).expect("it is unused");
    let before = (quota.used(), server.used());
    assert_eq!(bind_at(play.client, play.clerk, [CLIENT_WINDOW, SERVER_WINDOW], 1), Err(8));
    assert_eq!(quota.used(), before.0);
    checked();
    for pages in 1..6 {
        play.spaces[2].quota().transfer(quota, 1).expect("it was given");
        let made = bind_at(play.client, play.clerk, [CLIENT_WINDOW, SERVER_WINDOW], 32);
        checked();
        assert!(made.is_err() || pages > 2, "{pages}");
    }
}

#[test]
fn a_chain_and_a_recursion_come_back_the_way_they_went() {
    let play = Play::new();
    let front = thread(play.spaces[2], 10, ThreadId::NIL);
    let own_clerk = thread(play.spaces[0], 11, ThreadId::NIL);
    // The client is a server, too: its first thread lends itself.
    let worker = thread(play.spaces[1], 12, ThreadId::NIL);
    let back =
        bind_at(worker, own_clerk, [CLIENT_WINDOW, SERVER_WINDOW + 0x8000], 1).expect("agreed");
    returns(thread(play.spaces[0], 13, ThreadId::NIL), own_clerk);
    let there =
        bind_at(front, play.clerk, [CLIENT_WINDOW, SERVER_WINDOW + 0x1000], 2).expect("agreed");
    let first = calls(front, there, 0);
    let inner = calls(first, back, 1);
    assert!(inner.same_space(play.client));
    let token =
        bind_at(play.client, play.clerk, [CLIENT_WINDOW + 0x8000, SERVER_WINDOW + 0x4000], 1);
    let second = calls(inner, token.expect("agreed"), 2);
    assert_eq!(second, play.hosts[1]);
    checked();
    assert_eq!(returns(second, play.clerk), inner);
    assert_eq!(returns(inner, own_clerk), first);
    assert_eq!(returns(first, play.clerk), front);
    checked();
}

#[test]
fn a_call_looks_for_a_host_at_so_many_a_stacks_and_the_next_goes_on() {
    let play = Play::new();
    let front = thread(play.spaces[2], 10, ThreadId::NIL);
    // Four bindings, as many A-stacks as two clients can have; both hosts are at the last of them.
    let bind = |client, which: u64, count| {
        let windows = [CLIENT_WINDOW, SERVER_WINDOW].map(|window| window + which * 0x2000);
        bind_at(client, play.clerk, windows, count).expect("agreed")
    };
    let tokens = [
        bind(play.client, 0, 32),
        bind(play.client, 1, 16),
        bind(front, 2, 32),
        bind(front, 3, 16),
    ];
    for which in 0..2 {
        let host = calls(front, step(tokens[3], which), 0);
        returns(host, play.clerk);
    }
    assert!(32 + 16 < lrpc::LOOKED_AT && lrpc::LOOKED_AT <= 32 + 16 + 32);
    assert_eq!(calls(play.client, tokens[0], 0), play.client);
    assert_eq!(status(play.client), Some(Status::NoHost), "it has looked at the first three");
    checked();
    let host = calls(play.client, tokens[0], 0);
    assert!(play.hosts.contains(&host), "the next call has begun at the fourth");
    checked();
    returns(host, play.clerk);
    // While all hosts are in calls, any number of calls has the same end.
    let [one, other] = [0, 1].map(|which| step(tokens[3], which));
    let second = thread(play.spaces[2], 14, ThreadId::NIL);
    calls(front, one, 0);
    calls(second, other, 0);
    for _ in 0..9 {
        assert_eq!(calls(play.client, step(tokens[1], 3), 0), play.client);
        assert_eq!(status(play.client), Some(Status::NoHost));
    }
    checked();
}

#[test]
fn a_clerk_learns_when_a_place_is_free_again() {
    let play = Play::new();
    let count = || {
        let about = [play.clerk.id.get().0, what::COUNT, COOKIE, 0, 0];
        system_call(play.clerk, Call::LrpcControl, about);
        play.clerk.resume.set(Resume::Ipc);
        play.clerk.frame().results()[2]
    };
    assert_eq!(count(), 0);
    let token = bind(play.client, play.clerk, 1);
    assert_eq!(count(), 1);
    system_call(play.client, Call::LrpcControl, [0, what::REVOKE, token, 0, 0]);
    play.client.resume.set(Resume::Ipc);
    assert_eq!(count(), 0);
    bind(play.client, play.clerk, 1);
    checked();
}

#[test]
fn the_priority_of_a_visit_is_the_callers_or_the_floor() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 1);
    let set = [play.clerk.id.get().0, what::FLOOR, 90, 0, 0];
    system_call(play.clerk, Call::LrpcControl, set);
    play.clerk.resume.set(Resume::Ipc);
    assert_eq!(play.clerk.frame().results()[0], 1);
    for (own, visit) in [(20, 90), (200, 200)] {
        set_priority(play.client, own);
        let host = calls(play.client, token, 0);
        assert_eq!(host.priority.get(), visit);
        checked();
        returns(host, play.clerk);
    }
    assert_eq!(sched::own_priority(play.hosts[0]), lifecycle::DEFAULT_PRIORITY);
    // More than the clerk has it may not ask for.
    system_call(play.clerk, Call::LrpcControl, [play.clerk.id.get().0, what::FLOOR, 101, 0, 0]);
    assert_eq!(play.clerk.frame().results()[0], 0);
    play.clerk.resume.set(Resume::Ipc);
    // Who stops being a host has its own priority again.
    set_current(play.clerk);
    kernel::ipc::cancel::cancel(play.hosts[0]);
    assert_eq!(status(play.hosts[0]), Some(Status::Withdrawn));
    assert_eq!(play.hosts[0].priority.get(), lifecycle::DEFAULT_PRIORITY);
    checked();
}

#[test]
fn a_visit_makes_its_host_delay_nobody_above_its_ceiling() {
    let play = Play::new();
    let boss = thread(play.spaces[2], 10, ThreadId::NIL);
    boss.space().expect("it has one").task.privileged.set(true);
    let low = Ceilings { priority: lifecycle::DEFAULT_PRIORITY, ..Ceilings::NONE };
    play.spaces[1].task.limits.ceilings.set(low);
    let token = bind(play.client, play.clerk, 1);
    set_priority(play.client, 200);
    let host = calls(play.client, token, 0);
    assert_eq!(host.priority.get(), 200);
    set_current(boss);
    let request = schedule::Change {
        dest: host.id.get(),
        priority: !0,
        time: !0,
        processor: !0,
        preemption: 90 << 16 | 50,
    };
    assert!(schedule::schedule(boss, &request).is_ok());
    assert_eq!(host.sensitive_priority.get(), lifecycle::DEFAULT_PRIORITY);
    sched::requeue(boss);
    returns(host, play.clerk);
    checked();
}

#[test]
fn only_threads_of_the_clerks_task_are_lent() {
    let play = Play::new();
    for clerk in [play.client, play.clerk] {
        let stranger = thread(play.spaces[2], 7 + clerk.id.get().number() % 2, ThreadId::NIL);
        assert_eq!(returns(stranger, clerk), stranger);
        assert_eq!(status(stranger), Some(Status::NoClerk));
    }
    // Whoever moves elsewhere is not the fast path's.
    let token = bind(play.client, play.clerk, 1);
    let host = calls(play.client, token, 0);
    lrpc::becomes_special(host);
    host.set_special(ELSEWHERE, true);
    assert!(visit_of(host).is_some_and(|record| record.kept.get() == Some(play.client)));
    host.set_special(ELSEWHERE, false);
    checked();
    assert_eq!(returns(host, play.clerk), play.client);
    assert!(lookup(play.client.id.get()).is_some() && current() == play.client);
}

#[test]
fn a_clerk_maps_nothing_into_its_client() {
    let play = Play::new();
    let _ = ipc(play.clerk, ThreadId::NIL, ThreadId::ANY);
    let arguments = [play.clerk.id.get().0, CLIENT_WINDOW, 1, 256, 0];
    assert_eq!(system_call(play.client, Call::LrpcBind, arguments), play.clerk);
    // A map item of its own page, behind the three words that agree.
    let item = abi::MapItem::map(Fpage::memory(0x40_0000, 12, Rights::RW), 0x40_0000);
    let [first, second] = item.words();
    let utcb = registers(play.clerk);
    let words = [MsgTag::new(0, 3, 2).0, SERVER_WINDOW, PROCEDURES, COOKIE, first, second];
    (0..).zip(words).for_each(|(index, word)| utcb.set_mr(index, word));
    play.clerk.resume.set(Resume::Ipc);
    let next = ipc(play.clerk, play.client.id.get(), ThreadId::ANY);
    if next == play.client {
        run(next);
    }
    assert!(play.spaces[0].page(0x40_0000).is_none(), "the client has got a page");
    assert!(MsgTag(registers(play.clerk).mr(0)).is_error(), "the clerk is told");
    checked();
}
