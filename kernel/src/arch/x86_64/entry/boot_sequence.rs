//! The sequence of booting: what the loader left is read, the boot image checked, the memory
//! planned, the servers loaded, the kernel's tables, KIP and bootinfo built, and all of it
//! handed over. Called once, by `boot.S`, with interrupts off.

use core::fmt::Display;

use crate::arch::clock;
use crate::arch::x86_64::apic_kind::Kind;
use crate::arch::x86_64::boot::{self as machine, EarlyMemory, PROTOCOL_MULTIBOOT2, PROTOCOL_PVH};
use crate::arch::x86_64::cpu::EXIT_FAILURE;
use crate::arch::x86_64::machine as machine_facts;
use crate::arch::x86_64::mitigations::Choice;
use crate::arch::x86_64::tables::{Frames, KernelTables};
use crate::arch::x86_64::{apic, features, place, random};
use crate::boot::image::{Image, SERVERS, Seal, Server};
use crate::boot::info::{BootInfo, LoaderError};
use crate::boot::madt::{self, Madt};
use crate::boot::memory::{PhysicalMemory, Range};
use crate::boot::plan::{Needs, Plan, plan};
use crate::boot::refusal::Refusal;
use crate::boot::{bootinfo, multiboot2, pvh};
use crate::{arch, kip, kprintln};

/// The word on the command line that keeps everything at its first place.
const FIXED: &str = "nokaslr";
/// Word of the command line: local APICs without a page are used if they are there. They are anyway where firmware has
/// switched to them, or a processor's number is too high for others.
const X2APIC: &str = "x2apic";

/// What booting leaves to the kernel proper.
#[derive(Clone, Debug)]
pub struct Handover {
    /// What the loader said.
    pub info: BootInfo,
    /// σ0, σ1 and the root task, loaded at their physical addresses.
    pub servers: [Option<Server>; 3],
    /// The kernel's page tables.
    pub tables: KernelTables,
    /// Where those are, and the KIP.
    pub table_frames: Range,
    /// The kernel image.
    pub kernel: Range,
    /// Free frames for everything that the kernel allocates from now on.
    pub pool: Range,
    /// Physical address of the kernel interface page.
    pub kip: u64,
    /// Where the bootinfo is.
    pub bootinfo: Range,
    /// A page below 1 MiB where other processors start; empty without one.
    pub trampoline: Range,
    /// The machine's processors and interrupt controllers, if ACPI says.
    pub madt: Option<Madt>,
}

/// Boots the machine, from what `boot.S` found in its registers.
///
/// # Safety
/// Once, called by `boot.S` on its tables and stack.
#[must_use]
pub unsafe fn start(protocol: u32, information: u32) -> Handover {
    // SAFETY: the caller's promise; this is the first that runs.
    unsafe { move_away(protocol, information) };
    machine::begin();
    kprintln!("{}, an L4 X.2 microkernel", machine_facts::VERSION);
    kprintln!("baton: processor:{}", features::Summary);
    // SAFETY: the caller's promise; nothing has touched physical memory yet.
    let mut memory = unsafe { EarlyMemory::new() };
    let loader = read_loader(&memory, protocol, u64::from(information));
    let mut info =
        loader.unwrap_or_else(|error| stop("the boot loader's information is unusable", error));
    info.regions.clip(machine::physical_limit());
    if info.regions.dropped > 0 {
        kprintln!("baton: memory map: {} entries too many were left out", info.regions.dropped);
    }
    if let Some(Err(defect)) = info.framebuffer {
        kprintln!("baton: the boot loader's framebuffer cannot be as it says: {defect}");
    }
    let madt = read_acpi(&memory, &info);
    let numbers = madt.iter().flat_map(|madt| madt.processors.as_slice()).map(|one| one.apic);
    apic::settle(numbers, info.command_line.has_word(X2APIC).then_some(Kind::X2));
    let choice = Choice::read(info.command_line.option("mitigations"));
    kprintln!("baton: {}", machine::mitigate(choice, apic::kind()));
    let (plan, seal) = find_places(&memory, &info);
    load(&mut memory, &mut info, &plan, &seal);
    let frames = Frames::new(&mut memory, plan.tables);
    let mut frames = frames.unwrap_or_else(|| {
        stop("the kernel's page tables cannot be built", "their place is taken")
    });
    let random = if is_random(&info) { random::word() } else { 0 };
    // SAFETY: features are on since `begin`; the servers, image and bootinfo are
    // reached through the map of physical memory only.
    let tables = unsafe { machine::finish(&mut frames, info.regions.top(), random) };
    let (kip, servers) = describe(&mut memory, &mut frames, &info, &plan, &seal);
    let handover = Handover {
        info,
        servers,
        tables,
        table_frames: plan.tables,
        kernel: machine::image(),
        pool: plan.pool,
        kip,
        bootinfo: plan.bootinfo,
        trampoline: plan.trampoline,
        madt,
    };
    report(&handover);
    handover
}

/// Moves the kernel to a random place, where booting begins anew, unless that has been done or
/// is not wanted. What is wrong with the loader's information is told later.
///
/// # Safety
/// As [`start`], and nothing of that has run.
unsafe fn move_away(protocol: u32, information: u32) {
    if !place::can_move() {
        return;
    }
    // SAFETY: the caller's promise; this one is gone before the next is made.
    let memory = unsafe { EarlyMemory::new() };
    let loader = read_loader(&memory, protocol, u64::from(information));
    if loader.is_ok_and(|info| !info.command_line.has_word(FIXED)) {
        // SAFETY: nothing has run but what reads.
        unsafe { place::go(random::word(), protocol, information) }
    }
}

/// Whether the kernel may choose places at random, and says which it does.
fn is_random(info: &BootInfo) -> bool {
    let is_fixed = info.command_line.has_word(FIXED);
    kprintln!(
        "baton: the kernel's image and the map of physical memory are at {}",
        match (is_fixed, place::distance()) {
            (true, _) => "their first places (nokaslr)",
            (false, 0) => "their first and a random place: the image was built without its list",
            (false, _) => "random places",
        }
    );
    !is_fixed
}

/// Prints why booting cannot go on, and ends the machine.
fn stop(what: &str, why: impl Display) -> ! {
    kprintln!("baton: {what}: {why}");
    arch::exit(EXIT_FAILURE)
}

fn read_loader(
    memory: &EarlyMemory,
    protocol: u32,
    information: u64,
) -> Result<BootInfo, LoaderError> {
    match protocol {
        PROTOCOL_PVH => pvh::parse(memory, information),
        PROTOCOL_MULTIBOOT2 => multiboot2::parse(memory, information),
        other => Err(LoaderError::Protocol(other)),
    }
}

/// What ACPI says about processors and interrupt controllers.
fn read_acpi(memory: &EarlyMemory, info: &BootInfo) -> Option<Madt> {
    match madt::find(memory, info.acpi) {
        Ok(madt) => {
            kprintln!(
                "baton: ACPI: processors: {}; local APIC at {:#x}; I/O APICs: {}",
                madt.processors.as_slice().len(),
                madt.local,
                madt.io_apics.as_slice().len(),
            );
            let (processors, chips) = (madt.processors.dropped, madt.io_apics.dropped);
            if processors + chips > 0 {
                kprintln!("baton: left out: {processors} processors, {chips} I/O APICs too many");
            }
            Some(madt)
        }
        Err(defect) => {
            kprintln!("baton: ACPI lists no processors: {defect}; the kernel uses one");
            None
        }
    }
}

/// Checks the boot image and finds a place for everything.
fn find_places(memory: &EarlyMemory, info: &BootInfo) -> (Plan, Seal) {
    let kernel = machine::image();
    let bytes = memory.bytes(info.image).ok_or(Refusal::Missing(info.image));
    let image = bytes.and_then(Image::parse);
    let checked = image.and_then(|image| image.check_places(&info.regions, kernel).map(|()| image));
    let image = checked.unwrap_or_else(|refusal| stop("boot image refused", refusal));
    // One frame more than the tables: the KIP.
    let tables = (machine::table_frames(info.regions.top()) + 1) * 4096;
    let pool = info.command_line.size_option("kmem");
    let needs =
        Needs { kernel, tables, bootinfo: bootinfo::bytes_needed(&image, info.screen()), pool };
    match plan(&info.regions, info.image, &image, &needs) {
        Ok(plan) => (plan, image.seal()),
        Err(no_room) => stop("the machine's memory is too small", no_room),
    }
}

fn open<'a>(memory: &'a EarlyMemory, place: Range, seal: &Seal) -> Image<'a> {
    let image = memory.bytes(place).and_then(|bytes| Image::reopen(bytes, seal));
    image.unwrap_or_else(|| stop("boot image refused", Refusal::Missing(place)))
}

/// Moves the image out of the way if need be, and copies the servers to their places.
fn load(memory: &mut EarlyMemory, info: &mut BootInfo, plan: &Plan, seal: &Seal) {
    if plan.image.start != info.image.start {
        let whole = Range::new(info.image.start, info.image.start + seal.len() as u64);
        must(memory.copy(whole, plan.image.start), plan.image);
    }
    info.image = plan.image;
    for index in 0..seal.count() {
        let record = open(memory, plan.image, seal).record(index);
        if !record.is_load() {
            continue;
        }
        let from =
            Range::new(plan.image.start + record.file.start, plan.image.start + record.file.end);
        let target = record.target();
        must(memory.copy(from, target.start), target);
        must(memory.clear(Range::new(target.start + from.len(), target.end)), target);
    }
}

/// Checked places are always in reach: anything else is a defect of the checks.
fn must(done: bool, place: Range) {
    assert!(done, "a checked place, {:#x}..{:#x}, could not be written", place.start, place.end);
}

/// Fills bootinfo and KIP; the KIP's physical address and the servers.
fn describe(
    memory: &mut EarlyMemory,
    frames: &mut Frames,
    info: &BootInfo,
    plan: &Plan,
    seal: &Seal,
) -> (u64, [Option<Server>; 3]) {
    must(memory.clear(plan.bootinfo), plan.bootinfo);
    let words = memory.take(plan.bootinfo).unwrap_or_default();
    let image = open(memory, plan.image, seal);
    must(bootinfo::build(&image, plan.image.start, info.screen(), words), plan.bootinfo);
    let servers = SERVERS.map(|(kind, _)| image.server(kind));
    let facts = kip::Facts {
        regions: &info.regions,
        servers,
        kernel: machine::image(),
        tables: plan.tables,
        pool: plan.pool,
        bootinfo: plan.bootinfo,
        trampoline: plan.trampoline,
        counter_khz: clock::frequency_hz() / 1_000,
        tick_us: clock::TICK_US,
        has_gib_pages: machine::has_gib_pages(),
    };
    let modules = image
        .records()
        .filter(|record| !record.is_load())
        .map(|record| record.place(plan.image.start));
    let (kip, page) = frames.take_page();
    let filled = kip::fill(page, &facts, modules);
    assert!(
        filled.is_ok(),
        "the KIP holds a descriptor for every region and record that is accepted"
    );
    (kip, servers)
}

fn report(handover: &Handover) {
    let Handover { info, pool, kernel, .. } = handover;
    let mib = |bytes: u64| bytes >> 20;
    kprintln!(
        "baton: memory: {} MiB usable up to {:#x}",
        mib(info.regions.usable_bytes()),
        info.regions.top(),
    );
    kprintln!(
        "baton: kernel {:#x}..{:#x}, pool {:#x}..{:#x} ({} MiB)",
        kernel.start,
        kernel.end,
        pool.start,
        pool.end,
        mib(pool.len()),
    );
    kprintln!(
        "baton: {} loaded {} KiB of boot image at {:#x}; clock {} kHz",
        info.loader,
        info.image.len() >> 10,
        info.image.start,
        clock::frequency_hz() / 1_000,
    );
    let words = info.command_line.text();
    if !words.is_empty() {
        kprintln!("baton: command line: {words}");
    }
    for ((_, name), server) in SERVERS.into_iter().zip(handover.servers) {
        if let Some(Server { range, entry }) = server {
            kprintln!("baton: {name} at {:#x}..{:#x}, entry {entry:#x}", range.start, range.end);
        }
    }
}
