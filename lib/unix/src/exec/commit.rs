//! The change from the old program to the new one, once nothing can fail any more.

use alloc::rc::Rc;

use super::Built;
use super::image::Image;
use super::placement::LOST_BY_SET_ID;
use crate::call::Cx;
use crate::errno::Errno;
use crate::file::{Descriptors, MAX_DESCRIPTORS};
use crate::machine::{MachineThread, Registers, Reply};
use crate::mm::{futex, futex_held};
use crate::process::capability::Executed;
use crate::process::program;
use crate::stream::socket::netlink::connector;

/// The flags register of a new program: interrupts on, and the bit that is always set.
const FLAGS: u64 = 0x202;

/// Lets the process run the program that was built.
pub(super) fn commit(
    cx: &Cx,
    built: Built,
    image: &Image,
    name: &[u8],
    who: Executed,
) -> Result<(), Errno> {
    let (unix, thread, process) = (cx.unix, cx.thread, cx.process);
    let (own, machine) = match prepare(cx, &built) {
        Ok(ready) => ready,
        Err(errno) => {
            built.space.retire(unix);
            return Err(errno);
        }
    };
    // POINT OF NO RETURN.
    program::begin(unix, thread);
    futex_held::release_held(unix, thread);
    futex::release_robust(unix, thread);
    futex::clear_child_tid(unix, thread);
    program::replace_machine_thread(unix, thread, machine);
    let old = process.set_space(built.space);
    if Rc::strong_count(&old) == 1 {
        old.retire(unix);
    }
    drop(old);
    close_files(cx, own);
    *process.executable.borrow_mut() = crate::fs::path_of(unix, &image.open);
    thread.name.set(short_name(name));
    let (secure, before) = (who.secure, connector::before(cx));
    *process.credentials.borrow_mut() = who.who;
    if secure {
        let kept = process.state.personality.get() & !LOST_BY_SET_ID;
        process.state.personality.set(kept);
        process.state.death_signal.set(0);
    }
    program::end(thread);
    // Who runs it shall not see what it may read, nor its file's contents if they are not to be read.
    process.state.not_dumpable.set(secure || !built.readable);
    process.state.seen_from.replace(built.seen_from);
    let registers =
        Registers { rip: built.entry, rsp: built.stack, rflags: FLAGS, ..Registers::default() };
    unix.machine.set_registers(machine, &registers);
    unix.reply(thread, Reply::Resume);
    connector::changed(cx, before);
    connector::executed(unix, thread);
    crate::trace::executed(unix, thread);
    Ok(())
}

/// What is needed beside what was built: a table of descriptors, if the process shares its own, and a thread.
fn prepare(cx: &Cx, built: &Built) -> Result<(Option<Rc<Descriptors>>, MachineThread), Errno> {
    let own = program::own_table(cx.process, MAX_DESCRIPTORS)?;
    Ok((own, cx.unix.machine.create_thread(built.space.machine())?))
}

/// Gives the process its `own` descriptor table, if it shared one, and closes what exec closes.
fn close_files(cx: &Cx, own: Option<Rc<Descriptors>>) {
    program::has_table(cx.unix, cx.process, own);
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
