//! A hand inside the machine under test: gdb before its first instruction, and the
//! emulator's own monitor while it runs.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::spec::{CompiledStep, Run};
use crate::workspace::Workspace;

/// How long a socket may take to appear, and an answer to come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What the emulator's monitor ends its answers with.
const PROMPT: &[u8] = b"(qemu) ";

/// Where the machine listens, if a run asks for it.
#[derive(Default)]
pub struct Tamper {
    debugger: Option<PathBuf>,
    monitor: Option<PathBuf>,
}

impl Tamper {
    /// Adds to `command` what `run` needs.
    ///
    /// # Errors
    /// When the sockets have no place.
    pub fn prepare(workspace: &Workspace, run: &Run, command: &mut Command) -> Result<Self> {
        let folder = workspace.target("tests")?;
        let socket = |kind: &str| {
            let path = folder.join(format!("{}.{kind}", run.name));
            let _ = std::fs::remove_file(&path);
            path
        };
        let mut tamper = Self::default();
        if !run.tamper.is_empty() {
            let path = socket("gdb");
            command.args(["-S", "-gdb"]).arg(listen(&path));
            tamper.debugger = Some(path);
        }
        if run.steps()?.iter().any(|step| matches!(step, CompiledStep::Monitor(_))) {
            let path = socket("monitor");
            command.arg("-monitor").arg(listen(&path));
            tamper.monitor = Some(path);
        }
        Ok(tamper)
    }

    /// Gives `commands` to a debugger that knows `kernel`; then the machine runs on.
    ///
    /// # Errors
    /// When gdb cannot be started or fails.
    pub fn debug(&self, kernel: &Path, commands: &[String]) -> Result<()> {
        let Some(path) = &self.debugger else { return Ok(()) };
        wait_for(path)?;
        let mut gdb = Command::new("gdb");
        gdb.args(["-q", "-nx", "-batch", "-ex", "set architecture i386:x86-64"]);
        gdb.arg("-ex").arg(format!("target remote {}", path.display()));
        for command in commands {
            gdb.args(["-ex", command]);
        }
        let done =
            gdb.args(["-ex", "delete", "-ex", "detach"]).arg(kernel).stdin(Stdio::null()).output();
        let done = done.context("cannot start gdb; install the package gdb")?;
        ensure!(done.status.success(), "gdb failed: {}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// Gives `line` to the emulator's monitor, and waits until it has done it.
    ///
    /// # Errors
    /// When the monitor does not answer.
    pub fn monitor(&self, line: &str) -> Result<()> {
        let path = self.monitor.as_ref().context("this machine was started without a monitor")?;
        wait_for(path)?;
        let mut stream = UnixStream::connect(path).context("the monitor takes nobody")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        until_prompt(&mut stream)?;
        stream.write_all(format!("{line}\n").as_bytes()).context("the monitor takes no command")?;
        until_prompt(&mut stream)
    }
}

/// The emulator's name for a socket that it makes.
fn listen(path: &Path) -> String {
    format!("unix:{},server=on,wait=off", path.display())
}

fn wait_for(path: &Path) -> Result<()> {
    let started = Instant::now();
    while !path.exists() {
        if started.elapsed() > PATIENCE {
            bail!("the emulator did not make {}", path.display());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn until_prompt(stream: &mut impl Read) -> Result<()> {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(PROMPT) {
        let count = stream.read(&mut byte).context("the monitor does not answer")?;
        ensure!(count == 1, "the monitor went away");
        seen.extend(byte);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_the_prompt() {
        assert!(until_prompt(&mut &b"nmi\r\n(qemu) "[..]).is_ok());
        assert!(until_prompt(&mut &b"nmi\r\n"[..]).is_err());
    }
}
