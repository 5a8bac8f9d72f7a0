//! The programs that filters are: what is accepted, what they return, and that whatever was accepted ends.

use linux_raw_sys::ptrace as b;
use unix::process::seccomp::bpf::{Data, Instruction, LONGEST, Program};

use super::{jump, statement};
use crate::any_calls::Random;

const DATA: Data =
    [39, 0xC000_003E, 0x1122_3344, 0x5566_7788, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, u32::MAX];
const RETURN_A: u32 = b::BPF_RET | b::BPF_A;

#[track_caller]
fn returns(code: &[Instruction], value: u32) {
    assert_eq!(Program::new(code.to_vec()).expect("a valid program").run(&DATA), value);
}

#[track_caller]
fn refused(code: &[Instruction]) {
    assert!(Program::new(code.to_vec()).is_err(), "{code:?} is accepted");
}

/// A and X are these; then an instruction; A is returned.
fn with(a: u32, x: u32, one: Instruction) -> [Instruction; 4] {
    [statement(b::BPF_LDX, x), statement(b::BPF_LD, a), one, statement(RETURN_A, 0)]
}

#[test]
fn every_word_of_the_call_can_be_loaded() {
    for (index, word) in DATA.iter().enumerate() {
        let load = statement(b::BPF_LD | b::BPF_ABS, 4 * index as u32);
        returns(&[load, statement(RETURN_A, 0)], *word);
    }
    for bad in [1, 2, 3, 63, 64, 68, u32::MAX, u32::MAX - 3, 0xFFFF_F000] {
        refused(&[statement(b::BPF_LD | b::BPF_ABS, bad), statement(RETURN_A, 0)]);
    }
    returns(&[statement(b::BPF_LD | b::BPF_LEN, 7), statement(RETURN_A, 0)], 64);
    returns(&with(1, 2, statement(b::BPF_LDX | b::BPF_LEN, 0)), 1);
}

#[test]
fn calculations_are_of_32_bits() {
    let (k, x) = (b::BPF_K, b::BPF_X);
    for (operation, a, second, value) in [
        (b::BPF_ADD, u32::MAX, 2, 1),
        (b::BPF_SUB, 1, 2, u32::MAX),
        (b::BPF_MUL, 0x8000_0001, 2, 2),
        (b::BPF_DIV, 7, 2, 3),
        (b::BPF_AND, 0b1100, 0b0110, 0b0100),
        (b::BPF_OR, 0b1100, 0b0110, 0b1110),
        (b::BPF_XOR, 0b1100, 0b0110, 0b1010),
        (b::BPF_LSH, 1, 31, 1 << 31),
        (b::BPF_RSH, 1 << 31, 31, 1),
    ] {
        let class = b::BPF_ALU | operation;
        returns(&with(a, 99, statement(class | k, second)), value);
        returns(&with(a, second, statement(class | x, 99)), value);
    }
    returns(&with(1, 0, statement(b::BPF_ALU | b::BPF_NEG, 0)), u32::MAX);
    // What cannot be known before it runs: a division by nothing ends it with 0.
    returns(&with(7, 0, statement(b::BPF_ALU | b::BPF_DIV | x, 0)), 0);
    returns(&with(1, 33, statement(b::BPF_ALU | b::BPF_LSH | x, 0)), 2);
    refused(&with(7, 0, statement(b::BPF_ALU | b::BPF_DIV | k, 0)));
    refused(&with(7, 0, statement(b::BPF_ALU | b::BPF_LSH | k, 32)));
    refused(&with(7, 0, statement(b::BPF_ALU | b::BPF_RSH | k, 99)));
}

#[test]
fn what_packets_have_is_refused() {
    for code in [
        b::BPF_LD | b::BPF_H | b::BPF_ABS,
        b::BPF_LD | b::BPF_B | b::BPF_ABS,
        b::BPF_LD | b::BPF_IND,
        b::BPF_LDX | b::BPF_B | b::BPF_MSH,
        b::BPF_ALU | b::BPF_MOD,
        b::BPF_ALU | b::BPF_MOD | b::BPF_X,
        b::BPF_ALU | b::BPF_NEG | b::BPF_X,
        b::BPF_JMP | b::BPF_JA | b::BPF_X,
        b::BPF_JMP | 0x50,
        b::BPF_MISC | 0x40,
        b::BPF_LD | b::BPF_IMM | 0x100,
        0xFFFF,
    ] {
        refused(&[statement(code, 4), statement(RETURN_A, 0), statement(RETURN_A, 0)]);
    }
}

#[test]
fn programs_end_and_jump_forward() {
    let end = statement(b::BPF_RET, 5);
    refused(&[]);
    refused(&[statement(b::BPF_LD, 1)]);
    refused(&[end, statement(b::BPF_RET | b::BPF_X, 0)]);
    returns(&[end], 5);
    returns(&[statement(b::BPF_JMP, 1), statement(b::BPF_RET, 6), end], 5);
    refused(&[statement(b::BPF_JMP, 2), statement(b::BPF_RET, 6), end]);
    refused(&[statement(b::BPF_JMP, u32::MAX), end]);
    refused(&[jump(b::BPF_JEQ, 0, 1, 0), end]);
    refused(&[jump(b::BPF_JEQ, 0, 0, 1), end]);
    for (operation, k, so) in [
        (b::BPF_JEQ, 39, true),
        (b::BPF_JGT, 39, false),
        (b::BPF_JGE, 39, true),
        (b::BPF_JSET, 8, false),
        (b::BPF_JSET, 1, true),
    ] {
        let load = statement(b::BPF_LD | b::BPF_ABS, 0);
        returns(
            &[load, jump(operation, k, 0, 1), statement(b::BPF_RET, 1), end],
            [5, 1][usize::from(so)],
        );
    }
    let mut longest = vec![end; LONGEST];
    returns(&longest, 5);
    longest.push(end);
    refused(&longest);
}

#[test]
fn words_are_stored_before_they_are_loaded() {
    let (load, store) = (b::BPF_LD | b::BPF_MEM, b::BPF_ST);
    let end = statement(RETURN_A, 0);
    refused(&[statement(load, 0), end]);
    refused(&[statement(b::BPF_LDX | b::BPF_MEM, 15), end]);
    refused(&[statement(store, 16), end]);
    refused(&[statement(store, 1), statement(load, 0), end]);
    returns(&[statement(b::BPF_LD, 9), statement(store, 15), statement(load, 15), end], 9);
    returns(&[statement(b::BPF_LDX, 9), statement(b::BPF_STX, 0), statement(load, 0), end], 9);
    // On one of two ways it is not stored.
    let one_way = [jump(b::BPF_JEQ, 1, 0, 1), statement(store, 3), statement(load, 3), end];
    refused(&one_way);
    let both = [
        jump(b::BPF_JEQ, 1, 0, 2),
        statement(store, 3),
        statement(b::BPF_JMP, 1),
        statement(store, 3),
        statement(load, 3),
        end,
    ];
    returns(&both, 0);
}

/// As `Program::run`, in another way: what must not happen panics.
fn model(code: &[Instruction], data: &Data) -> u32 {
    let (mut a, mut x, mut at, mut memory) = (0_u64, 0_u64, 0, [None; 16]);
    loop {
        let Instruction { code: what, jump_true, jump_false, k } = code[at];
        let (what, wide) = (u32::from(what), u64::from(k));
        let second = if what & b::BPF_X == 0 { wide } else { x };
        at += 1;
        match what & 7 {
            b::BPF_RET => return if what & b::BPF_A == 0 { k } else { a as u32 },
            b::BPF_ST => memory[k as usize] = Some(a),
            b::BPF_STX => memory[k as usize] = Some(x),
            b::BPF_MISC if what & b::BPF_TXA == 0 => x = a,
            b::BPF_MISC => a = x,
            b::BPF_LD | b::BPF_LDX => {
                let value = match what & 0xE0 {
                    b::BPF_ABS => data[k as usize / 4].into(),
                    b::BPF_LEN => 64,
                    b::BPF_MEM => memory[k as usize].expect("a word that was stored"),
                    _ => wide,
                };
                *if what & 7 == b::BPF_LD { &mut a } else { &mut x } = value;
            }
            b::BPF_JMP => {
                let so = match what & 0xF0 {
                    b::BPF_JEQ => a == second,
                    b::BPF_JGT => a > second,
                    b::BPF_JGE => a >= second,
                    _ => a & second != 0,
                };
                at += match what & 0xF0 {
                    b::BPF_JA => k as usize,
                    _ => [jump_false, jump_true][usize::from(so)].into(),
                };
            }
            _ => match calculate(what & 0xF0, a, second) {
                Some(value) => a = value & 0xFFFF_FFFF,
                None => return 0,
            },
        }
    }
}

/// A calculation, of which the low half counts.
fn calculate(operation: u32, a: u64, second: u64) -> Option<u64> {
    Some(match operation {
        b::BPF_ADD => a + second,
        b::BPF_SUB => a + (1 << 32) - second,
        b::BPF_MUL => a.wrapping_mul(second),
        b::BPF_DIV => return a.checked_div(second),
        b::BPF_AND => a & second,
        b::BPF_OR => a | second,
        b::BPF_XOR => a ^ second,
        b::BPF_LSH => a << (second % 32),
        b::BPF_RSH => a >> (second % 32),
        _ => (1 << 32) - a,
    })
}

/// An instruction that is often valid, with `left` behind it.
fn instruction(random: &mut Random, left: u64) -> Instruction {
    let code = match random.below(16) {
        0 => random.next() as u16,
        1..4 => random.pick(&[0x20, 0x80, 0, 0x81, 1, 0x16, 7, 0x87]),
        4..7 => random.pick(&[2, 3, 0x60, 0x61]),
        7..12 => 5 | (random.below(5) as u16) << 4 | (random.below(2) as u16) << 3,
        _ => 4 | (random.below(11) as u16) << 4 | (random.below(2) as u16) << 3,
    };
    let k = match random.below(8) {
        0 => random.next() as u32,
        1 => random.below(left + 2) as u32,
        _ => random.below(16) as u32,
    };
    let k = if code == 0x20 { k.wrapping_mul(4) } else { k };
    let mut far = || random.below(left.min(6) + 1).min(left.saturating_sub(1)) as u8;
    Instruction { code, jump_true: far(), jump_false: far(), k }
}

#[test]
fn what_is_accepted_runs_to_its_end() {
    let seed = std::env::var("UNIX_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x1357_9BDF_2468_ACE1);
    println!("UNIX_SEED={seed}");
    let mut random = Random(seed);
    let (mut accepted, mut long) = (0, 0);
    for _ in 0..400_000 {
        let most = random.pick(&[3, 8, 24]);
        let len = 1 + random.below(most);
        let mut code: Vec<_> = (1..len).rev().map(|left| instruction(&mut random, left)).collect();
        code.push(statement(random.pick(&[b::BPF_RET, RETURN_A, RETURN_A]), 3));
        let Ok(program) = Program::new(code.clone()) else { continue };
        accepted += 1;
        long += u32::from(len > 8);
        let mut data = DATA;
        data.iter_mut().for_each(|word| *word = (random.next() >> random.below(64)) as u32);
        assert_eq!(program.run(&data), model(&code, &data), "{code:?} {data:?}");
    }
    assert!(accepted > 50_000 && long > 1_000, "{accepted} programs accepted, {long} long ones");
}
