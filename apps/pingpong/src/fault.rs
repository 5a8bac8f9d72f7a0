//! Page faults: a space whose pages come one by one from this thread.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::{Fpage, MapItem, Rights};
use runtime::root::{self, Refusal};
use runtime::space::{Child, Fault};
use runtime::window::Window;
use runtime::{Msg, clock, ipc, thread};

use crate::measure::ROUNDS;
use crate::text::Ticks;

/// Where the child touches fresh pages, and where this task has one for all of them.
const FRESH: u64 = runtime::layout::WINDOWS;
const STORE: u64 = FRESH + (1 << 30);
/// Pages touched before the measured ones.
const WARM_UP: u64 = 8;

static MINIMUM: AtomicU64 = AtomicU64::new(u64::MAX);
static SUM: AtomicU64 = AtomicU64::new(0);

/// The child's ticks per first touch of a page.
pub fn measure() -> Result<Ticks, Refusal> {
    let mut store = Window::claim(STORE, 4096).ok_or(Refusal::Taken)?;
    root::memory(&mut store, None)?;
    store.touch(0);
    let child = Child::create()?;
    let mut reply = None;
    child.start(touch, thread::me().0).map_err(|_| Refusal::NoAnswer)?;
    loop {
        let (from, msg) = ipc::next_request(reply);
        let Some(fault) = Fault::decode(&msg) else { break };
        let page = fault.address & !0xFFF;
        reply = Some((
            from,
            match page >= FRESH {
                true => Msg::default().map(MapItem::map(Fpage::memory(STORE, 12, Rights::R), page)),
                false => fault.same_page(Rights::RWX),
            },
        ));
    }
    child.delete();
    Ok(Ticks::new(MINIMUM.load(Relaxed), SUM.load(Relaxed)))
}

extern "C" fn touch(pager: u64) -> ! {
    let _ = runtime::kernel::use_no_vector_registers();
    if let Some(window) = Window::claim(FRESH, (WARM_UP + ROUNDS) * 4096) {
        for page in 0..WARM_UP + ROUNDS {
            let before = clock::ticks();
            window.touch(page * 4096);
            let ticks = clock::ticks() - before;
            if page >= WARM_UP {
                MINIMUM.fetch_min(ticks, Relaxed);
                SUM.fetch_add(ticks, Relaxed);
            }
        }
    }
    let _ = ipc::send(abi::ThreadId(pager), &Msg::new(1));
    thread::park()
}
