//! What the judge answers as everybody's pager.

use abi::protocol::{EXCEPTION, PAGE_FAULT};
use abi::{Fpage, MapItem, Rights, ThreadId};
use runtime::space::Fault;
use runtime::{Msg, direct_println, layout};

use super::{canaries, interrupts};

/// Log2 of the pieces in which memory is mapped.
const PIECE_BITS: u32 = 12;

/// The answer to a message, if there is one.
pub fn answer(from: ThreadId, msg: &Msg) -> Option<Msg> {
    if msg.label() == interrupts::LABEL {
        return Some(interrupts::grant(from));
    }
    let fault = Fault::decode(msg).filter(|_| msg.tag.protocol_label() == PAGE_FAULT);
    let page = fault.and_then(|fault| page_for(&fault));
    if page.is_none() {
        direct_println!(
            "exhaust: thread {from} (a canary: {}) sent tag {:#x}, exception: {}, {:#x?}",
            canaries::is_one(from),
            msg.tag.0,
            msg.tag.protocol_label() == EXCEPTION,
            msg.mr
        );
    }
    page
}

/// All of this program, at the same addresses; its text is not for writing.
fn page_for(fault: &Fault) -> Option<Msg> {
    let (low, high) = layout::image();
    let text = fault.address < layout::text_end();
    let rights = if text { Rights::RX } else { Rights::RW };
    let allowed = (low..high).contains(&fault.address) && rights.contains(fault.access);
    let base = fault.address >> PIECE_BITS << PIECE_BITS;
    let page = Fpage::memory(base, PIECE_BITS, rights);
    allowed.then(|| Msg::default().map(MapItem::map(page, base)))
}
