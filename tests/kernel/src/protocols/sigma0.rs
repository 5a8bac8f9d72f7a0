//! σ0's protocol (X.2 6.7): what it gives, what it refuses, what it ignores.

use abi::{Fpage, Item, MapItem, MsgTag, Rights, ThreadId, Time, protocol, utcb};

use crate::report::{Outcome, Sentence, case};
use crate::victim::{LOAD, Victim, at};
use crate::{check, same};

/// Runs the tests.
pub fn run() {
    case("sigma0_answers_requests", requests);
    case("sigma0_refuses", refusals);
    case("sigma0_ignores_malformed_requests", malformed);
    case("sigma0_gives_nothing_twice", owners);
    case("sigma0_pages_its_clients", pages);
}

/// Any address, in an fpage word.
const ANYWHERE: u64 = !0x3FF;

/// A request of `victim` with `mr`: the item of the answer, `None` without answer.
fn ask(victim: &Victim, tag: MsgTag, mr: [u64; 3]) -> Outcome<Option<MapItem>> {
    victim.set_word(utcb::BR0, Fpage::COMPLETE.0)?;
    let words = [tag.0, mr[0], mr[1], mr[2], 0, 0, 0, 0];
    let timeouts = u64::from(Time::micros(3_000).0);
    let (_, answer) = victim.ipc(ThreadId::SIGMA0, ThreadId::SIGMA0, timeouts, words)?;
    victim.set_word(utcb::BR0, 0)?;
    let tag = MsgTag(answer[0]);
    if tag.is_error() {
        return Ok(None);
    }
    match Item::decode(answer[1], answer[2]) {
        Item::Map(item) if (tag.untyped(), tag.typed()) == (0, 2) => Ok(Some(item)),
        _ => Err(Sentence::new(format_args!("sigma0 answered {answer:x?}"))),
    }
}

fn request(victim: &Victim, fpage: u64) -> Outcome<Option<MapItem>> {
    ask(victim, MsgTag::protocol(protocol::SIGMA0, 0, 2, 0), [fpage, 0, 0])
}

fn requests() -> Outcome {
    let victim = Victim::task()?;
    for bits in [12u64, 14, 21] {
        let Some(item) = request(&victim, ANYWHERE | bits << 4)? else {
            return Err(Sentence::new(format_args!(
                "sigma0 did not answer a request for 2^{bits} bytes"
            )));
        };
        same!("the size given", u64::from(item.fpage.bits()), bits);
        same!("the rights given", item.fpage.rights(), Rights::RWX);
        same!("the send base", item.send_base, item.fpage.base());
        victim.store(item.fpage.base() + 8, 5)?;
        // The owner may ask again.
        let again =
            request(&victim, Fpage::memory(item.fpage.base(), bits as u32, Rights::NONE).0)?;
        same!("the second answer", again.map(|item| item.fpage), Some(item.fpage));
    }
    let ports = request(&victim, Fpage::io(0x2E8, 3).0)?;
    same!(
        "the ports given",
        ports.map(|item| item.fpage.with_rights(Rights::NONE)),
        Some(Fpage::io(0x2E8, 3))
    );
    victim.delete()
}

fn refusals() -> Outcome {
    let victim = Victim::task()?;
    let (image, _) = runtime::layout::image();
    let kernel = 0x20_0000;
    for word in [
        Fpage::memory(image, 12, Rights::NONE).0,
        Fpage::memory(kernel, 12, Rights::NONE).0,
        Fpage::memory(0x10_0000, 11, Rights::NONE).0,
        Fpage::memory(0, 40, Rights::NONE).0,
        ANYWHERE | 50 << 4,
        ANYWHERE | 63 << 4,
        Fpage::io(crate::CMOS, 0).0,
        Fpage::io(0x20, 0).0,
        Fpage::io(0x40, 2).0,
        Fpage::COMPLETE_IO.0,
        0,
    ] {
        let answer = request(&victim, word)?;
        same!(
            "the answer to what is not to be had",
            answer.map(|item| item.fpage),
            Some(Fpage::NIL)
        );
    }
    let attributes =
        ask(&victim, MsgTag::protocol(protocol::SIGMA0, 0, 2, 0), [ANYWHERE | 12 << 4, 5, 0])?;
    same!(
        "the answer to a request with attributes",
        attributes.map(|item| item.fpage),
        Some(Fpage::NIL)
    );
    victim.delete()
}

fn malformed() -> Outcome {
    let victim = Victim::task()?;
    let good = ANYWHERE | 12 << 4;
    for tag in [
        MsgTag::protocol(protocol::SIGMA0, 0, 1, 0),
        MsgTag::protocol(protocol::SIGMA0, 0, 4, 0),
        MsgTag::protocol(protocol::SIGMA0, 0, 0, 0),
        MsgTag::protocol(protocol::PAGE_FAULT, 0, 3, 0),
        MsgTag::protocol(protocol::SIGMA0_EXTENDED, 0, 2, 0),
        MsgTag::protocol(-77, 0, 2, 0),
        MsgTag::new(0, 2, 0),
    ] {
        same!("the answer to a malformed request", ask(&victim, tag, [good, 0, 0])?, None);
    }
    // A client that takes no mapping costs sigma0 nothing.
    let words = [MsgTag::protocol(protocol::SIGMA0, 0, 2, 0).0, good, 0, 0, 0, 0, 0, 0];
    let (_, answer) =
        victim.ipc(ThreadId::SIGMA0, ThreadId::SIGMA0, u64::from(Time::micros(3_000).0), words)?;
    check!(MsgTag(answer[0]).is_error(), "a mapping came through a closed window");
    check!(
        request(&victim, good)?.is_some_and(|item| !item.fpage.is_nil()),
        "sigma0 serves no more"
    );
    victim.delete()
}

fn owners() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    let item = request(&one, ANYWHERE | 12 << 4)?.unwrap_or(MapItem::map(Fpage::NIL, 0));
    check!(!item.fpage.is_nil(), "sigma0 gave no page");
    let word = item.fpage.with_rights(Rights::NONE).0;
    let stolen = request(&other, word)?;
    same!("another's page", stolen.map(|item| item.fpage), Some(Fpage::NIL));
    let around = Fpage::memory(item.fpage.base(), 13, Rights::NONE).0;
    same!(
        "a block around another's page",
        request(&other, around)?.map(|item| item.fpage),
        Some(Fpage::NIL)
    );
    one.delete()?;
    other.delete()
}

fn pages() -> Outcome {
    let victim = Victim::task()?;
    let item = request(&victim, ANYWHERE | 12 << 4)?.unwrap_or(MapItem::map(Fpage::NIL, 0));
    let fpage = item.fpage;
    check!(!fpage.is_nil(), "sigma0 gave no page");
    // Lost and faulted in again, from sigma0 as the pager.
    let mut regs = at(0, 0);
    regs[abi::protocol::exception::RDX] = 0x40;
    (regs[abi::protocol::exception::RDI], regs[abi::protocol::exception::R9]) =
        (victim.utcb, fpage.0);
    victim.call(abi::layout::stub::UNMAP, regs)?;
    check!(victim.load_fault(fpage.base())?.is_some(), "a flushed page is still there");
    victim.set_word(utcb::PAGER, ThreadId::SIGMA0.0)?;
    victim.exec(LOAD, at(fpage.base(), 0))?;
    // What is not to be had faults for ever, without harm to others.
    victim.begin(LOAD, at(0x20_0000, 0))?;
    check!(matches!(victim.event(), crate::victim::Event::Nothing), "sigma0 mapped the kernel");
    victim.abandon()?;
    victim.delete()
}
