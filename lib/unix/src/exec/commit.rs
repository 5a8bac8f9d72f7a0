//! The change from the old program to the new one, once nothing can fail any more.

use super::Built;
use super::image::Image;
use crate::call::Cx;
use crate::errno::Errno;
use crate::machine::{Registers, Reply};
use crate::process::{Credentials, replace_program};

/// The flags register of a new program: interrupts on, and the bit that is always set.
const FLAGS: u64 = 0x202;

/// Lets the process run the program that was built.
pub(super) fn commit(
    cx: &Cx,
    built: Built,
    image: &Image,
    name: &[u8],
    credentials: Credentials,
) -> Result<(), Errno> {
    let (unix, thread, process) = (cx.unix, cx.thread, cx.process);
    if let Err(errno) = replace_program(cx, built.space.clone(), short_name(name)) {
        built.space.retire(unix);
        return Err(errno);
    }
    close_files(cx);
    *process.executable.borrow_mut() = crate::fs::path_of(unix, &image.open);
    *process.credentials.borrow_mut() = credentials;
    let registers = Registers {
        rip: built.entry,
        rsp: built.stack,
        rflags: FLAGS,
        ..Registers::default()
    };
    unix.machine.set_registers(thread.machine.get(), &registers);
    unix.reply(thread, Reply::Resume);
    Ok(())
}

/// Closes what exec closes; the descriptor table is the process's own by now.
fn close_files(cx: &Cx) {
    let files = cx.process.files.borrow().clone();
    let closed = files.exec();
    for open in &closed {
        crate::fs::descriptor_closed(cx, open);
    }
    drop(closed);
    crate::file::settle(cx.unix);
}

/// What `ps` calls the program: the last part of its name, at most 15 bytes.
fn short_name(name: &[u8]) -> [u8; 16] {
    let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    let mut short = [0; 16];
    let len = last.len().min(15);
    short[..len].copy_from_slice(&last[..len]);
    short
}
