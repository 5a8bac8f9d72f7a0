//! The stubs run on the host: a copy of the page with every `syscall` replaced
//! by two `nop`s, called with known registers, shows what the kernel would see
//! (in Ipc's case also what the user gets back).

use super::*;
use core::arch::asm;
use std::vec::Vec;

const PAGES: usize = 2 * 4096;
const SYSCALL: [u8; 2] = [0x0F, 0x05];

/// A stub page and a data page, executable and writable.
struct Copy(*mut u8);

/// The registers of the binding.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Registers {
    rax: u64,
    rbx: u64,
    rcx: u64,
    rdx: u64,
    rsi: u64,
    rdi: u64,
    rbp: u64,
    r8: u64,
    r9: u64,
    r10: u64,
    r11: u64,
    r12: u64,
    r13: u64,
    r14: u64,
    r15: u64,
}

core::arch::global_asm!(
    "call_stub:", // RDI: address, RSI: registers, in and out
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "push rsi",
    "push rdi",
    "mov rax, [rsi]",
    "mov rbx, [rsi + 8]",
    "mov rcx, [rsi + 16]",
    "mov rdx, [rsi + 24]",
    "mov rdi, [rsi + 40]",
    "mov rbp, [rsi + 48]",
    "mov r8, [rsi + 56]",
    "mov r9, [rsi + 64]",
    "mov r10, [rsi + 72]",
    "mov r11, [rsi + 80]",
    "mov r12, [rsi + 88]",
    "mov r13, [rsi + 96]",
    "mov r14, [rsi + 104]",
    "mov r15, [rsi + 112]",
    "mov rsi, [rsi + 32]",
    "call [rsp]",
    "push rsi",
    "mov rsi, [rsp + 16]",
    "mov [rsi], rax",
    "mov [rsi + 8], rbx",
    "mov [rsi + 16], rcx",
    "mov [rsi + 24], rdx",
    "mov [rsi + 40], rdi",
    "mov [rsi + 48], rbp",
    "mov [rsi + 56], r8",
    "mov [rsi + 64], r9",
    "mov [rsi + 72], r10",
    "mov [rsi + 80], r11",
    "mov [rsi + 88], r12",
    "mov [rsi + 96], r13",
    "mov [rsi + 104], r14",
    "mov [rsi + 112], r15",
    "pop rax",
    "mov [rsi + 32], rax",
    "pop rdi",
    "pop rsi",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
);

unsafe extern "C" {
    fn call_stub(address: *const u8, registers: *mut Registers);
}

impl Copy {
    fn new() -> Self {
        let place: *mut u8;
        // SAFETY: mmap (9) of two fresh pages, rwx, private and anonymous: touches nothing else.
        unsafe {
            asm!("syscall", inlateout("rax") 9_u64 => place, in("rdi") 0, in("rsi") PAGES, in("rdx") 7,
                in("r10") 0x22, in("r8") -1_i64, in("r9") 0, out("rcx") _, out("r11") _);
        }
        assert!((place as i64) > 0, "mmap refused two executable pages");
        let mut code: Vec<u8> = page().to_vec();
        for at in traps() {
            code[at..at + 2].copy_from_slice(&[0x90, 0x90]);
        }
        // SAFETY: the pages were just mapped and are large enough.
        unsafe { core::ptr::copy_nonoverlapping(code.as_ptr(), place, code.len()) };
        Self(place)
    }

    fn call(&self, index: u64, mut registers: Registers) -> Registers {
        let offset = (index * layout::STUB_SIZE) as usize;
        // SAFETY: a stub of the copied page, which only touches the UTCB words
        // that the registers name, and `call_stub` keeps what the ABI wants kept.
        unsafe { call_stub(self.0.add(offset), &mut registers) };
        registers
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // SAFETY: munmap (11) of the pages that `new` mapped; nobody uses them any more.
        unsafe {
            asm!("syscall", inlateout("rax") 11_u64 => _, in("rdi") self.0, in("rsi") PAGES, out("rcx") _, out("r11") _);
        }
    }
}

/// Offsets of all `syscall` instructions (no other instruction contains the pair).
fn traps() -> Vec<usize> {
    (0..4095).filter(|at| page()[*at..at + 2] == SYSCALL).collect()
}

/// A UTCB whose thread has global id `id`, and its local id.
#[repr(C, align(1024))]
struct Utcb([u64; 128]);

impl Utcb {
    fn new(id: u64) -> Self {
        let mut utcb = Self([0; 128]);
        utcb.0[(64 + abi::utcb::MY_GLOBAL_ID) as usize] = id;
        utcb
    }

    fn local(&self) -> u64 {
        &raw const self.0[64] as u64
    }
}

const REGISTERS: Registers = Registers {
    rax: 0xA1,
    rbx: 0xB1,
    rcx: 0xC1,
    rdx: 0xD1,
    rsi: 0x51,
    rdi: 0x1D1,
    rbp: 0xB2,
    r8: 0x81,
    r9: 0x91,
    r10: 0x101,
    r11: 0x111,
    r12: 0x121,
    r13: 0x131,
    r14: 0x141,
    r15: 0x151,
};

#[test]
fn one_trap_per_stub_where_the_kernel_expects_it() {
    let stubs: Vec<u64> = traps().iter().map(|at| *at as u64 / layout::STUB_SIZE).collect();
    let local =
        [stub::LOCAL_CALL, stub::LOCAL_REPLY_WAIT, stub::LOCAL_CALL_ONE, stub::LOCAL_ONWARD];
    let user = [[stub::SYSTEM_CLOCK, stub::SECTION_ENTER].as_slice(), &local].concat();
    // The message of LOCAL_SLOW is in its first place, the question in the second; SECTION_RUN has one in its first.
    let is_one = |index: &u64| !user.contains(index) && *index != stub::SECTION_RUN + 1;
    let expected: Vec<u64> = (0..stub::COUNT).filter(is_one).collect();
    assert_eq!(stubs, expected);
    assert_eq!(ipc_trap(), layout::STUBS + traps()[0] as u64);
    assert_eq!(lipc_trap(), layout::STUBS + traps()[1] as u64);
}

#[test]
fn ipc_turns_local_ids_into_global_ones_and_touches_nothing_else() {
    let (to, from) = (Utcb::new(0x77_0000_0001), Utcb::new(0x88_0000_0041));
    let copy = Copy::new();
    let cases = [
        (to.local(), 0x77_0000_0001),
        (0, 0),
        (!0, !0),
        (0xFFFF_FFFF_FFFF_FFC0, 0xFFFF_FFFF_FFFF_FFC0),
        (0x50_0000_0002, 0x50_0000_0002),
    ];
    for index in [stub::IPC, stub::LIPC] {
        for (rsi, expected) in cases {
            let registers = Registers { rsi, rdx: from.local(), ..REGISTERS };
            assert_eq!(
                copy.call(index, registers),
                Registers { rsi: expected, rdx: 0x88_0000_0041, ..registers }
            );
            let registers = Registers { rdx: rsi, ..REGISTERS };
            assert_eq!(copy.call(index, registers), Registers { rdx: expected, ..registers });
        }
    }
}

#[test]
fn the_other_calls_say_their_number() {
    let copy = Copy::new();
    let unmoved = |call: Call| Registers { r8: (call as u64).wrapping_neg(), ..REGISTERS };
    // The kernel's entry needs RDI; its argument travels in R14.
    let plain = |call: Call| Registers { r14: REGISTERS.rdi, ..unmoved(call) };
    let moved = |call: Call| Registers { r12: 0x81, ..plain(call) };
    let cases = [
        (stub::EXCHANGE_REGISTERS, moved(Call::ExchangeRegisters)),
        (stub::THREAD_CONTROL, moved(Call::ThreadControl)),
        (stub::THREAD_SWITCH, plain(Call::ThreadSwitch)),
        (stub::SCHEDULE, moved(Call::Schedule)),
        (stub::UNMAP, unmoved(Call::Unmap)),
        (stub::SPACE_CONTROL, moved(Call::SpaceControl)),
        (stub::PROCESSOR_CONTROL, moved(Call::ProcessorControl)),
        (stub::QUOTA_CONTROL, plain(Call::QuotaControl)),
        (stub::INSPECT, plain(Call::Inspect)),
        (stub::THREAD_STATE, plain(Call::ThreadState)),
        (stub::TASK_CONTROL, plain(Call::TaskControl)),
        (stub::CREATE_THREAD, moved(Call::CreateThread)),
    ];
    for (index, expected) in cases {
        let seen = copy.call(index, REGISTERS);
        assert_eq!(seen, expected, "stub {index}");
        assert!(Call::decode(seen.r8).is_some());
    }
}

#[test]
fn local_ids_are_converted_where_the_interface_says() {
    let utcb = Utcb::new(0x99_0000_0003);
    let (copy, local, global) = (Copy::new(), utcb.local(), 0x99_0000_0003);
    let with = |index, registers| copy.call(index, registers);
    assert_eq!(with(stub::EXCHANGE_REGISTERS, Registers { rax: local, ..REGISTERS }).rax, local);
    assert_eq!(with(stub::EXCHANGE_REGISTERS, Registers { rdi: local, ..REGISTERS }).rdi, local);
    let seen = with(
        stub::THREAD_CONTROL,
        Registers { rdi: local, rsi: local, rdx: local, r8: local, ..REGISTERS },
    );
    assert_eq!((seen.rdi, seen.rsi, seen.rdx, seen.r12), (local, global, global, global));
    assert_eq!(with(stub::THREAD_CONTROL, Registers { r8: 0, ..REGISTERS }).r12, 0);
    assert_eq!(with(stub::THREAD_SWITCH, Registers { rdi: local, ..REGISTERS }).rdi, global);
    assert_eq!(with(stub::THREAD_SWITCH, Registers { rdi: 0, ..REGISTERS }).rdi, 0);
    assert_eq!(with(stub::SCHEDULE, Registers { rdi: local, ..REGISTERS }).rdi, global);
    let seen = with(stub::SPACE_CONTROL, Registers { rdi: local, r9: local, ..REGISTERS });
    assert_eq!((seen.rdi, seen.r9), (local, global));
    assert_eq!(with(stub::QUOTA_CONTROL, Registers { rdi: local, ..REGISTERS }).rdi, global);
}

#[test]
fn memory_control_stores_the_message_and_answers_in_rdx() {
    let utcb = Utcb::new(1);
    let registers = Registers { rdi: utcb.local(), ..REGISTERS };
    let seen = Copy::new().call(stub::MEMORY_CONTROL, registers);
    // SAFETY: reads the UTCB that the stub wrote behind the compiler's back.
    let stored: [u64; 8] =
        core::array::from_fn(|mr| unsafe { utcb.0.as_ptr().add(64 + mr).read_volatile() });
    assert_eq!(stored, [0x91, 0xA1, 0xB1, 0x101, 0x121, 0x131, 0x141, 0x151]);
    assert_eq!((seen.rbp, seen.rsi, seen.r12, seen.r13), (0xC1, 0x51, 0x81, 0x111), "attributes");
    assert_eq!(seen.r8, (Call::MemoryControl as u64).wrapping_neg());
    // The trap returned RAX unchanged here: the result goes to RDX, MR0 and MR1 come back.
    assert_eq!((seen.rdx, seen.rcx, seen.rax), (0xA1, 0x91, 0xA1));
}

#[test]
fn the_clock_is_the_counter_times_the_multiplier_plus_the_offset() {
    let copy = Copy::new();
    let (multiplier, offset) = (crate::arch::clock::multiplier(2_000_000_000), 5_000_000);
    // SAFETY: the data page of the copy.
    unsafe {
        let data = copy.0.add(4096);
        data.add(offset_of!(ClockPage, multiplier)).cast::<u64>().write(multiplier);
        data.add(offset_of!(ClockPage, offset_us)).cast::<u64>().write(offset);
    }
    let us =
        || crate::arch::clock::ticks_to_us(crate::arch::x86_64::cpu::ticks(), multiplier) + offset;
    let before = us();
    let seen = copy.call(stub::SYSTEM_CLOCK, REGISTERS);
    assert!((before..=us()).contains(&seen.rax));
    assert_eq!(Registers { rax: 0, rdx: 0, ..seen }, Registers { rax: 0, rdx: 0, ..REGISTERS });
}
