//! Thread start, page faults, I/O faults as messages (X.2 6.1 to 6.3).

use abi::protocol::{self, exception as reg};
use abi::{Fpage, MapItem, MsgTag, Rights, ThreadId, Time, utcb};
use runtime::{Msg, ipc};

use crate::memory::{PLACE, page};
use crate::report::{Outcome, Sentence, because, case};
use crate::victim::{Event, LOAD, STORE, Victim, at, registers};
use crate::{check, machine, same, world};

/// Runs the tests.
pub fn run() {
    case("thread_start_sets_ip_sp_and_flags", start);
    case("thread_start_is_the_pagers_alone", start_by_pager);
    case("page_fault_messages", page_faults);
    case("page_faults_keep_all_registers", registers_survive);
    case("an_empty_answer_restarts_the_instruction", empty_answer);
    case("faults_leave_the_message_registers", message_registers);
    case("a_fault_without_pager_hurts_nobody_else", no_pager);
    case("io_fault_answered_by_an_emulating_pager", io_emulated);
}

fn start() -> Outcome {
    let victim = Victim::task()?;
    let id = world::new_member(victim.id(), 1)?;
    machine::write_bytes(victim.code(), &[0x0F, 0x0B]);
    world::start_at(id, victim.code(), 0xDEAD_BEE0)?;
    // Without an exception handler it is halted there.
    ipc::sleep(2_000);
    let (_, old) = machine::exchange(id, runtime::syscall::ThreadRegisters::default());
    same!("the IP", old.ip, victim.code());
    same!("the SP", old.sp, 0xDEAD_BEE0);
    same!("the flags", old.flags & !0x1_0000, 0x202);
    same!("its state", world::state(id), abi::inspect::state::HALTED);
    world::delete(id)?;
    victim.delete()
}

fn start_by_pager() -> Outcome {
    let victim = Victim::task()?;
    let id = world::new_member(victim.id(), 1)?;
    let words = [MsgTag::new(0, 2, 0).0, victim.code(), 0, 0, 0, 0, 0, 0];
    let (_, mr) = victim.ipc(id, ThreadId::NIL, u64::from(Time::ZERO.0) << 16, words)?;
    check!(MsgTag(mr[0]).is_error(), "a stranger's start message was taken");
    same!("the state of the thread", world::state(id), abi::inspect::state::WAITING);
    machine::write_bytes(victim.code(), &[0xEB, 0xFE]);
    world::start_at(id, victim.code(), 0)?;
    same!("the state of the started thread", world::state(id), abi::inspect::state::READY);
    world::delete(id)?;
    victim.delete()
}

/// The next message of `victim` as it is.
fn raw(victim: &Victim) -> Outcome<Msg> {
    because(ipc::receive(victim.id(), Time::micros(50_000)), "waiting for a fault message")
}

fn page_faults() -> Outcome {
    let victim = Victim::task()?;
    for (code, access) in [(LOAD, Rights::R), (STORE, Rights::W)] {
        victim.begin(code, at(PLACE + 0x123, 0))?;
        let msg = raw(&victim)?;
        same!(
            "the tag",
            msg.tag,
            MsgTag::protocol(protocol::PAGE_FAULT, u32::from(access.0), 2, 0)
        );
        same!("address and IP", (msg.mr[0], msg.mr[1]), (PLACE + 0x123, victim.code()));
        victim.abandon()?;
    }
    let mut regs = registers();
    regs[reg::RIP] = PLACE + 0x456;
    victim.go(regs)?;
    let msg = raw(&victim)?;
    same!("the tag", msg.tag, MsgTag::protocol(protocol::PAGE_FAULT, 1, 2, 0));
    same!("address and IP", (msg.mr[0], msg.mr[1]), (PLACE + 0x456, PLACE + 0x456));
    victim.abandon()?;
    // `push` and `call` write, `lock` operations write, `mov` from an absent stack reads.
    let mut regs = registers();
    regs[reg::RSP] = PLACE + 0x800;
    victim.begin(&[0x50], regs)?;
    let msg = raw(&victim)?;
    same!("the push's tag and address", (msg.tag.label() & 7, msg.mr[0]), (2, PLACE + 0x7F8));
    victim.abandon()?;
    victim.delete()
}

fn registers_survive() -> Outcome {
    let victim = Victim::task()?;
    machine::write(page(5)?, 0x5EED);
    let mut regs = [0; protocol::EXCEPTION_WORDS];
    for (index, word) in (1u64..).zip(&mut regs) {
        *word = index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    (regs[reg::RBX], regs[reg::RFLAGS]) = (PLACE, 0x8D5);
    regs[reg::RSP] = victim.stack_top();
    victim.begin(LOAD, regs)?;
    check!(matches!(victim.event(), Event::PageFault(_)), "an empty page did not fault");
    victim.give(MapItem::map(Fpage::memory(page(5)?, 12, Rights::R), PLACE))?;
    let after = victim.expect_parked()?;
    for (index, (after, before)) in after.into_iter().zip(regs).enumerate().take(reg::RFLAGS) {
        let expected = match index {
            reg::RIP => victim.code() + 3,
            reg::RAX => 0x5EED,
            _ => before,
        };
        same!("a register after a page fault", after, expected);
    }
    same!("the flags after a page fault", after[reg::RFLAGS] & !0x1_0000, 0x202 | 0x8D5);
    victim.delete()
}

fn empty_answer() -> Outcome {
    let victim = Victim::task()?;
    victim.begin(LOAD, at(PLACE, 0))?;
    for _ in 0..20 {
        match victim.event() {
            Event::PageFault(fault) => {
                same!("the repeated fault", (fault.address, fault.ip), (PLACE, victim.code()))
            }
            other => {
                return Err(Sentence::new(format_args!(
                    "instead of a repeated fault came {other:x?}"
                )));
            }
        }
        victim.answer(&Msg::new(0))?;
    }
    victim.abandon()?;
    victim.delete()
}

fn message_registers() -> Outcome {
    let victim = Victim::task()?;
    for index in 0..64 {
        victim.set_word(index, 0x1000 + index as u64)?;
    }
    victim.set_word(utcb::BR0, 0x4321_0000)?;
    victim.set_word(utcb::ERROR_CODE, 0x77)?;
    victim.set_word(utcb::VIRTUAL_SENDER, 0x88)?;
    machine::write(page(5)?, 1);
    crate::memory::place(
        &victim,
        MapItem::map(Fpage::memory(page(5)?, 12, Rights::RW), PLACE),
        STORE,
        PLACE,
    )?;
    for index in 0..64 {
        same!("a message register after a page fault", victim.word(index)?, 0x1000 + index as u64);
    }
    same!("BR0", victim.word(utcb::BR0)?, 0x4321_0000);
    same!("ErrorCode", victim.word(utcb::ERROR_CODE)?, 0x77);
    same!("VirtualSender", victim.word(utcb::VIRTUAL_SENDER)?, 0x88);
    victim.delete()
}

fn no_pager() -> Outcome {
    let nobody = world::fresh();
    for pager in [
        ThreadId::NIL,
        nobody,
        ThreadId::ANY,
        ThreadId::ANY_LOCAL,
        ThreadId::irq(7),
        ThreadId::global(abi::id::SYSTEM_BASE, 1),
    ] {
        let victim = Victim::task()?;
        victim.set_word(utcb::PAGER, pager.0)?;
        victim.begin(LOAD, at(PLACE, 0))?;
        check!(
            matches!(victim.event(), Event::Nothing),
            "a fault sent to {pager} reached this thread"
        );
        victim.delete()?;
    }
    let own = Victim::task()?;
    own.set_word(utcb::PAGER, own.id().0)?;
    own.begin(LOAD, at(PLACE, 0))?;
    check!(matches!(own.event(), Event::Nothing), "a fault sent to oneself reached this thread");
    own.delete()?;
    world::sound()
}

fn io_emulated() -> Outcome {
    let victim = Victim::task()?;
    let mut regs = registers();
    regs[reg::RDX] = 0x3456;
    victim.begin(&[0xEC], regs)?;
    let msg = raw(&victim)?;
    same!("the tag", msg.tag, MsgTag::protocol(protocol::IO_FAULT, 6, 2, 0));
    same!("the IP", msg.mr[1], victim.code());
    // The pager skips the instruction: a new IP, then an empty answer.
    let control = abi::syscall::exregs::IP;
    machine::exchange(
        victim.id(),
        runtime::syscall::ThreadRegisters { control, ip: victim.code() + 1, ..Default::default() },
    );
    victim.answer(&Msg::new(0))?;
    let after = victim.expect_parked()?;
    same!("where it went on", after[reg::RIP], victim.code() + 1);
    victim.delete()
}
