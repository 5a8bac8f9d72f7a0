//! Who a message is from, whatever happens between its sending and its delivery.

use crate::common::tasks::{ipc, machine, make, registers, thread};
use abi::id::USER_BASE;
use abi::{MsgTag, ThreadId, utcb};
use kernel::control::lifecycle;
use kernel::ipc::kernel_message;
use kernel::ipc::wait::waits;
use kernel::thread::rendezvous::{Busy, Waits};
use kernel::thread::{Kind, TcbRef, set_current};

/// `sender`'s next message goes out in the name of `name`, if that is allowed.
fn propagate(sender: TcbRef, name: ThreadId) {
    registers(sender).set_mr(0, MsgTag::PROPAGATED | 1);
    registers(sender).set_mr(1, 7);
    registers(sender).set_word(utcb::VIRTUAL_SENDER, name.0);
}

#[test]
fn a_queued_message_is_not_delivered_in_the_name_of_a_new_thread_of_another_task() {
    let (_machine, spaces) = machine(3);
    let server = thread(spaces[1], 1, ThreadId::NIL);
    let deceiver = thread(spaces[0], 0, ThreadId::NIL);
    let decoy = thread(spaces[0], 2, ThreadId::NIL);
    let name = decoy.id.get();
    propagate(deceiver, name);
    let _ = ipc(deceiver, server.id.get(), ThreadId::NIL);
    assert_eq!(waits(deceiver), Waits::Busy(Busy::Polling));
    set_current(deceiver);
    let _ = lifecycle::delete(decoy);
    let _victim = make(name, spaces[2], 3, ThreadId::NIL);
    let _ = ipc(server, ThreadId::NIL, ThreadId::ANY);
    assert_eq!(registers(server).mr(1), 7);
    assert_eq!(server.result_from.get(), deceiver.id.get());
    assert_eq!(registers(server).mr(0) & MsgTag::PROPAGATED, 0);
}

#[test]
fn a_closed_wait_for_the_new_thread_does_not_let_the_old_ones_message_in() {
    let (_machine, spaces) = machine(3);
    let server = thread(spaces[1], 1, ThreadId::NIL);
    let deceiver = thread(spaces[0], 0, ThreadId::NIL);
    let decoy = thread(spaces[0], 2, ThreadId::NIL);
    let name = decoy.id.get();
    propagate(deceiver, name);
    let _ = ipc(deceiver, server.id.get(), ThreadId::NIL);
    set_current(deceiver);
    let _ = lifecycle::delete(decoy);
    let _victim = make(name, spaces[2], 3, ThreadId::NIL);
    let _ = ipc(server, ThreadId::NIL, name);
    assert_eq!(waits(server), Waits::Closed(name));
    assert_eq!(waits(deceiver), Waits::Busy(Busy::Polling));
}

#[test]
fn a_propagated_message_that_waited_keeps_its_name() {
    let (_machine, spaces) = machine(2);
    let server = thread(spaces[1], 1, ThreadId::NIL);
    let sender = thread(spaces[0], 0, ThreadId::NIL);
    let named = thread(spaces[0], 2, ThreadId::NIL);
    propagate(sender, named.id.get());
    let _ = ipc(sender, server.id.get(), ThreadId::NIL);
    let _ = ipc(server, ThreadId::NIL, named.id.get());
    assert_eq!(server.result_from.get(), named.id.get());
    assert_eq!(registers(server).thread(utcb::VIRTUAL_SENDER), sender.id.get());
}

#[test]
fn a_sender_that_gets_another_id_while_it_is_queued_sends_nothing() {
    let (_machine, spaces) = machine(2);
    let server = thread(spaces[1], 1, ThreadId::NIL);
    let sender = thread(spaces[0], 0, ThreadId::NIL);
    let helper = thread(spaces[0], 2, ThreadId::NIL);
    registers(sender).set_mr(0, 1);
    let _ = ipc(sender, server.id.get(), ThreadId::NIL);
    set_current(helper);
    lifecycle::change_id(sender, ThreadId::global(USER_BASE + 3, 2));
    let _ = ipc(server, ThreadId::NIL, ThreadId::ANY);
    assert_eq!(waits(server), Waits::Open);
}

/// What the kernel asks a thread's handler nobody of the thread's own task answers, not even in the handler's name:
/// neither who waits to send when the kernel asks, nor who comes later.
#[test]
fn nobody_answers_the_kernel_in_another_s_name() {
    for comes_first in [true, false] {
        let (_machine, spaces) = machine(2);
        let scheduler = thread(spaces[1], 1, ThreadId::NIL);
        let asker = thread(spaces[0], 0, ThreadId::NIL);
        let sibling = thread(spaces[0], 2, ThreadId::NIL);
        let answers = || {
            propagate(sibling, scheduler.id.get());
            set_current(sibling);
            let _ = ipc(sibling, asker.id.get(), ThreadId::NIL);
            assert_eq!(waits(sibling), Waits::Busy(Busy::Polling));
        };
        asker.scheduler.set(scheduler.id.get());
        if comes_first {
            answers();
        }
        set_current(asker);
        let _ = ipc(scheduler, ThreadId::NIL, ThreadId::ANY);
        let _ = kernel_message::preemption(asker);
        assert_eq!(asker.kind.get(), Kind::Preemption);
        if !comes_first {
            answers();
        }
        assert_eq!(asker.kind.get(), Kind::Preemption, "its scheduler has not answered");
        set_current(scheduler);
        let _ = ipc(scheduler, asker.id.get(), ThreadId::NIL);
        assert_eq!(asker.kind.get(), Kind::User);
    }
}

/// A message in the name of another task's thread comes in that name, though its receiver waits for an answer to the
/// kernel's question when it is sent.
#[test]
fn a_propagated_message_waits_for_the_end_of_a_fault() {
    let (_machine, spaces) = machine(3);
    let client = thread(spaces[1], 1, ThreadId::NIL);
    let pager = thread(spaces[2], 3, ThreadId::NIL);
    let worker = thread(spaces[0], 0, ThreadId::NIL);
    let dispatcher = thread(spaces[0], 2, ThreadId::NIL);
    worker.scheduler.set(pager.id.get());
    let _ = ipc(pager, ThreadId::NIL, ThreadId::ANY);
    set_current(worker);
    let _ = kernel_message::preemption(worker);
    propagate(dispatcher, client.id.get());
    set_current(dispatcher);
    let _ = ipc(dispatcher, worker.id.get(), ThreadId::NIL);
    assert_eq!(waits(dispatcher), Waits::Busy(Busy::Polling));
    set_current(pager);
    let _ = ipc(pager, worker.id.get(), ThreadId::NIL);
    set_current(worker);
    let _ = ipc(worker, ThreadId::NIL, client.id.get());
    assert_eq!(worker.result_from.get(), client.id.get());
    assert_eq!(registers(worker).word(utcb::VIRTUAL_SENDER), dispatcher.id.get().0);
}
