//! Instructions that the compiler does not make: of the vector unit, which this program uses by
//! hand only, single steps, lies.

use core::arch::asm;

/// The sum of two words, by the vector unit. Waits in between, for interrupts.
pub fn vector_sum(one: u64, other: u64) -> u64 {
    let sum;
    // SAFETY: the compiler keeps nothing in vector registers.
    unsafe {
        asm!("movq xmm5, {one}", "movq xmm6, {other}", "mov {count}, 40",
            "2: dec {count}", "jnz 2b",
            "paddq xmm5, xmm6", "movq {sum}, xmm5",
            one = in(reg) one, other = in(reg) other, count = out(reg) _, sum = out(reg) sum,
            options(nostack));
    }
    sum
}

/// Leaves `word` in a vector register.
pub fn hold(word: u64) {
    // SAFETY: as in `vector_sum`.
    unsafe { asm!("movq xmm8, {}", in(reg) word, options(nostack)) };
}

/// What [`hold`] has left.
pub fn held() -> u64 {
    let word;
    // SAFETY: as in `vector_sum`.
    unsafe { asm!("movq {}, xmm8", out(reg) word, options(nostack)) };
    word
}

/// Leaves something in vector registers that this program uses.
pub fn fill_vectors(word: u64) {
    // SAFETY: as in `vector_sum`.
    unsafe {
        asm!("movq xmm5, {0}", "movq xmm6, {0}", "movq xmm7, {0}", "movq xmm8, {0}",
            in(reg) word, options(nostack));
    }
}

/// Whether a vector register holds what was put there a while ago.
pub fn vectors_last(word: u64) -> bool {
    let seen: u64;
    // SAFETY: as in `vector_sum`.
    unsafe {
        asm!("movq xmm7, {word}", "mov {count}, 60", "2: dec {count}", "jnz 2b", "movq {seen}, xmm7",
            word = in(reg) word, count = out(reg) _, seen = out(reg) seen, options(nostack));
    }
    seen == word
}

/// MXCSR and the x87 control word.
pub fn controls() -> (u32, u16) {
    let (mut mxcsr, mut control) = (0_u32, 0_u16);
    // SAFETY: both instructions only store.
    unsafe {
        asm!("stmxcsr [{}]", "fnstcw [{}]", in(reg) &raw mut mxcsr, in(reg) &raw mut control,
            options(nostack));
    }
    (mxcsr, control)
}

/// Sets them, with nothing pending in either unit.
pub fn set_controls((mxcsr, control): (u32, u16)) {
    // SAFETY: the compiler uses neither unit.
    unsafe {
        asm!("fninit", "fldcw [{}]", "ldmxcsr [{}]", in(reg) &raw const control,
            in(reg) &raw const mxcsr, options(nostack));
    }
}

/// Divides by zero: with an x87 control word that does not mask that, the next instruction of that
/// unit that waits for it would be an exception.
pub fn divide_by_zero() {
    // SAFETY: as in `set_controls`.
    unsafe { asm!("fld1", "fldz", "fdivp", options(nostack)) };
}

/// Takes the page of `address` from this task. The initial pager gives it back with what was in it.
pub fn flush(address: u64) {
    let page = abi::Fpage::memory(address & !4095, 12, abi::Rights::RWX);
    // SAFETY: whoever touches the page gets it back.
    unsafe {
        runtime::syscall::unmap(0x40, runtime::utcb::pointer(), [page.0, 0, 0, 0, 0, 0, 0, 0])
    };
}

/// Reads a byte of the page at `address`: its pager brings it.
pub fn touch(address: u64) {
    // SAFETY: the page is this program's, and nothing is done with what it holds.
    unsafe { (address as *const u8).read_volatile() };
}

/// An address on this thread's stack.
pub fn stack() -> u64 {
    let here = 0_u64;
    core::hint::black_box(&raw const here) as u64
}

/// Makes every further instruction of this thread an exception.
pub fn step() {
    // SAFETY: the handler lets the thread go on.
    unsafe { asm!("pushfq", "or dword ptr [rsp], 0x100", "popfq") };
}

/// Says that the thread with the local id `word` runs.
pub fn write_current_word(word: u64) {
    // SAFETY: GS base points to a word that is there for this.
    unsafe { asm!("mov gs:[0], {}", in(reg) word, options(nostack)) };
}

/// The current word.
pub fn current_word() -> u64 {
    let word;
    // SAFETY: as in `write_current_word`.
    unsafe { asm!("mov {}, gs:[0]", out(reg) word, options(nostack)) };
    word
}

/// Goes to `address` with the registers of a local call of `partner`, which are also those of entering
/// its section.
pub fn jump(address: u64, partner: u64) -> ! {
    let own = runtime::utcb::pointer();
    // SAFETY: hostile by intention: the thread may do anything that its task may.
    unsafe {
        asm!("mov rbx, rdi", "mov rbp, rsi", "call r11", "ud2",
            in("r11") address, in("rdi") own, in("rsi") partner,
            in("rdx") partner, in("r8") 0, in("r9") 2, in("rax") 1, in("r10") 2, in("rcx") 3,
            options(noreturn));
    }
}

/// Word `index` of the UTCB at `pointer`.
pub fn read_utcb(pointer: u64, index: isize) -> u64 {
    // SAFETY: a word of this program's own UTCBs.
    unsafe { (pointer as *const u64).offset(index).read_volatile() }
}

/// Writes `value` to word `index` of the UTCB at `utcb`.
pub fn write_utcb(utcb: u64, index: isize, value: u64) {
    let word = utcb.wrapping_add_signed(index as i64 * 8) as *mut u64;
    // SAFETY: a word of a UTCB of this program, which the kernel and stubs read as a word.
    unsafe { word.write_volatile(value) };
}
