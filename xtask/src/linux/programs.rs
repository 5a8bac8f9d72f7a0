//! Compiles the C programs of `tests/linux/programs` with this machine's gcc.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

use super::cases::{Cases, Variant, program_file};
use crate::ui::Step;
use crate::workspace::Workspace;

/// The sources; one file is one program.
const SOURCES: &str = "tests/linux/programs";
/// What the programs share.
const SHARED: [&str; 2] = ["tests/linux/programs/probe.h", "tests/linux/programs/loopback.h"];
/// The first process of the comparison's Linux.
pub const INIT: &str = "init";
const FLAGS: [&str; 8] = [
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Wno-unused-result",
    "-pthread",
    "-s",
];

/// Compiles what is not up to date; names and files of all.
///
/// # Errors
/// The compiler's words.
pub fn build(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>> {
    let folder = workspace.target("linux/programs")?;
    let step = Step::start("programs for Linux");
    let mut wanted = vec![(INIT.to_owned(), INIT.to_owned(), Variant::Static)];
    for program in Cases::read(workspace)?.programs {
        for variant in &program.variants {
            wanted.push((program_file(&program.name, *variant), program.name.clone(), *variant));
        }
    }
    let mut files = Vec::new();
    let mut compiled = 0;
    for (name, stem, variant) in wanted {
        let source = workspace.path(SOURCES).join(format!("{stem}.c"));
        let output = folder.join(&name);
        let newest = newest(workspace, &source);
        if !output.is_file() || written(&output) < newest {
            step.say(format!("compiling {name}"));
            compile(&source, &output, variant)?;
            compiled += 1;
        }
        files.push((name, output));
    }
    match compiled {
        0 => step.vanish(),
        n => step.done(&format!("{n} compiled")),
    }
    Ok(files)
}

/// When the source of a program, or what it shares with others, was last written.
fn newest(workspace: &Workspace, source: &Path) -> SystemTime {
    let shared = SHARED.map(|header| written(&workspace.path(header)));
    shared.into_iter().fold(written(source), Ord::max)
}

/// A client of services: its name, its source, and the folder with its interface's header.
type Client = (&'static str, &'static str, &'static str);
/// With this people at the Linux prompt ask the system below.
pub const OPERATOR: Client = ("baton", "lib/l4c/linux/baton.c", HEADERS);
/// An example, of which the tests make use.
pub const EXAMPLE: Client = ("pin", "apps/own-service/linux/pin.c", "apps/ask-in-c");
/// What clients of services are made of, beside their own source.
const CARRIER: &str = "lib/l4c/linux";
const STUBS: &str = "lib/l4c/src/service.c";
const HEADERS: &str = "lib/l4c/include";

/// Compiles a client of services, if it is not up to date; its file.
///
/// # Errors
/// The compiler's words.
pub fn client(workspace: &Workspace, (name, source, header): Client) -> Result<PathBuf> {
    let output = workspace.target("linux/programs")?.join(name);
    let [source, stubs] = [source, STUBS].map(|file| workspace.path(file));
    let folders = [CARRIER, HEADERS, header].map(|folder| workspace.path(folder));
    let mut newest = written(&source).max(written(&stubs));
    for folder in &folders {
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("cannot list {}", folder.display()))?;
        newest = entries.flatten().map(|entry| written(&entry.path())).fold(newest, Ord::max);
    }
    if !output.is_file() || written(&output) < newest {
        let mut gcc = Command::new("gcc");
        gcc.args(FLAGS);
        // Behind the C library's own headers: some of ours have the same names.
        folders.iter().for_each(|folder| _ = gcc.arg("-idirafter").arg(folder));
        gcc.arg(&source).arg(folders[0].join("service_socket.c")).arg(stubs);
        finish(gcc.arg("-o").arg(&output), &source)?;
    }
    Ok(output)
}

/// Compiles the program `name`, statically linked, to `output` unless that is up to date.
///
/// # Errors
/// The compiler's words.
pub fn compile_static(workspace: &Workspace, name: &str, output: &Path) -> Result<()> {
    let source = workspace.path(SOURCES).join(format!("{name}.c"));
    let newest = newest(workspace, &source);
    if output.is_file() && written(output) >= newest {
        return Ok(());
    }
    compile(&source, output, Variant::Static)
}

fn compile(source: &Path, output: &Path, variant: Variant) -> Result<()> {
    let mut gcc = Command::new("gcc");
    finish(gcc.args(FLAGS).args(variant.flags()).arg("-o").arg(output).arg(source), source)
}

fn finish(gcc: &mut Command, source: &Path) -> Result<()> {
    let done = gcc.output().context("cannot run gcc; install the package gcc")?;
    ensure!(
        done.status.success(),
        "{} could not be compiled:\n{}",
        source.display(),
        String::from_utf8_lossy(&done.stderr).trim_end()
    );
    Ok(())
}

fn written(path: &Path) -> SystemTime {
    path.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
