//! `/sys`, as far as programs look there for processors and memory: a node with both, and how many processors there are.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::system::{directory, text};
use super::{Fixed, Node, What};
use crate::call::Cx;
use crate::memory::PAGE;
use crate::process::processors::MOST;

/// `/sys`.
const ROOT: &[Fixed] = &[directory("devices", DEVICES)];
const DEVICES: &[Fixed] = &[directory("system", SYSTEM)];
const SYSTEM: &[Fixed] = &[directory("cpu", PROCESSORS), directory("node", NODES)];

const PROCESSORS: &[Fixed] = &[
    text("isolated", |_| b"\n".to_vec()),
    text("kernel_max", |_| format!("{}\n", MOST - 1).into_bytes()),
    text("offline", |_| b"\n".to_vec()),
    text("online", list),
    text("possible", list),
    text("present", list),
];

const NODES: &[Fixed] = &[
    text("has_cpu", |_| b"0\n".to_vec()),
    text("has_memory", |_| b"0\n".to_vec()),
    text("has_normal_memory", |_| b"0\n".to_vec()),
    directory("node0", NODE),
    text("online", |_| b"0\n".to_vec()),
    text("possible", |_| b"0\n".to_vec()),
];

const NODE: &[Fixed] = &[
    text("cpulist", list),
    text("cpumap", map),
    text("distance", |_| b"10\n".to_vec()),
    text("meminfo", memory),
    text("numastat", numbers),
];

impl Node {
    /// `/sys` itself.
    #[must_use]
    pub fn devices() -> Self {
        Self { what: What::Directory(ROOT), ..Self::root(None) }
    }
}

/// The numbers of the processors.
fn list(cx: &Cx) -> Vec<u8> {
    match cx.unix.processors.count() {
        1 => b"0\n".to_vec(),
        count => format!("0-{}\n", count - 1).into_bytes(),
    }
}

/// The same as bits, 32 in a word.
fn map(cx: &Cx) -> Vec<u8> {
    let mask = cx.unix.processors.mask();
    match mask >> 32 {
        0 => format!("{mask:x}\n").into_bytes(),
        high => format!("{high:x},{:08x}\n", mask & 0xFFFF_FFFF).into_bytes(),
    }
}

fn memory(cx: &Cx) -> Vec<u8> {
    let memory = &cx.unix.memory;
    let kib = |frames: usize| frames * PAGE / 1024;
    let (total, free) = (kib(memory.total()), kib(memory.available()));
    let mut text = String::new();
    for (name, value) in [("MemTotal", total), ("MemFree", free), ("MemUsed", total - free)] {
        let _ = writeln!(text, "Node 0 {:<15}{value:>8} kB", format!("{name}:"));
    }
    text.into_bytes()
}

/// Pages that were there where they were wanted: they always are, and nobody counts them.
fn numbers(cx: &Cx) -> Vec<u8> {
    let used = cx.unix.memory.total() - cx.unix.memory.available();
    let text = format!(
        "numa_hit {used}\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node {used}\nother_node 0\n"
    );
    text.into_bytes()
}
