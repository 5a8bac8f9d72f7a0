//! The kernel interface page (X.2 2): filled once at boot, then read-only for all.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::kip::{self, LineMessage, MemoryDescriptor, baton, memory_type, offset};
use abi::layout::{self, stub};
use abi::{Time, id};

use crate::arch::machine;
use crate::arch::paging::{HUGE, span};
use crate::boot::image::Server;
use crate::boot::memory::{BIOS_CONVENTIONAL, Range, Regions};

/// Date of this version: day, month, year.
const GENERATION_DATE: (u64, u64, u64) = (21, 11, 2026);
/// Kernel version: version, subversion, sub-subversion.
const KERNEL_VERSION: (u64, u64, u64) = (0, 1, 0);
/// Four characters that name the supplier.
const SUPPLIER: [u8; 4] = *b"BATN";
/// The version string.
const VERSION_STRING: &[u8] = machine::VERSION.as_bytes();
/// Log2 of the size of a processor descriptor, bytes.
const PROCESSOR_DESCRIPTOR_BITS: u64 = 5;
/// Subtypes of boot-loader specific memory (X.2 2.4).
const BOOT_TABLES: u8 = 1;
const BOOT_SERVER: u8 = 2;
const BOOT_MODULE: u8 = 3;
/// The kernel descriptor ends where the next one begins, bytes.
const KERNEL_DESCRIPTOR_BYTES: usize = offset::BATON_DESC - offset::KERN_DESC;
const _: () = assert!(4 * 8 + VERSION_STRING.len() + 2 <= KERNEL_DESCRIPTOR_BYTES);

/// Where the page lies, a physical address.
static FRAME: AtomicU64 = AtomicU64::new(0);

/// The page lies at physical address `at`.
pub fn place(at: u64) {
    FRAME.store(at, Ordering::Relaxed);
}

/// Physical address of the page.
#[must_use]
pub fn frame() -> u64 {
    FRAME.load(Ordering::Relaxed)
}

/// What the page tells about this machine.
pub struct Facts<'a> {
    /// The loader's memory map.
    pub regions: &'a Regions,
    /// σ0, σ1, root task.
    pub servers: [Option<Server>; 3],
    /// The kernel image.
    pub kernel: Range,
    /// The kernel's boot-time tables.
    pub tables: Range,
    /// The kernel's pool of frames.
    pub pool: Range,
    /// The bootinfo.
    pub bootinfo: Range,
    /// Where other processors start.
    pub trampoline: Range,
    /// Frequency of the time stamp counter, kHz.
    pub counter_khz: u64,
    /// Period of the kernel's tick, microseconds.
    pub tick_us: u64,
    /// Whether pages of 1 GiB exist.
    pub has_gib_pages: bool,
}

/// The memory descriptors do not fit in the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KipFull;

/// The page while it is being filled.
struct Page<'a> {
    words: &'a mut [u64; 512],
    descriptors: usize,
}

/// Which addresses a descriptor is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Addresses {
    Physical,
    Virtual,
}

impl Page<'_> {
    /// Sets the word at byte offset `at`.
    fn set(&mut self, at: usize, value: u64) {
        self.words[at / 8] = value;
    }

    fn set_all(&mut self, at: usize, values: &[u64]) {
        self.words[at / 8..at / 8 + values.len()].copy_from_slice(values);
    }

    fn describe(
        &mut self,
        range: Range,
        kind: u8,
        subtype: u8,
        addresses: Addresses,
    ) -> Result<(), KipFull> {
        if range.is_empty() {
            return Ok(());
        }
        let at = offset::MEM_DESC / 8 + 2 * self.descriptors;
        let target = self.words.get_mut(at..at + 2).ok_or(KipFull)?;
        let high = range.end.wrapping_sub(1);
        let is_virtual = addresses == Addresses::Virtual;
        target.copy_from_slice(
            &MemoryDescriptor { low: range.start, high, is_virtual, kind, subtype }.words(),
        );
        self.descriptors += 1;
        Ok(())
    }

    fn physical(&mut self, range: Range, kind: u8, subtype: u8) -> Result<(), KipFull> {
        self.describe(range.pages_out(), kind, subtype, Addresses::Physical)
    }
}

/// Fills `words`, which must be zero, with the facts; `modules` are the places of
/// programs and modules.
///
/// # Errors
/// If there are more memory descriptors than the page holds.
pub fn fill(
    words: &mut [u64; 512],
    facts: &Facts<'_>,
    modules: impl Iterator<Item = Range>,
) -> Result<(), KipFull> {
    let mut page = Page { words, descriptors: 0 };
    fill_identity(&mut page);
    fill_servers(&mut page, facts);
    fill_machine(&mut page, facts);
    fill_links(&mut page);
    fill_memory(&mut page, facts, modules)?;
    page.set(offset::MEMORY_INFO, (offset::MEM_DESC as u64) << 32 | page.descriptors as u64);
    Ok(())
}

fn fill_identity(page: &mut Page<'_>) {
    page.set(offset::MAGIC, kip::MAGIC);
    page.set(offset::API_VERSION, kip::API_VERSION);
    page.set(offset::API_FLAGS, kip::API_FLAGS);
    page.set(offset::KERN_DESC_PTR, offset::KERN_DESC as u64);
    let (day, month, year) = GENERATION_DATE;
    let (version, subversion, subsubversion) = KERNEL_VERSION;
    let descriptor = [
        kip::KERNEL_ID,
        (year - 2000) << 9 | month << 5 | day,
        version << 24 | subversion << 16 | subsubversion,
        u64::from(u32::from_le_bytes(SUPPLIER)),
    ];
    page.set_all(offset::KERN_DESC, &descriptor);
    // The zeros behind the string end it and the (empty) list of features.
    for (index, chunk) in VERSION_STRING.chunks(8).enumerate() {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        page.set(offset::KERN_DESC + 32 + 8 * index, u64::from_le_bytes(padded));
    }
}

fn fill_servers(page: &mut Page<'_>, facts: &Facts<'_>) {
    let places = [offset::SIGMA0, offset::SIGMA1, offset::ROOT];
    for (at, server) in places.into_iter().zip(facts.servers) {
        if let Some(Server { range, entry }) = server {
            page.set_all(at, &[0, entry, range.start, range.end]);
        }
    }
}

fn fill_machine(page: &mut Page<'_>, facts: &Facts<'_>) {
    page.set_all(offset::RESERVED_MEM0, &[facts.kernel.start, facts.kernel.end]);
    page.set(offset::UTCB_AREA_INFO, kip::UTCB_AREA_INFO);
    page.set(offset::KIP_AREA_INFO, kip::KIP_AREA_INFO);
    page.set(offset::BOOT_INFO, facts.bootinfo.start);
    page.set(offset::PROC_DESC_PTR, offset::PROC_DESC as u64);
    page.set_all(offset::PROC_DESC, &[0, facts.counter_khz]);
    let (read, schedule) = (Time::micros(1), Time::micros(facts.tick_us));
    page.set(offset::CLOCK_INFO, u64::from(schedule.0) << 16 | u64::from(read.0));
    let bases = u64::from(id::USER_BASE) << 20 | u64::from(id::SYSTEM_BASE) << 8;
    page.set(offset::THREAD_INFO, bases | u64::from(id::THREAD_BITS));
    let largest = if facts.has_gib_pages { HUGE } else { HUGE - 1 };
    let sizes = (0..=largest).fold(0, |sizes, level| sizes | span(level));
    page.set(offset::PAGE_INFO, sizes | 7);
    page.set(offset::PROCESSOR_INFO, PROCESSOR_DESCRIPTOR_BITS << 60);
}

/// Says in a filled page that `count` processors run, all alike. Their descriptors go behind
/// the last one of memory; if there is no room for all, the page says how many it has room for.
pub fn set_processors(words: &mut [u64; 512], count: u32) {
    let (info, stride) = (words[offset::MEMORY_INFO / 8], 1 << PROCESSOR_DESCRIPTOR_BITS);
    let end = (info >> 32) as usize + (info & 0xFFFF_FFFF) as usize * 16;
    let first = end.next_multiple_of(stride);
    let count = (count as usize).min(words.len() * 8 / stride - first / stride);
    if count < 2 {
        return;
    }
    let own: [u64; 4] = core::array::from_fn(|word| words[offset::PROC_DESC / 8 + word]);
    let places = words[first / 8..].chunks_exact_mut(own.len()).take(count);
    places.for_each(|place| place.copy_from_slice(&own));
    words[offset::PROC_DESC_PTR / 8] = first as u64;
    words[offset::PROCESSOR_INFO / 8] = PROCESSOR_DESCRIPTOR_BITS << 60 | (count as u64 - 1);
}

/// Says in a filled page by what `message` the first line is signalled that has no wire.
pub fn set_messages(words: &mut [u64; 512], message: LineMessage) {
    let at = offset::BATON_DESC / 8 + baton::MESSAGE_ADDRESS;
    words[at..at + 2].copy_from_slice(&message.words());
}

fn fill_links(page: &mut Page<'_>) {
    let links = [
        (offset::SPACE_CONTROL, stub::SPACE_CONTROL),
        (offset::THREAD_CONTROL, stub::THREAD_CONTROL),
        (offset::PROCESSOR_CONTROL, stub::PROCESSOR_CONTROL),
        (offset::MEMORY_CONTROL, stub::MEMORY_CONTROL),
        (offset::IPC, stub::IPC),
        (offset::LIPC, stub::LIPC),
        (offset::UNMAP, stub::UNMAP),
        (offset::EXCHANGE_REGISTERS, stub::EXCHANGE_REGISTERS),
        (offset::SYSTEM_CLOCK, stub::SYSTEM_CLOCK),
        (offset::THREAD_SWITCH, stub::THREAD_SWITCH),
        (offset::SCHEDULE, stub::SCHEDULE),
    ];
    for (at, index) in links {
        page.set(at, layout::stub_address(index));
    }
    page.set(offset::BATON_DESC_PTR, offset::BATON_DESC as u64);
    let [quota, inspect, state] =
        [stub::QUOTA_CONTROL, stub::INSPECT, stub::THREAD_STATE].map(layout::stub_address);
    let [task, create] = [stub::TASK_CONTROL, stub::CREATE_THREAD].map(layout::stub_address);
    let [call, reply] = [stub::LOCAL_CALL, stub::LOCAL_REPLY_WAIT].map(layout::stub_address);
    let descriptor: [u64; baton::WORDS] =
        [baton::MAGIC, baton::VERSION, quota, inspect, 0, state, task, create, call, reply, 0, 0];
    page.set_all(offset::BATON_DESC, &descriptor);
}

/// Memory descriptors; later ones override earlier ones (X.2 6.10 gives the order).
fn fill_memory(
    page: &mut Page<'_>,
    facts: &Facts<'_>,
    modules: impl Iterator<Item = Range>,
) -> Result<(), KipFull> {
    page.describe(Range::new(0, u64::MAX), memory_type::SHARED, 0, Addresses::Physical)?;
    for region in facts.regions.iter() {
        if region.kind == BIOS_CONVENTIONAL {
            page.physical(region.range, memory_type::CONVENTIONAL, 0)?;
        } else {
            page.physical(region.range, memory_type::ARCH, (region.kind & 0xF) as u8)?;
        }
    }
    for window in machine::SHARED_WINDOWS {
        page.physical(window, memory_type::SHARED, 0)?;
    }
    for range in [facts.kernel, facts.tables, facts.pool, facts.trampoline] {
        page.physical(range, memory_type::RESERVED, 0)?;
    }
    for server in facts.servers.into_iter().flatten() {
        page.physical(server.range, memory_type::BOOT, BOOT_SERVER)?;
    }
    for module in modules {
        page.physical(module, memory_type::BOOT, BOOT_MODULE)?;
    }
    page.physical(facts.bootinfo, memory_type::BOOT, BOOT_TABLES)?;
    page.describe(Range::new(0, layout::USER_END), memory_type::CONVENTIONAL, 0, Addresses::Virtual)
}

#[cfg(test)]
mod tests;
