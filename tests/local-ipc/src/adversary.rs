//! What a program can do to itself (0044): the kernel's structures stay whole, which the checker
//! says after each test, and who may not run does not.

use core::sync::atomic::Ordering;

use abi::layout::{STUB_SIZE, stub, stub_address};
use abi::protocol::{EXCEPTION, EXCEPTION_WORDS};
use abi::syscall::exregs;
use abi::{ThreadId, Time, inspect::What, utcb};
use runtime::syscall::ThreadRegisters;
use runtime::{Msg, ipc, kernel, syscall};

use crate::cast::{Actor, LIE, Part, RIGHT, WRONG};
use crate::{Verdict, calls, critical, machine, me, pause};

fn begin() {
    RIGHT.store(0, Ordering::Relaxed);
    WRONG.store(0, Ordering::Relaxed);
}

fn right() -> u64 {
    RIGHT.load(Ordering::Relaxed)
}

/// The page of the stack on which the partner goes on is missing, both ways: the fault is the
/// partner's, which its pager learns.
pub fn faulted() -> Verdict {
    // Each place's stack is in another page, with other variables beside it.
    for place in 0..4 {
        LIE.store(machine::stack(), Ordering::Relaxed);
        let server = Actor::start(place, Part::Flush);
        for _ in 0..50 {
            calls(server.local, 3)?;
            machine::flush(crate::cast::FLUSHED.load(Ordering::Relaxed));
            calls(server.local, 1)?;
        }
        server.stop();
        // The next one, and others, have no pager that could help.
        runtime::layout::touch_image();
    }
    Ok(())
}

/// Single steps of a client: an interruption at every instruction of its side.
pub fn stepped() -> Verdict {
    step(Part::Add, Part::Step)
}

/// The same of one that enters a critical section.
pub fn stepped_section() -> Verdict {
    step(Part::Section, Part::StepSection)
}

fn step(server: Part, client: Part) -> Verdict {
    const CALLS: u64 = 20;
    begin();
    let adder = Actor::start(0, server);
    let client = Actor::start(1, client);
    let mut steps = 0_u64;
    let (mut from, mut fault) = ipc::wait(Time::micros(100_000)).map_err(|_| "it does not step")?;
    while right() < CALLS {
        steps += 1;
        if fault.tag.label() as i16 as i64 >> 4 != EXCEPTION || from != client.local {
            return Err("another message came than that of a step");
        }
        let mut answer = Msg::default();
        for word in 0..EXCEPTION_WORDS {
            answer = answer.word(fault.get(word));
        }
        (from, fault) =
            ipc::reply_wait(client.id, &answer).map_err(|_| "the next step did not come")?;
    }
    client.stop();
    adder.stop();
    if WRONG.load(Ordering::Relaxed) > 0 {
        return Err("a call in single steps was answered otherwise");
    }
    if steps > 20 * CALLS { Ok(()) } else { Err("there were fewer steps than instructions") }
}

/// An armed thread, which has called the one at place 0, says that `lie` runs, and goes on as itself.
pub fn forge(lie: u64) -> Verdict {
    begin();
    LIE.store(lie, Ordering::Relaxed);
    let forger = Actor::start(3, Part::Forge);
    pause(3_000);
    let went_on = right() == 1;
    forger.stop();
    if !went_on {
        return Err("who forged the word did not go on as itself");
    }
    let broken = kernel::inspect(What::Check, 0, 0).map_or(u64::MAX, |record| record[0]);
    if broken == 0 { Ok(()) } else { Err("a forged word broke an invariant") }
}

/// The current word names threads that may not be woken so, and things that are no threads.
pub fn forged() -> Verdict {
    let halted = Actor::start(1, Part::Add);
    calls(halted.local, 3)?;
    let control = exregs::HALT | exregs::HALT_VALID;
    // SAFETY: a thread of this test is halted.
    unsafe {
        syscall::exchange_registers(
            halted.id.0,
            ThreadRegisters { control, ..ThreadRegisters::default() },
        )
    };
    let limited = Actor::start(2, Part::Wake);
    let polling = Actor::start(4, Part::Poll);
    calls(polling.local, 3)?;
    let _ = ipc::send(polling.id, &Msg::default());
    let lies = [
        halted.local.0,
        limited.local.0,
        polling.local.0,
        me().0,
        0,
        1,
        64,
        !0,
        1 << 63,
        0x1000,
        ThreadId::ROOT.0,
        halted.local.0 + 8,
        halted.local.0 + 64 * 1024,
        stub_address(0),
    ];
    for lie in lies {
        let adder = Actor::start(0, Part::Add);
        forge(lie)?;
        adder.stop();
    }
    let registers = runtime::thread::registers(halted.id).ok_or("the halted thread is gone")?;
    halted.stop();
    limited.stop();
    polling.stop();
    if registers.control & exregs::HALT == 0 {
        return Err("the halted thread is not halted any more");
    }
    // One that waits in public may be woken: that is what a message does.
    let adder = Actor::start(0, Part::Add);
    let forger = Actor::start(3, Part::Forge);
    LIE.store(adder.local.0, Ordering::Relaxed);
    pause(3_000);
    forger.stop();
    adder.stop();
    Ok(())
}

/// A wait whose words in the UTCB are nonsense.
pub fn nonsense() -> Verdict {
    let lies = [
        0,
        1,
        2,
        3,
        64,
        0x1001,
        !0 - 1,
        1 << 63,
        ThreadId::ROOT.0,
        stub_address(0),
        utcb::LIPC_SECTION,
        utcb::lipc_open(0),
        utcb::lipc_open_local(0),
        utcb::lipc_open(1),
    ];
    for lie in lies {
        for place in [utcb::LIPC_WAIT, utcb::LIPC_SP, utcb::LIPC_STATE, utcb::LIPC_CURRENT] {
            let adder = Actor::start(0, Part::Add);
            calls(adder.local, 3)?;
            machine::write_utcb(adder.local.0, place, lie);
            let msg = Msg::default().words(&[1, 2]);
            let limits = abi::Timeouts::new(Time::micros(500), Time::micros(500));
            let _ = ipc::call_within(adder.id, &msg, limits);
            adder.stop();
        }
        if machine::current_word() != me().0 {
            return Err("another thread's lie became this one's name");
        }
    }
    Ok(())
}

/// Somebody is queued to send, and the receiver pretends that nobody was.
pub fn forced() -> Verdict {
    begin();
    let server = Actor::start(0, Part::Force);
    let others = [1, 2].map(|place| Actor::start(place, Part::Call));
    for _ in 0..200 {
        calls(server.local, 20)?;
        pause(50);
    }
    others.iter().for_each(Actor::stop);
    server.stop();
    if WRONG.load(Ordering::Relaxed) > 0 {
        return Err("a call through the kernel was answered otherwise");
    }
    if right() > 100 { Ok(()) } else { Err("those who called through the kernel did not get on") }
}

/// A jump to each byte of the stubs of local IPC.
pub fn jumps() -> Verdict {
    let message = stub_address(stub::LOCAL_CALL)..stub_address(stub::SECTION_ENTER);
    let section = stub_address(stub::SECTION_ENTER)..stub_address(stub::SECTION_RUN) + STUB_SIZE;
    let of_stubs = stub_address(stub::LOCAL_CALL_ONE)..stub_address(stub::COUNT);
    let message = message.chain(of_stubs).map(|address| (address, Part::Add));
    for (address, part) in message.chain(section.map(|address| (address, Part::Section))) {
        let adder = Actor::start(0, part);
        if matches!(part, Part::Add) {
            let _ = calls(adder.local, 2);
        } else {
            (0..2).for_each(|_| assert!(critical::add(&critical::at(0))));
        }
        LIE.store(address, Ordering::Relaxed);
        let jumper = Actor::start(1, Part::Jump);
        pause(100);
        jumper.stop();
        adder.stop();
        let other = Actor::start(2, Part::Add);
        let verdict = calls(other.local, 2);
        other.stop();
        verdict?;
    }
    Ok(())
}
