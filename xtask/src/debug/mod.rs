//! `debug`: the machine stopped before its first instruction, and a gdb script
//! that knows the symbols of the kernel and of every task, and shows threads by
//! task and name (`xtask/gdb/baton.py`).

mod explain;
mod script;

pub use explain::{explain, reported_system};

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::compose::Bootable;
use crate::machine::{self, Boot, Console, Options, QEMU};
use crate::workspace::Workspace;

/// Where QEMU's `-s` listens.
const REMOTE: &str = "localhost:1234";

/// Starts the stopped machine. With `gdb`, the debugger gets this terminal and
/// the console goes to a file; otherwise the console gets this terminal and the
/// debugger is started by hand in another one.
///
/// # Errors
/// When a program cannot be started.
pub fn start(
    workspace: &Workspace,
    bootable: &Bootable,
    options: &Options,
    gdb: bool,
) -> Result<()> {
    let script = write_script(workspace, bootable, "baton", REMOTE)?;
    let options = &options.at_first_places();
    let boot = Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() };
    if !gdb {
        eprintln!("The machine waits for a debugger. In another terminal, at the tree's root:");
        eprintln!("    gdb -x {}", workspace.show(&script));
        eprintln!("Leave the machine with Ctrl-A X; this terminal is its console.");
        let mut qemu = machine::command(&boot, options, Console::Terminal)?;
        qemu.args(["-s", "-S"]).status().with_context(|| format!("cannot start {QEMU}"))?;
        return Ok(());
    }
    let log = workspace.target("debug")?.join("serial.log");
    eprintln!("The console's output goes to {}.", workspace.show(&log));
    let mut qemu = machine::command(&boot, options, Console::File(&log))?;
    let mut machine = qemu
        .args(["-s", "-S"])
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {QEMU}"))?;
    let debugger = Command::new("gdb").arg("-q").arg("-x").arg(&script).status();
    let _ = machine.kill();
    let _ = machine.wait();
    debugger.context("cannot start gdb; install the package gdb")?;
    Ok(())
}

/// Writes `target/debug/NAME.gdb`, the script for gdb.
///
/// # Errors
/// When it cannot be written.
pub fn write_script(
    workspace: &Workspace,
    bootable: &Bootable,
    name: &str,
    remote: &str,
) -> Result<PathBuf> {
    let path = workspace.target("debug")?.join(format!("{name}.gdb"));
    let commands = workspace.path("xtask/gdb/baton.py");
    let text = script::text(bootable, &commands, remote);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
