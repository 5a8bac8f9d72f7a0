//! A simulated machine with a few threads that play IPC, driven in step with the
//! model, and the comparison of the two.

use std::cell::Cell;

use abi::id::USER_BASE;
use abi::syscall::exregs as bit;
use abi::utcb::ERROR_CODE;
use abi::{IpcError, MsgTag, ThreadId, Time, Timeouts};
use kernel::arch::{cpu, entry};
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::control::lifecycle;
use kernel::control::schedule::state_of;
use kernel::control::thread_control::{Request, thread_control};
use kernel::ipc::wait::waits;
use kernel::local;
use kernel::mem::RootWord;
use kernel::space::SpaceRef;
use kernel::thread::rendezvous::{Busy, Waits};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, current, lookup, own, set_current};
use kernel::usermem::Utcb;
use kernel::{check, ipc, sched};

use super::hidden::UserMode;
use super::ipcmodel::{Ipc, Model, Outcome, Patience, State, Thread};
use super::tasks::{initialise, make};
use super::{Machine, fastpath};

const FIRST: u32 = USER_BASE + 3;
/// Thread number of the controlling thread, and of the one that keeps each space alive.
const CONTROLLER: u32 = FIRST + 100;
const ANCHOR: u32 = FIRST + 200;
/// A timeout, µs.
const WHILE_US: u64 = 100;
/// Comparisons between two walks through memory.
const MEMORY_CHECK: u64 = 64;
/// The label of all messages.
const LABEL: u64 = 0xABC;

/// One step of a play.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A thread calls Ipc, on the fast path where that serves it, or only on the complete one.
    Ipc {
        who: usize,
        ipc: Ipc,
        fast: bool,
    },
    Cancel(usize),
    Halt(usize),
    Resume(usize),
    Delete(usize),
    Create(usize),
    Rename(usize),
    Expire,
    /// A thread asks to exchange messages with another one of its space in user mode.
    Arm {
        who: usize,
        partner: usize,
    },
    /// An interrupt comes, and whoever runs goes on.
    Interrupt,
}

/// The machine, its threads, and the model.
pub struct Players {
    _machine: Machine,
    pub(super) spaces: Vec<SpaceRef>,
    pub model: Model,
    controller: TcbRef,
    versions: u32,
    now_us: u64,
    compared: Cell<u64>,
    pub user_mode: UserMode,
    /// Messages that needed no kernel.
    pub hidden: Cell<u64>,
    /// Who has something to do in the kernel does not get the processor for it.
    pub lets_them_wait: bool,
    /// The space whose threads use vector registers.
    pub vector_place: Option<u32>,
}

impl Players {
    /// As many threads as `places` names spaces.
    pub fn new(places: &[u32]) -> Self {
        let machine = Machine::new(1 + places.iter().max().expect("some threads"), 64, false);
        set_current(own::make_idle(RootWord::default()));
        machine.spaces.iter().for_each(|space| kernel::space::spaces().insert(*space));
        machine.spaces[0].task.privileged.set(true);
        for (space, index) in machine.spaces.iter().zip(0..) {
            initialise(*space);
            let id = ThreadId::global(ANCHOR + index, 1);
            lifecycle::create(id, *space, id).expect("quota suffices");
        }
        let controller = make(ThreadId::global(CONTROLLER, 1), machine.spaces[0], 0, ThreadId::NIL);
        let spaces: Vec<SpaceRef> =
            places.iter().map(|place| machine.spaces[1 + *place as usize]).collect();
        let mut players = Self {
            _machine: machine,
            spaces,
            model: Model::default(),
            controller,
            versions: 1,
            now_us: 0,
            compared: Cell::new(0),
            user_mode: UserMode::default(),
            hidden: Cell::new(0),
            lets_them_wait: false,
            vector_place: None,
        };
        for (index, place) in places.iter().enumerate() {
            let id = ThreadId::global(FIRST + index as u32, 1);
            let thread = make(id, players.spaces[index], index as u32, ThreadId::NIL);
            let local = ThreadId(thread.utcb.get());
            players.model.threads.push(Thread {
                id,
                local,
                space: *place,
                alive: true,
                halted: false,
                state: State::Ready,
                outcome: None,
            });
        }
        set_current(players.controller);
        players
    }

    /// The tcb of a player that lives.
    pub fn tcb(&self, who: usize) -> Option<TcbRef> {
        lookup(self.model.threads[who].id)
    }

    /// Everybody ready again, whatever they were doing.
    pub fn reset(&mut self) {
        for who in 0..self.spaces.len() {
            if !self.model.threads[who].alive {
                self.take(Step::Create(who));
            }
            self.take(Step::Cancel(who));
            self.take(Step::Resume(who));
            self.model.threads[who].outcome = None;
        }
    }

    /// Whether the step makes sense now.
    pub fn possible(&self, step: Step) -> bool {
        let threads = &self.model.threads;
        match step {
            Step::Ipc { who, .. } => {
                threads[who].alive && !threads[who].halted && threads[who].state == State::Ready
            }
            Step::Cancel(who) => threads[who].alive && threads[who].state != State::Ready,
            Step::Halt(who) => threads[who].alive && !threads[who].halted,
            Step::Resume(who) => threads[who].alive && threads[who].halted,
            Step::Delete(who) | Step::Rename(who) => threads[who].alive,
            Step::Create(who) => !threads[who].alive,
            Step::Arm { who, partner } => {
                let (asks, asked) = (&threads[who], &threads[partner]);
                let runs = asks.alive && !asks.halted && asks.state == State::Ready;
                runs && asked.alive && asks.space == asked.space
            }
            Step::Expire | Step::Interrupt => true,
        }
    }

    /// Takes the step on both sides and compares them.
    pub fn play(&mut self, step: Step) -> Result<(), String> {
        self.take(step);
        self.compare()
    }

    /// Takes the step on both sides.
    pub fn take(&mut self, step: Step) {
        match step {
            Step::Ipc { who, ipc, fast } => {
                self.model.ipc(who, ipc);
                self.ipc(who, ipc, fast);
            }
            Step::Interrupt => self.run(current_after(&self.user_mode)),
            Step::Arm { who, partner } => self.arm(who, partner),
            Step::Expire => {
                self.model.expire();
                let runs = current_after(&self.user_mode);
                self.now_us += 1 << 22;
                let _ = cpu().scheduler.wakeup.expire_some(
                    self.now_us,
                    u32::MAX,
                    ipc::timeout::expired,
                );
                self.run(runs);
            }
            Step::Cancel(who) => {
                self.model.cancel(who);
                self.exchange(who, bit::ABORT_SEND | bit::ABORT_RECEIVE);
            }
            Step::Halt(who) => {
                self.model.threads[who].halted = true;
                self.exchange(who, bit::HALT_VALID | bit::HALT);
            }
            Step::Resume(who) => {
                self.model.threads[who].halted = false;
                self.exchange(who, bit::HALT_VALID);
            }
            Step::Delete(who) => {
                let id = self.model.threads[who].id;
                self.model.delete(who);
                self.control(id, ThreadId::NIL);
            }
            Step::Create(who) => self.create(who),
            Step::Rename(who) => {
                let id = self.new_id(who);
                self.model.rename(who, id);
                self.control(id, id);
            }
        }
        if !self.lets_them_wait {
            self.run_who_must();
        }
    }

    fn new_id(&mut self, who: usize) -> ThreadId {
        self.versions += 1;
        ThreadId::global(FIRST + who as u32, self.versions << 6 | 1)
    }

    fn create(&mut self, who: usize) {
        let id = self.new_id(who);
        let thread = &mut self.model.threads[who];
        (thread.id, thread.alive, thread.halted, thread.outcome) = (id, true, false, None);
        self.give_processor(self.controller);
        make(id, self.spaces[who], who as u32, ThreadId::NIL);
        self.declare_vector(who);
    }

    fn ipc(&self, who: usize, ipc: Ipc, fast: bool) {
        let thread = self.tcb(who).expect("the caller lives");
        self.give_processor(thread);
        let utcb = Utcb::of(thread).expect("the caller is active");
        utcb.set_mr(0, MsgTag::new(LABEL, 1, 0).0);
        utcb.set_mr(1, ipc.word);
        utcb.set_word(ERROR_CODE, 0);
        let (to, from) = (ipc.to.unwrap_or_default(), ipc.from.unwrap_or_default());
        let timeouts = Timeouts::new(time(ipc.send), time(ipc.receive)).0;
        let endless = ipc.receive == Patience::Never;
        if fast && self.user_mode.message(to, from, endless) {
            self.hidden.set(self.hidden.get() + 1);
            return;
        }
        if fast
            && !self.user_mode.is_hidden()
            && let Some(next) = fastpath::ipc(thread, to, from, timeouts)
        {
            return self.user_mode.ran(next);
        }
        self.user_mode.enter();
        let _ = local::grow_weary(thread);
        self.run(ipc::syscall::ipc(thread, to, from, timeouts));
    }

    /// The kernel is left for `next`.
    pub(super) fn run(&self, next: TcbRef) {
        assert!(next.is_ready(), "{} is to run and is not ready", next.id.get());
        self.user_mode.leave_for(next);
    }

    /// An interrupt has given the processor to `thread`.
    pub(super) fn give_processor(&self, thread: TcbRef) {
        if self.user_mode.runner() != thread {
            self.user_mode.enter();
            sched::requeue(current());
            self.run(thread);
        }
    }

    fn exchange(&self, who: usize, control: u64) {
        self.give_processor(self.controller);
        let registers = Registers { control, ..Registers::default() };
        let done = exchange_registers(self.controller, self.model.threads[who].id, &registers);
        assert!(done.is_some(), "the controller is privileged and the thread lives");
    }

    fn control(&self, dest: ThreadId, space: ThreadId) {
        self.give_processor(self.controller);
        // An unchanged version does not name the space: the anchor does.
        let place = lookup(ThreadId::global(dest.number(), dest.version()));
        let space = if space.is_nil() || place.is_some() { space } else { dest };
        let request = Request {
            dest,
            pager: ThreadId::NIL,
            scheduler: ThreadId::NIL,
            space,
            utcb_location: !0,
        };
        assert!(thread_control(self.controller, &request).is_ok(), "the controller is privileged");
    }

    /// Threads that have something to do in the kernel when they run next do it.
    pub fn run_who_must(&self) {
        let waits_in_kernel = |thread: &TcbRef| {
            thread.is_ready() && matches!(thread.resume.get(), Resume::Transfer | Resume::Receive)
        };
        while let Some(thread) =
            (0..self.spaces.len()).filter_map(|who| self.tcb(who)).find(waits_in_kernel)
        {
            self.give_processor(thread);
            self.run(entry::resume(thread));
        }
    }

    /// Compares what a program could see, and asks the kernel's own checker.
    pub fn compare(&self) -> Result<(), String> {
        self.user_mode.enter();
        let at_once = check::thread_violations();
        if at_once != 0 {
            return Err(format!("the kernel's checker finds {at_once} violations at once"));
        }
        for (who, model) in self.model.threads.iter().enumerate() {
            let thread = lookup(model.id);
            if thread.is_some() != model.alive {
                return Err(format!(
                    "thread {who} should {}live",
                    if model.alive { "" } else { "not " }
                ));
            }
            let Some(thread) = thread else { continue };
            let (got, want) = (seen(thread), wanted(model));
            if got != want {
                return Err(format!("thread {who} is {got:?} and should be {want:?}"));
            }
            let outcome = (model.state == State::Ready).then_some(model.outcome).flatten();
            if outcome.is_some_and(|outcome| outcome_of(thread, outcome) != outcome) {
                return Err(format!(
                    "thread {who} got {:?} and should have {outcome:?}",
                    outcome_of(thread, model.outcome.unwrap())
                ));
            }
        }
        // Memory is walked now and then only: messages without items do not touch it.
        let looks_at_memory = self.compared.replace(self.compared.get() + 1) % MEMORY_CHECK == 0;
        match if looks_at_memory { check::violations() } else { check::thread_violations() } {
            0 => self.run(current()),
            count => return Err(format!("the kernel's checker finds {count} violations")),
        }
        Ok(())
    }
}

/// State word of Schedule, halt flag, partner or from-specifier, wakeup armed.
type Seen = (u64, bool, ThreadId, bool);

fn seen(thread: TcbRef) -> Seen {
    let partner = match waits(thread) {
        Waits::Open => ThreadId::ANY,
        Waits::Closed(from) => from,
        Waits::Busy(Busy::Polling | Busy::Waiting) => thread.partner.get(),
        Waits::Busy(_) | Waits::Nonsense => ThreadId::NIL,
    };
    (state_of(thread), thread.halted.get(), partner, thread.wake_at_us.get() != 0)
}

fn wanted(model: &Thread) -> Seen {
    let (state, partner, timed) = match model.state {
        State::Ready => (if model.halted { 2 } else { 3 }, ThreadId::NIL, false),
        State::Sending { ipc, to, .. } => (4, to, ipc.send == Patience::Timed),
        State::Receiving { from, timed } => (6, from, timed),
    };
    (state, model.halted, partner, timed)
}

/// The outcome that `thread` sees; `like` tells a send from a receive.
fn outcome_of(thread: TcbRef, like: Outcome) -> Outcome {
    let utcb = Utcb::of(thread).expect("it is active");
    let tag = MsgTag(utcb.mr(0));
    if tag.is_error() {
        let error =
            IpcError::decode(utcb.word(ERROR_CODE)).expect("a failed IPC has an error code");
        return Outcome::Failed(error.kind, error.phase);
    }
    if like == Outcome::Sent && thread.result_from.get().is_nil() {
        return Outcome::Sent;
    }
    assert_eq!((tag.label(), tag.untyped(), tag.typed()), (LABEL, 1, 0));
    Outcome::Received { from: thread.result_from.get(), word: utcb.mr(1) }
}

const fn time(patience: Patience) -> Time {
    match patience {
        Patience::Never => Time::NEVER,
        Patience::Zero => Time::ZERO,
        Patience::Timed => Time::micros(WHILE_US),
    }
}

/// Who goes on behind an interrupt.
fn current_after(user_mode: &UserMode) -> TcbRef {
    user_mode.enter();
    current()
}
