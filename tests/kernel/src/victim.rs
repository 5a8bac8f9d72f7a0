//! A thread under test whose registers the main thread sets and reads.
//!
//! Between steps it is parked: it executed `int3` and waits for the answer of its
//! exception handler, the main thread. A step answers with a full set of registers
//! and waits for whatever the thread does next. Outside the root space a victim
//! sees this program's code (read, execute) and one block of its own: a page of
//! code to run, two of stack, one of data, at the same addresses as here.

mod memory;

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

use abi::layout::{INITIAL_UTCB_AREA, stub_address};
use abi::protocol::{self, exception as reg};
use abi::syscall::exregs;
use abi::{Fpage, MapItem, Rights, ThreadId, Time, utcb};
use runtime::space::Fault;
use runtime::syscall::ThreadRegisters;
use runtime::{Msg, ipc, layout};

use crate::report::{Outcome, Sentence, because};
pub use crate::words::*;
use crate::{check, machine, same, world};

const BLOCKS: usize = 12;
const BLOCK_PAGES: usize = 4;
/// Offset of `syscall` and what follows it in the code page.
const SYSCALL: u64 = 0xF00;
/// Offset of the code that repairs handler and pager, then parks.
const BACK: u64 = 0xF02;
/// Offset of `call rbp`, then park.
const CALL: u64 = 0xF80;
/// How long an event is waited for, µs.
const PATIENCE_US: u64 = 60_000;

#[repr(C, align(4096))]
struct Blocks([[u8; BLOCK_PAGES * 4096]; BLOCKS]);
static BLOCK_POOL: Blocks = Blocks([[0xCC; BLOCK_PAGES * 4096]; BLOCKS]);
static USED: AtomicU32 = AtomicU32::new(0);

/// Frees the blocks of all victims: their threads are gone.
pub fn reset() {
    USED.store(0, Ordering::Relaxed);
}

/// What a victim did.
#[derive(Debug)]
pub enum Event {
    /// An exception with these registers.
    Exception(Registers),
    /// A page fault outside this program.
    PageFault(Fault),
    /// An I/O fault: the flexpage and the instruction pointer.
    IoFault(Fpage, u64),
    /// It sent a message of its own.
    Message,
    /// Nothing: it waits, runs, is halted or gone.
    Nothing,
}

/// A thread under test.
pub struct Victim {
    id: Cell<ThreadId>,
    /// UTCB pointer.
    pub utcb: u64,
    block: usize,
}

fn take_block() -> Outcome<usize> {
    for block in 0..BLOCKS {
        if USED.fetch_or(1 << block, Ordering::Relaxed) & 1 << block == 0 {
            return Ok(block);
        }
    }
    Err(Sentence::new(format_args!("the test keeps more than {BLOCKS} victims")))
}

impl Victim {
    /// A parked thread in a space of its own.
    pub fn task() -> Outcome<Self> {
        Self::adopt(world::new_task()?, INITIAL_UTCB_AREA + utcb::POINTER_OFFSET)
    }

    /// A parked thread in the root space: a privileged one.
    pub fn privileged() -> Outcome<Self> {
        let id = world::new_local()?;
        let local = runtime::thread::other_id(id).unwrap_or(ThreadId::NIL);
        Self::adopt(id, local.0)
    }

    /// Starts and parks the new thread `id`, whose UTCB pointer is `utcb`.
    pub fn adopt(id: ThreadId, utcb: u64) -> Outcome<Self> {
        let victim = Self { id: Cell::new(id), utcb, block: take_block()? };
        victim.write_code();
        world::start_at(id, victim.code() + BACK, victim.stack_top())?;
        victim.expect_parked()?;
        // Stack and data are there from the beginning: an IPC has no other faults.
        victim.exec(&[0x50, 0x58], registers())?;
        victim.store(victim.data(), 0)?;
        Ok(victim)
    }

    /// (Re)writes the code that the steps rely on.
    pub fn write_code(&self) {
        let mut back = [0u8; 29];
        back[..2].copy_from_slice(&[0x48, 0xB8]);
        back[2..10].copy_from_slice(&self.utcb.to_le_bytes());
        back[10..12].copy_from_slice(&[0x48, 0xB9]);
        back[12..20].copy_from_slice(&ThreadId::ROOT.0.to_le_bytes());
        back[20..28].copy_from_slice(&[0x48, 0x89, 0x48, 0xA8, 0x48, 0x89, 0x48, 0xA0]);
        back[28] = 0xCC;
        machine::write_bytes(self.code() + SYSCALL, &[0x0F, 0x05]);
        machine::write_bytes(self.code() + BACK, &back);
        machine::write_bytes(self.code() + CALL, &[0xFF, 0xD5, 0xCC]);
    }

    /// The thread's id.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.id.get()
    }

    /// Notes that the thread's version was changed.
    pub fn renamed(&self, id: ThreadId) {
        self.id.set(id);
    }

    /// Address of its code page.
    #[must_use]
    pub fn code(&self) -> u64 {
        BLOCK_POOL.0.as_ptr() as u64 + (self.block * BLOCK_PAGES * 4096) as u64
    }

    /// Address of its `syscall` instruction; the code behind it parks.
    #[must_use]
    pub fn syscall_address(&self) -> u64 {
        self.code() + SYSCALL
    }

    /// Address of the code that repairs pager and handler and parks.
    #[must_use]
    pub fn back_address(&self) -> u64 {
        self.code() + BACK
    }

    /// The top of its stack.
    #[must_use]
    pub fn stack_top(&self) -> u64 {
        self.code() + 3 * 4096 - 64
    }

    /// Its data page.
    #[must_use]
    pub fn data(&self) -> u64 {
        self.code() + 3 * 4096
    }

    /// Lets the parked thread go on with `regs`; SP 0 stands for its stack.
    pub fn go(&self, mut regs: Registers) -> Outcome {
        if regs[reg::RSP] == 0 {
            regs[reg::RSP] = self.stack_top();
        }
        self.resume_with(&regs)
    }

    /// Lets the thread go on with exactly `regs`.
    pub fn resume_with(&self, regs: &Registers) -> Outcome {
        because(
            ipc::send_within(self.id(), &Msg::new(0).words(regs), Time::ZERO),
            "answering an exception",
        )
    }

    /// Answers a fault.
    pub fn answer(&self, msg: &Msg) -> Outcome {
        because(ipc::send_within(self.id(), msg, Time::ZERO), "answering a fault")
    }

    /// Answers a fault with one item.
    pub fn give(&self, item: MapItem) -> Outcome {
        self.answer(&Msg::default().map(item))
    }

    /// Waits for what the thread does, at most `timeout`.
    #[must_use]
    pub fn event_within(&self, timeout: Time) -> Event {
        let mut answered = 0;
        loop {
            let Ok(msg) = ipc::receive(self.id(), timeout) else { return Event::Nothing };
            let Some(fault) = Fault::decode(&msg) else { return decode(&msg) };
            // QEMU before 8 lets a far return or IRET at user level fault for ever
            // where SMAP is on: a victim may not go on so.
            answered += 1;
            match self.own_page(&fault) {
                Some(answer) if answered < 64 && self.answer(&answer).is_ok() => {}
                _ => return Event::PageFault(fault),
            }
        }
    }

    /// Waits for what the thread does, as long as is decent.
    #[must_use]
    pub fn event(&self) -> Event {
        self.event_within(Time::micros(PATIENCE_US))
    }

    /// The answer to a fault on this program's code or the victim's block.
    fn own_page(&self, fault: &Fault) -> Option<Msg> {
        let block = self.code()..self.code() + (BLOCK_PAGES * 4096) as u64;
        if block.contains(&fault.address) {
            return world::image_page(fault, Rights::RWX);
        }
        let is_code = fault.access != Rights::W && fault.address < layout::text_end();
        is_code.then(|| world::image_page(fault, Rights::RX)).flatten()
    }

    /// Waits until the thread is parked again.
    pub fn expect_parked(&self) -> Outcome<Registers> {
        match self.event() {
            Event::Exception(regs) => {
                let (vector, error) = (regs[reg::VECTOR], regs[reg::ERROR]);
                let parked = vector == GENERAL_PROTECTION && is_gate_error(error, 3);
                check!(
                    parked,
                    "thread {} did not park but had exception {vector} ({error:#x}) at {:#x}",
                    self.id(),
                    regs[reg::RIP]
                );
                Ok(regs)
            }
            other => Err(Sentence::new(format_args!(
                "thread {} did not park but: {other:x?}",
                self.id()
            ))),
        }
    }

    /// Starts `code` (an `int3` is put behind it) with `regs`.
    pub fn begin(&self, code: &[u8], mut regs: Registers) -> Outcome {
        machine::write_bytes(self.code(), code);
        machine::write_bytes(self.code() + code.len() as u64, &[0xCC]);
        regs[reg::RIP] = self.code();
        self.go(regs)
    }

    /// Runs `code` and returns what came of it.
    pub fn run(&self, code: &[u8], regs: Registers) -> Outcome<Event> {
        self.begin(code, regs)?;
        Ok(self.event())
    }

    /// Runs `code` to its end; returns the registers.
    pub fn exec(&self, code: &[u8], regs: Registers) -> Outcome<Registers> {
        self.begin(code, regs)?;
        let regs = self.expect_parked()?;
        same!("the place where it parked", regs[reg::RIP], self.code() + code.len() as u64);
        Ok(regs)
    }

    /// Lets the thread call system-call stub `stub` with `regs`; returns the registers after.
    pub fn call(&self, stub: u64, regs: Registers) -> Outcome<Registers> {
        self.begin_call(stub, regs)?;
        self.expect_parked()
    }

    /// Starts a call of stub `stub`.
    pub fn begin_call(&self, stub: u64, mut regs: Registers) -> Outcome {
        regs[reg::RIP] = self.code() + CALL;
        regs[reg::RBP] = stub_address(stub);
        self.go(regs)
    }

    /// Starts an IPC of the thread.
    pub fn begin_ipc(&self, to: ThreadId, from: ThreadId, timeouts: u64, mr: [u64; 8]) -> Outcome {
        let mut regs = registers();
        (regs[reg::RSI], regs[reg::RDX], regs[reg::R8], regs[reg::RDI]) =
            (to.0, from.0, timeouts, self.utcb);
        for (index, word) in MRS.into_iter().zip(mr) {
            regs[index] = word;
        }
        self.begin_call(abi::layout::stub::IPC, regs)?;
        // Lets it run until it waits.
        runtime::syscall::thread_switch(self.id().0);
        Ok(())
    }

    /// An IPC of the thread: the sender, MR0..MR7.
    pub fn ipc(
        &self,
        to: ThreadId,
        from: ThreadId,
        timeouts: u64,
        mr: [u64; 8],
    ) -> Outcome<(ThreadId, [u64; 8])> {
        self.begin_ipc(to, from, timeouts, mr)?;
        self.ipc_result()
    }

    /// Waits for the end of an IPC: the sender, MR0..MR7.
    pub fn ipc_result(&self) -> Outcome<(ThreadId, [u64; 8])> {
        let regs = self.expect_parked()?;
        Ok((ThreadId(regs[reg::RSI]), MRS.map(|index| regs[index])))
    }

    /// Whatever it does, makes it park: aborts its IPC, resumes it if halted.
    pub fn abandon(&self) -> Outcome {
        check!(self.recover(), "thread {} could not be brought back", self.id());
        Ok(())
    }

    /// Like [`Self::abandon`]; whether it worked.
    #[must_use]
    pub fn recover(&self) -> bool {
        self.write_code();
        let control = exregs::HALT_VALID
            | exregs::ABORT_SEND
            | exregs::ABORT_RECEIVE
            | exregs::SP
            | exregs::IP;
        let regs = ThreadRegisters {
            control,
            sp: self.stack_top(),
            ip: self.back_address(),
            ..ThreadRegisters::default()
        };
        if machine::exchange(self.id(), regs).0.is_nil() {
            return false;
        }
        let park = self.back_address() + 28;
        for _ in 0..16 {
            match self.event() {
                Event::Exception(regs) if regs[reg::RIP] == park => return true,
                Event::Exception(mut regs) => {
                    (regs[reg::RIP], regs[reg::RSP]) = (self.back_address(), self.stack_top());
                    let _ = self.resume_with(&regs);
                }
                Event::PageFault(_) | Event::IoFault(..) => {
                    let _ = machine::exchange(self.id(), regs);
                }
                Event::Message => {}
                Event::Nothing => return false,
            }
        }
        false
    }

    /// Forgets the victim whose thread is gone.
    pub fn forget(self) {
        USED.fetch_and(!(1 << self.block), Ordering::Relaxed);
    }

    /// Deletes the thread.
    pub fn delete(self) -> Outcome {
        let result = world::delete(self.id());
        self.forget();
        result
    }
}

fn decode(msg: &Msg) -> Event {
    match (msg.tag.protocol_label(), msg.tag.untyped()) {
        (protocol::EXCEPTION, protocol::EXCEPTION_WORDS) => {
            Event::Exception(core::array::from_fn(|index| msg.get(index)))
        }
        (protocol::IO_FAULT, 2) => Event::IoFault(Fpage(msg.mr[0]), msg.mr[1]),
        _ => Event::Message,
    }
}
