//! `linux compare`: the same programs on Linux and on Baton, in the same
//! emulator; what they print and how they end has to be the same.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use regex::Regex;

use super::cases::{Case, Cases};
use super::guest::{self, Ran};
use super::machines::{Baton, Linux};
use super::verdict::{self, Verdict};
use super::{cpio, initramfs};
use crate::compose::Composer;
use crate::techniques::Without;
use crate::ui::{self, Step};
use crate::workspace::Workspace;

/// Where results of Linux are kept, one file each.
const RESULTS: &str = "linux/results";

/// Most processors of the two machines.
const MAX_CPUS: u64 = 8;

/// One of the systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum System {
    /// Debian's kernel.
    Linux,
    /// This tree's.
    Baton,
}

/// What to compare.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Only cases whose name contains this
    pub filter: Option<String>,
    /// Only the cases of the short run
    #[arg(long)]
    pub short: bool,
    /// Run on this system alone and print what comes out
    #[arg(long, value_enum)]
    pub only: Option<System>,
    /// Run Linux again, whatever is remembered
    #[arg(long)]
    pub fresh: bool,
    /// Show the consoles
    #[arg(long)]
    pub show: bool,
    /// Name the cases and stop
    #[arg(long)]
    pub list: bool,
    /// Processors of both machines; with several, the cases that are for several run, too
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = ui::number::<u32>(1, MAX_CPUS))]
    pub cpus: u32,
    #[command(flatten)]
    pub without: Without,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            filter: None,
            short: false,
            only: None,
            fresh: false,
            show: false,
            list: false,
            cpus: 1,
            without: Without::default(),
        }
    }
}

impl Options {
    fn wants(&self, case: &Case) -> bool {
        let named = self.filter.as_ref().is_none_or(|part| case.name.contains(part.as_str()));
        named && (case.short || !self.short) && case.cpus <= self.cpus
    }
}

/// All cases, their masks looked at.
fn cases(workspace: &Workspace) -> Result<Vec<Case>> {
    let cases = Cases::read(workspace)?.all()?;
    cases.iter().try_for_each(sound)?;
    Ok(cases)
}

/// Refuses a case whose masks are no patterns.
fn sound(case: &Case) -> Result<()> {
    for mask in &case.masks {
        Regex::new(mask)
            .with_context(|| format!("the case `{}` has the broken mask `{mask}`", case.name))?;
    }
    Ok(())
}

/// Results by the name of the case.
type Results = BTreeMap<String, Ran>;

/// Runs what is wanted and prints the report; whether all is the same.
///
/// # Errors
/// When one of the systems could not be run at all.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let all = cases(workspace)?;
    let cases: Vec<&Case> = all.iter().filter(|case| options.wants(case)).collect();
    ensure!(!cases.is_empty(), "no case is wanted; `./baton linux compare --list` names them");
    if options.list {
        cases.iter().for_each(|case| println!("{:<28} {}", case.name, case.run));
        return Ok(true);
    }
    let mut composer = options.without.composer(workspace)?;
    if let Some(system) = options.only {
        let results = match system {
            System::Linux => on_linux(workspace, &cases, options)?,
            System::Baton => on_baton(workspace, &mut composer, &cases, options)?,
        };
        return Ok(print(&cases, &results));
    }
    let verdicts = verdicts(workspace, &mut composer, &cases, options)?;
    Ok(report(&verdicts))
}

/// The short run, for the tests: each case, and what differs if something does. With several
/// processors only what is for several.
///
/// # Errors
/// As [`run`].
pub fn short(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    show: bool,
    cpus: u32,
) -> Result<Vec<(String, Option<String>)>> {
    let all = cases(workspace)?;
    let is_meant = |case: &&Case| case.short && (case.cpus > 1) == (cpus > 1);
    let cases: Vec<&Case> = all.iter().filter(is_meant).collect();
    let options = Options { short: true, show, cpus, ..Options::default() };
    let verdicts = verdicts(workspace, composer, &cases, &options)?;
    let difference = |verdict: Verdict| (!verdict.same).then_some(verdict.difference);
    Ok(verdicts.into_iter().map(|line| (line.name, difference(line.verdict))).collect())
}

/// A case with both results.
struct Line {
    name: String,
    linux: String,
    baton: String,
    verdict: Verdict,
    /// Whether Linux answered otherwise the first time.
    asked_twice: bool,
}

/// Runs both systems and compares. Where they differ Linux is asked once more: what it answers on
/// a busy host, or answered then, may not be what it always does.
fn verdicts(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    cases: &[&Case],
    options: &Options,
) -> Result<Vec<Line>> {
    let linux = on_linux(workspace, cases, options)?;
    let baton = on_baton(workspace, composer, cases, options)?;
    let mut lines = compared(cases, &linux, &baton)?;
    let differ =
        |case: &&Case| lines.iter().any(|line| line.name == case.name && !line.verdict.same);
    let again: Vec<&Case> = cases.iter().copied().filter(differ).collect();
    if !again.is_empty() {
        let options = Options { fresh: true, ..options.clone() };
        let linux = on_linux(workspace, &again, &options)?;
        for line in compared(&again, &linux, &baton)? {
            if line.verdict.same
                && let Some(first) = lines.iter_mut().find(|first| first.name == line.name)
            {
                *first = Line { asked_twice: true, ..line };
            }
        }
    }
    Ok(lines)
}

/// A line for each case.
fn compared(cases: &[&Case], linux: &Results, baton: &Results) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for case in cases {
        let lost = || format!("the result of {} is lost", case.name);
        let expected = linux.get(&case.name).with_context(lost)?;
        let seen = baton.get(&case.name).with_context(lost)?;
        lines.push(Line {
            name: case.name.clone(),
            linux: expected.end.word(),
            baton: seen.end.word(),
            verdict: verdict::compare(case, expected, seen),
            asked_twice: false,
        });
    }
    Ok(lines)
}

/// What Linux makes of the cases: remembered, or run now.
fn on_linux(workspace: &Workspace, cases: &[&Case], options: &Options) -> Result<Results> {
    let linux = Linux::prepare(workspace)?.with(options.cpus);
    let archive = read(&initramfs::test(workspace)?)?;
    let folder = workspace.target(RESULTS)?;
    let shared = cpio::outside(&archive, "test/")?;
    // One processor has no word of its own: what is remembered of it stays good.
    let processors = if options.cpus > 1 { format!(" {}", options.cpus) } else { String::new() };
    let machine = linux.name() + &processors;
    let shared = initramfs::fingerprint(&[&shared, machine.as_bytes()]);
    let file = |case: &Case| -> PathBuf {
        let name = initramfs::fingerprint(&ingredients(&archive, &shared, case));
        folder.join(name).with_extension("json")
    };
    let mut results = Results::new();
    let mut left = Vec::new();
    for case in cases {
        let kept = std::fs::read(file(case)).ok().filter(|_| !options.fresh);
        match kept.and_then(|bytes| serde_json::from_slice::<Ran>(&bytes).ok()) {
            Some(ran) => drop(results.insert(case.name.clone(), ran)),
            None => left.push(*case),
        }
    }
    let step = Step::start("Linux");
    guest::run(
        &left,
        options.show,
        |cases| linux.command(&archive, cases),
        |case, ran| {
            step.say(case.name.clone());
            std::fs::write(file(case), serde_json::to_vec(&ran)?)
                .context("cannot keep a result of Linux")?;
            results.insert(case.name.clone(), ran);
            Ok(())
        },
    )?;
    let remembered = cases.len() - left.len();
    step.done(&format!("{} cases run, {remembered} remembered", left.len()));
    Ok(results)
}

/// What a result depends on: everything outside /test, and what the case names.
fn ingredients<'a>(archive: &'a [u8], shared: &'a str, case: &'a Case) -> Vec<&'a [u8]> {
    let named = case.run.split_whitespace().filter_map(|word| word.strip_prefix('/'));
    let files = ["test/bin/init", "test/scripts/driver.sh"].into_iter().chain(named);
    let contents = files.filter_map(|file| cpio::contents(archive, file));
    [shared.as_bytes(), case.run.as_bytes()].into_iter().chain(contents).collect()
}

/// What Baton makes of the cases.
fn on_baton(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    cases: &[&Case],
    options: &Options,
) -> Result<Results> {
    let mut baton = Baton::prepare(workspace, composer)?.with(options.cpus);
    let archive = read(&initramfs::test(workspace)?)?;
    let mut results = Results::new();
    let step = Step::start("Baton");
    guest::run(
        cases,
        options.show,
        |cases| baton.command(&archive, cases),
        |case, ran| {
            step.say(case.name.clone());
            results.insert(case.name.clone(), ran);
            Ok(())
        },
    )?;
    step.done(&format!("{} cases run", cases.len()));
    Ok(results)
}

fn read(path: &std::path::Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// One system's results, whole; whether every case came to its end.
fn print(cases: &[&Case], results: &Results) -> bool {
    let mut good = true;
    for case in cases {
        let Some(ran) = results.get(&case.name) else { continue };
        println!("--- {}: {}", case.name, case.run);
        print!("{}", ran.output);
        println!("--- {}: {}\n", case.name, ran.end.word());
        good &= matches!(ran.end, guest::End::Status(_));
    }
    good
}

/// The table, then the differences.
fn report(lines: &[Line]) -> bool {
    println!("{:<28} {:>6} {:>6}", "case", "Linux", "Baton");
    for line in lines {
        let word = match (line.verdict.same, line.asked_twice) {
            (true, false) => "the same",
            (true, true) => "the same; Linux answered otherwise the first time",
            (false, _) => "DIFFERS",
        };
        println!("{:<28} {:>6} {:>6}  {word}", line.name, line.linux, line.baton);
    }
    for line in lines.iter().filter(|line| !line.verdict.same) {
        println!("\n{}:", line.name);
        line.verdict.difference.lines().for_each(|text| println!("    {text}"));
        line.verdict.notes.iter().for_each(|note| println!("    note: {note}"));
    }
    let same = lines.iter().filter(|line| line.verdict.same).count();
    println!("\n{same} of {} cases are the same on both systems.", lines.len());
    same == lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_depends_on_what_the_case_names() {
        let archive = |program: &str, other: &str| {
            let mut archive = cpio::Archive::default();
            archive.file("test/bin/program", 0o755, program);
            archive.file("test/bin/other", 0o755, other);
            archive.file("etc/passwd", 0o644, "root");
            archive.write().unwrap()
        };
        let text = "[[command]]\nname = \"x\"\nrun = \"/test/bin/program y\"\n";
        let case = toml::from_str::<Cases>(text).unwrap().all().unwrap().remove(0);
        let print = |archive: &[u8]| {
            let shared = initramfs::fingerprint(&[&cpio::outside(archive, "test/").unwrap()]);
            initramfs::fingerprint(&ingredients(archive, &shared, &case))
        };
        assert_eq!(print(&archive("a", "b")), print(&archive("a", "c")));
        assert_ne!(print(&archive("a", "b")), print(&archive("d", "b")));
    }
}
