//! Figure 1 of the 1995 paper: a pager F combines two file systems, f1 and f2.
//!
//! f1 maps a page to F, F grants it to A: F is out of the way, the page is
//! derived from f1 directly. When f1 flushes it, it is gone at A at once. All
//! four are spaces of their own, paged by this thread, which therefore sees
//! every access to a page that is not there.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Fpage, MapItem, Rights, ThreadId};
use runtime::space::{Child, Fault, page_of};
use runtime::window::Window;
use runtime::{Msg, accept, ipc, kernel, println, thread};

runtime::entry!(main);

/// A page of memory.
#[repr(align(4096))]
struct Page([AtomicU64; 512]);
const EMPTY: Page = Page([const { AtomicU64::new(0) }; 512]);
/// The pages of f1 and f2, and what is found where no page is.
static FILES: [Page; 2] = [EMPTY; 2];
static NOTHING: Page = EMPTY;
/// Global ids of f1, f2, F, A.
static IDS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
/// Windows: one page each for what F and A receive.
const WINDOWS: u64 = runtime::layout::WINDOWS;
const GET: u64 = 1;
const FLUSH: u64 = 2;
const DONE: u64 = 3;

fn id(who: usize) -> ThreadId {
    ThreadId(IDS[who].load(Ordering::Relaxed))
}

fn main() {
    for (file, contents) in FILES.iter().zip([1001, 2002]) {
        file.0[0].store(contents, Ordering::Relaxed);
    }
    let bodies: [extern "C" fn(u64) -> !; 4] = [file_system, file_system, combine, user];
    for (who, body) in bodies.into_iter().enumerate() {
        let Ok(child) = Child::create() else { return println!("map-grant-flush: no space number {who} to be had.") };
        IDS[who].store(child.id.0, Ordering::Relaxed);
        let _ = child.start(body, if who == 3 { thread::me().0 } else { who as u64 });
    }
    let mut reply = None;
    loop {
        let (from, msg) = ipc::next_request(reply);
        let Some(fault) = Fault::decode(&msg) else { break report(from, &msg) };
        // An empty window shows the page NOTHING, read-only.
        let nothing = Msg::default().map(MapItem::map(page_of(&NOTHING, Rights::R), fault.address & !0xFFF));
        reply = Some((from, if fault.address >= WINDOWS { nothing } else { fault.same_page(Rights::RWX) }));
    }
}

fn report(from: ThreadId, msg: &Msg) {
    let [first, second, at_f, flushed, kept, ..] = msg.mr;
    println!("map-grant-flush: A ({from}) got {first} from f1 and {second} from f2 by way of F.");
    println!("map-grant-flush: after the grant F's own window shows {at_f}; after f1's flush A sees {flushed}, \
        and f2's page still {kept}.");
    let right = (first, second, at_f, flushed, kept) == (1001, 2002, 0, 0, 2002);
    println!("map-grant-flush: {}.", if right { "as the paper says" } else { "this is NOT what the paper says" });
}

/// f1, f2: maps its page to whoever asks; takes it back on request.
extern "C" fn file_system(who: u64) -> ! {
    let mut reply = None;
    loop {
        let (from, msg) = ipc::next_request(reply);
        reply = Some((from, match msg.label() {
            FLUSH => {
                kernel::unmap(page_of(&FILES[who as usize], Rights::RWX));
                Msg::default()
            }
            _ => Msg::default().map(MapItem::map(page_of(&FILES[who as usize], Rights::RW), 0)),
        }));
    }
}

/// F: gets page 0 from f1, page 1 from f2, and grants it on; also tells what it
/// sees in its own window afterwards.
extern "C" fn combine(_: u64) -> ! {
    let mut window = Window::claim(WINDOWS, 4096);
    let mut reply = None;
    while let Some(window) = window.as_mut() {
        let (from, msg) = ipc::next_request(reply);
        if msg.label() == DONE {
            reply = Some((from, Msg::default().word(window.read(0))));
            continue;
        }
        let _ = kernel::flush(window, Fpage::memory(WINDOWS, 12, Rights::RWX));
        let guard = accept::window(window);
        let _ = ipc::call(id((msg.mr[0] & 1) as usize), &Msg::new(GET));
        drop(guard);
        reply = Some((from, Msg::default().map(MapItem::grant(Fpage::memory(WINDOWS, 12, Rights::RW), 0))));
    }
    thread::park()
}

/// A: gets both pages through F, then looks what a flush leaves.
extern "C" fn user(main: u64) -> ! {
    let mut windows = [1, 2].map(|index| Window::claim(WINDOWS + index * 4096, 4096));
    let mut seen = [0; 2];
    for (file, window) in windows.iter_mut().flatten().enumerate() {
        let guard = accept::window(window);
        let _ = ipc::call(id(2), &Msg::new(GET).word(file as u64));
        drop(guard);
        seen[file] = window.read(0);
    }
    let at_f = ipc::call(id(2), &Msg::new(DONE)).map_or(!0, |reply| reply.mr[0]);
    let _ = ipc::call(id(0), &Msg::new(FLUSH));
    let after = windows.each_ref().map(|window| window.as_ref().map_or(!0, |window| window.read(0)));
    let _ = ipc::call(ThreadId(main), &Msg::new(DONE).words(&[seen[0], seen[1], at_f, after[0], after[1]]));
    thread::park()
}
