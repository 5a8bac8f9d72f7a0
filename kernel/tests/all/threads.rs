//! Threads in the states that are easily forgotten: deleted, cancelled, halted or
//! renamed in the middle of a message, with a pager in between.

use crate::common::tasks::{
    QUIET_LINE, UTCBS, ipc, is_schedulable, machine, registers, thread, way_out,
};
use abi::id::USER_BASE;
use abi::{Ceilings, Fpage, Numbers, Phase, Rights, ThreadId, utcb};
use kernel::arch::{cpu, entry};
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::control::lifecycle;
use kernel::control::thread_control::{After, Request, thread_control};
use kernel::ipc::wait::waits;
use kernel::ipc::{cancel, kernel_message, timeout};
use kernel::irq;
use kernel::mem::frames;
use kernel::sched::{grant_slice, make_ready};
use kernel::thread::part::Part;
use kernel::thread::rendezvous::{Busy, Waits};
use kernel::thread::tcb::Resume;
use kernel::thread::{Kind, TcbRef, set_current};

const BUFFER: u64 = 0x40_0000;
/// Lets `thread`'s next message be an empty map item.
fn prepare_map_item(thread: TcbRef) {
    registers(thread).set_mr(0, 2 << 6);
    registers(thread).set_mr(1, 8);
    registers(thread).set_mr(2, 0);
}

/// `thread` touches a page that it lacks, in user mode.
fn page_fault(thread: TcbRef) -> TcbRef {
    set_current(thread);
    thread.resume.set(Resume::Frame);
    kernel_message::page_fault(thread, 0x5000, Rights::R, 0x1234)
}

/// Two that handle each other's faults: what the kernel says for one is not an answer that
/// could write the other's registers.
#[test]
fn a_fault_does_not_answer_an_exception() {
    let (_machine, spaces) = machine(2);
    let faulter = thread(spaces[0], 0, ThreadId::NIL);
    let handler = thread(spaces[1], 1, faulter.id.get());
    registers(faulter).set_word(utcb::EXCEPTION_HANDLER, handler.id.get().0);
    let _ = ipc(handler, ThreadId::NIL, ThreadId::ANY);
    let frame = faulter.frame();
    frame.reset();
    frame.ip.set(0x1000);
    frame.set_result(7);
    set_current(faulter);
    faulter.resume.set(Resume::Frame);
    assert!(kernel_message::exception(faulter) == handler);
    assert!(page_fault(handler) == faulter, "the pager of the fault does not run");
    assert_eq!((frame.ip.get(), frame.results()[0]), (0x1000, 7));
    assert_eq!((faulter.kind.get(), faulter.resume.get()), (Kind::User, Resume::Frame));
    assert_eq!(waits(handler), Waits::Busy(Busy::Waiting));
}

/// `sender` calls `receiver`, waiting, with a string; the buffer's page is missing.
/// The receiver's pager `pager` waits too.
fn string_into_a_missing_page(sender: TcbRef, receiver: TcbRef, pager: TcbRef) -> TcbRef {
    let source = frames::take().expect("a frame is free");
    let space = sender.space().expect("a user's thread");
    space.map_kernel_page(BUFFER, source.address(), Rights::RW).expect("quota suffices");
    registers(sender).set_mr(0, 2 << 6);
    registers(sender).set_mr(1, 64 << 10);
    registers(sender).set_mr(2, BUFFER);
    let buffers = registers(receiver);
    buffers.set_word(utcb::BR0, 1);
    buffers.set_word(utcb::BR0 - 1, 64 << 10);
    buffers.set_word(utcb::BR0 - 2, BUFFER);
    let _ = ipc(pager, ThreadId::NIL, ThreadId::ANY);
    let _ = ipc(receiver, ThreadId::NIL, ThreadId::ANY);
    // Lazy scheduling would still have them queued; a busy machine would not.
    cpu().scheduler.ready.remove(pager);
    cpu().scheduler.ready.remove(receiver);
    ipc(sender, receiver.id.get(), receiver.id.get())
}

#[test]
fn no_from_specifier_is_taken_for_an_empty_send_queue() {
    let (_machine, spaces) = machine(1);
    let server = thread(spaces[0], 0, ThreadId::NIL);
    let client = thread(spaces[0], 1, ThreadId::NIL);
    assert_eq!(server.open_from.get(), ThreadId::ANY);
    let _ = ipc(client, server.id.get(), ThreadId::NIL);
    assert_eq!(waits(client), Waits::Busy(Busy::Polling));
    let meant =
        [ThreadId::NIL, ThreadId::ANY, ThreadId::ANY_LOCAL, server.id.get(), client.id.get()];
    assert!(!meant.contains(&server.open_from.get()));
    assert!(kernel::thread::lookup(server.open_from.get()).is_none());
    let _ = ipc(server, ThreadId::NIL, ThreadId::ANY);
    assert_eq!(server.open_from.get(), ThreadId::ANY);
}

#[test]
fn a_fault_of_the_partner_runs_its_waiting_pager() {
    let (_machine, spaces) = machine(3);
    let pager = thread(spaces[2], 2, ThreadId::NIL);
    let sender = thread(spaces[0], 0, ThreadId::NIL);
    let receiver = thread(spaces[1], 1, pager.id.get());
    let next = string_into_a_missing_page(sender, receiver, pager);
    assert!(next == pager, "{} runs instead of the pager", next.id.get());
    assert_eq!(waits(pager), Waits::Busy(Busy::Ready));
    assert_eq!(pager.result_from.get(), receiver.id.get());
    assert_eq!(
        (receiver.kind.get(), waits(receiver)),
        (Kind::TransferFault, Waits::Busy(Busy::Waiting))
    );
}

#[test]
fn a_transfer_timeout_stays_armed_while_the_pager_works() {
    let (_machine, spaces) = machine(3);
    let pager = thread(spaces[2], 2, ThreadId::NIL);
    let sender = thread(spaces[0], 0, ThreadId::NIL);
    let receiver = thread(spaces[1], 1, pager.id.get());
    let limit_us = 1000_u64;
    registers(sender).set_word(utcb::XFER_TIMEOUTS, limit_us << 16);
    let _ = string_into_a_missing_page(sender, receiver, pager);
    assert_ne!(receiver.wake_at_us.get(), 0);
    let (lists, at_us) = (&cpu().scheduler.wakeup, receiver.wake_at_us.get() + 2000);
    let _ = lists.expire_some(at_us, u32::MAX, timeout::expired);
    assert_eq!((sender.transfer.part.get(), receiver.transfer.part.get()), (None, None));
    // Transfer timeout, its own, in the send phase; the partner's in the receive phase.
    assert_eq!(registers(sender).word(utcb::ERROR_CODE), 5 << 1);
    assert_eq!(registers(receiver).word(utcb::ERROR_CODE), 6 << 1 | 1);
    assert!(is_schedulable(sender) && is_schedulable(receiver));
}

#[test]
fn a_cancelled_answer_of_a_pager_leaves_the_transfer_going() {
    let (_machine, spaces) = machine(3);
    let pager = thread(spaces[2], 2, ThreadId::NIL);
    let sender = thread(spaces[0], 0, ThreadId::NIL);
    let receiver = thread(spaces[1], 1, pager.id.get());
    let _ = string_into_a_missing_page(sender, receiver, pager);
    prepare_map_item(pager);
    cpu().pending_lines.set(1 << QUIET_LINE);
    let _ = ipc(pager, receiver.id.get(), ThreadId::NIL);
    assert_eq!(
        (pager.transfer.part.get(), pager.resume.get()),
        (Some(Part::SendsTo(receiver)), Resume::Transfer)
    );
    cancel::cancel(pager);
    assert_eq!(registers(pager).word(utcb::ERROR_CODE) & 0xF, 7 << 1);
    assert_eq!(
        (receiver.transfer.part.get(), receiver.resume.get()),
        (Some(Part::ReceivesFrom(sender)), Resume::Transfer)
    );
    assert!(is_schedulable(receiver), "the faulter is in no queue");
    assert!(is_schedulable(pager));
}

#[test]
fn a_page_fault_whose_answer_is_aborted_restarts_the_instruction() {
    let (_machine, spaces) = machine(2);
    let pager = thread(spaces[1], 1, ThreadId::NIL);
    let client = thread(spaces[0], 0, pager.id.get());
    let _ = ipc(pager, ThreadId::NIL, ThreadId::ANY);
    let _ = page_fault(client);
    assert_eq!(waits(client), Waits::Busy(Busy::Waiting));
    prepare_map_item(pager);
    cpu().pending_lines.set(1 << QUIET_LINE);
    let _ = ipc(pager, client.id.get(), ThreadId::NIL);
    assert_eq!(
        (client.transfer.part.get(), pager.resume.get()),
        (Some(Part::ReceivesFrom(pager)), Resume::Transfer)
    );
    set_current(client);
    assert!(lifecycle::delete(pager).is_some(), "it was the last of its space");
    assert_eq!((client.kind.get(), client.resume.get()), (Kind::User, Resume::Frame));
    assert!(client.is_ready());
}

#[test]
fn a_halt_waits_for_the_end_of_a_transfer() {
    let (_machine, spaces) = machine(2);
    let server = thread(spaces[1], 2, ThreadId::NIL);
    let client = thread(spaces[0], 0, ThreadId::NIL);
    let helper = thread(spaces[0], 1, ThreadId::NIL);
    registers(server).set_word(utcb::BR0, Fpage::COMPLETE.0);
    let _ = ipc(server, ThreadId::NIL, ThreadId::ANY);
    prepare_map_item(client);
    cpu().pending_lines.set(1 << QUIET_LINE);
    let _ = way_out(ipc(client, server.id.get(), ThreadId::NIL));
    assert_eq!(
        (client.resume.get(), waits(server)),
        (Resume::Transfer, Waits::Busy(Busy::Transfer))
    );
    set_current(helper);
    let stop = Registers { control: 0x101, ..Registers::default() };
    assert!(exchange_registers(helper, client.id.get(), &stop).is_some());
    assert!(is_schedulable(client), "the server hangs in the transfer");
    set_current(client);
    let _ = entry::resume(client);
    assert_eq!(waits(server), Waits::Busy(Busy::Ready));
    assert_eq!(waits(client), Waits::Busy(Busy::Halted));
}

#[test]
fn an_interrupt_never_becomes_ready() {
    let (machine, spaces) = machine(1);
    let line = ThreadId::irq(QUIET_LINE);
    let source = lifecycle::create(line, machine.spaces[0], line).expect("quota suffices");
    source.kind.set(Kind::Interrupt);
    kernel::thread::rendezvous::set_busy(source, Busy::Halted);
    let handler = thread(spaces[0], 0, ThreadId::NIL);
    irq::attach(machine.spaces[0], line, handler.id.get()).expect("the line is free");
    set_current(handler);
    let _ = irq::interrupt(handler, QUIET_LINE);
    assert_eq!(waits(source), Waits::Busy(Busy::Polling));
    let renamed = ThreadId::global(handler.id.get().number(), 2);
    lifecycle::change_id(handler, renamed);
    assert_eq!((source.kind.get(), waits(source)), (Kind::Interrupt, Waits::Busy(Busy::Halted)));
    assert!(!cpu().scheduler.ready.contains(source));
    assert!(source.partner.get().is_nil());
    cancel::cancel(source);
    assert_eq!(waits(source), Waits::Busy(Busy::Halted));
}

#[test]
fn an_activation_with_a_new_version_waits_for_the_start_message() {
    let (_machine, spaces) = machine(1);
    let root = thread(spaces[0], 0, ThreadId::NIL);
    spaces[0].task.limits.numbers.set(Numbers::ALL);
    set_current(root);
    let id = ThreadId::global(USER_BASE + 9, 1);
    let mut request = Request {
        dest: id,
        pager: ThreadId::NIL,
        scheduler: root.id.get(),
        space: root.id.get(),
        utcb_location: UTCBS + 9 * utcb::SIZE,
    };
    assert!(matches!(thread_control(root, &request), Ok(After::Nothing)));
    request.dest = ThreadId::global(USER_BASE + 9, 2);
    request.pager = root.id.get();
    request.utcb_location = !0;
    assert!(matches!(thread_control(root, &request), Ok(After::Nothing)));
    let made = kernel::thread::lookup(request.dest).expect("the new version is current");
    assert_eq!((made.kind.get(), waits(made)), (Kind::Start, Waits::Busy(Busy::Waiting)));
    assert_eq!(registers(made).thread(utcb::MY_GLOBAL_ID), request.dest);
}

#[test]
fn a_destruction_outlives_its_thread() {
    let (machine, spaces) = machine(2);
    let root = thread(spaces[0], 0, ThreadId::NIL);
    spaces[0].task.limits.numbers.set(Numbers::ALL);
    let worker = thread(spaces[0], 1, ThreadId::NIL);
    let victim = thread(spaces[1], 2, ThreadId::NIL);
    let before = frames::free();
    spaces[1].task.chief.set(Some(spaces[0]));
    spaces[1].task.depth.set(1);
    set_current(worker);
    let delete = |id| Request {
        dest: id,
        pager: ThreadId::NIL,
        scheduler: ThreadId::NIL,
        space: ThreadId::NIL,
        utcb_location: !0,
    };
    let Ok(After::Destroy(doomed)) = thread_control(worker, &delete(victim.id.get())) else {
        panic!("a space ends")
    };
    cpu().pending_lines.set(1 << QUIET_LINE);
    let _ = kernel::destruction::start(worker, doomed);
    assert_eq!(worker.resume.get(), Resume::Destroy);
    set_current(root);
    let Ok(After::Destroy(doomed)) = thread_control(root, &delete(worker.id.get())) else {
        panic!("the space is left half destroyed")
    };
    assert!(doomed == spaces[1]);
    let spaces_before = kernel::space::spaces().count();
    assert!(kernel::destruction::start(root, doomed) == root);
    assert_eq!(kernel::space::spaces().count(), spaces_before - 1);
    // The victim's block and its space are back, and the worker's block.
    assert!(frames::free() > before, "{} frames of {before} are free", frames::free());
    drop(machine);
}

#[test]
fn who_is_more_urgent_than_a_task_goes_before_its_end() {
    a_task_ends_while_somebody_waits(120, true, true);
}

#[test]
fn who_waits_since_before_a_tasks_end_goes_first() {
    a_task_ends_while_somebody_waits(120, true, false);
}

#[test]
fn who_is_no_more_urgent_than_a_task_waits_for_its_end() {
    a_task_ends_while_somebody_waits(100, false, true);
}

/// A task of priority 100 ends, whose chief has 255, while another thread waits with `priority`, for whom an interrupt comes `now`
/// or came before; whether it goes `first`.
fn a_task_ends_while_somebody_waits(priority: u8, first: bool, now: bool) {
    let (_machine, spaces) = machine(3);
    let chief = thread(spaces[0], 0, ThreadId::NIL);
    let victim = thread(spaces[1], 1, ThreadId::NIL);
    let other = thread(spaces[2], 2, ThreadId::NIL);
    spaces[1].task.limits.ceilings.set(Ceilings { priority: 100, ..Ceilings::NONE });
    spaces[1].task.chief.set(Some(spaces[0]));
    spaces[1].task.depth.set(1);
    for (thread, priority) in [(other, priority), (chief, 255)] {
        cpu().scheduler.ready.remove(thread);
        thread.priority.set(priority);
    }
    set_current(chief);
    make_ready(other);
    grant_slice(chief);
    assert!(lifecycle::delete(victim) == Some(spaces[1]));
    cpu().pending_lines.set(u64::from(now) << QUIET_LINE);
    let next = kernel::destruction::start(chief, spaces[1]);
    let expected = if first { other } else { chief };
    assert_eq!(next.id.get(), expected.id.get(), "priority {priority}");
    if first {
        // Until the next interrupt.
        set_current(other);
        assert!(irq::interrupt(other, QUIET_LINE) == chief);
    }
    set_current(chief);
    let spaces_before = kernel::space::spaces().count();
    assert!(kernel::destruction::resume(chief) == chief);
    assert_eq!(kernel::space::spaces().count(), spaces_before - 1);
}

#[test]
fn a_used_up_quantum_is_reported_from_user_mode_only() {
    let (_machine, spaces) = machine(1);
    let busy = thread(spaces[0], 0, ThreadId::NIL);
    let scheduler = thread(spaces[0], 1, ThreadId::NIL);
    let _ = ipc(scheduler, ThreadId::NIL, ThreadId::ANY);
    busy.scheduler.set(scheduler.id.get());
    kernel::sched::slice::set_quantum(busy, 0);
    set_current(busy);
    kernel::sched::grant_slice(busy);
    busy.resume.set(Resume::Unmap);
    assert!(kernel::irq::tick::tick(busy) == busy);
    assert_eq!((busy.kind.get(), busy.resume.get()), (Kind::User, Resume::Unmap));
    busy.resume.set(Resume::Frame);
    assert!(kernel::irq::tick::tick(busy) == scheduler);
    assert_eq!((busy.kind.get(), waits(busy)), (Kind::Preemption, Waits::Busy(Busy::Waiting)));
}

#[test]
fn a_space_does_not_schedule_its_own_threads() {
    use kernel::control::schedule::{Change, schedule};
    let (_machine, spaces) = machine(2);
    let thread_of = |index: usize| thread(spaces[index], index as u32, ThreadId::NIL);
    let (own, outside) = (thread_of(0), thread_of(1));
    let endless =
        Change { dest: own.id.get(), priority: !0, time: 0, processor: !0, preemption: !0 };
    own.scheduler.set(outside.id.get());
    assert!(schedule(own, &endless).is_err());
    assert_ne!(own.timeslice_us.get(), u64::MAX);
    assert!(schedule(outside, &endless).is_ok());
    assert_eq!(own.timeslice_us.get(), u64::MAX);
}

#[test]
fn a_postponed_receive_phase_can_be_cancelled() {
    let (_machine, spaces) = machine(1);
    let server = thread(spaces[0], 0, ThreadId::NIL);
    let client = thread(spaces[0], 1, ThreadId::NIL);
    let third = thread(spaces[0], 2, ThreadId::NIL);
    let _ = ipc(client, server.id.get(), ThreadId::ANY);
    let _ = ipc(third, client.id.get(), ThreadId::NIL);
    let _ = ipc(server, ThreadId::NIL, ThreadId::ANY);
    assert_eq!((client.resume.get(), waits(client)), (Resume::Receive, Waits::Busy(Busy::Ready)));
    assert_eq!(cancel::phase(client), Some(Phase::Receive));
    cancel::cancel(client);
    assert_eq!((client.resume.get(), waits(client)), (Resume::Ipc, Waits::Busy(Busy::Ready)));
    assert_eq!(registers(client).word(utcb::ERROR_CODE), 3 << 1 | 1);
    assert_eq!(waits(third), Waits::Busy(Busy::Polling));
}

#[test]
fn a_start_message_may_come_before_the_activation() {
    let (_machine, spaces) = machine(1);
    let pager = thread(spaces[0], 0, ThreadId::NIL);
    let id = ThreadId::global(USER_BASE + 9, 1);
    let made = lifecycle::create(id, spaces[0], pager.id.get()).expect("quota suffices");
    lifecycle::place_utcb(made, UTCBS + 9 * utcb::SIZE).expect("the location is good");
    for (index, word) in [2, 0x7000, 0x8000].into_iter().enumerate() {
        registers(pager).set_mr(index, word);
    }
    let _ = ipc(pager, id, ThreadId::NIL);
    assert_eq!(waits(pager), Waits::Busy(Busy::Polling));
    lifecycle::activate(made, pager.id.get());
    assert!(cpu().scheduler.ready.contains(made));
    set_current(made);
    let _ = entry::resume(made);
    assert_eq!((made.user_ip_sp(), made.is_ready()), ((0x7000, 0x8000), true));
    assert!(is_schedulable(pager));
}
