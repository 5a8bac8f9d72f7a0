//! Runs a program under strace on this machine and reads which calls it made.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::table::Table;
use crate::workspace::Workspace;

/// The numbers of the calls that `program` makes.
///
/// # Errors
/// When strace is not there, or has nothing to say.
pub fn run(
    workspace: &Workspace,
    program: &Path,
    args: &[String],
    table: &Table,
) -> Result<BTreeSet<u32>> {
    let log = workspace.target("linux")?.join("trace.log");
    Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .arg(program)
        .args(args)
        .status()
        .context("cannot run strace; install the package strace")?;
    let text = std::fs::read(&log).context("strace has left no log")?;
    Ok(read(&String::from_utf8_lossy(&text), table))
}

/// `PID NAME(ARGUMENTS) = RESULT`, one call a line.
fn read(log: &str, table: &Table) -> BTreeSet<u32> {
    let names = log.lines().filter_map(|line| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let name = &rest[..rest.find('(')?];
        name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_').then_some(name)
    });
    names.filter_map(|name| table.number(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_from_the_log() {
        let table = Table::parse("0 read full\n1 write full\n59 execve none\n").unwrap();
        let log = "17 execve(\"/bin/x\", [\"x\"], 0x7f /* 3 vars */) = 0\n17 read(3, \"(\", 5) = 1\n\
                   17 --- SIGCHLD {si_signo=SIGCHLD} ---\n17 <... read resumed>) = 0\n17 +++ exited with 0 +++\n";
        assert_eq!(read(log, &table), BTreeSet::from([0, 59]));
    }
}
