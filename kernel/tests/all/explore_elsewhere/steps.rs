//! The steps of a play on two processors.

use abi::ThreadId;
use abi::syscall::exregs as bit;
use kernel::arch::cpu;
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::control::schedule::{Change, schedule};
use kernel::control::thread_control::{Request, thread_control};
use kernel::elsewhere;
use kernel::elsewhere::visits::{self, berth};
use kernel::sched::{self, slice};
use kernel::thread::rendezvous;
use kernel::thread::tcb::Resume;
use kernel::thread::{current, lookup};

use std::rc::Rc;

use super::stage::{FIRST, Player, Stage, Tick, waits_for_anchor};
use super::windows::Event;
use crate::common::exit::later;
use crate::common::ipcmodel::{Ipc, State};

/// One step of a play.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A thread calls Ipc where it is: on the first processor, which it gets for that, or on the other one, where it
    /// runs.
    Ipc {
        who: usize,
        ipc: Ipc,
    },
    /// An interrupt gives the first processor to a thread, which may have a call to make that it has made elsewhere.
    Run(usize),
    /// The other processor takes whom it is offered.
    Accept,
    /// It does not look any more whether somebody may come.
    LooksAway,
    /// Its interrupt comes to the first one, or that one idles and looks by itself.
    Look,
    Watch,
    Tick(Tick),
    /// Tables of a thread's space change.
    Tables(usize),
    Cancel(usize),
    Halt(usize),
    Resume(usize),
    Delete(usize),
    Create(usize),
    Rename(usize),
    /// Schedule moves the thread to a processor.
    Move {
        who: usize,
        to: u32,
    },
    /// Schedule gives it a priority.
    Rank {
        who: usize,
        priority: u8,
    },
    /// Something happens in a window of the next step, behind so many others.
    Window {
        windows: u32,
        event: Event,
    },
    /// The handler is done with what it has been told.
    Handles,
}

const UNCHANGED: u64 = !0;
/// Time that passes with each step, µs.
const STEP_US: u64 = 200;

impl Stage {
    /// Whether the step makes sense now.
    pub fn possible(&self, step: Step) -> bool {
        let thread = |who| self.thread(who);
        match step {
            Step::Ipc { who, .. } => {
                self.is_free(who) && (self.is_here(who) || self.runs_there() == Some(who))
            }
            Step::Run(who) => self.is_here(who) && self.tcb(who) != Some(current()),
            Step::Accept => berth(1).is_offered() && self.is_attentive(),
            Step::LooksAway => {
                !berth(1).is_offered() && !self.is_inhabited() && self.is_attentive()
            }
            Step::Look => self.is_interrupted.get(),
            Step::Watch => self.idles() && cpu().scheduler.watches.get(),
            Step::Tick(_) => true,
            Step::Tables(who) => thread(who).alive,
            Step::Cancel(who) => {
                thread(who).alive
                    && (thread(who).state != State::Ready || self.player(who).call.is_some())
            }
            Step::Halt(who) => thread(who).alive && !thread(who).halted,
            Step::Resume(who) => thread(who).alive && thread(who).halted,
            Step::Delete(who) | Step::Rename(who) => thread(who).alive,
            Step::Create(who) => !thread(who).alive,
            Step::Move { who, to } => thread(who).alive && self.player(who).processor != to,
            Step::Window { .. } => self.may_arm(),
            Step::Handles => self.handler.is_ready(),
            Step::Rank { who, priority } => {
                self.tcb(who).is_some_and(|thread| thread.priority.get() != priority)
            }
        }
    }

    /// Takes the step on both sides.
    pub fn take(self: &Rc<Self>, step: Step) {
        if let Step::Window { windows, event } = step {
            return self.arm(windows, event);
        }
        later(STEP_US);
        self.open_windows();
        match step {
            Step::Ipc { who, ipc } if self.runs_there() == Some(who) => self.calls_there(who, ipc),
            Step::Ipc { who, ipc } => {
                let thread = self.tcb(who).expect("it lives");
                // It may go elsewhere instead.
                if self.give_processor(thread) && self.is_free(who) {
                    self.calls_here(who, ipc);
                }
            }
            Step::Run(who) => {
                self.give_processor(self.tcb(who).expect("it lives"));
            }
            Step::Accept => self.accepts(),
            Step::LooksAway => self.halts(),
            Step::Look => self.looks_here(),
            Step::Watch => self.watches(),
            Step::Tick(tick) => self.tick(tick),
            Step::Handles => self.handles(),
            _ => self.control(step),
        }
        self.run_who_must();
        self.rest();
        self.close_windows();
    }

    /// Whether the third party has the processor, which an interrupt of a window may give to somebody else, once.
    fn gives_controller_the_processor(&self) -> bool {
        if !self.controller.is_ready() {
            sched::make_ready(self.controller);
        }
        self.give_processor(self.controller) || self.give_processor(self.controller)
    }

    /// The third party makes a system call.
    fn control(&self, step: Step) {
        if !self.gives_controller_the_processor() {
            return self.note_wrong("the third party does not get the processor".to_owned());
        }
        // Who was called may have been let go, or be back, meanwhile.
        if !self.possible(step) {
            return;
        }
        self.begins_call(step);
        match step {
            Step::Tables(who) => kernel::mem::quiesce::quiet(self.spaces[who]),
            Step::Cancel(who) => {
                self.step_model(|model| model.cancel(who));
                self.exchange(who, bit::ABORT_SEND | bit::ABORT_RECEIVE);
            }
            Step::Halt(who) => {
                self.model.borrow_mut().threads[who].halted = true;
                self.exchange(who, bit::HALT_VALID | bit::HALT);
            }
            Step::Resume(who) => {
                self.model.borrow_mut().threads[who].halted = false;
                self.exchange(who, bit::HALT_VALID);
            }
            Step::Delete(who) => {
                let id = self.thread(who).id;
                self.players.borrow_mut()[who].call = None;
                self.step_model(|model| model.delete(who));
                self.thread_control(id, ThreadId::NIL);
            }
            Step::Create(who) => self.create(who),
            Step::Rename(who) => {
                let id = self.new_id(who);
                let old = self.thread(who).id;
                self.step_model(|model| model.rename(who, id));
                self.thread_control(id, id);
                debug_assert!(lookup(old).is_none());
            }
            Step::Move { who, to } => {
                self.players.borrow_mut()[who].processor = to;
                self.schedule(who, to.into(), UNCHANGED);
            }
            Step::Rank { who, priority } => self.schedule(who, UNCHANGED, priority.into()),
            _ => {}
        }
        self.reconcile();
        self.leave_kernel(slice::after_call(self.controller));
    }

    fn exchange(&self, who: usize, control: u64) {
        let registers = Registers { control, ..Registers::default() };
        let done = exchange_registers(self.controller, self.thread(who).id, &registers);
        assert!(done.is_some(), "the third party is privileged and the thread lives");
    }

    fn thread_control(&self, dest: ThreadId, space: ThreadId) {
        let request = Request {
            dest,
            pager: ThreadId::NIL,
            scheduler: ThreadId::NIL,
            space: if space.is_nil() { space } else { self.anchor_of(dest) },
            utcb_location: !0,
        };
        loop {
            assert!(thread_control(self.controller, &request).is_ok(), "the third party may");
            if self.controller.resume.replace(Resume::Frame) != Resume::Again {
                return;
            }
            // What has been noted meanwhile is handled first.
            self.leave_kernel(self.controller);
            assert!(self.give_processor(self.controller), "nobody is more urgent for ever");
        }
    }

    /// A thread of the space of `dest` that stays.
    fn anchor_of(&self, dest: ThreadId) -> ThreadId {
        let who = (dest.number() - FIRST) as usize;
        ThreadId::global(FIRST + 200 + 1 + self.setting.places[who], 1)
    }

    fn schedule(&self, who: usize, processor: u64, priority: u64) {
        let change = Change {
            dest: self.thread(who).id,
            priority,
            time: UNCHANGED,
            processor,
            preemption: UNCHANGED,
        };
        assert!(schedule(self.controller, &change).is_ok(), "the third party is privileged");
    }

    fn new_id(&self, who: usize) -> ThreadId {
        self.versions.set(self.versions.get() + 1);
        ThreadId::global(FIRST + who as u32, self.versions.get() << 6 | 1)
    }

    fn create(&self, who: usize) {
        let id = self.new_id(who);
        let mut model = self.model.borrow_mut();
        let thread = &mut model.threads[who];
        (thread.id, thread.alive, thread.halted, thread.outcome) = (id, true, false, None);
        drop(model);
        self.make(who, id);
    }

    /// Threads that go on with an operation in the kernel when they run next do so.
    fn run_who_must(&self) {
        let must = |who: &usize| {
            let resume =
                self.tcb(*who).filter(|thread| thread.is_ready()).map(|thread| thread.resume.get());
            matches!(resume, Some(Resume::Transfer | Resume::Receive))
        };
        while let Some(who) = (0..self.len()).find(must) {
            self.give_processor(self.tcb(who).expect("it lives"));
        }
    }

    /// The third party waits, unless it computes.
    fn rest(&self) {
        if !self.setting.is_busy && current() == self.controller {
            waits_for_anchor(self.controller);
            self.leave_kernel(sched::blocked(self.controller));
            self.run_who_must();
        }
    }

    /// A play begins: everybody is ready and free, and where the setting says, whatever has been.
    pub fn reset(self: &Rc<Self>) {
        self.close_windows();
        later(1_000_000);
        self.calls.set(0);
        // Whatever they do does not matter.
        cpu().pending_lines.set(0);
        if !self.controller.is_ready() {
            sched::make_ready(self.controller);
        }
        self.give_processor(self.controller);
        for who in 0..self.len() {
            if !self.thread(who).alive {
                self.create(who);
            }
            self.step_model(|model| model.cancel(who));
            self.exchange(who, bit::ABORT_SEND | bit::ABORT_RECEIVE | bit::HALT_VALID);
            self.schedule(who, 0, self.setting.priorities[who].into());
        }
        self.begin_anew();
        for who in 0..self.len() {
            let to = self.setting.processors[who];
            if to != 0 {
                self.take(Step::Move { who, to });
            }
        }
    }

    fn begin_anew(&self) {
        let scheduler = &cpu().scheduler;
        for who in 0..self.len() {
            let mut model = self.model.borrow_mut();
            let thread = lookup(model.threads[who].id).expect("it lives");
            (model.threads[who].halted, model.threads[who].outcome) = (false, None);
            scheduler.ready.remove(thread);
            scheduler.wakeup.remove(thread);
            thread.partner.set(ThreadId::NIL);
            thread.frame().reset();
            thread.resume.set(Resume::Frame);
            let ip = 0x2000;
            thread.frame().ip.set(ip);
            thread.slice_left_us.set(0);
            rendezvous::set_busy(thread, rendezvous::Busy::Ready);
            scheduler.ready.insert(thread);
            self.players.borrow_mut()[who] = Player { ip, ..Player::default() };
        }
        scheduler.leaving.clear();
        cpu().pending_lines.set(0);
        cpu().look_first.set(false);
        scheduler.watches.set(false);
        scheduler.slice_owner.set(None);
        sched::grant_slice(current());
        let _ = elsewhere::go_on();
        self.is_interrupted.set(false);
        self.halts();
        let guest = visits::other(1).and_then(|other| other.guest());
        assert!(
            guest.is_none(),
            "{} is still elsewhere",
            guest.map_or(ThreadId::NIL, |it| it.id.get())
        );
    }
}
