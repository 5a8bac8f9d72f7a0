//! What has to be true behind each step of a play on two processors, and what of it matters for the future.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use abi::{IpcError, MsgTag, ThreadId, utcb};
use kernel::arch::cpu;
use kernel::between::SEATS;
use kernel::check;
use kernel::elsewhere;
use kernel::elsewhere::visits::{self, berth, runs};
use kernel::sched::leaving::Owes;
use kernel::thread::rendezvous::{self, Busy, Waits};
use kernel::thread::state::State as Seen;
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, current, lookup};
use kernel::usermem::Utcb;

use super::stage::{Stage, TAG, Tick};
use super::steps::Step;
use crate::common::ipcmodel::{Ipc, Outcome, Patience, State, Thread};
use crate::common::there;

/// Rounds after which everybody who is ready has had a processor.
const ROUNDS: usize = 60;
/// Ticks of a slice, and one more.
const TICKS: usize = 11;

impl Stage {
    /// Compares what a program could see, and asks the kernel's own checker; nobody is called back for it.
    pub fn compare(&self) -> Result<(), String> {
        if let Some(what) = self.wrong.borrow().clone() {
            return Err(what);
        }
        match check::thread_violations() {
            0 => {}
            count => return Err(format!("the kernel's checker finds {count} violations")),
        }
        self.compare_processors()?;
        self.compare_owed()?;
        (0..self.len()).try_for_each(|who| self.compare_thread(who))
    }

    /// Whoever may come or has come back is seen, and the berth holds who is a guest.
    fn compare_processors(&self) -> Result<(), String> {
        let berth = berth(1);
        let fails =
            |is_wrong: bool, what: &str| if is_wrong { Err(what.to_owned()) } else { Ok(()) };
        fails(
            berth.is_offered() && !self.is_attentive(),
            "somebody may come, and nobody looks there",
        )?;
        let owes_nothing = cpu().scheduler.owes.get() == Owes::Nothing;
        fails(
            berth.has_returned() && !self.is_interrupted.get() && owes_nothing,
            "somebody has come back, and nobody looks here",
        )?;
        fails(cpu().pending_lines.get() != 0, "the kernel was left with something noted")?;
        fails(!cpu().scheduler.stopped.is_empty(), "somebody stands still for nothing")?;
        let guest = visits::other(1).and_then(|other| other.guest());
        let name = guest.map_or(0, visits::name);
        fails(berth.visitor() != name, "the berth holds another than the guest")?;
        fails(self.is_inhabited() && self.runs_there().is_none(), "nobody runs there")?;
        let other = visits::other(1).expect("it runs");
        let best = other.first().map(|first| first.priority.get());
        let least = guest.map(|guest| elsewhere::least(other, guest));
        // While it takes nobody, a tick looks.
        let is_open = cpu().scheduler.leaving.is_empty() && owes_nothing;
        fails(
            best > least && is_open,
            "somebody waits for a processor that is free, or less urgent",
        )?;
        fails(!current().is_ready(), "who runs is not ready")?;
        fails(current().is_away() || rendezvous::is_seated(current()), "who runs here is elsewhere")
    }

    fn compare_thread(&self, who: usize) -> Result<(), String> {
        let (model, player) = (self.thread(who), self.player(who));
        let thread = lookup(model.id);
        if thread.is_some() != model.alive {
            let not = if model.alive { "" } else { "not " };
            return Err(format!("thread {who} should {not}live"));
        }
        let Some(thread) = thread else { return Ok(()) };
        let (got, want) = (seen(thread), wanted(&model));
        if got != want {
            return Err(format!("thread {who} is {got:?} and should be {want:?}"));
        }
        if ip(thread) != player.ip {
            return Err(format!("thread {who} goes on at {:#x}, not {:#x}", ip(thread), player.ip));
        }
        if elsewhere::leaves(thread) && cpu().scheduler.leaving.is_empty() {
            return Err(format!(
                "thread {who} would go on elsewhere, and waits for this processor"
            ));
        }
        if u32::from(thread.processor.get()) != player.processor {
            return Err(format!("thread {who} is of another processor than {}", player.processor));
        }
        if model.state != State::Ready || player.call.is_some() {
            return Ok(());
        }
        let want = model.outcome;
        match want.map(|want| outcome(thread, want)) {
            got if got != want => Err(format!("thread {who} got {got:?} and should have {want:?}")),
            Some(Outcome::Received { .. }) if answer(thread).tag != tag(player.crosses) => {
                Err(format!("thread {who} has a message whose tag is {:?}", answer(thread).tag))
            }
            _ => Ok(()),
        }
    }

    /// Everybody who is ready gets a processor, wherever: each waits for anybody then, until nobody is ready.
    pub fn come_to_rest(self: &Rc<Self>) -> Result<(), String> {
        let waits = Ipc {
            to: None,
            from: Some(ThreadId::ANY),
            send: Patience::Never,
            receive: Patience::Never,
            word: 0,
        };
        let is_ready = |who: usize| {
            let thread = self.thread(who);
            thread.alive && !thread.halted && thread.state == State::Ready
        };
        if cpu().scheduler.owes.get() != Owes::Nothing {
            // The first may come behind somebody who goes first.
            (0..2).for_each(|_| self.take(Step::Tick(Tick::Soon)));
            if cpu().scheduler.owes.get() != Owes::Nothing {
                return Err("a look is owed behind two ticks".to_owned());
            }
        }
        self.take(Step::Handles);
        self.take_turns()?;
        for _ in 0..ROUNDS {
            if !(0..self.len()).any(is_ready) {
                return self.compare();
            }
            let step = match (self.runs_there(), self.runs_here()) {
                (Some(who), _) => Step::Ipc { who, ipc: waits },
                _ if self.possible(Step::Accept) => Step::Accept,
                _ if self.possible(Step::Look) => Step::Look,
                (_, Some(who)) if self.is_free(who) => Step::Ipc { who, ipc: waits },
                _ => Step::Tick(Tick::EndsSlices),
            };
            self.take(step);
        }
        let lost: Vec<usize> = (0..self.len()).filter(|who| is_ready(*who)).collect();
        self.compare()?;
        Err(format!("threads {lost:?} are ready and get no processor"))
    }

    /// If somebody else waits for the other processor, whoever runs there makes room within a slice.
    fn take_turns(self: &Rc<Self>) -> Result<(), String> {
        let visitor = self.runs_there();
        let mut ticks = 0..TICKS;
        while self.may_give_way() && self.runs_there() == visitor {
            if ticks.next().is_none() {
                return Err("whose slice is over keeps the other processor".to_owned());
            }
            self.take(Step::Tick(Tick::Soon));
        }
        Ok(())
    }

    /// Whether somebody waits for the other processor whose turn comes when the slice ends on which that runs.
    fn may_give_way(&self) -> bool {
        let other = visits::other(1).expect("it runs");
        let (Some(first), Some(guest)) = (other.first(), other.guest()) else { return false };
        self.is_inhabited() && first.priority.get() >= elsewhere::least(other, guest)
    }

    /// What matters for the future, independent of versions and of what was sent.
    pub fn essence(&self) -> u64 {
        let mut essence = self.model.borrow().essence();
        essence.extend((0..self.len()).filter_map(|who| self.essence_of(who)).flatten());
        let (scheduler, other) = (&cpu().scheduler, visits::other(1).expect("it runs"));
        essence.extend(scheduler.ready.all().map(|it| self.index(Some(it))));
        essence.push(99);
        essence.extend(other.queue().all().map(|it| self.index(Some(it))));
        let berth = berth(1);
        let flags = [
            berth.is_offered(),
            berth.has_returned(),
            self.looks.get(),
            self.is_attentive(),
            self.is_interrupted.get(),
            cpu().look_first.get(),
            scheduler.watches.get(),
            scheduler.leaving.is_empty(),
            self.idles(),
        ];
        essence.extend(flags.map(u64::from));
        let runner = runs(1).and_then(|shadow| lookup(shadow.id.get()));
        let some = [other.guest(), runner, Some(current()), scheduler.slice_owner.get()];
        essence.extend(some.map(|thread| self.index(thread)));
        let seats = (0..SEATS).filter(|seat| visits::is_up(1, *seat));
        essence.extend(seats.map(|seat| self.named(visits::shadow(1, seat).id.get())));
        let mut hasher = DefaultHasher::new();
        essence.hash(&mut hasher);
        hasher.finish()
    }

    fn index(&self, thread: Option<TcbRef>) -> u64 {
        thread.and_then(|it| self.who(it)).map_or(7, |who| who as u64)
    }

    fn named(&self, id: ThreadId) -> u64 {
        if id == ThreadId::ANY { 8 } else { self.index(lookup(id)) }
    }

    /// The same of thread `who`, if it lives.
    fn essence_of(&self, who: usize) -> Option<[u64; 3]> {
        let thread = self.tcb(who)?;
        let name = |id: Option<ThreadId>| id.map_or(15, |id| self.named(id));
        let call = self.player(who).call.map_or(0, |(ipc, _)| {
            let patience = (ipc.send as u64) << 12 | (ipc.receive as u64) << 16;
            1 | name(ipc.to) << 4 | name(ipc.from) << 8 | patience
        });
        let code = (thread.rendezvous.get() ^ thread.id.get().0) >> 32;
        let place = (thread.resume.get() as u64) << 8 | u64::from(thread.processor.get()) << 16;
        let has_message = matches!(self.thread(who).outcome, Some(Outcome::Received { .. }));
        let rest = u64::from(thread.priority.get()) << 16
            | self.named(thread.partner.get())
            | u64::from(thread.slice_left_us.get() != 0) << 8
            | u64::from(has_message) << 9;
        Some([call, code.min(32) | place, rest])
    }
}

/// What the thread does, whether it is halted, and whether it waits for a time.
type Doing = (Seen, bool, bool);

/// The shadow of `thread`, which is there with others.
fn shadow(thread: TcbRef) -> Option<TcbRef> {
    let is_there = rendezvous::is_seated(thread);
    is_there.then(|| there::seen(thread.id.get().number())).flatten()
}

fn seen(thread: TcbRef) -> Doing {
    let doing = match shadow(thread).map(rendezvous::peek) {
        None => Seen::seen(thread),
        Some(Waits::Open) => Seen::Waits(ThreadId::ANY),
        Some(Waits::Closed(from)) => Seen::Waits(from),
        Some(Waits::Busy(Busy::Ready)) => Seen::Ready,
        Some(_) => Seen::Halted,
    };
    (doing, thread.halted.get(), thread.wake_at_us.get() != 0)
}

fn wanted(model: &Thread) -> Doing {
    let (doing, timed) = match model.state {
        State::Ready if model.halted => (Seen::Halted, false),
        State::Ready => (Seen::Ready, false),
        State::Sending { ipc, to, .. } => (Seen::Polls(to), ipc.send == Patience::Timed),
        State::Receiving { from, timed } => (Seen::Waits(from), timed),
    };
    (doing, model.halted, timed)
}

/// Where `thread` goes on in user mode.
fn ip(thread: TcbRef) -> u64 {
    match shadow(thread) {
        Some(shadow) if rendezvous::peek(shadow) == Waits::Busy(Busy::Ready) => {
            shadow.frame().ip.get()
        }
        Some(shadow) => shadow.ip.get(),
        None => thread.user_ip_sp().0,
    }
}

/// What an IPC has left for its thread.
struct Answer {
    from: ThreadId,
    tag: MsgTag,
    word: u64,
}

/// In registers, wherever they are.
fn answer(thread: TcbRef) -> Answer {
    let frame = match shadow(thread) {
        Some(shadow) => Some(shadow.frame()),
        None => (thread.resume.get() != Resume::Ipc).then(|| thread.frame()),
    };
    let utcb = Utcb::of(thread).expect("it is active");
    let Some(frame) = frame else {
        return Answer {
            from: thread.result_from.get(),
            tag: MsgTag(utcb.mr(0)),
            word: utcb.mr(1),
        };
    };
    let mut words = [0; 2];
    frame.exchange_words(1, |index, word| words[index] = word);
    let exchange = frame.exchange().expect("there are few words");
    Answer { from: exchange.to, tag: exchange.tag, word: words[1] }
}

/// The outcome that `thread` sees; `like` tells a send from a receive.
fn outcome(thread: TcbRef, like: Outcome) -> Outcome {
    let Answer { from, tag, word } = answer(thread);
    if tag.is_error() {
        let code = Utcb::of(thread).map_or(0, |utcb| utcb.word(utcb::ERROR_CODE));
        let error = IpcError::decode(code).expect("a failed IPC has an error code");
        return Outcome::Failed(error.kind, error.phase);
    }
    if like == Outcome::Sent && from.is_nil() {
        return Outcome::Sent;
    }
    Outcome::Received { from, word }
}

const fn tag(crosses: bool) -> MsgTag {
    TAG.with(if crosses { MsgTag::XCPU } else { 0 })
}
