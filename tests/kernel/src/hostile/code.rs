//! Privileged instructions, software interrupts, selectors, odd flags, odd stacks.

use abi::layout::stub;
use abi::protocol::exception as reg;
use abi::{Fpage, MapItem, Rights, ThreadId, utcb};

use super::canary::Canary;
use crate::memory::{PLACE, page, place};
use crate::report::{Outcome, Sentence, case};
use crate::victim::{Event, LOAD, Registers, SPIN, Victim, registers};
use crate::{check, machine, same, world};

/// Runs the tests.
pub fn run() {
    case("privileged_instructions_are_exceptions", privileged);
    case("every_software_interrupt_is_an_exception", software_interrupts);
    case("there_is_no_32_bit_mode", compatibility_mode);
    case("selectors_disturb_nobody", selectors);
    case("base_registers_disturb_nobody", bases);
    case("flags_before_system_calls", flags);
    case("stack_pointers_of_any_kind", stacks);
    case("syscall_at_the_last_address", last_address);
    case("strings_from_device_memory", device_strings);
}

fn privileged() -> Outcome {
    let mut canary = Canary::start()?;
    let victim = Victim::task()?;
    let cases: [(&str, &[u8]); 29] = [
        ("hlt", &[0xF4]),
        ("cli", &[0xFA]),
        ("sti", &[0xFB]),
        ("clts", &[0x0F, 0x06]),
        ("invd", &[0x0F, 0x08]),
        ("wbinvd", &[0x0F, 0x09]),
        ("rdmsr", &[0x0F, 0x32]),
        ("wrmsr", &[0x0F, 0x30]),
        ("rdpmc", &[0x0F, 0x33]),
        ("mov rax, cr0", &[0x0F, 0x20, 0xC0]),
        ("mov cr0, rax", &[0x0F, 0x22, 0xC0]),
        ("mov rax, cr2", &[0x0F, 0x20, 0xD0]),
        ("mov cr3, rax", &[0x0F, 0x22, 0xD8]),
        ("mov cr4, rax", &[0x0F, 0x22, 0xE0]),
        ("mov cr8, rax", &[0x44, 0x0F, 0x22, 0xC0]),
        ("mov dr7, rax", &[0x0F, 0x23, 0xF8]),
        ("mov rax, dr0", &[0x0F, 0x21, 0xC0]),
        ("lgdt", &[0x0F, 0x01, 0x13]),
        ("lidt", &[0x0F, 0x01, 0x1B]),
        ("lmsw", &[0x0F, 0x01, 0xF0]),
        ("lldt", &[0x0F, 0x00, 0xD0]),
        ("ltr", &[0x0F, 0x00, 0xD8]),
        ("invlpg", &[0x0F, 0x01, 0x3B]),
        ("swapgs", &[0x0F, 0x01, 0xF8]),
        ("sysret", &[0x48, 0x0F, 0x07]),
        ("sysexit", &[0x0F, 0x35]),
        ("sysenter", &[0x0F, 0x34]),
        ("xsetbv", &[0x0F, 0x01, 0xD1]),
        ("monitor", &[0x0F, 0x01, 0xC8]),
    ];
    for (name, code) in cases {
        let mut regs = registers();
        regs[reg::RBX] = victim.data();
        match victim.run(code, regs)? {
            Event::Exception(seen) => check!(
                seen[reg::RIP] == victim.code() && matches!(seen[reg::VECTOR], 6 | 13),
                "{name} raised vector {} at offset {:#x}",
                seen[reg::VECTOR],
                seen[reg::RIP].wrapping_sub(victim.code())
            ),
            other => return Err(Sentence::new(format_args!("{name} led to {other:x?}"))),
        }
        victim.abandon()?;
    }
    for code in [&[0xEC][..], &[0xE6, 0x20], &[0xEF], &[0xF3, 0x6C], &[0x66, 0xF3, 0x6F]] {
        check!(
            matches!(victim.run(code, registers())?, Event::IoFault(..)),
            "an I/O instruction {code:x?} did not fault"
        );
        victim.abandon()?;
    }
    canary.well()?;
    victim.delete()?;
    canary.end()
}

fn software_interrupts() -> Outcome {
    let canary = Canary::start()?;
    let victim = Victim::task()?;
    for vector in 0..=255u8 {
        match victim.run(&[0xCD, vector], registers())? {
            Event::Exception(seen) => check!(
                seen[reg::VECTOR] == 13
                    && crate::victim::is_gate_error(seen[reg::ERROR], u64::from(vector)),
                "int {vector} raised vector {} with error {:#x}",
                seen[reg::VECTOR],
                seen[reg::ERROR]
            ),
            other => return Err(Sentence::new(format_args!("int {vector} led to {other:x?}"))),
        }
        victim.abandon()?;
    }
    victim.delete()?;
    canary.end()
}

/// Far jumps to every selector: `jmp far [rbx]`, a 32-bit offset and the selector.
fn compatibility_mode() -> Outcome {
    let canary = Canary::start()?;
    let victim = Victim::task()?;
    // What a 32-bit segment would run: `syscall`, from which there is no way to the kernel's entry.
    machine::write_bytes(victim.data(), &[0x0F, 0x05, 0xCC]);
    for selector in [0x1B].into_iter().chain(0..=0x47u64) {
        machine::write(victim.data() + 64, selector << 32 | victim.data());
        let mut regs = registers();
        regs[reg::RBX] = victim.data() + 64;
        let event = victim.run(&[0xFF, 0x2B], regs)?;
        let Event::Exception(seen) = event else {
            return Err(Sentence::new(format_args!(
                "a far jump to selector {selector:#x} led to {event:x?}"
            )));
        };
        if selector & !3 == 0x28 {
            same!("where the user's own selector leads", seen[reg::RIP], victim.data() + 2);
        } else {
            same!("the place of the exception", seen[reg::RIP], victim.code());
            check!(
                matches!(seen[reg::VECTOR], 11 | 13),
                "selector {selector:#x} raised vector {}",
                seen[reg::VECTOR]
            );
            same!("the selector in the error code", seen[reg::ERROR], selector & !3);
        }
        victim.abandon()?;
    }
    victim.delete()?;
    canary.end()
}

fn selectors() -> Outcome {
    let mut canary = Canary::start()?;
    let victim = Victim::task()?;
    // mov ds/es/fs/gs/ss, eax
    for modrm in [0xD8u8, 0xC0, 0xE0, 0xE8, 0xD0] {
        for selector in (0..=0x47u64).chain([0xFFFF, 0x1000, 0x2C, 0x34]) {
            let mut regs = registers();
            regs[reg::RAX] = selector;
            let Event::Exception(seen) = victim.run(&[0x8E, modrm], regs)? else {
                return Err(Sentence::new(format_args!(
                    "loading selector {selector:#x} led to no exception"
                )));
            };
            let parked = seen[reg::RIP] == victim.code() + 2;
            check!(
                parked || matches!(seen[reg::VECTOR], 11..=13),
                "selector {selector:#x} raised vector {}",
                seen[reg::VECTOR]
            );
            victim.abandon()?;
            same!("MyGlobalId by %gs after a load", gs_word(&victim)?, victim.utcb);
        }
    }
    canary.well()?;
    victim.delete()?;
    canary.end()
}

/// What the victim reads at `%gs:0`.
fn gs_word(victim: &Victim) -> Outcome<u64> {
    Ok(victim.exec(&[0x65, 0x48, 0x8B, 0x04, 0x25, 0, 0, 0, 0], registers())?[reg::RAX])
}

fn bases() -> Outcome {
    let mut canary = Canary::start()?;
    let victim = Victim::task()?;
    // wrgsbase rbx; jmp self, and wrfsbase rbx; jmp self
    for code in [
        &[0xF3, 0x48, 0x0F, 0xAE, 0xDB, 0xEB, 0xFE][..],
        &[0xF3, 0x48, 0x0F, 0xAE, 0xD3, 0xEB, 0xFE],
    ] {
        for base in [0, 0x1000, 0xFFFF_8000_0000_0000, PLACE] {
            let mut regs = registers();
            regs[reg::RBX] = base;
            victim.begin(code, regs)?;
            canary.well()?;
            same!("the UTCB pointer here", runtime::utcb::my_global_id(), ThreadId::ROOT);
            victim.abandon()?;
            same!("the victim's own %gs:0 afterwards", gs_word(&victim)?, victim.utcb);
        }
    }
    victim.delete()?;
    canary.end()
}

fn flags() -> Outcome {
    let canary = Canary::start()?;
    let victim = Victim::task()?;
    // RCX: flags to load, RBP: a stub. push rcx; popfq; call rbp; pushfq; pop r11
    let code = [0x51, 0x9D, 0xFF, 0xD5, 0x9C, 0x41, 0x5B];
    let (direction, nested, alignment, identification) = (1 << 10, 1 << 14, 1 << 18, 1 << 21);
    for bits in [
        direction,
        nested,
        alignment,
        identification,
        0x3000,
        direction | nested | alignment | identification | 0x8D5,
    ] {
        for stub in [
            stub::IPC,
            stub::THREAD_SWITCH,
            stub::SCHEDULE,
            stub::SYSTEM_CLOCK,
            stub::UNMAP,
            stub::EXCHANGE_REGISTERS,
        ] {
            let mut regs = registers();
            (regs[reg::RCX], regs[reg::RBP], regs[reg::RDI]) =
                (bits | 0x202, abi::layout::stub_address(stub), victim.utcb);
            let seen = victim.exec(&code, regs)?;
            let kept = direction | nested | alignment | identification;
            same!("the flags after a call", seen[reg::R11] & kept, bits & kept);
            same!("IOPL and IF after a call", seen[reg::R11] & 0x3200, 0x200);
            clear(&victim)?;
        }
    }
    trap_flag(&victim)?;
    victim.delete()?;
    canary.end()
}

/// Resets the flags that only the thread itself can.
fn clear(victim: &Victim) -> Outcome {
    let mut regs = registers();
    regs[reg::RCX] = 0x202;
    victim.exec(&[0x51, 0x9D], regs).map(|_| ())
}

/// Single-stepping over `syscall`: each stop is at user level.
fn trap_flag(victim: &Victim) -> Outcome {
    let mut regs = registers();
    (regs[reg::RCX], regs[reg::RBP]) = (0x302, abi::layout::stub_address(stub::THREAD_SWITCH));
    victim.begin(&[0x51, 0x9D, 0xFF, 0xD5, 0x6A, 0x02, 0x9D], regs)?;
    for _ in 0..60 {
        match victim.event() {
            Event::Exception(regs) if regs[reg::VECTOR] == 1 => {
                let user =
                    regs[reg::RIP] < abi::layout::USER_END || regs[reg::RIP] >= abi::layout::STUBS;
                check!(user, "a step stopped at {:#x}", regs[reg::RIP]);
                victim.answer(&runtime::Msg::new(0))?;
            }
            Event::Exception(regs) => {
                same!("where the stepping ended", regs[reg::RIP], victim.code() + 7);
                return Ok(());
            }
            other => {
                return Err(Sentence::new(format_args!(
                    "a step over a system call led to {other:x?}"
                )));
            }
        }
    }
    Err(Sentence::new(format_args!("stepping over a system call did not end")))
}

fn stacks() -> Outcome {
    let mut canary = Canary::start()?;
    let victim = Victim::task()?;
    for sp in [
        8u64,
        1,
        0x7FFF_FFFF_FFFF,
        0x8000_0000_0000,
        0xFFFF_8000_0000_0000,
        0xFFFF_FFFF_A000_0400,
        1 << 63,
        !0,
        !7,
    ] {
        for code in [
            &[0x0F, 0x05][..],
            &[0x0F, 0x0B],
            &[0x50],
            &[0xCC],
            &[0xF0, 0x90],
            &[0x48, 0xCF],
            &[0x9D],
        ] {
            let mut regs = registers();
            (regs[reg::RSP], regs[reg::R8], regs[reg::RDI]) =
                (sp, 4u64.wrapping_neg(), victim.utcb);
            match victim.run(code, regs)? {
                Event::Exception(seen) => check!(
                    seen[reg::VECTOR] <= 14,
                    "SP {sp:#x} raised vector {}",
                    seen[reg::VECTOR]
                ),
                Event::PageFault(fault) => {
                    check!(fault.ip == victim.code(), "SP {sp:#x} led to {fault:x?}")
                }
                other => {
                    return Err(Sentence::new(format_args!(
                        "SP {sp:#x} and code {code:x?} led to {other:x?}"
                    )));
                }
            }
            victim.abandon()?;
        }
        canary.well()?;
    }
    // A timer interrupt finds any stack pointer.
    for sp in [0xFFFF_8000_0000_0000u64, 1 << 63] {
        let mut regs = registers();
        regs[reg::RSP] = sp;
        victim.begin(SPIN, regs)?;
        canary.well()?;
        victim.abandon()?;
    }
    victim.delete()?;
    canary.end()
}

fn last_address() -> Outcome {
    let canary = Canary::start()?;
    let victim = Victim::task()?;
    let last = abi::layout::USER_END - 4096;
    machine::write_bytes(page(6)?, &[0x0F, 0x0B]);
    place(&victim, MapItem::map(Fpage::memory(page(6)?, 12, Rights::RWX), last), LOAD, last)?;
    // `syscall` as the very last two bytes: it returns to the page that is never mapped.
    machine::write_bytes(page(6)? + 4094, &[0x0F, 0x05]);
    let mut regs: Registers = registers();
    (regs[reg::RIP], regs[reg::R8], regs[reg::RDI]) =
        (last + 4094, 4u64.wrapping_neg(), victim.utcb);
    for sp in [0, 1 << 63] {
        regs[reg::RSP] = sp;
        victim.go(regs)?;
        match victim.event() {
            Event::PageFault(fault) => {
                same!("where it returned to", (fault.address, fault.ip), (last + 4096, last + 4096))
            }
            other => {
                return Err(Sentence::new(format_args!(
                    "syscall at the last address led to {other:x?}"
                )));
            }
        }
        victim.abandon()?;
    }
    // Nothing can be mapped there either.
    victim.begin(LOAD, crate::victim::at(last + 4096, 0))?;
    check!(matches!(victim.event(), Event::PageFault(_)), "the page behind the last one is mapped");
    victim.give(MapItem::map(Fpage::memory(page(6)?, 12, Rights::RWX), last + 4096))?;
    check!(
        matches!(victim.event(), Event::PageFault(_)),
        "the page behind the last one could be mapped"
    );
    victim.abandon()?;
    victim.delete()?;
    canary.end()
}

/// Physical memory far above what the kernel maps is nothing to copy from.
fn device_strings() -> Outcome {
    let far = 0x60_0000_0000;
    let Some(window) = runtime::sigma0::memory(Some(far), 12) else {
        return Ok(());
    };
    let victim = Victim::task()?;
    place(
        &victim,
        MapItem::map(Fpage::memory(window.base(), 12, Rights::RWX), PLACE),
        LOAD,
        PLACE,
    )?;
    let mut buffer = [0u8; 64];
    let [first, second] = abi::StringItem::simple(PLACE, 64);
    victim.begin_ipc(
        ThreadId::ROOT,
        ThreadId::NIL,
        0,
        [abi::MsgTag::new(0, 0, 2).0, first, second, 0, 0, 0, 0, 0],
    )?;
    let event = runtime::accept::string(
        &mut buffer,
        runtime::accept::TransferLimit::micros(1_000_000),
        || victim.event(),
    );
    if let Event::PageFault(fault) = &event {
        same!("the address that cannot be copied from", fault.address, PLACE);
    }
    victim.abandon()?;
    same!("the victim's id", victim.word(utcb::MY_GLOBAL_ID)?, victim.id().0);
    victim.delete()?;
    world::sound()
}
