//! Suite `smp`, its second part: calls of a Linux program that runs on another processor than the Unix server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::instrument::{Instrument, Measured, Sample, Trace, count};
use super::native::compile;
use super::row::Row;
use crate::compose::{Bootable, Composer, Selection};
use crate::linux::Wishes;
use crate::linux::cpio::Archive;
use crate::machine;
use crate::ui::Step;
use crate::workspace::Workspace;

const SOURCE: &str = "bench/host/linux/remote.c";
const LIMIT: Duration = Duration::from_secs(300);
/// User instructions of the known loop, what sets the count included.
const LOOP: u64 = 2_001;
/// The row that has a goal of its own.
const ROW: &str = "smp/getppid-remote";

/// The system with the program, ready to boot.
///
/// # Errors
/// When something cannot be built.
pub fn compose(workspace: &Workspace) -> Result<Bootable> {
    let dir = workspace.target("bench/linux")?;
    let init = dir.join("init-remote");
    compile(workspace, SOURCE, &["-O2", "-static"], &init)?;
    let mut archive = Archive::default();
    archive.copy("init", &init)?;
    archive.directory("dev", 0o755);
    let initramfs = dir.join("initramfs-remote");
    std::fs::write(&initramfs, archive.write()?).context("cannot write a first file system")?;
    let selection = Selection {
        system: Some("linux".to_owned()),
        wishes: Wishes { initramfs: Some(initramfs), ..Wishes::default() },
        fixed_addresses: true,
        ..Selection::default()
    };
    Composer::new(workspace).compose(&selection, "bench-remote")
}

/// Runs it on two processors.
///
/// # Errors
/// When the program does not come to its end, or its known loop is not counted as long as it is.
pub fn run(instrument: &Instrument, bootable: &Bootable, trace: Trace) -> Result<Measured> {
    let step = Step::start("linux on two processors");
    step.say("running in the emulator");
    let options = machine::Options { cpus: Some(2), ..machine::Options::default() };
    let measured = instrument.observe(bootable, &options, LIMIT, trace)?;
    let counted = best(&measured, 1).map(|(_, sample)| count(sample, "user"));
    ensure!(
        counted == Some(LOOP),
        "a loop of {LOOP} instructions is counted as {counted:?}; nothing is reported"
    );
    step.done(&format!("{} samples", measured.samples.len()));
    Ok(measured)
}

/// All instructions of a sample, on both processors.
fn total(sample: &Sample) -> u64 {
    ["user", "kernel", "ouser", "okernel"].iter().map(|name| count(sample, name)).sum()
}

/// The samples of a phase, with their numbers.
fn samples(measured: &Measured, phase: u64) -> impl Iterator<Item = (u64, &Sample)> {
    let numbered = (0..).zip(&measured.samples);
    numbered.filter(move |(_, sample)| count(sample, "phase") == phase)
}

/// The best sample of a phase, and its number.
fn best(measured: &Measured, phase: u64) -> Option<(u64, &Sample)> {
    samples(measured, phase).min_by_key(|(_, sample)| total(sample))
}

/// The number of the sample behind the row `name`, if that is one of these.
#[must_use]
pub fn sample_of(measured: &Measured, name: &str) -> Option<u64> {
    let call = match name {
        ROW => "getppid",
        _ => name.strip_prefix("smp/call-remote call=")?,
    };
    let index = measured.calls.iter().position(|it| it == call)?;
    best(measured, index as u64 + 1).map(|(number, _)| number)
}

/// A row for each call: all instructions of both processors.
#[must_use]
pub fn rows(measured: &Measured) -> Vec<Row> {
    let calls = (1..).zip(&measured.calls).skip(1);
    let row = |(phase, call): (u64, &String)| {
        let (_, sample) = best(measured, phase)?;
        let name = if call == "getppid" { ROW } else { "smp/call-remote" };
        let server = if count(sample, "entries") == 0 { "no" } else { "yes" };
        let row = Row::baton("smp", name, total(sample) as f64).with("call", call.as_str());
        Some(
            row.with("server", server)
                .with("user", (count(sample, "user") + count(sample, "ouser")).to_string())
                .with("first_processor", count(sample, "okernel").to_string())
                .with("interrupts", count(sample, "messages").to_string())
                .with("samples", samples(measured, phase).count().to_string()),
        )
    };
    calls.filter_map(row).collect()
}
