//! This processor's local APIC (Intel SDM 3A, 11): end of interrupt, messages to other processors, non-maskable
//! interrupts from its pins.
//!
//! Its registers are a page, at the same address on every processor, which sees its own APIC there; or, once a
//! processor has been switched to that, model-specific registers (x2APIC, 11.12). All processors are of one kind
//! ([`Kind`]).

use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

use super::apic_kind::{BASE_X2, HIGHEST_NARROW, Kind, has_x2};
use super::cpu::{cpuid, read_msr, write_msr};
use super::kernel_tables::{DEVICES, map_device};
use super::{patch, vectors};
use crate::boot::madt::{LocalNmi, Signal};

/// IA32_APIC_BASE: where the page is, and switches.
const BASE: u32 = 0x1B;
const BASE_ENABLED: u64 = 1 << 11;
const BASE_ADDRESS: u64 = 0x000F_FFFF_FFFF_F000;

/// Model-specific registers in place of the page: the first one; each stands for 16 bytes.
const X2_REGISTERS: u32 = 0x800;

/// The registers that the kernel uses, by their offsets.
mod register {
    pub const ID: u64 = 0x20;
    pub const TASK_PRIORITY: u64 = 0x80;
    pub const END: u64 = 0xB0;
    pub const LOGICAL: u64 = 0xD0;
    pub const FORMAT: u64 = 0xE0;
    pub const SPURIOUS: u64 = 0xF0;
    pub const COMMAND_LOW: u64 = 0x300;
    pub const COMMAND_HIGH: u64 = 0x310;
    pub const TIMER: u64 = 0x320;
    pub const PINS: [u64; 2] = [0x350, 0x360];
    pub const ERROR: u64 = 0x370;
    pub const INITIAL_COUNT: u64 = 0x380;
    pub const CURRENT_COUNT: u64 = 0x390;
    pub const DIVIDE: u64 = 0x3E0;
}

/// The spurious-interrupt register's switch.
const ENABLED: u32 = 1 << 8;
/// Local vector table: not let through; NMI; low voltage; level; periodic.
const MASKED: u32 = 1 << 16;
const NMI: u32 = 4 << 8;
const LOW: u32 = 1 << 13;
const LEVEL: u32 = 1 << 15;
const PERIODIC: u32 = 1 << 17;
/// Divide configuration: by 1, which everybody implements alike.
const DIVIDE_BY_1: u32 = 0b1011;
const INIT: u32 = 5 << 8;
const START: u32 = 6 << 8;
/// Command register: not the end of a level; to oneself; the last one is still on its way.
const ASSERT: u32 = 1 << 14;
const TO_SELF: u32 = 1 << 18;
const PENDING: u32 = 1 << 12;
/// Polls after which a command that does not leave is given up.
const PATIENCE: u32 = 1_000_000;

/// Whether it is [`Kind::X2`].
static IS_X2: AtomicBool = AtomicBool::new(false);

/// How they are reached here.
#[inline(always)]
#[must_use]
pub fn kind() -> Kind {
    if IS_X2.load(Ordering::Relaxed) { Kind::X2 } else { Kind::Page }
}

/// The model-specific register in place of `register`.
const fn x2(register: u64) -> u32 {
    X2_REGISTERS + (register >> 4) as u32
}

#[inline(always)]
fn read(register: u64) -> u32 {
    match kind() {
        // SAFETY: the page is mapped since `init`; reading these registers has no effect.
        Kind::Page => unsafe { ((DEVICES + register) as *const u32).read_volatile() },
        // SAFETY: this processor has been switched to them by `enable`, and has those that are read.
        Kind::X2 => unsafe { read_msr(x2(register)) as u32 },
    }
}

#[inline(always)]
fn write(register: u64, value: u32) {
    match kind() {
        // SAFETY: the page is mapped since `init`, and the APIC is the kernel's.
        Kind::Page => unsafe { ((DEVICES + register) as *mut u32).write_volatile(value) },
        // SAFETY: this processor has been switched to them by `enable`, and has those that are written.
        Kind::X2 => unsafe { write_msr(x2(register), value.into()) },
    }
}

/// Decides of which kind all processors' are: those that `all` numbers belong to; `wish` may be that x2APIC
/// is used if it is there. Before text is patched ([`end`]).
pub fn settle(all: impl Iterator<Item = u32>, wish: Option<Kind>) {
    if exists() {
        // SAFETY: the register exists where there is a local APIC.
        let base = unsafe { read_msr(BASE) };
        let kind = Kind::choose(base, cpuid(1, 0).ecx, wish, all);
        IS_X2.store(kind == Kind::X2, Ordering::Relaxed);
    }
}

/// Switches the APIC on with everything masked. A page, which the firmware's table says is at `address`,
/// is mapped; its table is in what `take` takes.
///
/// # Errors
/// Why it cannot be used.
pub fn init(address: u64, take: impl FnOnce() -> Option<u64>) -> Result<(), &'static str> {
    if !exists() {
        return Err("the processor has no local APIC");
    }
    if kind() == Kind::Page {
        // SAFETY: the register exists where there is a local APIC.
        if unsafe { read_msr(BASE) } & BASE_ADDRESS != address {
            return Err("the local APIC is not where the firmware's table says");
        }
        map_device(0, address, take).ok_or("there is no memory for its page table")?;
    }
    // Before anything is masked: the 8259s signal by a pin of this APIC.
    if kind() == Kind::X2 && x2_number() > HIGHEST_NARROW {
        return Err("I/O APICs cannot name the first processor, whose number is too high");
    }
    if enable() {
        Ok(())
    } else {
        Err("the processor has no local APIC of the kind that is wanted")
    }
}

/// This processor's number as x2APIC will have it, whether that is on or not (Intel SDM 2A, CPUID leaf 0BH).
fn x2_number() -> u32 {
    cpuid(0xB, 0).edx
}

fn exists() -> bool {
    cpuid(1, 0).edx >> 9 & 1 != 0
}

/// Switches this processor's APIC on with everything masked; the page is mapped, if it is one.
/// False if this processor's is not of the kind of all.
#[must_use]
pub fn enable() -> bool {
    if kind() == Kind::X2 && !has_x2(cpuid(1, 0).ecx) {
        return false;
    }
    // SAFETY: the register exists where there is a local APIC; its address stays.
    unsafe { write_msr(BASE, read_msr(BASE) | BASE_ENABLED) };
    match kind() {
        Kind::Page => {
            write(register::FORMAT, !0);
            write(register::LOGICAL, 0);
        }
        // SAFETY: it is switched on, and can be switched further. Format and logical number do not exist
        // there, or cannot be written.
        Kind::X2 => unsafe { write_msr(BASE, read_msr(BASE) | BASE_X2) },
    }
    write(register::TASK_PRIORITY, 0);
    for pin in register::PINS {
        write(pin, MASKED);
    }
    write(register::TIMER, MASKED | u32::from(vectors::TIMER));
    write(register::ERROR, MASKED);
    write(register::SPURIOUS, ENABLED | u32::from(vectors::SPURIOUS));
    end();
    true
}

/// Lets the NMIs of this processor, which the table calls `uid`, through.
pub fn open_nmis(nmis: &[LocalNmi], uid: u32) {
    for nmi in nmis.iter().filter(|nmi| nmi.uid.is_none_or(|theirs| theirs == uid)) {
        let Signal { is_level, is_low } = nmi.signal;
        let level = if is_level && nmi.pin == 0 { LEVEL } else { 0 };
        let low = if is_low { LOW } else { 0 };
        write(register::PINS[usize::from(nmi.pin & 1)], NMI | level | low);
    }
}

/// This processor's number among the APICs.
#[must_use]
pub fn id() -> u32 {
    let id = read(register::ID);
    match kind() {
        Kind::Page => id >> 24,
        Kind::X2 => id,
    }
}

/// The interrupt has been taken; the next may come. One instruction: with x2APIC it is diverted (`patch.rs`).
#[inline(always)]
pub fn end() {
    // SAFETY: the page is mapped since `init`, and the APIC is the kernel's; or this processor has been switched to
    // registers without one, and the jump that is written here leads to the write of that.
    unsafe {
        asm!(
            "663:",
            "mov dword ptr [{page}], 0",
            "664:",
            ".pushsection .text.x2apic, \"ax\"",
            "665:",
            "mov ecx, {register}",
            "xor eax, eax",
            "xor edx, edx",
            "wrmsr",
            "jmp 664b",
            ".popsection",
            ".pushsection .diverts, \"a\"",
            ".quad 663b, 665b, {condition}",
            ".popsection",
            page = const DEVICES + register::END,
            register = const x2(register::END),
            condition = const patch::X2APIC,
            out("eax") _, out("ecx") _, out("edx") _,
            options(nostack),
        );
    }
}

/// Interrupts this processor with `vector`, as if it had come from outside.
pub fn interrupt_self(vector: u8) {
    let _ = command(0, TO_SELF | ASSERT | u32::from(vector));
}

/// A message to another processor.
#[derive(Clone, Copy)]
pub enum Message {
    /// An interrupt with this vector.
    Interrupt(u8),
    /// A non-maskable interrupt.
    Nmi,
    /// Reset; it waits for [`Message::Start`].
    Init,
    /// It begins at this page, below 1 MiB.
    Start(u8),
}

/// Sends `message` to the processor with APIC `to`, up to [`HIGHEST_NARROW`] with a page; false if it does not leave.
#[must_use]
pub fn send(to: u32, message: Message) -> bool {
    let low = match message {
        Message::Interrupt(vector) => u32::from(vector),
        Message::Nmi => NMI,
        Message::Init => INIT,
        Message::Start(page) => START | u32::from(page),
    };
    command(to, ASSERT | low)
}

/// Sends the command `low` to the processor `to`; false if it does not leave.
fn command(to: u32, low: u32) -> bool {
    if kind() == Kind::X2 {
        return command_x2(to, low);
    }
    write(register::COMMAND_HIGH, to << 24);
    write(register::COMMAND_LOW, low);
    has_left() || leaves_late()
}

/// The same by one register, whose command always leaves. What was written to memory before is seen by whoever gets
/// it: the write itself waits for nothing (11.12.3).
#[inline(never)]
fn command_x2(to: u32, low: u32) -> bool {
    let command = u64::from(to) << 32 | u64::from(low);
    // SAFETY: fences; and the register is there, since this processor has been switched to it.
    unsafe {
        asm!("mfence", "lfence", options(nostack, preserves_flags));
        write_msr(x2(register::COMMAND_LOW), command);
    }
    true
}

/// Whether the last command has left.
#[inline(always)]
fn has_left() -> bool {
    read(register::COMMAND_LOW) & PENDING == 0
}

#[cold]
#[inline(never)]
fn leaves_late() -> bool {
    (0..PATIENCE).any(|_| has_left())
}

/// What has been written to devices' registers is there before what comes next: the end of an interrupt by a model-specific
/// register overtakes stores (11.12.3).
#[inline(always)]
pub fn order() {
    if kind() == Kind::X2 {
        // SAFETY: a fence.
        unsafe { asm!("mfence", options(nostack, preserves_flags)) };
    }
}

/// Lets the timer count down from `count` for once, without an interrupt.
pub fn start_counting(count: u32) {
    write(register::TIMER, MASKED | u32::from(vectors::TIMER));
    write(register::DIVIDE, DIVIDE_BY_1);
    write(register::INITIAL_COUNT, count);
}

/// What is left of that.
#[must_use]
pub fn counting() -> u32 {
    read(register::CURRENT_COUNT)
}

/// Lets the timer, which ticks, interrupt once instead, when it has counted `count`.
pub fn interrupt_once(count: u32) {
    write(register::TIMER, u32::from(vectors::TIMER));
    write(register::INITIAL_COUNT, count);
}

/// Lets the timer interrupt each time that it has counted `count`.
pub fn start_ticking(count: u32) {
    write(register::TIMER, PERIODIC | u32::from(vectors::TIMER));
    write(register::DIVIDE, DIVIDE_BY_1);
    write(register::INITIAL_COUNT, count);
}
