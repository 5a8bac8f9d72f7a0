//! TaskControl, Baton's extension: the thread numbers that a task owns, and the ceilings
//! of its threads' time. A chief gives both; nothing that a task's threads do to each
//! other exceeds them (design 5.6; decision 0016).

use crate::space::spaces;
use core::cell::Cell;

use abi::task::UNCHANGED;
use abi::{CallError, Ceilings, Numbers, ThreadId};

use super::SpaceRef;
use crate::arch::preemption::Pace;
use crate::thread::TcbRef;

/// What a task got from its chief.
#[derive(Default)]
pub struct Limits {
    /// Thread numbers that it may create, change and delete.
    pub numbers: Cell<Numbers>,
    /// The most that its threads may have.
    pub ceilings: Cell<Ceilings>,
}

/// The arguments of TaskControl; all ones: unchanged.
pub struct Gift {
    /// A thread of the task.
    pub specifier: ThreadId,
    /// `abi::Numbers`.
    pub numbers: u64,
    /// `abi::Ceilings`.
    pub ceilings: u64,
}

/// Gives the task of `specifier` numbers and lower ceilings, which `lower_thread` brings upon a thread;
/// returns what is in force.
///
/// # Errors
/// `InvalidSpace`: nobody is named. `NoPrivilege`: the caller is no chief of the task, the
/// numbers are not the chief's, a ceiling would rise. `InvalidParameter`: the task has
/// numbers already, or a word means nothing.
pub fn task_control(
    caller: TcbRef,
    request: &Gift,
    lower_thread: impl Fn(TcbRef, Ceilings),
) -> Result<(Numbers, Ceilings), CallError> {
    let own = caller.space().ok_or(CallError::NoPrivilege)?;
    let target = super::controlled(caller, request.specifier, CallError::InvalidSpace)?;
    let target = target.space().ok_or(CallError::InvalidSpace)?;
    let changes = request.numbers != UNCHANGED || request.ceilings != UNCHANGED;
    if changes && (target == own || target.is_privileged()) {
        return Err(CallError::NoPrivilege);
    }
    let numbers = new_numbers(target, request.numbers)?;
    let ceilings = new_ceilings(target, request.ceilings)?;
    // POINT OF NO RETURN
    target.task.limits.numbers.set(numbers);
    if ceilings != target.ceilings() {
        lower(target, ceilings, lower_thread);
    }
    Ok((target.numbers(), target.ceilings()))
}

fn new_numbers(target: SpaceRef, word: u64) -> Result<Numbers, CallError> {
    let (now, new) = (target.task.limits.numbers.get(), Numbers::decode(word));
    if word == UNCHANGED {
        return Ok(now);
    }
    let chief = target.task.chief.get().ok_or(CallError::NoPrivilege)?;
    if !chief.numbers().includes(new) {
        return Err(CallError::NoPrivilege);
    }
    // Once: who has threads there must not lose them.
    if new.is_empty() || !now.is_empty() { Err(CallError::InvalidParameter) } else { Ok(new) }
}

fn new_ceilings(target: SpaceRef, word: u64) -> Result<Ceilings, CallError> {
    if word == UNCHANGED {
        return Ok(target.ceilings());
    }
    let new = Ceilings::decode(word).ok_or(CallError::InvalidParameter)?;
    if new.within(target.ceilings()) { Ok(new) } else { Err(CallError::NoPrivilege) }
}

/// Lowers the ceilings of `target` and of all tasks below it, and what their threads
/// have. Interrupts are noted on the way.
fn lower(target: SpaceRef, ceilings: Ceilings, lower_thread: impl Fn(TcbRef, Ceilings)) {
    let mut pace = Pace::default();
    spaces().for_each(|space| {
        pace.rounds(space.clan_rounds());
        if space.is_below(target) {
            let limits = &space.task.limits;
            limits.ceilings.set(limits.ceilings.get().min(ceilings));
            space.each_thread(|thread| lower_thread(thread, limits.ceilings.get()));
        }
    });
}

impl SpaceRef {
    /// Calls `visit` for every thread of the task. Interrupts are noted on the way.
    pub fn each_thread(self, visit: impl Fn(TcbRef)) {
        let mut pace = Pace::default();
        self.task.threads.each(|thread| {
            pace.round();
            visit(thread);
        });
    }

    /// The thread numbers that the task owns.
    #[must_use]
    pub fn numbers(self) -> Numbers {
        if self.is_privileged() { Numbers::ALL } else { self.task.limits.numbers.get() }
    }

    /// Whether the task owns thread number `number`.
    #[must_use]
    pub fn owns(self, number: u32) -> bool {
        self.numbers().contains(number)
    }

    /// The most that the task's threads may have.
    #[must_use]
    pub fn ceilings(self) -> Ceilings {
        self.task.limits.ceilings.get()
    }

    /// Whether a quantum of the task's threads is what a chief has given, and nothing else.
    #[must_use]
    pub fn is_metered(self) -> bool {
        !self.is_privileged() && self.ceilings().quantum_us() != u64::MAX
    }

    /// Whether this is `chief` or a task below it.
    #[must_use]
    pub fn is_below(self, chief: Self) -> bool {
        let mut step = Some(self);
        while let Some(space) = step {
            if space == chief {
                return true;
            }
            // Who is not deeper has `chief` not above him.
            if space.task.depth.get() <= chief.task.depth.get() {
                return false;
            }
            step = space.task.chief.get();
        }
        false
    }

    /// The rounds of a loop (`Pace`) that a walk up the chiefs takes.
    #[must_use]
    pub fn clan_rounds(self) -> u32 {
        self.task.depth.get() / 8
    }

    /// `error` for those who may know whether anybody has `id`: the privileged, who owns
    /// its number, and who names a thread of its own space. "No privilege" for others,
    /// as if somebody had it.
    #[must_use]
    pub fn refusal_about(self, id: ThreadId, error: CallError) -> CallError {
        if id.is_local() || id.is_nil() || self.owns(id.number()) {
            error
        } else {
            self.refusal(error)
        }
    }
}
