//! Puppets: threads that carry out Ipcs as ordered and report everything they see.
//!
//! A puppet's orders and outcomes lie in memory that all spaces of the test share,
//! so orders reach it without any IPC. It is started anew by ExchangeRegisters,
//! whatever it was in, carries out its orders one after the other, and parks.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use abi::syscall::exregs;
use abi::{ThreadId, utcb};
use runtime::syscall::ThreadRegisters;

pub use crate::order::{Order, Outcome, Vector};
use crate::raw::{self, Registers};
use crate::stage::ROOTS;

/// Number of puppets.
pub const PUPPETS: usize = 16;
/// Orders that a puppet can have at a time.
pub const STEPS: usize = 4;
const STACK: usize = 8192;
const LOG: usize = 256;

/// A puppet's shared memory.
#[repr(C)]
struct Slot {
    orders: [Order; STEPS],
    outcomes: [Outcome; STEPS],
    ordered: usize,
    done: usize,
}

struct Shared<T>(UnsafeCell<T>);

// SAFETY: a slot is written by the conductor while its puppet does not run, and by
// its puppet while the conductor waits for all puppets; a stack by its puppet.
unsafe impl<T> Sync for Shared<T> {}

const NO_SLOT: Slot =
    Slot { orders: [Order::NONE; STEPS], outcomes: [Outcome::NONE; STEPS], ordered: 0, done: 0 };
static SLOTS: [Shared<Slot>; PUPPETS] = [const { Shared(UnsafeCell::new(NO_SLOT)) }; PUPPETS];
static STACKS: [Shared<[u64; STACK / 8]>; PUPPETS] =
    [const { Shared(UnsafeCell::new([0; STACK / 8])) }; PUPPETS];
static LOG_WORDS: [AtomicU64; LOG] = [const { AtomicU64::new(0) }; LOG];
static LOG_LEN: AtomicU64 = AtomicU64::new(0);
/// Ipcs after which vector registers were not as they have to be.
static VECTOR_FAULTS: AtomicU64 = AtomicU64::new(0);
/// Ipcs around which they were looked at.
static VECTOR_LOOKS: AtomicU64 = AtomicU64::new(0);
/// MXCSR and x87 control word of a thread that has changed neither.
const INITIAL_CONTROL: [u64; 2] = [0x1F80, 0x37F];

/// A puppet, as the conductor knows it.
#[derive(Clone, Copy)]
pub struct Puppet {
    pub index: usize,
    pub id: ThreadId,
    /// Its UTCB pointer, the local id.
    pub local: ThreadId,
}

impl Puppet {
    /// How `viewer` sees it, given whether both are in one space.
    pub fn name(&self, same_space: bool) -> ThreadId {
        if same_space { self.local } else { self.id }
    }

    /// Gives it orders and starts it. It runs when the conductor settles.
    pub fn start(&self, orders: &[Order]) {
        let slot = SLOTS[self.index].0.get();
        // SAFETY: the puppet does not run while the conductor does (see `Shared`).
        unsafe {
            (&mut (*slot).orders)[..orders.len()].copy_from_slice(orders);
            (*slot).outcomes = [Outcome::NONE; STEPS];
            (*slot).ordered = orders.len();
            (*slot).done = 0;
        }
        self.launch();
    }

    /// One order.
    pub fn order(&self, order: Order) {
        self.start(&[order]);
    }

    /// Ends whatever it does; it parks.
    pub fn stop(&self) {
        self.start(&[]);
    }

    fn launch(&self) {
        let top = STACKS[self.index].0.get() as u64 + STACK as u64 - 64;
        // SAFETY: the top of the stack of a thread that starts anew.
        unsafe { (top as *mut u64).write_volatile(self.index as u64) };
        let control = exregs::HALT_VALID
            | exregs::ABORT_RECEIVE
            | exregs::ABORT_SEND
            | exregs::SP
            | exregs::IP;
        let _ = self.exchange(ThreadRegisters {
            control,
            sp: top,
            ip: raw::start_address(),
            ..Default::default()
        });
    }

    /// ExchangeRegisters on it.
    pub fn exchange(&self, registers: ThreadRegisters) -> (u64, ThreadRegisters) {
        // SAFETY: a puppet borrows nothing; where it runs, it runs the puppet's code.
        unsafe { runtime::syscall::exchange_registers(self.id.0, registers) }
    }

    /// Aborts its IPC, in its sending or receiving phase; returns the old control bits.
    pub fn abort(&self, control: u64) -> u64 {
        self.exchange(ThreadRegisters { control, ..Default::default() }).1.control
    }

    /// Number of orders it has carried out.
    pub fn done(&self) -> usize {
        // SAFETY: see `Shared`; volatile, since the puppet writes it.
        unsafe { (&raw const (*SLOTS[self.index].0.get()).done).read_volatile() }
    }

    /// What came of order `step`.
    pub fn outcome(&self, step: usize) -> Outcome {
        // SAFETY: as in `done`.
        unsafe { (&raw const (*SLOTS[self.index].0.get()).outcomes[step]).read_volatile() }
    }
}

/// A puppet's life. `index` tells which one it is.
pub extern "C" fn run(index: usize) -> ! {
    runtime::utcb::set_exception_handler(ThreadId::NIL);
    let slot = SLOTS[index].0.get();
    // SAFETY: the slot is this puppet's while it runs.
    let (slot, mut step) = unsafe { (&mut *slot, 0) };
    while step < slot.ordered {
        slot.outcomes[step] = carry_out(&slot.orders[step], ROOTS.contains(&index));
        step += 1;
        // SAFETY: a plain store that the conductor reads.
        unsafe { (&raw mut slot.done).write_volatile(step) };
        let at = LOG_LEN.fetch_add(1, SeqCst) as usize;
        LOG_WORDS[at % LOG].store((index as u64) << 8 | step as u64, SeqCst);
    }
    raw::close_acceptor();
    runtime::thread::park()
}

/// Vector registers made of `garbage`, with legal control words.
fn vector_of(garbage: [u64; 3]) -> [u64; 8] {
    let [a, b, c] = garbage;
    let rounding = a & 3;
    let control = INITIAL_CONTROL;
    [a, !a, b, !b, c, !c, control[0] | rounding << 13, control[1] | rounding << 10]
}

/// Compares what vector registers hold with what they may hold: their own, or, if they were
/// declared dead, nothing; nothing in a task that uses none. Never anybody else's.
fn judge_vector(order: &Order, after: &Registers, uses_none: bool) {
    let initial = [0, 0, 0, 0, 0, 0, INITIAL_CONTROL[0], INITIAL_CONTROL[1]];
    let cleared = [0, 0, 0, 0, 0, 0, after.vector[6], after.vector[7]];
    let good = match order.vector {
        Vector::Nothing if !uses_none => return,
        Vector::Nothing => after.seen == initial,
        Vector::Kept => after.seen == after.vector,
        Vector::Dead => after.seen == after.vector || after.seen == cleared,
    };
    VECTOR_LOOKS.fetch_add(1, SeqCst);
    VECTOR_FAULTS.fetch_add(u64::from(!good), SeqCst);
}

/// Whether puppets, which use vector registers, have a fast path: it executes XSAVEOPT.
pub fn have_vector_path() -> bool {
    core::arch::x86_64::__cpuid_count(0xD, 1).eax & 1 != 0
}

/// How often vector registers were looked at, and how often they were wrong.
pub fn vector_faults() -> (u64, u64) {
    (VECTOR_LOOKS.load(SeqCst), VECTOR_FAULTS.load(SeqCst))
}

fn carry_out(order: &Order, uses_none: bool) -> Outcome {
    // SAFETY: the buffers that orders name are test memory, read by nobody meanwhile.
    unsafe {
        (8..64).for_each(|index| raw::set_utcb_word(index as isize, order.mr[index]));
        (0..33).for_each(|index| raw::set_utcb_word(utcb::BR0 - index as isize, order.br[index]));
        raw::set_utcb_word(utcb::XFER_TIMEOUTS, order.xfer_timeouts);
        raw::set_utcb_word(utcb::VIRTUAL_SENDER, order.virtual_sender.0);
        raw::set_utcb_word(utcb::ERROR_CODE, 0);
    }
    let mr = &order.mr;
    let mut registers = Registers {
        rax: mr[1],
        rbx: mr[2],
        rcx: order.garbage[0],
        rdx: order.from.0,
        rsi: order.to.0,
        rdi: runtime::utcb::pointer() | u64::from(order.vector == Vector::Dead),
        rbp: order.garbage[1],
        r8: order.timeouts,
        r9: mr[0],
        r10: mr[3],
        r11: order.garbage[2],
        r12: mr[4],
        r13: mr[5],
        r14: mr[6],
        r15: mr[7],
        flags: order.flags,
        sp: 0,
        link: order.link,
        vector_used: u64::from(order.vector != Vector::Nothing),
        vector: vector_of(order.garbage),
        ..Registers::default()
    };
    let began_us = runtime::clock::now_us();
    // SAFETY: as above.
    unsafe { raw::ipc(&mut registers) };
    judge_vector(order, &registers, uses_none);
    report(&registers, began_us)
}

fn report(after: &Registers, began_us: u64) -> Outcome {
    let mut outcome = Outcome {
        from: ThreadId(after.rsi),
        error: raw::utcb_word(utcb::ERROR_CODE),
        actual_sender: ThreadId(raw::utcb_word(utcb::VIRTUAL_SENDER)),
        rdi: after.rdi,
        sp_change: after.sp,
        flags: after.flags,
        link: after.link,
        before: after.before,
        after: after.after,
        began_us,
        ended_us: runtime::clock::now_us(),
        ..Outcome::NONE
    };
    let first =
        [after.r9, after.rax, after.rbx, after.r10, after.r12, after.r13, after.r14, after.r15];
    outcome.mr[..8].copy_from_slice(&first);
    (8..64).for_each(|index| outcome.mr[index] = raw::utcb_word(index as isize));
    outcome
}

/// Forgets all events.
pub fn clear_log() {
    LOG_LEN.store(0, SeqCst);
}

/// Number of events since `clear_log`.
pub fn log_len() -> usize {
    LOG_LEN.load(SeqCst) as usize
}

/// Event number `at`: the puppet and how many orders it had carried out.
pub fn event(at: usize) -> (usize, usize) {
    let word = LOG_WORDS[at % LOG].load(SeqCst);
    ((word >> 8) as usize, (word & 0xFF) as usize)
}
