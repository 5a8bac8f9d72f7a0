//! A program that pages another space: every page that the child sees comes
//! from here, one fault at a time.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use abi::{Fpage, MapItem, Rights, ThreadId};
use runtime::space::{Child, Fault};
use runtime::window::Window;
use runtime::{Msg, ipc, println, root, thread};

runtime::entry!(main);

/// Where the child finds the lazily filled array; nothing is there in this task.
const ARRAY: u64 = proto_windows(0);
/// Where this task keeps the pages of that array.
const STORE: u64 = proto_windows(1);
/// Pages of the array.
const PAGES: u64 = 16;
/// Label of the child's last message.
const DONE: u64 = 7;

const fn proto_windows(index: u64) -> u64 {
    runtime::layout::WINDOWS + (index << 30)
}

fn main() {
    let Some(mut store) = Window::claim(STORE, PAGES * 4096) else { return };
    if let Err(why) = root::memory(&mut store, None) {
        return println!("own-pager: no memory for {PAGES} pages: {why}.");
    }
    let child = match Child::create() {
        Ok(child) => child,
        Err(why) => return println!("own-pager: no space for the child: {why}."),
    };
    if let Err(error) = child.start(sum_array, thread::me().0) {
        return println!("own-pager: the child did not start: {error:?}.");
    }
    let (mut array_faults, mut other_faults, mut answer) = (0, 0, Msg::default());
    loop {
        let (from, msg) =
            ipc::next_request((answer.tag.typed() != 0).then_some((child.id, answer)));
        let Some(fault) = Fault::decode(&msg).filter(|_| from == child.id) else {
            if from == child.id && msg.label() == DONE {
                println!(
                    "own-pager: the child added {PAGES} pages to {}: {array_faults} faults on the array, \
                    {other_faults} on text, data and stack.",
                    msg.mr[0]
                );
                break;
            }
            continue;
        };
        answer = if fault.address.wrapping_sub(ARRAY) < PAGES * 4096 {
            array_faults += 1;
            fill(&store, fault.address - ARRAY)
        } else {
            other_faults += 1;
            fault.same_page(Rights::RWX)
        };
    }
    child.delete();
}

/// Fills the page of the array at `offset` with its number and gives it, read-only.
fn fill(store: &Window, offset: u64) -> Msg {
    let page = offset / 4096;
    store.write(page * 4096, page);
    let fpage = Fpage::memory(STORE + page * 4096, 12, Rights::R);
    Msg::default().map(MapItem::map(fpage, ARRAY + page * 4096))
}

/// The child: adds the first words of all pages and reports the sum.
extern "C" fn sum_array(pager: u64) -> ! {
    let array = Window::claim(ARRAY, PAGES * 4096);
    let sum = array.map_or(0, |array| (0..PAGES).map(|page| array.read(page * 4096)).sum());
    let _ = ipc::send(ThreadId(pager), &Msg::new(DONE).word(sum));
    thread::park()
}
