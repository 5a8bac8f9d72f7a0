//! The leaf tables of the tcb array, made as blocks are first used.
//!
//! Boot maps one shared leaf table under the whole array: the null page in the upper page
//! of each block, nothing in the lower one.
//! The first block of a 2 MiB stretch gets a leaf table of its own; all spaces see
//! it, since they share the directories above. At most 512 such tables exist; the
//! kernel sets frames aside for them at boot, and they stay. Whoever asks for one says where its
//! frame comes from.
//!
//! The map of physical memory shows the tables that boot made read-only; [`unprotected`] is
//! the way to write to them.

use core::sync::atomic::{AtomicU64, Ordering};

use super::asm::copy_bytes;
use super::cpu::{read_cr0, read_cr3, write_cr0};
use super::percpu::interrupt_pending;
use super::tables::{IMAGE_END, KernelTables};
use crate::arch::phys_to_virt;
use crate::boot::madt::MAX_IO_APICS;

const ADDRESS: u64 = 0x000F_FFFF_FFFF_F000;
const PRESENT_WRITE: u64 = 3;
/// CR0: read-only pages are so for the kernel, too.
const WRITE_PROTECT: u64 = 1 << 16;

static NULL_ENTRY: AtomicU64 = AtomicU64::new(0);
static NULL_TABLE: AtomicU64 = AtomicU64::new(0);

/// Leaf tables that the array can need.
pub const RESERVED_FRAMES: u64 = 512;

/// Where the pages of devices that the kernel drives are: the last 2 MiB below the tcb array.
pub const DEVICES: u64 = IMAGE_END;
/// The pages that there can be.
pub const DEVICE_PAGES: u64 = 1 + MAX_IO_APICS as u64;
/// Present, writable, not cached, accessed, dirty, global, not executable.
const DEVICE: u64 = 1 << 63 | 1 << 8 | 1 << 6 | 1 << 5 | 1 << 4 | 1 << 3 | 3;

/// Learns what boot mapped.
pub fn init(tables: &KernelTables) {
    NULL_ENTRY.store(read(tables.null_table, 1), Ordering::Relaxed);
    NULL_TABLE.store(tables.null_table, Ordering::Relaxed);
}

/// The entry that maps the null page.
#[must_use]
pub fn null_entry() -> u64 {
    NULL_ENTRY.load(Ordering::Relaxed)
}

/// The table that shows the null page in each block.
#[must_use]
pub fn null_table() -> u64 {
    NULL_TABLE.load(Ordering::Relaxed)
}

/// The leaf entry for `address`, which lies in the tcb array, in a table of its
/// stretch's own, which is made in the frame that `take` takes for good; `None` if it has none.
#[must_use]
pub fn leaf_entry(address: u64, take: impl FnOnce() -> Option<u64>) -> Option<*mut u64> {
    let table = directory(address);
    let slot = index(address, 21);
    let mut leaf = read(table, slot) & ADDRESS;
    if leaf == null_table() {
        leaf = new_leaf(table, slot, take)?;
    }
    // SAFETY: the pointer stays inside the table's frame.
    Some(unsafe { phys_to_virt(leaf).cast::<u64>().add(index(address, 12)) })
}

/// Gives a stretch of the tcb array a leaf table of its own, in `slot` of `table`.
#[cold]
fn new_leaf(table: u64, slot: usize, take: impl FnOnce() -> Option<u64>) -> Option<u64> {
    let leaf = take()?;
    // SAFETY: the frame was just taken, and the shared table is a page.
    unsafe { copy_bytes(phys_to_virt(leaf), phys_to_virt(null_table()), 4096) };
    // Whoever makes a thread may have filled and copied tables for it already.
    let _ = interrupt_pending();
    unprotected(|| write(table, slot, leaf | PRESENT_WRITE));
    super::asm::flush_all();
    Some(leaf)
}

/// Shows the device with its registers at physical address `phys` in page `index` of
/// [`DEVICES`]; where its registers are. Their table is made in the frame of zeros that `take` takes
/// for good; `None` if it has none.
#[must_use]
pub fn map_device(index: u64, phys: u64, take: impl FnOnce() -> Option<u64>) -> Option<u64> {
    let address = DEVICES + (index % DEVICE_PAGES) * 4096;
    let (directory, slot) = (directory(address), self::index(address, 21));
    let mut leaf = read(directory, slot) & ADDRESS;
    if leaf == 0 {
        leaf = take()?;
        unprotected(|| write(directory, slot, leaf | PRESENT_WRITE));
    }
    write(leaf, self::index(address, 12), phys & ADDRESS | DEVICE);
    super::asm::invlpg(address);
    Some(address + phys % 4096)
}

/// Whether the stretch of the tcb array around `address` has a leaf table of its own.
#[must_use]
pub fn has_leaf(address: u64) -> bool {
    read(directory(address), index(address, 21)) & ADDRESS != null_table()
}

/// What the leaf entry for `address`, which lies in the tcb array, holds.
#[must_use]
pub fn read_leaf(address: u64) -> u64 {
    let leaf = read(directory(address), index(address, 21)) & ADDRESS;
    read(leaf, index(address, 12))
}

/// Does `work` while the kernel may write to read-only pages: to its own boot-time tables.
pub fn unprotected(work: impl FnOnce()) {
    let cr0 = read_cr0();
    // SAFETY: interrupts are off, and what `work` writes to is the caller's to answer for; an
    // NMI in between writes to nothing that is read-only.
    unsafe { write_cr0(cr0 & !WRITE_PROTECT) };
    work();
    // SAFETY: the value that was there.
    unsafe { write_cr0(cr0) };
}

/// The directory above the leaf table for `address`.
fn directory(address: u64) -> u64 {
    let mut table = read_cr3() & ADDRESS;
    for bits in [39, 30] {
        table = read(table, index(address, bits)) & ADDRESS;
    }
    table
}

const fn index(address: u64, bits: u32) -> usize {
    (address >> bits & 511) as usize
}

fn read(table: u64, index: usize) -> u64 {
    // SAFETY: `table` is a frame of the live kernel tables; index < 512.
    unsafe { phys_to_virt(table).cast::<u64>().add(index & 511).read() }
}

fn write(table: u64, index: usize, value: u64) {
    // SAFETY: as in `read`; the callers write only entries of the tcb array.
    unsafe { phys_to_virt(table).cast::<u64>().add(index & 511).write(value) }
}
