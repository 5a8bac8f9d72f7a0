//! `fuzz --exhaust`: the long form of the exhausting scenarios (fuzz/guest/src/exhaust).

use std::time::Duration;

use anyhow::{Context, Result};

use super::processors::Processors;
use crate::compose::{Composer, Selection};
use crate::machine::{self, Boot, Console, Exit};
use crate::session::{Ended, Session};
use crate::ui::Step;
use crate::workspace::Workspace;

/// The guest program.
const PROGRAM: &str = "fuzz";
/// Its lines begin so.
const PREFIX: &str = "exhaust: ";
/// All scenarios together take no longer.
const LIMIT: Duration = Duration::from_secs(3 * 3600);

/// Runs all scenarios and prints their figures; whether every goal was met.
///
/// # Errors
/// When the machine cannot be built or started.
pub fn run(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    processors: Processors,
    echo: bool,
) -> Result<bool> {
    let order = workspace.target("fuzz")?.join("exhaust.order");
    let length = if processors.parallel { "at-once" } else { "long" };
    std::fs::write(&order, format!("exhaust!\n{length} {}\n", processors.slack()))
        .context("cannot write the guest's order")?;
    let selection = Selection {
        root: Some(PROGRAM.to_owned()),
        modules: vec![order.display().to_string()],
        ..Selection::default()
    };
    let bootable = composer.compose(&selection, "exhaust")?;
    let boot = Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() };
    let command = machine::command(&boot, &processors.machine(), Console::Pipe)?;
    let step = Step::start("exhaustion");
    let mut session = Session::start(command, LIMIT, echo)?;
    let ended = session.wait_for_end(|line| {
        if let Some(figures) = line.strip_prefix(PREFIX) {
            println!("  {figures}");
        }
    });
    let transcript = session.transcript();
    let path = workspace.target("fuzz")?.join("exhaust.log");
    std::fs::write(&path, &transcript)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let verdict = Verdict::read(&transcript, ended);
    step.done(&verdict.line());
    verdict.failures.iter().for_each(|failure| println!("  {failure}"));
    if ended != Ended::Exited(Exit::Success) {
        println!("  {}; the whole console is in {}.", ended.sentence(LIMIT), workspace.show(&path));
    }
    println!("{}", verdict.line());
    Ok(verdict.is_good())
}

/// What came of a run.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    passed: usize,
    failures: Vec<String>,
    closed: bool,
}

impl Verdict {
    fn read(transcript: &str, ended: Ended) -> Self {
        let verdicts = transcript.lines().filter_map(|line| line.strip_prefix("test "));
        let (good, bad): (Vec<_>, Vec<_>) = verdicts.partition(|line| line.ends_with(" ... ok"));
        Self {
            passed: good.len(),
            failures: bad.into_iter().map(str::to_owned).collect(),
            closed: ended == Ended::Exited(Exit::Success)
                && transcript.lines().any(|line| line == "tests done"),
        }
    }

    fn is_good(&self) -> bool {
        self.passed > 0 && self.failures.is_empty() && self.closed
    }

    fn line(&self) -> String {
        let end = if self.closed { "" } else { ", and the guest did not come to its end" };
        format!("{} scenarios kept to the goals, {} did not{end}", self.passed, self.failures.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_and_the_end_count() {
        let good = "exhaust: x\ntest exhaust-a ... ok\ntest exhaust-b ... ok\ntests done\n";
        let verdict = Verdict::read(good, Ended::Exited(Exit::Success));
        assert!(verdict.is_good());
        assert_eq!(verdict.line(), "2 scenarios kept to the goals, 0 did not");
        assert!(!Verdict::read(good, Ended::Exited(Exit::Reset)).is_good());
        let cut = "test exhaust-a ... ok\n";
        assert!(!Verdict::read(cut, Ended::TimedOut).is_good());
        let bad = "test exhaust-a ... ok\ntest exhaust-b ... FAILED: late\ntests done\n";
        let verdict = Verdict::read(bad, Ended::Exited(Exit::Failure));
        assert_eq!(verdict.failures, ["exhaust-b ... FAILED: late"]);
        assert!(!verdict.is_good());
    }
}
