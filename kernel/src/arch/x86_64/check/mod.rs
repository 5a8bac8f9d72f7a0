//! The processor's half of the checker: what it looks at that only a processor knows of itself. It changes nothing.

pub mod kernel_half;

use core::arch::asm;
use core::fmt::Arguments;

use abi::id::SYSTEM_BASE;

use crate::arch::x86_64::asm::msr;
use crate::arch::x86_64::cpu::read_msr;
use crate::arch::x86_64::descriptors::{self, Pointer};
use crate::arch::x86_64::errands;
use crate::arch::x86_64::features::{self, Features};
use crate::arch::x86_64::percpu::cpu;
use crate::thread::{lookup_number, rendezvous};

/// Says to `note` what is wrong with the machine's state: this processor's, that of the tables,
/// and what the other processors say of themselves.
pub fn check(note: &mut dyn FnMut(Arguments<'_>)) {
    check_own(note);
    kernel_half::check(note);
    errands::check_others(note);
}

/// The same for this processor alone.
#[inline(never)] // one copy for the first processor and all others
pub fn check_own(note: &mut dyn FnMut(Arguments<'_>)) {
    features::check(note);
    tables(note);
    for number in (0..SYSTEM_BASE).filter(|number| rendezvous::is_code_of_a_wait(*number)) {
        if lookup_number(number).is_none_or(|it| rendezvous::seems_to_wait(it, number)) {
            note(format_args!("a message to number {number} would find somebody who waits"));
        }
    }
    let unguarded = cpu().unguarded.get();
    if unguarded != 0 && features::in_use().contains(Features::SMAP) {
        note(format_args!(
            "{unguarded} interrupts met the kernel with AC set: user pages are open to it"
        ));
    }
}

/// What this processor's registers of tables and of the system call name.
fn tables(note: &mut dyn FnMut(Arguments<'_>)) {
    let (mut gdt, mut idt) = (Pointer(0, 0), Pointer(0, 0));
    let task: u64;
    // SAFETY: the instructions store registers into the variables, and change nothing else.
    unsafe {
        asm!("sgdt [{gdt}]", "sidt [{idt}]", "str {task:r}", gdt = in(reg) &raw mut gdt,
             idt = in(reg) &raw mut idt, task = out(reg) task, options(nostack, preserves_flags));
    }
    // SAFETY: the registers exist on x86-64.
    let registers = [msr::LSTAR, msr::STAR, msr::SFMASK].map(|number| unsafe { read_msr(number) });
    let [entry, selectors, mask] = registers;
    let table = [
        ("the table of segments", gdt.1, descriptors::gdt_base()),
        ("the table of vectors", idt.1, descriptors::IDT_PAGE),
        ("the task register", task, u64::from(descriptors::TSS_SELECTOR)),
        ("LSTAR", entry, descriptors::entry()),
        ("STAR", selectors, descriptors::SELECTORS),
        ("SFMASK", mask, descriptors::SFMASK),
    ];
    for (name, is, expected) in table {
        if is != expected {
            note(format_args!("{name} is {is:#x}, and the kernel has set {expected:#x}"));
        }
    }
}
