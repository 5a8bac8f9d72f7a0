//! Forged switches to threads that are in a transfer (Wenske 2002, 4.8).

use core::sync::atomic::{AtomicU64, Ordering};

use abi::Time;
use runtime::accept::{self, TransferLimit};
use runtime::space::Fault;
use runtime::{Msg, ipc, sigma0};

use crate::cast::{self, Actor, Part};
use crate::{Verdict, adversary, calls, machine};

const BYTES: usize = 4096;
/// What is given.
const TEXT: &[u8] = b"a string of many bytes, for which the page is not there";

/// The page for it: memory of its own, so that nothing else of the program's is in it.
static PAGE: AtomicU64 = AtomicU64::new(0);

/// Two threads that take part are in a transfer, for which this one, their pager, does not bring the page
/// before somebody has said of each that it runs.
pub fn forged() -> Verdict {
    runtime::layout::touch_image();
    let page = sigma0::memory(None, 12).ok_or("no page")?.base();
    PAGE.store(page, Ordering::Relaxed);
    machine::touch(page);
    machine::flush(page);
    let receiver = Actor::start(1, Part::Take);
    let sender = Actor::start(2, Part::Give);
    calls(receiver.local, 3)?;
    calls(sender.local, 3)?;
    ipc::send(receiver.id, &Msg::default()).map_err(|_| "the receiver is not there")?;
    ipc::send(sender.id, &Msg::default()).map_err(|_| "the sender is not there")?;
    let (faulter, fault) = ipc::wait(Time::micros(100_000)).map_err(|_| "no page is missing")?;
    if Fault::decode(&fault).is_none() {
        return Err("another message came than that of a fault");
    }
    for lie in [receiver.local.0, sender.local.0, receiver.local.0] {
        // It becomes the forger, whose word says that neither of them has come.
        let adder = Actor::start(0, Part::Add);
        adversary::forge(lie)?;
        adder.stop();
    }
    machine::touch(page);
    let faulter = runtime::thread::other_id(faulter).ok_or("who has faulted is gone")?;
    let _ = ipc::send(faulter, &Msg::default());
    let taken = ipc::receive(receiver.id, Time::micros(100_000));
    sender.stop();
    receiver.stop();
    match taken {
        Ok(msg) if msg.get(0) == 1 => Ok(()),
        Ok(_) => Err("another string came"),
        Err(_) => Err("the transfer has not ended"),
    }
}

pub fn take() -> ! {
    cast::take_part();
    let buffer = PAGE.load(Ordering::Relaxed) as *mut u8;
    // SAFETY: nobody else reads or writes the page before this thread says that it has been given all.
    let buffer = unsafe { core::slice::from_raw_parts_mut(buffer, BYTES) };
    let limit = TransferLimit::micros(1_000_000);
    let given = accept::string(buffer, limit, || ipc::wait(Time::NEVER));
    let is_right = given.is_ok_and(|(_, msg)| msg.string_in(buffer) == Some(TEXT));
    let _ = ipc::send(abi::ThreadId::ROOT, &Msg::default().words(&[u64::from(is_right)]));
    runtime::thread::park()
}

pub fn give() -> ! {
    cast::take_part();
    let receiver = runtime::thread::other_id(root_harness::local(1));
    if let Some(receiver) = receiver {
        let _ = ipc::send(receiver, &Msg::default().string(TEXT));
    }
    runtime::thread::park()
}
