//! Runs many cases in one machine, Linux' or Baton's, and reads from the console
//! what each printed and how it ended.
//!
//! `tests/linux/scripts/driver.sh` works off /test/plan and marks beginning and
//! end of each case. A case that does not end is reported; the machine is
//! stopped, and another one started for the cases behind it. Behind the last case
//! the machine waits until it is stopped here: one that stopped itself once took
//! the end of the last case's output along.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::cases::Case;
use super::cpio::{self, Archive};
use crate::end_of;
use crate::session::{Ended, Session};

/// What the shell is told in order to work off the plan.
pub const DRIVER: &str = "/bin/sh /test/scripts/driver.sh";
/// From the machine's start to the first case, and from one to the next.
const PAUSE: Duration = Duration::from_secs(300);
/// Lines of a console that are shown when no case began.
const LAST_WORDS: usize = 25;

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// By itself, with this status.
    Status(i32),
    /// Not within its time.
    Hung,
    /// The machine stopped under it.
    Died(String),
}

impl End {
    /// A word or two for a table.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::Hung => "hung".to_owned(),
            Self::Died(_) => "died".to_owned(),
        }
    }
}

/// What a case printed, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Standard output and error output.
    pub output: String,
    /// How it ended.
    pub end: End,
}

/// `archive` with the list of what is to be run.
///
/// # Errors
/// When it is no archive.
pub fn with_plan(archive: &[u8], cases: &[&Case]) -> Result<Vec<u8>> {
    let plan: String = cases.iter().map(|case| format!("{} {}\n", case.name, case.run)).collect();
    let mut added = Archive::default();
    added.file("test/plan", 0o644, plan);
    added.file("test/command", 0o644, DRIVER);
    cpio::join(archive, &added.write()?)
}

/// Runs `cases`; `start` makes the machine for those that are left, `done` is
/// told of each result.
///
/// # Errors
/// When a machine cannot be started, or does not come to its first case.
pub fn run(
    cases: &[&Case],
    show: bool,
    mut start: impl FnMut(&[&Case]) -> Result<Command>,
    mut done: impl FnMut(&Case, Ran) -> Result<()>,
) -> Result<()> {
    let mut left = cases;
    while !left.is_empty() {
        let mut session = Session::start(start(left)?, PAUSE, show)?;
        let mut at = 0;
        let before = left.len();
        while let [case, rest @ ..] = left {
            let begin = Regex::new(&format!(r"(?m)^@@ case {}\n", regex::escape(&case.name)))?;
            session.limit(PAUSE);
            at = match session.wait_for(end_of(&begin), at) {
                Ok(at) => at,
                Err(_) if left.len() < before => break, // a new machine for this one
                Err(ended) => bail!("{}", no_case(ended, &session.transcript())),
            };
            left = rest;
            let (ran, next) = follow(case, &mut session, at)?;
            done(case, ran)?;
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
    }
    Ok(())
}

/// Waits for the end of a case whose output begins at `from`; the offset behind
/// it, if the machine is still good.
fn follow(case: &Case, session: &mut Session, from: usize) -> Result<(Ran, Option<usize>)> {
    let end = Regex::new(&format!(r"\n@@ exit {} ([0-9]+)\n", regex::escape(&case.name)))?;
    let limit = Duration::from_secs(case.seconds);
    session.limit(limit);
    // The mark begins with a line feed of its own, perhaps the one before `from`.
    let waited = session.wait_for(end_of(&end), from.saturating_sub(1));
    let console = session.transcript();
    let rest = console.get(from..).unwrap_or_default();
    let whole = console.get(from.saturating_sub(1)..).unwrap_or_default();
    let (end, output, next) = match waited {
        Ok(next) => {
            let found = end.captures(whole);
            let status = found.as_ref().and_then(|c| c[1].parse().ok()).unwrap_or(-1);
            let mark = found.and_then(|c| c.get(0)).map_or(1, |mark| mark.start());
            (End::Status(status), &rest[..mark.saturating_sub(1)], Some(next))
        }
        Err(Ended::TimedOut) => (End::Hung, rest, None),
        Err(ended) => (End::Died(ended.sentence(limit)), rest, None),
    };
    Ok((Ran { output: output.to_owned(), end }, next))
}

/// The sentence for a machine that ran nothing.
fn no_case(ended: Ended, console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
    format!(
        "no case began to run ({}); the console's last lines:\n    {}",
        ended.sentence(PAUSE),
        last.join("\n    ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str) -> Case {
        let (run, masks) = ("true".to_owned(), Vec::new());
        Case {
            name: name.to_owned(),
            run,
            seconds: 1,
            short: false,
            cpus: 1,
            counted: false,
            masks,
        }
    }

    /// Plays machines that print one script after another.
    fn play(names: &[&str], scripts: &[&str]) -> (Vec<(String, String, End)>, Result<()>) {
        let cases: Vec<Case> = names.iter().map(|name| case(name)).collect();
        let list: Vec<&Case> = cases.iter().collect();
        let mut scripts = scripts.iter();
        let mut results = Vec::new();
        let outcome = run(
            &list,
            false,
            |_| {
                let mut shell = Command::new("sh");
                shell.args(["-c", scripts.next().expect("no further machine")]);
                Ok(shell)
            },
            |case, ran| {
                results.push((case.name.clone(), ran.output, ran.end));
                Ok(())
            },
        );
        (results, outcome)
    }

    #[test]
    fn outputs_are_exact() {
        let script = r"printf 'boot\n@@ case a\none\ntwo\n\n@@ exit a 3\n@@ case b\n\n@@ exit b 0\n@@ case c\nno end\n@@ exit c 1\n'";
        let (results, outcome) = play(&["a", "b", "c"], &[script]);
        outcome.unwrap();
        let one = |name: &str, output: &str, status| {
            (name.to_owned(), output.to_owned(), End::Status(status))
        };
        assert_eq!(results, [one("a", "one\ntwo\n", 3), one("b", "", 0), one("c", "no end", 1)]);
    }

    #[test]
    fn a_case_that_hangs_does_not_stop_the_others() {
        let first = r"printf '@@ case a\npartly'; sleep 30";
        let second = r"printf '@@ case b\nx\n\n@@ exit b 0\n@@ case c\n'; exit 33";
        let third = r"printf '@@ case d\n\n@@ exit d 0\n'";
        let (results, outcome) = play(&["a", "b", "c", "d"], &[first, second, third]);
        outcome.unwrap();
        assert_eq!(results[0].2, End::Hung);
        assert_eq!(results[0].1, "partly");
        assert_eq!(results[1].2, End::Status(0));
        assert!(matches!(&results[2].2, End::Died(why) if why.contains("success")));
        assert_eq!(results[3].2, End::Status(0));
    }

    #[test]
    fn a_machine_that_runs_nothing_is_an_error() {
        let (results, outcome) = play(&["a"], &["echo no such luck; exit 35"]);
        assert!(results.is_empty());
        let words = outcome.unwrap_err().to_string();
        assert!(words.contains("no case began") && words.contains("no such luck"), "{words}");
    }

    #[test]
    fn the_plan_is_in_the_archive() {
        let (a, b) = (case("a"), case("b"));
        let bytes = with_plan(&Archive::default().write().unwrap(), &[&a, &b]).unwrap();
        assert_eq!(cpio::contents(&bytes, "test/plan"), Some(&b"a true\nb true\n"[..]));
    }
}
