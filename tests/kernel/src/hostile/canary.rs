//! A bystander in a space of its own: its registers (vector registers included),
//! its memory and its progress have to stay what they are.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::ThreadId;
use abi::protocol::PAGE_FAULT;
use runtime::space::Fault;
use runtime::{Msg, ipc, schedule};

use crate::report::{Outcome, because};
use crate::{check, same, world};

global_asm!(
    // RDI: number of rounds; RAX: 0 if every register kept its value. The pattern of
    // register k is RDI's seed plus k, in general and vector registers alike.
    ".globl kernel_tests_canary",
    "kernel_tests_canary:",
    "push rbx; push rbp; push r12; push r13; push r14; push r15",
    "mov r15, 0x5A5A0000",
    "movq xmm0, r15; lea rax, [r15 + 1]; movq xmm1, rax; lea rax, [r15 + 7]; movq xmm7, rax",
    "lea rax, [r15 + 8]; movq xmm8, rax; lea rax, [r15 + 15]; movq xmm15, rax",
    "lea rbx, [r15 + 1]; lea rcx, [r15 + 2]; lea rdx, [r15 + 3]; lea rsi, [r15 + 4]; lea rbp, [r15 + 5]",
    "lea r8, [r15 + 6]; lea r9, [r15 + 7]; lea r10, [r15 + 8]; lea r11, [r15 + 9]; lea r12, [r15 + 10]",
    "lea r13, [r15 + 11]; lea r14, [r15 + 12]",
    "2: movq rax, xmm0; cmp rax, r15; jne 3f",
    "movq rax, xmm1; cmp rax, rbx; jne 3f",
    "movq rax, xmm7; cmp rax, r9; jne 3f",
    "movq rax, xmm8; cmp rax, r10; jne 3f",
    "movq rax, xmm15; sub rax, 15; cmp rax, r15; jne 3f",
    "lea rax, [r15 + 1]; cmp rax, rbx; jne 3f; inc rax; cmp rax, rcx; jne 3f; inc rax; cmp rax, rdx; jne 3f",
    "inc rax; cmp rax, rsi; jne 3f; inc rax; cmp rax, rbp; jne 3f; inc rax; cmp rax, r8; jne 3f",
    "inc rax; cmp rax, r9; jne 3f; inc rax; cmp rax, r10; jne 3f; inc rax; cmp rax, r11; jne 3f",
    "inc rax; cmp rax, r12; jne 3f; inc rax; cmp rax, r13; jne 3f; inc rax; cmp rax, r14; jne 3f",
    "dec rdi; jnz 2b",
    "xor eax, eax; jmp 4f",
    "3: mov eax, 1",
    "4: pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx; ret",
);

unsafe extern "C" {
    fn kernel_tests_canary(rounds: u64) -> u64;
}

static PROGRESS: AtomicU64 = AtomicU64::new(0);
static HARM: AtomicU64 = AtomicU64::new(0);
static MEMORY: [AtomicU64; 512] = [const { AtomicU64::new(0) }; 512];

/// A burst of about 60000 instructions, then a sleep, for ever.
extern "C" fn live(id: u64) -> ! {
    let mut round = 0;
    loop {
        MEMORY.iter().for_each(|word| word.store(round ^ id, Ordering::Relaxed));
        // SAFETY: the function keeps to the C convention and touches no memory.
        let registers = unsafe { kernel_tests_canary(1000) };
        let memory = MEMORY.iter().any(|word| word.load(Ordering::Relaxed) != round ^ id);
        let name = runtime::utcb::my_global_id().0 != id;
        if registers != 0 || memory || name {
            HARM.fetch_add(1, Ordering::Relaxed);
        }
        round += 1;
        PROGRESS.store(round, Ordering::Relaxed);
        ipc::sleep(4_000);
    }
}

/// A living bystander.
pub struct Canary {
    id: ThreadId,
    seen: u64,
}

impl Canary {
    /// Starts it and waits until all its pages are there.
    pub fn start() -> Outcome<Self> {
        let id = world::new_task()?;
        HARM.store(0, Ordering::Relaxed);
        PROGRESS.store(0, Ordering::Relaxed);
        world::start(id, live, id.0)?;
        for _ in 0..200 {
            let Ok(msg) = ipc::receive(id, abi::Time::micros(20_000)) else { break };
            same!("the canary's message", msg.tag.protocol_label(), PAGE_FAULT);
            let fault = Fault::decode(&msg);
            let answer = fault.and_then(|fault| world::image_page(&fault, abi::Rights::RWX));
            because(
                ipc::reply(id, &answer.unwrap_or(Msg::new(0))),
                "answering the canary's fault",
            )?;
        }
        because(schedule::set_priority(id, 220), "setting a priority")?;
        check!(PROGRESS.load(Ordering::Relaxed) > 0, "the canary did not begin to live");
        Ok(Self { id, seen: 0 })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// It lives, got on since the last look, and was not harmed.
    pub fn well(&mut self) -> Outcome {
        ipc::sleep(10_000);
        same!("the harm done to the canary", HARM.load(Ordering::Relaxed), 0);
        let progress = PROGRESS.load(Ordering::Relaxed);
        check!(progress > self.seen, "the canary stopped after {progress} rounds");
        self.seen = progress;
        world::sound()
    }

    /// Ends it.
    pub fn end(mut self) -> Outcome {
        self.well()?;
        world::delete(self.id)
    }
}
