//! The server object and its events. The binding calls `system_call`, `page_fault`,
//! `exception`, `alarm` and `console_input`, and after each of them takes the answers
//! that are due with `next_reply`.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::account::Accounts;
use crate::call::{Answer, Cx, Stop};
use crate::dump;
use crate::errno::Errno;
use crate::fs::Filesystems;
use crate::ipc::Ipc;
use crate::keys::Keys;
use crate::log::Log;
use crate::machine::{Access, Machine, MachineThread, Packet, Reply};
use crate::memory::Memory;
use crate::process::boost::Boost;
use crate::process::namespace::FIRST_IPC;
use crate::process::processors::Processors;
use crate::process::share::Lender;
use crate::process::{Processes, processors, seccomp};
use crate::signal::OnSignal;
use crate::stream::Streams;
use crate::stream::socket::{native, service};
use crate::thread::{Doing, Thread};
use crate::time::Timers;
use crate::tty::Terminals;
use crate::wait::RunQueue;
use crate::{mm, signal};

/// Calls that are not there are said up to this many times.
const MOST_MISSING: usize = 256;
/// Calls of which filters say something are said up to this many times.
const MOST_FILTERED: usize = 256;

/// Everything the server owns.
pub struct Unix {
    /// The system below.
    pub machine: Box<dyn Machine>,
    /// What users have.
    pub accounts: Accounts,
    /// How far programs are placed at random (`randomize_va_space`): 0 not, 1 all but the
    /// heap, 2 all.
    pub randomize: Cell<u8>,
    /// The operator knows that there is no kernel memory for new processes.
    pub(crate) told_no_space: Cell<bool>,
    /// What core files are called (`core_pattern`).
    pub core_pattern: RefCell<Vec<u8>>,
    /// All frames.
    pub memory: Rc<Memory>,
    /// Processes and threads by id.
    pub processes: Processes,
    /// What they run on.
    pub processors: Processors,
    /// Who gets on in the background.
    pub lender: Lender,
    /// Who goes first for a while.
    pub(crate) boost: Boost,
    /// Mounted file systems.
    pub fs: Filesystems,
    /// System V's objects.
    pub ipc: Rc<Ipc>,
    /// Keys.
    pub keys: Keys,
    /// What was said.
    pub log: Log,
    /// Deadlines, interval timers.
    pub timers: Timers,
    /// The console and the pseudo-terminals.
    pub terminals: Terminals,
    /// Names of sockets, fifos being opened.
    pub streams: Streams,
    /// Address-space bookkeeping shared by all (futexes).
    pub mm: mm::Shared,
    /// Threads with something to do.
    pub run_queue: Rc<RunQueue>,
    /// Calls that are not there, said once per program.
    absent: RefCell<BTreeMap<(u32, [u8; 16]), ()>>,
    /// The latest of them: programs that try a call try it again.
    missed: Cell<(u32, [u8; 16])>,
    /// How many calls were told of which filters say something.
    filtered: Cell<usize>,
    /// System calls so far.
    pub calls: Cell<u64>,
}

impl Unix {
    /// A server without processes.
    #[must_use]
    pub fn new(machine: Box<dyn Machine>, memory: Memory) -> Self {
        let memory = Rc::new(memory);
        let unix = Self {
            told_no_space: Cell::new(false),
            randomize: Cell::new(if machine.randomizes() { 2 } else { 0 }),
            accounts: Accounts::new(&*machine, &memory),
            core_pattern: RefCell::new(dump::PATTERN.to_vec()),
            processors: Processors::new(&*machine),
            machine,
            lender: Lender::default(),
            boost: Boost::default(),
            fs: Filesystems::new(&memory),
            mm: mm::Shared::new(&memory),
            memory,
            processes: Processes::default(),
            ipc: Rc::new(Ipc::new(FIRST_IPC, None, None)),
            keys: Keys::default(),
            log: Log::default(),
            timers: Timers::default(),
            terminals: Terminals::default(),
            streams: Streams::default(),
            run_queue: Rc::new(RunQueue::default()),
            absent: RefCell::default(),
            missed: Cell::default(),
            filtered: Cell::default(),
            calls: Cell::new(0),
        };
        unix.begin_log();
        unix
    }

    /// `thread` calls the system. `Some`: the result, at once; the thread goes on with it.
    /// `None`: the answer comes from [`Self::next_reply`], now or later. In both cases others
    /// may have something to do now, which [`Self::run_queue`] says.
    pub fn system_call(
        &self,
        thread: &Rc<Thread>,
        number: u32,
        arguments: [u64; 6],
    ) -> Option<u64> {
        self.calls.set(self.calls.get() + 1);
        thread.number.set(number);
        thread.arguments.set(arguments);
        thread.doing.set(Doing::Call);
        thread.retried.set(false);
        thread.progress.set(0);
        let value = match self.handle(thread) {
            Ok(value) => value,
            Err(Stop::Errno(errno)) => errno.result(),
            Err(Stop::Block) => {
                self.block(thread);
                return None;
            }
            Err(Stop::Done) => {
                self.end_wait(thread);
                return None;
            }
        };
        let waits = thread.deadline_ns.get().is_some();
        if thread.signals.is_due() || waits || self.run_queue.has_later() {
            self.answer_late(thread, value);
            return None;
        }
        thread.doing.set(Doing::Running);
        Some(value)
    }

    /// Calls the handler of the call `thread` is in.
    #[inline(always)]
    fn handle(&self, thread: &Rc<Thread>) -> Answer {
        let cx = Cx { unix: self, thread, process: &thread.process };
        let number = thread.number.get();
        match thread.table.get().get(number as usize) {
            Some(Some(entry)) => (entry.handler)(&cx),
            _ => self.not_there(&cx, number),
        }
    }

    /// Tries the call `thread` is in again: the result, with which the thread goes on, unless
    /// it waits on or a signal comes first.
    fn try_call(&self, thread: &Rc<Thread>) -> Option<u64> {
        let value = match self.handle(thread) {
            Ok(value) => value,
            Err(Stop::Errno(errno)) => errno.result(),
            Err(Stop::Block) => {
                self.block(thread);
                return None;
            }
            Err(Stop::Done) => {
                self.end_wait(thread);
                return None;
            }
        };
        self.end_wait(thread);
        if self.run_queue.has_later() {
            self.run_queue.do_later(self);
        }
        if thread.signals.is_due() {
            signal::leave_call(self, thread, value);
            return None;
        }
        thread.doing.set(Doing::Running);
        Some(value)
    }

    /// The call's result is due, and more than that.
    #[cold]
    #[inline(never)]
    fn answer_late(&self, thread: &Rc<Thread>, value: u64) {
        if self.run_queue.has_later() {
            // Among it may be signals that the call is to end with.
            self.run_queue.do_later(self);
        }
        self.answer(thread, value);
    }

    /// The call's result is due; a pending signal is delivered on the way out.
    fn answer(&self, thread: &Rc<Thread>, value: u64) {
        self.end_wait(thread);
        if thread.signals.is_due() {
            signal::leave_call(self, thread, value);
        } else {
            self.reply(thread, Reply::Result(value));
        }
    }

    /// The call of `thread` has ended: what it left for its next try is gone.
    pub(crate) fn end_wait(&self, thread: &Rc<Thread>) {
        thread.wait_serial.set(thread.wait_serial.get() + 1);
        if thread.deadline_ns.take().is_some() {
            self.timers.forget(thread);
        }
        thread.signals.on_signal.set(OnSignal::Restart);
        drop(thread.held.take());
    }

    /// The call waits; a signal that is already there ends it.
    fn block(&self, thread: &Rc<Thread>) {
        thread.retried.set(true);
        if let Some(at_ns) = thread.deadline_ns.get() {
            self.timers.wake_at(self, thread, at_ns);
        }
        if thread.signals.interrupts() {
            signal::interrupt_call(self, thread);
        }
        if thread.doing.get() == Doing::Call {
            processors::waits(self, thread);
        }
    }

    /// `reply` is due for `thread`, which goes on with it.
    pub fn reply(&self, thread: &Rc<Thread>, reply: Reply) {
        thread.doing.set(Doing::Running);
        *thread.reply.borrow_mut() = Some(reply);
        self.run_queue.push(thread);
    }

    /// A program touched what is not mapped, or not for this.
    pub fn page_fault(&self, thread: &Rc<Thread>, address: u64, access: Access) {
        thread.doing.set(Doing::Fault);
        thread.fault_access.set(access);
        mm::page_fault(self, thread, address, access);
    }

    /// A program raised an exception (x86 vector and error code).
    pub fn exception(&self, thread: &Rc<Thread>, vector: u8, error: u64) {
        thread.doing.set(Doing::Fault);
        signal::exception(self, thread, vector, error);
    }

    /// The time asked for with `Machine::set_alarm` has come.
    pub fn alarm(&self) {
        self.timers.expire(self);
    }

    /// Tells the operator something, in one line, and keeps it in the log.
    pub fn say(&self, line: &str) {
        self.note(&visible(line));
        self.tell(line);
    }

    /// Tells the operator something, in one line, and nobody else.
    pub(crate) fn tell(&self, line: &str) {
        self.machine.log(&visible(line));
    }

    /// A service has answered a call, or it never will.
    pub fn service_answered(&self, call: u64, answer: Result<Packet, Errno>) {
        service::answered(self, call, answer);
    }

    /// Somebody typed.
    pub fn console_input(&self, bytes: &[u8]) {
        self.terminals.console_input(self, bytes);
    }

    /// The next answer to give: threads whose turn it is try their calls again and take
    /// their signals until one has an answer.
    ///
    /// Each answer must be given before the next is asked for: from here on its thread
    /// counts as running, and may be stopped. It may be given together with the wait for the
    /// next event; those who are left in `run_queue` then have their turn later.
    pub fn next_reply(&self) -> Option<(MachineThread, Reply)> {
        loop {
            if self.run_queue.has_later() {
                self.run_queue.do_later(self);
            }
            let Some(thread) = self.run_queue.pop() else {
                if self.run_queue.is_empty() {
                    return None;
                }
                native::serve(self);
                continue;
            };
            // Nobody in a stopped process gets on; when it is continued, all have their turn.
            if thread.process.signals.stopped.get().is_some() {
                continue;
            }
            let doing = thread.doing.get();
            let reply = thread.reply.borrow_mut().take();
            match (doing, reply) {
                (Doing::Running, Some(reply)) if thread.signals.is_due() => {
                    signal::go_on(self, &thread, reply);
                }
                (Doing::Running, Some(reply)) => {
                    processors::goes_on(self, &thread);
                    return Some((thread.machine.get(), reply));
                }
                (Doing::Call, _) => {
                    if let Some(value) = self.try_call(&thread) {
                        processors::goes_on(self, &thread);
                        return Some((thread.machine.get(), Reply::Result(value)));
                    }
                }
                (Doing::Stopped, _) => signal::go_on(self, &thread, Reply::Resume),
                _ => {}
            }
        }
    }

    /// There is no call of this number, for this thread.
    #[inline(always)]
    pub(crate) fn not_there(&self, cx: &Cx, number: u32) -> Answer {
        match seccomp::judge_unknown(cx, number) {
            Some(answer) => answer,
            None => self.missing(cx, number),
        }
    }

    /// There is no call of this number, for anybody.
    #[inline(always)]
    pub(crate) fn missing(&self, cx: &Cx, number: u32) -> Answer {
        let name = cx.thread.name.get();
        if self.missed.get() != (number, name) {
            self.tell_missing(cx, number, name);
        }
        Err(Errno::ENOSYS.into())
    }

    /// A filter of the thread does this with its call.
    #[cold]
    pub(crate) fn tell_filtered(&self, cx: &Cx, number: u32, does: &str) {
        let told = self.filtered.get();
        if told < MOST_FILTERED {
            self.filtered.set(told + 1);
            let name = cx.thread.name.get();
            let text = core::str::from_utf8(&name).unwrap_or("?").trim_end_matches('\0');
            self.say(&format!(
                "unix: {text} (process {}) made system call {number}; its filter {does}",
                cx.process.pid.first()
            ));
        }
    }

    #[cold]
    fn tell_missing(&self, cx: &Cx, number: u32, name: [u8; 16]) {
        self.missed.set((number, name));
        let mut absent = self.absent.borrow_mut();
        // Programs can choose names and numbers as they like, but not fill the server's memory.
        if absent.len() < MOST_MISSING && absent.insert((number, name), ()).is_none() {
            let text = core::str::from_utf8(&name).unwrap_or("?").trim_end_matches('\0');
            self.say(&format!(
                "unix: {text} (process {}) made system call {number}, which is not supported; it got ENOSYS",
                cx.process.pid.first()
            ));
        }
    }
}

/// A line as it can be shown. Programs choose parts of it, which must not move the operator's
/// cursor or look like somebody else's line: what cannot be seen is spelled.
pub(crate) fn visible(line: &str) -> String {
    let mut shown = Vec::new();
    for (index, part) in line.split('\n').enumerate() {
        if index > 0 {
            shown.extend_from_slice(b"\\x0a");
        }
        line::visible(part.as_bytes(), |bytes| shown.extend_from_slice(bytes));
    }
    String::from_utf8_lossy(&shown).into_owned()
}
