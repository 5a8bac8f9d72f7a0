//! Instructions that the compiler does not make.

use core::arch::asm;
use core::sync::atomic::AtomicU64;

use abi::syscall::exregs;
use abi::{Fpage, ThreadId};
use runtime::section::Section;
use runtime::syscall;

/// Keeps `word` in a vector register while `cell` counts up to `count`; what is in the register
/// afterwards.
pub fn hold(word: u64, cell: &AtomicU64, count: u64) -> u64 {
    let seen;
    // SAFETY: the compiler keeps nothing in vector registers, and the cell is this program's.
    unsafe {
        asm!("movq xmm9, {word}", "2: pause", "lock inc qword ptr [{cell}]", "dec {count}",
            "jnz 2b", "movq {seen}, xmm9", word = in(reg) word, cell = in(reg) cell.as_ptr(),
            count = inout(reg) count => _, seen = out(reg) seen, options(nostack));
    }
    seen
}

/// Takes a flexpage from this task and from all that have it from it.
pub fn flush(fpage: Fpage) {
    const FLUSH: u64 = 1 << 6;
    // SAFETY: nothing of the program's is in the page.
    let _ =
        unsafe { syscall::unmap(FLUSH, runtime::utcb::pointer(), [fpage.0, 0, 0, 0, 0, 0, 0, 0]) };
}

/// Halts `thread`, or lets it go on.
pub fn halt(thread: ThreadId, is: bool) {
    let control = exregs::HALT_VALID | if is { exregs::HALT } else { 0 };
    let registers = syscall::ThreadRegisters { control, ..Default::default() };
    // SAFETY: the thread goes on where it was.
    let _ = unsafe { syscall::exchange_registers(thread.0, registers) };
}

/// Reads the byte at `address`.
pub fn read(address: u64) -> u8 {
    // SAFETY: the address is in a page that the test has mapped, or the thread faults.
    unsafe { (address as *const u8).read_volatile() }
}

/// Reads a port.
pub fn read_port(port: u16) -> u8 {
    let value;
    // SAFETY: the task has the port, or the thread faults.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, nomem)) };
    value
}

/// Leaves something in a vector register.
pub fn leave(word: u64) {
    // SAFETY: as in `hold`.
    unsafe { asm!("movq xmm9, {}", in(reg) word, options(nostack)) };
}

/// Returns from an interrupt, which a program may not do in this way: the emulator takes the words on
/// the stack as the processor's own, and faults; others take them and find no such code segment.
pub fn return_from_nothing() -> ! {
    // SAFETY: nothing of the program's goes on behind it.
    unsafe { asm!("iretq", options(noreturn)) }
}

/// Word `index` of the UTCB at `pointer`.
pub fn read_utcb(pointer: u64, index: isize) -> u64 {
    // SAFETY: a word of this program's own UTCBs.
    unsafe { (pointer as *const u64).offset(index).read_volatile() }
}

/// Writes `value` to word `index` of the UTCB at `pointer`.
pub fn write_utcb(pointer: u64, index: isize, value: u64) {
    // SAFETY: a word of a UTCB of this program, which the kernel and stubs read as a word.
    unsafe { (pointer as *mut u64).offset(index).write_volatile(value) };
}

/// Says that the thread with the local id `word` runs.
pub fn write_current_word(word: u64) {
    // SAFETY: GS base points to a word that is there for this.
    unsafe { asm!("mov gs:[0], {}", in(reg) word, options(nostack)) };
}

/// Makes every further instruction of this thread an exception.
pub fn step() {
    // SAFETY: the handler lets the thread go on.
    unsafe { asm!("pushfq", "or dword ptr [rsp], 0x100", "popfq") };
}

/// The section of the thread whose local id is `thread`, which runs `hidden::serve_section`.
pub fn section(thread: u64) -> Section<(u64, u64)> {
    // SAFETY: it serves such a value.
    unsafe { Section::of(ThreadId(thread)) }
}
