//! `linux check`: which system calls a program may make that the Unix server does
//! not support: found in its code and its libraries' (`reach`), or, with --trace,
//! by running it on this machine.

mod code;
mod object;
mod reach;
pub mod table;
mod trace;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::workspace::Workspace;
use table::{Support, Table};

/// Places with unknown numbers that are named.
const SHOWN_PLACES: usize = 5;

/// What to check.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The program, a file
    pub program: PathBuf,
    /// Its arguments, with --trace
    #[arg(trailing_var_arg = true)]
    pub args: Vec<String>,
    /// Run it here and see which calls it makes (needs strace)
    #[arg(long)]
    pub trace: bool,
    /// Name the supported calls, too
    #[arg(long)]
    pub all: bool,
}

/// Checks and prints; whether everything is supported.
///
/// # Errors
/// When the program cannot be read or run.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let text = std::fs::read_to_string(workspace.path(table::FILE))
        .with_context(|| format!("cannot read {}", table::FILE))?;
    let table = Table::parse(&text)?;
    let name = options.program.display();
    let numbers = if options.trace {
        let numbers = trace::run(workspace, &options.program, &options.args, &table)?;
        println!("{name} made {} different system calls on this machine.", numbers.len());
        numbers
    } else {
        let reached = reach::follow(&options.program)?;
        println!(
            "{name} may make {} different system calls (read: {}).",
            reached.numbers.len(),
            reached.files.join(", ")
        );
        for (file, at) in reached.unknown.iter().take(SHOWN_PLACES) {
            println!("  The number of a call at {at:#x} in {file} is computed as it runs.");
        }
        if let Some(more @ 1..) = reached.unknown.len().checked_sub(SHOWN_PLACES) {
            println!("  So it is at {more} places more; --trace shows what comes of it.");
        }
        reached.numbers
    };
    Ok(report(&table, &numbers, options.all))
}

/// Prints by kind of support; whether nothing is missing.
fn report(table: &Table, numbers: &BTreeSet<u32>, all: bool) -> bool {
    let mut missing = 0;
    for (support, title) in [
        (Support::None, "Not supported (ENOSYS):"),
        (Support::Partial, "Supported in part:"),
        (Support::Full, "Supported:"),
    ] {
        let lines = lines(table, numbers, support);
        if support == Support::None {
            missing = lines.len();
        }
        if !lines.is_empty() && (all || support != Support::Full) {
            println!("{title}");
            lines.iter().for_each(|line| println!("  {line}"));
        }
    }
    if missing == 0 {
        println!("Every call is supported, at least in part.");
    }
    missing == 0
}

/// Name and remark of each call with that support; unknown numbers have none.
fn lines(table: &Table, numbers: &BTreeSet<u32>, support: Support) -> Vec<String> {
    let line = |number: &u32| match table.get(*number) {
        Some(call) if call.support == support => {
            let remark =
                if call.remark.is_empty() { String::new() } else { format!(": {}", call.remark) };
            Some(format!("{} ({number}){remark}", call.name))
        }
        None if support == Support::None => {
            Some(format!("call {number}, which Linux has not either"))
        }
        _ => None,
    };
    numbers.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests;
