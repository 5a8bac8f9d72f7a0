//! The step from the booted machine to the running kernel that only this
//! processor knows: frame pool and memory layout, tcb array, descriptor tables.

use core::arch::global_asm;

use super::boot_sequence::{self as boot_start, Handover};
use crate::arch::x86_64::apic_kind::Kind;
use crate::arch::x86_64::boot::{KERNEL_BASE, PROTOCOL_MULTIBOOT2, PROTOCOL_PVH, STACK_BYTES};
use crate::arch::x86_64::check::kernel_half;
use crate::arch::x86_64::cpu::{EXIT_FAILURE, EXIT_PORT};
use crate::arch::x86_64::elsewhere::processors;
use crate::arch::x86_64::features::{self, Features};
use crate::arch::x86_64::mem::{iobitmap, root};
use crate::arch::x86_64::percpu::cpu;
use crate::arch::x86_64::thread::tcbs::TcbRef;
use crate::arch::x86_64::thread::{current, leave, pad, set_current, special};
use crate::arch::x86_64::{
    apic, boot, descriptors, kernel_tables, lines, machine_check, physmap, slots, tick_source,
};
use crate::boot::madt::Madt;
use crate::boot::memory::BIOS_CONVENTIONAL;
use crate::mem::{self, PhysFrame, Quota, frames, reserved};
use crate::thread::own;
use crate::{arch, start};
use root::RootWord;

global_asm!(
    include_str!("boot.S"),
    PVH_NOTE = const 18,
    PVH = const PROTOCOL_PVH,
    MULTIBOOT2 = const PROTOCOL_MULTIBOOT2,
    EXIT_FAILURE = const EXIT_FAILURE,
    EXIT_PORT = const EXIT_PORT,
    KERNEL_BASE = const KERNEL_BASE,
    STACK_BYTES = const STACK_BYTES,
    PLACES_BYTES = const 32 * 1024,
);

/// Entered from `boot.S`.
#[unsafe(no_mangle)]
extern "C" fn boot_main(protocol: u32, information: u32) -> ! {
    // SAFETY: `boot.S` comes here once, on its own tables and stack.
    let handover = unsafe { boot_start::start(protocol, information) };
    leave(begin(&handover))
}

/// Starts the kernel on a booted machine; returns the first thread to run.
#[must_use]
#[inline(never)] // nothing in here may ask for the base of the map before it is there
pub fn begin(handover: &Handover) -> TcbRef {
    let pool = add_memory(handover);
    kernel_tables::init(&handover.tables);
    kernel_half::init(&handover.tables);
    root::set_template(handover.tables.root);
    let features = features::in_use();
    if features.contains(Features::GIB_PAGES) {
        mem::enable_huge_pages();
    }
    if features.contains(Features::PCID | Features::INVPCID) {
        root::enable_tags();
    }
    debug_assert!(pool > 0);
    let tss_page = PhysFrame::at(core::ptr::from_ref(cpu()) as u64 - boot::base());
    let mut bitmap = Ok(());
    let template = handover.tables.root;
    kernel_tables::unprotected(|| bitmap = iobitmap::init(tss_page, template, &Quota::new(4)));
    if bitmap.is_err() {
        panic!("the kernel's memory is too small for the I/O bitmap; give the machine more memory");
    }
    set_current(own::make_idle(RootWord::of_kernel(handover.tables.root)));
    pad::init();
    descriptors::init();
    special::update(current());
    machine_check::init();
    find_lines(handover);
    processors::start_all(handover.madt.as_ref(), handover.trampoline, handover.tables.root);
    let kip = crate::arch::x86_64::physmap::phys_to_virt(handover.kip).cast::<[u64; 512]>();
    // SAFETY: the interface page, which nobody reads yet.
    let page = unsafe { &mut *kip };
    crate::kip::set_processors(page, slots::count());
    lines::message().into_iter().for_each(|message| crate::kip::set_messages(page, message));
    let first = start::start(handover.servers, handover.kip);
    cpu().scheduler.wakeup.begin(crate::arch::clock::now_us());
    tick_source::start();
    check_machine();
    first
}

/// A frame of zeros for a table of the kernel's own.
fn take() -> Option<u64> {
    frames::take_zeroed_for_kernel().map(PhysFrame::address)
}

/// Finds the interrupt lines, and says where. `noapic` leaves them at the 8259s.
fn find_lines(handover: &Handover) {
    let wish = !handover.info.command_line.has_word("noapic");
    match lines::init(handover.madt.as_ref().filter(|_| wish), take) {
        Ok(inputs) => crate::kprintln!(
            "baton: interrupts: through {}APICs with {inputs} inputs",
            if apic::kind() == Kind::X2 { "x2" } else { "" }
        ),
        Err(why) => crate::kprintln!("baton: interrupts: at the 8259s, without APICs: {why}"),
    }
}

/// Before anybody runs: the processor is as the kernel wants it, or the machine stops.
fn check_machine() {
    let mut wrong = 0;
    crate::arch::x86_64::check::check(&mut |violation| {
        crate::kprintln!("check: {violation}");
        wrong += 1;
    });
    assert!(wrong == 0, "the processor is not as the kernel has set it up: {wrong} violations");
}

/// Tells the memory module what memory there is: returns the frames of the pool.
fn add_memory(handover: &Handover) -> u64 {
    for region in handover.info.regions.iter().filter(|region| region.kind == BIOS_CONVENTIONAL) {
        let _ = reserved::add_ram(region.range.start, region.range.end);
    }
    let tables = handover.table_frames;
    for range in [handover.kernel, handover.pool, tables, handover.trampoline] {
        let _ = reserved::add_reserved(range.start, range.end);
    }
    for device in handover.madt.iter().flat_map(Madt::devices) {
        let _ = reserved::add_reserved(device, device + 1);
    }
    reserved::set_phys_bits(features::physical_bits());
    let top = handover.info.regions.top();
    let pool_start = handover.pool.start + frames::info_bytes(top);
    frames::init(handover.pool.start, top);
    debug_assert!(physmap::base() == boot::physical(0) && arch::ticks() > 0);
    frames::add_region(pool_start, handover.pool.end)
}
