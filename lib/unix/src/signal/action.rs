//! What a process wants each signal to do.

use core::cell::Cell;

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::set::{self, bit};
use super::{MASK_BYTES, recalculate};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[full(l::__NR_rt_sigaction, "rt_sigaction", rt_sigaction)];

/// Handler value: as the system does.
pub const DEFAULT: u64 = 0;
/// Handler value: nothing.
pub const IGNORE: u64 = 1;

/// One signal's action, laid out as the kernel's `struct sigaction`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Action {
    /// Address of the handler, [`DEFAULT`] or [`IGNORE`].
    pub handler: u64,
    /// `SA_*`.
    pub flags: u64,
    /// Address of the code that returns from the handler.
    pub restorer: u64,
    /// Signals blocked while the handler runs.
    pub mask: u64,
}

/// The flags that mean something (`SA_UNSUPPORTED` is how programs ask which do).
const KNOWN_FLAGS: u64 = (l::SA_NOCLDSTOP
    | l::SA_NOCLDWAIT
    | l::SA_SIGINFO
    | l::SA_EXPOSE_TAGBITS
    | l::SA_RESTORER
    | l::SA_ONSTACK
    | l::SA_RESTART
    | l::SA_NODEFER
    | l::SA_RESETHAND) as u64;

impl Action {
    /// Whether a flag (`SA_*`) is set.
    #[must_use]
    pub fn has(&self, flag: u32) -> bool {
        self.flags & u64::from(flag) != 0
    }

    /// Whether there is a handler.
    #[must_use]
    pub fn is_caught(&self) -> bool {
        self.handler != DEFAULT && self.handler != IGNORE
    }
}

/// What each signal does; processes made with `CLONE_SIGHAND` share it.
#[derive(Clone)]
pub struct Actions {
    actions: [Cell<Action>; set::LAST as usize],
}

impl Default for Actions {
    fn default() -> Self {
        Self {
            actions: [const { Cell::new(Action { handler: 0, flags: 0, restorer: 0, mask: 0 }) };
                64],
        }
    }
}

impl Actions {
    /// What `signal` does; signals that are none do as the system does.
    #[must_use]
    pub fn get(&self, signal: u32) -> Action {
        self.actions.get(signal.wrapping_sub(1) as usize).map(Cell::get).unwrap_or_default()
    }

    /// Changes it.
    pub fn set(&self, signal: u32, action: Action) {
        if let Some(cell) = self.actions.get(signal.wrapping_sub(1) as usize) {
            cell.set(action);
        }
    }

    /// Whether the signal does nothing now.
    #[must_use]
    pub fn ignores(&self, signal: u32) -> bool {
        match self.get(signal).handler {
            IGNORE => true,
            DEFAULT => bit(signal) & set::HARMLESS != 0,
            _ => false,
        }
    }

    /// The signals with a handler, and those that are ignored on purpose (`/proc/self/status`).
    #[must_use]
    pub fn caught_and_ignored(&self) -> (u64, u64) {
        let set = |which: fn(&Action) -> bool| {
            (1..=set::LAST)
                .filter(|signal| which(&self.get(*signal)))
                .fold(0, |set, s| set | bit(s))
        };
        (set(Action::is_caught), set(|action| action.handler == IGNORE))
    }

    /// The program is replaced: handlers are gone, what was ignored stays ignored.
    pub fn reset(&self) {
        for cell in &self.actions {
            let handler = if cell.get().handler == IGNORE { IGNORE } else { DEFAULT };
            cell.set(Action { handler, ..Action::default() });
        }
    }

    /// `CLONE_CLEAR_SIGHAND`: handlers are gone.
    pub fn clear_handlers(&self) {
        self.reset();
    }
}

fn rt_sigaction(cx: &Cx) -> Answer {
    let signal = cx.uint(0);
    if cx.arg(3) != MASK_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let new = match cx.arg(1) {
        0 => None,
        address => Some(cx.user().read::<Action>(address)?),
    };
    if bit(signal) == 0 || (new.is_some() && bit(signal) & set::UNSTOPPABLE != 0) {
        return Err(Errno::EINVAL.into());
    }
    let actions = cx.process.actions.borrow().clone();
    let old = actions.get(signal);
    if let Some(mut new) = new {
        new.flags &= KNOWN_FLAGS;
        new.mask &= !set::UNSTOPPABLE;
        actions.set(signal, new);
        if actions.ignores(signal) {
            // A pending signal that is ignored from now on is gone.
            cx.process.signals.pending.remove(bit(signal));
            for thread in cx.process.threads.borrow().iter() {
                thread.signals.pending.remove(bit(signal));
            }
            recalculate(cx.process);
        }
    }
    if cx.arg(2) != 0 {
        cx.user().write(cx.arg(2), &old)?;
    }
    Ok(0)
}
