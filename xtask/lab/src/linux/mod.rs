//! Ordinary Linux programs on Baton, seen from the host: the comparison with Linux,
//! which system calls a program may make, and the first file system as a file.

pub mod check;
pub mod compare;
mod guest;
pub mod judge;
mod machines;
mod verdict;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

pub use xtask::linux::{Kind, Wishes, cases, cpio, initramfs, packages, programs};

use crate::ui;
use crate::workspace::Workspace;

/// `linux`.
#[derive(Args)]
pub struct Options {
    #[command(subcommand)]
    verb: Verb,
}

/// What can be done about Linux programs.
#[derive(Subcommand)]
enum Verb {
    /// Run the same programs on Linux and on Baton and compare
    Compare(compare::Options),
    /// Run suites that others wrote on Linux and on Baton and compare
    Judge(judge::Options),
    /// Say which system calls a program may make that are not supported
    Check(check::Options),
    /// Build the first file system
    Archive(ArchiveOptions),
}

/// `linux archive`.
#[derive(Args)]
struct ArchiveOptions {
    /// With what the tests need
    #[arg(long)]
    test: bool,
    /// Directory to copy to /share
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,
    /// Name what is in it
    #[arg(long)]
    list: bool,
    /// Where it goes
    #[arg(short, long, value_name = "FILE", default_value = "initramfs.cpio")]
    output: PathBuf,
}

/// Does what the verb says; whether it came out well.
///
/// # Errors
/// A sentence from whatever failed.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    match &options.verb {
        Verb::Compare(options) => compare::run(workspace, options),
        Verb::Judge(options) => judge::run(workspace, options),
        Verb::Check(options) => check::run(workspace, options),
        Verb::Archive(options) => archive(workspace, options).map(|()| true),
    }
}

/// `linux archive`.
fn archive(workspace: &Workspace, options: &ArchiveOptions) -> Result<()> {
    let wishes = Wishes { share: options.share.clone(), ..Wishes::default() };
    let kind = if options.test { Kind::Test } else { Kind::Small };
    let bytes = wishes.archive(workspace, kind)?;
    let entries = cpio::list(&bytes)?;
    if options.list {
        entries.iter().for_each(|entry| println!("{}", entry.line()));
        return Ok(());
    }
    std::fs::write(&options.output, &bytes)
        .with_context(|| format!("cannot write {}", options.output.display()))?;
    let size = ui::bytes(bytes.len() as u64);
    println!("{}: {} files, {size}", options.output.display(), entries.len());
    Ok(())
}
