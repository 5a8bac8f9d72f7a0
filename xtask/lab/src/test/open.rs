//! Attacks that are known to succeed: cases that a list names print as `open` and do not
//! count as failures, so that the tests say what is broken and still tell when more is. A
//! case that is on the list and no longer fails is a failure until its line is taken off.

use anyhow::{Context, Result};

use super::tally::Outcome;
use crate::workspace::Workspace;

/// The names in the file `list`.
///
/// # Errors
/// When it cannot be read.
pub fn read(workspace: &Workspace, list: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(workspace.path(list))
        .with_context(|| format!("cannot read the list of open attacks {list}"))?;
    Ok(names(&text))
}

/// A name a line; `#` begins a remark.
fn names(text: &str) -> Vec<String> {
    let words = text.lines().filter_map(|line| line.split('#').next());
    words.map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Takes the failures of cases in `list` out of `outcome`; of the cases in `held`, which
/// passed, those in the list fail.
pub fn sort(mut outcome: Outcome, list: &[String], held: &[&str]) -> Outcome {
    let known = |failure: &String| list.iter().any(|name| is_of(failure, name));
    (outcome.open, outcome.failures) = outcome.failures.into_iter().partition(known);
    for name in list.iter().filter(|name| held.contains(&name.as_str())) {
        outcome.passed -= outcome.passed.min(1);
        let why = "it is on the list of open attacks and no longer succeeds; take it off the list";
        outcome.failures.push(format!("{name}: {why}"));
    }
    outcome
}

/// Whether `failure` is that of the case `name`, or of a guest that died in it.
fn is_of(failure: &str, name: &str) -> bool {
    let rest = failure.strip_prefix("the guest died in test ").unwrap_or(failure);
    rest.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_attacks_do_not_count_until_they_are_closed() {
        let list = names("# remark\na-hole\n\nb-hole # K2\nc-hole\nd-hole\n");
        assert_eq!(list, ["a-hole", "b-hole", "c-hole", "d-hole"]);
        let failures =
            ["a-hole: seen", "a-hole-too: seen", "the guest died in test d-hole without the line"];
        let failures = failures.map(str::to_owned).to_vec();
        let outcome = Outcome { passed: 2, failures, ..Outcome::default() };
        let sorted = sort(outcome, &list, &["b-hole", "other"]);
        assert_eq!(sorted.open.len(), 2);
        assert_eq!(sorted.passed, 1);
        assert_eq!(sorted.failures.len(), 2);
        assert!(sorted.failures[0].starts_with("a-hole-too"));
        assert!(sorted.failures[1].starts_with("b-hole: it is on the list"));
    }
}
