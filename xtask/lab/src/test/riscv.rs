//! The kernel for another processor: everything outside `kernel/src/arch` compiles for RISC-V
//! unchanged, and does on the host, with RISC-V's page tables and registers, what the kernel's
//! tests say. Where the emulator and a linker for it are installed, the kernel also boots, as
//! far as it goes.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::host::{SHOWN_LINES, cargo_test};
use super::keep_log;
use super::tally::Outcome;
use crate::ui::Step;
use crate::workspace::Workspace;

/// The suite's name.
pub const SUITE: &str = "kernel-riscv64";
/// What it is compiled for.
const TRIPLE: &str = "riscv64imac-unknown-none-elf";
/// Its build directory under `target/`.
const FOLDER: &str = "riscv64";
/// Debian: binutils-riscv64-unknown-elf.
const LINKER: &str = "riscv64-unknown-elf-ld";
/// Debian: qemu-system-misc, with opensbi.
const EMULATOR: &str = "qemu-system-riscv64";
/// Explorations that take minutes, of rules of messages, calls and grants: they run for the other processor, and here
/// if this suite is asked for by its name.
const LONG: [&str; 3] = [
    "explore::every_reachable_state",
    "lrpc::model::three_domains",
    "overtaken::a_grant_that_is_given_up",
];
/// What the kernel says last; it ends the machine then.
const LAST_WORDS: &str = "which this architecture does not have yet; stopped";

/// Compiles, tests (`whole`: what is long, too), and boots where that is possible.
///
/// # Errors
/// When the tools cannot be run at all.
pub fn run(workspace: &Workspace, whole: bool) -> Result<Outcome> {
    let links = exists(LINKER);
    let mut outcome = compile(workspace, links)?;
    if let Some(kernel) = workspace.packages()?.iter().find(|package| package.name == "kernel") {
        let skipped: &[&str] = if whole { &[] } else { &LONG };
        let tests = cargo_test(workspace, kernel, SUITE, &["--features", "riscv64"], skipped)?;
        outcome.passed += tests.passed;
        outcome.failures.extend(tests.failures);
        outcome.notes.extend(tests.notes);
    }
    if links && exists(EMULATOR) && outcome.failures.is_empty() {
        let booted = boot(workspace)?;
        outcome.passed += booted.passed;
        outcome.failures.extend(booted.failures);
    } else {
        let why = format!("It is not booted: that takes {EMULATOR} and {LINKER}.");
        outcome.notes.push(why);
    }
    Ok(outcome)
}

/// Whether `program` is installed.
fn exists(program: &str) -> bool {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

/// The kernel for RISC-V: the image, or without a linker the library.
fn compile(workspace: &Workspace, links: bool) -> Result<Outcome> {
    let step = Step::start(SUITE.to_owned());
    step.say("compiling");
    let mut cargo = workspace.cargo();
    cargo
        .args(["build", "--release", "-Zbuild-std=core,alloc", "--target", TRIPLE, "-p", "kernel"])
        .args(if links { ["--bin", "baton-kernel"].as_slice() } else { &["--lib"] })
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-Clinker={LINKER} -Clinker-flavor=ld"))
        .env("CARGO_TARGET_DIR", workspace.target(FOLDER)?);
    let output = cargo.stdin(Stdio::null()).output().context("cannot run cargo build")?;
    step.vanish();
    if output.status.success() {
        return Ok(Outcome { passed: 1, ..Outcome::default() });
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = words.lines().collect();
    let from = lines.len().saturating_sub(SHOWN_LINES);
    let notes = lines[from..].iter().map(|line| format!("| {line}")).collect();
    Ok(Outcome { notes, ..Outcome::failed("the kernel does not compile for RISC-V") })
}

/// Boots the image: the firmware starts it, it says who it is and powers the machine off.
fn boot(workspace: &Workspace) -> Result<Outcome> {
    let image = workspace.target(FOLDER)?.join(TRIPLE).join("release/baton-kernel");
    let output = Command::new("timeout")
        .args(["60", EMULATOR, "-machine", "virt", "-m", "128", "-nographic", "-kernel"])
        .arg(image)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {EMULATOR}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let log = keep_log(workspace, "kernel-riscv64-boot", &said)?;
    if output.status.success() && said.contains(LAST_WORDS) {
        return Ok(Outcome { passed: 1, ..Outcome::default() });
    }
    let at = workspace.show(&log);
    Ok(Outcome::failed(format!("the kernel for RISC-V did not say its last words; see {at}")))
}
