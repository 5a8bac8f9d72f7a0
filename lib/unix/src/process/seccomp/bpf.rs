//! Classic BPF, as filters of calls are written in it: a program is checked once ([`Program::new`]), and
//! whatever passes ends after at most as many steps as it has instructions.
//!
//! Accepted is what Linux accepts: its rules for every classic program (`net/core/filter.c`), then
//! those for filters of calls (`kernel/seccomp.c`): words of `struct seccomp_data` are all that can be loaded.
//! `lib/unix/tests/all/filters/programs.rs` tries both.

use alloc::vec;
use alloc::vec::Vec;

use linux_raw_sys::ptrace as b;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::errno::Errno;

/// Instructions that a program has at most.
pub const LONGEST: usize = b::BPF_MAXINSNS as usize;
/// Words that a program can store.
const SLOTS: usize = b::BPF_MEMWORDS as usize;
/// Bytes of `struct seccomp_data`.
const DATA_BYTES: u32 = 64;
/// Where the instruction's address is in it: two words.
const ADDRESS: [u32; 2] = [8, 12];

/// The words of `struct seccomp_data`: number, architecture, address, six arguments.
pub type Data = [u32; DATA_BYTES as usize / 4];

/// `struct sock_filter`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Instruction {
    /// What it does: `BPF_*`.
    pub code: u16,
    /// How far it jumps if what it compares is so.
    pub jump_true: u8,
    /// How far if not.
    pub jump_false: u8,
    /// Its operand.
    pub k: u32,
}

/// A code made of these parts.
const fn code(parts: &[u32]) -> u16 {
    let (mut code, mut index) = (0, 0);
    while index < parts.len() {
        code |= parts[index];
        index += 1;
    }
    code as u16
}

const LOAD: u16 = code(&[b::BPF_LD, b::BPF_W, b::BPF_ABS]);
const LOAD_LEN: u16 = code(&[b::BPF_LD, b::BPF_W, b::BPF_LEN]);
const LOAD_IMM: u16 = code(&[b::BPF_LD, b::BPF_IMM]);
const LOAD_MEM: u16 = code(&[b::BPF_LD, b::BPF_MEM]);
const LOAD_X_LEN: u16 = code(&[b::BPF_LDX, b::BPF_W, b::BPF_LEN]);
const LOAD_X_IMM: u16 = code(&[b::BPF_LDX, b::BPF_IMM]);
const LOAD_X_MEM: u16 = code(&[b::BPF_LDX, b::BPF_MEM]);
const STORE: u16 = code(&[b::BPF_ST]);
const STORE_X: u16 = code(&[b::BPF_STX]);
const RETURN: u16 = code(&[b::BPF_RET, b::BPF_K]);
const RETURN_A: u16 = code(&[b::BPF_RET, b::BPF_A]);
const TO_X: u16 = code(&[b::BPF_MISC, b::BPF_TAX]);
const TO_A: u16 = code(&[b::BPF_MISC, b::BPF_TXA]);
const NEGATE: u16 = code(&[b::BPF_ALU, b::BPF_NEG]);
const JUMP: u16 = code(&[b::BPF_JMP, b::BPF_JA]);

/// Calculations, jumps that compare: all with K or X as the second operand.
const CALCULATIONS: [u32; 9] = [
    b::BPF_ADD,
    b::BPF_SUB,
    b::BPF_MUL,
    b::BPF_DIV,
    b::BPF_AND,
    b::BPF_OR,
    b::BPF_XOR,
    b::BPF_LSH,
    b::BPF_RSH,
];
const COMPARISONS: [u32; 4] = [b::BPF_JEQ, b::BPF_JGT, b::BPF_JGE, b::BPF_JSET];

impl Instruction {
    /// Its operation without its class and its second operand.
    fn operation(self) -> u32 {
        u32::from(self.code) & 0xF0
    }

    /// Whether it is of `class`, with one of these operations.
    fn is_one_of(self, class: u32, operations: &[u32]) -> bool {
        let class = class as u16;
        self.code & !0xF8 == class && operations.contains(&self.operation())
    }

    fn compares(self) -> bool {
        self.is_one_of(b::BPF_JMP, &COMPARISONS)
    }

    fn calculates(self) -> bool {
        self.is_one_of(b::BPF_ALU, &CALCULATIONS)
    }

    /// The second operand.
    fn operand(self, x: u32) -> u32 {
        if u32::from(self.code) & b::BPF_X != 0 { x } else { self.k }
    }

    /// Whether it may stand where `left` instructions come behind it.
    fn is_valid(self, left: usize) -> bool {
        let by_k = u32::from(self.code) & b::BPF_X == 0;
        match self.code {
            LOAD => self.k < DATA_BYTES && self.k.is_multiple_of(4),
            LOAD_MEM | LOAD_X_MEM | STORE | STORE_X => (self.k as usize) < SLOTS,
            LOAD_LEN | LOAD_IMM | LOAD_X_LEN | LOAD_X_IMM => true,
            RETURN | RETURN_A | TO_X | TO_A | NEGATE => true,
            JUMP => (self.k as usize) < left,
            _ if self.compares() => usize::from(self.jump_true.max(self.jump_false)) < left,
            _ if !self.calculates() => false,
            _ if self.operation() == b::BPF_DIV => !by_k || self.k != 0,
            _ if [b::BPF_LSH, b::BPF_RSH].contains(&self.operation()) => !by_k || self.k < 32,
            _ => true,
        }
    }
}

/// A program that has been checked.
pub struct Program {
    code: Vec<Instruction>,
    reads_address: bool,
}

impl Program {
    /// The program of these instructions.
    ///
    /// # Errors
    /// `EINVAL` if it might do anything but end.
    pub fn new(code: Vec<Instruction>) -> Result<Self, Errno> {
        let len = code.len();
        let valid = (1..=LONGEST).contains(&len)
            && code.iter().enumerate().all(|(at, one)| one.is_valid(len - at - 1))
            && code.last().is_some_and(|last| [RETURN, RETURN_A].contains(&last.code))
            && loads_what_it_stores(&code);
        let reads = |one: &Instruction| one.code == LOAD && ADDRESS.contains(&one.k);
        let reads_address = code.iter().any(reads);
        if valid { Ok(Self { code, reads_address }) } else { Err(Errno::EINVAL) }
    }

    /// How many instructions it has.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no program is empty")]
    pub fn len(&self) -> usize {
        self.code.len()
    }

    /// Whether it looks at the address of the calling instruction.
    #[must_use]
    pub fn reads_address(&self) -> bool {
        self.reads_address
    }

    /// What it returns; 0 if it divides by nothing.
    #[must_use]
    pub fn run(&self, data: &Data) -> u32 {
        let (mut a, mut x, mut memory) = (0, 0, [0; SLOTS]);
        let mut at = 0_usize;
        while let Some(one) = self.code.get(at) {
            at += 1;
            match one.code {
                LOAD => a = data[one.k as usize / 4 % data.len()],
                LOAD_LEN => a = DATA_BYTES,
                LOAD_IMM => a = one.k,
                LOAD_MEM => a = memory[one.k as usize % SLOTS],
                LOAD_X_LEN => x = DATA_BYTES,
                LOAD_X_IMM => x = one.k,
                LOAD_X_MEM => x = memory[one.k as usize % SLOTS],
                STORE => memory[one.k as usize % SLOTS] = a,
                STORE_X => memory[one.k as usize % SLOTS] = x,
                RETURN => return one.k,
                RETURN_A => return a,
                TO_X => x = a,
                TO_A => a = x,
                NEGATE => a = a.wrapping_neg(),
                JUMP => at += one.k as usize,
                _ if one.compares() => {
                    let so = compare(one.operation(), a, one.operand(x));
                    at += usize::from(if so { one.jump_true } else { one.jump_false });
                }
                _ => match calculate(one.operation(), a, one.operand(x)) {
                    Some(value) => a = value,
                    None => return 0,
                },
            }
        }
        0
    }
}

fn compare(operation: u32, a: u32, b: u32) -> bool {
    match operation {
        b::BPF_JEQ => a == b,
        b::BPF_JGT => a > b,
        b::BPF_JGE => a >= b,
        _ => a & b != 0,
    }
}

fn calculate(operation: u32, a: u32, b: u32) -> Option<u32> {
    Some(match operation {
        b::BPF_ADD => a.wrapping_add(b),
        b::BPF_SUB => a.wrapping_sub(b),
        b::BPF_MUL => a.wrapping_mul(b),
        b::BPF_DIV => return a.checked_div(b),
        b::BPF_AND => a & b,
        b::BPF_OR => a | b,
        b::BPF_XOR => a ^ b,
        b::BPF_LSH => a.wrapping_shl(b),
        _ => a.wrapping_shr(b),
    })
}

/// Whether no way through the program loads a word that it has not stored before. Jumps go forward
/// only, so one look at each instruction is enough.
fn loads_what_it_stores(code: &[Instruction]) -> bool {
    // For each instruction the words that are stored on all jumps to it; whoever comes from above knows itself.
    let mut by_jump = vec![u16::MAX; code.len()];
    let mut stored = 0_u16;
    for (at, one) in code.iter().enumerate() {
        stored &= by_jump[at];
        let mut jumps = |distance: usize| {
            if let Some(there) = by_jump.get_mut(at + 1 + distance) {
                *there &= stored;
            }
        };
        match one.code {
            STORE | STORE_X => stored |= 1 << one.k,
            LOAD_MEM | LOAD_X_MEM if stored >> one.k & 1 == 0 => return false,
            JUMP => {
                jumps(one.k as usize);
                stored = u16::MAX;
            }
            _ if one.compares() => {
                jumps(one.jump_true.into());
                jumps(one.jump_false.into());
                stored = u16::MAX;
            }
            _ => {}
        }
    }
    true
}
