//! ThreadControl: creation, activation, change, deletion; each error provoked.

use abi::CallError::{
    InvalidScheduler, InvalidSpace, InvalidThread, NoMemory, NoPrivilege, UtcbArea,
};
use abi::inspect::state;
use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA, stub};
use abi::protocol::exception as reg;
use abi::{Fpage, IpcError, IpcErrorKind, Phase, Rights, ThreadId, Time, utcb};
use runtime::{Msg, ipc, kernel};

use crate::machine::thread_control;
use crate::report::{Outcome, Sentence, because, case};
use crate::victim::{SPIN, Victim, registers};
use crate::{check, free_pages, machine, same, world};

const ROOT: ThreadId = ThreadId::ROOT;
const NIL: ThreadId = ThreadId::NIL;
const NONE: u64 = !0;

/// Runs the tests.
pub fn run() {
    case("thread_control_creates_and_deletes", creates);
    case("thread_control_refuses_bad_threads", bad_threads);
    case("thread_control_refuses_bad_spaces", bad_spaces);
    case("thread_control_refuses_bad_schedulers", bad_schedulers);
    case("thread_control_refuses_bad_utcbs", bad_utcbs);
    case("thread_control_is_for_the_clan", for_the_clan);
    case("thread_control_reports_exhaustion", exhaustion);
    case("version_change", version_change);
    case("version_change_aborts_ipc", version_change_aborts);
    case("deletes_threads_in_every_state", deletes_in_every_state);
    case("deletion_tells_the_partners", deletion_tells);
    case("initial_threads_stay", initial_threads);
    case("interrupt_attachment_errors", interrupt_errors);
}

/// Lets `parent` create a space with a victim in it.
pub fn grandchild(parent: &Victim) -> Outcome<Victim> {
    let id = ThreadId::global(world::own_numbers(parent.id(), 2)?.first, 1);
    clan_call(parent, [id, NIL, parent.id(), id], NONE)?;
    let mut regs = registers();
    regs[reg::RDI] = id.0;
    regs[reg::RDX] = Fpage::memory(INITIAL_KIP, 12, Rights::NONE).0;
    regs[reg::R8] = Fpage::memory(INITIAL_UTCB_AREA, 14, Rights::NONE).0;
    same!("SpaceControl by the chief", parent.call(stub::SPACE_CONTROL, regs)?[reg::RAX], 1);
    clan_call(parent, [id, ROOT, NIL, id], INITIAL_UTCB_AREA)?;
    Victim::adopt(id, INITIAL_UTCB_AREA + utcb::POINTER_OFFSET)
}

/// ThreadControl by `victim`: dest, pager, scheduler, space.
fn try_call(victim: &Victim, ids: [ThreadId; 4], location: u64) -> Outcome<u64> {
    let mut regs = registers();
    [regs[reg::RDI], regs[reg::RSI], regs[reg::RDX], regs[reg::R8]] = ids.map(|id| id.0);
    regs[reg::R9] = location;
    let ok = victim.call(stub::THREAD_CONTROL, regs)?[reg::RAX] == 1;
    if ok { Ok(0) } else { victim.error_code() }
}

fn clan_call(victim: &Victim, ids: [ThreadId; 4], location: u64) -> Outcome {
    same!("the error of ThreadControl by a chief", try_call(victim, ids, location)?, 0);
    Ok(())
}

fn creates() -> Outcome {
    let before = free_pages();
    let id = world::new_space()?;
    same!("the new thread's state", world::state(id), state::INACTIVE);
    because(kernel::set_pager(id, id, ROOT, INITIAL_UTCB_AREA), "activation")?;
    same!("the active thread's state", world::state(id), state::WAITING);
    let second = world::new_member(id, 1)?;
    same!("a member's state", world::state(second), state::WAITING);
    let words = kernel::inspect(abi::inspect::What::Thread, u64::from(second.number()), 0)
        .unwrap_or_default();
    same!("the default priority", words[3], 100);
    same!("the pager", words[7], ROOT.0);
    world::delete(id)?;
    same!("the deleted thread's state", world::state(id), !0);
    same!("its neighbour's state", world::state(second), state::WAITING);
    world::delete(second)?;
    same!("deleting a thread that is gone", thread_control(second, NIL, NIL, NIL, NONE), 0);
    same!("the kernel's free pages afterwards", free_pages(), before);
    Ok(())
}

fn bad_threads() -> Outcome {
    let id = world::fresh();
    let far = ThreadId::global(abi::id::USER_BASE + (1 << abi::id::THREAD_BITS), 1);
    let kernels = ThreadId::global(abi::id::SYSTEM_BASE + 3, 1);
    for dest in
        [NIL, ThreadId::ANY, ThreadId::ANY_LOCAL, ThreadId(INITIAL_UTCB_AREA + 512), far, kernels]
    {
        same!(
            "the error for a bad dest",
            thread_control(dest, id, ROOT, NIL, NONE),
            InvalidThread as u64
        );
    }
    same!(
        "the error of deleting the caller",
        thread_control(ROOT, NIL, NIL, NIL, NONE),
        InvalidThread as u64
    );
    Ok(())
}

fn bad_spaces() -> Outcome {
    let (id, nobody) = (world::fresh(), world::fresh());
    let wrong = InvalidSpace as u64;
    same!("creation in no space", thread_control(id, nobody, ROOT, NIL, NONE), wrong);
    same!(
        "active creation of a space",
        thread_control(id, id, ROOT, ROOT, INITIAL_UTCB_AREA),
        wrong
    );
    because(kernel::create(id, id, ROOT, NONE), "creating a space")?;
    let second = world::fresh();
    same!(
        "active creation in a raw space",
        thread_control(second, id, ROOT, ROOT, INITIAL_UTCB_AREA),
        wrong
    );
    same!("activation in a raw space", thread_control(id, id, NIL, ROOT, INITIAL_UTCB_AREA), wrong);
    same!("a change of space", thread_control(id, ROOT, NIL, NIL, NONE), wrong);
    same!("a change with nobody's space", thread_control(id, nobody, NIL, NIL, NONE), wrong);
    same!("the refused thread's state", world::state(second), !0);
    world::delete(id)
}

fn bad_schedulers() -> Outcome {
    let (id, nobody) = (world::fresh(), world::fresh());
    let wrong = InvalidScheduler as u64;
    same!("creation without scheduler", thread_control(id, id, NIL, NIL, NONE), wrong);
    same!("creation with nobody as scheduler", thread_control(id, id, nobody, NIL, NONE), wrong);
    because(kernel::create(id, id, ROOT, NONE), "creating a space")?;
    same!("a change to nobody as scheduler", thread_control(id, id, nobody, NIL, NONE), wrong);
    world::delete(id)
}

fn bad_utcbs() -> Outcome {
    let wrong = UtcbArea as u64;
    let id = world::new_space()?;
    let end = INITIAL_UTCB_AREA + (1 << world::CHILD_UTCB_BITS);
    for location in
        [INITIAL_UTCB_AREA + 512, INITIAL_UTCB_AREA + 1, INITIAL_UTCB_AREA - 1024, end, 0, 1 << 63]
    {
        same!("activation with a bad UTCB", thread_control(id, id, NIL, ROOT, location), wrong);
        let second = world::fresh();
        same!("creation with a bad UTCB", thread_control(second, id, ROOT, ROOT, location), wrong);
        same!("the refused thread's state", world::state(second), !0);
    }
    same!(
        "active creation without UTCB",
        thread_control(world::fresh(), id, ROOT, ROOT, NONE),
        wrong
    );
    because(kernel::set_pager(id, id, ROOT, end - 1024), "activation in the last slot")?;
    same!(
        "another UTCB for an active thread",
        thread_control(id, id, NIL, NIL, INITIAL_UTCB_AREA),
        wrong
    );
    world::delete(id)
}

fn for_the_clan() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    let refused = NoPrivilege as u64;
    same!("deleting a stranger", try_call(&one, [other.id(), NIL, NIL, NIL], NONE)?, refused);
    same!("deleting the root task", try_call(&one, [ROOT, NIL, NIL, NIL], NONE)?, refused);
    same!("deleting sigma0", try_call(&one, [ThreadId::SIGMA0, NIL, NIL, NIL], NONE)?, refused);
    same!(
        "a stranger's pager",
        try_call(&one, [other.id(), one.id(), NIL, other.id()], NONE)?,
        refused
    );
    let id = world::fresh();
    same!(
        "a thread in a stranger's space",
        try_call(&one, [id, NIL, one.id(), other.id()], NONE)?,
        refused
    );
    same!(
        "a kernel thread",
        try_call(&one, [ThreadId::global(abi::id::SYSTEM_BASE + 4, 1), NIL, NIL, NIL], NONE)?,
        refused
    );
    same!(
        "an interrupt",
        try_call(&one, [ThreadId::irq(8), one.id(), NIL, ThreadId::irq(8)], NONE)?,
        refused
    );
    let child = grandchild(&one)?;
    same!(
        "deleting a stranger's child",
        try_call(&other, [child.id(), NIL, NIL, NIL], NONE)?,
        refused
    );
    same!("deleting the chief", try_call(&child, [one.id(), NIL, NIL, NIL], NONE)?, refused);
    clan_call(&one, [child.id(), NIL, NIL, NIL], NONE)?;
    same!("the deleted child's state", world::state(child.id()), !0);
    child.forget();
    one.delete()?;
    other.delete()
}

fn exhaustion() -> Outcome {
    let before = free_pages();
    let victim = Victim::task()?;
    let own = world::own_numbers(victim.id(), 60)?;
    let mut made = 0;
    let error = loop {
        let id = ThreadId::global(own.first + made, 1);
        let error = try_call(&victim, [id, NIL, victim.id(), victim.id()], NONE)?;
        if error != 0 {
            break error;
        }
        made += 1;
        check!(made < own.count, "a space with a small quota created {made} threads");
    };
    same!("the error of the last creation", error, NoMemory as u64);
    check!(made > 0, "a new space could not create a single thread");
    let elsewhere = world::new_task()?;
    world::delete(elsewhere)?;
    victim.delete()?;
    world::sweep(&[]);
    same!("the kernel's free pages afterwards", free_pages(), before);
    Ok(())
}

fn version_change() -> Outcome {
    let victim = Victim::task()?;
    let old = victim.id();
    let new = ThreadId::global(old.number(), 0x7777_0041);
    same!("the change", thread_control(new, old, NIL, NIL, NONE), 0);
    let gone = ipc::send_within(old, &Msg::new(1), Time::ZERO);
    same!(
        "sending to the old id",
        gone,
        Err(IpcError::new(IpcErrorKind::NonExisting, Phase::Send))
    );
    same!("the old id's state", world::state(old), !0);
    victim.renamed(new);
    // The answer it waited for was cut off: it runs the faulting instruction again.
    victim.abandon()?;
    same!("MyGlobalId", victim.word(utcb::MY_GLOBAL_ID)?, new.0);
    victim.delete()
}

fn version_change_aborts() -> Outcome {
    let victim = Victim::task()?;
    let old = victim.id();
    victim.begin_ipc(NIL, old, 0, [0; 8])?;
    let new = ThreadId::global(old.number(), 2);
    same!("the change", thread_control(new, ROOT, NIL, NIL, NONE), InvalidSpace as u64);
    same!("the change", thread_control(new, old, NIL, NIL, NONE), 0);
    victim.renamed(new);
    let (_, mr) = victim.ipc_result()?;
    check!(abi::MsgTag(mr[0]).is_error(), "the receive of a renamed thread went on: {:#x}", mr[0]);
    victim.delete()
}

fn deletes_in_every_state() -> Outcome {
    let before = free_pages();
    let inactive = world::new_space()?;
    let starting = world::new_task()?;
    let ready = Victim::task()?;
    ready.begin(SPIN, registers())?;
    let polling = Victim::task()?;
    polling.begin_ipc(starting, NIL, 0, [0; 8])?;
    let waiting = Victim::task()?;
    waiting.begin_ipc(NIL, ThreadId::ANY, 0, [0; 8])?;
    let sleeping = Victim::task()?;
    sleeping.begin_ipc(NIL, sleeping.id(), u64::from(Time::micros(2_000).0), [0; 8])?;
    let halted = Victim::task()?;
    let stop = abi::syscall::exregs::HALT_VALID | abi::syscall::exregs::HALT;
    let regs = runtime::syscall::ThreadRegisters { control: stop, ..Default::default() };
    machine::exchange(halted.id(), regs);
    halted.go(registers())?;
    ipc::sleep(1_000);
    same!("a spinning thread's state", world::state(ready.id()), state::READY);
    same!("a sender's state", world::state(polling.id()), state::POLLING);
    same!("a receiver's state", world::state(waiting.id()), state::WAITING);
    same!("a halted thread's state", world::state(halted.id()), state::HALTED);
    for id in [inactive, starting] {
        world::delete(id)?;
    }
    for victim in [ready, polling, waiting, sleeping, halted] {
        victim.delete()?;
    }
    ipc::sleep(4_000);
    world::sound()?;
    same!("the kernel's free pages afterwards", free_pages(), before);
    Ok(())
}

fn deletion_tells() -> Outcome {
    let target = world::new_task()?;
    let (sender, receiver) = (Victim::task()?, Victim::task()?);
    sender.begin_ipc(target, NIL, 0, [0; 8])?;
    receiver.begin_ipc(NIL, target, 0, [0; 8])?;
    ipc::sleep(1_000);
    world::delete(target)?;
    for (victim, phase) in [(&sender, Phase::Send), (&receiver, Phase::Receive)] {
        let (_, mr) = victim.ipc_result()?;
        check!(abi::MsgTag(mr[0]).is_error(), "a partner of a deleted thread was not told");
        let expected = IpcError::new(IpcErrorKind::NonExisting, phase).word();
        same!("the error of a deleted thread's partner", victim.error_code()?, expected);
    }
    sender.delete()?;
    receiver.delete()
}

fn initial_threads() -> Outcome {
    for id in [ThreadId::SIGMA0, ROOT] {
        let other = ThreadId::global(id.number(), 9);
        same!(
            "deleting an initial thread",
            thread_control(id, NIL, NIL, NIL, NONE),
            InvalidThread as u64
        );
        same!(
            "deleting it by another version",
            thread_control(other, NIL, NIL, NIL, NONE),
            InvalidThread as u64
        );
    }
    check!(world::state(ThreadId::SIGMA0) != !0, "sigma0 is gone");
    Ok(())
}

fn interrupt_errors() -> Outcome {
    let wrong = InvalidThread as u64;
    let attach = |irq: ThreadId, handler: ThreadId| thread_control(irq, irq, NIL, handler, NONE);
    for line in [0, 2] {
        same!("a line that the kernel keeps", attach(ThreadId::irq(line), ROOT), wrong);
    }
    same!("a handler that does not exist", attach(ThreadId::irq(8), world::fresh()), wrong);
    same!("an interrupt as handler", attach(ThreadId::irq(8), ThreadId::irq(9)), wrong);
    same!("a wrong version", attach(ThreadId::global(8, 2), ROOT), wrong);
    same!("nobody as handler", attach(ThreadId::irq(8), NIL), wrong);
    same!("attaching a free line", attach(ThreadId::irq(5), ROOT), 0);
    same!("detaching it", attach(ThreadId::irq(5), ThreadId::irq(5)), 0);
    // A handler that goes away leaves the line free.
    let handler = world::new_task()?;
    same!("attaching to a thread", attach(ThreadId::irq(5), handler), 0);
    world::delete(handler)?;
    let ok = runtime::syscall::schedule(ThreadId::irq(5).0, !0, !0, !0, !0).0;
    if ok != 0 {
        return Err(Sentence::new(format_args!("the line of a deleted handler is still attached")));
    }
    Ok(())
}
