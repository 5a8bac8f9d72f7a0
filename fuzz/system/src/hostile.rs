//! A hostile task: its main thread is the keeper, which takes den and playground from the
//! judge, makes the hostile threads, and starts them again whatever they have broken, as
//! their pager and exception handler. What the hostile break of the keeper itself, the judge
//! notices: it ends the task.

use core::sync::atomic::Ordering;

use abi::syscall::exregs as bit;
use abi::{ThreadId, Time, Timeouts};
use fuzzing::den::Den;
use fuzzing::hostile::{PLAYGROUND, PLAYGROUND_BYTES};
use fuzzing::machine;
use runtime::space::Fault;
use runtime::syscall::ThreadRegisters;
use runtime::window::Window;
use runtime::{Msg, accept, clock, ipc, kernel, layout, root, thread};

use crate::order::{LOST, ORDER};

/// Where the den is, behind the playground.
pub const DEN: u64 = PLAYGROUND + 0x80_0000;
/// Log2 size of what the judge's map items fill.
pub const ROOM_BITS: u32 = 24;
const _: () = assert!(PLAYGROUND >= layout::HEAPS_END, "heaps are at random places");
const _: () = assert!(PLAYGROUND + (1 << ROOM_BITS) <= layout::STACKS, "stacks, too");
/// Hostile threads, beside those that they make themselves.
pub const THREADS: usize = 3;
/// First index of threads that the hostile make themselves, and how many.
pub const CHILDREN: u32 = 4;
const MOST_CHILDREN: u32 = 12;
/// How often the keeper looks around, µs, and looks without a call before it helps.
const LOOK_US: u64 = 1_000;
const PATIENCE: u32 = 5;
/// Looks between two ends of children.
const SWEEP_LOOKS: u64 = 6;
/// How often a thread may ask for the same page before it is started again.
const SAME_FAULTS: u32 = 3;
/// How long the judge may take for a page, µs.
const PAGE_US: u64 = 10_000;

struct Keeper {
    judge: ThreadId,
    room: Window,
    threads: [ThreadId; THREADS],
    seen: [u64; THREADS],
    idle: [u32; THREADS],
    faults: [(u64, u32); THREADS],
    looks: u64,
}

/// Begins.
pub fn run() -> ! {
    let Some(mut room) = Window::claim(PLAYGROUND, 1 << ROOM_BITS) else {
        panic!("there is no room for a den");
    };
    let judge = loop {
        let Some((from, msg)) = accept::window(&mut room, ipc::request) else {
            panic!("the room is no flexpage")
        };
        if msg.label() == ORDER && msg.tag.typed() == 4 {
            break from;
        }
    };
    let mut keeper = Keeper {
        judge,
        room,
        threads: [ThreadId::NIL; THREADS],
        seen: [0; THREADS],
        idle: [0; THREADS],
        faults: [(0, 0); THREADS],
        looks: 0,
    };
    for index in 0..THREADS {
        if let Ok((thread, _)) = root::create_thread() {
            keeper.threads[index] = thread;
            keeper.repair(index);
        }
    }
    keeper.keep()
}

impl Keeper {
    fn keep(&mut self) -> ! {
        let mut next_us = 0;
        loop {
            if let Ok((from, msg)) = ipc::wait(Time::micros(LOOK_US)) {
                self.answer(from, &msg);
            }
            if clock::now_us() >= next_us {
                self.look();
                next_us = clock::now_us() + LOOK_US;
            }
        }
    }

    /// Answers a fault or an exception of one of the threads, or ends a child.
    fn answer(&mut self, from: ThreadId, msg: &Msg) {
        // Threads of this space are told by their local ids.
        let from = if from.is_local() { thread::other_id(from).unwrap_or(from) } else { from };
        let first = thread::me().number();
        let Some(index) = self.threads.iter().position(|thread| *thread == from) else {
            if (first + CHILDREN..first + CHILDREN + MOST_CHILDREN).contains(&from.number()) {
                let _ = kernel::delete(from);
            }
            return;
        };
        let Some(fault) = Fault::decode(msg) else { return self.repair(index) };
        let (address, times) = self.faults[index];
        self.faults[index] = (fault.address, if address == fault.address { times + 1 } else { 0 });
        if self.faults[index].1 > SAME_FAULTS || !self.page(fault.address) {
            return self.repair(index);
        }
        let _ = ipc::reply(from, &Msg::default());
    }

    /// Sees to it that the page at `address` is there, if it is the task's.
    fn page(&mut self, address: u64) -> bool {
        let (low, high) = layout::image();
        if (low..high).contains(&address) {
            // All threads are in one space: the pager gives it to all.
            let _ = machine::read(address & !7);
            return true;
        }
        let playground = (PLAYGROUND..PLAYGROUND + PLAYGROUND_BYTES).contains(&address);
        let den = (DEN..DEN + size_of::<Den>() as u64).contains(&address);
        if !playground && !den {
            return false;
        }
        let patience = Timeouts::new(Time::micros(PAGE_US), Time::micros(PAGE_US));
        let (judge, lost) = (self.judge, Msg::new(LOST).word(address));
        let answer = accept::window(&mut self.room, || ipc::call_within(judge, &lost, patience));
        answer.is_some_and(|answer| answer.is_ok_and(|answer| answer.tag.typed() == 2))
    }

    /// Lets thread `index` begin again, whatever it is doing.
    fn repair(&mut self, index: usize) {
        (self.idle[index], self.faults[index].1) = (0, 0);
        let den = Den::at(DEN);
        if !self.page_of_den() {
            return;
        }
        den.keeper.store(thread::me().0, Ordering::Relaxed);
        den.first_utcb.store(1, Ordering::Relaxed);
        let control =
            bit::HALT_VALID | bit::ABORT_RECEIVE | bit::ABORT_SEND | bit::SP | bit::IP | bit::PAGER;
        let (sp, ip) = (den.start_of(index), machine::hostile_start());
        let pager = thread::me().0;
        let regs = ThreadRegisters { control, sp, ip, pager, ..ThreadRegisters::default() };
        let (found, _) = machine::exchange(self.threads[index], regs);
        if !found && let Ok((thread, _)) = root::create_thread() {
            self.threads[index] = thread;
            let _ = machine::exchange(thread, regs);
        }
    }

    /// The den may have been unmapped: all of its pages are asked for again.
    fn page_of_den(&mut self) -> bool {
        self.page(DEN)
    }

    /// Looks whether the threads get on; ends children.
    fn look(&mut self) {
        self.looks += 1;
        if !self.page_of_den() {
            return;
        }
        let den = Den::at(DEN);
        for index in 0..THREADS {
            let calls = den.threads[index].calls.load(Ordering::Relaxed);
            self.idle[index] = if calls == self.seen[index] { self.idle[index] + 1 } else { 0 };
            self.seen[index] = calls;
            if self.idle[index] > PATIENCE {
                self.repair(index);
            }
        }
        if self.looks.is_multiple_of(SWEEP_LOOKS) {
            let first = thread::me().number() + CHILDREN;
            for number in first..first + MOST_CHILDREN {
                let _ = kernel::delete(ThreadId::global(number, 1));
            }
        }
    }
}
