//! Interrupts as messages (X.2 6.5), with the CMOS clock on line 8.

use abi::{MsgTag, ThreadId, Time, protocol};
use runtime::port::Ports;
use runtime::{Msg, clock, ipc, kernel};

use crate::report::{Outcome, because, case};
use crate::victim::Victim;
use crate::{CMOS, check, same};

/// The clock's interrupt line.
const LINE: u32 = 8;
const IRQ: ThreadId = ThreadId::irq(LINE);
const REGISTER_A: u8 = 0x0A;
const REGISTER_B: u8 = 0x0B;
const REGISTER_C: u8 = 0x0C;
const PERIODIC: u8 = 1 << 6;

/// Runs the tests.
pub fn run() {
    case("interrupts_arrive_once_per_acknowledgement", acknowledged);
    case("interrupts_wait_for_a_busy_handler", busy);
    case("detached_interrupts_are_silent", detached);
    case("acknowledgement_by_a_stranger_fails", stranger);
}

fn read(register: u8) -> u8 {
    let ports = Ports::new(CMOS, 2);
    ports.write8(0, register);
    ports.read8(1)
}

fn write(register: u8, value: u8) {
    let ports = Ports::new(CMOS, 2);
    ports.write8(0, register);
    ports.write8(1, value);
}

/// Lets the clock interrupt 32768 >> (rate - 1) times a second.
pub fn start(rate: u8) {
    write(REGISTER_A, 0x20 | rate);
    write(REGISTER_B, read(REGISTER_B) | PERIODIC);
    calm();
}

/// Stops the periodic interrupts.
pub fn stop() {
    write(REGISTER_B, read(REGISTER_B) & !PERIODIC);
    calm();
}

/// Takes the clock's request back: it interrupts again only after that.
pub fn calm() {
    let _ = read(REGISTER_C);
}

/// Waits for an interrupt, at most 50 ms.
fn wait() -> Outcome {
    let msg = because(ipc::receive(IRQ, Time::micros(50_000)), "waiting for an interrupt")?;
    same!("the interrupt's tag", msg.tag, MsgTag::protocol(protocol::INTERRUPT, 0, 0, 0));
    Ok(())
}

fn with_clock(rate: u8, test: fn() -> Outcome) -> Outcome {
    because(kernel::attach_irq(LINE, ThreadId::ROOT), "attaching the clock's line")?;
    start(rate);
    let result = test();
    stop();
    because(kernel::detach_irq(LINE), "detaching the clock's line")?;
    result
}

fn acknowledged() -> Outcome {
    // Rate 6: 1024 a second.
    with_clock(6, || {
        wait()?;
        let begin = clock::now_us();
        for _ in 0..20 {
            calm();
            because(ipc::send(IRQ, &Msg::new(0)), "the acknowledgement")?;
            wait()?;
        }
        let took_us = clock::now_us() - begin;
        check!(
            (10_000..40_000).contains(&took_us),
            "20 interrupts of 1024 a second took {took_us} us"
        );
        // Not acknowledged: none comes, however often the device asks.
        calm();
        let silent = ipc::receive(IRQ, Time::micros(10_000));
        check!(silent.is_err(), "an interrupt came before the acknowledgement");
        // Acknowledged by a call that waits for the next.
        let next = because(ipc::call(IRQ, &Msg::new(0)), "acknowledging and waiting")?;
        same!("the label", next.tag.protocol_label(), protocol::INTERRUPT);
        Ok(())
    })
}

fn busy() -> Outcome {
    with_clock(6, || {
        // Not waiting while it happens: the message is queued, exactly one.
        let begin = clock::now_us();
        while clock::now_us() - begin < 20_000 {}
        let first = because(ipc::receive(IRQ, Time::ZERO), "taking a queued interrupt")?;
        same!("the label", first.tag.protocol_label(), protocol::INTERRUPT);
        check!(ipc::receive(IRQ, Time::ZERO).is_err(), "two interrupts were queued");
        // The sender of an open wait is the line's id.
        calm();
        because(ipc::send(IRQ, &Msg::new(0)), "the acknowledgement")?;
        let (from, _) = because(ipc::wait(Time::micros(50_000)), "an open wait")?;
        same!("the sender", from, IRQ);
        Ok(())
    })
}

fn detached() -> Outcome {
    with_clock(6, wait)?;
    start(6);
    let after = ipc::receive(IRQ, Time::micros(10_000));
    stop();
    check!(after.is_err(), "a detached line sent an interrupt");
    Ok(())
}

fn stranger() -> Outcome {
    let victim = Victim::task()?;
    because(kernel::attach_irq(LINE, ThreadId::ROOT), "attaching the clock's line")?;
    let words = [0; 8];
    let (_, mr) = victim.ipc(IRQ, ThreadId::NIL, u64::from(Time::ZERO.0) << 16, words)?;
    let (_, early) = victim.ipc(ThreadId::NIL, IRQ, u64::from(Time::ZERO.0), words)?;
    because(kernel::detach_irq(LINE), "detaching the clock's line")?;
    check!(MsgTag(mr[0]).is_error(), "a stranger's acknowledgement was taken");
    check!(MsgTag(early[0]).is_error(), "a stranger received an interrupt");
    victim.delete()
}
