//! The thread control block: everything the kernel knows of one thread.
//!
//! A tcb sits at the top of its kernel stack, both in the upper page of a naturally
//! aligned block of the virtual tcb array (Liedtke 1993, 5.2.4, 5.2.5), so its address
//! follows from the thread number and the stack pointer of the processor's task
//! state segment is also the pointer to the current thread. The first cache
//! line is all that a short IPC touches (5.5.1). Fields are cells: the kernel
//! runs with interrupts off and never re-enters itself on one processor.

use core::cell::Cell;
use core::fmt;
use core::mem::{offset_of, size_of};

use abi::ThreadId;

use super::part::Transfer;
use super::{Kind, rendezvous};
use crate::arch::OwnRegisters;
use crate::mem::{DestroyJob, MapJob, Marker, RootWord, SpaceRef, UnmapJob};
use crate::ring::{self, Links, Ring};
use crate::thread::{BindingRef, TcbRef};

/// Size of a tcb in bytes; the rest of its block is the kernel stack.
pub const TCB_SIZE: usize = 1024;
/// Log2 of the size of a block: tcb and kernel stack.
pub const BLOCK_BITS: u32 = 13;
/// Size of a block in bytes; its lower half guards the stack.
pub const BLOCK_SIZE: usize = 1 << BLOCK_BITS;

/// What happens when a thread gets the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u64)]
pub enum Resume {
    /// Return from an IPC: message registers from the UTCB. Always the value of a
    /// thread that runs in user mode, so the fast path need not write it.
    #[default]
    Ipc = 0,
    /// Return through the register frame on the kernel stack.
    Frame = 1,
    /// The idle thread: wait for an interrupt.
    Idle = 2,
    /// Go on with the transfer this thread was in (as sender or receiver).
    Transfer = 3,
    /// Do the receive phase of an IPC whose send phase somebody else completed.
    Receive = 4,
    /// Go on with an Unmap.
    Unmap = 5,
    /// Go on with the deletion of a space.
    Destroy = 6,
    /// As `Frame`, after a look at what has become special about the thread.
    Anew = 7,
    /// Make the entry that is in the register frame: the thread has made it on another
    /// processor ([`crate::elsewhere`]).
    Entered = 8,
    /// The waker: go on with waking others ([`crate::sched::waker`]).
    Wake = 9,
    /// Go on with an LrpcBind that the clerk has answered.
    Bind = 10,
    /// Make the system call again that is in the register frame: an interrupt has met it.
    Again = 11,
}

impl Resume {
    /// How many there are; numbers from here on are the processor's own (`arch::x86_64::armed`).
    pub const COUNT: u64 = Self::Again.number() + 1;

    /// Its number. Whoever adds one looks whether [`Resume::COUNT`] still is how many there are.
    const fn number(self) -> u64 {
        match self {
            Self::Ipc | Self::Frame | Self::Idle | Self::Transfer | Self::Receive | Self::Unmap => {
            }
            Self::Destroy | Self::Anew | Self::Entered | Self::Wake | Self::Bind | Self::Again => {}
        }
        self as u64
    }
}

/// A memory operation under way; a thread is in one at a time.
pub enum Job {
    /// A map or grant item of the message the thread sends.
    Map(MapJob),
    /// One flexpage of an Unmap.
    Unmap(UnmapJob),
    /// The destruction of a space.
    Destroy(DestroyJob),
}

/// Where an Unmap stands.
#[derive(Default)]
pub struct UnmapPlace {
    /// The call's control word.
    pub control: Cell<u64>,
    /// The flexpage that is next.
    pub index: Cell<usize>,
}

ring::kinds! {
    /// All threads of users.
    Registered of TcbRef: all;
    /// The threads of one task.
    Siblings of TcbRef: siblings;
    /// Ready threads of one priority.
    Ready of TcbRef: ready;
    /// Those who wait to send to one thread.
    Senders of TcbRef: sending;
    /// Those who wait for a time in the same wakeup list.
    Wakeups of TcbRef: wake;
    /// The threads of one task that may exchange messages in user mode.
    Armed of TcbRef: armed;
    /// The hosts of one clerk that no A-stack has.
    Lent of TcbRef: lent;
    /// The bindings of one clerk.
    Served of BindingRef: links;
}

/// The thread control block.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Tcb {
    // --- Line 0: what a short IPC needs, of sender and receiver. ---
    /// Whom the thread waits for, as `own id ^ waits` ([`rendezvous`]).
    pub rendezvous: Cell<u64>,
    /// Global id; 0 in the null page.
    pub id: Cell<ThreadId>,
    /// What the processor is given to run in the thread's space.
    pub root: Cell<RootWord>,
    /// UTCB pointer U, the local id.
    pub utcb: Cell<u64>,
    /// User instruction pointer, while not running and `resume` is `Ipc`.
    pub ip: Cell<u64>,
    /// User stack pointer, likewise.
    pub sp: Cell<u64>,
    /// User flags, likewise.
    pub flags: Cell<u64>,
    /// Anythread while nobody waits to send to this thread, else `queue::SOMEBODY`: one
    /// compare with the from-specifier tells whether an open wait may block at once.
    pub open_from: Cell<ThreadId>,

    // --- Line 1: the complete path. ---
    /// UTCB pointer in the kernel's map of physical memory.
    pub utcb_k: Cell<u64>,
    /// The sender to report when the IPC returns.
    pub result_from: Cell<ThreadId>,
    /// What happens next time the thread runs.
    pub resume: Cell<Resume>,
    /// What kind of message the thread is exchanging.
    pub kind: Cell<Kind>,
    /// The log has said that the thread has no handler.
    pub reported: Cell<bool>,
    /// Priority, 0 to 255.
    pub priority: Cell<u8>,
    /// Halted by ExchangeRegisters (takes effect when the thread would be ready).
    pub halted: Cell<bool>,
    /// Becoming ready needs a second look: [`Self::halted`], or its user code runs elsewhere.
    pub unusual: Cell<bool>,
    /// The delay of a preemption has been granted and not yet given back.
    pub delay_used: Cell<bool>,
    /// Highest priority whose wake-up the thread may delay.
    pub sensitive_priority: Cell<u8>,
    /// Partner: whom a polling thread wants to send to, whom a waiting one waits for.
    pub partner: Cell<ThreadId>,
    /// From-specifier of the receive phase that follows the send phase; nil if none.
    pub then_from: Cell<ThreadId>,
    /// Timeouts word of the ongoing IPC.
    pub timeouts: Cell<u64>,
    /// The space.
    pub space: Cell<Option<SpaceRef>>,
    /// Who gets the system calls, exceptions and faults of a foreign thread
    /// ([`crate::control::foreign`]); nil: the thread is not foreign.
    pub handler: Cell<ThreadId>,
    /// What a foreign thread has in registers that others lack, while it does not run.
    pub own: OwnRegisters,

    // --- Queues. ---
    /// Links in the ready queue.
    pub ready: Links<TcbRef>,
    /// Links in the partner's send queue.
    pub sending: Links<TcbRef>,
    /// Those who wait to send to this thread.
    pub senders: Ring<Senders>,
    /// Links in a wakeup list.
    pub wake: Links<TcbRef>,
    /// Clock value in µs at which to wake up; 0 = not waiting for any (lazy).
    pub wake_at_us: Cell<u64>,
    /// Number of the wakeup list the thread is linked in.
    pub wake_list: Cell<u32>,
    /// Wakeup belongs to a transfer (transfer timeout).
    pub wake_is_transfer: Cell<bool>,

    // --- Procedure calls ([`crate::lrpc`]). ---
    /// A host's priority while it has a caller's.
    pub own_priority: Cell<u8>,
    /// The lowest priority of a clerk's visitors.
    pub floor: Cell<u8>,
    /// Its end as a clerk has begun: nobody binds to it, or is lent to it, any more.
    pub closing: Cell<bool>,
    /// Where the fast path finds the records of its task's A-stacks (`thread::linkage`); 0: not yet.
    pub linkages: Cell<u64>,
    /// The record through which visits come to this host and return; 0: none ([`crate::lrpc`]).
    pub linkage: Cell<u64>,
    /// The clerk to which the thread, a host, is lent; nil: it is no host.
    pub clerk: Cell<ThreadId>,
    /// Links of the clerk's hosts that no A-stack has.
    pub lent: Links<TcbRef>,
    /// A clerk's hosts that no A-stack has.
    pub hosts: Ring<Lent>,
    /// A clerk's bindings.
    pub served: Ring<Served>,

    // --- Others like it. ---
    /// Links of all threads.
    pub all: Links<TcbRef>,
    /// Links of the threads of one space.
    pub siblings: Links<TcbRef>,
    /// Links of the armed threads of one space.
    pub armed: Links<TcbRef>,

    // --- Scheduling. ---
    /// Thread that may schedule this one.
    pub scheduler: Cell<ThreadId>,
    /// Length of a time slice in µs; `u64::MAX` is infinite.
    pub timeslice_us: Cell<u64>,
    /// What is left of the slice in µs while the thread is not running.
    pub slice_left_us: Cell<u64>,
    /// What is left of the total quantum in µs; `u64::MAX` is infinite.
    pub quantum_left_us: Cell<u64>,
    /// Processor time used, in µs: a charge goes to the thread that it meets running, so
    /// one tick is told from the next, and switches cost nothing.
    pub used_us: Cell<u64>,
    /// Longest delay of a preemption in µs.
    pub max_delay_us: Cell<u64>,
    /// Clock value in µs at which the granted delay ends.
    pub delay_ends_us: Cell<u64>,

    // --- Messages the kernel sends for the thread, transfers, vector state. ---
    /// Tag and words of a page fault, I/O fault or preemption message.
    pub message: [Cell<u64>; 3],
    /// State of the transfer of which this thread is the sender.
    pub transfer: Transfer,
    /// The interrupt lines whose handler the thread is, one bit each.
    pub lines: Cell<u64>,
    /// State of the Unmap the thread is in.
    pub unmap: UnmapPlace,
    /// Its place in a mapping tree.
    pub marker: Marker,
    /// The memory operation the thread was preempted in.
    pub job: Cell<Option<Job>>,
    /// Next page of its UTCB area to look at.
    pub destroy_next: Cell<u64>,
    /// Where the saved vector state lies, in the kernel's map of physical memory.
    pub vector_area: Cell<u64>,
    /// Likewise: the area that holds nothing but the thread's control words.
    pub vector_initial: Cell<u64>,
    /// Which of the two the thread goes on with.
    pub vector_from: Cell<u64>,
    /// What is special about the thread while it runs: [`USES_VECTOR`], [`ARMED`], [`ELSEWHERE`].
    pub special: Cell<u8>,
    /// Kernel IPCs of an armed thread since the kernel has last seen it hand over in user mode.
    pub kernel_ipcs: Cell<u8>,
    /// Whom an armed thread waits for in the kernel ([`rendezvous::ARMED`]); else as if it were ready.
    pub armed_rendezvous: Cell<u64>,
    /// The same for armed threads that use vector registers.
    pub beside_rendezvous: Cell<u64>,
    /// The processor on which its user code runs.
    pub processor: Cell<u8>,
    /// It is no thread: it stands in for one while that runs ([`crate::arch`]).
    pub stands_in: Cell<bool>,
    /// The address of the page fault with which it has entered there.
    pub fault_address: Cell<u64>,
    /// What names it there, if its processor is not the first one ([`crate::elsewhere`]).
    pub visitor: Cell<u64>,
}

/// The thread may use vector registers: it has state of its own in them while it runs.
pub const USES_VECTOR: u8 = 1;

/// What a thread says of vector registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vectors {
    /// It uses none.
    Unused,
    /// It may use them.
    Used,
}

/// The thread may exchange messages with others of its space in user mode ([`crate::local`]).
pub const ARMED: u8 = 2;
/// The thread's user code runs on another processor ([`crate::elsewhere`]).
pub const ELSEWHERE: u8 = 4;

const _: () = assert!(size_of::<Tcb>() <= TCB_SIZE);
const _: () = assert!(offset_of!(Tcb, open_from) == 56, "line 0 is full");
const _: () = assert!(offset_of!(Tcb, utcb_k) == 64);

impl fmt::Debug for TcbRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {}", self.id.get())
    }
}

impl TcbRef {
    /// The thread's space; every thread but the kernel's own has one.
    #[must_use]
    pub fn space(self) -> Option<SpaceRef> {
        self.space.get()
    }

    /// Whether the thread may use vector registers.
    #[must_use]
    pub fn uses_vector(self) -> bool {
        self.special.get() & USES_VECTOR != 0
    }

    /// Whether the thread may exchange messages in user mode.
    #[must_use]
    pub fn is_armed(self) -> bool {
        self.special.get() & ARMED != 0
    }

    /// Whether the thread's user code runs on another processor.
    #[must_use]
    pub fn is_elsewhere(self) -> bool {
        self.special.get() & ELSEWHERE != 0
    }

    /// Whether the thread is on another processor, or waits to go there.
    #[must_use]
    pub fn is_away(self) -> bool {
        rendezvous::is_away(self)
    }

    /// Makes `what` true of the thread, or not.
    pub fn set_special(self, what: u8, is: bool) {
        let others = self.special.get() & !what;
        self.special.set(if is { others | what } else { others });
        self.unusual.set(self.halted.get() || self.is_elsewhere());
        self.transfer.remark(self.special.get());
    }

    /// The thread is to stop when it would be ready.
    pub fn halt(self) {
        self.halted.set(true);
        self.unusual.set(true);
    }

    /// The thread is not to stop any more.
    pub fn unhalt(self) {
        self.halted.set(false);
        self.unusual.set(self.is_elsewhere());
    }

    /// Whether both threads live in the same space.
    #[must_use]
    pub fn same_space(self, other: TcbRef) -> bool {
        self.space.get() == other.space.get()
    }

    /// The thread's name as `viewer` sees it: local id inside one space, else global.
    #[must_use]
    pub fn name_for(self, viewer: TcbRef) -> ThreadId {
        if self.same_space(viewer) && self.utcb.get() != 0 {
            ThreadId::local(self.utcb.get())
        } else {
            self.id.get()
        }
    }

    /// Gives up the map or unmap operation the thread was preempted in.
    pub fn abandon_job(self) {
        match self.job.take() {
            Some(Job::Map(mut job)) => job.abandon(),
            Some(Job::Unmap(mut job)) => job.abandon(),
            None => {}
            other => self.job.set(other),
        }
    }

    /// Whether the thread runs or could run.
    #[inline(always)]
    #[must_use]
    pub fn is_ready(self) -> bool {
        self.rendezvous.get() == rendezvous::busy_word(self.id.get(), rendezvous::Busy::Ready)
    }

    /// Whether the thread is between the phases of its IPC: somebody has completed its
    /// send phase, and its receive phase begins when it runs.
    #[must_use]
    pub fn is_between_phases(self) -> bool {
        self.resume.get() == Resume::Receive
    }

    /// Whether the thread is in an IPC that goes on when it runs: its partner must not have to
    /// wait because it is halted.
    #[must_use]
    pub fn is_in_ipc(self) -> bool {
        self.transfer.part.get().is_some() || self.is_between_phases()
    }
}
