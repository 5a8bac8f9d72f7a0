//! Interrupts as messages (X.2 6.5; Liedtke 1995, 2.2): each line is a thread id
//! that sends empty messages to its handler. A line stays masked from the
//! delivery of its message until the handler acknowledges it by any message to
//! the line's id (`ipc::send`).
//!
//! The timer's interrupt is a [`tick`], which [`wake`]s whose time has come; another processor's says that somebody
//! comes back ([`comers`], [`watch`], [`quick`]).

pub mod ahead;
pub mod comers;
pub mod quick;
pub mod tick;
pub mod wake;
pub mod watch;

use abi::id::SYSTEM_BASE;
use abi::{CallError, ThreadId};

use crate::arch::{self, cpu, preemption};
use crate::ipc::words::Message;
use crate::ipc::{finish, queue, send, wait};
use crate::sched::{self, leaving, slice};
use crate::space::SpaceRef;
use crate::thread;
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::thread::{Kind, TcbRef};

/// The timer's line; the kernel keeps it.
const TIMER_LINE: u32 = 0;
/// The cascade of the second interrupt controller; the kernel keeps it.
const CASCADE_LINE: u32 = 2;

/// An interrupt of `line` came while `running` had the processor in user mode or
/// was idle; returns who runs next.
#[must_use]
pub fn interrupt(running: TcbRef, line: u32) -> TcbRef {
    sched::requeue(running);
    handle(running, line)
}

fn handle(running: TcbRef, line: u32) -> TcbRef {
    if line == TIMER_LINE {
        return tick::tick(running);
    }
    deliver(line);
    slice::after_interrupt(running)
}

/// Handles the interrupts that came in a preemption window; `running` has been requeued.
/// However many they are, it loses the processor once at most.
#[must_use]
pub fn handle_pending(running: TcbRef) -> TcbRef {
    // The stretch that led here may have been as long as one may be: what came since is handled, too.
    preemption::let_in();
    // Whoever looks clears that bit.
    let lines = cpu().pending_lines.get();
    cpu().pending_lines.set(lines & 1 << leaving::LINE);
    let mut devices = lines & !(1 << TIMER_LINE | 1 << leaving::LINE);
    while devices != 0 {
        deliver(devices.trailing_zeros());
        devices &= devices - 1;
    }
    let is_to_look = lines & 1 << leaving::LINE != 0;
    let next = if lines & 1 << TIMER_LINE != 0 {
        if is_to_look {
            cpu().scheduler.wakeup.look_again();
        }
        tick::noted(running)
    } else {
        if is_to_look && !ahead::goes_first(running) {
            comers::look();
        }
        slice::after_interrupt(running)
    };
    if !next.is_ready() {
        return sched::pick();
    }
    if is_to_look && next == running { watch::behind_who_came(next) } else { next }
}

/// Sends the message of `line` (already masked) to its handler, if it has one.
fn deliver(line: u32) {
    let Some(source) = thread::lookup(ThreadId::irq(line)) else { return };
    let Some(handler) = thread::lookup(source.partner.get()) else { return };
    if wait::waits(source) == Waits::Busy(Busy::Polling) {
        return;
    }
    source.kind.set(Kind::Interrupt);
    source.then_from.set(ThreadId::NIL);
    if send::accepts(handler, source) {
        finish::arrived(source, handler, Message::made(Kind::Interrupt, source));
        rendezvous::set_busy(source, Busy::Halted);
        sched::requeue(handler);
    } else {
        rendezvous::set_busy(source, Busy::Polling);
        queue::append(handler, source);
    }
}

/// ThreadControl on an interrupt: attaches `handler`, or detaches if `handler` is
/// the interrupt itself.
pub fn attach(caller: SpaceRef, line: ThreadId, handler: ThreadId) -> Result<(), CallError> {
    if !caller.is_privileged() {
        return Err(CallError::NoPrivilege);
    }
    let number = line.number();
    let kept = [TIMER_LINE, CASCADE_LINE].contains(&number);
    let Some(source) = thread::lookup(line).filter(|_| !kept && number < SYSTEM_BASE) else {
        return Err(CallError::InvalidThread);
    };
    if handler == line {
        detach(source);
        return Ok(());
    }
    if handler.is_irq() || thread::lookup(handler).is_none() {
        return Err(CallError::InvalidThread);
    }
    detach(source);
    source.partner.set(handler);
    if let Some(handler) = thread::lookup(handler) {
        handler.lines.set(handler.lines.get() | 1 << number);
    }
    arch::open_line(number as u8);
    Ok(())
}

fn detach(source: TcbRef) {
    arch::mask(source.id.get().number() as u8);
    if let Some(handler) = thread::lookup(source.partner.get()) {
        queue::remove(handler, source);
        handler.lines.set(handler.lines.get() & !(1 << source.id.get().number()));
    }
    rendezvous::set_busy(source, Busy::Halted);
    source.partner.set(ThreadId::NIL);
}

/// Detaches every interrupt that `handler`, which is about to lose its id, handles.
pub fn detach_handler(handler: TcbRef) {
    let mut lines = handler.lines.replace(0);
    while lines != 0 {
        if let Some(source) = thread::lookup(ThreadId::irq(lines.trailing_zeros())) {
            detach(source);
        }
        lines &= lines - 1;
    }
}
