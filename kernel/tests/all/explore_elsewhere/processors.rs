//! The two processors of a [`Stage`]: how the first one's kernel is left (`arch/x86_64/entry/switch.rs`) and what the
//! other one does (`entry/visitors.rs`, `ipc.S`), transcribed.

use kernel::arch::cpu;
use kernel::between::berth::OtherSide;
use kernel::elsewhere;
use kernel::elsewhere::visits::{self, accept, berth, runs};
use kernel::ipc::wait;
use kernel::irq::{comers, watch};
use kernel::sched::leaving::Owes;
use kernel::thread::rendezvous;
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, current, lookup, set_current};
use kernel::usermem::Utcb;
use kernel::{ipc, irq, resume, sched};

use super::stage::{CODE, Stage, TAG, Tick, timeouts};
use crate::common::exit::later;
use crate::common::fastpath;
use crate::common::ipcmodel::{Ipc, Model};
use crate::common::there::{self, CALL};

/// Time that passes with a tick, with one that ends slices, and with one behind all timeouts, µs.
const SOON_US: u64 = 1_000;
const SLICE_US: u64 = 11_000;
const LONG_US: u64 = 5_000_000;
/// Length of a system call's instruction.
const CALL_BYTES: u64 = 2;

impl Stage {
    // --- The first processor. ---

    /// The kernel is left for `next`, or whoever runs in its place (`entry/switch.rs`, `activate`).
    pub(super) fn leave_kernel(&self, mut next: TcbRef) {
        loop {
            let mut turns = 0;
            while self.change_to(&mut next) && !resume::leaves(next, &mut turns) {}
            if matches!(next.resume.get(), Resume::Ipc | Resume::Frame | Resume::Idle) {
                break;
            }
            next = resume::resume(next, |thread| self.entered(thread));
        }
        if !next.is_ready() {
            self.note_wrong(format!("{} runs and is not ready", next.id.get()));
        }
        if self.handler.is_ready() && next != self.handler {
            self.note_wrong("the handler waits for somebody".to_owned());
        }
        self.reconcile();
    }

    fn change_to(&self, next: &mut TcbRef) -> bool {
        self.is_in_call.set(false);
        let wanted = resume::way_out(*next);
        *next = elsewhere::leave(wanted);
        let before = current();
        if *next != before {
            wait::seal(before);
            set_current(*next);
        }
        let leaves = *next != wanted || *next != before && before.is_elsewhere();
        if leaves {
            elsewhere::left(before);
        }
        leaves
    }

    /// An interrupt meets whoever runs, whose registers are in its frame from now on.
    fn interrupted(&self) -> TcbRef {
        let running = current();
        if Some(running) != cpu().scheduler.idle.get() {
            running.keep_user_state();
        }
        running
    }

    /// An interrupt has given the processor to `thread`; whether it has it.
    pub(super) fn give_processor(&self, thread: TcbRef) -> bool {
        self.handles();
        if current() != thread {
            sched::requeue(self.interrupted());
            // It is not more urgent, maybe, than who goes before a look that is owed: a tick has come meanwhile.
            if cpu().scheduler.owes.get() != Owes::Nothing {
                cpu().scheduler.owes.set(Owes::WholeLook);
                comers::look();
            }
            // It may have left.
            let next = if thread.is_ready() { thread } else { sched::pick() };
            sched::grant_slice(next);
            self.leave_kernel(next);
            self.handles();
        }
        current() == thread
    }

    /// Whether thread `who` could have the first processor.
    pub fn is_here(&self, who: usize) -> bool {
        self.tcb(who).is_some_and(|thread| thread.is_ready())
    }

    pub fn runs_here(&self) -> Option<usize> {
        self.who(current())
    }

    pub fn idles(&self) -> bool {
        Some(current()) == cpu().scheduler.idle.get()
    }

    /// Thread `who`, which runs on the first processor, calls Ipc.
    pub(super) fn calls_here(&self, who: usize, ipc: Ipc) {
        let thread = current();
        let ip = self.next_ip();
        let utcb = Utcb::of(thread).expect("the caller is active");
        utcb.set_mr(0, TAG.0);
        utcb.set_mr(1, ipc.word);
        thread.ip.set(ip);
        thread.resume.set(Resume::Ipc);
        self.step_model(|model| model.ipc(who, ipc));
        self.players.borrow_mut()[who].ip = ip;
        let (to, from) = (ipc.to.unwrap_or_default(), ipc.from.unwrap_or_default());
        match fastpath::ipc(thread, to, from, timeouts(ipc)) {
            Some(_) => {}
            None => self.leave_kernel(ipc::syscall::ipc(thread, to, from, timeouts(ipc))),
        }
    }

    /// Where the program goes on behind its next call.
    fn next_ip(&self) -> u64 {
        self.calls.set(self.calls.get() + 1);
        CODE + 16 * self.calls.get() + CALL_BYTES
    }

    /// `thread`, which is current, makes the call that it has made elsewhere (`entry/again.rs`).
    fn entered(&self, thread: TcbRef) -> TcbRef {
        self.reconcile();
        let who = self.who(thread).expect("only players are elsewhere");
        let call = self.players.borrow_mut()[who].call.take();
        let frame = thread.frame();
        let exchange = frame.exchange().expect("there are few words");
        let Some((ipc, ip)) = call else {
            self.note_wrong(format!("thread {who} makes a call that it has not made"));
            thread.resume.set(Resume::Frame);
            return thread;
        };
        let asks = (ipc.to.unwrap_or_default(), ipc.from.unwrap_or_default(), timeouts(ipc), ip);
        if asks != (exchange.to, exchange.from, exchange.timeouts, frame.ip.get()) {
            self.note_wrong(format!("thread {who} makes another call than it has made"));
        }
        let utcb = Utcb::of(thread).expect("it is active");
        utcb.set_mr(0, exchange.tag.0);
        frame.exchange_words(exchange.tag.untyped(), |index, word| utcb.set_mr(index, word));
        thread.ip.set(frame.ip.get());
        thread.resume.set(Resume::Ipc);
        self.step_model(|model| model.ipc(who, ipc));
        self.players.borrow_mut()[who].ip = ip;
        ipc::syscall::ipc(thread, exchange.to, exchange.from, exchange.timeouts)
    }

    /// What has become of the calls that were made elsewhere: passed on without their threads' having run, not made at
    /// all, since somebody has called the thread back, or still under way.
    pub(super) fn reconcile(&self) {
        for who in 0..self.len() {
            let (Some((ipc, ip)), Some(thread)) = (self.player(who).call, self.tcb(who)) else {
                continue;
            };
            let is_back = thread.is_away() || rendezvous::is_seated(thread);
            if is_back && berth(1).has_returned() || thread.resume.get() == Resume::Entered {
                continue;
            }
            let is_undone =
                thread.resume.get() == Resume::Frame && thread.frame().ip.get() == ip - CALL_BYTES;
            let mut player = self.player(who);
            player.call = None;
            player.ip = if is_undone { ip - CALL_BYTES } else { ip };
            self.players.borrow_mut()[who] = player;
            if !is_undone {
                self.passed_on.set(self.passed_on.get() + 1);
                self.step_model(|model| model.ipc(who, ipc));
            }
        }
    }

    /// The timer interrupts.
    pub(super) fn tick(&self, tick: Tick) {
        later(match tick {
            Tick::Soon => SOON_US,
            Tick::EndsSlices => SLICE_US,
            Tick::Expires => LONG_US,
        });
        let running = self.interrupted();
        self.reconcile();
        if tick == Tick::Expires {
            self.step_model(Model::expire);
        }
        self.leave_kernel(irq::interrupt(running, 0));
    }

    /// The other processor's interrupt is handled.
    pub(super) fn looks_here(&self) {
        self.is_interrupted.set(false);
        self.leave_kernel(watch::interrupted(self.interrupted()));
    }

    /// The first processor idles and looks for a while.
    pub(super) fn watches(&self) {
        if let Some(next) = watch::watch() {
            self.leave_kernel(next);
        }
    }

    // --- The other processor. ---

    /// Whether it would find whoever may come.
    pub fn is_attentive(&self) -> bool {
        self.looks.get() || visits::interrupts() != self.heard.get()
    }

    /// Whether somebody is there whom nobody has given back.
    pub fn is_inhabited(&self) -> bool {
        let berth = berth(1);
        berth.visitor() != 0 && !berth.is_offered() && !berth.has_returned()
    }

    /// Who runs there.
    pub fn runs_there(&self) -> Option<usize> {
        if !self.is_inhabited() {
            return None;
        }
        self.who(self.visitor()?)
    }

    /// The thread that runs there: its own registers are in its frame, or its shadow's in that one's.
    fn visitor(&self) -> Option<TcbRef> {
        match runs(1) {
            Some(shadow) => lookup(shadow.id.get()),
            None => visits::other(1)?.guest(),
        }
    }

    pub(super) fn accepts(&self) {
        let visitor = accept(1);
        self.looks.set(false);
        self.heard.set(visits::interrupts());
        let guest = visits::other(1).and_then(|other| other.guest());
        if visitor.is_none() || visitor != guest {
            self.note_wrong("somebody comes who is nobody's guest".to_owned());
        }
    }

    /// It looks no longer, and halts.
    pub(super) fn halts(&self) {
        self.looks.set(!berth(1).leave());
        self.heard.set(visits::interrupts());
    }

    /// Thread `who`, which runs there, calls Ipc: it talks there, or comes back.
    pub(super) fn calls_there(&self, who: usize, ipc: Ipc) {
        let (shadow, ip) = (runs(1), self.next_ip());
        let frame = shadow.or_else(|| self.visitor()).expect("somebody runs there").frame();
        let (to, from) = (ipc.to.unwrap_or_default(), ipc.from.unwrap_or_default());
        let _ = frame.make_exchange(to, from, TAG, [ipc.word, 0, 0, 0, 0, 0, 0]);
        frame.r8.set(timeouts(ipc));
        frame.ip.set(ip);
        self.players.borrow_mut()[who].ip = ip;
        if shadow.is_some() && timeouts(ipc) & fastpath::COMPLICATED == 0 && there::talk(to, from) {
            self.stayed.set(self.stayed.get() + 1);
            return self.step_model(|model| model.ipc(who, ipc));
        }
        self.model.borrow_mut().threads[who].outcome = None;
        self.players.borrow_mut()[who].call = Some((ipc, ip));
        frame.vector.set(CALL);
        self.looks.set(true);
        if berth(1).give_back() == OtherSide::IsAway {
            self.is_interrupted.set(true);
        }
    }
}
