//! What a process wants each signal to do.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

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

/// All signals' actions.
type Table = [Action; set::LAST as usize];

/// What each signal does; processes made with `CLONE_SIGHAND` share it. A copy (for fork)
/// has the table in common with the original until one of them changes.
#[derive(Clone, Default)]
pub struct Actions {
    caught: Cell<u64>,
    ignored: Cell<u64>,
    /// Nothing: every signal does as the system does, without flags.
    table: RefCell<Option<Rc<Table>>>,
}

impl Actions {
    /// What `signal` does; signals that are none do as the system does.
    #[must_use]
    pub fn get(&self, signal: u32) -> Action {
        let table = self.table.borrow();
        let action = table.as_ref().and_then(|table| table.get(signal.wrapping_sub(1) as usize));
        action.copied().unwrap_or_default()
    }

    /// Changes it.
    pub fn set(&self, signal: u32, action: Action) {
        let mut table = self.table.borrow_mut();
        let table = table.get_or_insert_with(|| Rc::new([Action::default(); 64]));
        if let Some(entry) = Rc::make_mut(table).get_mut(signal.wrapping_sub(1) as usize) {
            *entry = action;
        }
        let put = |set: &Cell<u64>, on: bool| {
            set.set(if on { set.get() | bit(signal) } else { set.get() & !bit(signal) });
        };
        put(&self.caught, action.is_caught());
        put(&self.ignored, action.handler == IGNORE);
    }

    /// Whether the signal does nothing now.
    #[must_use]
    pub fn ignores(&self, signal: u32) -> bool {
        (self.ignored.get() | set::HARMLESS & !self.caught.get()) & bit(signal) != 0
    }

    /// The signals with a handler, and those that are ignored on purpose (`/proc/self/status`).
    #[must_use]
    pub fn caught_and_ignored(&self) -> (u64, u64) {
        (self.caught.get(), self.ignored.get())
    }

    /// The program is replaced, or handlers are not wanted: they are gone, what was
    /// ignored stays ignored.
    pub fn reset(&self) {
        let ignored = self.ignored.get();
        *self.table.borrow_mut() = None;
        self.caught.set(0);
        for signal in (1..=set::LAST).filter(|signal| ignored & bit(*signal) != 0) {
            self.set(signal, Action { handler: IGNORE, ..Action::default() });
        }
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
