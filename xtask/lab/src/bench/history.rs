//! `bench/history.jsonl`: one line per recorded commit, so that the report can show
//! how the figures came to be what they are.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::row::Row;
use crate::workspace::Workspace;

const FILE: &str = "bench/history.jsonl";

/// The rows that are recorded.
const RECORDED: [&str; 12] = [
    "ipc/short-cross-kernel",
    "ipc/short-local-kernel",
    "ipc/63-words-cross-kernel",
    "ipc/string-4096-kernel",
    "ipc/short-cross-roundtrip-total",
    "working-set/kernel-data-lines",
    "working-set/kernel-code-lines",
    "working-set/kernel-pages",
    "ops/page-fault",
    "ops/interrupt",
    "ops/timer-tick",
    "interrupts-off/longest",
];

/// One recorded commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its short hash; with a plus if the tree had other changes.
    pub commit: String,
    /// Its date, YYYY-MM-DD.
    pub date: String,
    /// Figures by name.
    pub figures: BTreeMap<String, f64>,
}

/// All recorded commits, oldest first.
///
/// # Errors
/// `FILE:LINE` and what is wrong there.
pub fn read(workspace: &Workspace) -> Result<Vec<Entry>> {
    let text = std::fs::read_to_string(workspace.path(FILE)).unwrap_or_default();
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Entry>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("{FILE}:{} is not a record", index + 1))
        })
        .collect()
}

/// Appends today's figures for the current commit.
///
/// # Errors
/// When git cannot say which commit this is, or the file cannot be written.
pub fn record(workspace: &Workspace, rows: &[Row]) -> Result<Entry> {
    let commit = git(workspace, &["describe", "--always", "--dirty=+", "--exclude=*"])?;
    let date = git(workspace, &["log", "-1", "--format=%cs"])?;
    let entry = Entry { commit, date, figures: figures(rows) };
    ensure!(
        !entry.figures.is_empty(),
        "none of the figures that the history keeps was measured; run the suites ipc, working-set and ops"
    );
    let path = workspace.path(FILE);
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("cannot write {FILE}"))?;
    let line = serde_json::to_string(&entry).context("the record cannot be written as JSON")?;
    writeln!(file, "{line}").with_context(|| format!("cannot write {FILE}"))?;
    Ok(entry)
}

fn figures(rows: &[Row]) -> BTreeMap<String, f64> {
    let ours = rows.iter().filter(|row| row.system == "baton");
    ours.filter(|row| RECORDED.contains(&row.name.as_str()))
        .map(|row| (row.name.clone(), row.value))
        .collect()
}

fn git(workspace: &Workspace, args: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .current_dir(&workspace.root)
        .args(args)
        .output()
        .context("cannot run git, which names the commit to record")?;
    ensure!(
        output.status.success(),
        "git cannot name the commit to record: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_file() {
        let rows = [
            Row::baton("ipc", "ipc/short-cross-kernel", 35.0),
            Row::baton("ipc", "ipc/short-cross-kernel", 79.0).of("pistachio", "recorded"),
            Row::baton("ops", "ops/unheard-of", 1.0),
        ];
        let entry = Entry {
            commit: "abc".to_owned(),
            date: "2026-01-01".to_owned(),
            figures: figures(&rows),
        };
        assert_eq!(entry.figures.len(), 1);
        let line = serde_json::to_string(&entry).unwrap();
        assert_eq!(parse(&format!("{line}\n\n{line}\n")).unwrap(), [entry.clone(), entry]);
        assert!(parse("{}").unwrap_err().to_string().contains("history.jsonl:1"));
    }
}
