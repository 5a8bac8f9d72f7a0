//! ExchangeRegisters: every control bit, on threads in every state; who may.

use abi::inspect::state;
use abi::layout::stub;
use abi::protocol::exception as reg;
use abi::syscall::exregs as bit;
use abi::{CallError, IpcError, IpcErrorKind, MsgTag, Phase, ThreadId, Time, utcb};
use runtime::syscall::ThreadRegisters;
use runtime::{Msg, ipc, thread};

use crate::machine::exchange;
use crate::report::{Outcome, Sentence, case};
use crate::victim::{COUNT, Event, SPIN, Victim, at, registers};
use crate::{check, machine, same, world};

/// Runs the tests.
pub fn run() {
    case("exregs_converts_ids", converts);
    case("exregs_reads_a_waiting_thread", reads_waiting);
    case("exregs_writes_a_running_thread", writes_running);
    case("exregs_writes_the_caller", writes_self);
    case("exregs_halts_and_resumes", halts);
    case("exregs_halts_a_waiting_thread_after_its_operation", halts_waiting);
    case("exregs_aborts_ipc", aborts);
    case("exregs_aborts_only_the_named_phase", aborts_named);
    case("exregs_starts_a_thread", starts);
    case("exregs_takes_no_foreign_code", no_kernel_ip);
    case("exregs_is_refused_to_strangers", refused);
    case("exregs_is_a_pagers_right", pagers_right);
    case("exregs_needs_an_active_thread", needs_active);
}

fn control(control: u64) -> ThreadRegisters {
    ThreadRegisters { control, ..ThreadRegisters::default() }
}

fn converts() -> Outcome {
    let (me, local) = (thread::me(), runtime::utcb::my_local_id());
    same!("the root task's local id", thread::other_id(me), Some(local));
    same!("the root task's global id", thread::other_id(local), Some(me));
    let victim = Victim::task()?;
    same!("a victim's local id", thread::other_id(victim.id()), Some(ThreadId(victim.utcb)));
    same!("a local id of no thread", thread::other_id(ThreadId(local.0 + 63 * 1024)), None);
    let mut regs = registers();
    regs[reg::RAX] = victim.utcb;
    same!(
        "a victim's own global id",
        victim.call(stub::EXCHANGE_REGISTERS, regs)?[reg::RAX],
        victim.id().0
    );
    victim.delete()
}

fn reads_waiting() -> Outcome {
    let victim = Victim::task()?;
    victim.exec(&[0x90], registers())?;
    let park = victim.code() + 1;
    let (_, old) = exchange(victim.id(), control(bit::DELIVER));
    same!("the old IP", old.ip, park);
    same!("the old SP", old.sp, victim.stack_top());
    same!("the old state", old.control & 7, bit::ABORT_RECEIVE);
    same!("the old pager", old.pager, ThreadId::ROOT.0);
    same!("the old handle", old.handle, 0);
    // In a call: the return address of the call.
    victim.begin_ipc(ThreadId::NIL, victim.id(), 0, [0; 8])?;
    let (_, old) = exchange(victim.id(), control(bit::DELIVER));
    check!(
        old.ip >= abi::layout::STUBS || old.ip == victim.code() + 0xF82,
        "a waiting thread's IP is {:#x}",
        old.ip
    );
    victim.abandon()?;
    victim.delete()
}

fn writes_running() -> Outcome {
    let victim = Victim::task()?;
    victim.begin(SPIN, registers())?;
    ipc::sleep(1_000);
    let regs = ThreadRegisters {
        control: bit::SP | bit::IP | bit::FLAGS | bit::HANDLE | bit::PAGER,
        sp: 0x1234_5670,
        ip: victim.back_address() + 28,
        flags: !0,
        handle: 0xABCD,
        pager: ThreadId::SIGMA0.0,
    };
    let (id, old) = exchange(victim.id(), regs);
    same!("the result", id.0, victim.utcb);
    same!("the old IP", old.ip, victim.code());
    same!("the old state", old.control & 7, 0);
    let seen = victim.expect_parked()?;
    same!("the new SP", seen[reg::RSP], 0x1234_5670);
    same!("the new flags", seen[reg::RFLAGS] & !0x10000, 0x202 | 0x8D5);
    same!("the new pager", victim.word(utcb::PAGER)?, ThreadId::SIGMA0.0);
    same!("the new handle", victim.word(utcb::USER_DEFINED_HANDLE)?, 0xABCD);
    let (_, old) = exchange(victim.id(), control(0));
    same!("the handle read back", old.handle, 0xABCD);
    same!("the pager read back", old.pager, ThreadId::SIGMA0.0);
    victim.delete()
}

fn writes_self() -> Outcome {
    let victim = Victim::task()?;
    let mut regs = registers();
    (regs[reg::RAX], regs[reg::RSI]) = (victim.utcb, bit::SP | bit::IP | bit::FLAGS | bit::HANDLE);
    (regs[reg::RDX], regs[reg::R8], regs[reg::R9]) = (0x7770, victim.back_address() + 28, 1);
    regs[reg::R10] = 0x55;
    let seen = victim.call(stub::EXCHANGE_REGISTERS, regs)?;
    same!("its new IP", seen[reg::RIP], victim.back_address() + 28);
    same!("its new SP", seen[reg::RSP], 0x7770);
    same!("the result", seen[reg::RAX], victim.id().0);
    same!("its carry flag", seen[reg::RFLAGS] & 1, 1);
    same!("its handle", victim.word(utcb::USER_DEFINED_HANDLE)?, 0x55);
    victim.delete()
}

fn halts() -> Outcome {
    let victim = Victim::task()?;
    machine::write(victim.data(), 0);
    victim.begin(COUNT, at(victim.data(), 0))?;
    ipc::sleep(3_000);
    let (_, old) = exchange(victim.id(), control(bit::HALT | bit::HALT_VALID));
    same!("halted before", old.control & bit::HALT, 0);
    let counted = machine::read(victim.data());
    check!(counted > 0, "the thread did not run before it was halted");
    same!("its state", world::state(victim.id()), state::HALTED);
    ipc::sleep(3_000);
    same!("what it counted while halted", machine::read(victim.data()), counted);
    let (_, old) = exchange(victim.id(), control(bit::DELIVER | bit::HALT));
    same!("halted, as reported", old.control & 7, bit::HALT);
    same!("the state after H without h", world::state(victim.id()), state::HALTED);
    exchange(victim.id(), control(bit::HALT_VALID));
    ipc::sleep(3_000);
    check!(machine::read(victim.data()) > counted, "a resumed thread did not run");
    victim.delete()
}

fn halts_waiting() -> Outcome {
    let victim = Victim::task()?;
    victim.begin_ipc(ThreadId::NIL, ThreadId::ROOT, 0, [0; 8])?;
    exchange(victim.id(), control(bit::HALT | bit::HALT_VALID));
    let sent = ipc::send_within(victim.id(), &Msg::new(7).word(42), Time::ZERO);
    check!(sent.is_ok(), "a halted receiver took no message: {sent:?}");
    check!(matches!(victim.event(), Event::Nothing), "a halted thread went on");
    same!("its state", world::state(victim.id()), state::HALTED);
    exchange(victim.id(), control(bit::HALT_VALID));
    let (from, mr) = victim.ipc_result()?;
    same!("the sender", from, ThreadId::ROOT);
    same!("the word", mr[1], 42);
    victim.delete()
}

fn aborts() -> Outcome {
    let victim = Victim::task()?;
    let deaf = world::new_task()?;
    let cases = [
        (deaf, ThreadId::NIL, bit::ABORT_SEND, Phase::Send, state::POLLING),
        (ThreadId::NIL, ThreadId::ANY, bit::ABORT_RECEIVE, Phase::Receive, state::WAITING),
        (ThreadId::NIL, deaf, bit::ABORT_RECEIVE | bit::ABORT_SEND, Phase::Receive, state::WAITING),
    ];
    for (to, from, abort, phase, expected) in cases {
        victim.begin_ipc(to, from, 0, [0; 8])?;
        ipc::sleep(500);
        same!("its state", world::state(victim.id()), expected);
        let (_, old) = exchange(victim.id(), control(abort));
        let flag = if phase == Phase::Send { bit::ABORT_SEND } else { bit::ABORT_RECEIVE };
        same!("its state as reported", old.control & 7, flag);
        let (_, mr) = victim.ipc_result()?;
        check!(MsgTag(mr[0]).is_error(), "an aborted IPC says {:#x}", mr[0]);
        let expected = IpcError::new(IpcErrorKind::Cancelled, phase).word();
        same!("the error code", victim.error_code()?, expected);
    }
    world::delete(deaf)?;
    victim.delete()
}

fn aborts_named() -> Outcome {
    let victim = Victim::task()?;
    victim.begin_ipc(ThreadId::NIL, ThreadId::ROOT, 0, [0; 8])?;
    exchange(victim.id(), control(bit::ABORT_SEND));
    same!("a receiver's state after S", world::state(victim.id()), state::WAITING);
    check!(
        ipc::send_within(victim.id(), &Msg::new(0), Time::ZERO).is_ok(),
        "the receiver no longer receives"
    );
    victim.ipc_result()?;
    victim.delete()
}

fn starts() -> Outcome {
    let victim = Victim::task()?;
    let id = world::new_member(victim.id(), 1)?;
    let regs = ThreadRegisters {
        control: bit::HALT_VALID | bit::ABORT_RECEIVE | bit::ABORT_SEND | bit::SP | bit::IP,
        sp: victim.stack_top(),
        ip: victim.code(),
        ..ThreadRegisters::default()
    };
    // `mov rax, gs:[0]`, `mov [rax - 104], rax`: the handle says that it ran.
    machine::write_bytes(
        victim.code(),
        &[0x65, 0x48, 0x8B, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x89, 0x40, 0x98, 0xEB, 0xFE],
    );
    exchange(id, regs);
    ipc::sleep(1_000);
    let (local, old) = exchange(id, control(0));
    same!("the handle that the started thread wrote", old.handle, local.0);
    same!("where it spins", old.ip, victim.code() + 13);
    world::delete(id)?;
    victim.delete()
}

fn no_kernel_ip() -> Outcome {
    let victim = Victim::task()?;
    for ip in [0xFFFF_FFFF_8000_0000, 0x8000_0000_0000, 1 << 63, !0] {
        victim.begin(SPIN, registers())?;
        exchange(
            victim.id(),
            ThreadRegisters { control: bit::IP, ip, ..ThreadRegisters::default() },
        );
        match victim.event() {
            Event::PageFault(fault) => {
                check!(fault.ip >= abi::layout::USER_END, "the fault is at {:#x}", fault.ip)
            }
            Event::Exception(regs) => same!("the exception", regs[reg::VECTOR], 13),
            other => {
                return Err(Sentence::new(format_args!("a thread sent to {ip:#x} did {other:x?}")));
            }
        }
        victim.abandon()?;
    }
    victim.delete()
}

fn foreign(victim: &Victim, dest: ThreadId, bits: u64) -> Outcome<u64> {
    let mut regs = registers();
    (regs[reg::RAX], regs[reg::RSI], regs[reg::R10]) = (dest.0, bits, 0x66);
    victim.set_word(utcb::ERROR_CODE, 0)?;
    Ok(victim.call(stub::EXCHANGE_REGISTERS, regs)?[reg::RAX])
}

fn refused() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    let nobody = world::fresh();
    for dest in [
        other.id(),
        ThreadId::ROOT,
        ThreadId::SIGMA0,
        nobody,
        ThreadId::NIL,
        ThreadId::ANY,
        ThreadId::irq(8),
    ] {
        same!("the result for a stranger", foreign(&one, dest, bit::HANDLE)?, 0);
        same!("the error", one.error_code()?, CallError::InvalidThread as u64);
    }
    same!("the stranger's handle", other.word(utcb::USER_DEFINED_HANDLE)?, 0);
    one.delete()?;
    other.delete()
}

fn pagers_right() -> Outcome {
    let (pager, client) = (Victim::task()?, Victim::task()?);
    client.set_word(utcb::PAGER, pager.id().0)?;
    same!("the result for a client", foreign(&pager, client.id(), bit::HANDLE)?, client.utcb);
    client.set_word(utcb::PAGER, ThreadId::ROOT.0)?;
    same!("the handle its pager set", client.word(utcb::USER_DEFINED_HANDLE)?, 0x66);
    same!("the result for a former client", foreign(&pager, client.id(), bit::HANDLE)?, 0);
    pager.delete()?;
    client.delete()
}

fn needs_active() -> Outcome {
    let inactive = world::new_space()?;
    for id in [
        inactive,
        world::fresh(),
        ThreadId::NIL,
        ThreadId::ANY,
        ThreadId::ANY_LOCAL,
        ThreadId::irq(3),
    ] {
        same!("the result", exchange(id, control(bit::DELIVER)).0, ThreadId::NIL);
        same!("the error", runtime::utcb::error_code(), CallError::InvalidThread as u64);
    }
    world::delete(inactive)
}
