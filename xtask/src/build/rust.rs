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

/// A set of bare-metal crates that are compiled with the same flags.
struct Batch {
    /// Build directory under `target/`.
    folder: &'static str,
    flags: &'static str,
    /// Which packages, and which binaries of them.
    packages: Vec<String>,
    bins: Vec<String>,
}

impl Batch {
    /// The kernel, alone.
    fn kernel() -> Self {
        Self {
            folder: "kernel",
            flags: KERNEL_FLAGS,
            packages: vec!["kernel".to_owned()],
            bins: vec!["baton-kernel".to_owned()],
        }
    }

    /// Every program of the tree; `None` if there are none.
    fn programs(workspace: &Workspace) -> Result<Option<Self>> {
        let mut batch =
            Self { folder: "user", flags: USER_FLAGS, packages: Vec::new(), bins: Vec::new() };
        for package in workspace.packages()? {
            let programs = package.guest_programs(workspace);
            if !programs.is_empty() {
                batch.packages.push(package.name);
                batch.bins.extend(programs);
            }
        }
        Ok((!batch.bins.is_empty()).then_some(batch))
    }

    /// `cargo VERB` for the batch, into `target/FOLDER`.
    fn cargo(&self, workspace: &Workspace, verb: &str, folder: &str) -> Result<Command> {
        let mut cargo = workspace.cargo();
        cargo
            .args([verb, "--release", "-Zbuild-std=core,alloc", "--target", TRIPLE])
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", self.flags)
            .env("CARGO_TARGET_DIR", workspace.target(folder)?);
        for package in &self.packages {
            cargo.args(["-p", package]);
        }
        for bin in &self.bins {
            cargo.args(["--bin", bin]);
        }
        Ok(cargo)
    }

    /// Where cargo puts its results.
    fn output(&self, workspace: &Workspace) -> Result<PathBuf> {
        Ok(workspace.target(self.folder)?.join(TRIPLE).join("release"))
    }
}

/// Whether the tree has a kernel to build.
fn has_kernel(workspace: &Workspace) -> bool {
    workspace.path("kernel/src/main.rs").is_file()
}

/// Builds the kernel.
pub fn kernel(workspace: &Workspace) -> Result<PathBuf> {
    ensure!(
        has_kernel(workspace),
        "this tree has no kernel/src/main.rs, so there is no kernel to build"
    );
    let batch = Batch::kernel();
    quietly(&mut batch.cargo(workspace, "build", batch.folder)?, "the kernel")?;
    Ok(batch.output(workspace)?.join("baton-kernel"))
}

/// Builds every Rust program and returns names and files.
pub fn programs(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>> {
    let Some(batch) = Batch::programs(workspace)? else {
        return Ok(Vec::new());
    };
    quietly(&mut batch.cargo(workspace, "build", batch.folder)?, "the programs")?;
    let dir = batch.output(workspace)?;
    Ok(batch.bins.into_iter().map(|name| (name.clone(), dir.join(name))).collect())
}

/// The commands that show clippy everything that runs on Baton, libraries
/// included, each with its title.
pub fn clippy(workspace: &Workspace) -> Result<Vec<(&'static str, Command)>> {
    let mut commands = Vec::new();
    if has_kernel(workspace) {
        let mut cargo = Batch::kernel().cargo(workspace, "clippy", "lint-kernel")?;
        cargo.arg("--lib");
        commands.push(("cargo clippy (kernel)", cargo));
    }
    if let Some(mut batch) = Batch::programs(workspace)? {
        let libraries = workspace.packages()?.into_iter().filter(|p| p.is_guest_library(workspace));
        batch.packages.extend(libraries.map(|package| package.name));
        let mut cargo = batch.cargo(workspace, "clippy", "lint-user")?;
        cargo.arg("--lib");
        commands.push(("cargo clippy (programs)", cargo));
    }
    Ok(commands)
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
        let noise = |line: &&String| line.contains("Compiling ") || line.contains("Finished ");
        let words: Vec<&str> = log.iter().filter(|line| !noise(line)).map(String::as_str).collect();
        step.line(&words.join("\n"));
    }
    match compiled {
        0 => step.vanish(),
        1 => step.done("1 crate compiled"),
        n => step.done(&format!("{n} crates compiled")),
    }
    Ok(())
}
