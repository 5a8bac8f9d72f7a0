//! A simulated machine of two processors, on which a few threads play IPC in step with the model. The first one's
//! kernel is the kernel's own code; how it is left (`arch/x86_64/entry/switch.rs`) and what the other processor does
//! (`entry/visitors.rs`, `ipc.S`) is transcribed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use abi::id::USER_BASE;
use abi::{MsgTag, ThreadId, Time, Timeouts};
use kernel::control::lifecycle;
use kernel::elsewhere::visits::{self, set_processors};
use kernel::irq;
use kernel::mem::RootWord;
use kernel::sched;
use kernel::space::SpaceRef;
use kernel::thread::rendezvous::{self, Busy};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, lookup, own, set_current};

use super::windows::Event;
use crate::common::Machine;
use crate::common::ipcmodel::{Ipc, Model, Outcome, Patience, State, Thread};
use crate::common::tasks::{QUIET_LINE, initialise, make};

pub const FIRST: u32 = USER_BASE + 3;
/// Thread number of the third party that controls the others, and of the one that keeps each space alive.
const CONTROLLER: u32 = FIRST + 100;
const ANCHOR: u32 = FIRST + 200;
/// The same of the handler, and its priority.
const HANDLER: u32 = FIRST + 150;
const HANDLERS_PRIORITY: u8 = 250;
/// The tag of all messages.
pub const TAG: MsgTag = MsgTag::new(0xABC, 1, 0);
/// A timeout, longer than a play, µs.
const WHILE_US: u64 = 1_000_000;
/// Where the first call of a play is.
pub(super) const CODE: u64 = 0x2000;

/// Who plays, and where.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Each thread's space.
    pub places: [u32; 3],
    /// The processor on which each begins.
    pub processors: [u32; 3],
    pub priorities: [u8; 3],
    /// The third party computes on the first processor when it controls nobody; else that one may idle.
    pub is_busy: bool,
}

/// What the model does not say of a thread.
#[derive(Clone, Copy, Default)]
pub struct Player {
    /// The system call that it has made elsewhere and that is not carried out yet, and where it goes on behind it.
    pub call: Option<(Ipc, u64)>,
    /// Where it goes on in user mode.
    pub ip: u64,
    /// Its processor.
    pub processor: u32,
    /// The message that it got came from another one.
    pub crosses: bool,
}

/// How time passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tick {
    Soon,
    EndsSlices,
    Expires,
}

pub struct Stage {
    _machine: Machine,
    pub setting: Setting,
    pub(super) spaces: Vec<SpaceRef>,
    pub model: RefCell<Model>,
    pub players: RefCell<Vec<Player>>,
    pub(super) controller: TcbRef,
    pub(super) versions: Cell<u32>,
    /// Of this play.
    pub(super) calls: Cell<u64>,
    /// The other processor looks whether somebody may come, by itself; so many interrupts it has got.
    pub(super) looks: Cell<bool>,
    pub(super) heard: Cell<u64>,
    /// The first processor is interrupted by the other.
    pub is_interrupted: Cell<bool>,
    /// Who handles the interrupts of a device here, before all others.
    pub(super) handler: TcbRef,
    /// What happens in windows, and behind how many others.
    pub(super) armed: RefCell<Vec<(u32, Event)>>,
    /// A system call is under way that the model has carried out.
    pub(super) is_in_call: Cell<bool>,
    /// What has happened in windows, and steps behind which a look was owed.
    pub events: Cell<u64>,
    pub owed: Cell<u64>,
    /// What has gone wrong meanwhile.
    pub(super) wrong: RefCell<Option<String>>,
    /// Messages that have stayed on the other processor, and that were passed on.
    pub stayed: Cell<u64>,
    pub passed_on: Cell<u64>,
}

impl Stage {
    pub fn new(setting: Setting) -> Rc<Self> {
        let places = setting.places;
        let machine = Machine::new(1 + places.iter().max().expect("some threads"), 64, false);
        set_current(own::make_idle(RootWord::default()));
        set_processors(2);
        machine.spaces.iter().for_each(|space| kernel::space::spaces().insert(*space));
        machine.spaces[0].task.privileged.set(true);
        for (space, index) in machine.spaces.iter().zip(0..) {
            initialise(*space);
            let id = ThreadId::global(ANCHOR + index, 1);
            lifecycle::create(id, *space, id).expect("quota suffices");
        }
        let controller = make(ThreadId::global(CONTROLLER, 1), machine.spaces[0], 0, ThreadId::NIL);
        let handler = makes_handler(machine.spaces[0]);
        let spaces = places.iter().map(|place| machine.spaces[1 + *place as usize]).collect();
        let stage = Rc::new(Self {
            _machine: machine,
            setting,
            spaces,
            model: RefCell::default(),
            players: RefCell::new(vec![Player::default(); places.len()]),
            controller,
            versions: Cell::new(1),
            calls: Cell::new(0),
            looks: Cell::new(false),
            heard: Cell::new(visits::interrupts()),
            is_interrupted: Cell::new(false),
            handler,
            armed: RefCell::default(),
            is_in_call: Cell::new(false),
            events: Cell::new(0),
            owed: Cell::new(0),
            wrong: RefCell::new(None),
            stayed: Cell::new(0),
            passed_on: Cell::new(0),
        });
        stage.make_players();
        set_current(controller);
        stage.handler_waits();
        stage
    }

    fn make_players(&self) {
        for (who, space) in self.setting.places.into_iter().enumerate() {
            let thread = self.make(who, ThreadId::global(FIRST + who as u32, 1));
            self.model.borrow_mut().threads.push(Thread {
                id: thread.id.get(),
                local: ThreadId(thread.utcb.get()),
                space,
                alive: true,
                halted: false,
                state: State::Ready,
                outcome: None,
            });
        }
    }

    /// Thread `who` is made, on the first processor.
    pub(super) fn make(&self, who: usize, id: ThreadId) -> TcbRef {
        let thread = make(id, self.spaces[who], who as u32, ThreadId::NIL);
        sched::change_priority(thread, self.setting.priorities[who]);
        thread.resume.set(Resume::Frame);
        thread.frame().ip.set(CODE);
        self.players.borrow_mut()[who] = Player { ip: CODE, ..Player::default() };
        thread
    }

    pub fn len(&self) -> usize {
        self.spaces.len()
    }

    pub fn thread(&self, who: usize) -> Thread {
        self.model.borrow().threads[who]
    }

    pub fn player(&self, who: usize) -> Player {
        self.players.borrow()[who]
    }

    /// The tcb of a player that lives.
    pub fn tcb(&self, who: usize) -> Option<TcbRef> {
        lookup(self.thread(who).id)
    }

    pub fn who(&self, thread: TcbRef) -> Option<usize> {
        (0..self.len()).find(|who| self.tcb(*who) == Some(thread))
    }

    /// Whether all of `threads` are elsewhere together.
    pub fn are_seated<const COUNT: usize>(&self, threads: [usize; COUNT]) -> bool {
        threads.into_iter().all(|who| self.tcb(who).is_some_and(rendezvous::is_seated))
    }

    /// Thread `who` lives, and is not in an IPC, nor in a call that is still to be carried out.
    pub fn is_free(&self, who: usize) -> bool {
        let thread = self.thread(who);
        let is_ready = thread.alive && !thread.halted && thread.state == State::Ready;
        is_ready && self.player(who).call.is_none()
    }

    pub(super) fn note_wrong(&self, what: String) {
        self.wrong.borrow_mut().get_or_insert(what);
    }

    /// The model takes a step: whoever has a message by it knows whether it crossed.
    pub(super) fn step_model(&self, step: impl FnOnce(&mut Model)) {
        self.is_in_call.set(true);
        let mut model = self.model.borrow_mut();
        let before: Vec<_> = model.threads.iter().map(|thread| thread.outcome).collect();
        step(&mut model);
        for (who, old) in before.into_iter().enumerate() {
            let Some(Outcome::Received { from, .. }) = model.threads[who].outcome else { continue };
            if old != model.threads[who].outcome {
                let sender = |it: &Thread| {
                    it.id == from || it.local == from && it.space == model.threads[who].space
                };
                let mut players = self.players.borrow_mut();
                if let Some(sender) = model.threads.iter().position(sender) {
                    players[who].crosses = players[sender].processor != players[who].processor;
                }
            }
        }
    }
}

/// Who handles the device's interrupts, in `space`.
fn makes_handler(space: SpaceRef) -> TcbRef {
    own::make_interrupts();
    let handler = make(ThreadId::global(HANDLER, 1), space, 1, ThreadId::NIL);
    sched::change_priority(handler, HANDLERS_PRIORITY);
    irq::attach(space, ThreadId::irq(QUIET_LINE), handler.id.get()).expect("it may");
    handler
}

pub(super) fn timeouts(ipc: Ipc) -> u64 {
    let time = |patience| match patience {
        Patience::Never => Time::NEVER,
        Patience::Zero => Time::ZERO,
        Patience::Timed => Time::micros(WHILE_US),
    };
    Timeouts::new(time(ipc.send), time(ipc.receive)).0
}

/// The third party waits.
pub(super) fn waits_for_anchor(controller: TcbRef) {
    controller.partner.set(ThreadId::global(ANCHOR, 1));
    controller.resume.set(Resume::Ipc);
    rendezvous::set_busy(controller, Busy::Waiting);
}
