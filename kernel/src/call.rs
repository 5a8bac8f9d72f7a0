//! The system calls that are not IPC: from registers to arguments and back.

use abi::syscall::Call;
use abi::{CallError, Fpage, ThreadId, utcb};

use crate::arch::{Frame, note_entry};
use crate::control::exregs::{self, Registers};
use crate::control::schedule::thread_switch;
use crate::control::thread_control::{After, Form, Request};
use crate::elsewhere;
use crate::ipc::kernel_message;
use crate::sched::slice::after_call;
use crate::thread::tcb::Resume;
use crate::thread::{TcbRef, set_error, set_result};
use crate::usermem::Utcb;
use crate::{control, destruction, inspect, lrpc, sched, space, thread};

/// Carries out the call of `caller`, the current thread, whose registers are in `frame`;
/// returns who runs next.
///
/// Each call has a function of its own that is not inlined: so this one jumps there and
/// needs no stack.
#[must_use]
pub extern "C" fn dispatch(caller: TcbRef, frame: Frame) -> TcbRef {
    note_entry();
    caller.resume.set(Resume::Frame);
    let [dest, ..] = frame.arguments();
    match Call::decode(frame.call()) {
        Some(Call::ExchangeRegisters) => exchange_registers(caller, frame),
        Some(Call::ThreadControl) => thread_control(caller, frame),
        Some(Call::CreateThread) => create_thread(caller, frame),
        Some(Call::ThreadSwitch) => thread_switch(caller, ThreadId(dest)),
        Some(Call::Schedule) => schedule(caller, frame),
        Some(Call::SpaceControl) => space_control(caller, frame),
        Some(Call::ProcessorControl) => processor_control(caller, frame),
        Some(Call::MemoryControl) => memory_control(caller, frame),
        Some(Call::QuotaControl) => quota_control(caller, frame),
        Some(Call::TaskControl) => task_control(caller, frame),
        Some(Call::Inspect) => inspect(caller, frame),
        Some(Call::ThreadState) => thread_state(caller, frame),
        Some(Call::ArmLocal) => arm_local(caller, frame),
        Some(Call::LrpcBind) => lrpc_bind(caller, frame),
        Some(Call::LrpcControl) => lrpc_control(caller, frame),
        // Their registers are those of Ipc, like Unmap's.
        Some(Call::Unmap | Call::LrpcCall | Call::LrpcReturn) | None => no_call(caller, frame),
    }
}

#[inline(never)]
fn no_call(caller: TcbRef, frame: Frame) -> TcbRef {
    set_result(caller, frame, Err(CallError::InvalidParameter));
    after_call(caller)
}

/// Changes no register. An armed thread goes on as one.
#[inline(never)]
fn arm_local(caller: TcbRef, frame: Frame) -> TcbRef {
    let [_, partner, ..] = frame.arguments();
    control::arm::arm(caller, ThreadId(partner));
    if caller.is_armed() {
        caller.resume.set(Resume::Anew);
    }
    after_call(caller)
}

/// The clerk of a binding is asked.
#[inline(never)]
fn lrpc_bind(caller: TcbRef, frame: Frame) -> TcbRef {
    match lrpc::bind::clerk(caller, frame) {
        Ok(clerk) => kernel_message::bind(caller, clerk),
        Err(error) => {
            set_result(caller, frame, Err(error));
            after_call(caller)
        }
    }
}

#[inline(never)]
fn inspect(caller: TcbRef, frame: Frame) -> TcbRef {
    inspect::call(caller, frame);
    after_call(caller)
}

#[inline(never)]
fn exchange_registers(caller: TcbRef, frame: Frame) -> TcbRef {
    let [dest, control, sp, ip, flags, handle, pager] = frame.exchange_arguments();
    let new = Registers { control, sp, ip, flags, handle, pager: ThreadId(pager) };
    let done = exregs::exchange_registers(caller, ThreadId(dest), &new);
    let (name, old) = done.unwrap_or_default();
    if done.is_none() {
        set_error(caller, CallError::InvalidThread);
    }
    let Registers { control, sp, ip, flags, handle, pager } = old;
    frame.set_exchange_results([name.0, control, sp, ip, flags, handle, pager.0]);
    after_call(caller)
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
    let [dest, pager, scheduler, space, utcb_location] = frame.arguments();
    let request = Request {
        dest: ThreadId(dest),
        pager: ThreadId(pager),
        scheduler: ThreadId(scheduler),
        space: ThreadId(space),
        utcb_location,
    };
    let result = control::thread_control::in_form(caller, &request, form);
    set_result(caller, frame, result.as_ref().map(|_| ()).map_err(|error| *error));
    match result {
        Ok(After::Destroy(space)) => destruction::start(caller, space),
        _ => sched::go_on(caller),
    }
}

/// `caller` makes a call again that an interrupt has met, with its first argument, where its result may stand by now.
pub fn again(caller: TcbRef) -> TcbRef {
    let dest = ThreadId(caller.destroy_next.get());
    caller.frame().set_result(dest.0);
    let next = dispatch(caller, caller.frame());
    if caller.resume.get() != Resume::Again {
        // It may have been refused, this time.
        lrpc::revocation::reopen(dest);
    }
    next
}

/// `caller` is about to make a call again that an interrupt has met: those who are more urgent than the
/// task of the thread that it concerns go first, as for a destruction (docs/decisions/0052).
#[must_use]
pub fn give_way(caller: TcbRef) -> TcbRef {
    let dest = caller.destroy_next.get();
    let space = thread::lookup_number(ThreadId(dest).number()).and_then(TcbRef::space);
    let priority = space.map_or(u8::MAX, |space| space.ceilings().priority);
    sched::slice::give_way(caller, priority)
}

#[inline(never)]
fn schedule(caller: TcbRef, frame: Frame) -> TcbRef {
    let [dest, priority, time, processor, preemption] = frame.arguments();
    let dest = ThreadId(dest);
    let words = control::schedule::Change { dest, priority, time, processor, preemption };
    match control::schedule::schedule(caller, &words) {
        Ok((state, time)) => {
            frame.set_result(state);
            frame.set_second(time);
            if let Some(utcb) = Utcb::of(caller) {
                utcb.set_word(utcb::ERROR_CODE, 0);
            }
        }
        Err(error) => set_result(caller, frame, Err(error)),
    }
    after_call(caller)
}

#[inline(never)]
fn space_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let [dest, _, kip, utcbs, _] = frame.arguments();
    let (kip, utcbs) = (Fpage(kip), Fpage(utcbs));
    let result = space::space_control::space_control(caller, ThreadId(dest), kip, utcbs);
    if caller.resume.get() == Resume::Again {
        // Its arguments stay where they are.
        return sched::go_on(caller);
    }
    frame.set_second(0);
    set_result(caller, frame, result);
    after_call(caller)
}

/// No frequency or voltage can be set on the processors Baton knows: the call
/// succeeds for values left unchanged and is refused for others.
#[inline(never)]
fn processor_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let privileged = caller.space().is_some_and(|space| space.is_privileged());
    let [processor, values @ .., _] = frame.arguments();
    let unchanged = values.iter().all(|word| *word == !0);
    let result = match (privileged, elsewhere::exists(processor) && unchanged) {
        (false, _) => Err(CallError::NoPrivilege),
        (_, false) => Err(CallError::InvalidParameter),
        _ => Ok(()),
    };
    set_result(caller, frame, result);
    after_call(caller)
}

/// The memory attribute that means "as the memory is": cached RAM, uncached devices.
const DEFAULT_ATTRIBUTE: u64 = 0;

/// MemoryControl: attributes of flexpages in MR0.. (X.2 5.10); the result is the second one, too.
/// Only the default attribute exists.
#[inline(never)]
fn memory_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let ([_, _, control, ..], attributes) = (frame.arguments(), frame.attributes());
    let result = match (caller.space(), Utcb::of(caller)) {
        (Some(space), _) if !space.is_privileged() => Err(CallError::NoPrivilege),
        (Some(_), Some(utcb)) => (0..=(control & 0x3F) as usize).try_for_each(|index| {
            let selected = attributes[(utcb.mr(index) & 3) as usize];
            if selected == DEFAULT_ATTRIBUTE { Ok(()) } else { Err(CallError::InvalidParameter) }
        }),
        _ => Err(CallError::NoPrivilege),
    };
    set_result(caller, frame, result);
    frame.set_second(u64::from(result.is_ok()));
    after_call(caller)
}

#[inline(never)]
fn thread_state(caller: TcbRef, frame: Frame) -> TcbRef {
    let [dest, control, buffer, ..] = frame.arguments();
    let result = control::foreign::thread_state(caller, ThreadId(dest), control, buffer);
    set_result(caller, frame, result);
    after_call(caller)
}

#[inline(never)]
fn quota_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let [dest, pages, ..] = frame.arguments();
    let result = space::quota_control::quota_control(caller, ThreadId(dest), pages as i64);
    if let Ok((limit, used)) = result {
        frame.set_second(limit);
        frame.set_third(used);
    }
    set_result(caller, frame, result.map(|_| ()));
    after_call(caller)
}

#[inline(never)]
fn lrpc_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let [clerk, what, argument, ..] = frame.arguments();
    let result = lrpc::revocation::control(caller, ThreadId(clerk), what, argument);
    if let Ok(count) = result {
        frame.set_third(count);
    }
    set_result(caller, frame, result.map(|_| ()));
    after_call(caller)
}

#[inline(never)]
fn task_control(caller: TcbRef, frame: Frame) -> TcbRef {
    let [specifier, numbers, ceilings, ..] = frame.arguments();
    let specifier = ThreadId(specifier);
    let request = space::task_control::Gift { specifier, numbers, ceilings };
    let result = space::task_control::task_control(caller, &request, control::ceiling::lower);
    if let Ok((numbers, ceilings)) = result {
        frame.set_third(numbers.word());
        frame.set_second(ceilings.word());
    }
    set_result(caller, frame, result.map(|_| ()));
    after_call(caller)
}
