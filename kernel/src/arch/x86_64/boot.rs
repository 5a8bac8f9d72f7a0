//! Physical memory and the kernel image as the boot code sees them.
//!
//! Until [`finish`] the temporary tables of `boot.S` are in force: the first
//! 4 GiB are mapped at [`physmap::FIRST`], nothing above. All access to physical memory
//! at boot goes through the checked functions here.

use core::slice;
use core::sync::atomic::{AtomicU64, Ordering};

use super::features::{self, Features};
use super::mitigations::{self, Choice};
use super::tables::{self, Frames, KernelTables, Largest};
use super::{apic_kind, cpu, patch, physmap, pic, serial, timer};
use crate::boot::memory::{PhysicalMemory, Range, Reserved};

/// Where the map of physical memory is now; see [`physical`].
static MAP: AtomicU64 = AtomicU64::new(physmap::FIRST);
/// Virtual minus physical address of the kernel image as it is linked; see [`base`].
pub const KERNEL_BASE: u64 = 0xFFFF_FFFF_8000_0000;
/// End of what the temporary tables map.
pub const EARLY_LIMIT: u64 = 4 << 30;
/// Protocol number that `boot.S` passes for PVH.
pub const PROTOCOL_PVH: u32 = 1;
/// Protocol number that `boot.S` passes for multiboot2.
pub const PROTOCOL_MULTIBOOT2: u32 = 2;
/// Bytes of the boot stack.
pub const STACK_BYTES: usize = 32 * 1024;

/// The address of `phys` while the kernel boots, under whichever tables are loaded.
pub(super) fn physical(phys: u64) -> u64 {
    MAP.load(Ordering::Relaxed) + phys
}

/// A part of the kernel image by the rights it needs; virtual addresses.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Read and execute.
    Text(Range),
    /// Read.
    ReadOnly(Range),
    /// Read and write.
    Data(Range),
}

#[cfg(target_os = "none")]
mod symbols {
    //! Addresses from the linker script.
    unsafe extern "C" {
        pub static kernel_load_start: u8;
        pub static kernel_text_start: u8;
        /// Its physical address.
        pub static kernel_text_load: u8;
        pub static kernel_rodata_start: u8;
        pub static kernel_data_start: u8;
        pub static kernel_end: u8;
        /// The page below the boot stack.
        pub static boot_stack: u8;
        /// Its end.
        pub static boot_stack_top: u8;
        /// The root of the tables of `boot.S`; a physical address.
        pub static boot_root: u8;
    }
}

#[cfg(not(target_os = "none"))]
mod symbols {
    //! On the host there is no kernel image.
    #![allow(non_upper_case_globals)]
    pub static kernel_load_start: u8 = 0;
    pub static kernel_text_start: u8 = 0;
    pub static kernel_text_load: u8 = 0;
    pub static kernel_rodata_start: u8 = 0;
    pub static kernel_data_start: u8 = 0;
    pub static kernel_end: u8 = 0;
    pub static boot_stack: u8 = 0;
    pub static boot_stack_top: u8 = 0;
    pub static boot_root: u8 = 0;
}

/// Virtual minus physical address of the kernel image where it is.
#[must_use]
pub fn base() -> u64 {
    let start = &raw const symbols::kernel_text_start as u64;
    start.wrapping_sub(&raw const symbols::kernel_text_load as u64)
}

/// Start and end of the kernel image where it is, without the boot part.
#[must_use]
pub fn image_bounds() -> [u64; 2] {
    [&raw const symbols::kernel_text_start as u64, &raw const symbols::kernel_end as u64]
}

/// Physical addresses of the kernel image, the boot part included.
#[must_use]
pub fn image() -> Range {
    let start = &raw const symbols::kernel_load_start as u64;
    Range::new(start, (&raw const symbols::kernel_end as u64).wrapping_sub(base()))
}

/// Physical addresses of what the map of physical memory does not show as it shows the rest:
/// what runs, boot code included, is not there; constants cannot be written.
pub(super) fn guarded_image() -> [Range; 2] {
    let [text, rodata, data] = [
        &raw const symbols::kernel_load_start as u64,
        (&raw const symbols::kernel_rodata_start as u64).wrapping_sub(base()),
        (&raw const symbols::kernel_data_start as u64).wrapping_sub(base()),
    ];
    [Range::new(text, rodata), Range::new(rodata, data)]
}

/// The linked image, part by part.
pub(super) fn image_parts() -> [Part; 3] {
    let text = &raw const symbols::kernel_text_start as u64;
    let rodata = &raw const symbols::kernel_rodata_start as u64;
    let data = &raw const symbols::kernel_data_start as u64;
    let end = &raw const symbols::kernel_end as u64;
    [
        Part::Text(Range::new(text, rodata)),
        Part::ReadOnly(Range::new(rodata, data)),
        Part::Data(Range::new(data, end)),
    ]
}

/// The stacks of the kernel's own, in the order of [`guards`].
pub const GUARDED: [&str; 4] = [
    "the stack for double faults",
    "the stack for non-maskable interrupts",
    "the stack for machine checks",
    "the boot stack",
];

/// The pages below them, which are not there: who needs too much stack meets nobody else's.
#[must_use]
pub fn guards() -> [u64; 4] {
    #[cfg(target_os = "none")]
    let [double_fault, nmi, machine_check] = super::descriptors::ist_guards();
    #[cfg(not(target_os = "none"))]
    let [double_fault, nmi, machine_check] = [0; 3];
    [double_fault, nmi, machine_check, &raw const symbols::boot_stack as u64]
}

/// The end of the boot stack, on which other processors start and idle, too.
#[must_use]
pub fn stack_top() -> u64 {
    &raw const symbols::boot_stack_top as u64
}

/// Physical address of the root of the tables of `boot.S`.
#[must_use]
pub fn early_root() -> u64 {
    &raw const symbols::boot_root as u64
}

/// All physical memory below 4 GiB except the kernel image, during boot: read
/// what loaders left there, write where the plan says.
pub struct EarlyMemory {
    taken: Reserved,
}

impl EarlyMemory {
    /// The one owner of physical memory at boot.
    ///
    /// # Safety
    /// Once, on the tables of `boot.S`, before anything else touches physical memory.
    #[must_use]
    pub unsafe fn new() -> Self {
        let mut taken = Reserved::default();
        let _has_room = taken.add(image());
        Self { taken }
    }

    /// Virtual address of `range`, if the range is in reach and not taken.
    fn reach(&self, range: Range) -> Option<u64> {
        let is_free = !range.is_empty() && range.end <= EARLY_LIMIT && !self.taken.overlaps(range);
        is_free.then(|| physical(range.start))
    }

    /// Copies `from` to physical address `to`; the two may overlap. False if either is out of reach.
    #[must_use]
    pub fn copy(&mut self, from: Range, to: u64) -> bool {
        let target = Range::sized(to, from.len()).and_then(|range| self.reach(range));
        let (Some(source), Some(target)) = (self.reach(from), target) else {
            return from.is_empty();
        };
        // SAFETY: both are mapped and nobody else's (`reach`); no reference into
        // them is alive, since reading borrows `self`.
        unsafe { core::ptr::copy(source as *const u8, target as *mut u8, from.len() as usize) };
        true
    }

    /// Zeroes `range`. False if it is out of reach.
    #[must_use]
    pub fn clear(&mut self, range: Range) -> bool {
        let Some(target) = self.reach(range) else { return range.is_empty() };
        // SAFETY: as in `copy`.
        unsafe { core::ptr::write_bytes(target as *mut u8, 0, range.len() as usize) };
        true
    }

    /// Gives the words of page-aligned `range` away for good.
    #[must_use]
    pub fn take(&mut self, range: Range) -> Option<&'static mut [u64]> {
        let start = self.reach(range).filter(|start| start % 4096 == 0)?;
        if !self.taken.add(range) {
            return None;
        }
        // SAFETY: mapped, aligned, and from now on out of reach of this object.
        Some(unsafe { slice::from_raw_parts_mut(start as *mut u64, (range.len() / 8) as usize) })
    }
}

impl PhysicalMemory for EarlyMemory {
    fn bytes(&self, range: Range) -> Option<&[u8]> {
        let start = self.reach(range)? as *const u8;
        // SAFETY: mapped and nobody else's (`reach`); writing needs `&mut self`.
        Some(unsafe { slice::from_raw_parts(start, range.len() as usize) })
    }
}

/// The first steps: serial port and processor features.
pub fn begin() {
    serial::init();
    // SAFETY: called first, on the tables of `boot.S`: CR3's low bits are zero, no
    // page there is a user page, and interrupts are off.
    unsafe { features::enable() };
    // SAFETY: the tables of `boot.S` let the kernel write its own text, nothing of which
    // runs meanwhile but this.
    unsafe { patch::apply(features::in_use()) };
}

/// Frames that the page tables need for memory up to `top`.
#[must_use]
pub fn table_frames(top: u64) -> u64 {
    tables::frames_needed(top, largest_page(), image().len())
}

/// End of the physical addresses that the kernel will use.
#[must_use]
pub fn physical_limit() -> u64 {
    (1 << features::physical_bits()).min(tables::physical_limit(largest_page()))
}

/// Whether pages of 1 GiB exist.
#[must_use]
pub fn has_gib_pages() -> bool {
    features::in_use().contains(Features::GIB_PAGES)
}

fn largest_page() -> Largest {
    if has_gib_pages() { Largest::Gib } else { Largest::Mib2 }
}

/// Chooses what the processor's speculation needs, and does it, together with what else is patched into the kernel's
/// text (`apics`: of which kind they are); returns a line about it.
#[must_use]
pub fn mitigate(choice: Choice, apics: apic_kind::Kind) -> mitigations::Summary {
    let (actions, open) = mitigations::plan(&mitigations::facts(), choice);
    // SAFETY: at boot, on the tables of `boot.S`, under which the kernel may write its text;
    // nothing of what is diverted has run.
    unsafe {
        mitigations::apply(actions);
        patch::divert(features::in_use(), actions, apics);
    }
    mitigations::Summary(choice, actions, open)
}

/// Builds the kernel's tables, with the map of physical memory at the place that
/// `random` chooses, switches to them, and sets up interrupt controller and clock. Identity mapping
/// ends here.
///
/// # Safety
/// Once, after [`begin`], with nothing at its identity address in use.
pub unsafe fn finish(frames: &mut Frames, top: u64, random: u64) -> KernelTables {
    let base = physmap::place(tables::mapped_top(top), random);
    let tables = tables::build(frames, top, largest_page(), base);
    // SAFETY: the tables of `boot.S` let the kernel write its text; only boot code, which asks
    // `physical`, has used the map.
    unsafe { patch::set_base(base) };
    // SAFETY: the new tables map the running code, its stack and data at the same
    // addresses with the rights their sections need.
    unsafe { cpu::write_cr3(tables.root) };
    MAP.store(base, Ordering::Relaxed);
    pic::init();
    crate::arch::clock::start(timer::counter_hz());
    tables
}
