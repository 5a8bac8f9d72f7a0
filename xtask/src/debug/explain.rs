//! `explain`: the root task reports a fault with addresses; this says which functions and
//! lines they are.
//!
//! Of the calls that a report shows, it is the place of the call that is told, not where
//! it returns to.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::compose;
use crate::workspace::Workspace;

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

/// The system that the reports in `console` come from: `named`, if it has the tasks that
/// they name, or the first that has.
///
/// # Errors
/// A sentence when there is no report, or no system has the tasks.
pub fn reported_system(
    workspace: &Workspace,
    console: &str,
    named: Option<&str>,
) -> Result<String> {
    // A wrong name is said whatever the text is.
    named.map(|system| compose::tasks_of(workspace, system)).transpose()?;
    let tasks: BTreeSet<String> =
        console.lines().filter_map(report).map(|(task, _)| task).collect();
    ensure!(
        !tasks.is_empty(),
        "there is no fault report in this text; one begins with `root: NAME: thread`"
    );
    let has_all = |system: &str| {
        let known = compose::tasks_of(workspace, system).unwrap_or_default();
        tasks.iter().all(|task| known.contains(task))
    };
    let candidates: Vec<String> =
        compose::systems(workspace).into_iter().filter(|system| has_all(system)).collect();
    let list = tasks.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match named {
        Some(system) => {
            ensure!(
                has_all(system),
                "the system `{system}` is not the one that was booted: it does not have all \
                 tasks of the reports ({list}); {}",
                if candidates.is_empty() {
                    "no system under systems/ has".to_owned()
                } else {
                    format!("these systems have: {}", candidates.join(", "))
                }
            );
            Ok(system.to_owned())
        }
        None => candidates.into_iter().next().with_context(|| {
            format!("no system under systems/ has the tasks of the reports ({list}); name the one that was booted with --system FILE")
        }),
    }
}

/// The task's name and the addresses of a report: of a fault
/// (`root: NAME: thread ID at 0xIP ...`), or inside the calls that led to it
/// (`root: NAME: called from 0x... < 0x....`).
fn report(line: &str) -> Option<(String, Vec<u64>)> {
    let number = |digits: &str| u64::from_str_radix(digits.strip_prefix("0x")?, 16).ok();
    let (_, rest) = line.split_once("root: ")?;
    let (name, rest) = rest.split_once(": ")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    if let Some(calls) = rest.strip_prefix("called from ") {
        let returns = calls.trim_end_matches('.').split(" < ").map(number);
        let calls = returns.map(|address| Some(address?.wrapping_sub(1)));
        return Some((name.to_owned(), calls.collect::<Option<_>>()?));
    }
    let (thread, rest) = rest.strip_prefix("thread ")?.split_once(" at ")?;
    let (number_part, version) = thread.split_once('.')?;
    number_part.parse::<u64>().ok()?;
    version.parse::<u64>().ok()?;
    Some((name.to_owned(), vec![number(rest.split(' ').next()?)?]))
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
    fn the_system_is_the_one_that_has_the_tasks() {
        let folder = std::env::temp_dir().join(format!("baton-explain-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("systems")).unwrap();
        let workspace = Workspace { root: folder.clone() };
        for (system, task) in [("one", "serial"), ("two", "crash-me")] {
            let text = format!(
                "[sigma0]\nimage = \"s\"\n[root]\nimage = \"r\"\n[[task]]\nname = \"{task}\"\nimage = \"x\"\n"
            );
            std::fs::write(folder.join(format!("systems/{system}.toml")), text).unwrap();
        }
        let console = "root: crash-me: thread 193.65539 at 0x402940 tried to read 0x0, but so.";
        let of = |text: &str, named| {
            reported_system(&workspace, text, named).map_err(|error| format!("{error:#}"))
        };
        let found = [of(console, None), of(console, Some("two"))];
        let wrong = of(console, Some("one")).unwrap_err();
        let unknown = of(&console.replace("crash-me", "other"), None).unwrap_err();
        let silent = of("nothing happened", None).unwrap_err();
        let nosuch = of("nothing happened", Some("nosuch")).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [Ok("two".to_owned()), Ok("two".to_owned())]);
        assert!(wrong.contains("`one` is not the one") && wrong.ends_with("have: two"), "{wrong}");
        assert!(unknown.contains("(other)") && unknown.contains("--system FILE"), "{unknown}");
        assert!(silent.contains("no fault report"), "{silent}");
        assert!(nosuch.contains("nosuch"), "{nosuch}");
    }

    #[test]
    fn text_without_reports_stays_as_it_is() {
        assert_eq!(
            explain("a\nroot: x: thread 1.2 at 0x5 did it\n", &[]).unwrap().lines().count(),
            2
        );
    }
}
