//! Interrupts that a device signals by a message: one (MSI) of the emulator's device for teaching, `edu`, which
//! interrupts whenever it is told to, and several (MSI-X) of a network card.

use abi::id::{MESSAGE_BASE, SYSTEM_BASE};
use abi::{ThreadId, Time};
use pci::{Function, Messages, Table};
use root_harness::edu;
use runtime::{Msg, ipc, kernel, kip, sigma0};

use crate::report::{Outcome, Sentence, because, case};
use crate::{check, same};

/// The line that the device is to signal.
const LINE: u32 = MESSAGE_BASE + 5;
const IRQ: ThreadId = ThreadId::irq(LINE);

/// Runs the tests.
pub fn run() {
    case("a_device_s_message_is_an_interrupt", arrives);
    case("messages_before_the_acknowledgement_are_one", merged);
    case("a_message_that_nobody_handles_is_dropped", dropped);
    case("each_line_of_messages_can_be_attached", lines);
    case("messages_of_a_table_are_lines_of_their_own", table);
}

fn sentence<T>(text: &str) -> Outcome<T> {
    Err(Sentence::new(format_args!("{text}")))
}

/// Whether an interrupt is there within 10 ms.
fn comes() -> bool {
    ipc::receive(IRQ, Time::micros(10_000)).is_ok()
}

fn with_device(test: fn() -> Outcome) -> Outcome {
    let Some(message) = kip::get().message(LINE) else {
        return sentence("the interface page names no message");
    };
    edu::signal_by(message).or_else(sentence)?;
    because(kernel::attach_irq(LINE, ThreadId::ROOT), "attaching the line")?;
    let result = test();
    because(kernel::detach_irq(LINE), "detaching the line")?;
    result
}

fn arrives() -> Outcome {
    with_device(|| {
        check!(!comes(), "an interrupt came before the device was told to");
        for _ in 0..10 {
            edu::raise();
            because(ipc::receive(IRQ, Time::micros(50_000)), "waiting for the message")?;
            check!(!comes(), "one message interrupted twice");
            because(ipc::send(IRQ, &Msg::new(0)), "the acknowledgement")?;
        }
        Ok(())
    })
}

fn merged() -> Outcome {
    with_device(|| {
        (0..1_000).for_each(|_| edu::raise());
        check!(comes(), "none of a thousand messages came");
        check!(!comes(), "a second one came before the acknowledgement");
        because(ipc::send(IRQ, &Msg::new(0)), "the acknowledgement")?;
        check!(comes(), "what came before the acknowledgement was lost");
        because(ipc::send(IRQ, &Msg::new(0)), "the second acknowledgement")?;
        check!(!comes(), "more than one was kept");
        edu::raise();
        check!(comes(), "the line is silent after a flood");
        because(ipc::send(IRQ, &Msg::new(0)), "the third acknowledgement").map(|_| ())
    })
}

fn dropped() -> Outcome {
    with_device(|| {
        edu::raise();
        check!(comes(), "the first message to the handler was lost");
        edu::raise();
        because(kernel::detach_irq(LINE), "detaching the line")?;
        edu::raise();
        Ok(())
    })?;
    // Neither acknowledged nor wanted by anybody: the next handler begins anew.
    with_device(|| {
        check!(!comes(), "another handler's message came");
        edu::raise();
        check!(comes(), "the line is silent for the next handler");
        Ok(())
    })
}

fn lines() -> Outcome {
    for line in MESSAGE_BASE..SYSTEM_BASE {
        let Some(message) = kip::get().message(line) else {
            return sentence("a line without a message");
        };
        let first = kip::get().message(MESSAGE_BASE).map_or(0, |first| first.data);
        same!("its word", message.data - first, line - MESSAGE_BASE);
        because(kernel::attach_irq(line, ThreadId::ROOT), "attaching a line of messages")?;
        because(kernel::detach_irq(line), "detaching it")?;
    }
    let wires = [0, 8, MESSAGE_BASE - 1, SYSTEM_BASE];
    check!(wires.iter().all(|line| kip::get().message(*line).is_none()), "a wire has a message");
    Ok(())
}

/// Vendor and device of the card (Intel 82574), and its registers: causes, cause by hand, causes that
/// interrupt, which message each has.
const CARD: (u16, u16) = (0x8086, 0x10D3);
const CAUSES: u64 = 0xC0;
const CAUSE: u64 = 0xC8;
const OPEN: u64 = 0xD0;
const MESSAGES: u64 = 0xE4;
/// The causes of the two queues of what is received, which have messages 0 and 1.
const QUEUES: [u32; 2] = [1 << 20, 1 << 21];
/// Message numbers in four bits for each queue, of which the highest says that they count.
const FIRST_AND_SECOND: u32 = 0x98;

fn table() -> Outcome {
    let config = edu::config();
    let Some(function) = Function::find(&config, CARD.0, CARD.1) else {
        return sentence("there is no card: the machine needs `--device e1000e`");
    };
    let Some(Messages::Table(table)) = function.messages() else {
        return sentence("the card has no table of messages");
    };
    let places = (function.memory(0), function.memory(table.registers));
    let (Some(registers), Some(entries)) = places else { return sentence("it has no registers") };
    function.enable();
    let windows = [registers.address, entries.address + u64::from(table.offset)]
        .map(|address| sigma0::memory(Some(address), 12));
    let [Some(registers), Some(entries)] = windows else {
        return sentence("sigma0 does not give the card's registers");
    };
    let lines = [LINE + 1, LINE + 2];
    for (entry, line) in (0..).zip(lines) {
        let Some(message) = kip::get().message(line) else { return sentence("no message") };
        let words = (0..).step_by(4).zip(Table::entry(message));
        words.for_each(|(at, word)| entries.write32(entry * Table::ENTRY + at, word));
        because(kernel::attach_irq(line, ThreadId::ROOT), "attaching a line")?;
    }
    function.signal_by_table();
    registers.write32(MESSAGES, FIRST_AND_SECOND);
    registers.write32(OPEN, QUEUES[0] | QUEUES[1]);
    for which in [0, 1, 1, 0] {
        registers.write32(CAUSE, QUEUES[which]);
        let (from, _) = because(ipc::wait(Time::micros(50_000)), "waiting for a message")?;
        same!("the line", from, ThreadId::irq(lines[which]));
        registers.write32(CAUSES, QUEUES[which]);
        because(ipc::send(from, &Msg::new(0)), "the acknowledgement")?;
    }
    check!(ipc::wait(Time::micros(10_000)).is_err(), "a message came that nobody sent");
    for line in lines {
        because(kernel::detach_irq(line), "detaching it")?;
    }
    Ok(())
}
