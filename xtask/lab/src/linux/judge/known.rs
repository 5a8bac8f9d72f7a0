//! The differences that are known, a list for each suite in `tests/linux/judge/`: a name and,
//! behind it, the cause. Lines that begin with `#` are for people.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::report::Verdict;
use super::suite::Name;
use crate::workspace::Workspace;

/// Where the lists are.
const FOLDER: &str = "tests/linux/judge";
/// What stands where nobody has looked yet.
const UNKNOWN: &str = "not looked at";

/// Causes by the name of the test.
pub type Known = BTreeMap<String, String>;

fn file(workspace: &Workspace, suite: Name) -> PathBuf {
    workspace.path(FOLDER).join(suite.word()).with_extension("txt")
}

/// Reads the list of `suite`; one that is not there is empty.
///
/// # Errors
/// When it cannot be read.
pub fn read(workspace: &Workspace, suite: Name) -> Result<Known> {
    let file = file(workspace, suite);
    if !file.exists() {
        return Ok(Known::new());
    }
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Known {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let parts = lines.map(|line| line.split_once("  ").unwrap_or((line, UNKNOWN)));
    parts.map(|(name, cause)| (name.trim().to_owned(), cause.trim().to_owned())).collect()
}

/// Writes what `verdict` found: new differences are added, those that are gone are struck.
///
/// # Errors
/// When it cannot be written.
pub fn write(workspace: &Workspace, suite: Name, verdict: &Verdict) -> Result<()> {
    let mut known = read(workspace, suite)?;
    for name in &verdict.gone {
        known.remove(name);
    }
    for name in &verdict.new {
        known.insert(name.clone(), UNKNOWN.to_owned());
    }
    let width = known.keys().map(String::len).max().unwrap_or(0);
    let mut text = format!(
        "# What passes on Linux and not on Baton, and why (`./baton linux judge {}`).\n",
        suite.word()
    );
    for (name, cause) in &known {
        text += &format!("{name:<width$}  {cause}\n");
    }
    let file = file(workspace, suite);
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_blanks_and_need_no_cause() {
        let known = parse("# people\n\nsed: a b   not there\nfork01\n");
        assert_eq!(known["sed: a b"], "not there");
        assert_eq!(known["fork01"], UNKNOWN);
        assert_eq!(known.len(), 2);
    }
}
