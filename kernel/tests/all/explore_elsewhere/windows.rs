//! What happens in the windows of the first processor's kernel while a step is taken there.

use std::rc::{Rc, Weak};

use abi::{ThreadId, Timeouts};
use kernel::arch::cpu;
use kernel::elsewhere;
use kernel::elsewhere::visits::berth;
use kernel::ipc;
use kernel::sched::leaving::{LINE, Owes};
use kernel::thread::tcb::Resume;
use kernel::thread::{current, set_current};

use super::stage::Stage;
use super::steps::Step;
use crate::common::exit::later;
use crate::common::ipcmodel::{Ipc, Patience};
use crate::common::tasks::QUIET_LINE;

/// The timer's line.
const TIMER: u32 = 0;
/// Time that passes with an interrupt of the timer in a window, µs: so that a slice may end there.
const TICK_US: u64 = 4_000;
/// How many wait for their windows at most.
const MOST: usize = 3;

/// What happens in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The other processor takes whom it is offered.
    Accepts,
    /// Whoever runs there calls the thread that is so many behind it.
    Calls(usize),
    /// The same waits for anybody.
    Waits,
    /// The timer interrupts.
    Timer,
    /// The device interrupts for which the handler waits.
    Device,
}

impl Event {
    pub const ALL: [Self; 6] =
        [Self::Accepts, Self::Calls(1), Self::Calls(2), Self::Waits, Self::Timer, Self::Device];
}

impl Stage {
    /// From the next step on `event` waits for the window behind so many others.
    pub(super) fn arm(&self, windows: u32, event: Event) {
        self.armed.borrow_mut().push((windows, event));
    }

    pub(super) fn may_arm(&self) -> bool {
        self.armed.borrow().len() < MOST
    }

    /// A step is taken: what waits for windows happens there.
    pub(super) fn open_windows(self: &Rc<Self>) {
        let stage: Weak<Self> = Rc::downgrade(self);
        cpu().in_windows.replace(Some(Box::new(move || {
            if let Some(stage) = stage.upgrade() {
                stage.window();
            }
        })));
    }

    /// It is over: whatever waits still does so in vain.
    pub(super) fn close_windows(&self) {
        cpu().in_windows.take();
        self.armed.borrow_mut().clear();
        if cpu().scheduler.owes.get() != Owes::Nothing {
            self.owed.set(self.owed.get() + 1);
        }
    }

    /// The third party is about to make a system call, which the model carries out at once.
    pub(super) fn begins_call(&self, step: Step) {
        self.is_in_call.set(true);
        if matches!(step, Step::Delete(_) | Step::Rename(_)) {
            // Whoever runs if that is broken off may have a call to make by an id that it has no more in the model.
            self.armed.borrow_mut().clear();
        }
    }

    fn window(&self) {
        let mut due = vec![];
        self.armed.borrow_mut().retain_mut(|(windows, event)| {
            let is_due = *windows == 0;
            due.extend(is_due.then_some(*event));
            *windows = windows.saturating_sub(1);
            !is_due
        });
        due.into_iter().for_each(|event| self.happens(event));
    }

    fn happens(&self, event: Event) {
        match event {
            Event::Accepts if self.possible(Step::Accept) => self.accepts(),
            Event::Calls(next) => self.calls_in_window(|who| Some((who + next) % 3)),
            Event::Waits => self.calls_in_window(|_| None),
            Event::Timer => {
                later(TICK_US);
                note(TIMER);
            }
            Event::Device => note(QUIET_LINE),
            Event::Accepts => return,
        }
        self.events.set(self.events.get() + 1);
    }

    /// Whoever runs on the other processor calls Ipc, unless a system call is under way here: the model has carried that
    /// out already. If it comes back, its interrupt is noted at once.
    fn calls_in_window(&self, whom: impl Fn(usize) -> Option<usize>) {
        let runs = self.runs_there().filter(|who| self.is_free(*who));
        let Some(who) = runs.filter(|_| !self.is_in_call.get() && !berth(1).needs_a_look()) else {
            return;
        };
        let to = whom(who).map(|to| self.thread(to).id);
        let from = Some(to.unwrap_or(ThreadId::ANY));
        let (send, receive) = (Patience::Never, Patience::Never);
        self.calls_there(who, Ipc { to, from, send, receive, word: 0xEE });
        if self.is_interrupted.replace(false) {
            note(LINE);
        }
    }

    /// The handler, if it has been told something, is done with it, and waits for the device again.
    pub(super) fn handles(&self) {
        while self.handler.is_ready() {
            if current() != self.handler {
                return self.note_wrong("the handler waits for the processor".to_owned());
            }
            self.handler.resume.set(Resume::Ipc);
            let line = ThreadId::irq(QUIET_LINE);
            let next = ipc::syscall::ipc(self.handler, ThreadId::NIL, line, Timeouts::NEVER.0);
            self.leave_kernel(next);
        }
    }

    /// At the beginning: the handler waits, and somebody else is current.
    pub(super) fn handler_waits(&self) {
        let running = current();
        set_current(self.handler);
        let line = ThreadId::irq(QUIET_LINE);
        let _ = ipc::syscall::ipc(self.handler, ThreadId::NIL, line, Timeouts::NEVER.0);
        set_current(running);
    }

    /// A look is owed: the way by which it would be passed over is closed, and the next tick looks.
    pub(super) fn compare_owed(&self) -> Result<(), String> {
        let scheduler = &cpu().scheduler;
        if scheduler.owes.get() == Owes::Nothing {
            return Ok(());
        }
        if !cpu().look_first.get() {
            return Err("a look is owed, and the fast path is open".to_owned());
        }
        if !scheduler.wakeup.is_due(0) {
            return Err("a look is owed, and no tick looks".to_owned());
        }
        let (runs, other) = (current(), elsewhere::visits::other(1).expect("it runs"));
        let waits = other.first().map_or(0, |first| first.priority.get());
        let most = other.guest().map_or(waits, |_| waits.max(other.most()));
        // Whoever has a turn for a moment is as urgent, and an interrupt ends that.
        if most > 0 && most >= runs.priority.get() && scheduler.early_us.get() == 0 {
            let runs = runs.id.get();
            return Err(format!("a look is owed, and {runs} goes first, who is not more urgent"));
        }
        Ok(())
    }
}

fn note(line: u32) {
    let lines = &cpu().pending_lines;
    lines.set(lines.get() | 1 << line);
}
