//! What reads input from outside, as functions of bytes.
//!
//! Each target gives the bytes to one parser and checks what must hold of whatever that
//! accepts; it panics if something does not. `tests/corpus.rs` drives the targets in every
//! test run, with the small files in `corpus/` and deterministic mutations of them; with
//! `./baton fuzz --parsers` libFuzzer drives the same functions (`fuzz/libfuzzer`).

mod archive;
mod boot_image;
mod bootinfo;
// The world that the Unix library is tried in.
#[path = "../../../lib/unix/tests/all/common/mod.rs"]
mod common;
/// What that world asks of the suite it comes from.
mod given_back {
    /// Total and free bytes of the server's heap: no limit here.
    pub fn heap() -> (u64, u64) {
        (u64::MAX, u64::MAX)
    }
}
mod loader;
mod madt;
mod mutate;
mod program;
mod samples;
mod system;
mod tool_elf;

pub use archive::archive;
pub use boot_image::boot_image;
pub use bootinfo::bootinfo;
pub use loader::loader;
pub use madt::madt;
pub use mutate::{Mutator, Random};
pub use program::program;
pub use samples::samples;
pub use system::{system, task_line};
pub use tool_elf::tool_elf;

/// A target: whether the input was accepted.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, also that of its folder in the corpus and of libFuzzer's program.
    pub name: &'static str,
    /// The function.
    pub run: fn(&[u8]) -> bool,
    /// Words that inputs are made of, for mutations.
    pub words: &'static [&'static str],
}

/// All targets.
pub const TARGETS: [Target; 9] = [
    Target { name: "boot_image", run: boot_image, words: &["BATONIMG"] },
    Target { name: "loader", run: loader, words: &["RSD PTR ", "kmem="] },
    Target { name: "madt", run: madt, words: &["APIC", "XSDT", "RSD PTR "] },
    Target { name: "bootinfo", run: bootinfo, words: &[] },
    Target { name: "system", run: system, words: &system::FILE_WORDS },
    Target { name: "task_line", run: task_line, words: &system::LINE_WORDS },
    Target { name: "archive", run: archive, words: &["070701", "TRAILER!!!", "/", "..", "dev"] },
    Target { name: "program", run: program, words: &["\x7fELF", "#!", "/bin/other"] },
    Target { name: "tool_elf", run: tool_elf, words: &["\x7fELF"] },
];
