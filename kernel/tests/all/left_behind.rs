//! Threads that are not ready any more and still in the ready queue: however many they are, nobody more urgent
//! waits until all of them have left it.

use crate::common::Machine;
use crate::common::tasks::{QUIET_LINE, ipc, machine, make, registers, thread, way_out};
use abi::ThreadId;
use abi::id::USER_BASE;
use abi::syscall::exregs as bit;
use abi::utcb::PREEMPT_DELAY;
use kernel::arch::cpu;
use kernel::check;
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::irq;
use kernel::sched;
use kernel::thread::{TcbRef, own, set_current};

/// Far more than leave the queue between two windows.
const MANY: u32 = IN_A_TASK * 6;
/// As many as its quota pays for.
const IN_A_TASK: u32 = 15;

struct Crowd {
    _machine: Machine,
    /// Has the processor, and is more urgent than the many.
    running: TcbRef,
    many: Vec<TcbRef>,
    /// More urgent than all of them, waits for the quiet line.
    handler: TcbRef,
}

fn crowd() -> Crowd {
    let (machine, spaces) = machine(3 + MANY / IN_A_TASK);
    let running = thread(spaces[0], 0, ThreadId::NIL);
    let many = (0..MANY)
        .map(|index| {
            let space = spaces[2 + (index / IN_A_TASK) as usize];
            let one =
                make(ThreadId::global(USER_BASE + 10 + index, 1), space, index, ThreadId::NIL);
            sched::change_priority(one, 90);
            one
        })
        .collect();
    let handler = thread(spaces[1], 1, ThreadId::NIL);
    cpu().scheduler.ready.remove(handler);
    handler.priority.set(150);
    own::make_interrupts();
    let line = ThreadId::irq(QUIET_LINE);
    irq::attach(machine.spaces[0], line, handler.id.get()).expect("it may");
    let _ = ipc(handler, ThreadId::NIL, line);
    sched::grant_slice(running);
    set_current(running);
    spaces[0].task.privileged.set(true);
    Crowd { _machine: machine, running, many, handler }
}

impl Crowd {
    /// All of the many are in the queue, and none of them is ready. The one who runs waits, too; meanwhile the
    /// interrupt comes.
    fn the_handler_does_not_wait_for_them(&self) {
        let queue = &cpu().scheduler.ready;
        assert!(self.many.iter().all(|one| queue.contains(*one) && !one.is_ready()));
        assert_eq!(check::violations(), 0);
        cpu().interrupt.set(Some((0, QUIET_LINE)));
        let next = way_out(ipc(self.running, ThreadId::NIL, ThreadId::ANY));
        assert!(next == self.handler, "{next:?} comes first");
        let left = self.many.iter().filter(|one| queue.contains(**one)).count();
        assert!(left > MANY as usize / 2, "it has waited for all but {left} of {MANY}");
        // What is left leaves when the processor is looked for again; and it is found then.
        let last = *self.many.last().expect("there are many");
        last.unhalt();
        sched::make_ready(last);
        set_current(next);
        assert!(way_out(ipc(next, ThreadId::NIL, ThreadId::ANY)) == last);
        assert_eq!(check::violations(), 0);
    }
}

#[test]
fn a_handler_does_not_wait_for_many_who_were_halted() {
    let crowd = crowd();
    let halt = Registers { control: bit::HALT_VALID | bit::HALT, ..Registers::default() };
    for one in &crowd.many {
        assert!(exchange_registers(crowd.running, one.id.get(), &halt).is_some());
    }
    crowd.the_handler_does_not_wait_for_them();
}

/// Each gets the processor from somebody more urgent, by ThreadSwitch, and waits for a message: nobody looks for
/// them in the queue then.
#[test]
fn a_handler_does_not_wait_for_many_who_wait() {
    let crowd = crowd();
    for one in &crowd.many {
        assert!(ipc(*one, ThreadId::NIL, ThreadId::ANY) == crowd.running);
    }
    crowd.the_handler_does_not_wait_for_them();
}

/// The interrupt breaks the look for the most urgent off; one who is ready is behind those who are left.
#[test]
fn the_end_of_a_slice_is_not_delayed_for_those_who_may_be_ready() {
    let crowd = crowd();
    let (ready, many) = crowd.many.split_last().expect("there are many");
    crowd.many.iter().for_each(|one| sched::change_priority(*one, 120));
    let halt = Registers { control: bit::HALT_VALID | bit::HALT, ..Registers::default() };
    for one in many {
        assert!(exchange_registers(crowd.running, one.id.get(), &halt).is_some());
    }
    registers(crowd.running).set_flags(PREEMPT_DELAY);
    crowd.running.max_delay_us.set(5_000);
    crowd.running.sensitive_priority.set(110);
    cpu().scheduler.slice_left_us.set(0);
    cpu().interrupt.set(Some((0, QUIET_LINE)));
    let _ = irq::tick::tick(crowd.running);
    assert!(cpu().scheduler.ready.contains(*ready) && ready.is_ready());
    assert!(!crowd.running.delay_used.get(), "somebody more urgent than it says was there");
}
