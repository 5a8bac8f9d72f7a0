//! The whole command line: the verbs that build and boot, which `xtask` knows too, and
//! those that only this half has.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use xtask::cli::NAME;

use crate::ui;
use crate::workspace::Workspace;
use crate::{bench, doc, fuzz, idl, lint, linux, manual, new, sdk, test};

/// Said below the list of verbs.
const AFTER: &str = "\
Each verb explains its options: ./baton VERB --help
Missing tools are installed from Debian's packages; it says so before it does.
The manual page is xtask/help/baton.1: man -l xtask/help/baton.1";

/// The command line.
#[derive(Parser)]
#[command(name = NAME, bin_name = NAME, after_help = AFTER)]
#[command(about = "Builds, boots, tests and measures Baton, an L4 X.2 microkernel system.")]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// What can be done.
#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one in the life of a program")]
enum Verb {
    #[command(flatten)]
    Front(xtask::cli::Verb),
    /// Run the tests: on the host, in the emulator, whole systems
    #[command(display_order = 2)]
    Test(test::Options),
    /// Measure: suites, reports, the gate, instruction traces
    #[command(display_order = 3)]
    Bench(bench::Options),
    /// Linux programs: compare with Linux, check, build the file system
    #[command(display_order = 4)]
    Linux(linux::Options),
    /// Hostile tasks against the kernel; servers killed; parsers fuzzed
    #[command(display_order = 5)]
    Fuzz(fuzz::Options),
    /// Begin a program of your own, with a system that starts it
    #[command(display_order = 9)]
    New(new::Options),
    /// Write the documents as a book, with pages on all libraries
    #[command(display_order = 9)]
    Doc(doc::Options),
    /// Write a folder in which systems are built without this tree
    #[command(display_order = 9)]
    Sdk(sdk::Options),
    /// Check the house rules: format, clippy, unsafe, lengths, help
    #[command(display_order = 9)]
    Lint(lint::Options),
    /// Show the stubs or the messages of interfaces in WIT
    #[command(display_order = 10)]
    Idl(idl::Options),
    /// Print the completion of a shell: eval "$(./baton completion bash)"
    #[command(display_order = 11)]
    Completion(Completion),
}

/// `completion`. The launcher prints the file that is checked in.
#[derive(Args)]
struct Completion {
    /// Which shell
    shell: Shell,
}

/// Reads the command line and does what it says.
///
/// # Errors
/// One sentence (or chain of causes) for the person at the terminal.
pub fn run() -> Result<ExitCode> {
    let verb = Cli::try_parse().unwrap_or_else(|why| ui::refuse(&why)).verb;
    let workspace = Workspace::find()?;
    let good = match verb {
        Verb::Front(verb) => return verb.run(&workspace),
        Verb::Idl(options) => idl::run(&workspace, &options)?,
        Verb::Test(options) => test::run(&workspace, &options)?,
        Verb::Bench(options) => bench::run(&workspace, &options)?,
        Verb::Linux(options) => linux::run(&workspace, &options)?,
        Verb::Fuzz(options) => fuzz::run(&workspace, &options)?,
        Verb::New(options) => new::run(&workspace, &options)?,
        Verb::Doc(options) => doc::run(&workspace, &options)?,
        Verb::Sdk(options) => sdk::run(&workspace, &options)?,
        Verb::Lint(options) => lint::run(&workspace, &options)?,
        Verb::Completion(wanted) => {
            manual::completion(wanted.shell);
            true
        }
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
