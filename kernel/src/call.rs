//! The system calls that are not IPC: from registers to arguments and back.

use abi::syscall::Call;
use abi::{CallError, Fpage, ThreadId, utcb};

use crate::arch::{Frame, TcbRef, note_entry};
use crate::sched::schedule::thread_switch;
use crate::thread::control::{After, Form, Request};
use crate::thread::exregs::{self, Registers};
use crate::thread::tcb::Resume;
use crate::usermem::Utcb;
use crate::{inspect, ipc, sched, space, thread};

/// Carries out the call of `caller`, the current thread, whose registers are in `frame`;
/// returns who runs next.
///
/// Each call has a function of its own that is not inlined: so this one jumps there and
/// needs no stack.
#[must_use]
pub extern "C" fn dispatch(caller: TcbRef, frame: Frame) -> TcbRef {
    note_entry();
    caller.resume.set(Resume::Frame);
    match Call::decode(frame.r8.get()) {
        Some(Call::ExchangeRegisters) => exchange_registers(caller, frame),
        Some(Call::ThreadControl) => thread_control(caller, frame),
        Some(Call::CreateThread) => create_thread(caller, frame),
        Some(Call::ThreadSwitch) => thread_switch(caller, ThreadId(frame.rdi.get())),
        Some(Call::Schedule) => schedule(caller, frame),
        Some(Call::SpaceControl) => space_control(caller, frame),
        Some(Call::ProcessorControl) => processor_control(caller, frame),
        Some(Call::MemoryControl) => memory_control(caller, frame),
        Some(Call::QuotaControl) => quota_control(caller, frame),
        Some(Call::TaskControl) => task_control(caller, frame),
        Some(Call::Inspect) => inspect(caller, frame),
        Some(Call::ThreadState) => thread_state(caller, frame),
        Some(Call::ArmLocal) => arm_local(caller, frame),
        Some(Call::Unmap) | None => no_call(caller, frame),
    }
}

/// The call may have made a thread ready, or changed a priority: who runs next.
fn finish(caller: TcbRef) -> TcbRef {
    if caller.is_ready() { sched::tick::reschedule(caller) } else { ipc::go_on(caller) }
}

#[inline(never)]
fn no_call(caller: TcbRef, frame: Frame) -> TcbRef {
    set_result(caller, frame, Err(CallError::InvalidParameter));
    finish(caller)
}

/// Changes no register. An armed thread goes on as one.
#[inline(never)]
fn arm_local(caller: TcbRef, frame: Frame) -> TcbRef {
    ipc::local::arm(caller, ThreadId(frame.rsi.get()));
    if caller.is_armed() {
        caller.resume.set(Resume::Anew);
    }
    finish(caller)
}

#[inline(never)]
fn inspect(caller: TcbRef, frame: Frame) -> TcbRef {
    inspect::call(caller, frame);
    finish(caller)
}

/// Reports success (1) or failure (0 and ErrorCode).
fn set_result(caller: TcbRef, frame: Frame, result: Result<(), CallError>) {
    frame.rax.set(u64::from(result.is_ok()));
    if let Err(error) = result {
        set_error(caller, error);
    }
}

/// Sets the caller's ErrorCode.
pub fn set_error(caller: TcbRef, error: CallError) {
    if let Some(utcb) = Utcb::of(caller) {
        utcb.set_word(utcb::ERROR_CODE, error as u64);
    }
}

#[inline(never)]
fn exchange_registers(caller: TcbRef, frame: Frame) -> TcbRef {
    let new = Registers {
        control: frame.rsi.get(),
        sp: frame.rdx.get(),
        ip: frame.r12.get(),
        flags: frame.r9.get(),
        handle: frame.r10.get(),
        pager: ThreadId(frame.rdi.get()),
    };
    let done = exregs::exchange_registers(caller, ThreadId(frame.rax.get()), &new);
    let (name, old) = done.unwrap_or_default();
    if done.is_none() {
        set_error(caller, CallError::InvalidThread);
    }
    frame.rax.set(name.0);
    frame.rsi.set(old.control);
    frame.rdx.set(old.sp);
    frame.r8.set(old.ip);
    frame.r9.set(old.flags);
    frame.r10.set(old.handle);
    frame.rdi.set(old.pager.0);
    finish(caller)
}

#[inline(never)]
fn thread_control(caller: TcbRef, frame: Frame) -> TcbRef {
    control_thread(caller, frame, Form::Any)
}

#[inline(never)]
fn create_thread(caller: TcbRef, frame: Frame) -> TcbRef {
    control_thread(caller, frame, Form::Create)
}

fn control_thread(caller: TcbRef, frame: Frame, form: Form) -> TcbRef {
    let request = Request {
        dest: ThreadId(frame.rdi.get()),
        pager: ThreadId(frame.rsi.get()),
        scheduler: ThreadId(frame.rdx.get()),
        space: ThreadId(frame.r12.get()),
        utcb_location: frame.r9.get(),
    };
    let result = thread::control::in_form(caller, &request, form);
    set_result(caller, frame, result.as_ref().map(|_| ()).map_err(|error| *error));
    match result {
        Ok(After::Destroy(space)) => space::destroy::start(caller, space),
        _ => ipc::go_on(caller),
    }
}

#[inline(never)]
fn schedule(caller: TcbRef, frame: Frame) -> TcbRef {
    let words = sched::schedule::Request {
        dest: ThreadId(frame.rdi.get()),
        priority: frame.rsi.get(),
        time: frame.rdx.get(),
        processor: frame.r12.get(),
        preemption: frame.r9.get(),
    };
    match sched::schedule::schedule(caller, &words) {
        Ok((state, time)) => {
            frame.rax.set(state);
            frame.rdx.set(time);
            if let Some(utcb) = Utcb::of(caller) {
                utcb.set_word(utcb::ERROR_CODE, 0);
            }
        }
        Err(error) => set_result(caller, frame, Err(error)),
    }
    finish(caller)
}

#[inline(never)]
fn space_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let (kip, utcbs) = (Fpage(frame.rdx.get()), Fpage(frame.r12.get()));
    let result = space::control::space_control(caller, ThreadId(frame.rdi.get()), kip, utcbs);
    frame.rdx.set(0);
    set_result(caller, frame, result);
    finish(caller)
}

/// No frequency or voltage can be set on the processors Baton knows: the call
/// succeeds for values left unchanged and is refused for others.
#[inline(never)]
fn processor_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let privileged = caller.space().is_some_and(|space| space.is_privileged());
    let unchanged =
        [frame.rsi.get(), frame.rdx.get(), frame.r12.get()].iter().all(|word| *word == !0);
    let result = match (privileged, frame.rdi.get() == 0 && unchanged) {
        (false, _) => Err(CallError::NoPrivilege),
        (_, false) => Err(CallError::InvalidParameter),
        _ => Ok(()),
    };
    set_result(caller, frame, result);
    finish(caller)
}

/// The memory attribute that means "as the memory is": cached RAM, uncached devices.
const DEFAULT_ATTRIBUTE: u64 = 0;

/// MemoryControl: attributes of flexpages in MR0.. (X.2 5.10); the result is in RDX.
/// Only the default attribute exists.
#[inline(never)]
fn memory_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let attributes = [frame.rbp.get(), frame.rsi.get(), frame.r12.get(), frame.r13.get()];
    let result = match (caller.space(), Utcb::of(caller)) {
        (Some(space), _) if !space.is_privileged() => Err(CallError::NoPrivilege),
        (Some(_), Some(utcb)) => (0..=(frame.rdx.get() & 0x3F) as usize).try_for_each(|index| {
            let selected = attributes[(utcb.mr(index) & 3) as usize];
            if selected == DEFAULT_ATTRIBUTE { Ok(()) } else { Err(CallError::InvalidParameter) }
        }),
        _ => Err(CallError::NoPrivilege),
    };
    set_result(caller, frame, result);
    frame.rdx.set(frame.rax.get());
    finish(caller)
}

#[inline(never)]
fn thread_state(caller: TcbRef, frame: Frame) -> TcbRef {
    let (dest, control) = (ThreadId(frame.rdi.get()), frame.rsi.get());
    let result = thread::foreign::thread_state(caller, dest, control, frame.rdx.get());
    set_result(caller, frame, result);
    finish(caller)
}

#[inline(never)]
fn quota_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let result =
        space::quota::quota_control(caller, ThreadId(frame.rdi.get()), frame.rsi.get() as i64);
    if let Ok((limit, used)) = result {
        frame.rdx.set(limit);
        frame.rsi.set(used);
    }
    set_result(caller, frame, result.map(|_| ()));
    finish(caller)
}

#[inline(never)]
fn task_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let request = space::limits::Request {
        specifier: ThreadId(frame.rdi.get()),
        numbers: frame.rsi.get(),
        ceilings: frame.rdx.get(),
    };
    let result = space::limits::task_control(caller, &request);
    if let Ok((numbers, ceilings)) = result {
        frame.rsi.set(numbers.word());
        frame.rdx.set(ceilings.word());
    }
    set_result(caller, frame, result.map(|_| ()));
    finish(caller)
}
