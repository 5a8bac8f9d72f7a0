//! Exceptions as messages (X.2 6.4): registers, vectors, error codes, resumption.

use abi::protocol::{self, exception as reg};
use abi::{MsgTag, ThreadId, Time, utcb};
use runtime::{Msg, ipc};

use crate::report::{Outcome, Sentence, because, case};
use crate::victim::{Event, Registers, Victim, is_gate_error, registers};
use crate::{check, machine, same, world};

/// `ud2`.
const UD2: &[u8] = &[0x0F, 0x0B];

/// Runs the tests.
pub fn run() {
    case("exception_messages_carry_every_register", every_register);
    case("exceptions_resume_with_changed_registers", resume_changed);
    case("exceptions_can_be_emulated", emulate);
    case("a_short_answer_changes_the_named_registers_only", short_answer);
    case("exception_vectors_and_error_codes", vectors);
    case("answers_change_user_flags_only", flags);
    case("answers_lead_to_no_kernel_address", no_kernel_ip);
    case("single_steps", single_step);
    case("alignment_checks", alignment);
    case("the_kernel_does_not_run_with_a_users_ac", access_flag);
    case("exceptions_leave_the_message_registers", message_registers);
    case("an_exception_without_handler_halts", no_handler);
}

/// A different value in every word.
fn pattern() -> Registers {
    core::array::from_fn(|index| {
        0x0123_4567_89AB_CDEF_u64.rotate_left(index as u32 * 3) & !0x8000_0000_0000_0000
    })
}

fn exception(victim: &Victim, code: &[u8], regs: Registers) -> Outcome<Registers> {
    match victim.run(code, regs)? {
        Event::Exception(regs) => Ok(regs),
        other => Err(Sentence::new(format_args!("instead of an exception came {other:x?}"))),
    }
}

fn every_register() -> Outcome {
    let victim = Victim::task()?;
    let mut sent = pattern();
    sent[reg::RFLAGS] = 0x8D5;
    let seen = exception(&victim, UD2, sent)?;
    for (index, (seen, sent)) in seen.into_iter().zip(sent).enumerate().take(reg::VECTOR) {
        let expected = match index {
            reg::RIP => victim.code(),
            reg::RFLAGS => 0x202 | 0x8D5,
            _ => sent,
        };
        let value = if index == reg::RFLAGS { seen & !0x1_0000 } else { seen };
        check!(
            value == expected,
            "word {index} of the message is {value:#x}, expected {expected:#x}"
        );
    }
    same!("vector and error code", (seen[reg::VECTOR], seen[reg::ERROR]), (6, 0));
    victim.abandon()?;
    // The tag and the message's length, as they arrive.
    victim.begin(UD2, registers())?;
    let msg = because(ipc::receive(victim.id(), Time::micros(50_000)), "waiting for an exception")?;
    same!("the tag", msg.tag, MsgTag::protocol(protocol::EXCEPTION, 0, 20, 0));
    same!("the tag's word", msg.tag.0, 0xFFFF_FFFF_FFB0_0014);
    victim.abandon()?;
    victim.delete()
}

fn resume_changed() -> Outcome {
    let victim = Victim::task()?;
    exception(&victim, UD2, registers())?;
    let mut sent = pattern();
    sent[reg::RIP] = victim.code() + 2;
    sent[reg::RFLAGS] = 0x41;
    victim.resume_with(&sent)?;
    let seen = victim.expect_parked()?;
    for index in (0..reg::RFLAGS).filter(|index| *index != reg::RIP) {
        check!(
            seen[index] == sent[index],
            "register word {index} is {:#x}, the answer said {:#x}",
            seen[index],
            sent[index]
        );
    }
    same!("the flags", seen[reg::RFLAGS] & 0x8D5, 0x41);
    victim.delete()
}

fn emulate() -> Outcome {
    // A loop whose body is an unknown instruction: the handler adds 3 to RAX and skips it.
    let victim = Victim::task()?;
    let mut regs = registers();
    regs[reg::RCX] = 100;
    // 1: ud2; dec rcx; jnz 1b
    let code = [0x0F, 0x0B, 0x48, 0xFF, 0xC9, 0x75, 0xF9];
    let mut event = victim.run(&code, regs)?;
    let mut emulated = 0;
    loop {
        let Event::Exception(mut regs) = event else {
            return Err(Sentence::new(format_args!("after {emulated} emulations came {event:x?}")));
        };
        if regs[reg::VECTOR] != 6 {
            same!("RAX in the end", regs[reg::RAX], 300);
            same!("the emulations", emulated, 100);
            return victim.delete();
        }
        regs[reg::RAX] += 3;
        regs[reg::RIP] += 2;
        emulated += 1;
        victim.resume_with(&regs)?;
        event = victim.event();
    }
}

fn short_answer() -> Outcome {
    let victim = Victim::task()?;
    let mut sent = pattern();
    sent[reg::RFLAGS] = 0;
    exception(&victim, UD2, sent)?;
    // RIP, RBX, R10 only.
    victim.answer(&Msg::new(0).words(&[victim.code() + 2, 11, 12]))?;
    let seen = victim.expect_parked()?;
    same!("the named registers", (seen[reg::RBX], seen[reg::R10]), (11, 12));
    for index in reg::R12..reg::RFLAGS {
        check!(seen[index] == sent[index], "register word {index} changed to {:#x}", seen[index]);
    }
    victim.delete()
}

fn vectors() -> Outcome {
    let victim = Victim::task()?;
    let mut odd = registers();
    odd[reg::RBX] = 0x0123_4567_89AB_CDEF;
    let mut stack = registers();
    stack[reg::RSP] = 0x8000_0000_0000_1000;
    let cases: [(&str, &[u8], Registers, u64, u64); 12] = [
        ("div by zero", &[0x31, 0xC9, 0xF7, 0xF1], registers(), 0, 0),
        ("ud2", UD2, registers(), 6, 0),
        ("hlt", &[0xF4], registers(), 13, 0),
        ("cli", &[0xFA], registers(), 13, 0),
        ("mov rax, cr0", &[0x0F, 0x20, 0xC0], registers(), 13, 0),
        ("rdmsr", &[0x0F, 0x32], registers(), 13, 0),
        ("lgdt", &[0x0F, 0x01, 0x13], registers(), 13, 0),
        ("swapgs", &[0x0F, 0x01, 0xF8], registers(), 13, 0),
        ("a non-canonical load", &[0x48, 0x8B, 0x03], odd, 13, 0),
        ("mov ds, 8", &[0xB8, 8, 0, 0, 0, 0x8E, 0xD8], registers(), 13, 8),
        ("mov ss, 0", &[0x31, 0xC0, 0x8E, 0xD0], registers(), 13, 0),
        ("an unmasked x87 division by zero", X87_DIVISION, registers(), 16, 0),
    ];
    for (name, code, regs, vector, error) in cases {
        let seen = exception(&victim, code, regs)?;
        check!(
            (seen[reg::VECTOR], seen[reg::ERROR]) == (vector, error),
            "{name} raised vector {} with error {:#x}, expected {vector} with {error:#x}",
            seen[reg::VECTOR],
            seen[reg::ERROR]
        );
        victim.abandon()?;
    }
    for (code, gate) in
        [(&[0xCC][..], 3), (&[0xCD, 3], 3), (&[0xCD, 0x80], 0x80), (&[0xCD, 14], 14)]
    {
        let seen = exception(&victim, code, registers())?;
        let gone = seen[reg::VECTOR] == 13 && is_gate_error(seen[reg::ERROR], gate);
        check!(
            gone,
            "int {gate} raised vector {} with error {:#x}",
            seen[reg::VECTOR],
            seen[reg::ERROR]
        );
        victim.abandon()?;
    }
    // A stack fault; QEMU raises a general-protection fault instead.
    let seen = exception(&victim, &[0x50], stack)?;
    check!(
        matches!(seen[reg::VECTOR], 12 | 13),
        "a non-canonical push raised vector {}",
        seen[reg::VECTOR]
    );
    victim.abandon()?;
    let seen = exception(&victim, SSE_DIVISION, registers())?;
    // Emulators may leave the SSE exceptions out: then the code runs to its end.
    let parked = seen[reg::RIP] == victim.code() + SSE_DIVISION.len() as u64;
    check!(
        seen[reg::VECTOR] == 19 || parked,
        "an unmasked SSE division by zero raised vector {}",
        seen[reg::VECTOR]
    );
    victim.abandon()?;
    victim.delete()
}

/// `fninit; push 0x37B; fldcw [rsp]; pop rax; fld1; fldz; fdivp; fwait`.
const X87_DIVISION: &[u8] = &[
    0xDB, 0xE3, 0x68, 0x7B, 0x03, 0, 0, 0xD9, 0x2C, 0x24, 0x58, 0xD9, 0xE8, 0xD9, 0xEE, 0xDE, 0xF9,
    0x9B,
];
/// `push 0x1D80; ldmxcsr [rsp]; pop rax; mov eax, 1; cvtsi2sd xmm0, eax; xorps xmm1, xmm1; divsd xmm0, xmm1`.
const SSE_DIVISION: &[u8] = &[
    0x68, 0x80, 0x1D, 0, 0, 0x0F, 0xAE, 0x14, 0x24, 0x58, 0xB8, 1, 0, 0, 0, 0xF2, 0x0F, 0x2A, 0xC0,
    0x0F, 0x57, 0xC9, 0xF2, 0x0F, 0x5E, 0xC1,
];

fn flags() -> Outcome {
    let victim = Victim::task()?;
    exception(&victim, UD2, registers())?;
    let mut regs = registers();
    (regs[reg::RIP], regs[reg::RFLAGS]) = (victim.code() + 2, !0);
    victim.go(regs)?;
    let seen = victim.expect_parked()?;
    same!("the flags of an answer with all bits", seen[reg::RFLAGS] & !0x1_0000, 0x202 | 0x8D5);
    victim.delete()
}

fn no_kernel_ip() -> Outcome {
    let victim = Victim::task()?;
    for ip in [
        0xFFFF_FFFF_8000_0000,
        0xFFFF_8000_0000_0000,
        0x8000_0000_0000,
        1 << 63,
        !0,
        abi::layout::USER_END,
    ] {
        exception(&victim, UD2, registers())?;
        let mut regs = registers();
        regs[reg::RIP] = ip;
        victim.go(regs)?;
        match victim.event() {
            Event::PageFault(fault) => check!(
                fault.ip >= abi::layout::USER_END,
                "an answer with IP {ip:#x} led to {fault:x?}"
            ),
            Event::Exception(regs) => same!("the vector", regs[reg::VECTOR], 13),
            other => {
                return Err(Sentence::new(format_args!(
                    "an answer with IP {ip:#x} led to {other:x?}"
                )));
            }
        }
        victim.abandon()?;
    }
    victim.delete()
}

fn single_step() -> Outcome {
    let victim = Victim::task()?;
    // pushfq; or dword [rsp], 0x100; popfq; nop; inc rax; inc rax; pushfq; and dword [rsp], ~0x100; popfq
    let code = [
        0x9C, 0x81, 0x0C, 0x24, 0, 1, 0, 0, 0x9D, 0x90, 0x48, 0xFF, 0xC0, 0x48, 0xFF, 0xC0, 0x9C,
        0x81, 0x24, 0x24, 0xFF, 0xFE, 0xFF, 0xFF, 0x9D,
    ];
    let stops = [10, 13, 16, 17, 24];
    let mut event = victim.run(&code, registers())?;
    for stop in stops {
        let Event::Exception(regs) = event else {
            return Err(Sentence::new(format_args!("instead of a step came {event:x?}")));
        };
        same!("the vector", regs[reg::VECTOR], 1);
        same!("the place of a step", regs[reg::RIP] - victim.code(), stop);
        victim.answer(&Msg::new(0))?;
        event = victim.event();
    }
    // The popfq that ends it is the last instruction stepped over.
    if let Event::Exception(regs) = &event
        && regs[reg::VECTOR] == 1
    {
        same!("the place of the last step", regs[reg::RIP] - victim.code(), code.len() as u64);
        victim.answer(&Msg::new(0))?;
        event = victim.event();
    }
    match event {
        Event::Exception(regs) => {
            same!("RAX in the end", (regs[reg::VECTOR], regs[reg::RAX]), (13, 2))
        }
        other => return Err(Sentence::new(format_args!("after the steps came {other:x?}"))),
    }
    victim.delete()
}

fn alignment() -> Outcome {
    let victim = Victim::task()?;
    // pushfq; or dword [rsp], 0x40000; popfq; mov rax, [rsp + 1]; pushfq; and dword [rsp], ~0x40000; popfq
    let code = [
        0x9C, 0x81, 0x0C, 0x24, 0, 0, 4, 0, 0x9D, 0x48, 0x8B, 0x44, 0x24, 0x01, 0x9C, 0x81, 0x24,
        0x24, 0xFF, 0xFF, 0xFB, 0xFF, 0x9D,
    ];
    match victim.run(&code, registers())? {
        Event::Exception(regs) if regs[reg::VECTOR] == 17 => {
            same!(
                "error code and place",
                (regs[reg::ERROR], regs[reg::RIP]),
                (0, victim.code() + 9)
            );
        }
        // The kernel may leave CR0.AM off: then nothing happens.
        Event::Exception(regs) => {
            same!("the place", regs[reg::RIP], victim.code() + code.len() as u64)
        }
        other => return Err(Sentence::new(format_args!("a misaligned load led to {other:x?}"))),
    }
    victim.delete()
}

/// A user's AC would switch SMAP off in the kernel. An exception that nobody takes leads
/// to the idle thread, whom the tick interrupts; the checker knows what flags it met.
fn access_flag() -> Outcome {
    let victim = Victim::task()?;
    // pushfq; or dword [rsp], 0x40000; popfq; ud2
    victim.begin(&[0x9C, 0x81, 0x0C, 0x24, 0, 0, 4, 0, 0x9D, 0x0F, 0x0B], registers())?;
    ipc::sleep(5_000);
    match victim.event() {
        Event::Exception(regs) => same!("AC", regs[reg::RFLAGS] >> 18 & 1, 1),
        other => {
            return Err(Sentence::new(format_args!("instead of an exception came {other:x?}")));
        }
    }
    world::sound()?;
    victim.abandon()?;
    victim.delete()
}

fn message_registers() -> Outcome {
    let victim = Victim::task()?;
    for index in 0..64 {
        victim.set_word(index, 0x2000 + index as u64)?;
    }
    exception(&victim, UD2, registers())?;
    victim.abandon()?;
    for index in 0..64 {
        same!("a message register after an exception", victim.word(index)?, 0x2000 + index as u64);
    }
    victim.delete()
}

/// Lets `victim` set its exception handler and raise an exception.
fn set_handler(victim: &Victim, handler: ThreadId) -> Outcome {
    let mut regs = registers();
    regs[reg::RBX] = victim.utcb.wrapping_add_signed(utcb::EXCEPTION_HANDLER as i64 * 8);
    regs[reg::RAX] = handler.0;
    victim.begin(&[0x48, 0x89, 0x03, 0x0F, 0x0B], regs)
}

fn no_handler() -> Outcome {
    for handler in [ThreadId::NIL, world::fresh(), ThreadId::ANY, ThreadId::irq(7)] {
        let victim = Victim::task()?;
        set_handler(&victim, handler)?;
        check!(
            matches!(victim.event(), Event::Nothing),
            "an exception for {handler} reached this thread"
        );
        same!("the thread's state", world::state(victim.id()), abi::inspect::state::HALTED);
        victim.delete()?;
    }
    let own = Victim::task()?;
    set_handler(&own, own.id())?;
    check!(matches!(own.event(), Event::Nothing), "a handler of its own led to a message");
    machine::write(own.data(), 0);
    own.delete()
}
