//! Vector and floating-point state belongs to its thread (Liedtke 1993, 5.5.6).

use abi::protocol::exception as reg;
use abi::{Fpage, MapItem, Rights, ThreadId};
use runtime::ipc;

use crate::memory::{PLACE, page, place};
use crate::report::{Outcome, case};
use crate::victim::{LOAD, Registers, Victim, at, registers};
use crate::{check, machine, same};

/// `fxsave64 [rbx]`.
const SAVE: &[u8] = &[0x48, 0x0F, 0xAE, 0x03];
/// `fxrstor64 [rbx]`.
const RESTORE: &[u8] = &[0x48, 0x0F, 0xAE, 0x0B];
/// `xsave64 [rbx]`, `xrstor64 [rbx]`: no emulator's TS bit stops them.
const XSAVE: &[u8] = &[0x48, 0x0F, 0xAE, 0x23];
const XRSTOR: &[u8] = &[0x48, 0x0F, 0xAE, 0x2B];
/// `mov r8, -18; syscall`: ThreadState.
const THREAD_STATE: &[u8] = &[0x49, 0xC7, 0xC0, 0xEE, 0xFF, 0xFF, 0xFF, 0x0F, 0x05];
/// Offset of XSAVE's header, and x87 and SSE in it.
const HEADER: u64 = 512;
const LEGACY: u64 = 3;
/// Offsets in the saved image: x87 control word, MXCSR, first x87 and first vector register.
const FCW: u64 = 0;
const MXCSR: u64 = 24;
const X87: u64 = 32;
const XMM: u64 = 160;
/// Where the image is in the data page.
const IMAGE: u64 = 0x400;

/// Runs the tests.
pub fn run() {
    case("a_new_thread_has_the_initial_vector_state", initial);
    case("vector_state_survives_ipc_and_faults", ipc_and_faults);
    case("vector_state_survives_preemption", preemption);
    case("avx_state_is_kept_apart", avx);
    case("xsave_shows_nobody_elses_registers", shows);
    case("xrstor_changes_nobody_elses_registers", changes);
    case("who_says_it_uses_no_vector_registers_sees_nobody_elses", liar);
}

fn initial() -> Outcome {
    let dirty = Victim::task()?;
    load(&dirty, 0xD1)?;
    let victim = Victim::task()?;
    for offset in (0..512).step_by(8) {
        machine::write(victim.data() + IMAGE + offset, 0);
    }
    victim.exec(SAVE, at(victim.data() + IMAGE, 0))?;
    let word = |offset: u64| machine::read(victim.data() + IMAGE + offset);
    same!("the x87 control word", word(FCW) & 0xFFFF, 0x37F);
    same!("MXCSR", word(MXCSR) & 0xFFFF_FFFF, 0x1F80);
    for offset in (X87..XMM + 256).step_by(8) {
        same!("a word of the new thread's registers", word(offset), 0);
    }
    dirty.delete()?;
    victim.delete()
}

/// Gives `victim` a state made from `seed`.
fn load(victim: &Victim, seed: u64) -> Outcome {
    let image = victim.data() + IMAGE;
    for offset in (0..512).step_by(8) {
        machine::write(image + offset, 0);
    }
    machine::write(image + FCW, 0x37F | (seed & 3) << 10);
    machine::write(image + MXCSR, 0x1F80 | (seed & 3) << 13);
    for index in 0..8 {
        machine::write(image + X87 + index * 16, 0x8000_0000_0000_0000 | seed << 8 | index);
        machine::write(image + X87 + index * 16 + 8, 0x3FFF);
    }
    for index in 0..32 {
        machine::write(image + XMM + index * 8, seed << 32 | index);
    }
    victim.exec(RESTORE, at(image, 0)).map(|_| ())
}

/// The state is still the one made from `seed`.
fn verify(victim: &Victim, seed: u64) -> Outcome {
    victim.exec(SAVE, at(victim.data() + IMAGE, 0))?;
    let word = |offset: u64| machine::read(victim.data() + IMAGE + offset);
    same!("the x87 control word", word(FCW) & 0xFFFF, 0x37F | (seed & 3) << 10);
    same!("MXCSR", word(MXCSR) & 0xFFFF_FFFF, 0x1F80 | (seed & 3) << 13);
    for index in 0..8 {
        same!("an x87 register", word(X87 + index * 16), 0x8000_0000_0000_0000 | seed << 8 | index);
    }
    for index in 0..32 {
        same!("half of a vector register", word(XMM + index * 8), seed << 32 | index);
    }
    Ok(())
}

fn ipc_and_faults() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    load(&one, 0x11)?;
    load(&other, 0x22)?;
    for round in 0..4 {
        one.begin_ipc(ThreadId::NIL, other.id(), 0, [0; 8])?;
        other.ipc(one.id(), ThreadId::NIL, 0, [0; 8])?;
        one.ipc_result()?;
        let item = MapItem::map(Fpage::memory(page(8)?, 12, Rights::R), PLACE + round * 4096);
        place(&one, item, LOAD, PLACE + round * 4096)?;
        verify(&one, 0x11)?;
        verify(&other, 0x22)?;
    }
    one.delete()?;
    other.delete()
}

fn preemption() -> Outcome {
    // 2: movdqa xmm1, xmm0; paddq xmm1, xmm1 (twice xmm0); movq rax, xmm1; cmp rax, rcx; jne +5; inc qword [rbx]; jmp 2b; int3
    let code = [
        0x66, 0x48, 0x0F, 0x6E, 0xC2, 0x66, 0x0F, 0x6F, 0xC8, 0x66, 0x0F, 0xD4, 0xC9, 0x66, 0x48,
        0x0F, 0x7E, 0xC8, 0x48, 0x39, 0xC8, 0x75, 0x05, 0x48, 0xFF, 0x03, 0xEB, 0xE9,
    ];
    let trio = [Victim::task()?, Victim::task()?, Victim::task()?];
    for (seed, victim) in (1u64..).zip(&trio) {
        load(victim, seed)?;
        let mut regs = at(victim.data(), 0);
        (regs[reg::RDX], regs[reg::RCX]) = (seed << 20, seed << 21);
        machine::write(victim.data(), 0);
        victim.begin(&code, regs)?;
    }
    ipc::sleep(150_000);
    for (seed, victim) in (1u64..).zip(&trio) {
        check!(
            machine::read(victim.data()) > 1000,
            "thread {seed} counted to {}",
            machine::read(victim.data())
        );
        same!("the thread's state", crate::world::state(victim.id()), abi::inspect::state::READY);
        victim.abandon()?;
    }
    for (seed, victim) in (1u64..).zip(trio) {
        // XMM0 and XMM1 are the loop's.
        victim.exec(SAVE, at(victim.data() + IMAGE, 0))?;
        let image = victim.data() + IMAGE;
        for index in 4..32 {
            same!(
                "half of a vector register",
                machine::read(image + XMM + index * 8),
                seed << 32 | index
            );
        }
        same!("MXCSR", machine::read(image + MXCSR) & 0xFFFF_FFFF, 0x1F80 | (seed & 3) << 13);
        victim.delete()?;
    }
    Ok(())
}

/// Registers with which XSAVE and XRSTOR take the image of `victim`, x87 and SSE.
fn legacy(victim: &Victim) -> Registers {
    let mut regs = at(victim.data() + IMAGE, 0);
    (regs[reg::RAX], regs[reg::RDX]) = (LEGACY, 0);
    regs
}

/// `victim` finds initial registers by XSAVE.
fn finds_nothing(victim: &Victim) -> Outcome {
    let image = victim.data() + IMAGE;
    for offset in (0..576).step_by(8) {
        machine::write(image + offset, 0);
    }
    victim.exec(XSAVE, legacy(victim))?;
    let word = |offset: u64| machine::read(image + offset);
    same!("the x87 control word", word(FCW) & 0xFFFF, 0x37F);
    same!("MXCSR", word(MXCSR) & 0xFFFF_FFFF, 0x1F80);
    for offset in (X87..XMM + 256).step_by(8) {
        same!("a word of the registers", word(offset), 0);
    }
    Ok(())
}

fn shows() -> Outcome {
    let (owner, other) = (Victim::task()?, Victim::task()?);
    load(&owner, 0xD2)?;
    finds_nothing(&other)?;
    verify(&owner, 0xD2)?;
    finds_nothing(&other)?;
    owner.delete()?;
    other.delete()
}

fn changes() -> Outcome {
    let (owner, other) = (Victim::task()?, Victim::task()?);
    for seed in 0xE1..0xE5 {
        load(&owner, seed)?;
        let image = other.data() + IMAGE;
        for offset in (0..576).step_by(8) {
            machine::write(image + offset, 0);
        }
        machine::write(image + FCW, 0x37F);
        machine::write(image + MXCSR, 0x1F80);
        machine::write(image + HEADER, LEGACY);
        (0..32).for_each(|index| machine::write(image + XMM + index * 8, !seed));
        other.exec(XRSTOR, legacy(&other))?;
        verify(&owner, seed)?;
    }
    owner.delete()?;
    other.delete()
}

fn liar() -> Outcome {
    let (owner, liar) = (Victim::task()?, Victim::task()?);
    let mut regs = at(0, 0);
    (regs[reg::R14], regs[reg::RSI]) = (liar.id().0, abi::syscall::state::NO_VECTOR);
    let seen = liar.exec(THREAD_STATE, regs)?;
    same!("the result of the declaration", seen[reg::RAX], 1);
    for seed in 0xF1..0xF5 {
        load(&owner, seed)?;
        finds_nothing(&liar)?;
        // What it puts there against its word reaches nobody who uses the registers.
        liar.exec(&[0x66, 0x48, 0x0F, 0x6E, 0xC0], at(0, 0))?;
        verify(&owner, seed)?;
    }
    owner.delete()?;
    liar.delete()
}

fn avx() -> Outcome {
    let leaf = machine::cpuid(1, 0);
    if leaf[2] >> 27 & 3 != 3 {
        return Ok(());
    }
    // vmovdqu ymm5, [rbx] / vmovdqu [rbx], ymm5
    let (load, store) = (&[0xC5, 0xFE, 0x6F, 0x2B][..], &[0xC5, 0xFE, 0x7F, 0x2B][..]);
    let trio = [Victim::task()?, Victim::task()?, Victim::task()?];
    for (seed, victim) in (1u64..).zip(&trio[..2]) {
        for index in 0..4 {
            machine::write(victim.data() + index * 8, seed << 40 | index);
        }
        victim.exec(load, at(victim.data(), 0))?;
    }
    for (seed, victim) in [0u64, 1, 2].into_iter().zip([&trio[2], &trio[0], &trio[1]]) {
        victim.exec(store, at(victim.data() + 64, 0))?;
        for index in 0..4 {
            let expected = if seed == 0 { 0 } else { seed << 40 | index };
            same!("a quarter of YMM5", machine::read(victim.data() + 64 + index * 8), expected);
        }
    }
    let _ = registers();
    trio.into_iter().try_for_each(Victim::delete)
}
