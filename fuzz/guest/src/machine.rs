//! The unsafe floor: raw memory, raw instructions, raw calls of the judge.

use core::arch::asm;

use abi::ThreadId;
use runtime::layout;
use runtime::syscall::{self, ThreadRegisters};

unsafe extern "C" {
    fn baton_thread_start();
    fn fuzz_vectors(word: u64);
    fn fuzz_start();
    fn fuzz_started();
}

/// Where a thread starts whose stack holds an argument and a function.
#[must_use]
pub fn start_address() -> u64 {
    baton_thread_start as *const () as u64
}

/// Lets whatever is mapped arrive during `run`, for a thread in which nothing else is in use.
pub fn accepting_everything(run: impl FnOnce()) -> ! {
    // SAFETY: only tasks that exhaust accept so, from each other; they map the memory of
    // `exhaust` where no program has anything.
    unsafe { runtime::accept::everything(run) };
    runtime::thread::park()
}

/// Where a hostile thread starts, likewise.
#[must_use]
pub fn hostile_start() -> u64 {
    fuzz_start as *const () as u64
}

/// Whether a hostile thread at `ip` has only just started.
#[must_use]
pub fn is_starting(ip: u64) -> bool {
    (hostile_start()..=fuzz_started as *const () as u64).contains(&ip)
}

/// Reads the word at `address`, whatever comes of it.
pub fn read(address: u64) -> u64 {
    let value;
    // SAFETY: the judge names mapped memory; a hostile thread may fault.
    unsafe { asm!("mov {}, [{}]", out(reg) value, in(reg) address, options(nostack, readonly)) };
    value
}

/// Writes the word at `address`, whatever comes of it.
pub fn write(address: u64, value: u64) {
    // SAFETY: as in `read`.
    unsafe { asm!("mov [{}], {}", in(reg) address, in(reg) value, options(nostack)) };
}

/// Writes the word at GS base: U of whoever runs, or the space's current word for threads that
/// exchange messages in user mode.
pub fn write_current_word(value: u64) {
    // SAFETY: hostile by intention: GS base points to a UTCB of this space, which holds words only,
    // and the task's own uses of the word take any value.
    unsafe { asm!("mov gs:[0], {}", in(reg) value, options(nostack)) };
}

/// Makes all of this program's pages present, so that the judge never faults.
pub fn touch_image() {
    let (low, high) = layout::image();
    for page in (low..high).step_by(4096) {
        let _ = read(page);
    }
}

/// The time stamp counter.
#[must_use]
pub fn ticks() -> u64 {
    // SAFETY: RDTSC changes two registers.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The system clock by the kernel's stub, µs.
#[must_use]
pub fn now_us() -> u64 {
    runtime::clock::now_us()
}

/// ExchangeRegisters; whether the thread was found, and the old values.
pub fn exchange(dest: ThreadId, regs: ThreadRegisters) -> (bool, ThreadRegisters) {
    // SAFETY: the judge writes registers of hostile threads only.
    let (id, old) = unsafe { syscall::exchange_registers(dest.0, regs) };
    (id != 0, old)
}

/// Executes the instruction number `index`, and comes back if it lets it.
pub fn misbehave(index: u64, word: u64) {
    // SAFETY: hostile threads only: whatever happens becomes a message to the judge.
    unsafe {
        match index {
            0 => asm!("ud2"),
            1 => asm!("int3"),
            2 => asm!("div {0:r}", in(reg) 0u64, inout("rax") 1u64 => _, inout("rdx") 0u64 => _),
            3 => asm!("int 0x20"),
            4 => asm!("hlt"),
            5 => asm!("cli"),
            6 => asm!("mov cr3, {}", in(reg) word),
            7 => asm!("out dx, al", in("dx") word as u16, in("al") 0u8),
            8 => asm!("in eax, dx", in("dx") word as u16, out("eax") _),
            9 => asm!("wrmsr", in("ecx") word as u32, in("eax") 0, in("edx") 0),
            10 => asm!("push {}", "popfq", in(reg) word & 0x25_4DD5 | 2),
            11 => asm!("wrgsbase {}", in(reg) word),
            12 => asm!("wrfsbase {}", in(reg) word),
            13 => asm!("mov ds, {0:x}", "mov es, {0:x}", in(reg) word),
            14 => asm!("mov fs, {0:x}", in(reg) word),
            15 => asm!("mov gs, {0:x}", in(reg) word),
            16 => asm!("fninit", "fld1", "fldz", "fdivp"),
            17 => asm!("jmp {}", in(reg) word),
            18 => asm!("lock nop", out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _),
            19 => asm!("xgetbv", in("ecx") 0, out("eax") _, out("edx") _),
            20 => asm!("sysenter"),
            21 => asm!("iretq"),
            22 => asm!("lgdt [{}]", in(reg) word),
            23 => {
                asm!("rep insb", inout("rdi") word => _, inout("rcx") 3u64 => _, in("dx") 0x80u16)
            }
            _ => asm!("ldmxcsr [{}]", in(reg) &0xFFFF_FFFFu32),
        }
    }
}

/// How many kinds of misbehaviour there are.
pub const MISDEEDS: u64 = 25;

/// Fills vector registers with `word`, or saves or loads them all at `place`, in the way number
/// `way`; comes back if the processor lets it.
pub fn use_vectors(way: u64, word: u64, place: u64) {
    let place = place & !63;
    // SAFETY: hostile threads only: nothing in them keeps anything in vector registers, and
    // what happens to their memory is their affair.
    unsafe {
        match way {
            0 => asm!("xsave64 [{}]", in(reg) place, in("eax") !0u32, in("edx") !0u32),
            1 => asm!("xsaveopt64 [{}]", in(reg) place, in("eax") !0u32, in("edx") !0u32),
            2 => asm!("xrstor64 [{}]", in(reg) place, in("eax") !0u32, in("edx") !0u32),
            // What was saved, with other registers and another word of what is in use.
            3 => asm!(
                "xsave64 [{place}]",
                "mov [{place} + 160], {word}",
                "mov [{place} + 416], {word}",
                "mov [{place} + 592], {word}",
                "mov byte ptr [{place} + 512], 7",
                "xrstor64 [{place}]",
                place = in(reg) place, word = in(reg) word, in("eax") 7, in("edx") 0
            ),
            4 => asm!("fxsave64 [{}]", in(reg) place),
            5 => asm!("fxrstor64 [{}]", in(reg) place),
            6 => asm!("vmovq xmm3, {0}", "vinsertf128 ymm3, ymm3, xmm3, 1", "vmovaps ymm9, ymm3",
                "vzeroupper", in(reg) word),
            7 => asm!("vzeroall"),
            8 => asm!("movq mm5, {0}", "fstp qword ptr [{1}]", in(reg) word, in(reg) place),
            9 => asm!("xsavec64 [{}]", in(reg) place, in("eax") !0u32, in("edx") !0u32),
            10 => asm!("xsetbv", in("ecx") 0, in("eax") word as u32, in("edx") 0),
            11 => asm!("xgetbv", in("ecx") 1, out("eax") _, out("edx") _),
            12 => asm!("xrstor64 [{}]", in(reg) place, in("eax") word as u32, in("edx") 0),
            13 => asm!("mov [{1}], {0:e}", "ldmxcsr [{1}]", in(reg) word & 0xFFBF, in(reg) place),
            14 => asm!("fninit", "fldpi", "mov [{1}], {0:x}", "fldcw [{1}]", "fld1", "fdivrp",
                in(reg) word, in(reg) place),
            _ => fuzz_vectors(word),
        }
    }
}

/// How many ways there are to use vector registers.
pub const VECTOR_WAYS: u64 = 20;
