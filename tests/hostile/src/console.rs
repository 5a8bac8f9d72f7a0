//! The console and the log: what is typed, control characters, strings that never come, and
//! more text than the line carries.

use alloc::format;

use abi::{Time, Timeouts};
use interfaces::common::Refusal;
use interfaces::console::Client;
use interfaces::voice;
use proto::console as op;
use runtime::root;
use runtime::service::{Error, Thread, label};
use runtime::{Msg, clock, ipc, println, thread, utcb};

use crate::Outcome;

/// Where nothing is mapped.
const NOWHERE: u64 = 0x3C_0000_0000;
/// Threads that hold the driver up, and how long a line may take beside them, µs.
const STALLERS: usize = 8;
const LINE_US: u64 = 2_000_000;
/// Log messages at once, and how long they may take in all, µs.
const FLOOD: u64 = 300;
const FLOOD_US: u64 = 10_000_000;

fn patience() -> Timeouts {
    Timeouts::new(Time::micros(500_000), Time::micros(500_000))
}

/// What is typed, how much of it, and the terminal itself are the monitor's.
pub fn anothers_terminal() -> Outcome {
    let driver = root::lookup(op::NAME).map_err(|why| format!("no console: {why}"))?;
    let console = Client::new(Thread(driver));
    let mut room = [0; op::WORD_BYTES];
    refused("read-raw", console.read_raw(&mut room))?;
    refused("read-line", console.read_line(&mut room))?;
    refused("read-char", console.read_char())?;
    refused("complete", console.complete(b"words"))?;
    refused("statistics", console.statistics())?;
    refused("write-raw", console.write_raw(b"\x1b[2J"))
}

fn refused<T>(what: &str, result: Result<Result<T, Refusal>, Error>) -> Outcome {
    match result.map(|answer| answer.map(|_| ())) {
        Ok(Err(Refusal::NotAllowed)) => Ok(()),
        got => Err(format!("the console answered {got:?} to {what}")),
    }
}

/// Who may say what the root task says may not say it to the console, either.
pub fn voice_of_root() -> Outcome {
    let driver = root::lookup(op::NAME).map_err(|why| format!("no console: {why}"))?;
    let text = b"root: all is lost.\n";
    let said = voice::Client::new(Thread(driver)).write_for(None, text);
    said.map_err(|why| format!("the console did not take it: {why:?}"))?;
    // Who waits for an answer hears that there is no such function. The words: none (a task), text.
    let words = [0, 0, text.len() as u64, 0x7F, 0x7F, 0x7F];
    let msg = Msg::new(op::WRITE_FOR).words(&words);
    match ipc::call_within(driver, &msg, patience()) {
        Ok(reply) if reply.label() == label::UNKNOWN => Ok(()),
        got => Err(format!("the console answered {got:?}")),
    }
}

/// Control characters, by way of the driver and of the root task: the transcript shows them.
pub fn control_characters() -> Outcome {
    println!("by the console: \x1b[2J\u{9b}31m\u{202e}.");
    root::log(b"by the log: \x1b[2J\x9b31m\rroot: all is lost.");
    Ok(())
}

/// Strings from a page whose pager never answers; meanwhile others write.
pub fn strings_that_never_come() -> Outcome {
    let driver = root::lookup(op::NAME).map_err(|why| format!("no console: {why}"))?;
    let me = thread::me();
    for _ in 0..STALLERS {
        let stall = move || {
            // This task's main thread, which answers nobody's faults.
            utcb::set_pager(me);
            utcb::set_xfer_timeouts(Timeouts::NEVER);
            let words = abi::StringItem::simple(NOWHERE, 4096);
            let mut msg = Msg::new(op::WRITE_LONG);
            msg.tag = abi::MsgTag::new(op::WRITE_LONG, 1, 2);
            (msg.mr[0], msg.mr[1], msg.mr[2]) = (4096, words[0], words[1]);
            for _ in 0..200 {
                let _ = ipc::send(driver, &msg);
            }
            thread::park();
        };
        thread::spawn(stall).map_err(|why| format!("no thread: {why}"))?;
    }
    ipc::sleep(5_000);
    for line in 0..5 {
        let start_us = clock::now_us();
        println!("beside strings that never come: line {line}");
        let took_us = clock::now_us() - start_us;
        if took_us > LINE_US {
            return Err(format!("a line took {took_us} µs"));
        }
    }
    Ok(())
}

/// More than the line carries, by way of the root task: it neither stands still nor shows all.
pub fn flood_of_logs() -> Outcome {
    let start_us = clock::now_us();
    let text = [b'x'; op::WORD_BYTES];
    (0..FLOOD).for_each(|_| root::log(&text));
    let took_us = clock::now_us() - start_us;
    if took_us > FLOOD_US {
        return Err(format!("{FLOOD} messages took {took_us} µs"));
    }
    ipc::sleep(1_000_000);
    root::log(b"the flood is over");
    Ok(())
}

/// The console's driver has something to say itself: the root task may not take its wait for
/// the answer for a driver that is ready for text.
pub fn voice() {
    root::register(op::NAME).unwrap_or_else(|why| panic!("no name: {why}"));
    root::log(b"the driver itself is heard");
    root::log(b"and again");
}
