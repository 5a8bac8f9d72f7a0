//! Random words in every register of every system call, random UTCBs.
//!
//! The main thread runs below the victim's priority here: a step is over, or the
//! victim waits, as soon as the main thread runs again. A watchdog above both ends
//! endless loops.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA, STUBS, USER_END, stub};
use abi::protocol::exception as reg;
use abi::syscall::exregs;
use abi::{Fpage, Rights, ThreadId, Time};
use runtime::syscall::ThreadRegisters;
use runtime::{ipc, schedule};

use super::canary::Canary;
use crate::report::{Outcome, because, case};
use crate::rng::Rng;
use crate::victim::{Event, Registers, Victim, registers};
use crate::{check, free_pages, machine, world};

/// Calls per test.
const CALLS: u64 = 20_000;

/// Runs the tests.
pub fn run() {
    case("random_calls_of_an_unprivileged_thread", unprivileged);
    case("random_calls_with_random_utcbs", random_utcbs);
    case("random_calls_of_a_privileged_thread", privileged);
    case("random_code", random_code);
}

static STEP: AtomicU64 = AtomicU64::new(0);
static WATCHED: AtomicU64 = AtomicU64::new(0);

/// Halts the watched victim if a step lasts for 20 ms.
extern "C" fn watchdog(_: u64) -> ! {
    let mut last = 0;
    loop {
        ipc::sleep(20_000);
        let step = STEP.load(Ordering::Relaxed);
        if step == last {
            let control = exregs::HALT | exregs::HALT_VALID;
            let regs = ThreadRegisters { control, ..ThreadRegisters::default() };
            let _ = machine::exchange(ThreadId(WATCHED.load(Ordering::Relaxed)), regs);
        }
        last = step;
    }
}

/// One run of random steps.
struct Fuzz {
    rng: Rng,
    victim: Option<Victim>,
    canary: Canary,
    dog: ThreadId,
    /// Interesting words.
    pool: [u64; 28],
    make: fn() -> Outcome<Victim>,
}

impl Fuzz {
    fn begin(seed: u64, make: fn() -> Outcome<Victim>) -> Outcome<Self> {
        let canary = Canary::start()?;
        let dog = world::spawn(watchdog, 0)?;
        because(schedule::set_priority(dog, 255), "setting a priority")?;
        because(schedule::set_priority(ThreadId::ROOT, 150), "setting a priority")?;
        let pool = [
            0,
            1,
            2,
            !0,
            ThreadId::ROOT.0,
            ThreadId::SIGMA0.0,
            ThreadId::ANY_LOCAL.0,
            canary.id().0,
            0,
            ThreadId::irq(8).0,
            ThreadId::irq(0).0,
            ThreadId::global(abi::id::SYSTEM_BASE, 1).0,
            ThreadId::global(abi::id::USER_BASE + 22, 1).0,
            INITIAL_UTCB_AREA,
            INITIAL_UTCB_AREA + 512,
            INITIAL_UTCB_AREA + 1536,
            INITIAL_KIP,
            STUBS,
            USER_END,
            0xFFFF_8000_0000_0000,
            0xFFFF_FFFF_A000_0000,
            1 << 63,
            0x8000_0000_0000,
            Fpage::COMPLETE.with_rights(Rights::RWX).0,
            Fpage::COMPLETE_IO.0,
            Fpage::memory(INITIAL_KIP, 12, Rights::RWX).0,
            0x1C3,
            0x41,
        ];
        let mut fuzz = Self { rng: Rng::new(seed), victim: None, canary, dog, pool, make };
        fuzz.renew()?;
        Ok(fuzz)
    }

    /// Replaces a victim that cannot be brought back, and all it made.
    fn renew(&mut self) -> Outcome {
        if let Some(victim) = self.victim.take() {
            let _ = world::delete(victim.id());
            victim.forget();
        }
        world::sweep(&[self.canary.id(), self.dog]);
        because(schedule::set_priority(ThreadId::ROOT, 255), "setting a priority")?;
        let victim = (self.make)()?;
        because(schedule::set_priority(victim.id(), 200), "setting a priority")?;
        because(schedule::set_priority(ThreadId::ROOT, 150), "setting a priority")?;
        self.pool[8] = victim.id().0;
        WATCHED.store(victim.id().0, Ordering::Relaxed);
        self.victim = Some(victim);
        Ok(())
    }

    fn word(&mut self) -> u64 {
        match self.rng.below(8) {
            0..=3 => self.rng.pick(&self.pool),
            4 => self.rng.below(256),
            5 => self.rng.word() >> self.rng.below(64),
            6 => (self.rng.word() >> self.rng.below(64)) & !0xFFF | self.rng.below(0x400),
            _ => self.rng.word(),
        }
    }

    fn registers(&mut self) -> Registers {
        let mut regs = registers();
        for word in &mut regs {
            *word = self.word();
        }
        regs
    }

    /// One step: `regs` from its RIP on, whatever comes of it.
    fn step(&mut self, regs: &Registers) -> Outcome {
        STEP.fetch_add(1, Ordering::Relaxed);
        let Some(victim) = &self.victim else { return self.renew() };
        if victim.resume_with(regs).is_err() {
            return self.renew();
        }
        // An exception, whatever it was, waits for the next step's registers.
        let parked = matches!(victim.event_within(Time::ZERO), Event::Exception(_));
        if !parked && !victim.recover() {
            return self.renew();
        }
        if !parked {
            let _ = schedule::set_priority(victim.id(), 200);
        }
        Ok(())
    }

    fn end(mut self) -> Outcome {
        because(schedule::set_priority(ThreadId::ROOT, 255), "setting a priority")?;
        self.canary.well()?;
        if let Some(victim) = self.victim.take() {
            victim.delete()?;
        }
        world::delete(self.dog)?;
        self.canary.end()
    }
}

/// A random call: by a stub or by `syscall` itself.
fn random_call(fuzz: &mut Fuzz) -> Registers {
    let mut regs = fuzz.registers();
    let Some(victim) = &fuzz.victim else { return regs };
    let (trap, call, top, utcb) =
        (victim.syscall_address(), victim.back_address() + 0x7E, victim.stack_top(), victim.utcb);
    if fuzz.rng.one_in(2) {
        regs[reg::RIP] = trap;
        let numbers =
            [fuzz.rng.below(20).wrapping_neg(), 0, 0x41 << 16 | 0x41, 1 << 32, regs[reg::R8]];
        regs[reg::R8] = fuzz.rng.pick(&numbers);
    } else {
        regs[reg::RIP] = call;
        regs[reg::RSP] = top;
        regs[reg::RBP] = abi::layout::stub_address(fuzz.rng.below(stub::COUNT));
    }
    if fuzz.rng.one_in(2) {
        regs[reg::RDI] = utcb;
    }
    regs
}

fn unprivileged() -> Outcome {
    let mut fuzz = Fuzz::begin(0xBA70_0001, Victim::task)?;
    for count in 0..CALLS {
        let regs = random_call(&mut fuzz);
        fuzz.step(&regs)?;
        if count % 2_000 == 1_999 {
            fuzz.canary.well()?;
        }
    }
    fuzz.end()
}

/// The same with all of the UTCB random: `rep movsq` from the data page, then the call.
fn random_utcbs() -> Outcome {
    let mut fuzz = Fuzz::begin(0xBA70_0002, Victim::task)?;
    for count in 0..CALLS / 2 {
        let words: [u64; 128] = core::array::from_fn(|_| fuzz.word());
        let regs = random_call(&mut fuzz);
        let Some(victim) = &fuzz.victim else { continue };
        for (index, word) in (0..).zip(words) {
            machine::write(victim.data() + index * 8, word);
        }
        // push of the registers that the copy needs; then on to RIP.
        let mut code = [0u8; 32];
        code[..9].copy_from_slice(&[0x56, 0x57, 0x51, 0xFC, 0x48, 0x89, 0xDE, 0x48, 0x89]);
        code[9..18].copy_from_slice(&[0xC7, 0xB9, 0x80, 0, 0, 0, 0xF3, 0x48, 0xA5]);
        code[18..21].copy_from_slice(&[0x59, 0x5F, 0x5E]);
        code[21..24].copy_from_slice(&[0x41, 0xFF, 0xE3]);
        machine::write_bytes(victim.code(), &code);
        let mut first = regs;
        (first[reg::RBX], first[reg::RAX]) = (victim.data(), victim.utcb - 512);
        (first[reg::R11], first[reg::RIP], first[reg::RSP]) =
            (regs[reg::RIP], victim.code(), victim.stack_top());
        fuzz.step(&first)?;
        if count % 2_000 == 1_999 {
            fuzz.canary.well()?;
        }
    }
    fuzz.end()
}

/// A privileged thread, with targets that may come to harm: `dummies` and nobody.
fn privileged() -> Outcome {
    let before = free_pages();
    let mut fuzz = Fuzz::begin(0xBA70_0003, Victim::privileged)?;
    let spare = runtime::sigma0::memory(None, 16).map_or(0, |window| window.base());
    for count in 0..CALLS {
        if count % 1_000 == 0 {
            fuzz.renew()?;
        }
        let dummy = world::fresh();
        let _ = machine::thread_control(dummy, dummy, ThreadId::ROOT, ThreadId::NIL, !0);
        let targets = [
            dummy.0,
            dummy.0,
            0,
            !0,
            ThreadId::global(abi::id::SYSTEM_BASE, 1).0,
            ThreadId::global(abi::id::SYSTEM_BASE + 24, 1).0,
            0x1234_0000_0040,
            dummy.0 + 1,
        ];
        let target = fuzz.rng.pick(&targets);
        let mut regs = fuzz.registers();
        let Some(victim) = &fuzz.victim else { continue };
        (regs[reg::RIP], regs[reg::RSP]) = (victim.back_address() + 0x7E, victim.stack_top());
        let calls = [
            stub::EXCHANGE_REGISTERS,
            stub::THREAD_CONTROL,
            stub::SCHEDULE,
            stub::SPACE_CONTROL,
            stub::PROCESSOR_CONTROL,
            stub::QUOTA_CONTROL,
            stub::INSPECT,
            stub::UNMAP,
            stub::THREAD_SWITCH,
        ];
        let call = fuzz.rng.pick(&calls);
        regs[reg::RBP] = abi::layout::stub_address(call);
        match call {
            stub::EXCHANGE_REGISTERS => regs[reg::RAX] = target,
            stub::THREAD_CONTROL if fuzz.rng.one_in(2) => {
                (regs[reg::RDI], regs[reg::R8]) = (target, target)
            }
            stub::UNMAP => {
                let bits = 12 + fuzz.rng.below(4) as u32;
                let fpage = Fpage::memory(spare + fuzz.rng.below(16) * 4096, bits, Rights::RWX);
                (regs[reg::RDX], regs[reg::R9]) = (fuzz.rng.below(2) << 6, fpage.0);
            }
            stub::INSPECT => regs[reg::RDI] = fuzz.rng.below(4),
            stub::PROCESSOR_CONTROL => {}
            _ => regs[reg::RDI] = target,
        }
        fuzz.step(&regs)?;
        let _ = machine::thread_control(dummy, ThreadId::NIL, ThreadId::NIL, ThreadId::NIL, !0);
    }
    fuzz.end()?;
    world::reset();
    let after = free_pages();
    check!(
        before - after.min(before) <= 24,
        "{before} pages of kernel memory were free, now {after}"
    );
    Ok(())
}

/// Eight bytes of code, but for what QEMU 7.2 does not do as a processor would: a 256-bit form
/// of VPINSR ends it with a failed assertion (`gen_pinsr`), so no VEX prefix; IRETD to flags
/// with VM set enters virtual-8086 mode, which 64-bit mode does not have, so no IRET.
fn random_bytes(rng: &mut Rng) -> u64 {
    let harmless = |byte| if matches!(byte, 0xC4 | 0xC5 | 0xCF) { 0x90 } else { byte };
    u64::from_le_bytes(rng.word().to_le_bytes().map(harmless))
}

/// Random bytes as instructions.
fn random_code() -> Outcome {
    let mut fuzz = Fuzz::begin(0xBA70_0004, Victim::task)?;
    for count in 0..CALLS / 2 {
        let mut regs = fuzz.registers();
        let Some(victim) = &fuzz.victim else { continue };
        let (code, top) = (victim.code(), victim.stack_top());
        for offset in (0..64).step_by(8) {
            machine::write(code + offset, random_bytes(&mut fuzz.rng));
        }
        (regs[reg::RIP], regs[reg::RSP]) = (code, top);
        fuzz.step(&regs)?;
        if count % 2_000 == 1_999 {
            fuzz.canary.well()?;
        }
    }
    fuzz.end()
}
