//! `fuzz --system`: hostile ordinary tasks and a hostile Linux user against the system that
//! people boot (fuzz/system).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::guest::Verdict;
use super::processors::Processors;
use crate::compose::{Composer, Selection};
use crate::linux::{Wishes, programs};
use crate::machine::{self, Boot, Console, Exit};
use crate::session::{Ended, Session};
use crate::ui::Step;
use crate::workspace::Workspace;

/// The system, the module that its judge reads, and the one that its Unix server does.
const SYSTEM: &str = "fuzz/system/system.toml";
const IMAGE: &str = "fuzz-system";
const ORDER: &str = "fuzzsys";
const COMMAND: &str = "command";
/// The hostile Linux program, with a watcher beside it (tests/linux/programs/fuzz.c).
const PROGRAM: &str = "fuzz";
/// Calls of one round of it.
const LINUX_CALLS: u64 = 500;
/// MiB that it touches at a time: more than its Unix server has.
const LINUX_MIB: u64 = 128;
/// Pause between two rounds of it, µs: the processor is for the hostile tasks.
const LINUX_PAUSE_US: u64 = 600_000;
/// What the judge says comes through the root task, which names it.
const PREFIX: &str = "judge: ";
/// What each line of the canary that writes begins and ends with (fuzz/system/src/canary.rs);
/// between them is its number.
const CANARY: (&str, &str) = ("canary: line ", " and nothing else");
/// A machine that takes so long per 100,000 calls hangs.
const PATIENCE: Duration = Duration::from_secs(300);
/// Lines of the console that are shown after a violation.
const SHOWN_LINES: usize = 40;

/// What is asked of one machine.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Everything random follows from it.
    pub seed: u64,
    /// Calls of the hostile tasks.
    pub calls: u64,
    /// Calls between two runs of the kernel's checker.
    pub check_every: u64,
    /// The machine's.
    pub processors: Processors,
}

/// The runs that belong to the tests, and their suites: as many calls as take less than a minute; before a release ten
/// million.
pub const SHORT: [(&str, Round); 2] =
    [("fuzz-system", short_on(1, 60_000)), ("fuzz-system-2-processors", short_on(2, 50_000))];

/// A run of so many `calls`, on `cpus` processors in turns.
const fn short_on(cpus: u32, calls: u64) -> Round {
    let processors = Processors { cpus, parallel: false };
    Round { seed: cpus as u64, calls, check_every: 50_000, processors }
}

/// Plays a short run; calls and violations.
///
/// # Errors
/// When the machine cannot be built or started.
pub fn short(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    round: &Round,
    echo: bool,
) -> Result<(u64, u64)> {
    let Verdict { calls, violations } = play(workspace, composer, round, echo)?;
    Ok((calls, violations))
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
) -> Result<Verdict> {
    let bootable = composer.compose(&selection(workspace, round)?, "fuzz-system")?;
    let boot = Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() };
    let command = machine::command(&boot, &round.processors.machine(), Console::Pipe)?;
    let limit = PATIENCE * (1 + round.calls / 100_000) as u32;
    let step = Step::start(format!("system, seed {}", round.seed));
    let mut session = Session::start(command, limit, echo)?;
    let ended = session.wait_for_end(|line| {
        if let Some(words) = said(line).and_then(|words| words.strip_prefix("fuzz: ")) {
            step.say(words.to_owned());
        }
    });
    let transcript = session.transcript();
    let path = workspace.target("fuzz")?.join(format!("system-{}.log", round.seed));
    std::fs::write(&path, &transcript)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let verdict = judge(&transcript, ended);
    step.done(&format!("{} calls, {} violations", verdict.calls, verdict.violations));
    if verdict.violations > 0 {
        let lines: Vec<&str> = transcript.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].iter().for_each(|l| println!("    | {l}"));
        println!("  {}; the whole console is in {}.", ended.sentence(limit), workspace.show(&path));
        println!(
            "  {} with: ./baton fuzz --system --seed {} --calls {} --check-every {}{} --replay",
            round.processors.repeats(),
            round.seed,
            round.calls,
            round.check_every,
            round.processors.words()
        );
    }
    Ok(verdict)
}

/// The system with the judge's order, the Linux program, and what runs it.
fn selection(workspace: &Workspace, round: &Round) -> Result<Selection> {
    let folder = workspace.target("fuzz/system")?;
    let (order, command) = (folder.join(ORDER), folder.join(COMMAND));
    let Round { seed, calls, check_every, processors } = round;
    std::fs::write(&order, format!("{seed} {calls} {check_every} {}\n", processors.slack()))
        .context("cannot write the judge's order")?;
    let system = processors.spread(workspace.path(SYSTEM), IMAGE, &folder)?;
    let line = format!(
        "cd /tmp; n={seed}; while :; do /share/{PROGRAM} $n {LINUX_CALLS} {LINUX_MIB}; \
         usleep {LINUX_PAUSE_US}; n=$((n + 1000003)); done\n"
    );
    std::fs::write(&command, line).context("cannot write the command for Linux programs")?;
    Ok(Selection {
        system: Some(system.display().to_string()),
        modules: [order, command].map(|file| file.display().to_string()).to_vec(),
        wishes: Wishes { share: Some(share(workspace)?), ..Wishes::default() },
        ..Selection::default()
    })
}

/// A directory with the Linux program.
fn share(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target("fuzz/system/share")?;
    programs::compile_static(workspace, PROGRAM, &folder.join(PROGRAM))?;
    Ok(folder)
}

/// What the judge said in `line`. Other output may stand before it.
fn said(line: &str) -> Option<&str> {
    line.find(PREFIX).map(|at| &line[at + PREFIX.len()..])
}

/// The judge's verdict, and that of the watcher beside the hostile Linux program; a machine
/// that did not come to one is a violation.
fn judge(transcript: &str, ended: Ended) -> Verdict {
    let words = || transcript.lines().filter_map(said);
    let watched = |line: &&str| line.starts_with("watcher: ") && *line != "watcher: exit 0";
    let linux = transcript.lines().filter(watched).count() as u64;
    let others = linux + broken_lines(transcript);
    match words().find_map(Verdict::read) {
        Some(verdict) if ended == Ended::Exited(Exit::Success) => {
            Verdict { violations: verdict.violations + others, ..verdict }
        }
        Some(verdict) => Verdict { violations: (verdict.violations + others).max(1), ..verdict },
        None => {
            let told = |line: &str| line.strip_prefix("fuzz: ")?.split(' ').next()?.parse().ok();
            Verdict {
                calls: words().filter_map(told).next_back().unwrap_or(0),
                violations: 1 + others,
            }
        }
    }
}

/// How many lines of the canary that writes did not arrive in one piece, or not in turn. One
/// that it was not told of as written comes again; before it the hostile may have left a line
/// without an end.
fn broken_lines(transcript: &str) -> u64 {
    let mut next = 0;
    let mut broken = 0;
    for line in transcript.lines().filter(|line| line.contains(CANARY.0)) {
        let number = line
            .trim_end()
            .strip_suffix(CANARY.1)
            .and_then(|text| text.rsplit_once(CANARY.0))
            .and_then(|(_, number)| number.parse::<u64>().ok());
        let whole = number.is_some_and(|number| number == next || number + 1 == next);
        broken += u64::from(!whole);
        next = number.map_or(next, |number| number + 1);
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_whole_and_in_turn() {
        let line = |number: u64| format!("{}{number:08}{}\r\n", CANARY.0, CANARY.1);
        let good = format!("{}half a li{}{}", line(0), line(1), line(1));
        assert_eq!(broken_lines(&good), 0);
        assert_eq!(broken_lines(&format!("{}{}", line(0), line(2))), 1, "one is lost");
        let mixed = line(0).replace(" and", " an\r\nhostile d");
        assert_eq!(broken_lines(&mixed), 1);
        assert_eq!(broken_lines(&line(0).replace("else", "else hostile")), 1);
    }

    #[test]
    fn the_verdict_is_the_judges_and_the_watchers() {
        let good = "watcher: exit 0\nhalf a lijudge: 100 calls, 0 violations\n";
        let success = Ended::Exited(Exit::Success);
        assert_eq!(judge(good, success), Verdict { calls: 100, violations: 0 });
        assert_eq!(judge(good, Ended::Exited(Exit::Reset)).violations, 1);
        let harmed = "watcher: exit 1\njudge: 100 calls, 0 violations\n";
        assert_eq!(judge(harmed, success).violations, 1);
        let cut = "canary: line 00000000 and ju\nst nothing else\njudge: 100 calls, 0 violations\n";
        assert_eq!(judge(cut, success).violations, 1);
        let dead = "judge: fuzz: 50000 calls, 3 tasks\nbaton: kernel panic\n";
        let verdict = judge(dead, Ended::Exited(Exit::Failure));
        assert_eq!(verdict, Verdict { calls: 50_000, violations: 1 });
    }
}
