//! Descriptor tables and the system-call registers: set once per processor.

use core::arch::asm;
use core::cell::Cell;
use core::mem::{offset_of, size_of};

use abi::layout;

use super::asm::msr;
use super::cpu::write_msr;
use super::percpu::{Cpu, TSS_START, cpu};
use super::tables::{STATE, STATE_THERE};
use super::{boot, vectors};

/// Kernel code segment.
pub const KERNEL_CS: u16 = 0x08;
pub(super) const TSS_SELECTOR: u16 = 0x30;

/// STAR: the segments of SYSCALL and SYSRET.
pub(super) const SELECTORS: u64 = 0x1B << 48 | (KERNEL_CS as u64) << 32;

/// Flags that SYSCALL clears: everything that could matter in the kernel
/// (TF, IF, DF, IOPL, NT, RF, AC).
pub(super) const SFMASK: u64 = 0x5_7700;

/// Vectors for which the processor pushes an error code (a bit each): double fault; segments, stack,
/// protection, page fault; alignment, control protection, VMM communication, security.
pub const PUSH_A_CODE: u32 = 1 << 8 | 0x1F << 10 | 1 << 17 | 1 << 21 | 1 << 29 | 1 << 30;
/// Those with stacks of their own (`ist_of`): NMI, double fault, machine check.
pub const ON_OWN_STACKS: u32 = 1 << 2 | 1 << 8 | 1 << 18;

const VECTORS: usize = 256;
const VECTOR_STUB_SIZE: u64 = 16;
/// Bytes of a stack for one vector, with the page below it that is not there.
const IST_STACK: usize = 8192 + 4096;

unsafe extern "C" {
    fn baton_ipc_entry();
    fn baton_vectors();
    fn baton_vectors_there();
}

#[repr(C, align(4096))]
struct Idt([Cell<u64>; VECTORS * 2]);
// SAFETY: written once at start-up, before interrupts are on.
unsafe impl Sync for Idt {}
static IDT: Idt = Idt([const { Cell::new(0) }; VECTORS * 2]);
/// That of all processors but the first.
static IDT_THERE: Idt = Idt([const { Cell::new(0) }; VECTORS * 2]);

#[repr(C, align(4096))]
struct IstStacks([Cell<u8>; 3 * IST_STACK]);
// SAFETY: only the processor uses them, as stacks of vectors that do not come twice at a time.
unsafe impl Sync for IstStacks {}
static IST: IstStacks = IstStacks([const { Cell::new(0) }; 3 * IST_STACK]);

/// Where the processor finds the IDT: programs can ask (SIDT) unless there is UMIP, so it is no
/// address of the image, whose place is a secret. Read-only there. The GDT is found in the page of the
/// task state segment for the same reason.
pub const IDT_PAGE: u64 = layout::STUBS + 0x10_0000;
pub(super) fn gdt_base() -> u64 {
    state_page() + offset_of!(Cpu, gdt) as u64
}
const _: () = assert!(offset_of!(Cpu, gdt) + size_of::<[u64; 8]>() <= 4096);

const _: () = assert!(STATE_THERE == IDT_PAGE + 0x1000, "it lies behind the table of vectors");

/// Where this processor has it.
fn state_page() -> u64 {
    if cpu().number.get() == 0 { STATE } else { STATE_THERE }
}

/// The IDT's page in the image.
#[must_use]
pub fn idt() -> u64 {
    IDT.0.as_ptr() as u64
}

/// The same for the IDT of all processors but the first, which find it at the same address.
#[must_use]
pub fn idt_there() -> u64 {
    IDT_THERE.0.as_ptr() as u64
}

/// The interrupt-stack index of a vector: double fault, NMI, machine check have their own.
const fn ist_of(vector: usize) -> u64 {
    match vector {
        8 => 1,
        2 => 2,
        18 => 3,
        _ => 0,
    }
}

/// The pages below the stacks of double fault, NMI and machine check.
#[must_use]
pub fn ist_guards() -> [u64; 3] {
    core::array::from_fn(|index| IST.0.as_ptr() as u64 + (index * IST_STACK) as u64)
}

/// Whether `address` lies on one of these stacks, or on another processor than the first on that on which it
/// starts, which is in the same page.
#[must_use]
pub fn is_ist_stack(address: u64) -> bool {
    let holds = |guard: u64| (guard..=guard + IST_STACK as u64).contains(&address);
    let top = boot::stack_top();
    let starts = cpu().number.get() != 0 && (top - 4096..=top).contains(&address);
    starts || ist_guards().into_iter().any(holds)
}

/// The ends of the stacks of double fault, NMI and machine check.
#[must_use]
pub fn ist_tops() -> [u64; 3] {
    ist_guards().map(|guard| guard + IST_STACK as u64)
}

/// Bytes of NMI's stack on other processors than the first: its handler notes what has come, or ends the system.
const NMI_STACK: u64 = 1024;

/// The same for this processor. Others than the first have one page for all (`replica.rs`): what ends the system,
/// or does unless it meets none of these stacks, begins below NMI's part of it.
fn own_ist_tops() -> [u64; 3] {
    let [double_fault, nmi, machine_check] = ist_tops();
    let below = if cpu().number.get() == 0 { 0 } else { NMI_STACK };
    [double_fault - below, nmi, machine_check - below]
}

/// Loads GDT, TSS, IDT and the system-call registers.
/// `rsp0` must already be the idle thread's tcb.
pub fn init() {
    fill_idt();
    join();
}

/// Likewise on another processor, which shares the table of vectors and has no thread yet.
#[inline(never)] // one copy for the first processor and all others
pub fn join() {
    fill_gdt();
    let cpu = cpu();
    cpu.tss.iomap.set((0x1000 - TSS_START) as u16);
    cpu.tss.ist.iter().zip(own_ist_tops()).for_each(|(stack, top)| stack.set(top));
    load_tables();
    // SAFETY: the selectors are those of the GDT above, the entry is the kernel's.
    unsafe {
        write_msr(msr::LSTAR, entry());
        write_msr(msr::STAR, SELECTORS);
        write_msr(msr::SFMASK, SFMASK);
    }
}

/// The entry that SYSCALL leads to.
pub(super) fn entry() -> u64 {
    baton_ipc_entry as *const () as u64
}

fn fill_gdt() {
    let tss_base = state_page() + TSS_START as u64;
    // TSS limit: to the byte of ones behind the two bitmap pages.
    let limit = 0x1000 - TSS_START as u64 + 0x2000;
    let entries = [
        0,
        0x00AF_9B00_0000_FFFF,
        0x00CF_9300_0000_FFFF,
        // Where SYSRET to 32-bit code would look. No such segment exists: from
        // compatibility mode SYSCALL enters at CSTAR, which leads nowhere.
        0,
        0x00CF_F300_0000_FFFF,
        0x00AF_FB00_0000_FFFF,
        limit & 0xFFFF
            | (tss_base & 0xFF_FFFF) << 16
            | 0x89 << 40
            | (limit >> 16 & 0xF) << 48
            | (tss_base >> 24 & 0xFF) << 56,
        tss_base >> 32,
    ];
    for (slot, entry) in cpu().gdt.iter().zip(entries) {
        slot.set(entry);
    }
}

fn fill_idt() {
    let stubs = [baton_vectors as *const (), baton_vectors_there as *const ()];
    for (table, stubs) in [&IDT, &IDT_THERE].into_iter().zip(stubs) {
        let words = gates(stubs as u64).flatten();
        table.0.iter().zip(words).for_each(|(slot, word)| slot.set(word));
    }
}

/// The words of a table of vectors whose stubs begin at `stubs`.
fn gates(stubs: u64) -> impl Iterator<Item = [u64; 2]> {
    (0..vectors::COUNT).map(move |vector| {
        let handler = stubs + vector as u64 * VECTOR_STUB_SIZE;
        let low = handler & 0xFFFF
            | u64::from(KERNEL_CS) << 16
            | ist_of(vector) << 32
            | 0x8E << 40
            | (handler >> 16 & 0xFFFF) << 48;
        [low, handler >> 32]
    })
}

/// Where a table is, as LGDT and LIDT want it.
#[repr(C, packed)]
pub(super) struct Pointer(pub u16, pub u64);

fn load_tables() {
    let gdt = Pointer((size_of::<[u64; 8]>() - 1) as u16, gdt_base());
    let idt = Pointer((size_of::<Idt>() - 1) as u16, IDT_PAGE);
    // SAFETY: the tables are filled and static; the selectors are theirs.
    unsafe {
        asm!(
            "lgdt [{gdt}]",
            "push {cs}",
            "lea {tmp}, [rip + 2f]",
            "push {tmp}",
            "retfq",
            "2: mov ds, {zero:e}",
            "mov es, {zero:e}",
            "mov ss, {zero:e}",
            "mov fs, {zero:e}",
            "mov gs, {zero:e}",
            // After reset the local table lies at address 0 of whoever runs: none.
            "lldt {zero:x}",
            "ltr {tss:x}",
            "lidt [{idt}]",
            gdt = in(reg) &gdt,
            idt = in(reg) &idt,
            cs = in(reg) u64::from(KERNEL_CS),
            zero = in(reg) 0,
            tss = in(reg) u64::from(TSS_SELECTOR),
            tmp = out(reg) _,
        );
    }
}
