//! `bench`: every claim about Baton's speed, one command away (docs/measuring.md).
//!
//! Measured programs (`bench/guest`) run under the instrument (`instrument`), which
//! counts between marks; `suites` makes rows of what it counted, `report` makes
//! tables and pages of the rows. `gate` keeps changes from making IPC slower
//! unnoticed; `trace` says where the instructions go.

mod ablation;
mod across;
mod assembly;
mod bershad;
pub mod gate;
mod history;
mod instrument;
pub mod linux;
mod loads;
mod native;
mod papers;
mod peers;
pub mod plot;
mod remote;
mod report;
mod row;
mod several;
mod smp;
mod stretch;
mod suites;
mod trace;
mod tracing;
mod watched;
mod wenske;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::compose::{Composer, Selection};
use crate::machine;
use crate::ui::{self, Step};
use crate::workspace::Workspace;
use instrument::{Instrument, Measured, Trace};
use row::Row;

/// What to measure.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Suites to run; without any, all of them
    #[arg(value_name = "SUITE")]
    pub suites: Vec<String>,
    /// List the instructions of one row: short-ipc, string, page-fault, interrupt, or a row's name
    #[arg(long, value_name = "ROW")]
    pub trace: Option<String>,
    /// Add this commit's figures to bench/history.jsonl
    #[arg(long)]
    pub record: bool,
    /// Measure only the gate set, against bench/gate.toml
    #[arg(long)]
    pub gate: bool,
    /// Make today's figures the gate
    #[arg(long)]
    pub accept: bool,
}

impl Options {
    fn wants(&self, suite: &str) -> bool {
        let named = |suite: &str| self.suites.iter().any(|name| name == suite);
        let needed = named(papers::SUITE) && papers::SOURCES.contains(&suite);
        self.suites.is_empty() || named(suite) || needed
    }
}

/// Memory and time that a measured program gets.
struct Program {
    /// What this run of it is called.
    name: &'static str,
    /// The program.
    root: &'static str,
    memory_mb: u32,
    kernel_args: &'static [&'static str],
    seconds: u64,
    cpus: u32,
}

impl Program {
    /// On one processor.
    const fn new(name: &'static str, memory_mb: u32, seconds: u64) -> Self {
        Self { name, root: name, memory_mb, kernel_args: &[], seconds, cpus: 1 }
    }
}

const IPC: Program = Program::new("bench-ipc", 512, 120);
const LRPC: Program = Program::new("bench-lrpc", 512, 60);
const OPS: Program = Program::new("bench-ops", 1024, 300);
const GROWTH: Program =
    Program { kernel_args: &["kmem=1400M"], ..Program::new("bench-growth", 3072, 600) };
const SMP: Program = on("bench-smp", 4);
/// The same on machines with more or fewer processors.
const SEVERAL: [Program; 4] =
    [on("bench-smp-1", 1), on("bench-smp-2", 2), SMP, on("bench-smp-8", 8)];

/// The suite `smp` on `cpus` processors.
const fn on(name: &'static str, cpus: u32) -> Program {
    Program { root: "bench-smp", cpus, ..Program::new(name, 512, 300) }
}

/// The measured program in which a row is found.
fn program_of(row: &str) -> &'static Program {
    match row.split('/').next() {
        Some("growth") => &GROWTH,
        Some("ops") => &OPS,
        Some("lrpc") => &LRPC,
        Some("smp") => &SMP,
        _ => &IPC,
    }
}

/// Everything that one invocation shares.
pub(crate) struct Bench<'a> {
    workspace: &'a Workspace,
    composer: Composer<'a>,
    instrument: Instrument,
    measured: BTreeMap<&'static str, Measured>,
    linux: Option<Vec<Row>>,
}

impl<'a> Bench<'a> {
    fn new(workspace: &'a Workspace) -> Result<Self> {
        let instrument = Instrument::build(workspace)?;
        Ok(Self {
            workspace,
            composer: Composer::new(workspace),
            instrument,
            measured: BTreeMap::new(),
            linux: None,
        })
    }

    /// Runs a measured program, at most once without a trace.
    fn run(&mut self, program: &Program, trace: Trace) -> Result<&Measured> {
        if trace != Trace::None || !self.measured.contains_key(program.name) {
            let selection =
                Selection { root: Some(program.root.to_owned()), ..Selection::default() };
            let bootable = self.composer.compose(&selection, program.name)?;
            let options = machine::Options {
                memory: Some(program.memory_mb),
                cpus: Some(program.cpus),
                kernel_args: program.kernel_args.iter().map(|&word| word.to_owned()).collect(),
                ..machine::Options::default()
            };
            let step = Step::start(program.name);
            step.say("running in the emulator");
            let limit = Duration::from_secs(program.seconds);
            let measured = self.instrument.run(&bootable, &options, limit, trace)?;
            step.done(&format!("{} rows", measured.series.len()));
            measured.notes.iter().for_each(|note| eprintln!("  note: {note}"));
            self.measured.insert(program.name, measured);
        }
        self.measured.get(program.name).context("the program was measured a line ago")
    }

    /// The lines of a sample's trace; what was measured without one stays.
    fn traced(&mut self, program: &Program, sample: u64) -> Result<Vec<String>> {
        let measured = self.measured.remove(program.name);
        let trace = self.run(program, Trace::Sample(sample))?.trace.clone();
        if let Some(measured) = measured {
            self.measured.insert(program.name, measured);
        }
        Ok(trace)
    }

    /// What Linux takes; booted at most once.
    fn linux(&mut self) -> Result<&[Row]> {
        if self.linux.is_none() {
            self.linux = Some(linux::rows(self.workspace)?);
        }
        Ok(self.linux.as_deref().unwrap_or_default())
    }

    /// The rows of the suite `smp`.
    fn several_processors(&mut self) -> Result<Vec<Row>> {
        let mut rows = smp::rows(self.run(&SMP, Trace::None)?);
        for program in &SEVERAL {
            self.run(program, Trace::None)?;
        }
        let runs = SEVERAL.each_ref().map(|it| (it.cpus, &self.measured[it.name]));
        rows.extend(several::rows(&runs));
        rows.push(several::text(&crate::build::kernel(self.workspace)?)?);
        let bootable = remote::compose(self.workspace)?;
        rows.extend(remote::rows(&remote::run(&self.instrument, &bootable, Trace::None)?));
        let across = across::rows(self.workspace, &rows)?;
        rows.extend(across);
        Ok(rows)
    }

    /// The rows of `suite`.
    fn suite(&mut self, suite: &str) -> Result<Vec<Row>> {
        Ok(match suite {
            "ipc" => suites::ipc(self.run(&IPC, Trace::None)?),
            "working-set" => suites::working_set(self.run(&IPC, Trace::None)?),
            "minimum" => suites::minimum(self.run(&IPC, Trace::None)?),
            "rpc" => {
                let linux = self.linux()?.to_vec();
                suites::rpc(self.run(&IPC, Trace::None)?, &linux)
            }
            "lipc" => {
                let mut rows = suites::local(self.run(&IPC, Trace::None)?);
                rows.extend(wenske::without(self.workspace, &self.instrument)?);
                rows
            }
            "lrpc" => {
                let mut rows = suites::stubs(self.run(&LRPC, Trace::None)?);
                rows.extend(bershad::rows(self)?);
                rows
            }
            "smp" => self.several_processors()?,
            "ops" => suites::operations("ops", self.run(&OPS, Trace::None)?),
            "growth" => suites::operations("growth", self.run(&GROWTH, Trace::None)?),
            "linux" => {
                let mut rows = self.linux()?.to_vec();
                rows.extend(linux::rows_of_baton(self.workspace)?);
                rows.extend(loads::rows(self.workspace)?);
                rows
            }
            "native" => native::rows(self.workspace)?,
            "ablation" => {
                self.run(&IPC, Trace::None)?;
                ablation::rows(self.workspace, &self.instrument, &self.measured[IPC.name])?
            }
            "interrupts-off" => {
                let seen: Vec<_> =
                    self.measured.iter().map(|(name, m)| (*name, m.stretches.clone())).collect();
                stretch::rows(self.workspace, &self.instrument, &seen)?
            }
            _ => Vec::new(),
        })
    }
}

/// Carries out `bench`; whether all is well (the gate may be shut).
///
/// # Errors
/// When something could not be measured at all.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    for suite in &options.suites {
        ensure!(
            report::SUITES.iter().any(|(name, _)| name == suite),
            "there is no suite `{suite}`; the suites are: {}",
            report::SUITES.map(|(name, _)| name).join(", ")
        );
    }
    if options.accept {
        show_gate(&gate::accept(workspace)?);
        return Ok(true);
    }
    if options.gate {
        return Ok(show_gate(&gate::check(workspace, None)?));
    }
    let mut bench = Bench::new(workspace)?;
    if let Some(row) = &options.trace {
        tracing::show(&mut bench, row)?;
        return Ok(true);
    }
    measure(&mut bench, options)?;
    Ok(true)
}

/// Runs the wanted suites and reports.
fn measure(bench: &mut Bench<'_>, options: &Options) -> Result<()> {
    let started = Instant::now();
    let mut rows = Vec::new();
    for (suite, _) in report::SUITES.into_iter().filter(|(name, _)| options.wants(name)) {
        match suite {
            papers::SUITE => rows.extend(papers::rows(&rows, bench.linux()?)),
            _ => rows.extend(bench.suite(suite)?),
        }
        // The whole suite's peers may be in other suites: all rows so far are searched.
        match suite {
            papers::SUITE => ui::print(&papers::text(&rows)),
            _ => ui::print(&report::table(&rows, suite, ui::columns())),
        }
        if suite == "lipc" {
            ui::print(&wenske::tables(&rows));
        }
        if suite == "lrpc" {
            ui::print(&bershad::tables(&rows));
        }
    }
    if options.record {
        let entry = history::record(bench.workspace, &rows)?;
        println!(
            "\nRecorded {} figures of {} in bench/history.jsonl.",
            entry.figures.len(),
            entry.commit
        );
    }
    let notes: Vec<String> =
        bench.measured.values().flat_map(|measured| measured.notes.iter().cloned()).collect();
    let dir = bench.workspace.target("bench")?;
    report::write(&dir, &rows, &history::read(bench.workspace)?, &notes, &about(bench.workspace))?;
    let shown = bench.workspace.show(&dir);
    println!(
        "\n{} rows in {}: {shown}/report.html, report.json, report.csv",
        rows.len(),
        ui::seconds(started.elapsed())
    );
    Ok(())
}

/// Of what the figures are: commit and its date, compiler, emulator.
fn about(workspace: &Workspace) -> String {
    let call = |program: &str, arguments: &[&str]| -> String {
        let mut command = std::process::Command::new(program);
        let output = command.args(arguments).current_dir(&workspace.root).output();
        let output = output.ok().filter(|output| output.status.success());
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
    };
    let commit = call("git", &["log", "-1", "--format=%h of %cs: %s"]);
    let changed = !call("git", &["status", "--porcelain"]).is_empty();
    let changed = if changed { ", with changes that are in no commit" } else { "" };
    let rustc = std::env::var("BATON_RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let (rustc, qemu) = (call(&rustc, &["--version"]), call(crate::machine::QEMU, &["--version"]));
    format!("Commit {commit}{changed}. {rustc}; {qemu}.")
}

/// Prints what the gate found; whether it is open.
fn show_gate(verdict: &gate::Verdict) -> bool {
    for (name, instructions) in &verdict.measured {
        let what = match name.as_str() {
            watched::SHARED_LINES => "lines",
            name if name.starts_with("linux/") => "all instructions",
            _ => "kernel instructions",
        };
        println!("  {name:<32} {instructions:>6} {what}");
    }
    verdict.failures.iter().for_each(|failure| println!("  FAILED: {failure}"));
    verdict.failures.is_empty()
}
