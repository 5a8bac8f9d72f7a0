//! Vector registers of threads that exchange messages in user mode.

use runtime::{Msg, ipc, kernel};

use crate::cast::{Actor, Part};
use crate::{Verdict, calls, entries, in_user_mode, machine};

/// Makes this thread and those that it creates users of vector registers for a while.
pub fn as_user(test: impl FnOnce() -> Verdict) -> Verdict {
    kernel::use_vector_registers().map_err(|_| "the kernel was not told of vector registers")?;
    let verdict = test();
    kernel::use_no_vector_registers().map_err(|_| "the kernel was not told of their end")?;
    verdict
}

pub fn words() -> Verdict {
    as_user(crate::words)
}

pub fn take_part() -> Verdict {
    as_user(|| {
        let adder = Actor::start(0, Part::VectorAdd);
        let verdict = in_user_mode(adder.local);
        adder.stop();
        verdict
    })
}

pub fn interrupted() -> Verdict {
    as_user(|| {
        let adder = Actor::start(0, Part::VectorAdd);
        let waker = Actor::start(1, Part::VectorWake);
        for round in 0..200_000 {
            calls(adder.local, 1)?;
            if !machine::vectors_last(round) {
                return Err("a vector register changed under its thread");
            }
        }
        waker.stop();
        adder.stop();
        Ok(())
    })
}

pub fn kept() -> Verdict {
    as_user(|| {
        let keeper = Actor::start(0, Part::VectorKeep);
        for round in 0..200 {
            machine::hold(round);
            calls(keeper.local, 1)?;
        }
        keeper.stop();
        Ok(())
    })
}

/// A user of vector registers among threads that use none is no partner in user mode, and the
/// other way round: nobody leaves his registers to one who has said to have none.
pub fn mixed() -> Verdict {
    let plain = Actor::start(0, Part::Add);
    calls(plain.local, 10)?;
    let verdict = as_user(|| {
        let before = entries();
        calls(plain.local, 50)?;
        let spent = entries() - before;
        if spent >= 50 { Ok(()) } else { Err("a user and a thread without took part together") }
    });
    plain.stop();
    verdict
}

pub fn refused() -> Verdict {
    let plain = Actor::start(0, Part::Add);
    let user = {
        let mut user = None;
        as_user(|| {
            user = Some(Actor::start(1, Part::VectorAdd));
            Ok(())
        })?;
        user.ok_or("there is no user")?
    };
    for round in 0..20 {
        let answer = ipc::local_call(user.local, &Msg::default().words(&[round, 1]));
        if answer.map_err(|_| "the user did not answer")?.get(0) != round + 1 {
            return Err("the user answered otherwise");
        }
    }
    let verdict = in_user_mode(plain.local);
    plain.stop();
    user.stop();
    verdict.map_err(|_| "who was refused once spoilt it for others")
}
