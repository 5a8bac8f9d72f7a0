//! `test`: three rings with one report. Host tests (pure logic, by cargo), runs
//! in the emulator (kernel and user level together), whole systems (image,
//! input, expected transcript).

mod damage;
mod guest;
mod host;
mod lanes;
mod open;
mod picture;
mod refused;
mod riscv;
mod sdk;
mod spec;
mod tally;
mod tamper;

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::compose::Composer;
use crate::fuzz::siege::Siege;
use crate::fuzz::system::Round;
use crate::workspace::Workspace;
use crate::{bench, fuzz, lint, linux, trial, ui};
use lanes::{Job, Report};
pub use spec::Spec;
use tally::{Outcome, Tally};

/// Where the emulator runs are described.
pub const SPEC: &str = "tests/systems.toml";

/// The short runs of `linux compare`, and on how many processors each is; on several those cases that are for
/// several.
const COMPARISONS: [(&str, u32); 2] = [("linux-compare", 1), ("linux-compare-4-processors", 4)];

/// A run in which the kernel says that it has moved; for the instrument it stays where it was linked.
const MOVED: &str = "machine-checks";

/// For the order of suites: what other verbs do in their short form takes longer than any machine.
const OF_A_VERB: u64 = 3600;

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
    let tally = Report::default();
    let mut composer = match options.filter {
        None => Composer::of_everything(workspace),
        Some(_) => Composer::new(workspace),
    };
    for ring in Ring::ALL.into_iter().filter(|ring| options.wants_ring(*ring)) {
        println!("\n{}", ring.title());
        let jobs = match ring {
            Ring::Host => {
                let mut jobs = host::jobs(workspace, options)?;
                if options.wants_ring(Ring::Emulator) || options.wants_ring(Ring::System) {
                    // It is compiled in folders of its own, beside the host tests. What is wrong is said when
                    // it is needed.
                    let ahead = Job::new(|composer, _| drop(composer.build_ahead()));
                    jobs.insert(jobs.len().min(1), ahead);
                }
                jobs
            }
            Ring::Emulator => {
                composer.build_ahead()?;
                let mut jobs = machines(workspace, &spec, options, ring);
                if !workspace.is_sdk() {
                    jobs.extend(gates(workspace, options));
                }
                jobs
            }
            Ring::System => {
                composer.build_ahead()?;
                let mut jobs = machines(workspace, &spec, options, ring);
                if !workspace.is_sdk() {
                    jobs.extend(whole_systems(workspace, options));
                }
                jobs
            }
        };
        lanes::run(jobs, options.show, &composer, &tally);
    }
    report(workspace, &tally.into_tally())
}

/// Whether everything in the emulator runs under the instrument. It knows the places of the
/// usual kernel, and looks at what Baton does: not at what Linux does, nor at what is counted.
fn is_watched() -> bool {
    std::env::var_os(crate::machine::PLUGIN_VARIABLE).is_some()
}

/// The machines that the list describes.
fn machines<'a>(
    workspace: &'a Workspace,
    spec: &'a Spec,
    options: &Options,
    ring: Ring,
) -> Vec<Job<'a>> {
    let is_wanted = |run: &&spec::Run| match run.named {
        true => options.filter.as_ref() == Some(&run.name),
        false => options.wants(&run.name),
    };
    let runs = spec.runs.iter().filter(|run| run.ring == ring).filter(is_wanted);
    let show = options.show;
    let job = |run: &'a spec::Run| {
        Job::new(move |composer, report| {
            report.suite(&run.name, || guest::suite(workspace, composer, run, show));
        })
        .limit(run.seconds)
        .alone(run.cpus > 1 && !run.icount)
    };
    let is_blind =
        |run: &spec::Run| run.assertions || run.name == MOVED || run.boot == spec::BootKind::Bochs;
    runs.filter(|run| !(is_watched() && is_blind(run))).map(job).collect()
}

/// What has verbs of its own in its short form.
fn whole_systems<'a>(workspace: &'a Workspace, options: &Options) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    if is_watched() {
        return jobs;
    }
    let show = options.show;
    // Each writes its order to the same place.
    let fuzzed: Vec<_> =
        fuzz::system::SHORT.iter().filter(|(suite, _)| options.wants(suite)).collect();
    jobs.push(Job::new(move |composer, report| {
        for (suite, round) in fuzzed {
            report.suite(suite, || fuzz_system(workspace, composer, round, show));
        }
    }));
    let (suite, siege) = &fuzz::siege::SHORT;
    if options.wants(suite) {
        jobs.push(Job::new(move |composer, report| {
            report.suite(suite, || besiege(workspace, composer, siege, show));
        }));
    }
    // Each writes the file system of its machine to the same place.
    let comparisons: Vec<_> =
        COMPARISONS.into_iter().filter(|(suite, _)| options.wants(suite)).collect();
    let judges = options.wants("linux-judge");
    jobs.push(Job::new(move |composer, report| {
        for (suite, cpus) in comparisons {
            report.suite(suite, || compare(workspace, composer, show, cpus));
        }
        if judges {
            report.suite("linux-judge", || judge(workspace, composer, show));
        }
    }));
    if options.wants(sdk::SUITE) {
        jobs.push(Job::new(move |_, report| {
            report.suite(sdk::SUITE, || sdk::trial(workspace));
        }));
    }
    if options.wants("debugger") {
        jobs.push(Job::new(move |composer, report| {
            report.suite("debugger", || debugger(workspace, composer));
        }));
    }
    jobs.into_iter().map(|job| job.limit(OF_A_VERB)).collect()
}

/// gdb on a running system (`debug::trial`).
fn debugger(workspace: &Workspace, composer: &mut Composer<'_>) -> Result<Outcome> {
    let verdicts = trial::trial(workspace, composer)?;
    let (passed, failed): (Vec<_>, Vec<_>) =
        verdicts.into_iter().partition(|(_, failure)| failure.is_none());
    let failures =
        failed.iter().map(|(name, why)| format!("{name}: {}", why.as_deref().unwrap_or_default()));
    Ok(Outcome { passed: passed.len(), failures: failures.collect(), ..Outcome::default() })
}

/// Hostile tasks against the default system: a short run of `fuzz --system`.
fn fuzz_system(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    round: &Round,
    show: bool,
) -> Result<Outcome> {
    Ok(match fuzz::system::short(workspace, composer, round, show)? {
        (_, 0) => Outcome { passed: 1, ..Outcome::default() },
        (calls, found) => Outcome::failed(format!("{found} violations in {calls} calls")),
    })
}

/// Servers killed on several processors: a short run of `fuzz --kill`.
fn besiege(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    siege: &Siege,
    show: bool,
) -> Result<Outcome> {
    Ok(match fuzz::siege::run(workspace, composer, siege, show)? {
        0 => Outcome { passed: 1, ..Outcome::default() },
        found => Outcome::failed(format!("{found} failures in {} kills", siege.kills)),
    })
}

/// The same programs on Linux and on Baton: the short run of `linux compare`.
fn compare(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    show: bool,
    cpus: u32,
) -> Result<Outcome> {
    let cases = linux::compare::short(workspace, composer, show, cpus)?;
    let (same, different): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|(_, difference)| difference.is_none());
    let failures = different
        .into_iter()
        .map(|(name, difference)| format!("{name}: {}", difference.unwrap_or_default()))
        .collect();
    Ok(Outcome { passed: same.len(), failures, ..Outcome::default() })
}

/// Tests that others wrote: the short run of `linux judge`.
fn judge(workspace: &Workspace, composer: &mut Composer<'_>, show: bool) -> Result<Outcome> {
    let (passed, failures) = linux::judge::short(workspace, composer, show)?;
    Ok(Outcome { passed, failures, ..Outcome::default() })
}

/// The gate set of `bench`, and the proof that the gate shuts.
fn gates<'a>(workspace: &'a Workspace, options: &Options) -> Option<Job<'a>> {
    let [check, prove] = ["gate", "gate-proof"].map(|suite| options.wants(suite));
    let work = move |_: &mut Composer<'_>, report: &Report| {
        if check {
            report.suite("gate", || {
                let verdict = bench::gate::check(workspace, None)?;
                let passed = verdict.measured.len().saturating_sub(verdict.failures.len());
                Ok(Outcome { passed, failures: verdict.failures, ..Outcome::default() })
            });
        }
        if prove {
            report.suite("gate-proof", || {
                bench::gate::prove(workspace)?;
                Ok(Outcome { passed: 1, ..Outcome::default() })
            });
        }
    };
    (!is_watched()).then(|| Job::new(work).limit(OF_A_VERB))
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
    println!();
    if !workspace.is_sdk() {
        ui::print(&lint::inspect(workspace)?.unsafe_line());
    }
    println!("{}", tally.closing_line());
    Ok(!empty && tally.failed() == 0)
}

/// Keeps what a suite printed for reading afterwards.
fn keep_log(workspace: &Workspace, name: &str, text: &str) -> Result<std::path::PathBuf> {
    let path = workspace.target(Path::new("tests"))?.join(format!("{name}.log"));
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
