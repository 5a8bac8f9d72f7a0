//! Map and unmap of 1, 512 and 262,144 pages.
//!
//! Children hold pages and hand them on at the root task's command: chains of
//! mappings between spaces, as real systems have them.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::{Fpage, MapItem, Rights, ThreadId, Timeouts};
use runtime::window::Window;
use runtime::{Msg, accept, ipc, kernel};

use crate::marks::{self, sample};
use crate::memory::block;
use crate::partner::{self, Result};
use crate::{Samples, row};

/// Where the children's windows are, 1 GiB each.
const WINDOWS: u64 = 0x30_4000_0000;
const WINDOW_BITS: u32 = 30;
const PAGE_BITS: u32 = 12;
/// Log2 size of a large page, and pages in it.
const LARGE_BITS: u32 = 21;
const LARGE_PAGES: u64 = 512;
const ROUNDS: u64 = 3;

/// Commands to a child: flexpage, then to whom and the send base.
const MAP: u64 = 8;
const UNMAP: u64 = 9;
const MAP_UNMEASURED: u64 = 10;

/// Quota of a child whose page tables cover little, pages.
const SMALL_QUOTA: i64 = 128;
/// Quota of a child with 262,144 small pages: tables and mapping nodes.
const LARGE_QUOTA: i64 = 8192;

static NEXT_WINDOW: AtomicU64 = AtomicU64::new(0);

/// A child with a window.
struct Holder {
    id: ThreadId,
    window: u64,
}

/// Holds pages in its window; hands them on, takes them back.
extern "C" fn hold(window: u64) -> ! {
    let mut window = match Window::claim(window, 1 << WINDOW_BITS) {
        Some(window) => window,
        None => runtime::thread::park(),
    };
    accept::window(&mut window, || -> () { serve() });
    runtime::thread::park()
}

/// What a holder does.
fn serve() -> ! {
    let mut next =
        ipc::ipc(ThreadId::ROOT, ThreadId::ANY, Timeouts::NEVER, &Msg::new(marks::READY));
    loop {
        let Ok((from, command)) = next else {
            next = ipc::wait(abi::Time::NEVER);
            continue;
        };
        let fpage = Fpage(command.get(0));
        let item = Msg::default().map(MapItem::map(fpage, command.get(2)));
        match command.label() {
            MAP => drop(sample(|| ipc::call(ThreadId(command.get(1)), &item))),
            UNMAP => drop(sample(|| kernel::unmap(fpage))),
            MAP_UNMEASURED => drop(ipc::call(ThreadId(command.get(1)), &item)),
            // Somebody maps: the kernel has done it, the answer is all that is missing.
            _ => {}
        }
        next = ipc::reply_wait(from, &Msg::default());
    }
}

impl Holder {
    fn new(quota: i64) -> Result<Self> {
        let window = WINDOWS + (NEXT_WINDOW.fetch_add(1, Relaxed) << WINDOW_BITS);
        let id = partner::program(hold, window, quota)?.id;
        Ok(Self { id, window })
    }

    /// The root task maps to it.
    fn give(&self, page: u64, bits: u32, offset: u64) -> Result<()> {
        let item = MapItem::map(Fpage::memory(page, bits, Rights::RWX), offset);
        partner::call(self.id, &Msg::default().map(item)).map(|_| ())
    }

    /// Maps 2^`bits` bytes of its window on to `to`, at `offset` of that one's.
    fn hand_on(&self, label: u64, to: &Self, bits: u32, offset: u64) -> Result<()> {
        let fpage = Fpage::memory(self.window, bits, Rights::RWX);
        partner::call(self.id, &Msg::new(label).word(fpage.0).word(to.id.0).word(offset))
            .map(|_| ())
    }

    /// Takes 2^`bits` bytes of its window back from everybody.
    fn take_back(&self, bits: u32) -> Result<()> {
        let fpage = Fpage::memory(self.window, bits, Rights::RWX);
        partner::call(self.id, &Msg::new(UNMAP).word(fpage.0)).map(|_| ())
    }
}

/// Rows `ops/map-large` and `ops/unmap-large`: pages of the root task, which are as
/// large as the processor allows.
pub fn large() -> Result<()> {
    let child = Holder::new(SMALL_QUOTA)?;
    for bits in [PAGE_BITS, LARGE_BITS, LARGE_BITS + 1] {
        let memory = block(bits)?;
        child.give(memory.base(), bits, 0)?;
        let fpage = Fpage::memory(memory.base(), bits, Rights::RWX);
        let message = Msg::default().map(MapItem::map(fpage, 0));
        kernel::unmap(fpage);
        let samples = Samples::start();
        for _ in 0..ROUNDS {
            let _ = sample(|| ipc::call(child.id, &message));
            let _ = sample(|| kernel::unmap(fpage));
        }
        let pages = 1_u64 << (bits - PAGE_BITS);
        samples.row(format_args!("ops/map-large pages={pages}"), 0, 2);
        samples.row(format_args!("ops/unmap-large pages={pages}"), 1, 2);
    }
    let _ = kernel::delete(child.id);
    Ok(())
}

/// Rows `ops/map` and `ops/unmap`: 1, 512 and 262,144 small pages.
///
/// The first child gets 512 pages one by one, the second the same ones again and
/// again, the third all that the second has.
pub fn small() -> Result<()> {
    let memory = block(LARGE_BITS)?;
    let (first, second, third) =
        (Holder::new(SMALL_QUOTA)?, Holder::new(LARGE_QUOTA)?, Holder::new(LARGE_QUOTA)?);
    for page in 0..LARGE_PAGES {
        first.give(memory.base() + (page << PAGE_BITS), PAGE_BITS, page << PAGE_BITS)?;
    }
    second.give(memory.base(), PAGE_BITS, 0)?;
    third.give(memory.base(), PAGE_BITS, 0)?;
    for bits in [PAGE_BITS, LARGE_BITS] {
        first.hand_on(MAP, &second, bits, 0)?;
        first.take_back(bits)?;
        rows(&first, &second, bits, ROUNDS)?;
    }
    for piece in 0..1 << (WINDOW_BITS - LARGE_BITS) {
        first.hand_on(MAP_UNMEASURED, &second, LARGE_BITS, piece << LARGE_BITS)?;
    }
    rows(&second, &third, WINDOW_BITS, 1)?;
    let samples = Samples::start();
    first.take_back(PAGE_BITS)?;
    row!(samples, "ops/unmap-tree mappings=512");
    for child in [third, second, first] {
        let _ = kernel::delete(child.id);
    }
    Ok(())
}

/// `from` maps 2^`bits` bytes to `to` and takes them back, `rounds` times.
fn rows(from: &Holder, to: &Holder, bits: u32, rounds: u64) -> Result<()> {
    let samples = Samples::start();
    for _ in 0..rounds {
        from.hand_on(MAP, to, bits, 0)?;
        from.take_back(bits)?;
    }
    let pages = 1_u64 << (bits - PAGE_BITS);
    samples.row(format_args!("ops/map pages={pages}"), 0, 2);
    samples.row(format_args!("ops/unmap pages={pages}"), 1, 2);
    Ok(())
}
