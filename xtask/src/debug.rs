//! `debug`: the machine stopped before its first instruction, and a gdb script
//! that knows the symbols of the kernel and of every program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::build::Programs;
use crate::compose::Bootable;
use crate::machine::{self, Boot, Console, Options, QEMU};
use crate::workspace::Workspace;

/// Starts the stopped machine. With `gdb`, the debugger gets this terminal and
/// the console goes to a file; otherwise the console gets this terminal and the
/// debugger is started by hand in another one.
///
/// # Errors
/// When a program cannot be started.
pub fn start(
    workspace: &Workspace,
    bootable: &Bootable,
    programs: &Programs,
    options: &Options,
    gdb: bool,
) -> Result<()> {
    let script = write_script(workspace, bootable, programs)?;
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

/// Writes the script for gdb.
fn write_script(
    workspace: &Workspace,
    bootable: &Bootable,
    programs: &Programs,
) -> Result<PathBuf> {
    let path = workspace.target("debug")?.join("baton.gdb");
    let text = script(&bootable.kernel, &bootable.servers, programs.files());
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The script: kernel and servers at once, tasks on demand (they share one
/// virtual address, so only one can be looked at at a time).
fn script<'a>(
    kernel: &Path,
    servers: &[PathBuf],
    tasks: impl Iterator<Item = (&'a str, &'a Path)>,
) -> String {
    let mut text =
        String::from("set pagination off\nset confirm off\nset architecture i386:x86-64\n");
    let _ = writeln!(text, "file {}", kernel.display());
    for server in servers {
        let _ = writeln!(text, "add-symbol-file {}", server.display());
    }
    let mut names = Vec::new();
    for (name, file) in tasks {
        if servers.iter().any(|server| server == file) {
            continue;
        }
        let command = format!("task-{name}");
        let _ = writeln!(text, "define {command}\nadd-symbol-file {}\nend", file.display());
        let _ = writeln!(text, "document {command}\nLoad the symbols of {name}.\nend");
        names.push(command);
    }
    text.push_str("target remote localhost:1234\n");
    if !names.is_empty() {
        let _ = writeln!(text, "echo Symbols of tasks: type one of {}.\\n", names.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_loads_servers_at_once_and_tasks_on_demand() {
        let servers = [PathBuf::from("t/root")];
        let tasks = [("root", Path::new("t/root")), ("serial", Path::new("t/serial"))];
        let text = script(Path::new("t/kernel"), &servers, tasks.into_iter());
        assert!(text.contains("\nfile t/kernel\n"));
        assert!(text.contains("\nadd-symbol-file t/root\n"));
        assert!(text.contains("define task-serial\nadd-symbol-file t/serial\nend\n"));
        assert!(!text.contains("define task-root"));
        assert!(text.contains("target remote localhost:1234"));
    }
}
