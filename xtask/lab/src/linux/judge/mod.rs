//! `linux judge`: suites that others wrote, run on Debian's kernel and on Baton in the same
//! emulator. What passes on Linux has to pass here.
//!
//! A suite ([`suite`]) is a list of trials: a line for the shell, and the files it needs. They
//! are run in batches, a machine each ([`run`]). A trial comes to one or many marks ([`mark`]):
//! one for itself, or one for each test that it reports. Differences that are known are in
//! `tests/linux/judge/` ([`known`]), so that a new one fails.

mod busybox;
mod cpython;
mod known;
mod libc_test;
mod ltp;
mod mark;
mod report;
mod run;
mod sqlite;
mod stress;
mod suite;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

use super::compare::System;
use crate::compose::Composer;
use crate::workspace::Workspace;
use run::Results;
use suite::{Name, Shard, Suite};

/// What to judge.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The suite
    #[arg(value_enum)]
    suite: Name,
    /// Only trials whose name contains this
    filter: Option<String>,
    /// Only this trial; several may be said
    #[arg(long, value_name = "NAME", conflicts_with = "filter")]
    exact: Vec<String>,
    /// Where the suite's built source is, for suites that Debian does not have
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Only one part of the trials, as 2/5: the second of five
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Run on this system alone
    #[arg(long, value_enum)]
    only: Option<System>,
    /// Run Linux again, whatever is remembered
    #[arg(long)]
    fresh: bool,
    /// Ask Linux only about what did not pass on Baton
    #[arg(long, conflicts_with_all = ["only", "fresh"])]
    baton_first: bool,
    /// Take results that this very build of Baton has given already
    #[arg(long)]
    resume: bool,
    /// Write the differences to the list of known ones
    #[arg(long)]
    accept: bool,
    /// Seconds that each stressor of stress-ng works
    #[arg(long, value_name = "S", default_value_t = 10)]
    seconds: u64,
    /// Show the consoles
    #[arg(long)]
    show: bool,
    /// Name the trials and stop
    #[arg(long)]
    list: bool,
}

impl Options {
    /// All of a suite.
    fn of(suite: Name) -> Self {
        Self {
            suite,
            filter: None,
            exact: Vec::new(),
            source: None,
            shard: None,
            only: None,
            fresh: false,
            baton_first: false,
            resume: false,
            accept: false,
            seconds: 10,
            show: false,
            list: false,
        }
    }

    /// The trials that are wanted.
    fn chosen(&self, suite: &mut Suite) {
        suite.trials.retain(|trial| {
            let name = &trial.case.name;
            self.filter.as_ref().is_none_or(|part| name.contains(part.as_str()))
                && (self.exact.is_empty() || self.exact.contains(name))
        });
        if let Some(shard) = self.shard {
            shard.keep(&mut suite.trials);
        }
    }
}

/// Applets whose tests are in the short run.
const SHORT: [&str; 11] =
    ["ar", "awk", "cp", "cpio", "date", "find", "grep", "ln", "sed", "sort", "tar"];

/// The short run, for the tests: how many tests pass that pass on Linux, and new differences.
///
/// # Errors
/// As [`run`].
pub fn short(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    show: bool,
) -> Result<(usize, Vec<String>)> {
    let options = Options { show, ..Options::of(Name::Busybox) };
    let mut suite = Suite::get(workspace, &options)?;
    suite.trials.retain(|trial| SHORT.contains(&trial.case.name.as_str()));
    let bench = run::Bench { workspace, suite: &suite, options: &options };
    let (linux, baton) = (bench.on_linux(Results::new())?, bench.on_baton(composer)?);
    let known = known::read(workspace, suite.name)?;
    let verdict = report::Verdict::of(&suite, &linux, &baton, &known);
    Ok((verdict.of_these, verdict.new))
}

/// Runs what is wanted and prints the report; whether nothing is worse than known.
///
/// # Errors
/// When the suite cannot be had, or one of the systems could not be run at all.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let mut suite = Suite::get(workspace, options)?;
    options.chosen(&mut suite);
    ensure!(!suite.trials.is_empty(), "no trial is wanted; `--list` names them");
    if options.list {
        suite
            .trials
            .iter()
            .for_each(|trial| println!("{:<28} {}", trial.case.name, trial.case.run));
        return Ok(true);
    }
    let mut composer = Composer::new(workspace);
    let bench = run::Bench { workspace, suite: &suite, options };
    if let Some(system) = options.only {
        let results = match system {
            System::Linux => bench.on_linux(Results::new())?,
            System::Baton => bench.on_baton(&mut composer)?,
        };
        report::print(&suite, &results);
        return Ok(true);
    }
    let (linux, baton) = both(&bench, &mut composer)?;
    let verdict = report::Verdict::of(&suite, &linux, &baton, &known::read(workspace, suite.name)?);
    verdict.print(&suite, &baton);
    if options.accept {
        known::write(workspace, suite.name, &verdict)?;
        return Ok(true);
    }
    Ok(verdict.new.is_empty())
}

/// What Linux and Baton make of it. Who asks Baton first asks Linux about the rest.
fn both(bench: &run::Bench<'_>, composer: &mut Composer<'_>) -> Result<(Results, Results)> {
    if !bench.options.baton_first {
        return Ok((bench.on_linux(Results::new())?, bench.on_baton(composer)?));
    }
    let baton = bench.on_baton(composer)?;
    let granted = report::passed(bench.suite, &baton);
    println!("{} of {} trials pass on Baton: Linux is granted these.", granted.len(), baton.len());
    let linux = bench.on_linux(granted)?;
    Ok((linux, baton))
}
