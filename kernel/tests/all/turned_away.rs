//! Who waits to send to a thread that loses its id is told so; however many they are, in steps, between which
//! interrupts are handled.

use crate::common::Machine;
use crate::common::tasks::{
    QUIET_LINE, ipc, machine, make, registers, system_call, thread, way_out,
};
use abi::id::USER_BASE;
use abi::syscall::Call;
use abi::{IpcError, IpcErrorKind, Phase, ThreadId, utcb};
use kernel::arch::{cpu, entry};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, lookup, own, set_current};
use kernel::{check, irq, sched};

/// Far more than are told in a step.
const MANY: u32 = IN_A_TASK * 6;
/// As many as its quota pays for.
const IN_A_TASK: u32 = 15;

struct Queue {
    _machine: Machine,
    /// May do everything.
    boss: TcbRef,
    receiver: TcbRef,
    senders: Vec<TcbRef>,
    /// More urgent than all others, waits for the quiet line.
    handler: TcbRef,
}

fn queue() -> Queue {
    let (machine, spaces) = machine(4 + MANY / IN_A_TASK);
    spaces[0].task.privileged.set(true);
    let boss = thread(spaces[0], 0, ThreadId::NIL);
    boss.scheduler.set(boss.id.get());
    let receiver = thread(spaces[2], 2, ThreadId::NIL);
    // Its task goes on.
    let _ = thread(spaces[2], 3, ThreadId::NIL);
    let handler = thread(spaces[1], 1, ThreadId::NIL);
    cpu().scheduler.ready.remove(handler);
    handler.priority.set(150);
    own::make_interrupts();
    let line = ThreadId::irq(QUIET_LINE);
    irq::attach(machine.spaces[0], line, handler.id.get()).expect("it may");
    let _ = ipc(handler, ThreadId::NIL, line);
    let senders = (0..MANY)
        .map(|index| {
            let space = spaces[3 + (index / IN_A_TASK) as usize];
            let one =
                make(ThreadId::global(USER_BASE + 10 + index, 1), space, index, ThreadId::NIL);
            let _ = ipc(one, receiver.id.get(), ThreadId::NIL);
            one
        })
        .collect();
    set_current(boss);
    sched::grant_slice(boss);
    Queue { _machine: machine, boss, receiver, senders, handler }
}

impl Queue {
    fn left(&self) -> usize {
        self.receiver.senders.iter().count()
    }

    /// The boss asks for an end of the receiver's id, which an interrupt meets again and again.
    fn ends(&self, arguments: [u64; 5]) {
        assert_eq!(self.left(), MANY as usize);
        cpu().interrupt.set(Some((0, QUIET_LINE)));
        let next = way_out(system_call(self.boss, Call::ThreadControl, arguments));
        assert!(
            next == self.handler && self.left() > MANY as usize / 2,
            "{} are left",
            self.left()
        );
        // The line stays masked; others come.
        let mut before = self.left();
        while self.boss.resume.get() == Resume::Again {
            assert_eq!(check::violations(), 0, "with {before} senders");
            cpu().pending_lines.set(1 << (QUIET_LINE + 1));
            cpu().scheduler.ready.remove(self.boss);
            set_current(self.boss);
            let _ = entry::resume(self.boss);
            let now = if self.boss.resume.get() == Resume::Again { self.left() } else { 0 };
            let goes_on = now < before || before == 0;
            assert!(goes_on && now + 4 >= before, "from {before} to {now} in a step");
            before = now;
        }
        cpu().pending_lines.set(0);
        let error = IpcError::new(IpcErrorKind::NonExisting, Phase::Send);
        for one in &self.senders {
            assert_eq!(IpcError::decode(registers(*one).word(utcb::ERROR_CODE)), Some(error));
            assert!(one.is_ready() && cpu().scheduler.ready.contains(*one));
        }
        assert_eq!(self.boss.frame().results()[0], 1);
        assert_eq!(check::violations(), 0);
    }
}

#[test]
fn many_who_wait_to_send_to_one_who_is_deleted_are_told_in_steps() {
    let queue = queue();
    let id = queue.receiver.id.get();
    queue.ends([id.0, 0, 0, 0, !0]);
    assert!(lookup(id).is_none());
}

#[test]
fn many_who_wait_to_send_to_one_who_gets_a_new_version_are_told_in_steps() {
    let queue = queue();
    let new = ThreadId::global(queue.receiver.id.get().number(), 2);
    queue.ends([new.0, 0, 0, new.0, !0]);
    assert!(queue.receiver.id.get() == new && queue.left() == 0);
}
