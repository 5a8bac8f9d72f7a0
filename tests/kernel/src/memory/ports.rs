//! I/O ports as flexpages: faults, mapping, granting, flushing (X.2 1.5, 6.3).

use abi::protocol::exception as reg;
use abi::{Fpage, MapItem, Rights};

use crate::report::{Outcome, Sentence, case};
use crate::victim::{Event, Registers, Victim, registers};
use crate::{CMOS, DIAGNOSTIC, check, machine, same, world};

/// `in al, dx`.
const IN_BYTE: &[u8] = &[0xEC];

/// Runs the tests.
pub fn run() {
    case("io_faults_name_the_ports", faults);
    case("mapped_ports_work_and_only_those", mapped);
    case("flushed_ports_fault_again", flushed);
    case("granted_ports_move", granted);
    case("a_grant_cuts_ports_that_were_mapped_on", cut);
    case("ports_die_with_their_space", deleted);
}

fn with_port(port: u16) -> Registers {
    let mut regs = registers();
    regs[reg::RDX] = u64::from(port);
    (regs[reg::RSI], regs[reg::RDI], regs[reg::RCX]) = (0x5000, 0x5000, 1);
    regs
}

/// The flexpage of the I/O fault of `code` at `port`; `None` if it works.
fn fault_of(victim: &Victim, code: &[u8], port: u16) -> Outcome<Option<Fpage>> {
    match victim.run(code, with_port(port))? {
        Event::IoFault(fpage, ip) => {
            same!("the fault's instruction pointer", ip, victim.code());
            victim.abandon()?;
            Ok(Some(fpage))
        }
        Event::Exception(regs) if regs[reg::RIP] == victim.code() + code.len() as u64 => Ok(None),
        other => Err(Sentence::new(format_args!("an access to port {port:#x} led to {other:x?}"))),
    }
}

fn faults() -> Outcome {
    let victim = Victim::task()?;
    let cases: [(&[u8], u16, Fpage); 14] = [
        (IN_BYTE, 0x70, Fpage::io(0x70, 0)),
        (&[0xEE], 0x61, Fpage::io(0x61, 0)),
        (&[0x66, 0xED], 0x80, Fpage::io(0x80, 1)),
        (&[0x66, 0xEF], 0x82, Fpage::io(0x82, 1)),
        (&[0xED], 0xCF8, Fpage::io(0xCF8, 2)),
        (&[0xEF], 0xCFC, Fpage::io(0xCFC, 2)),
        (&[0xE4, 0x71], 0, Fpage::io(0x71, 0)),
        (&[0xE7, 0x40], 0, Fpage::io(0x40, 2)),
        (&[0x6C], 0x1F0, Fpage::io(0x1F0, 0)),
        (&[0xF3, 0x6E], 0x1F7, Fpage::io(0x1F7, 0)),
        (&[0x66, 0x6D], 0x1F0, Fpage::io(0x1F0, 1)),
        (&[0xF3, 0x48, 0x6F], 0x1F0, Fpage::io(0x1F0, 2)),
        (IN_BYTE, 0xFFFF, Fpage::io(0xFFFF, 0)),
        (IN_BYTE, 0, Fpage::io(0, 0)),
    ];
    for (code, port, expected) in cases {
        same!(
            "the fpage of the fault",
            fault_of(&victim, code, port)?.map(|fpage| fpage.with_rights(Rights::NONE)),
            Some(expected)
        );
    }
    victim.delete()
}

/// Gives `victim` the ports of `item` at an I/O fault at `port`.
fn give(victim: &Victim, item: MapItem, port: u16) -> Outcome {
    victim.begin(IN_BYTE, with_port(port))?;
    check!(matches!(victim.event(), Event::IoFault(..)), "port {port:#x} did not fault");
    victim.give(item)?;
    victim.expect_parked().map(|_| ())
}

fn mapped() -> Outcome {
    let victim = Victim::task()?;
    give(&victim, MapItem::map(Fpage::io(CMOS, 1), 0), CMOS)?;
    for (port, code) in [(CMOS, IN_BYTE), (CMOS + 1, IN_BYTE), (CMOS, &[0x66, 0xED])] {
        check!(fault_of(&victim, code, port)?.is_none(), "a mapped port faults");
    }
    for (port, code, expected) in [
        (CMOS - 1, IN_BYTE, Fpage::io(CMOS - 1, 0)),
        (CMOS + 2, IN_BYTE, Fpage::io(CMOS + 2, 0)),
        (CMOS, &[0xED], Fpage::io(CMOS, 2)),
        (CMOS + 1, &[0x66, 0xED], Fpage::io(CMOS, 2)),
        (DIAGNOSTIC, IN_BYTE, Fpage::io(DIAGNOSTIC, 0)),
    ] {
        same!(
            "the fault beside mapped ports",
            fault_of(&victim, code, port)?.map(|fpage| fpage.with_rights(Rights::NONE)),
            Some(expected)
        );
    }
    // Another space does not get them along.
    let other = Victim::task()?;
    check!(fault_of(&other, IN_BYTE, CMOS)?.is_some(), "another space has the port too");
    check!(
        fault_of(&victim, IN_BYTE, CMOS)?.is_none(),
        "the port is gone after a switch of spaces"
    );
    other.delete()?;
    victim.delete()
}

fn flushed() -> Outcome {
    let victim = Victim::task()?;
    give(&victim, MapItem::map(Fpage::io(DIAGNOSTIC, 2), 0), DIAGNOSTIC)?;
    machine::unmap(
        0,
        [Fpage::io(DIAGNOSTIC + 1, 0).with_rights(Rights::RWX).0, 0, 0, 0, 0, 0, 0, 0],
    );
    check!(fault_of(&victim, IN_BYTE, DIAGNOSTIC + 1)?.is_some(), "a port outlived its unmap");
    for port in [DIAGNOSTIC, DIAGNOSTIC + 2, DIAGNOSTIC + 3] {
        check!(
            fault_of(&victim, IN_BYTE, port)?.is_none(),
            "port {port:#x} went with its neighbour"
        );
    }
    machine::unmap(0, [Fpage::COMPLETE_IO.with_rights(Rights::RWX).0, 0, 0, 0, 0, 0, 0, 0]);
    check!(fault_of(&victim, IN_BYTE, DIAGNOSTIC)?.is_some(), "a port outlived the unmap of all");
    // This task's own ports stay: it can still write this test's line, and give them again.
    give(&victim, MapItem::map(Fpage::io(DIAGNOSTIC, 0), 0), DIAGNOSTIC)?;
    victim.delete()
}

/// `from` answers a fault of `to` at the first port with `item`.
fn pass(from: &Victim, to: &Victim, item: MapItem) -> Outcome {
    to.set_word(abi::utcb::PAGER, from.id().0)?;
    to.begin(IN_BYTE, with_port(DIAGNOSTIC))?;
    let (_, mr) = from.ipc(abi::ThreadId::NIL, to.id(), 0, [0; 8])?;
    same!("the label", abi::MsgTag(mr[0]).protocol_label(), abi::protocol::IO_FAULT);
    let [first, second] = item.words();
    let words = [crate::victim::item_tag(), first, second, 0, 0, 0, 0, 0];
    from.ipc(to.id(), abi::ThreadId::NIL, 0, words)?;
    to.expect_parked()?;
    to.set_word(abi::utcb::PAGER, abi::ThreadId::ROOT.0)
}

/// A range that was mapped on as a whole is cut where part of its source is granted: that
/// part goes with the new owner, the rest stays.
fn cut() -> Outcome {
    let (one, below, heir) = (Victim::task()?, Victim::task()?, Victim::task()?);
    give(&one, MapItem::map(Fpage::io(DIAGNOSTIC, 2), 0), DIAGNOSTIC)?;
    pass(&one, &below, MapItem::map(Fpage::io(DIAGNOSTIC, 2), 0))?;
    pass(&one, &heir, MapItem::grant(Fpage::io(DIAGNOSTIC, 0), 0))?;
    world::sound()?;
    check!(fault_of(&one, IN_BYTE, DIAGNOSTIC)?.is_some(), "the granter keeps the port");
    check!(fault_of(&heir, IN_BYTE, DIAGNOSTIC)?.is_none(), "the receiver has not got it");
    for port in DIAGNOSTIC..DIAGNOSTIC + 4 {
        let missing = fault_of(&below, IN_BYTE, port)?.is_some();
        check!(!missing, "port {port:#x} was lost by the grant");
    }
    heir.delete()?;
    check!(fault_of(&below, IN_BYTE, DIAGNOSTIC)?.is_some(), "the port outlived its owner");
    for port in DIAGNOSTIC + 1..DIAGNOSTIC + 4 {
        let missing = fault_of(&below, IN_BYTE, port)?.is_some();
        check!(!missing, "port {port:#x} went with its neighbour");
    }
    world::sound()?;
    one.delete()?;
    below.delete()
}

fn granted() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    give(&one, MapItem::map(Fpage::io(DIAGNOSTIC, 1), 0), DIAGNOSTIC)?;
    pass(&one, &other, MapItem::grant(Fpage::io(DIAGNOSTIC, 0), 0))?;
    check!(fault_of(&one, IN_BYTE, DIAGNOSTIC)?.is_some(), "the granter keeps the port");
    check!(fault_of(&one, IN_BYTE, DIAGNOSTIC + 1)?.is_none(), "the port beside it went too");
    check!(fault_of(&other, IN_BYTE, DIAGNOSTIC)?.is_none(), "the receiver has not got the port");
    machine::unmap(0, [Fpage::io(DIAGNOSTIC, 0).with_rights(Rights::RWX).0, 0, 0, 0, 0, 0, 0, 0]);
    check!(
        fault_of(&other, IN_BYTE, DIAGNOSTIC)?.is_some(),
        "a granted port outlived the root's unmap"
    );
    one.delete()?;
    other.delete()
}

fn deleted() -> Outcome {
    let pages = crate::free_pages();
    for _ in 0..3 {
        let victim = Victim::task()?;
        give(&victim, MapItem::map(Fpage::io(DIAGNOSTIC, 2), 0), DIAGNOSTIC)?;
        victim.delete()?;
    }
    let later = crate::free_pages();
    check!(pages - later.min(pages) <= 1, "{pages} pages of kernel memory were free, now {later}");
    world::sound()
}
