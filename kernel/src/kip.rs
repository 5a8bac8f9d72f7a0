//! The kernel interface page (X.2 2): filled once at boot, then read-only for all.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::kip::{self, MemoryDescriptor, baton, memory_type, offset};
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
        [baton::MAGIC, baton::VERSION, quota, inspect, 0, state, task, create, call, reply];
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
mod tests {
    use super::*;
    use std::vec::Vec;

    fn filled(regions: &Regions, modules: &[Range]) -> Result<[u64; 512], KipFull> {
        let server =
            |start| Some(Server { range: Range::new(start, start + 0x2100), entry: start + 8 });
        let facts = Facts {
            regions,
            servers: [server(0xF0_0000), None, server(0x100_0000)],
            kernel: Range::new(0x20_0000, 0x22_1000),
            tables: Range::new(0x3F0_0000, 0x3F1_0000),
            pool: Range::new(0x380_0000, 0x3A0_0000),
            bootinfo: Range::new(0x3E0_0000, 0x3E0_1000),
            trampoline: Range::new(0x9_E000, 0x9_F000),
            counter_khz: 2_400_000,
            tick_us: 1000,
            has_gib_pages: true,
        };
        let mut words = [0; 512];
        fill(&mut words, &facts, modules.iter().copied()).map(|()| words)
    }

    fn pc() -> Regions {
        let mut regions = Regions::new();
        regions.push(0x9_FC00, 0x400, 2);
        regions.push(0, 0x9_FC00, 1);
        regions.push(0x10_0000, 63 << 20, 1);
        regions.push(0x40_0000_0000, 0x1000, 3);
        regions
    }

    fn descriptors(words: &[u64; 512]) -> Vec<MemoryDescriptor> {
        let info = words[offset::MEMORY_INFO / 8];
        let first = (info >> 32) as usize / 8;
        let pairs = words[first..].chunks_exact(2).take(info as u32 as usize);
        pairs.map(|pair| MemoryDescriptor::decode([pair[0], pair[1]])).collect()
    }

    #[test]
    fn the_fixed_words_are_those_of_the_interface() {
        let words = filled(&pc(), &[]).expect("room");
        let at = |byte: usize| words[byte / 8];
        assert_eq!(at(0).to_le_bytes(), *b"L4\xE6K\0\0\0\0");
        assert_eq!((at(8), at(0x10), at(0x18)), (0x8405_0000, 4, 0x280));
        assert_eq!([at(0x40), at(0x48), at(0x50), at(0x58)], [0, 0xF0_0008, 0xF0_0000, 0xF0_2100]);
        assert_eq!([at(0x60), at(0x68), at(0x70), at(0x78)], [0; 4]);
        assert_eq!(at(0x98), 0x100_2100);
        assert_eq!((at(0x150), at(0x158), at(0x170)), (0xC2801, 0xC, 0x3E0_0000));
        assert_eq!((at(0x178), at(0x248)), (0x240, 2_400_000));
        assert_eq!(at(0x180), 0x03E8_0001);
        assert_eq!(at(0x188), 0x0800_4011);
        assert_eq!((at(0x190), at(0x198)), (0x4020_1007, 0x5000_0000_0000_0000));
    }

    #[test]
    fn the_version_is_that_of_the_sources() {
        let (version, sub, subsub) = KERNEL_VERSION;
        assert_eq!(std::format!("{version}.{sub}.{subsub}"), env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn the_kernel_descriptor_lists_no_feature() {
        let words = filled(&pc(), &[]).expect("room");
        let bytes: Vec<u8> =
            words[0x280 / 8..0x300 / 8].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(bytes[..4], [0, 0, 1, 0xBA]);
        assert_eq!(bytes[24..32], *b"BATN\0\0\0\0");
        let end = 32 + bytes[32..].iter().position(|byte| *byte == 0).expect("a terminated string");
        assert!(bytes[32..end].starts_with(b"Baton "));
        assert!(bytes[end..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn links_lead_to_the_stubs() {
        let words = filled(&pc(), &[]).expect("room");
        let links = &words[0x1A0 / 8..0x1F8 / 8];
        let indices: Vec<u64> =
            links.iter().map(|link| (link - layout::STUBS) / layout::STUB_SIZE).collect();
        assert_eq!(indices, [8, 3, 9, 10, 0, 1, 7, 2, 4, 5, 6]);
        let baton = &words[words[0xA0 / 8] as usize / 8..][..5];
        assert_eq!(baton[0].to_le_bytes(), *b"BATON\0\0\0");
        assert_eq!(baton[2..], [layout::stub_address(11), layout::stub_address(12), 0]);
    }

    #[test]
    fn later_descriptors_decide_who_owns_an_address() {
        let module = Range::new(0x300_0000, 0x300_5001);
        let list = descriptors(&filled(&pc(), &[module]).expect("room"));
        let owner = |address: u64| {
            let hit = list
                .iter()
                .rev()
                .find(|one| !one.is_virtual && one.low <= address && address <= one.high);
            hit.map(|one| (one.kind, one.subtype))
        };
        let cases = [
            (0x1000, (1, 0)),
            (0x9_DFFF, (1, 0)),
            (0x9_E000, (2, 0)),
            (0x9_F800, (0xF, 2)),
            (0xA_0000, (4, 0)),
            (0xE_FFFF, (4, 0)),
            (0xF_0000, (4, 0)),
            (0x20_0000, (2, 0)),
            (0x22_0FFF, (2, 0)),
            (0x22_1000, (1, 0)),
            (0x380_0000, (2, 0)),
            (0x3F0_FFFF, (2, 0)),
            (0xF0_2FFF, (0xE, 2)),
            (0x300_5FFF, (0xE, 3)),
            (0x300_6000, (1, 0)),
            (0x3E0_0000, (0xE, 1)),
            (0x40_0000_0000, (0xF, 3)),
            (0xFEC0_0000, (4, 0)),
        ];
        for (address, expected) in cases {
            assert_eq!(owner(address), Some(expected), "{address:#x}");
        }
        let last = list.last().expect("descriptors");
        assert!(
            last.is_virtual && last.kind == 1 && last.low == 0 && last.high == layout::USER_END - 1
        );
    }

    #[test]
    fn the_most_that_boot_accepts_fits() {
        let mut regions = Regions::new();
        for index in 0..crate::boot::memory::MAX_REGIONS as u64 {
            regions.push(index << 24, 1 << 20, 1);
        }
        let modules = |count| -> Vec<Range> {
            (0..count).map(|at| Range::new(at << 20, (at << 20) + 1)).collect()
        };
        let most =
            filled(&regions, &modules(crate::boot::image::MAX_RECORDS as u64)).expect("room");
        let windows = machine::SHARED_WINDOWS.len();
        assert_eq!(descriptors(&most).len(), 64 + 100 + 1 + windows + 4 + 2 + 1 + 1);
        assert_eq!(filled(&regions, &modules(200)), Err(KipFull));
    }
}
