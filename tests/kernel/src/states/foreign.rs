//! Foreign threads: system calls become messages, and every register survives, on both paths.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::protocol::{self, exception as reg};
use abi::syscall::state;
use abi::{CallError, Fpage, MapItem, MsgTag, Rights, ThreadId, Time, Timeouts};
use runtime::kernel::{self, STATE_WORDS, VectorState};
use runtime::space::Fault;
use runtime::{Msg, clock, ipc, schedule};

use crate::report::{Outcome, because, case};
use crate::rng::Rng;
use crate::{check, machine, same, world};

/// What the program does for ever: `movq xmm1, r12; syscall; movq r13, xmm1; jmp`.
const PROGRAM: [u8; 14] =
    [0x66, 0x49, 0x0F, 0x6E, 0xCC, 0x0F, 0x05, 0x66, 0x49, 0x0F, 0x7E, 0xCD, 0xEB, 0xF2];
/// Offset behind its `syscall`.
const BEHIND: u64 = 7;
/// A program that never calls: `jmp $`.
const IDLE: [u8; 2] = [0xEB, 0xFE];
const IDLE_AT: u64 = 64;
/// Where programs see the page.
const PLACE: u64 = 0x40_0000;

#[repr(C, align(4096))]
struct Page([u8; 4096]);
static CODE: Page = Page([0xCC; 4096]);
static mut STATE: VectorState = VectorState([0; 2688]);
type Words = [u64; STATE_WORDS];

/// Instructions before a tick at which answers are given, up to so many and so far apart: more
/// than an answer, the program's next call and the handler's return take.
const BEFORE_A_TICK: u64 = 400;
const APART: usize = 2;
/// A pause between two looks at the counter that only a tick explains, instructions.
const GAP: u64 = 100;
/// Times that the thread that every tick wakes has run.
static WOKEN: AtomicU64 = AtomicU64::new(0);

/// Runs the tests.
pub fn run() {
    case("a_foreign_call_keeps_every_register", every_register);
    case("foreign_answers_on_the_complete_path", complete_answers);
    case("foreign_vector_and_base_registers_are_kept_apart", two_programs);
    case("a_tick_at_any_instruction_keeps_every_register", preempted);
    case("a_foreign_thread_can_be_stopped", stopping);
    case("a_stopped_call_at_address_0_stays_a_users", stopping_at_zero);
    case("a_foreign_thread_raises_exceptions_at_its_handler", exceptions);
    case("foreign_vector_state_can_be_read_and_set", vector_state);
    case("a_new_foreign_threads_vector_state_has_nothing_of_others", new_vector_state);
    case("thread_state_is_refused_where_it_must_be", refusals);
}

/// A foreign thread in a space of its own, waiting for its first answer.
fn program() -> Outcome<ThreadId> {
    let at = CODE.0.as_ptr() as u64;
    machine::write_bytes(at, &PROGRAM);
    machine::write_bytes(at + IDLE_AT, &IDLE);
    let id = world::new_task()?;
    because(kernel::make_foreign(id), "making a thread foreign")?;
    Ok(id)
}

fn send(id: ThreadId, msg: &Msg) -> Outcome {
    because(ipc::send_within(id, msg, Time::ZERO), "answering a foreign thread")
}

/// The next message of `id` that is no page fault in its program.
fn next(id: ThreadId) -> Outcome<Msg> {
    loop {
        let msg = because(ipc::receive(id, Time::micros(60_000)), "waiting for a foreign thread")?;
        if Fault::decode(&msg).is_none() {
            return Ok(msg);
        }
        answer_fault(id, &msg)?;
    }
}

fn answer_fault(id: ThreadId, msg: &Msg) -> Outcome {
    same!("the faulting page", msg.mr[0] & !0xFFF, PLACE);
    let fpage = Fpage::memory(CODE.0.as_ptr() as u64, 12, Rights::RX);
    send(id, &Msg::default().map(MapItem { fpage, send_base: PLACE, grant: false }))
}

fn is_call(msg: &Msg) -> bool {
    msg.tag == MsgTag::protocol(protocol::SYSTEM_CALL, 0, 7, 0)
}

/// Random registers at the start of the program.
fn random(rng: &mut Rng) -> Words {
    let mut words: Words = core::array::from_fn(|_| rng.word());
    words[reg::RIP] = PLACE;
    words[reg::RFLAGS] = 0x202 | words[reg::RFLAGS] & 0x8D5;
    [state::FS_BASE, state::GS_BASE].into_iter().for_each(|base| words[base] &= (1 << 47) - 1);
    words
}

/// What must be there after the program's first `syscall`.
fn after(mut words: Words) -> Words {
    words[reg::RIP] = PLACE + BEHIND;
    words[reg::RCX] = words[reg::RIP];
    words[reg::R11] = words[reg::RFLAGS];
    words
}

fn compare(id: ThreadId, expected: &Words) -> Outcome {
    let mut found = because(kernel::foreign_registers(id), "reading the registers")?;
    found[reg::RFLAGS] &= !machine::RESUME_FLAG;
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        if !matches!(index, reg::VECTOR | reg::ERROR) {
            check!(found == expected, "word {index} is {found:#x} instead of {expected:#x}");
        }
    }
    Ok(())
}

fn check_call(msg: &Msg, words: &Words) -> Outcome {
    check!(is_call(msg), "the message has tag {:#x}", msg.tag.0);
    let names = [reg::RAX, reg::RDI, reg::R10, reg::RSI, reg::RDX, reg::R8, reg::R9];
    for (index, name) in names.into_iter().enumerate() {
        same!("a word of the message", msg.mr[index], words[name]);
    }
    Ok(())
}

/// Answers with `result` by reply & wait, which is the fast path's case, and takes the next message.
fn reply_wait(id: ThreadId, result: u64) -> Outcome<Msg> {
    let reply = Msg::new(0).word(result);
    let (from, msg) = because(
        ipc::ipc(id, ThreadId::ANY, Timeouts::REPLY_WAIT, &reply),
        "reply & wait to a foreign thread",
    )?;
    same!("the sender", from, id);
    Ok(msg)
}

fn every_register() -> Outcome {
    let (id, mut rng) = (program()?, Rng::new(0xF0));
    for number in 0..100_u64 {
        let mut words = random(&mut rng);
        words[reg::R8] = number.wrapping_neg(); // as in the kernel's own calls
        because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
        compare(id, &words)?;
        send(id, &Msg::new(0))?;
        let msg = next(id)?;
        let mut words = after(words);
        check_call(&msg, &words)?;
        compare(id, &words)?;
        // Twice by the fast path: the call meets an open wait, the answer goes at once.
        for _ in 0..2 {
            words[reg::RAX] = rng.word();
            words[reg::R13] = words[reg::R12];
            let msg = reply_wait(id, words[reg::RAX])?;
            check_call(&msg, &words)?;
            compare(id, &words)?;
        }
    }
    world::delete(id)
}

/// Waits for the next tick; returns when it was over.
fn tick() -> u64 {
    let mut last = clock::ticks();
    loop {
        let now = clock::ticks();
        if now - last > GAP {
            return now;
        }
        last = now;
    }
}

extern "C" fn woken_by_ticks(_: u64) -> ! {
    loop {
        ipc::sleep(500);
        WOKEN.fetch_add(1, Ordering::Relaxed);
    }
}

/// With counted instructions the tick comes into the answer, the program, its call, or the
/// handler, one place after the other, and wakes somebody more urgent than both.
fn preempted() -> Outcome {
    let (id, mut rng) = (program()?, Rng::new(0xF6));
    let words = random(&mut rng);
    because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
    send(id, &Msg::new(0))?;
    let _ = next(id)?;
    let mut words = after(words);
    words[reg::R13] = words[reg::R12];
    let waker = world::spawn(woken_by_ticks, 0)?;
    because(schedule::set_priority(waker, 255), "setting a priority")?;
    WOKEN.store(0, Ordering::Relaxed);
    let period = tick().abs_diff(tick());
    for before in (0..BEFORE_A_TICK).step_by(APART) {
        let due = tick() + period - before;
        while clock::ticks() < due {}
        words[reg::RAX] = rng.word();
        check_call(&reply_wait(id, words[reg::RAX])?, &words)?;
        compare(id, &words)?;
    }
    let woken = WOKEN.load(Ordering::Relaxed);
    // How many ticks fall between two rounds follows from when the machine was started.
    let rounds = BEFORE_A_TICK / APART as u64;
    check!(woken >= rounds - rounds / 10, "the ticks have woken their thread {woken} times");
    world::delete(waker)?;
    world::delete(id)
}

fn complete_answers() -> Outcome {
    let (id, mut rng) = (program()?, Rng::new(0xF1));
    let mut words = random(&mut rng);
    because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
    send(id, &Msg::new(0))?;
    let _ = next(id)?;
    words = after(words);
    words[reg::R13] = words[reg::R12];
    for round in 0..40 {
        // Send and receive apart; every other answer has no word and leaves RAX alone.
        if round % 2 == 0 {
            words[reg::RAX] = rng.word();
            send(id, &Msg::new(0).word(words[reg::RAX]))?;
        } else {
            send(id, &Msg::new(0))?;
        }
        let msg = next(id)?;
        check_call(&msg, &words)?;
        compare(id, &words)?;
    }
    world::delete(id)
}

/// Two programs whose calls alternate, each with a vector register and bases of its own.
fn two_programs() -> Outcome {
    let (one, other, mut rng) = (program()?, program()?, Rng::new(0xF2));
    let mut all = [(one, random(&mut rng)), (other, random(&mut rng))];
    for (id, words) in &all {
        because(kernel::set_foreign_registers(*id, words), "setting the registers")?;
        send(*id, &Msg::new(0))?;
        let _ = next(*id)?;
    }
    for (_, words) in &mut all {
        *words = after(*words);
        words[reg::R13] = words[reg::R12];
    }
    for round in 0..50 {
        let (id, words) = &mut all[round % 2];
        words[reg::RAX] = rng.word();
        let msg = reply_wait(*id, words[reg::RAX])?;
        check_call(&msg, words)?;
        compare(*id, words)?;
    }
    world::delete(one)?;
    world::delete(other)
}

/// Lets the program run until it wants to send its first call; its registers before that.
fn about_to_call(id: ThreadId, rng: &mut Rng) -> Outcome<Words> {
    let words = random(rng);
    because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
    send(id, &Msg::new(0))?;
    let fault = because(ipc::receive(id, Time::micros(60_000)), "its first page fault")?;
    answer_fault(id, &fault)?;
    ipc::sleep(3_000);
    Ok(words)
}

fn stopping() -> Outcome {
    let id = program()?;
    // Before the handler has received the call: it is made again.
    let mut words = about_to_call(id, &mut Rng::new(0xF3))?;
    because(kernel::stop(id), "stopping a thread that is about to call")?;
    let found = because(kernel::foreign_registers(id), "reading")?;
    same!("the instruction pointer", found[reg::RIP], PLACE + BEHIND - 2);
    send(id, &Msg::new(0))?;
    check_call(&next(id)?, &after(words))?;
    // In the middle of its program.
    words[reg::RIP] = PLACE + IDLE_AT;
    because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
    send(id, &Msg::new(0))?;
    ipc::sleep(3_000);
    because(kernel::stop(id), "stopping a thread that runs")?;
    compare(id, &words)?;
    let nothing = ipc::receive(id, Time::micros(3_000));
    check!(nothing.is_err(), "the stopped thread sent something");
    // And on, to a call.
    words[reg::RIP] = PLACE;
    because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
    send(id, &Msg::new(0))?;
    check_call(&next(id)?, &after(words))?;
    world::delete(id)
}

/// The call to be made again would lie below address 0, at the end of the kernel's.
fn stopping_at_zero() -> Outcome {
    let id = program()?;
    let mut words = about_to_call(id, &mut Rng::new(0xF6))?;
    words[reg::RIP] = 0;
    because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
    because(kernel::stop(id), "stopping a thread that is about to call")?;
    let found = because(kernel::foreign_registers(id), "reading")?;
    same!("the instruction pointer", found[reg::RIP], abi::layout::USER_END);
    world::delete(id)
}

fn exceptions() -> Outcome {
    let (id, mut rng) = (program()?, Rng::new(0xF4));
    let mut words = random(&mut rng);
    // Filled with int3.
    words[reg::RIP] = PLACE + 128;
    because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
    send(id, &Msg::new(0))?;
    let msg = next(id)?;
    same!("its tag", msg.tag, MsgTag::protocol(protocol::EXCEPTION, 0, 20, 0));
    // Gates are closed to users: a protection fault that names vector 3 in the table.
    let (vector, error) = (runtime::utcb::mr(1 + reg::VECTOR), runtime::utcb::mr(1 + reg::ERROR));
    compare(id, &words)?;
    // QEMU's emulation counts in entries of 16 bytes.
    check!(vector == 13 && matches!(error, 0x1A | 0x32), "vector {vector}, error {error:#x}");
    words[reg::RIP] = PLACE;
    because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
    send(id, &Msg::new(0))?;
    check_call(&next(id)?, &after(words))?;
    world::delete(id)
}

fn vector_state() -> Outcome {
    let (id, mut rng) = (program()?, Rng::new(0xF5));
    let words = random(&mut rng);
    because(kernel::set_foreign_registers(id, &words), "setting the registers")?;
    send(id, &Msg::new(0))?;
    let _ = next(id)?;
    let buffer = &raw mut STATE;
    // SAFETY: one thread uses the buffer, here.
    let buffer = unsafe { &mut *buffer };
    because(kernel::vector_state(id, buffer), "reading the vector state")?;
    let xmm1 = |buffer: &VectorState| {
        u64::from_le_bytes(buffer.0[176..184].try_into().unwrap_or_default())
    };
    same!("XMM1", xmm1(buffer), words[reg::R12]);
    // A hostile image: reserved bits everywhere.
    buffer.0.fill(0xFF);
    buffer.0[176..184].copy_from_slice(&0x1234_5678_u64.to_le_bytes());
    because(kernel::set_vector_state(id, buffer), "setting a hostile vector state")?;
    let msg = reply_wait(id, 1)?;
    check!(is_call(&msg), "the message has tag {:#x}", msg.tag.0);
    let found = because(kernel::foreign_registers(id), "reading")?;
    same!("R13, which the program took from XMM1", found[reg::R13], 0x1234_5678);
    world::delete(id)
}

/// New threads get the frames of old ones as they are.
fn new_vector_state() -> Outcome {
    let buffer = &raw mut STATE;
    // SAFETY: one thread uses the buffer, here.
    let buffer = unsafe { &mut *buffer };
    for round in 0..16 {
        let id = program()?;
        buffer.0.fill(0);
        because(kernel::vector_state(id, buffer), "reading a new vector state")?;
        // The control words, and nothing else.
        buffer.0[..2].fill(0);
        buffer.0[24..28].fill(0);
        let found = buffer.0.iter().position(|byte| *byte != 0);
        check!(
            found.is_none(),
            "round {round}: byte {found:?} of a new vector state is somebody's"
        );
        buffer.0.fill(0xFF);
        because(kernel::set_vector_state(id, buffer), "setting a vector state")?;
        world::delete(id)?;
    }
    Ok(())
}

fn refusals() -> Outcome {
    let native = world::new_task()?;
    let words = [0; STATE_WORDS];
    same!(
        "the registers of a native thread",
        kernel::set_foreign_registers(native, &words),
        Err(CallError::InvalidParameter)
    );
    same!("stopping it", kernel::stop(native), Err(CallError::InvalidParameter));
    same!("oneself", kernel::make_foreign(ThreadId::ROOT), Err(CallError::InvalidThread));
    same!("nobody", kernel::stop(world::fresh()), Err(CallError::InvalidThread));
    because(kernel::make_foreign(native), "making it foreign")?;
    same!("twice", kernel::make_foreign(native), Err(CallError::InvalidParameter));
    let mut absurd = [!0; STATE_WORDS];
    absurd[reg::RFLAGS] = !0;
    because(kernel::set_foreign_registers(native, &absurd), "absurd registers")?;
    let found = because(kernel::foreign_registers(native), "reading")?;
    same!("FS base", found[state::FS_BASE], 0);
    check!(found[reg::RFLAGS] & 0x3000 == 0, "IOPL was set: {:#x}", found[reg::RFLAGS]);
    send(native, &Msg::new(0))?;
    let msg = because(ipc::receive(native, Time::micros(60_000)), "its end")?;
    check!(!is_call(&msg), "a thread at no address made a call");
    world::delete(native)
}
