//! Names, memory, waits: what one task uses up or claims has to cost itself only.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proto::{pager, unix};
use runtime::root::{self, Refusal};
use runtime::thread;
use runtime::window::Window;

use crate::Outcome;

/// Where a file of the boot image would be seen.
const FILES: u64 = 0x200_0000_0000;
const FILES_BYTES: u64 = 1 << 36;
/// Where windows for memory would be.
const AT: u64 = 0x3D_0000_0000;
/// Names and blocks that the root task once had for all together.
const MANY: u64 = 40;

/// Everybody could be everybody, and use up the table.
pub fn names() -> Outcome {
    for name in ["console", pager::NAME, unix::NAME, "clock", "hostile", ""] {
        let got = root::register(name);
        if got != Err(Refusal::NotAllowed) {
            return Err(format!("the root task answered {got:?} to `{name}`"));
        }
    }
    for number in 0..MANY {
        let got = root::register(&format!("mine-{number}"));
        if got != Err(Refusal::NotAllowed) {
            return Err(format!("the root task answered {got:?} to name {number}"));
        }
    }
    Ok(())
}

/// What the description does not say it uses is not there, whether it is or not.
pub fn lookups() -> Outcome {
    for name in [pager::NAME, unix::NAME, "nobody"] {
        let got = root::lookup(name);
        if got != Err(Refusal::NotAllowed) {
            return Err(format!("the root task answered {got:?} to `{name}`"));
        }
    }
    root::lookup("clock").map(|_| ()).map_err(|why| format!("`clock` was refused: {why}"))
}

/// Every task could read every raw file of the boot image: a Unix system's first file system,
/// with what only its users' ids protect.
pub fn files() -> Outcome {
    for name in ["secret", "initramfs", "nothing"] {
        let Some(mut window) = Window::claim(FILES, FILES_BYTES) else {
            return Err(String::from("there is no place for a file"));
        };
        let got = root::file(&mut window, name, 0);
        window.release();
        if got != Err(Refusal::NotAllowed) {
            return Err(format!("the root task gave `{name}`"));
        }
    }
    Ok(())
}

/// What servers may ask about clients is not for clients.
pub fn clients() -> Outcome {
    match root::client(thread::me()) {
        Err(Refusal::NotAllowed) => Ok(()),
        got => Err(format!("the root task answered {got:?}")),
    }
}

/// Blocks until there are no more: others get theirs (`driver-is-unharmed`).
pub fn blocks() -> Outcome {
    let mut got = 0;
    for _ in 0..MANY {
        let Some(mut window) = Window::claim(AT + got * 0x1000, 0x1000) else { break };
        match root::memory(&mut window, None) {
            Ok(_) => got += 1,
            Err(Refusal::Exhausted) => return Ok(()),
            Err(why) => return Err(format!("block {got} was refused: {why}")),
        }
    }
    Err(format!("the root task gave {got} blocks"))
}

/// Spaces until there are no more: they were paid by the root task, for all together. What
/// they cost comes back with their ends.
pub fn spaces() -> Outcome {
    let first = spaces_and_their_ends()?;
    let second = spaces_and_their_ends()?;
    if first != second {
        return Err(format!("{first} spaces at first, then {second}"));
    }
    Ok(())
}

fn spaces_and_their_ends() -> Result<usize, String> {
    let mut made = Vec::new();
    let end = loop {
        match root::create_space() {
            Ok((thread, _)) => made.push(thread),
            Err(why) => break why,
        }
    };
    made.iter().for_each(|thread| root::delete_thread(*thread));
    match end {
        Refusal::Exhausted if made.len() < 5 => Ok(made.len()),
        why => Err(format!("the end after {} spaces: {why}", made.len())),
    }
}

/// Waits for a task's end in all threads there are.
pub fn waits() -> Outcome {
    for _ in 0..8 {
        let waiting = thread::spawn(|| {
            let _ = root::wait("clock");
        });
        waiting.map_err(|why| format!("no thread: {why}"))?;
    }
    runtime::ipc::sleep(20_000);
    match root::wait("clock") {
        Err(Refusal::Exhausted) => Ok(()),
        got => Err(format!("the root task answered {got:?} to one wait more")),
    }
}
