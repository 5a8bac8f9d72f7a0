//! A hand inside the machine under test: gdb before its first instruction, and the
//! emulator's own monitor while it runs.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::picture;
use super::spec::{CompiledStep, Run, Shown};
use crate::workspace::Workspace;

/// How long a socket may take to appear, and an answer to come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What gdb says when everything is changed and only the machine's going on is left.
const CHANGED: &str = "The machine is changed.";
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
        let asks = |step: &CompiledStep| {
            matches!(step, CompiledStep::Monitor(_) | CompiledStep::Screen(..))
        };
        if run.steps()?.iter().any(asks) {
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
        let file = path.with_extension("gdb-script");
        std::fs::write(&file, script(path, commands)).context("gdb's script has no place")?;
        let mut gdb = Command::new("gdb");
        gdb.args(["-q", "-nx", "-batch", "-x"]).arg(&file).args(["-ex", "detach"]).arg(kernel);
        let done = gdb.stdin(Stdio::null()).output();
        changed(&done.context("cannot start gdb; install the package gdb")?)
    }

    /// Gives `line` to the emulator's monitor, and waits until it has done it. A machine that
    /// ends by that takes the monitor with it: its console tells how it ended.
    ///
    /// # Errors
    /// When the monitor does not answer.
    pub fn monitor(&self, line: &str) -> Result<()> {
        let path = self.monitor.as_ref().context("this machine was started without a monitor")?;
        wait_for(path)?;
        let mut stream = connect(path).context("the monitor takes nobody")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        ensure!(until_prompt(&mut stream)?, "the monitor went away");
        stream.write_all(format!("{line}\n").as_bytes()).context("the monitor takes no command")?;
        until_prompt(&mut stream).map(drop)
    }
}

impl Tamper {
    /// Waits until the screen shows `text`: what it shows instead after `limit`.
    ///
    /// # Errors
    /// When the monitor does not answer.
    pub fn wait_for_screen(
        &self,
        text: &str,
        by: Shown,
        limit: Duration,
    ) -> Result<Option<String>> {
        let path = self.monitor.as_ref().context("this machine was started without a monitor")?;
        let file = path.with_extension("screen");
        let started = Instant::now();
        loop {
            let command = match by {
                Shown::Text => format!("pmemsave {TEXT_MODE:#x} {TEXT_BYTES}"),
                Shown::Pixels => "screendump".to_owned(),
            };
            self.monitor(&format!("{command} \"{}\"", file.display()))?;
            let content = std::fs::read(&file).unwrap_or_default();
            let shown = match by {
                Shown::Text => rows(&content),
                // Between two modes it may have any size.
                Shown::Pixels => picture::rows(&content).unwrap_or_else(|why| format!("({why})")),
            };
            if shown.contains(text) {
                return Ok(None);
            }
            if started.elapsed() > limit {
                return Ok(Some(shown));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// A PC's text mode: where it is, and 25 rows of 80 characters, each with its colours.
const TEXT_MODE: u64 = 0xB_8000;
const ROW_BYTES: usize = 160;
const TEXT_BYTES: usize = 25 * ROW_BYTES;

/// The rows of the screen, without blanks behind them.
fn rows(memory: &[u8]) -> String {
    let row = |cells: &[u8]| {
        let text: String = cells.iter().step_by(2).map(|byte| char::from(*byte)).collect();
        format!("{}\n", text.trim_end_matches([' ', '\0']))
    };
    memory.chunks(ROW_BYTES).map(row).collect()
}

/// What gdb does before it lets go of the machine that listens at `socket`: unlike commands
/// on its command line, those of a script end with the first that fails.
fn script(socket: &Path, commands: &[String]) -> String {
    format!(
        "set architecture i386:x86-64\ntarget remote {}\n{}\ndelete\necho {CHANGED}\\n\n",
        socket.display(),
        commands.join("\n")
    )
}

/// Whether gdb got through its script. How it let go of the machine afterwards does not
/// count: a machine that ends at once takes the connection away while gdb still thanks for
/// the answer, and one that does not go on says nothing on its console.
fn changed(done: &Output) -> Result<()> {
    let said = String::from_utf8_lossy(&done.stdout);
    let through = said.lines().any(|line| line == CHANGED);
    ensure!(through, "gdb failed: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
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

/// A connection to the socket at `path`: there is a moment between its name and its server.
fn connect(path: &Path) -> std::io::Result<UnixStream> {
    let started = Instant::now();
    loop {
        match UnixStream::connect(path) {
            Err(error)
                if error.kind() == ErrorKind::ConnectionRefused && started.elapsed() < PATIENCE =>
            {
                std::thread::sleep(LOOK_EVERY);
            }
            other => return other,
        }
    }
}

/// Reads until the monitor's prompt; `false` if it went away instead.
fn until_prompt(stream: &mut impl Read) -> Result<bool> {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(PROMPT) {
        let count = stream.read(&mut byte).context("the monitor does not answer")?;
        if count == 0 {
            return Ok(false);
        }
        seen.extend(byte);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_without_its_server_yet_is_waited_for() {
        let path = std::env::temp_dir().join(format!("baton-tamper-{}", std::process::id()));
        drop(UnixListener::bind(&path).unwrap());
        let later = path.clone();
        let server = std::thread::spawn(move || {
            std::thread::sleep(LOOK_EVERY * 3);
            let ready = later.with_extension("ready");
            let listener = UnixListener::bind(&ready).unwrap();
            std::fs::rename(&ready, &later).unwrap();
            listener.accept().map(drop)
        });
        assert!(connect(&path).is_ok());
        server.join().unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
    }

    /// What a gdb gives that prints `said` and ends with `status`.
    fn gdb(said: &str, status: u8) -> Output {
        let script = format!("echo '{said}'; echo 'Target disconnected.' >&2; exit {status}");
        Command::new("sh").args(["-c", &script]).output().unwrap()
    }

    #[test]
    fn a_machine_that_ends_while_gdb_lets_go_is_changed() {
        assert!(changed(&gdb(&format!("Breakpoint 1\n{CHANGED}"), 1)).is_ok());
        assert!(changed(&gdb(CHANGED, 0)).is_ok());
    }

    #[test]
    fn a_script_that_failed_is_a_failure_whatever_gdb_ends_with() {
        for status in [0, 1] {
            let why = changed(&gdb("Breakpoint 1", status)).unwrap_err().to_string();
            assert_eq!(why, "gdb failed: Target disconnected.\n");
        }
    }

    #[test]
    fn a_script_says_so_behind_the_last_change() {
        let text = script(Path::new("s"), &["continue".to_owned(), "set $rsp = 8".to_owned()]);
        let end = format!("target remote s\ncontinue\nset $rsp = 8\ndelete\necho {CHANGED}\\n\n");
        assert!(text.ends_with(&end), "{text}");
    }

    #[test]
    fn an_answer_ends_with_the_prompt() {
        assert!(until_prompt(&mut &b"nmi\r\n(qemu) "[..]).unwrap());
        assert!(!until_prompt(&mut &b"nmi\r\n"[..]).unwrap());
    }
}
