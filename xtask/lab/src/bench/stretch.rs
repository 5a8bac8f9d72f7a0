//! Suite `interrupts-off`: the longest stretch without interrupts, and the longest from an
//! interrupt until its handler can run, during everything that the tests and the measured
//! programs do in the emulator, with their places.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::instrument::{Instrument, Stretch, Stretches, longest_of};
use super::row::Row;
use super::trace::{Step, Symbols};
use crate::machine::PLUGIN_VARIABLE;
use crate::ui;
use crate::workspace::Workspace;

/// The suite, and the rows with interrupts off.
const OFF: &str = "interrupts-off";
/// The rows about how late handlers run.
const LATE: &str = "handler-late";
/// The rows with interrupts off on other processors than the first.
const ELSEWHERE: &str = "interrupts-off-elsewhere";
/// The rows about how long a visitor's processor stands still.
const STANDS: &str = "stands-still";
/// Functions named with a stretch.
const SHOWN: usize = 4;

/// Runs the emulator's tests under the instrument; `others` are stretches already seen.
///
/// # Errors
/// When the tests cannot be run or the instrument left nothing.
pub fn rows(
    workspace: &Workspace,
    instrument: &Instrument,
    others: &[(&str, Stretches)],
) -> Result<Vec<Row>> {
    let kernel = crate::build::kernel(workspace)?;
    let mut rows: Vec<Row> = Vec::new();
    for (name, stretches) in others {
        rows.extend(all(name, stretches, &kernel, &workspace.root)?);
    }
    let (counted, verdict) = watch_tests(workspace, instrument, &kernel)?;
    let (stretches, machines) = longest_of(&counted)?;
    let tests = all("tests", &stretches, &kernel, &workspace.root)?.into_iter();
    rows.extend(
        tests.map(|row| row.with("tests", verdict.clone()).with("machines", machines as u64)),
    );
    for (index, kind) in [OFF, LATE, ELSEWHERE, STANDS].into_iter().enumerate() {
        let longest = rows
            .iter()
            .filter(|row| row.name.starts_with(&format!("{kind}/")))
            .max_by(|a, b| a.value.total_cmp(&b.value))
            .cloned()
            .context("nothing was watched")?;
        rows.insert(index, Row { name: format!("{kind}/longest"), ..longest });
    }
    if stretches.off.checker > 0 {
        let row = Row::baton(OFF, "interrupts-off/checker", stretches.off.checker as f64);
        rows.push(row.with("place", "the kernel's own checker, on demand"));
    }
    Ok(rows)
}

/// Runs the emulator's tests under the instrument: what it counted, and how the tests ended.
fn watch_tests(
    workspace: &Workspace,
    instrument: &Instrument,
    kernel: &Path,
) -> Result<(String, String)> {
    let out = workspace.target("bench")?.join("stretches");
    let _ = std::fs::remove_file(&out);
    let log = workspace.target("bench")?.join("interrupts-off.log");
    let said = std::fs::File::create(&log)
        .with_context(|| format!("cannot write {}", workspace.show(&log)))?;
    let step = ui::Step::start("interrupts-off");
    step.say("running the tests in the emulator");
    let this = std::env::current_exe().context("cannot tell which program this is")?;
    let status = Command::new(this)
        .args(["test", "--ring", "emulator", "--ring", "system"])
        .env("BATON_ROOT", &workspace.root)
        .env(PLUGIN_VARIABLE, instrument.argument(kernel, &out, ",stretch")?)
        .stdout(said)
        .stderr(Stdio::null())
        .status()
        .context("cannot run the tests")?;
    let counted =
        std::fs::read_to_string(&out).context("the instrument saw no machine of the tests")?;
    let verdict = if status.success() {
        "passed".to_owned()
    } else {
        let at = workspace.show(&log);
        format!("failed, perhaps by running under the instrument: {at} says which")
    };
    step.done(&verdict);
    Ok((counted, verdict))
}

/// The rows of all kinds; the last two if there were several processors.
fn all(name: &str, stretches: &Stretches, kernel: &Path, tree: &Path) -> Result<Vec<Row>> {
    let mut rows = vec![
        row(&format!("{OFF}/{name}"), &stretches.off, kernel, tree)?,
        row(&format!("{LATE}/{name}"), &stretches.late, kernel, tree)?,
    ];
    if let Some(stands) = &stretches.stands {
        rows.push(row(&format!("{ELSEWHERE}/{name}"), &stretches.elsewhere, kernel, tree)?);
        let stands = row(&format!("{STANDS}/{name}"), stands, kernel, tree)?;
        rows.push(stands.unit("instructions of the first processor"));
    }
    Ok(rows)
}

/// A stretch as a row, with the functions in which most of it was spent.
fn row(name: &str, stretch: &Stretch, kernel: &Path, tree: &Path) -> Result<Row> {
    let place = place(stretch, kernel, tree)?;
    Ok(Row::baton(OFF, name, stretch.instructions as f64).with("place", place))
}

fn place(stretch: &Stretch, kernel: &Path, tree: &Path) -> Result<String> {
    let step = |address| Step { kernel: true, address, text: String::new(), accesses: Vec::new() };
    let steps: Vec<Step> = stretch.places.iter().map(|(address, _)| step(*address)).collect();
    let symbols = Symbols::of(&steps, kernel, kernel, tree)?;
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    for (address, instructions) in &stretch.places {
        *functions.entry(symbols.get(*address).0).or_default() += instructions;
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.1));
    let named: Vec<String> =
        functions.iter().take(SHOWN).map(|(name, count)| format!("{name} {count}")).collect();
    Ok(named.join(", "))
}
