//! Figure 1 of the 1995 paper: a pager F combines two file systems, f1 and f2.
//!
//! f1 maps a page to F, F grants it to A: F is out of the way, the page is
//! derived from f1 directly. When f1 flushes it, it is gone at A at once. All
//! four are spaces of their own, paged by this thread, which therefore sees
//! every access to a page that is not there.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod roles;

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{MapItem, Rights, ThreadId};
use runtime::space::{Child, Fault, page_of};
use runtime::{Msg, ipc, println, thread};

runtime::entry!(main);

/// A page of memory.
#[repr(align(4096))]
struct Page([AtomicU64; 512]);
/// The pages of f1 and f2, and what is found where no page is.
static FILES: [Page; 2] = [const { empty() }; 2];
static NOTHING: Page = empty();
/// Global ids of f1, f2, F, A.
static IDS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
/// Windows: one page each for what F and A receive.
const WINDOWS: u64 = runtime::layout::WINDOWS;
const GET: u64 = 1;
const FLUSH: u64 = 2;
const DONE: u64 = 3;

const fn empty() -> Page {
    Page([const { AtomicU64::new(0) }; 512])
}

fn id(who: usize) -> ThreadId {
    ThreadId(IDS[who].load(Ordering::Relaxed))
}

fn main() {
    for (file, contents) in FILES.iter().zip([1001, 2002]) {
        file.0[0].store(contents, Ordering::Relaxed);
    }
    let bodies: [extern "C" fn(u64) -> !; 4] =
        [roles::file_system, roles::file_system, roles::combine, roles::user];
    for (who, body) in bodies.into_iter().enumerate() {
        let Ok(child) = Child::create() else {
            return println!("map-grant-flush: no space number {who} to be had.");
        };
        IDS[who].store(child.id.0, Ordering::Relaxed);
        let _ = child.start(body, if who == 3 { thread::me().0 } else { who as u64 });
    }
    let mut reply = None;
    loop {
        let (from, msg) = ipc::next_request(reply);
        let Some(fault) = Fault::decode(&msg) else { break report(from, &msg) };
        // An empty window shows the page NOTHING, read-only.
        let nothing =
            Msg::default().map(MapItem::map(page_of(&NOTHING, Rights::R), fault.address & !0xFFF));
        reply = Some((
            from,
            if fault.address >= WINDOWS { nothing } else { fault.same_page(Rights::RWX) },
        ));
    }
}

fn report(from: ThreadId, msg: &Msg) {
    let [first, second, at_f, flushed, kept, ..] = msg.mr;
    println!("map-grant-flush: A ({from}) got {first} from f1 and {second} from f2 by way of F.");
    println!(
        "map-grant-flush: after the grant F's own window shows {at_f}; after f1's flush A sees {flushed}, \
        and f2's page still {kept}."
    );
    let right = (first, second, at_f, flushed, kept) == (1001, 2002, 0, 0, 2002);
    println!(
        "map-grant-flush: {}.",
        if right { "as the paper says" } else { "this is NOT what the paper says" }
    );
}
