//! `test`: three rings with one report. Host tests (pure logic, by cargo), runs
//! in the emulator (kernel and user level together), whole systems (image,
//! input, expected transcript).

mod damage;
mod guest;
mod host;
mod open;
mod picture;
mod riscv;
mod sdk;
mod spec;
mod tally;
mod tamper;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::compose::Composer;
use crate::workspace::Workspace;
use crate::{bench, fuzz, lint, linux, trial};
use spec::Spec;
use tally::{Outcome, Tally};

/// Where the emulator runs are described.
const SPEC: &str = "tests/systems.toml";

/// The short runs of `linux compare`, and on how many processors each is; on several those cases that are for
/// several.
const COMPARISONS: [(&str, u32); 2] = [("linux-compare", 1), ("linux-compare-4-processors", 4)];

/// The rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ring {
    /// On the host: pure logic, models, property tests.
    Host,
    /// In the emulator: kernel and user level together.
    Emulator,
    /// Whole systems: image, input, expected transcript.
    System,
}

impl Ring {
    const ALL: [Self; 3] = [Self::Host, Self::Emulator, Self::System];

    const fn title(self) -> &'static str {
        match self {
            Self::Host => "Ring 1: on the host",
            Self::Emulator => "Ring 2: in the emulator",
            Self::System => "Ring 3: whole systems",
        }
    }
}

/// What to test.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Only suites whose name contains this
    pub filter: Option<String>,
    /// Only this ring (repeatable)
    #[arg(long, value_enum)]
    pub ring: Vec<Ring>,
    /// Show the console of every run in the emulator
    #[arg(long)]
    pub show: bool,
}

impl Options {
    fn wants_ring(&self, ring: Ring) -> bool {
        self.ring.is_empty() || self.ring.contains(&ring)
    }

    fn wants(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|part| name.contains(part.as_str()))
    }
}

/// Runs everything that is wanted and prints the report; whether all is well.
///
/// # Errors
/// When the tests could not be run at all.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let spec = Spec::read(&workspace.path(SPEC), SPEC)?;
    let mut tally = Tally::default();
    let mut composer = match options.filter {
        None => Composer::of_everything(workspace),
        Some(_) => Composer::new(workspace),
    };
    for ring in Ring::ALL.into_iter().filter(|ring| options.wants_ring(*ring)) {
        println!("\n{}", ring.title());
        match ring {
            Ring::Host => host::run(workspace, options, &mut tally)?,
            Ring::Emulator | Ring::System => {
                let runs = spec.runs.iter().filter(|run| run.ring == ring);
                // The instrument knows the places of the usual kernel.
                let watched = std::env::var_os(crate::machine::PLUGIN_VARIABLE).is_some();
                let runs = runs.filter(|run| !(watched && run.assertions));
                for run in runs.filter(|run| options.wants(&run.name)) {
                    guest::run(workspace, &mut composer, run, options.show, &mut tally);
                }
            }
        }
        if ring == Ring::Emulator {
            gate(workspace, options, &mut tally);
        }
        if ring == Ring::System && options.wants("debugger") {
            debugger(workspace, &mut composer, &mut tally);
        }
        if ring == Ring::System && options.wants("fuzz-system") {
            fuzz_system(workspace, &mut composer, options, &mut tally);
        }
        for (suite, cpus) in COMPARISONS {
            if ring == Ring::System && options.wants(suite) {
                compare(workspace, &mut composer, options, (suite, cpus), &mut tally);
            }
        }
        if ring == Ring::System && options.wants(sdk::SUITE) {
            let started = Instant::now();
            let outcome = sdk::trial(workspace);
            let outcome = outcome.unwrap_or_else(|error| Outcome::failed(format!("{error:#}")));
            tally.add(sdk::SUITE, outcome, started.elapsed());
        }
        if ring == Ring::System && options.wants("linux-judge") {
            judge(workspace, &mut composer, options, &mut tally);
        }
    }
    report(workspace, &tally)
}

/// gdb on a running system (`debug::trial`).
fn debugger(workspace: &Workspace, composer: &mut Composer<'_>, tally: &mut Tally) {
    if std::env::var_os(crate::machine::PLUGIN_VARIABLE).is_some() {
        return;
    }
    let started = Instant::now();
    let outcome = match trial::trial(workspace, composer) {
        Ok(verdicts) => verdicts.into_iter().fold(Outcome::default(), |mut sum, verdict| {
            match verdict {
                (_, None) => sum.passed += 1,
                (name, Some(why)) => sum.failures.push(format!("{name}: {why}")),
            }
            sum
        }),
        Err(error) => Outcome::failed(format!("{error:#}")),
    };
    tally.add("debugger", outcome, started.elapsed());
}

/// Hostile tasks against the default system: the short run of `fuzz --system`.
fn fuzz_system(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    options: &Options,
    tally: &mut Tally,
) {
    if std::env::var_os(crate::machine::PLUGIN_VARIABLE).is_some() {
        return;
    }
    let started = Instant::now();
    let outcome = match fuzz::system::short(workspace, composer, options.show) {
        Ok((_, 0)) => Outcome { passed: 1, ..Outcome::default() },
        Ok((calls, found)) => Outcome::failed(format!("{found} violations in {calls} calls")),
        Err(error) => Outcome::failed(format!("{error:#}")),
    };
    tally.add("fuzz-system", outcome, started.elapsed());
}

/// The same programs on Linux and on Baton: the short run of `linux compare`. Not under
/// the instrument, which looks at what Baton does, not at what Linux does.
fn compare(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    options: &Options,
    (suite, cpus): (&'static str, u32),
    tally: &mut Tally,
) {
    if std::env::var_os(crate::machine::PLUGIN_VARIABLE).is_some() {
        return;
    }
    let started = Instant::now();
    let outcome = match linux::compare::short(workspace, composer, options.show, cpus) {
        Ok(cases) => {
            let (same, different): (Vec<_>, Vec<_>) =
                cases.into_iter().partition(|(_, difference)| difference.is_none());
            let failures = different
                .into_iter()
                .map(|(name, difference)| format!("{name}: {}", difference.unwrap_or_default()))
                .collect();
            Outcome { passed: same.len(), failures, ..Outcome::default() }
        }
        Err(error) => Outcome::failed(format!("{error:#}")),
    };
    tally.add(suite, outcome, started.elapsed());
}

/// Tests that others wrote: the short run of `linux judge`.
fn judge(workspace: &Workspace, composer: &mut Composer<'_>, options: &Options, tally: &mut Tally) {
    if std::env::var_os(crate::machine::PLUGIN_VARIABLE).is_some() {
        return;
    }
    let started = Instant::now();
    let outcome = match linux::judge::short(workspace, composer, options.show) {
        Ok((passed, failures)) => Outcome { passed, failures, ..Outcome::default() },
        Err(error) => Outcome::failed(format!("{error:#}")),
    };
    tally.add("linux-judge", outcome, started.elapsed());
}

/// The gate set of `bench`, and the proof that the gate shuts. Not under the
/// instrument, which `bench` puts there: it counts, too.
fn gate(workspace: &Workspace, options: &Options, tally: &mut Tally) {
    if std::env::var_os(crate::machine::PLUGIN_VARIABLE).is_some() {
        return;
    }
    if options.wants("gate") {
        let started = Instant::now();
        let outcome = match bench::gate::check(workspace, None) {
            Ok(verdict) => {
                let passed = verdict.measured.len().saturating_sub(verdict.failures.len());
                Outcome { passed, failures: verdict.failures, ..Outcome::default() }
            }
            Err(error) => Outcome::failed(format!("{error:#}")),
        };
        tally.add("gate", outcome, started.elapsed());
    }
    if options.wants("gate-proof") {
        let started = Instant::now();
        let outcome = match bench::gate::prove(workspace) {
            Ok(()) => Outcome { passed: 1, ..Outcome::default() },
            Err(error) => Outcome::failed(format!("{error:#}")),
        };
        tally.add("gate-proof", outcome, started.elapsed());
    }
}

/// Failures again, the count of `unsafe`, and the closing line, which is the
/// last.
fn report(workspace: &Workspace, tally: &Tally) -> Result<bool> {
    if !tally.failures().is_empty() {
        println!("\nFailed:");
        for failure in tally.failures() {
            println!("  {failure}");
        }
    }
    if tally.open() > 0 {
        println!("\n{} attacks are known to succeed (tests/attacks/open).", tally.open());
    }
    let empty = tally.passed() + tally.failed() == 0;
    if empty {
        println!("\nNo test was run; the filter fits no suite.");
    }
    println!("\n{}", lint::inspect(workspace)?.unsafe_line());
    println!("{}", tally.closing_line());
    Ok(!empty && tally.failed() == 0)
}

/// Keeps what a suite printed for reading afterwards.
fn keep_log(workspace: &Workspace, name: &str, text: &str) -> Result<std::path::PathBuf> {
    let path = workspace.target(Path::new("tests"))?.join(format!("{name}.log"));
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
