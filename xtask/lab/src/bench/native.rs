//! Suite `native`: local IPC's user-level path in an ordinary process, true cycles.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::row::Row;
use crate::workspace::Workspace;

const SOURCE: &str = "bench/host/native/lipc.c";
const FLAGS: [&str; 8] = [
    "-O2",
    "-masm=intel",
    "-mno-red-zone",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fomit-frame-pointer",
    "-pthread",
    "-Wall",
];
/// Wenske 2002, 5.2 and 6: his prototype of the same on a Pentium III, cycles.
const PAPER: f64 = 12.0;

/// Compiles and runs the prototype.
///
/// # Errors
/// When it cannot be compiled, or its own check fails.
pub fn rows(workspace: &Workspace) -> Result<Vec<Row>> {
    let program = workspace.target("bench")?.join("native-lipc");
    compile(workspace, SOURCE, &FLAGS, &program)?;
    let output = Command::new(&program)
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success() && text.contains("bench done"),
        "the native prototype failed:\n{text}"
    );
    let mut rows = read(&text)?;
    rows.push(
        Row::baton("native", "native/lipc-cycles", PAPER).unit("cycles").of("paper", "recorded"),
    );
    Ok(rows)
}

/// Compiles a program for the host.
///
/// # Errors
/// The compiler's words.
pub fn compile(
    workspace: &Workspace,
    source: &str,
    flags: &[&str],
    program: &std::path::Path,
) -> Result<()> {
    let mut gcc = Command::new("gcc");
    gcc.args(flags).arg("-o").arg(program).arg(workspace.path(source));
    let output = gcc.output().context("cannot run gcc; install the package gcc")?;
    ensure!(
        output.status.success(),
        "{source} could not be compiled:\n{}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(())
}

/// `row NAME MEDIAN low=.. high=.. samples=..`
fn read(text: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("row ")) {
        let mut words = line.split(' ');
        let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse::<f64>))
        else {
            bail!("the native prototype printed `{line}`, which is no row");
        };
        let mut row = Row::baton("native", name, value).unit("cycles");
        row.method = "native process, time stamp counter, median".to_owned();
        for (key, number) in words.filter_map(|word| word.split_once('=')) {
            row = row.with(key, number);
        }
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read() {
        let rows = read("row native/lipc-cycles 9.09 low=8.77 high=9.69 samples=201\nbench done\n")
            .unwrap();
        assert_eq!((rows.len(), rows[0].value, rows[0].unit.as_str()), (1, 9.09, "cycles"));
        assert_eq!(rows[0].parameters["high"], "9.69");
        assert!(read("row native/x soon\n").is_err());
    }
}
