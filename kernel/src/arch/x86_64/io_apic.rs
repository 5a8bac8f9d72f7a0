//! The I/O APICs: which input interrupts whom with which vector (82093AA datasheet, 3.2.4).

use core::cell::Cell;

use super::kernel_tables::map_device;
use crate::boot::madt::{Input, IoApic, MAX_IO_APICS};

/// Offsets of the two registers through which the others are reached.
const SELECT: u64 = 0;
const WINDOW: u64 = 0x10;
/// Register: version, and in bits 16 to 23 the number of the last input.
const VERSION: u32 = 1;
/// Register: the low half of input 0's entry; two registers an input.
const ENTRY: u32 = 0x10;
/// Inputs that a version register can claim and the entries' registers reach.
const MOST_INPUTS: u32 = 120;

/// Bits of an entry's low half.
mod entry {
    pub const NMI: u32 = 4 << 8;
    pub const LOW: u32 = 1 << 13;
    pub const LEVEL: u32 = 1 << 15;
    pub const MASKED: u32 = 1 << 16;
}

/// One of them.
struct Chip {
    /// Kernel address of its registers; 0: there is none.
    registers: Cell<u64>,
    first: Cell<u32>,
    count: Cell<u32>,
}

struct Chips([Chip; MAX_IO_APICS]);
// SAFETY: one processor uses them, with interrupts off.
unsafe impl Sync for Chips {}
static CHIPS: Chips = Chips(
    [const { Chip { registers: Cell::new(0), first: Cell::new(0), count: Cell::new(0) } };
        MAX_IO_APICS],
);

/// An input's entry.
#[derive(Clone, Copy)]
pub struct Entry {
    registers: u64,
    low: u32,
    number: u32,
}

impl Entry {
    /// No input.
    pub const NONE: Self = Self { registers: 0, low: 0, number: 0 };

    /// Keeps the input from interrupting.
    #[inline]
    pub fn mask(self) {
        write(self.registers, self.number, self.low | entry::MASKED);
    }

    /// Lets it interrupt.
    #[inline]
    pub fn unmask(self) {
        write(self.registers, self.number, self.low);
    }
}

#[inline]
fn write(registers: u64, register: u32, value: u32) {
    // SAFETY: `registers` is the mapped page of an I/O APIC, which is the kernel's.
    unsafe {
        ((registers + SELECT) as *mut u32).write_volatile(register);
        ((registers + WINDOW) as *mut u32).write_volatile(value);
    }
}

fn read(registers: u64, register: u32) -> u32 {
    // SAFETY: as in `write`; reading these registers has no effect.
    unsafe {
        ((registers + SELECT) as *mut u32).write_volatile(register);
        ((registers + WINDOW) as *const u32).read_volatile()
    }
}

/// Maps the I/O APICs, by tables in what `take` takes, and masks all their inputs.
///
/// # Errors
/// Why they cannot be used.
pub fn init(apics: &[IoApic], take: impl Fn() -> Option<u64>) -> Result<(), &'static str> {
    for ((index, apic), chip) in (1..).zip(apics).zip(&CHIPS.0) {
        let place =
            map_device(index, apic.address, &take).ok_or("there is no memory for their pages")?;
        let count = (read(place, VERSION) >> 16 & 0xFF) + 1;
        if count > MOST_INPUTS {
            return Err("an I/O APIC does not answer");
        }
        for input in 0..count {
            write(place, ENTRY + 2 * input, entry::MASKED);
        }
        chip.registers.set(place);
        chip.first.set(apic.first);
        chip.count.set(count);
    }
    Ok(())
}

/// One past the highest input.
#[must_use]
pub fn end() -> u32 {
    CHIPS.0.iter().map(|chip| chip.first.get() + chip.count.get()).max().unwrap_or(0)
}

/// Leads `input` to the processor `to` with `vector`, masked; `None` if there is no such input.
pub fn lead(input: Input, to: u32, vector: u8) -> Option<Entry> {
    set(input, to, u32::from(vector), entry::MASKED)
}

/// Leads `input` to the processor `to` as a non-maskable interrupt.
pub fn lead_nmi(input: Input, to: u32) {
    let _ = set(input, to, entry::NMI, 0);
}

fn set(input: Input, to: u32, how: u32, mask: u32) -> Option<Entry> {
    let offset = |chip: &Chip| input.number.checked_sub(chip.first.get());
    let has = |chip: &&Chip| offset(chip).is_some_and(|at| at < chip.count.get());
    let chip = CHIPS.0.iter().find(has)?;
    let number = ENTRY + 2 * offset(chip)?;
    let level = if input.signal.is_level { entry::LEVEL } else { 0 };
    let low = if input.signal.is_low { entry::LOW } else { 0 };
    let entry = Entry { registers: chip.registers.get(), low: how | level | low, number };
    write(entry.registers, number, entry.low | mask);
    write(entry.registers, number + 1, to << 24);
    Some(entry)
}
