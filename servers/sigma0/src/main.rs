//! σ0, the server of the initial space: gives out every page and every port once.
//!
//! One thread, no allocation, one book (`ownership::Book`, where the protocol is
//! and its tests are). It is everybody's root of memory, so it never waits for a
//! client: a reply that the client does not take is dropped.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use abi::ThreadId;
use abi::kip::offset;
use ownership::{Answer, Book, Owner};
use runtime::sync::Lock;
use runtime::{Msg, boot_entry, direct_println, ipc, kip};

boot_entry!(main);

static BOOK: Lock<Book> = Lock::new(Book::new());

fn main() -> ! {
    let mut held = BOOK.lock();
    let book = &mut *held;
    book.open_ports();
    read_kip(book);
    let mut reply = None;
    loop {
        let (from, msg) = ipc::next_request(reply);
        let words = [msg.get(0), msg.get(1), msg.get(2)];
        reply = match book.answer(from, msg.tag, words) {
            Answer::Map(item) => Some((from, Msg::default().map(item))),
            Answer::Empty => Some((from, Msg::default())),
            Answer::Silence => None,
            Answer::Dump { reply } => {
                dump(book);
                reply.then(|| (from, Msg::default()))
            }
        };
    }
}

/// Enters what the kernel says about memory, then the initial servers' images.
fn read_kip(book: &mut Book) {
    let kip = kip::get();
    kip.memory().for_each(|descriptor| book.apply(descriptor));
    book.keep_kernels_devices();
    for (server, owner) in [
        (0x020, None), // the debugger
        (offset::SIGMA0, None),
        (offset::SIGMA1, Some(ThreadId::SIGMA1)),
        (offset::ROOT, Some(ThreadId::ROOT)),
    ] {
        let (low, high) = kip.server_image(server);
        if owner == Some(ThreadId::SIGMA1) && low < high {
            book.know_sigma1();
        }
        book.server(low, high, owner);
    }
}

/// Shows the book.
fn dump(book: &Book) {
    let show = |what: &str, low: u64, high: u64, owner: Owner| match owner {
        Owner::Thread(thread) => {
            direct_println!("sigma0: {what} {low:#x} to {high:#x} belongs to thread {thread}")
        }
        Owner::Reserved => {}
        other => direct_println!("sigma0: {what} {low:#x} to {high:#x} is {other:?}"),
    };
    book.memory().for_each(|(low, high, owner)| show("memory", low, high, owner));
    book.ports().for_each(|(low, high, owner)| show("ports", low, high, owner));
}
