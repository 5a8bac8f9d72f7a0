//! The gate: a handful of operations that no change may make slower unnoticed.
//!
//! `bench/gate.toml` has what they cost, `bench/gate/` what they execute. One that
//! costs more than it may fails the tests, with the instructions named that were
//! added. `./baton bench --accept` writes both anew; the change then says so. Of Linux'
//! calls and of several processors there is a figure only, without a listing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::instrument::{Instrument, Measured, Series, Trace, count};
use super::row::Row;
use super::trace::{self, Symbols};
use super::watched::{SHARED_LINES, SHORT_THERE, WATCHED, WATCHED_OF_LINUX};
use super::{linux, smp};
use crate::compose::{Bootable, Composer, Selection};
use crate::machine;
use crate::variants::Variants;
use crate::workspace::Workspace;

/// The committed limits.
const FILE: &str = "bench/gate.toml";
/// The committed instruction listings.
const LISTINGS: &str = "bench/gate";
/// The measured programs, and the processors of the second one's machine.
const PROGRAM: &str = "bench-gate";
const PROGRAM_OF_SEVERAL: &str = "bench-gate-smp";
const SEVERAL: u32 = 2;
const LIMIT: Duration = Duration::from_secs(45); // it takes two seconds
const SHOWN: usize = 12; // added instructions that are named

/// Where [`prove`] adds instructions to a copy, and which.
const ENTRY: &str = "kernel/src/arch/x86_64/entry/ipc.S";
const SLOWER: &str = "nop";
/// And a word that all processors write.
const SHARING: &str =
    ".pushsection .data; .balign 64; 9: .quad 0; .popsection; inc qword ptr [rip + 9b]";

/// What is counted on behalf of a row of which there is a figure only.
fn counted(name: &str) -> &'static str {
    match name {
        SHARED_LINES => "lines that processors share",
        SHORT_THERE => "kernel instructions",
        _ => "instructions of the program, the server and the kernel",
    }
}

/// One operation's limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    /// Instructions when the gate was last accepted: the kernel's, or, of a Linux program's
    /// call, everybody's.
    instructions: u64,
    /// How many more are let through: compilers differ in Rust code, never in assembly.
    slack: u64,
}

type Limits = BTreeMap<String, Limit>;

/// The watched rows of which there is a figure only, on `kernel`.
fn figures(workspace: &Workspace, kernel: Option<PathBuf>) -> Result<Vec<(&'static str, u64)>> {
    let mut rows = linux_rows(workspace, kernel.clone())?;
    rows.extend(rows_of_several(workspace, kernel)?);
    Ok(rows)
}

/// What short messages take where it is not the first processor's kernel that serves them, and the lines that they share.
fn rows_of_several(
    workspace: &Workspace,
    kernel: Option<PathBuf>,
) -> Result<[(&'static str, u64); 2]> {
    let gate = Gate::of(workspace, kernel, PROGRAM_OF_SEVERAL)?;
    let options = machine::Options { cpus: Some(SEVERAL), ..machine::Options::default() };
    let measured = gate.instrument.run(&gate.bootable, &options, LIMIT, Trace::None)?;
    let rows = smp::rows(&measured);
    let most = |name: &str| {
        let elsewhere = |row: &&Row| row.name == name && row.parameter("processor") != Some(0);
        let values = rows.iter().filter(elsewhere).map(|row| row.value as u64);
        values.max().with_context(|| format!("{name} was not measured"))
    };
    Ok([(SHORT_THERE, most(SHORT_THERE)?), (SHARED_LINES, most(SHARED_LINES)?)])
}

/// The watched rows of Linux' programs on `kernel`.
fn linux_rows(workspace: &Workspace, kernel: Option<PathBuf>) -> Result<Vec<(&'static str, u64)>> {
    let rows = linux::calls_of_baton(workspace, kernel)?;
    let value = |name| {
        let row = rows.iter().find(|row| row.name == name);
        row.map(|row| (name, row.value as u64)).with_context(|| format!("{name} was not measured"))
    };
    WATCHED_OF_LINUX.into_iter().map(value).collect()
}

/// What a row of which there is a figure only may take more.
fn slack(name: &str, instructions: u64) -> u64 {
    if [SHORT_THERE, SHARED_LINES].contains(&name) { 0 } else { compiled(instructions) }
}

/// Compiled code, of which compilers make different instructions, gets 2 %.
fn compiled(instructions: u64) -> u64 {
    instructions / 50
}

/// What the gate found.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Name and instructions of everything watched.
    pub measured: Vec<(String, u64)>,
    /// A sentence, of several lines, per operation that became slower.
    pub failures: Vec<String>,
}

/// The gate program, ready to boot.
struct Gate<'a> {
    workspace: &'a Workspace,
    instrument: Instrument,
    bootable: Bootable,
}

impl<'a> Gate<'a> {
    fn prepare(workspace: &'a Workspace, kernel: Option<PathBuf>) -> Result<Self> {
        Self::of(workspace, kernel, PROGRAM)
    }

    fn of(workspace: &'a Workspace, kernel: Option<PathBuf>, program: &str) -> Result<Self> {
        let instrument = Instrument::build(workspace)?;
        let selection =
            Selection { root: Some(program.to_owned()), kernel, ..Selection::default() };
        let bootable = Composer::new(workspace).compose(&selection, program)?;
        Ok(Self { workspace, instrument, bootable })
    }

    fn run(&self, trace: Trace) -> Result<Measured> {
        self.instrument.run(&self.bootable, &machine::Options::default(), LIMIT, trace)
    }

    /// What sample `number` executes in the kernel, comparable between builds.
    fn listing(&self, number: u64) -> Result<Vec<String>> {
        let steps = trace::read(&self.run(Trace::Sample(number))?.trace);
        let program = self.bootable.servers.last().context("the gate has no program")?;
        let symbols = Symbols::of(&steps, &self.bootable.kernel, program, &self.workspace.root)?;
        Ok(trace::condensed(&steps, &symbols))
    }
}

/// Whether `name` is a fast path's: assembly is exact, compiled code gets 2 %.
fn is_assembly(name: &str) -> bool {
    let exact = ["short", "63-words", "lipc/"].iter().any(|word| name.contains(word));
    exact && !name.ends_with("-complete")
}

/// The worst of the series: its instructions and the sample that shows them.
fn worst(measured: &Measured, name: &str, series: &[(&str, &str, u64)]) -> Option<(u64, u64)> {
    let level = if name.contains("-user") { "user" } else { "kernel" };
    let found = series.iter().filter_map(|(name, key, value)| {
        if key.is_empty() {
            measured.find(name, &[])
        } else {
            measured.find(name, &[(key, *value)])
        }
    });
    let best =
        found.filter_map(Series::best).map(|(number, sample)| (count(sample, level), number));
    best.max_by_key(|(instructions, _)| *instructions)
}

/// Measures the gate set against the committed limits; `kernel`: another than the tree's.
///
/// # Errors
/// When it could not be measured, or there is no gate to measure against.
pub fn check(workspace: &Workspace, kernel: Option<PathBuf>) -> Result<Verdict> {
    let path = workspace.path(FILE);
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!("there is no {FILE} to measure against; `./baton bench --accept` writes one")
    })?;
    let limits: Limits =
        toml::from_str(&text).with_context(|| format!("{FILE} is not a list of limits"))?;
    let mut verdict = Verdict::default();
    check_figures(figures(workspace, kernel.clone())?, &limits, &mut verdict);
    let gate = Gate::prepare(workspace, kernel)?;
    let measured = gate.run(Trace::None)?;
    for (name, series) in WATCHED {
        let Some((instructions, sample)) = worst(&measured, name, series) else {
            verdict
                .failures
                .push(format!("{name} was not measured: the gate program did not report it"));
            continue;
        };
        verdict.measured.push((name.to_owned(), instructions));
        let Some(limit) = limits.get(name) else {
            verdict.failures.push(no_limit(name));
            continue;
        };
        if instructions > limit.instructions + limit.slack {
            let before = read_listing(workspace, name);
            verdict.failures.push(complaint(
                name,
                limit,
                instructions,
                &before,
                &gate.listing(sample)?,
            ));
        }
    }
    Ok(verdict)
}

fn no_limit(name: &str) -> String {
    format!("{FILE} has no limit for {name}; `./baton bench --accept` adds it")
}

/// The same for rows of which there is a figure only, and no listing.
fn check_figures(rows: Vec<(&'static str, u64)>, limits: &Limits, verdict: &mut Verdict) {
    for (name, instructions) in rows {
        verdict.measured.push((name.to_owned(), instructions));
        match limits.get(name) {
            None => verdict.failures.push(no_limit(name)),
            Some(limit) if instructions > limit.instructions + limit.slack => {
                verdict.failures.push(format!(
                    "{name} takes {instructions} {}, {} more than the gate's {}. If that is meant, run \
                     `./baton bench --accept` and say so in the commit.",
                    counted(name),
                    instructions - limit.instructions,
                    limit.instructions
                ));
            }
            Some(_) => {}
        }
    }
}

/// Makes today's figures the gate.
///
/// # Errors
/// When they could not be measured or written.
pub fn accept(workspace: &Workspace) -> Result<Verdict> {
    let gate = Gate::prepare(workspace, None)?;
    let measured = gate.run(Trace::None)?;
    let mut verdict = Verdict::default();
    let mut limits = Limits::new();
    for (name, instructions) in figures(workspace, None)? {
        verdict.measured.push((name.to_owned(), instructions));
        limits.insert(name.to_owned(), Limit { instructions, slack: slack(name, instructions) });
    }
    for (name, series) in WATCHED {
        let (instructions, sample) =
            worst(&measured, name, series).with_context(|| format!("{name} was not measured"))?;
        verdict.measured.push((name.to_owned(), instructions));
        let slack = if is_assembly(name) { 0 } else { compiled(instructions) };
        limits.insert(name.to_owned(), Limit { instructions, slack });
        let path = listing_path(workspace, name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))
            .context("cannot create bench/gate")?;
        std::fs::write(&path, gate.listing(sample)?.join("\n") + "\n")
            .with_context(|| format!("cannot write {}", gate.workspace.show(&path)))?;
    }
    let text = toml::to_string(&limits).context("the limits cannot be written as TOML")?;
    let header = "# Kernel instructions that the gate lets through (docs/measuring.md); of `linux/`, all\n\
                  # instructions; of `smp/shared-lines`, lines. Written by `./baton bench --accept`; a change that makes one of these\n\
                  # worse says so.\n\n";
    std::fs::write(workspace.path(FILE), format!("{header}{text}"))
        .with_context(|| format!("cannot write {FILE}"))?;
    Ok(verdict)
}

/// Whether the gate does its work: a kernel with two instructions more at the entry
/// of its fast path, and a word there that all processors write, has to fail it, with these instructions named.
///
/// # Errors
/// When that kernel cannot be built or measured, or gets through.
pub fn prove(workspace: &Workspace) -> Result<()> {
    let variants = Variants::copy(workspace)?;
    let label = "baton_ipc_entry:\n";
    let slowed = variants.original(ENTRY)?.replacen(
        label,
        &format!("{label}    {SLOWER}\n    {SLOWER}\n    {SHARING}\n"),
        1,
    );
    let kernel = variants.build("slowed", ENTRY, &slowed)?;
    let verdict = check(workspace, Some(kernel))?;
    let short = |name: &&str| name.contains("short") && is_assembly(name);
    for name in WATCHED.map(|(name, _)| name).into_iter().filter(short) {
        let complaint = verdict.failures.iter().find(|failure| failure.starts_with(name));
        let complaint = complaint
            .with_context(|| format!("{name} got through the gate with two instructions more"))?;
        let named = complaint.matches(&format!("+ baton_ipc_entry: {SLOWER}")).count();
        ensure!(
            named == 2,
            "the gate does not name the two `{SLOWER}` that were added to {name}:\n{complaint}"
        );
    }
    for name in [SHORT_THERE, SHARED_LINES] {
        let is_named = verdict.failures.iter().any(|failure| failure.starts_with(name));
        ensure!(is_named, "{name} got through the gate with a word that all processors write");
    }
    Ok(())
}

fn listing_path(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.path(LISTINGS).join(format!("{}.txt", name.replace('/', "-")))
}

fn read_listing(workspace: &Workspace, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(listing_path(workspace, name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Says what became slower and by which instructions.
fn complaint(
    name: &str,
    limit: &Limit,
    instructions: u64,
    before: &[String],
    now: &[String],
) -> String {
    let added = added(before, now);
    let mut text = format!(
        "{name} takes {instructions} kernel instructions, {} more than the gate's {}; {} instructions (or loops) are new",
        instructions - limit.instructions,
        limit.instructions,
        added.len()
    );
    for line in added.iter().take(SHOWN) {
        text += &format!("\n      + {line}");
    }
    if added.len() > SHOWN {
        text += &format!("\n      + ... and {} more", added.len() - SHOWN);
    }
    text + "\n      If that is meant, run `./baton bench --accept` and say so in the commit."
}

/// The lines of `now` that are not in `before`: the rest of a longest common
/// subsequence.
fn added<'a>(before: &[String], now: &'a [String]) -> Vec<&'a str> {
    let width = before.len() + 1;
    let mut longest = vec![0_u32; (now.len() + 1) * width];
    for i in (0..now.len()).rev() {
        for j in (0..before.len()).rev() {
            longest[i * width + j] = if now[i] == before[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut added = Vec::new();
    while i < now.len() {
        if j < before.len() && now[i] == before[j] {
            (i, j) = (i + 1, j + 1);
        } else if j < before.len() && longest[i * width + j + 1] >= longest[(i + 1) * width + j] {
            j += 1;
        } else {
            added.push(now[i].as_str());
            i += 1;
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn added_instructions_are_named() {
        let before = lines("a b c d e");
        assert_eq!(added(&before, &lines("a b x c d y e z")), ["x", "y", "z"]);
        assert_eq!(added(&before, &lines("a c e")), Vec::<&str>::new());
        assert_eq!(added(&[], &before), ["a", "b", "c", "d", "e"]);
        assert_eq!(added(&before, &lines("b a c d e")).len(), 1);
    }

    #[test]
    fn complaints_say_how_many_and_which() {
        let limit = Limit { instructions: 35, slack: 0 };
        let text = complaint("ipc/short", &limit, 37, &lines("a b"), &lines("a nop nop b"));
        assert!(
            text.starts_with("ipc/short takes 37 kernel instructions, 2 more than the gate's 35"),
            "{text}"
        );
        assert_eq!(text.matches("+ nop").count(), 2);
    }

    #[test]
    fn limits_are_toml() {
        let limits: Limits = toml::from_str("[\"ipc/x\"]\ninstructions = 5\nslack = 0\n").unwrap();
        assert_eq!(limits["ipc/x"], Limit { instructions: 5, slack: 0 });
    }
}
