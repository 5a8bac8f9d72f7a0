//! `/proc/cpuinfo`: what CPUID says of the processor, in Linux's words.
//!
//! All processors are alike: the kernel runs no others. Of the features those are told that programs can use;
//! what only a kernel can use is not here, nor vector registers that this one has not switched on.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::call::Cx;
use crate::machine::Machine;

/// A leaf and subleaf of CPUID, and what is read there.
type Leaf = (u32, u32);

/// Registers, as CPUID's answer has them.
const EAX: usize = 0;
const EBX: usize = 1;
const ECX: usize = 2;
const EDX: usize = 3;

const BASIC: Leaf = (1, 0);
const STRUCTURED: Leaf = (7, 0);
const STRUCTURED_MORE: Leaf = (7, 1);
const STATE: Leaf = (0xD, 0);
const STATE_MORE: Leaf = (0xD, 1);
const EXTENDED: Leaf = (0x8000_0001, 0);
const POWER: Leaf = (0x8000_0007, 0);
const SIZES: Leaf = (0x8000_0008, 0);
/// The first of three that spell the name.
const NAME: u32 = 0x8000_0002;

/// Components of vector state whose registers AVX and AVX-512 need, the last of each.
const AVX_STATE: u32 = 2;
const AVX512_STATE: u32 = 7;
/// XSAVE is switched on, in [`BASIC`]'s ECX.
const OSXSAVE: u32 = 1 << 27;

/// Some bits of a register of a leaf, each with what Linux calls the feature.
type Names = (Leaf, usize, &'static [(u32, &'static str)]);

/// What features are called, in Linux's order.
const FLAGS: &[Names] = &[
    (BASIC, EDX, &[(0, "fpu"), (4, "tsc"), (8, "cx8"), (15, "cmov"), (19, "clflush"), (23, "mmx")]),
    (BASIC, EDX, &[(24, "fxsr"), (25, "sse"), (26, "sse2")]),
    (EXTENDED, EDX, &[(11, "syscall"), (20, "nx"), (22, "mmxext"), (25, "fxsr_opt")]),
    (EXTENDED, EDX, &[(27, "rdtscp"), (29, "lm"), (30, "3dnowext"), (31, "3dnow")]),
    (POWER, EDX, &[(8, "constant_tsc"), (8, "nonstop_tsc")]),
    (BASIC, ECX, &[(0, "pni"), (1, "pclmulqdq"), (9, "ssse3"), (12, "fma"), (13, "cx16")]),
    (BASIC, ECX, &[(19, "sse4_1"), (20, "sse4_2"), (22, "movbe"), (23, "popcnt"), (25, "aes")]),
    (BASIC, ECX, &[(26, "xsave"), (28, "avx"), (29, "f16c"), (30, "rdrand"), (31, "hypervisor")]),
    (EXTENDED, ECX, &[(0, "lahf_lm"), (5, "abm"), (6, "sse4a"), (7, "misalignsse")]),
    (EXTENDED, ECX, &[(8, "3dnowprefetch"), (11, "xop"), (16, "fma4"), (21, "tbm")]),
    (STRUCTURED, EBX, &[(0, "fsgsbase"), (3, "bmi1"), (4, "hle"), (5, "avx2"), (8, "bmi2")]),
    (STRUCTURED, EBX, &[(9, "erms"), (11, "rtm"), (16, "avx512f"), (17, "avx512dq")]),
    (STRUCTURED, EBX, &[(18, "rdseed"), (19, "adx"), (21, "avx512ifma"), (23, "clflushopt")]),
    (STRUCTURED, EBX, &[(24, "clwb"), (28, "avx512cd"), (29, "sha_ni"), (30, "avx512bw")]),
    (STRUCTURED, EBX, &[(31, "avx512vl")]),
    (STATE_MORE, EAX, &[(0, "xsaveopt"), (1, "xsavec"), (2, "xgetbv1")]),
    (STRUCTURED_MORE, EAX, &[(4, "avx_vnni"), (5, "avx512_bf16")]),
    (SIZES, EBX, &[(0, "clzero")]),
    (STRUCTURED, ECX, &[(1, "avx512vbmi"), (6, "avx512_vbmi2"), (8, "gfni"), (9, "vaes")]),
    (STRUCTURED, ECX, &[(10, "vpclmulqdq"), (11, "avx512_vnni"), (12, "avx512_bitalg")]),
    (STRUCTURED, ECX, &[(14, "avx512_vpopcntdq"), (22, "rdpid"), (25, "cldemote")]),
    (STRUCTURED, ECX, &[(27, "movdiri"), (28, "movdir64b")]),
    (STRUCTURED, EDX, &[(4, "fsrm"), (8, "avx512_vp2intersect"), (14, "serialize")]),
    (STRUCTURED, EDX, &[(23, "avx512_fp16")]),
];

/// Features that need AVX's registers, beside those whose names begin with `avx`.
const WITH_AVX: [&str; 6] = ["fma", "f16c", "xop", "fma4", "vaes", "vpclmulqdq"];

pub(super) fn cpuinfo(cx: &Cx) -> Vec<u8> {
    let machine = &*cx.unix.machine;
    let (facts, count) = (Facts::of(machine), cx.unix.processors.count());
    let mut text = String::new();
    for number in 0..count {
        facts.write(&mut text, number, count);
    }
    text.into_bytes()
}

/// What is told of every processor.
struct Facts {
    vendor: String,
    name: String,
    family: u32,
    model: u32,
    stepping: u32,
    /// In thousands, per second.
    counts: u64,
    level: u32,
    flags: String,
    line: u32,
    bits: (u32, u32),
}

impl Facts {
    fn of(machine: &dyn Machine) -> Self {
        let ask = |leaf: Leaf| machine.cpuid(leaf.0, leaf.1);
        let [level, b, c, d] = ask((0, 0));
        let signature = ask(BASIC)[EAX];
        let (family, model) = (signature >> 8 & 0xF, signature >> 4 & 0xF);
        let sizes = ask(SIZES)[EAX];
        let words: Vec<u32> = (NAME..NAME + 3).flat_map(|leaf| ask((leaf, 0))).collect();
        Self {
            vendor: told(&[b, d, c]),
            name: told(&words),
            family: if family == 15 { family + (signature >> 20 & 0xFF) } else { family },
            model: if family < 6 { model } else { (signature >> 16 & 0xF) << 4 | model },
            stepping: signature & 0xF,
            counts: (1_000_000 << 32) / machine.tsc_scale().1.max(1),
            level,
            flags: flags(&ask),
            line: match (ask(BASIC)[EBX] >> 8 & 0xFF) * 8 {
                0 => 64,
                bytes => bytes,
            },
            bits: if sizes == 0 { (36, 48) } else { (sizes & 0xFF, sizes >> 8 & 0xFF) },
        }
    }

    /// What is said of number `number` of `count` processors.
    fn write(&self, text: &mut String, number: u32, count: u32) {
        let mut tell = |name: &str, value: &dyn core::fmt::Display| {
            let tabs = if name.len() < 8 { "\t\t" } else { "\t" };
            let _ = writeln!(text, "{name}{tabs}: {value}");
        };
        tell("processor", &number);
        tell("vendor_id", &self.vendor);
        tell("cpu family", &self.family);
        tell("model", &self.model);
        tell("model name", &self.name);
        tell("stepping", &self.stepping);
        tell("cpu MHz", &format_args!("{}.{:03}", self.counts / 1000, self.counts % 1000));
        tell("physical id", &0);
        tell("siblings", &count);
        tell("core id", &number);
        tell("cpu cores", &count);
        tell("fpu", &"yes");
        tell("fpu_exception", &"yes");
        tell("cpuid level", &self.level);
        tell("wp", &"yes");
        tell("flags", &self.flags);
        tell("clflush size", &self.line);
        tell("cache_alignment", &self.line);
        let (physical, linear) = self.bits;
        tell("address sizes", &format!("{physical} bits physical, {linear} bits virtual"));
        text.push('\n');
    }
}

/// What `words` spell, up to a zero; `unknown` if that is nothing.
fn told(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let text: String = bytes.take_while(|byte| *byte != 0).map(printable).collect();
    match text.trim() {
        "" => "unknown".into(),
        text => text.into(),
    }
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() { char::from(byte) } else { ' ' }
}

/// The names of the features that programs can use.
fn flags(ask: &dyn Fn(Leaf) -> [u32; 4]) -> String {
    let (has_avx, has_avx512) = (is_on(ask, AVX_STATE), is_on(ask, AVX512_STATE));
    let can_be_used = |name: &str| match name {
        name if name.starts_with("avx512") => has_avx512,
        name => has_avx || !(name.starts_with("avx") || WITH_AVX.contains(&name)),
    };
    let mut text = String::new();
    for (leaf, register, names) in FLAGS {
        let word = ask(*leaf)[*register];
        for (_, name) in
            names.iter().filter(|(bit, name)| word >> bit & 1 != 0 && can_be_used(name))
        {
            text.push_str(if text.is_empty() { "" } else { " " });
            text.push_str(name);
        }
    }
    text
}

/// Whether the kernel has switched on `component` of the vector state: then what is saved at a switch of threads reaches
/// its end, in the standard format (Intel SDM 1, 13.4.3).
fn is_on(ask: &dyn Fn(Leaf) -> [u32; 4], component: u32) -> bool {
    let [bytes, offset, ..] = ask((STATE.0, component));
    let end = offset + bytes;
    ask(BASIC)[ECX] & OSXSAVE != 0 && bytes != 0 && ask(STATE)[EBX] >= end
}
