//! Decides whether two results are the same: what may differ is masked, what the
//! Unix server reports on its own account is taken out, the rest is compared byte
//! for byte.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use similar::TextDiff;

use super::cases::Case;
use super::guest::{End, Ran};

/// What stands for something that may differ.
const MASK: &str = "<masked>";
/// Lines around a difference that are shown.
const CONTEXT_LINES: usize = 3;
/// Most lines of a difference.
const DIFF_LINES: usize = 40;

/// The Unix server's own lines; it prints each in one piece.
static LOG: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"unix: [^\n]*(?:\n|$)").ok());
/// What differs in any program: `pid 17`, `time=12:30:01`, and the process number
/// with which bash reports a killed child.
static USUAL: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"\b(?:pid|ppid|pgid|pgrp|sid|tid)[ =:]+(?P<m>[0-9]+)",
        r"\btime[ =:]+(?P<m>[0-9][0-9.:]*)",
        r"(?m): line [0-9]+:(?P<m> +[0-9]+) [A-Z]",
    ];
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// A result without what does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned {
    /// What is compared.
    pub output: String,
    /// What the server said.
    pub notes: Vec<String>,
}

/// Takes out the server's lines and masks what may differ in `case`.
#[must_use]
pub fn clean(case: &Case, output: &str) -> Cleaned {
    let mut notes = Vec::new();
    let mut text = Cow::Borrowed(output);
    if let Some(log) = LOG.as_ref() {
        notes.extend(log.find_iter(output).map(|line| line.as_str().trim_end().to_owned()));
        text = log.replace_all(output, "");
    }
    let mut text = text.into_owned();
    let masks: Vec<Regex> = case.masks.iter().filter_map(|mask| Regex::new(mask).ok()).collect();
    for pattern in USUAL.iter().chain(&masks) {
        text = mask(&text, pattern);
    }
    Cleaned { output: text, notes }
}

/// Masks the group `m` of each match, or the whole match.
fn mask(text: &str, pattern: &Regex) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    for found in pattern.captures_iter(text) {
        let Some(part) = found.name("m").or_else(|| found.get(0)).filter(|p| p.start() >= last)
        else {
            continue;
        };
        out.push_str(&text[last..part.start()]);
        out.push_str(MASK);
        last = part.end();
    }
    out.push_str(&text[last..]);
    out
}

/// What a comparison came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether there is nothing to be told apart.
    pub same: bool,
    /// What differs, for a person.
    pub difference: String,
    /// What the server said while it ran.
    pub notes: Vec<String>,
}

/// Compares.
#[must_use]
pub fn compare(case: &Case, linux: &Ran, baton: &Ran) -> Verdict {
    let (expected, seen) = (clean(case, &linux.output), clean(case, &baton.output));
    let same = expected.output == seen.output
        && linux.end == baton.end
        && matches!(linux.end, End::Status(_));
    let mut difference = String::new();
    if linux.end != baton.end || !matches!(linux.end, End::Status(_)) {
        difference = format!("Linux: {}. Baton: {}.\n", sentence(&linux.end), sentence(&baton.end));
    }
    if expected.output != seen.output {
        difference += &diff(&expected.output, &seen.output);
    }
    Verdict { same, difference, notes: seen.notes }
}

fn sentence(end: &End) -> String {
    match end {
        End::Status(status) => format!("exit status {status}"),
        End::Hung => "not done within its time".to_owned(),
        End::Died(why) => format!("the machine stopped: {why}"),
    }
}

/// The usual form: `-` Linux, `+` Baton.
fn diff(linux: &str, baton: &str) -> String {
    let text_diff = TextDiff::from_lines(linux, baton);
    let unified =
        text_diff.unified_diff().context_radius(CONTEXT_LINES).header("Linux", "Baton").to_string();
    let mut lines = unified.lines();
    let mut shown: String =
        lines.by_ref().take(DIFF_LINES).map(|line| format!("{line}\n")).collect();
    match lines.count() {
        0 => {}
        more => shown += &format!("... and {more} lines more\n"),
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(masks: &[&str]) -> Case {
        let masks = masks.iter().map(|mask| (*mask).to_owned()).collect();
        Case {
            name: "x".into(),
            run: "x".into(),
            seconds: 1,
            short: false,
            cpus: 1,
            counted: false,
            masks,
        }
    }

    fn ran(output: &str, end: End) -> Ran {
        Ran { output: output.to_owned(), end }
    }

    #[test]
    fn process_numbers_and_times_do_not_count() {
        let clean = |text: &str| clean(&case(&[]), text).output;
        assert_eq!(clean("pid 17 and ppid=1\n"), "pid <masked> and ppid=<masked>\n");
        assert_eq!(clean("time: 12:30:01.5 x"), "time: <masked> x");
        assert_eq!(
            clean("a.sh: line 3:    41 Killed   sleep\n"),
            "a.sh: line 3:<masked> Killed   sleep\n"
        );
        assert_eq!(clean("17 processes, timeout 3"), "17 processes, timeout 3");
    }

    #[test]
    fn a_case_masks_what_it_names() {
        let cleaned = clean(&case(&["size [0-9]+", "inode (?P<m>[0-9]+)"]), "size 5 inode 6 at 7");
        assert_eq!(cleaned.output, "<masked> inode <masked> at 7");
    }

    #[test]
    fn the_servers_lines_are_notes() {
        let text = "one\nunix: sh: call 999 is not there\ntwunix: another line\no\n";
        let cleaned = clean(&case(&[]), text);
        assert_eq!(cleaned.output, "one\ntwo\n");
        assert_eq!(cleaned.notes, ["unix: sh: call 999 is not there", "unix: another line"]);
    }

    #[test]
    fn only_equal_endings_are_equal() {
        let same = |a: &Ran, b: &Ran| compare(&case(&[]), a, b).same;
        let good = ran("pid 1\n", End::Status(0));
        assert!(same(&good, &ran("pid 22\n", End::Status(0))));
        assert!(!same(&good, &ran("pid 22\n", End::Status(1))));
        assert!(!same(&good, &ran("pid 22", End::Status(0))));
        assert!(!same(&ran("", End::Hung), &ran("", End::Hung)));
    }

    #[test]
    fn differences_are_shown_as_such() {
        let verdict = compare(
            &case(&[]),
            &ran("a\nb\nc\n", End::Status(0)),
            &ran("a\nx\nc\n", End::Died("it fell".into())),
        );
        assert!(verdict.difference.contains("exit status 0. Baton: the machine stopped: it fell."));
        assert!(verdict.difference.contains("-b\n+x\n"), "{}", verdict.difference);
        let long: String = (0..200).map(|n| format!("{n}\n")).collect();
        let verdict = compare(&case(&[]), &ran(&long, End::Status(0)), &ran("", End::Status(0)));
        assert!(verdict.difference.contains("lines more"));
    }
}
