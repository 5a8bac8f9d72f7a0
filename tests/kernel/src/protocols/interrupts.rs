//! Interrupts as messages (X.2 6.5), with the CMOS clock on line 8, which signals by an edge,
//! and the power management timer on line 9, which signals by its level.

use abi::id::{MESSAGE_BASE, SYSTEM_BASE};
use abi::{CallError, MsgTag, ThreadId, Time, protocol};
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
    case("an_edge_before_the_acknowledgement_is_kept", early);
    case("a_level_interrupts_until_the_device_is_calm", level);
    case("lines_above_the_isa_bus_s_exist_as_far_as_there_are_inputs", lines);
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

fn early() -> Outcome {
    with_clock(6, || {
        wait()?;
        // The device asks again, and only then is its first interrupt acknowledged.
        calm();
        ipc::sleep(3_000);
        because(ipc::send(IRQ, &Msg::new(0)), "the acknowledgement")?;
        wait()?;
        // A device that is calm has at most the one left that was kept.
        stop();
        because(ipc::send(IRQ, &Msg::new(0)), "the acknowledgement")?;
        if ipc::receive(IRQ, Time::micros(10_000)).is_ok() {
            because(ipc::send(IRQ, &Msg::new(0)), "the acknowledgement")?;
        }
        let more = ipc::receive(IRQ, Time::micros(10_000));
        check!(more.is_err(), "an interrupt came that the device did not ask for");
        Ok(())
    })
}

/// Ports of the power management block, as the emulator's firmware sets it up: status, enable.
const POWER: u16 = 0x600;
const POWER_ENABLE: u16 = 2;
/// The timer's overflow, each 2.34 s, in both.
const OVERFLOW: u8 = 1;
/// Its line.
const POWER_LINE: u32 = 9;

fn level() -> Outcome {
    const IRQ: ThreadId = ThreadId::irq(POWER_LINE);
    let ports = Ports::new(POWER, 4);
    because(kernel::attach_irq(POWER_LINE, ThreadId::ROOT), "attaching line 9")?;
    ports.write8(0, OVERFLOW);
    ports.write8(POWER_ENABLE, OVERFLOW);
    because(ipc::receive(IRQ, Time::micros(6_000_000)), "waiting for the timer's overflow")?;
    let early = ipc::receive(IRQ, Time::micros(5_000));
    because(ipc::send(IRQ, &Msg::new(0)), "the acknowledgement")?;
    let again = ipc::receive(IRQ, Time::micros(5_000));
    ports.write8(POWER_ENABLE, 0);
    ports.write8(0, OVERFLOW);
    because(ipc::send(IRQ, &Msg::new(0)), "the second acknowledgement")?;
    let calm = ipc::receive(IRQ, Time::micros(5_000));
    because(kernel::detach_irq(POWER_LINE), "detaching line 9")?;
    check!(early.is_err(), "the line interrupted before the acknowledgement");
    because(again, "waiting for the interrupt of a device that still asks")?;
    check!(calm.is_err(), "the line of a calm device interrupted");
    Ok(())
}

fn lines() -> Outcome {
    for line in [16, 20, 23] {
        because(kernel::attach_irq(line, ThreadId::ROOT), "attaching a line of the I/O APIC")?;
        because(kernel::detach_irq(line), "detaching it")?;
    }
    for line in [24, MESSAGE_BASE - 1, SYSTEM_BASE] {
        let refused = kernel::attach_irq(line, ThreadId::ROOT);
        same!("a line that does not exist", refused, Err(CallError::InvalidThread));
    }
    Ok(())
}
