//! Keeping servers from serving, and using up what they have for all.

use abi::{IpcErrorKind, Phase, ThreadId, Time, Timeouts};
use alloc::format;
use alloc::string::String;
use proto::{console, layout, pager, root as op, unix};
use runtime::window::Window;
use runtime::{Msg, ipc, root, thread, utcb};

use crate::hostile::{Hostile, Reached, rest};
use crate::machine;
use crate::order::Help;

/// Where nothing is mapped.
const NOWHERE: u64 = layout::WINDOWS + 0x4000_0000;
/// How long a request is left with a server, µs.
const PATIENCE_US: u64 = 20_000;
/// More blocks, names and waits than any server has.
const MANY: u64 = 64;

/// Sends a string of a page that never comes to the server.
extern "C" fn send_nothing(server: u64) -> ! {
    // The main thread, which answers nobody's faults.
    utcb::set_pager(ThreadId(machine::shared(0)));
    utcb::set_xfer_timeouts(Timeouts::NEVER);
    let item = abi::StringItem::simple(NOWHERE, 4096);
    let mut msg = Msg::new(console::WRITE_LONG);
    (msg.mr[0], msg.mr[1], msg.mr[2]) = (4096, item[0], item[1]);
    msg.tag = abi::MsgTag::new(console::WRITE_LONG, 1, 2);
    let _ = ipc::send(ThreadId(server), &msg);
    rest()
}

/// One thread for each server; the judge looks whether they still serve.
pub fn stuck_string(hostile: &Hostile) -> Reached {
    machine::share(0, thread::me().0);
    let named = [console::NAME, pager::NAME, unix::NAME].map(|name| root::lookup(name).ok());
    let servers = named.into_iter().flatten().chain([ThreadId::ROOT]);
    for server in servers {
        if let Ok((sender, index)) = root::create_thread() {
            machine::start(sender, index, send_nothing, server.0);
        }
    }
    hostile.ask(Help::Pause, 100_000);
    None
}

/// Asks the console for what is typed, unedited.
pub fn read_raw(_: &Hostile) -> Reached {
    let driver = root::find(console::NAME, 100).ok()?;
    let patience = Timeouts::new(Time::micros(PATIENCE_US), Time::micros(PATIENCE_US));
    match ipc::call_within(driver, &Msg::new(console::READ_RAW), patience) {
        Ok(reply) if reply.label() == proto::OK && reply.mr[0] == 1 => None,
        Ok(_) => Some(String::from("the console gave typed keys to an ordinary task")),
        Err(error) if error.kind == IpcErrorKind::Timeout && error.phase == Phase::Receive => {
            Some(String::from("the console took a task's request for all keys"))
        }
        Err(_) => None,
    }
}

/// Takes page after page from the root task; another task needs one.
pub fn memory_blocks(hostile: &Hostile) -> Reached {
    let place = |index| Window::claim(layout::WINDOWS + index * 4096, 4096);
    let windows = (0..MANY / 2).filter_map(place);
    let got = windows.filter_map(|mut window| root::memory(&mut window, None).ok()).count();
    let served = hostile.ask(Help::TryMemory, 0)[0] == 1;
    (!served).then(|| format!("a task with {got} blocks of memory left none for others"))
}

/// Registers name after name; another task needs one.
pub fn names(hostile: &Hostile) -> Reached {
    let got = (0..MANY).filter(|index| root::register(&format!("name-{index}")).is_ok()).count();
    let served = hostile.ask(Help::TryName, 0)[0] == 1;
    (!served).then(|| format!("a task with {got} names left none for others"))
}

/// Registers under the name of a task that does not run.
pub fn name_of_another(_: &Hostile) -> Reached {
    let taken = root::register("heir").is_ok();
    taken.then(|| String::from("a task is found under the name of another"))
}

/// Waits for the victim's end.
extern "C" fn wait_for_victim(_: u64) -> ! {
    let _ = root::wait("victim");
    rest()
}

/// As many threads as it may have wait for a task's end; another task wants to.
pub fn waits(hostile: &Hostile) -> Reached {
    let threads = (0..MANY)
        .filter_map(|_| root::create_thread().ok())
        .map(|(waiter, index)| machine::start(waiter, index, wait_for_victim, 0))
        .count();
    hostile.ask(Help::Pause, 10_000);
    // The main thread, too, but not for ever.
    let request = root::text_message(op::WAIT, b"victim");
    let patience = Timeouts::new(Time::NEVER, Time::micros(PATIENCE_US));
    let _ = ipc::call_within(ThreadId::ROOT, &request, patience);
    let served = hostile.ask(Help::TryWait, 0)[0] == 1;
    (!served).then(|| format!("a task whose {} threads wait left no place", threads + 1))
}
