//! Reads `docs/linux-calls.txt`: every system call of x86-64, and what the Unix
//! server makes of it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// The table, relative to the tree's root.
pub const FILE: &str = "docs/linux-calls.txt";

/// How far a call is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Support {
    /// As in Linux.
    Full,
    /// In parts.
    Partial,
    /// Not at all.
    None,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// How far it is supported.
    pub support: Support,
    /// What else is to be said.
    pub remark: String,
}

/// The calls by number.
#[derive(Clone, Debug, Default)]
pub struct Table {
    calls: BTreeMap<u32, Call>,
}

impl Table {
    /// Parses the text.
    ///
    /// # Errors
    /// `FILE:LINE: sentence` for the first mistake.
    pub fn parse(text: &str) -> Result<Self> {
        let mut table = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (number, call) = parse_line(line)
                .with_context(|| format!("{FILE}:{}: `{line}` is no call", index + 1))?;
            ensure!(
                table.calls.insert(number, call).is_none(),
                "{FILE}:{}: call {number} is there twice",
                index + 1
            );
        }
        Ok(table)
    }

    /// The call with this number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Call> {
        self.calls.get(&number)
    }

    /// The number of the call with this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        self.calls.iter().find(|(_, call)| call.name == name).map(|(number, _)| *number)
    }
}

/// `NUMBER NAME full|partial|none [REMARK]`
fn parse_line(line: &str) -> Result<(u32, Call)> {
    let mut words = line.split_whitespace();
    let number = words.next().unwrap_or_default();
    let number = number.parse().with_context(|| format!("`{number}` is no number"))?;
    let name = words.next().context("it has no name")?.to_owned();
    let support = match words.next() {
        Some("full") => Support::Full,
        Some("partial") => Support::Partial,
        Some("none") => Support::None,
        other => bail!("expected full, partial or none, not `{}`", other.unwrap_or_default()),
    };
    let remark = words.collect::<Vec<_>>().join(" ");
    Ok((number, Call { name, support, remark }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_calls() {
        let text = "# a remark\n\n0    read  full\n1 write partial  not to  tapes\n";
        let table = Table::parse(text).unwrap();
        let write =
            Call { name: "write".into(), support: Support::Partial, remark: "not to tapes".into() };
        assert_eq!(table.get(1), Some(&write));
        assert_eq!((table.number("read"), table.get(2)), (Some(0), None));
    }

    #[test]
    fn mistakes_are_named_with_the_line() {
        let refused = |text: &str| format!("{:#}", Table::parse(text).unwrap_err());
        assert!(refused("0 read full\n0 write full\n").contains("txt:2: call 0 is there twice"));
        assert!(refused("\nx read full\n").contains("txt:2: `x read full` is no call: `x` is no"));
        assert!(refused("0 read maybe\n").contains("expected full, partial or none"));
    }

    #[test]
    fn the_trees_table_is_sound() {
        let text = include_str!("../../../../../docs/linux-calls.txt");
        let table = Table::parse(text).unwrap();
        assert_eq!(table.number("read"), Some(0));
        assert_eq!(table.number("statx"), Some(332));
        assert!(table.calls.len() >= 360);
    }
}
