//! `fuzz --kill N`: servers of a busy system killed at random moments (tests/siege).

use std::time::Duration;

use anyhow::{Context, Result};

use super::processors::Processors;
use crate::compose::{Composer, Selection};
use crate::machine::{self, Boot, Console, Exit};
use crate::session::{Ended, Session};
use crate::ui::Step;
use crate::workspace::Workspace;

/// The system, and the module that the killer reads.
const SYSTEM: &str = "tests/systems/siege.toml";
const MODULE: &str = "siege";
/// What the killer says comes through the root task, which names it.
const PREFIX: &str = "kill: ";
/// A machine that takes so long per 100 kills hangs.
const PATIENCE: Duration = Duration::from_secs(400);

/// What is asked of one machine.
#[derive(Clone, Copy, Debug)]
pub struct Siege {
    /// Everything random follows from it.
    pub seed: u64,
    /// How many servers are killed.
    pub kills: u64,
    /// The machine's.
    pub processors: Processors,
}

/// The run with several processors that belongs to the tests: in turns.
pub const SHORT: (&str, Siege) = (
    "siege-2-processors",
    Siege { seed: 2, kills: 30, processors: Processors { cpus: 2, parallel: false } },
);

/// Kills so often and prints what the killer found; how many failures there were.
///
/// # Errors
/// When the machine cannot be built or started.
pub fn run(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    siege: &Siege,
    echo: bool,
) -> Result<usize> {
    let Siege { seed, kills, processors } = *siege;
    let folder = workspace.target("fuzz/siege")?;
    let file = folder.join(MODULE);
    std::fs::write(&file, format!("{seed} {kills} {}\n", processors.slack()))
        .context("cannot write the killer's order")?;
    let system = processors.spread(workspace.path(SYSTEM), "siege", &folder)?;
    let selection = Selection {
        system: Some(system.display().to_string()),
        modules: vec![file.display().to_string()],
        ..Selection::default()
    };
    let bootable = composer.compose(&selection, "siege")?;
    let boot = Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() };
    let command = machine::command(&boot, &processors.machine(), Console::Pipe)?;
    let limit = PATIENCE * (1 + kills / 100) as u32;
    let step = Step::start("siege");
    let mut session = Session::start(command, limit, echo)?;
    let ended = session.wait_for_end(|line| {
        if let Some(words) = said(line) {
            println!("  {words}");
        }
    });
    let transcript = session.transcript();
    let path = workspace.target("fuzz")?.join(format!("siege-{seed}.log"));
    std::fs::write(&path, &transcript)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let failures = failures(&transcript, ended);
    step.done(&format!("{kills} kills, {failures} failures"));
    if failures > 0 {
        println!("  {}; the whole console is in {}.", ended.sentence(limit), workspace.show(&path));
        let words = processors.words();
        println!(
            "  {} with: ./baton fuzz --kill {kills} --seed {seed}{words} --replay",
            processors.repeats()
        );
    }
    println!("{kills} kills, {failures} failures");
    Ok(failures)
}

/// What the killer said in `line`. Other output may stand before it.
fn said(line: &str) -> Option<&str> {
    line.find(PREFIX).map(|at| &line[at + PREFIX.len()..])
}

/// Failures that the killer named; a machine that did not come to a good end is one.
fn failures(transcript: &str, ended: Ended) -> usize {
    let words = || transcript.lines().filter_map(said);
    let named = words().filter(|line| line.contains(" ... FAILED")).count();
    let good = words().any(|line| line == "test siege ... ok");
    let whole = good && ended == Ended::Exited(Exit::Success);
    if whole { named } else { named.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_the_killers_unless_the_machine_died() {
        let good = "unix: x\nhalf a likill: test siege ... ok\nkill: tests done\n";
        assert_eq!(failures(good, Ended::Exited(Exit::Success)), 0);
        assert_eq!(failures(good, Ended::Exited(Exit::Reset)), 1);
        assert_eq!(failures("kill: siege: 50 kills\n", Ended::TimedOut), 1);
        let bad = "kill: test siege ... FAILED: a\nkill: test siege ... FAILED: b\n";
        assert_eq!(failures(bad, Ended::Exited(Exit::Failure)), 2);
    }
}
