//! One round: the configuration as a module of the boot image, the machine, and
//! what it says.

use std::time::Duration;

use anyhow::{Context, Result};

use super::coverage::Cover;
use super::processors::Processors;
use crate::compose::{Composer, Selection};
use crate::machine::{self, Boot, Console, Exit};
use crate::session::{Ended, Session};
use crate::ui::Step;
use crate::workspace::Workspace;

/// The guest program.
const PROGRAM: &str = "fuzz";
/// First word of the configuration (fuzz/guest/src/config.rs).
const MAGIC: u64 = u64::from_le_bytes(*b"FUZZCONF");
/// A machine that says nothing for so long per 100,000 calls hangs.
const PATIENCE: Duration = Duration::from_secs(240);
/// Lines of the console that are shown after a violation.
const SHOWN_LINES: usize = 60;

/// What is asked of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Everything random follows from it.
    pub seed: u64,
    /// System calls to make.
    pub calls: u64,
    /// Calls between two runs of the kernel's checker.
    pub check_every: u64,
    /// How often each action is taken; none: the guest's own.
    pub weights: Vec<u64>,
    /// The machine's.
    pub processors: Processors,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Calls made.
    pub calls: u64,
    /// Violations found.
    pub violations: u64,
}

impl Round {
    /// The module's bytes.
    fn bytes(&self) -> Vec<u8> {
        let head = [MAGIC, self.seed, self.calls, self.check_every, self.weights.len() as u64];
        let slack = [self.processors.slack()];
        head.iter().chain(&self.weights).chain(&slack).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Words that repeat it.
    fn command(&self) -> String {
        format!(
            "./baton fuzz --seed {} --calls {} --check-every {}{} --replay",
            self.seed,
            self.calls,
            self.check_every,
            self.processors.words()
        )
    }
}

/// Plays a round in the emulator.
///
/// # Errors
/// When the machine cannot be built or started.
pub fn play(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    round: &Round,
    echo: bool,
    cover: Option<&Cover>,
) -> Result<Verdict> {
    let file = workspace.target("fuzz")?.join("config.bin");
    std::fs::write(&file, round.bytes()).context("cannot write the fuzzer's configuration")?;
    let selection = Selection {
        root: Some(PROGRAM.to_owned()),
        modules: vec![file.display().to_string()],
        ..Selection::default()
    };
    let bootable = composer.compose(&selection, "fuzz")?;
    let boot = Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() };
    let mut options = round.processors.machine();
    if cover.is_some() {
        options = options.at_first_places();
    }
    let mut command = machine::command(&boot, &options, Console::Pipe)?;
    if let Some(cover) = cover {
        command.arg("-plugin").arg(cover.argument());
    }
    let limit = PATIENCE * (1 + round.calls / 100_000) as u32;
    let step = Step::start(format!("seed {}", round.seed));
    let mut session = Session::start(command, limit, echo)?;
    let ended = session.wait_for_end(|line| {
        if let Some(words) = line.strip_prefix("fuzz: ") {
            step.say(words.to_owned());
        }
    });
    let transcript = session.transcript();
    let verdict = judge(&transcript, ended);
    step.done(&format!("{} calls, {} violations", verdict.calls, verdict.violations));
    if verdict.violations > 0 {
        tell(workspace, round, &transcript, ended, limit)?;
    }
    Ok(verdict)
}

/// The guest's own verdict; a machine that did not come to one is a violation.
fn judge(transcript: &str, ended: Ended) -> Verdict {
    let closing = transcript.lines().rev().find_map(Verdict::read);
    match (closing, ended) {
        (Some(verdict), Ended::Exited(Exit::Success)) if verdict.violations == 0 => verdict,
        (Some(verdict), _) => Verdict { violations: verdict.violations.max(1), ..verdict },
        (None, _) => {
            let calls = transcript
                .lines()
                .rev()
                .find_map(|line| line.strip_prefix("fuzz: ")?.split(' ').next()?.parse().ok());
            Verdict { calls: calls.unwrap_or(0), violations: 1 }
        }
    }
}

impl Verdict {
    /// `N calls, N violations`
    pub fn read(line: &str) -> Option<Self> {
        let (calls, rest) = line.split_once(" calls, ")?;
        let violations = rest.strip_suffix(" violations")?;
        Some(Self { calls: calls.parse().ok()?, violations: violations.parse().ok()? })
    }
}

/// Shows how a round went wrong and how to repeat it.
fn tell(
    workspace: &Workspace,
    round: &Round,
    transcript: &str,
    ended: Ended,
    limit: Duration,
) -> Result<()> {
    let path = workspace.target("fuzz")?.join(format!("seed-{}.log", round.seed));
    std::fs::write(&path, transcript)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let words = |line: &&str| {
        line.starts_with("violation:") || line.starts_with("check:") || line.contains("panic")
    };
    transcript.lines().filter(words).for_each(|line| println!("    {line}"));
    let lines: Vec<&str> = transcript.lines().collect();
    for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
        println!("    | {line}");
    }
    println!("  {}; the whole console is in {}.", ended.sentence(limit), workspace.show(&path));
    if round.weights.is_empty() {
        println!("  {} with: {}", round.processors.repeats(), round.command());
    } else {
        println!("  The run repeats with the same first seed and --coverage.");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_the_guests_unless_it_died() {
        let good = "fuzz: seed 1\n100 calls, 0 violations\n";
        assert_eq!(
            judge(good, Ended::Exited(Exit::Success)),
            Verdict { calls: 100, violations: 0 }
        );
        assert_eq!(judge(good, Ended::Exited(Exit::Failure)).violations, 1);
        let dead = "fuzz: 200 calls, 3 faults\nbaton: kernel panic\n";
        let verdict = judge(dead, Ended::Exited(Exit::Failure));
        assert_eq!(verdict, Verdict { calls: 200, violations: 1 });
        assert_eq!(judge("", Ended::TimedOut), Verdict { calls: 0, violations: 1 });
    }

    #[test]
    fn the_configuration_is_words() {
        let round = Round {
            seed: 7,
            calls: 9,
            check_every: 3,
            weights: vec![1, 2],
            processors: Processors::default(),
        };
        let bytes = round.bytes();
        assert_eq!(bytes.len(), 8 * 8);
        assert_eq!(&bytes[..8], b"FUZZCONF");
        assert_eq!(bytes[8], 7);
        assert_eq!(bytes[48], 2);
    }
}
