//! Suite `ablation`, Table 1 of the 1993 paper: the kernel rebuilt with one technique
//! of `kernel/src/techniques.rs` off at a time.
//!
//! The fast path in assembly has most techniques built in, so a switch changes
//! nothing there; each is therefore also measured on the complete path, with the fast
//! path off on both sides of the comparison. Every variant must pass the IPC tests.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::instrument::{Instrument, Measured, Trace};
use super::row::Row;
use super::suites::kernel;
use crate::compose::{Composer, Selection};
use crate::machine::{self, Boot, Console};
use crate::session::{Ended, Session};
use crate::techniques::{Switch, TECHNIQUES, switched_off, switches};
use crate::ui::Step;
use crate::variants::Variants;
use crate::workspace::Workspace;

const FAST_PATH: &str = "FAST_PATH";
const PROGRAM: &str = "bench-ipc";
/// The tests that every variant has to pass: root tasks of `tests/`.
const TESTS: [&str; 2] = ["ipc-tests", "c-api"];
/// Tests that ask for speed, or for the fast path itself: a variant may fail them.
const EXCUSED: [&str; 4] = [
    "test speed::",
    "test paths::",
    "test visits::a_fast_call_is_as_a_complete_one ",
    "test lipc_without_the_kernel ",
];
const LIMIT: Duration = Duration::from_secs(240);

/// The paper's message lengths, bytes, and the series that measure them here.
const LENGTHS: [(u64, &str, &str, u64); 5] = [
    (8, "ipc/words-cross-call", "words", 1),
    (12, "ipc/words-cross-call", "words", 2),
    (128, "ipc/words-cross-call", "words", 16),
    (512, "ipc/string-cross", "bytes", 512),
    (4096, "ipc/string-cross", "bytes", 4096),
];

/// The paper's figures, percent, where it has them; technique as it is called in rows.
const PAPER: [(&str, [Option<f64>; 5]); 4] = [
    ("fast-path", [Some(49.0), None, None, None, None]),
    ("single-copy", [None, Some(9.0), Some(23.0), Some(58.0), Some(157.0)]),
    ("lazy-scheduling", [Some(23.0), Some(16.0), Some(12.0), Some(7.0), Some(1.0)]),
    ("reply-and-wait", [Some(18.0), Some(13.0), Some(10.0), Some(5.0), Some(1.0)]),
];

/// `LAZY_SCHEDULING` as it is called in rows.
fn row_name(constant: &str) -> String {
    constant.to_lowercase().replace('_', "-")
}

/// Measures all variants.
///
/// # Errors
/// When a variant cannot be built or fails the IPC tests.
pub fn rows(workspace: &Workspace, instrument: &Instrument, whole: &Measured) -> Result<Vec<Row>> {
    let variants = Variants::copy(workspace)?;
    let source = variants.original(TECHNIQUES)?;
    let all = switches(&source)?;
    let fast = all.iter().find(|switch| switch.constant == FAST_PATH);
    let mut composer = Composer::new(workspace);
    let mut measure = |name: &str, off: &[&Switch]| -> Result<Measured> {
        let kernel = variants.build(name, TECHNIQUES, &switched_off(&source, off)?)?;
        let step = Step::start(format!("without {name}"));
        pass_tests(&mut composer, &kernel, name, &step)?;
        step.say("measuring");
        let selection = Selection {
            root: Some(PROGRAM.to_owned()),
            kernel: Some(kernel),
            ..Selection::default()
        };
        let bootable = composer.compose(&selection, &format!("{PROGRAM}-{name}"))?;
        let measured =
            instrument.run(&bootable, &machine::Options::default(), LIMIT, Trace::None)?;
        step.done("passes the IPC tests");
        Ok(measured)
    };
    let mut rows = combined_calls(whole);
    let complete = fast.map(|fast| measure("fast-path", &[fast])).transpose()?;
    if let Some(complete) = &complete {
        rows.extend(compare("fast-path", "", whole, complete));
    }
    for switch in all.iter().filter(|switch| Some(*switch) != fast) {
        let name = row_name(&switch.constant);
        rows.extend(compare(&name, "", whole, &measure(&name, &[switch])?));
        if let (Some(fast), Some(complete)) = (fast, &complete) {
            let both = measure(&format!("{name}-and-fast-path"), &[fast, switch])?;
            rows.extend(compare(&name, "-complete-path", complete, &both));
        }
    }
    rows.extend(paper());
    Ok(rows)
}

/// Boots the IPC tests with this kernel.
fn pass_tests(composer: &mut Composer<'_>, kernel: &Path, name: &str, step: &Step) -> Result<()> {
    for test in TESTS {
        step.say(format!("testing ({test})"));
        let selection = Selection {
            root: Some(test.to_owned()),
            kernel: Some(kernel.to_owned()),
            ..Selection::default()
        };
        let bootable = composer.compose(&selection, &format!("{test}-{name}"))?;
        let boot = Boot::Pvh { kernel: bootable.kernel, image: bootable.image };
        let options = machine::Options { icount: true, ..machine::Options::default() };
        let command = machine::command(&boot, &options, Console::Pipe)?;
        let mut session = Session::start(command, LIMIT, false)?;
        let ended = session.wait_for_end(|_| ());
        let console = session.transcript();
        // That a variant is slower than the tests allow is what is measured here.
        let excused = |line: &str| EXCUSED.iter().any(|test| line.contains(test));
        let failed: Vec<&str> =
            console.lines().filter(|line| line.contains("... FAILED") && !excused(line)).collect();
        ensure!(
            matches!(ended, Ended::Exited(_))
                && failed.is_empty()
                && console.contains("tests done"),
            "the kernel without {name} does not pass {test}: {}{}",
            ended.sentence(LIMIT),
            failed.iter().map(|line| format!("\n    {line}")).collect::<String>()
        );
    }
    Ok(())
}

/// The increase in percent at each length.
fn compare(name: &str, suffix: &str, with: &Measured, without: &Measured) -> Vec<Row> {
    let percent = |series: &str, key: &str, value: u64| {
        let (before, after) =
            (with.find(series, &[(key, value)])?, without.find(series, &[(key, value)])?);
        Some((kernel(after) / kernel(before) - 1.0) * 100.0)
    };
    let figures = LENGTHS
        .iter()
        .filter_map(|(bytes, series, key, value)| Some((*bytes, percent(series, key, *value)?)));
    figures.map(|(bytes, value)| row(&format!("{name}{suffix}"), bytes, value)).collect()
}

/// A combined call against a send and a receive: a round trip each.
fn combined_calls(measured: &Measured) -> Vec<Row> {
    let words = LENGTHS.iter().filter(|(_, _, key, _)| *key == "words");
    words
        .filter_map(|(bytes, _, key, value)| {
            let combined = measured.find("ipc/words-cross-roundtrip", &[(key, *value)])?;
            let split = measured.find("ipc/words-cross-split", &[(key, *value)])?;
            Some(row("reply-and-wait", *bytes, (kernel(split) / kernel(combined) - 1.0) * 100.0))
        })
        .collect()
}

fn row(name: &str, bytes: u64, percent: f64) -> Row {
    let rounded = (percent * 10.0).round() / 10.0;
    Row::baton("ablation", &format!("ablation/{name}"), rounded)
        .unit("percent")
        .with("bytes", bytes)
}

fn paper() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, figures) in PAPER {
        for ((bytes, ..), figure) in LENGTHS.iter().zip(figures) {
            rows.extend(figure.map(|value| row(name, *bytes, value).of("paper", "recorded")));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn techniques_have_names_in_rows() {
        assert_eq!(row_name("A_B"), "a-b");
    }

    #[test]
    fn the_papers_table_is_there() {
        let rows = paper();
        assert_eq!(rows.len(), 15);
        assert!(rows.iter().any(|r| r.name == "ablation/single-copy"
            && r.value == 157.0
            && r.parameter("bytes") == Some(4096)));
    }
}
