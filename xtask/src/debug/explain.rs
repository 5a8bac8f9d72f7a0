//! `explain`: the root task reports a fault with addresses; this says which functions and
//! lines they are.
//!
//! Of the calls that a report shows, it is the place of the call that is told, not where
//! it returns to.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context, Result, ensure};
use regex::Regex;

/// `root: NAME: thread ID at 0xIP ...`
static FAULT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"root: ([\w.-]+): thread [0-9]+\.[0-9]+ at 0x([0-9a-f]+) ").ok());
/// `root: NAME: called from 0x... < 0x....`
static CALLS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"root: ([\w.-]+): called from ([0-9a-fx <]+)\.").ok());

/// The console's text with an indented line per function behind each report; `tasks` are
/// the programs by name.
///
/// # Errors
/// When a program cannot be read, or addr2line not be run.
pub fn explain(console: &str, tasks: &[(String, PathBuf)]) -> Result<String> {
    let mut text = String::new();
    for line in console.lines() {
        text.push_str(line);
        text.push('\n');
        let Some((name, addresses)) = report(line) else { continue };
        let Some((_, file)) = tasks.iter().find(|(task, _)| *task == name) else { continue };
        for place in places(file, &addresses)? {
            text.push_str(&format!("    {place}\n"));
        }
    }
    Ok(text)
}

/// The task's name and the addresses of a report: of a fault, or inside the calls that led
/// to it.
fn report(line: &str) -> Option<(String, Vec<u64>)> {
    let number = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok();
    if let Some(found) = CALLS.as_ref()?.captures(line) {
        let returns = found[2].split(" < ").filter_map(number);
        return Some((
            found[1].to_owned(),
            returns.map(|address| address.wrapping_sub(1)).collect(),
        ));
    }
    let found = FAULT.as_ref()?.captures(line)?;
    Some((found[1].to_owned(), vec![number(&found[2])?]))
}

/// `function at file:line` of each address, inlined ones on lines of their own.
fn places(file: &Path, addresses: &[u64]) -> Result<Vec<String>> {
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let mut child = Command::new("addr2line")
        .args(["-f", "-C", "-i", "-p", "-e"])
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run addr2line; install the package binutils")?;
    let list: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let mut input = child.stdin.take().context("addr2line takes no input")?;
    input.write_all(list.as_bytes()).context("addr2line stopped reading")?;
    drop(input);
    let output = child.wait_with_output().context("addr2line does not end")?;
    ensure!(output.status.success(), "addr2line cannot read {}", file.display());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter(|line| !line.starts_with("??")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_recognised() {
        let fault = "root: crash-me: thread 193.65539 at 0x402940 tried to read 0x0, but so.";
        assert_eq!(report(fault), Some(("crash-me".to_owned(), vec![0x40_2940])));
        let calls = "x root: a.b: called from 0x401000 < 0x40beef.";
        assert_eq!(report(calls), Some(("a.b".to_owned(), vec![0x40_0FFF, 0x40_BEEE])));
        assert_eq!(report("root: cannot start the system: because"), None);
    }

    #[test]
    fn text_without_reports_stays_as_it_is() {
        assert_eq!(
            explain("a\nroot: x: thread 1.2 at 0x5 did it\n", &[]).unwrap().lines().count(),
            2
        );
    }
}
