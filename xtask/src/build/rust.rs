//! Cargo for bare metal: kernel and Rust programs, with core and alloc compiled
//! from source.

use std::io::{BufRead, BufReader, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::ui::Step;
use crate::workspace::Workspace;

/// The target triple of everything that runs on Baton.
const TRIPLE: &str = "x86_64-unknown-none";
/// Flags of every bare-metal crate: plain ld, fixed addresses.
const USER_FLAGS: &str = "-Clinker=ld -Clinker-flavor=ld -Crelocation-model=static";
/// The kernel lies in the top 2 GiB.
const KERNEL_FLAGS: &str =
    "-Clinker=ld -Clinker-flavor=ld -Crelocation-model=static -Ccode-model=kernel";

/// Builds the kernel.
pub fn kernel(workspace: &Workspace) -> Result<PathBuf> {
    ensure!(
        workspace.path("kernel/src/main.rs").is_file(),
        "this tree has no kernel/src/main.rs, so there is no kernel to build"
    );
    let args = ["-p", "kernel", "--bin", "baton-kernel"].map(str::to_owned);
    bare_metal(workspace, "kernel", KERNEL_FLAGS, &args)?;
    Ok(workspace.target("kernel")?.join(TRIPLE).join("release/baton-kernel"))
}

/// Builds every Rust program and returns names and files.
pub fn programs(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>> {
    let mut args = Vec::new();
    let mut names = Vec::new();
    for package in workspace.packages()? {
        let programs = package.guest_programs(workspace);
        if programs.is_empty() {
            continue;
        }
        args.extend(["-p".to_owned(), package.name.clone()]);
        for name in programs {
            args.extend(["--bin".to_owned(), name.clone()]);
            names.push(name);
        }
    }
    if names.is_empty() {
        return Ok(Vec::new());
    }
    bare_metal(workspace, "user", USER_FLAGS, &args)?;
    let dir = workspace.target("user")?.join(TRIPLE).join("release");
    Ok(names.into_iter().map(|name| (name.clone(), dir.join(name))).collect())
}

/// One cargo run into `target/FOLDER`.
fn bare_metal(workspace: &Workspace, folder: &str, flags: &str, args: &[String]) -> Result<()> {
    let mut cargo = workspace.cargo();
    cargo
        .args(["build", "--release", "-Zbuild-std=core,alloc", "--target", TRIPLE])
        .args(args)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", workspace.target(folder)?);
    quietly(&mut cargo, folder)
}

/// Runs cargo with a progress line instead of its output; shows the output when
/// it fails, and its warnings in any case.
fn quietly(cargo: &mut Command, what: &str) -> Result<()> {
    let step = Step::start(format!("building {what}"));
    if std::io::stderr().is_terminal() {
        cargo.arg("--color=always");
    }
    let mut child = cargo
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run cargo; is it installed?")?;
    let stderr = child.stderr.take().context("cargo's messages cannot be read")?;
    let mut log = Vec::new();
    let mut compiled = 0;
    for line in BufReader::new(stderr).lines() {
        let line = line.context("cargo's messages cannot be read")?;
        if line.contains("Compiling ") {
            compiled += 1;
            step.say(line.trim().to_owned());
        }
        log.push(line);
    }
    let status = child.wait().context("cannot wait for cargo")?;
    if !status.success() {
        step.done("FAILED");
        bail!("the build of {what} failed:\n{}", log.join("\n"));
    }
    if log.iter().any(|line| line.contains("warning")) {
        step.line(&log.join("\n"));
    }
    match compiled {
        0 => step.vanish(),
        1 => step.done("1 crate compiled"),
        n => step.done(&format!("{n} crates compiled")),
    }
    Ok(())
}
