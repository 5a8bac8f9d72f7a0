//! Armed threads in user mode, played: the path of local IPC (`arch/x86_64/local_stubs.S`), the entry that
//! finds out who has come, and the way back (`arch/x86_64/entry/armed.rs`). What the kernel does about it is the
//! kernel's own code ([`kernel::local`]).

use std::cell::Cell;

use abi::id::USER_BASE;
use abi::{MsgTag, ThreadId, utcb};
use kernel::control::arm;
use kernel::ipc::wait;
use kernel::local;
use kernel::thread;
use kernel::thread::rendezvous::{self, Busy};
use kernel::thread::tcb::{Resume, USES_VECTOR};
use kernel::thread::{TcbRef, current, set_current};
use kernel::usermem::Utcb;

use super::players::Players;

/// Where threads that have handed over go on: nobody looks, for there are no stubs.
const DONE: u64 = 0x1000;

/// The processor's pad.
#[derive(Default)]
pub struct UserMode {
    /// The armed thread that the kernel has left for, unless it is in the kernel.
    last: Cell<Option<TcbRef>>,
}

impl UserMode {
    /// Who runs, the kernel being in nobody's way: an armed thread may have taken another's place.
    pub fn runner(&self) -> TcbRef {
        self.last.get().map_or_else(current, claimed)
    }

    /// Whether the kernel takes another thread for the one that runs.
    pub fn is_hidden(&self) -> bool {
        self.last.get().is_some_and(|last| claimed(last) != last)
    }

    /// A system call, a fault or an interrupt: whoever has come is the current thread.
    pub fn enter(&self) {
        let Some(last) = self.last.take() else { return };
        rendezvous::set_busy(last, Busy::Ready);
        let thread = claimed(last);
        set_current(thread);
        if thread != last {
            local::handed_over(last, thread, DONE);
        }
        registers(thread).set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
    }

    /// The complete path gives the processor to `next` and goes back to user mode if it may.
    pub fn leave_for(&self, next: TcbRef) {
        let before = current();
        if next != before {
            wait::seal(before);
            set_current(next);
        }
        let returns = matches!(next.resume.get(), Resume::Ipc | Resume::Frame | Resume::Anew);
        if next.is_armed() && returns {
            local::show(next);
            rendezvous::set_armed_running(next);
            self.last.set(Some(next));
        }
    }

    /// A fast path has given the processor to `next`.
    pub fn ran(&self, next: TcbRef) {
        self.last.set(next.is_armed().then_some(next));
    }

    /// The path of local IPC: `to` has the message and runs, if that needs no kernel.
    pub fn message(&self, to: ThreadId, from: ThreadId, endless: bool) -> bool {
        let sender = self.runner();
        if self.last.get().is_none() || !endless {
            return false;
        }
        let Some(receiver) = thread::lookup(to).filter(|to| to.same_space(sender)) else {
            return false;
        };
        let (own, partner) = (registers(sender), registers(receiver));
        let wait = match from {
            from if from == to => receiver.utcb.get(),
            ThreadId::ANY | ThreadId::ANY_LOCAL => utcb::lipc_open(0) & from.0,
            _ => return false,
        };
        let theirs = partner.word(utcb::LIPC_WAIT);
        let (open, open_local) = (utcb::lipc_open(0), utcb::lipc_open_local(0));
        let for_us = [open, open_local, sender.utcb.get()].contains(&theirs);
        if !for_us || own.word(utcb::LIPC_STATE) != open {
            return false;
        }
        own.set_word(utcb::LIPC_SP, 0x2000);
        own.set_word(utcb::LIPC_WAIT, wait);
        let space = sender.space().expect("it has a space");
        space.task.current_word.write(ThreadId(receiver.utcb.get()));
        partner.set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
        // The message registers stay where they are; here they are the UTCBs'.
        let tag = own.mr(0);
        partner.set_mr(0, tag);
        partner.copy_mrs(own, MsgTag(tag).untyped());
        receiver.result_from.set(ThreadId(sender.utcb.get()));
        true
    }
}

/// Who runs, if the kernel has left for `last`.
fn claimed(last: TcbRef) -> TcbRef {
    let word = current_word(last);
    let hidden = word.0 != last.utcb.get();
    hidden.then(|| local::claimed(last, word)).flatten().unwrap_or(last)
}

fn current_word(thread: TcbRef) -> ThreadId {
    thread.space().expect("it has a space").task.current_word.read()
}

fn registers(thread: TcbRef) -> Utcb {
    Utcb::of(thread).expect("it is active")
}

impl Players {
    /// Who runs, or the first.
    pub fn runner(&self) -> usize {
        let runs = self.user_mode.runner();
        (0..self.spaces.len()).find(|who| self.tcb(*who) == Some(runs)).unwrap_or(0)
    }

    /// A player that nobody has waited for yet says whether it uses vector registers.
    pub(super) fn declare_vector(&self, who: usize) {
        if let Some(thread) = self.tcb(who) {
            let uses = Some(self.model.threads[who].space) == self.vector_place;
            thread.set_special(USES_VECTOR, uses);
        }
    }

    /// The threads of `place` use vector registers, and nobody has run yet.
    pub fn use_vector_registers_in(&mut self, place: u32) {
        self.vector_place = Some(place);
        (0..self.spaces.len()).for_each(|who| self.declare_vector(who));
    }

    /// Nobody takes part in messages in user mode any more.
    pub fn disarm(&self) {
        self.user_mode.enter();
        (0..self.spaces.len()).filter_map(|who| self.tcb(who)).for_each(local::disarm);
    }

    /// What matters for the future of messages in user mode and the model does not know.
    pub fn hidden_essence(&self) -> Vec<u64> {
        let number = |thread: TcbRef| u64::from(thread.id.get().number());
        let word = |thread: TcbRef, word| Utcb::of(thread).map_or(0, |utcb| utcb.word(word));
        let of = |thread: TcbRef| {
            let waits = thread.rendezvous.get() ^ thread.id.get().0;
            let word_of = |word: &Cell<u64>| word.get() ^ thread.id.get().0;
            let armed = word_of(&thread.armed_rendezvous) ^ word_of(&thread.beside_rendezvous) << 1;
            let code = if waits >> 32 < u64::from(USER_BASE) { waits >> 32 } else { 99 };
            let state = word(thread, utcb::LIPC_STATE) << 8 | u64::from(thread.is_armed()) << 16;
            [code | state | (armed >> 32) << 32, word(thread, utcb::LIPC_WAIT)]
        };
        let mut essence = vec![
            number(self.user_mode.runner()),
            number(current()),
            u64::from(self.user_mode.is_hidden()),
        ];
        let threads = (0..self.spaces.len()).filter_map(|who| self.tcb(who));
        essence.extend(threads.flat_map(of));
        essence
    }

    /// Thread `who` asks, as the stubs do.
    pub fn arm(&self, who: usize, partner: usize) {
        let thread = self.tcb(who).expect("who asks lives");
        self.give_processor(thread);
        self.user_mode.enter();
        arm::arm(thread, self.model.threads[partner].local);
        self.run(thread);
    }
}
