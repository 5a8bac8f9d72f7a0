//! Page faults and exceptions, answered at user level.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::{Fpage, MapItem, MsgTag, Rights, ThreadId, protocol};
use runtime::space::Fault;
use runtime::window::Window;
use runtime::{Msg, ipc, utcb};

use crate::marks;
use crate::memory::block;
use crate::partner::{self, Partner, Result, await_message};
use crate::{Samples, row};

/// Where children touch fresh pages.
pub const FRESH: u64 = 0x30_0000_0000;
const PAGES: u64 = 12;
/// Pages touched before the measured ones: page tables come first.
const WARM_UP: u64 = 4;
const EXCEPTIONS: u64 = 8;

static STORE: AtomicU64 = AtomicU64::new(0);

/// Rows `ops/page-fault` (all kernel and user instructions from the access to its
/// completion) and, inside the same fault, nothing else: the pager is this thread.
pub fn page_faults() -> Result<()> {
    let store = block(12)?;
    STORE.store(store.base(), Relaxed);
    let child = partner::program(touch, 0, 64)?;
    let mut samples = Samples::start();
    let mut reply = Msg::default();
    let mut served = 0;
    loop {
        let message = ipc::call(child.id, &reply).map_err(|_| "the faulting child is gone")?;
        let Some(fault) = Fault::decode(&message) else { break };
        reply = answer(&fault);
        if fault.address >= FRESH {
            served += 1;
            if served == WARM_UP + 1 {
                samples = Samples::start();
            }
        }
    }
    row!(samples, "ops/page-fault");
    child.delete();
    Ok(())
}

fn answer(fault: &Fault) -> Msg {
    if fault.address < FRESH {
        return fault.same_page(Rights::RWX);
    }
    let page = fault.address & !0xFFF;
    Msg::default().map(MapItem::map(Fpage::memory(STORE.load(Relaxed), 12, Rights::R), page))
}

/// The child: calls in, then touches page after page.
extern "C" fn touch(_: u64) -> ! {
    call_in();
    if let Some(window) = Window::claim(FRESH, PAGES * 4096) {
        for page in 0..PAGES {
            marks::sample(|| window.touch(page * 4096));
        }
    }
    call_in();
    runtime::thread::park()
}

/// Tells the root task that this program is there; returns with its next message.
pub fn call_in() -> Msg {
    ipc::call(ThreadId::ROOT, &Msg::new(marks::READY)).unwrap_or_default()
}

/// Row `ops/exception`: an undefined instruction that the exception handler skips.
pub fn exceptions() -> Result<()> {
    let child = partner::program(undefined, 0, 64)?;
    let mut samples = Samples::start();
    let mut message = partner::call(child.id, &Msg::default())?;
    let mut served = 0;
    while message.tag.protocol_label() == protocol::EXCEPTION {
        served += 1;
        if served == 3 {
            samples = Samples::start();
        }
        let mut reply = message;
        reply.tag = MsgTag::new(0, protocol::EXCEPTION_WORDS as u32, 0);
        reply.mr[protocol::exception::RIP] += 2;
        message = partner::call(child.id, &reply)?;
    }
    row!(samples, "ops/exception");
    child.delete();
    Ok(())
}

extern "C" fn undefined(_: u64) -> ! {
    utcb::set_exception_handler(ThreadId::ROOT);
    call_in();
    for _ in 0..EXCEPTIONS {
        marks::undefined();
    }
    call_in();
    runtime::thread::park()
}

/// Waits until `child`, which is running, calls in.
pub fn settled(child: Partner) -> Result<()> {
    await_message(child.id).map(|_| ())
}
