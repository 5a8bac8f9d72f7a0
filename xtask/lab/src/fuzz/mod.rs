//! `fuzz`: hostile tasks against the kernel, in the emulator with counted
//! instructions, so that a seed repeats a run to the instruction.
//!
//! A long run is a sequence of shorter ones, each with a seed that follows from the
//! first and with weights that coverage has steered: what reached code of the kernel
//! that nothing had reached before is tried more often.

mod coverage;
mod exhaust;
mod guest;
mod parsers;
pub mod processors;
pub mod siege;
mod steer;
pub mod system;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;

use crate::compose::Composer;
use crate::techniques::Without;
use crate::ui;
use crate::workspace::Workspace;
use coverage::{Cover, Coverage};
use guest::{Round, Verdict};
use processors::Processors;
use siege::Siege;
use steer::Steering;

/// Calls of one round of a long run.
const ROUND: u64 = 1_000_000;
/// Calls between two runs of the kernel's checker, on average.
const CHECK_EVERY: u64 = 50_000;

/// How to fuzz.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Calls to make
    #[arg(long, value_name = "N", value_parser = ui::number::<u64>(0, u64::MAX), default_value_t = ROUND)]
    pub calls: u64,
    /// Where everything random begins
    #[arg(long, value_name = "S", value_parser = ui::number::<u64>(0, u64::MAX), default_value_t = 1)]
    pub seed: u64,
    /// Go on with further seeds for so long, whatever --calls says
    #[arg(long, value_name = "M", value_parser = ui::number::<u64>(1, 1 << 20))]
    pub minutes: Option<u64>,
    /// Show the guest's whole console: what led to a violation, call by call
    #[arg(long)]
    pub replay: bool,
    /// Count which lines of the kernel are reached, steer by it, and list the rest
    #[arg(long)]
    pub coverage: bool,
    /// Coverage: run the tests in the emulator, too
    #[arg(long, requires = "coverage")]
    pub tests: bool,
    /// Calls between two runs of the kernel's checker
    #[arg(long, value_name = "N", value_parser = ui::number::<u64>(0, u64::MAX), default_value_t = CHECK_EVERY)]
    pub check_every: u64,
    /// Let the hostile loose on the default system with its real servers, not on the kernel alone
    #[arg(long, conflicts_with = "coverage")]
    pub system: bool,
    /// Instead: tasks that take all they can get, one kind of thing at a time
    #[arg(long, conflicts_with_all = ["calls", "seed", "minutes", "coverage"])]
    pub exhaust: bool,
    /// Instead: kill servers of a busy system so often, at moments that follow from --seed
    #[arg(long, value_name = "N", value_parser = ui::number::<u64>(1, u64::MAX), conflicts_with_all = ["exhaust", "calls", "minutes", "coverage"])]
    pub kill: Option<u64>,
    /// Instead: the parsers of outside input under libFuzzer, so many seconds each
    #[arg(long, value_name = "SECONDS", value_parser = ui::number::<u64>(1, 1 << 20), conflicts_with_all = ["exhaust", "kill", "calls", "minutes", "coverage"])]
    pub parsers: Option<u64>,
    #[command(flatten)]
    pub processors: Processors,
    #[command(flatten)]
    pub without: Without,
}

/// Runs the fuzzer; whether there was no violation.
///
/// # Errors
/// When it cannot be run at all.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    ensure!(
        options.without.techniques.is_empty() || !options.coverage && options.parsers.is_none(),
        "--without boots another kernel, which neither --coverage nor --parsers does; leave one out"
    );
    if let Some(seconds) = options.parsers {
        return parsers::run(workspace, seconds);
    }
    let mut composer = options.without.composer(workspace)?;
    if options.exhaust {
        return exhaust::run(workspace, &mut composer, options.processors, options.replay);
    }
    if let Some(kills) = options.kill {
        let siege = Siege { seed: options.seed, kills, processors: options.processors };
        return Ok(siege::run(workspace, &mut composer, &siege, options.replay)? == 0);
    }
    let mut cover = options.coverage.then(|| Cover::build(workspace)).transpose()?;
    let mut steering = Steering::new(options.seed);
    let mut reached = Coverage::default();
    let started = Instant::now();
    let end = options.minutes.map(|minutes| started + Duration::from_secs(minutes * 60));
    let (mut calls, mut violations) = (0, 0);
    loop {
        let left = options.calls.saturating_sub(calls);
        let round = round(options, &steering, if end.is_some() { ROUND } else { left.min(ROUND) });
        let Verdict { calls: made, violations: found } =
            play(workspace, &mut composer, &round, options, cover.as_ref())?;
        calls += made;
        violations += found;
        if let Some(cover) = &mut cover {
            let fresh = reached.add(&cover.read()?);
            println!(
                "  seed {}: {fresh} blocks of the kernel reached for the first time",
                round.seed
            );
            steering.learn(fresh);
        }
        let over = end.map_or(calls >= options.calls, |end| Instant::now() >= end);
        if violations > 0 || over || made == 0 {
            break;
        }
        steering.next();
    }
    if let Some(cover) = &cover {
        report(workspace, cover, reached, options.tests)?;
    }
    println!("  {} calls in {}", calls, ui::seconds(started.elapsed()));
    println!("{calls} calls, {violations} violations");
    Ok(violations == 0 && calls > 0)
}

/// What one machine is asked for: so many calls.
fn round(options: &Options, steering: &Steering, calls: u64) -> Round {
    Round {
        seed: steering.seed(),
        calls,
        check_every: options.check_every,
        weights: steering.weights(),
        processors: options.processors,
    }
}

/// One machine with the kernel alone, or with the default system.
fn play(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    round: &Round,
    options: &Options,
    cover: Option<&Cover>,
) -> Result<Verdict> {
    if !options.system {
        return guest::play(workspace, composer, round, options.replay, cover);
    }
    let Round { seed, calls, check_every, processors, .. } = *round;
    let round = system::Round { seed, calls, check_every, processors };
    system::play(workspace, composer, &round, options.replay)
}

/// Adds what the tests reach, and writes the list of lines that nobody reached.
fn report(workspace: &Workspace, cover: &Cover, mut reached: Coverage, tests: bool) -> Result<()> {
    if tests {
        reached.add(&cover.of_tests(workspace)?);
    }
    let lines = reached.lines(workspace)?;
    let path = workspace.target("fuzz")?.join("never-reached.txt");
    println!("  {}", lines.write(&path)?);
    println!("  Lines never reached are listed in {}.", workspace.show(&path));
    Ok(())
}
