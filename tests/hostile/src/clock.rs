//! A driver that somebody else would like to rob: the clock's interrupt and ports, and the
//! event timer's memory, which its description names.

use alloc::format;
use alloc::string::String;

use abi::{ThreadId, Time, Timeouts};
use runtime::port::Ports;
use runtime::window::Window;
use runtime::{Msg, ipc, root};

use crate::Outcome;

/// Its name.
const NAME: &str = "clock";
/// Asks whether it is well. Answer: interrupts so far, 1 if all is as it was.
const LABEL: u64 = 0x710;
const LINE: u32 = 8;
const TIMER: u64 = 0xFED0_0000;
const AT: u64 = 0x3E_0000_0000;
/// Where the block is that it asks for when the attacks are over.
const MORE: u64 = 0x3E_0010_0000;

/// The driver.
pub fn run() {
    if let Err(why) = serve() {
        panic!("the clock's driver: {why}");
    }
}

fn serve() -> Result<(), String> {
    let refused = |what: &'static str| move |why: root::Refusal| format!("{what}: {why}");
    let ports = root::ports(0x70, 2).map_err(refused("ports 0x70, 0x71"))?;
    let irq = root::attach_irq(LINE).map_err(refused("interrupt 8"))?;
    let mut window = Window::claim(AT, 0x1000).ok_or("no window")?;
    root::memory(&mut window, Some(TIMER)).map_err(refused("the event timer's page"))?;
    let capabilities = window.read(0);
    start(&ports);
    root::register(NAME).map_err(refused("the name"))?;
    let (mut interrupts, mut reply) = (0_u64, None);
    loop {
        let (from, msg) = ipc::next_request(reply);
        reply = if from == irq {
            interrupts += 1;
            read(&ports, 0x0C);
            Some((from, Msg::default()))
        } else if msg.label() == LABEL {
            let more = Window::claim(MORE, 0x1000);
            let has_more = more.is_none_or(|mut more| root::memory(&mut more, None).is_ok());
            let same = window.read(0) == capabilities && has_more;
            Some((from, Msg::new(proto::OK).words(&[interrupts, same.into()])))
        } else {
            None
        };
    }
}

/// Periodic interrupts, 64 a second.
fn start(ports: &Ports) {
    let a = read(ports, 0x0A) & 0xF0 | 10;
    write(ports, 0x0A, a);
    let b = read(ports, 0x0B) | 1 << 6;
    write(ports, 0x0B, b);
    read(ports, 0x0C);
}

fn read(ports: &Ports, register: u8) -> u8 {
    ports.write8(0, register);
    ports.read8(1)
}

fn write(ports: &Ports, register: u8, value: u8) {
    ports.write8(0, register);
    ports.write8(1, value);
}

/// After all attacks it still has its interrupts, and its memory is what it was.
pub fn is_unharmed() -> Outcome {
    let driver = root::find(NAME, 500).map_err(|why| format!("it is not there: {why}"))?;
    let (first, _) = ask(driver)?;
    ipc::sleep(200_000);
    let (second, same) = ask(driver)?;
    match (second > first, same) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("its interrupts stopped at {first}")),
        (_, false) => Err(String::from("its memory is not what it was, or there is no more")),
    }
}

fn ask(driver: ThreadId) -> Result<(u64, bool), String> {
    let patience = Timeouts::new(Time::micros(500_000), Time::micros(500_000));
    let answer = ipc::call_within(driver, &Msg::new(LABEL), patience)
        .map_err(|error| format!("it does not answer: {error:?}"))?;
    Ok((answer.mr[0], answer.mr[1] == 1))
}
