//! A machine on a leash: its console is read and written by this program, with
//! a time limit. Used by `run --test` and by every test in the emulator.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::machine::{Exit, QEMU};

/// Most console output that is kept, bytes; a guest that talks more is stopped.
const MAX_TRANSCRIPT_BYTES: usize = 16 << 20;

/// Why waiting came to an end without the text that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The machine stopped.
    Exited(Exit),
    /// The time limit passed (or the guest talked without end).
    TimedOut,
}

impl Ended {
    /// What happened, for a message.
    #[must_use]
    pub fn sentence(self, limit: Duration) -> String {
        match self {
            Self::Exited(exit) => exit.sentence(),
            Self::TimedOut => format!("the time limit of {} s passed", limit.as_secs()),
        }
    }
}

/// A running machine. Dropping it stops it.
pub struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    transcript: Vec<u8>,
    echo: bool,
    deadline: Instant,
}

impl Session {
    /// Starts `command` and lets it run for at most `limit`; with `echo`, its
    /// output also appears on standard output.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(mut command: Command, limit: Duration, echo: bool) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| {
                format!("cannot start {QEMU}; is the package qemu-system-x86 installed?")
            })?;
        let mut stdout = child.stdout.take().context("the console cannot be read")?;
        let input = child.stdin.take();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let deadline = Instant::now() + limit;
        Ok(Self { child, input, output, transcript: Vec::new(), echo, deadline })
    }

    /// Everything the machine has printed.
    #[must_use]
    pub fn transcript(&self) -> String {
        String::from_utf8_lossy(&self.transcript).replace('\r', "")
    }

    /// From now on, the machine may run for `limit`.
    pub fn limit(&mut self, limit: Duration) {
        self.deadline = Instant::now() + limit;
    }

    /// Types `line` and the return key.
    ///
    /// # Errors
    /// When the machine no longer listens.
    pub fn send_line(&mut self, line: &str) -> Result<()> {
        self.send(&format!("{line}\n"))
    }

    /// Types `text`.
    ///
    /// # Errors
    /// When the machine no longer listens.
    pub fn send(&mut self, text: &str) -> Result<()> {
        let input = self.input.as_mut().context("the console is closed")?;
        input
            .write_all(text.as_bytes())
            .and_then(|()| input.flush())
            .with_context(|| format!("the machine took no more input at `{}`", text.trim_end()))
    }

    /// Waits until `find` finds something behind `from` (an offset into the
    /// transcript); returns the offset behind it. `find` gets the text from there and
    /// says where in it the thing that was found ends.
    ///
    /// # Errors
    /// How the machine ended, if it does first.
    pub fn wait_for(
        &mut self,
        find: impl Fn(&str) -> Option<usize>,
        from: usize,
    ) -> Result<usize, Ended> {
        loop {
            let text = self.transcript();
            if let Some(end) = text.get(from..).and_then(&find) {
                return Ok(from + end);
            }
            self.pump()?;
        }
    }

    /// Waits until the machine ends by itself, showing complete lines to `watch`.
    pub fn wait_for_end(&mut self, mut watch: impl FnMut(&str)) -> Ended {
        let ended = self.wait_for_line(|line| {
            watch(line);
            false
        });
        ended.unwrap_or(Ended::TimedOut)
    }

    /// Waits until `is_last` finds a complete line to be the last one that matters (`None`), or the machine ends.
    pub fn wait_for_line(&mut self, mut is_last: impl FnMut(&str) -> bool) -> Option<Ended> {
        let mut seen = 0;
        loop {
            let ended = self.pump().err();
            let fresh = &self.transcript[seen..];
            let complete = match ended {
                Some(_) => fresh.len(),
                None => fresh.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            };
            // Only what is new: a reader that is slow stops the machine's console.
            let text = String::from_utf8_lossy(&fresh[..complete]).replace('\r', "");
            if text.lines().any(&mut is_last) || ended.is_some() {
                return ended;
            }
            seen += complete;
        }
    }

    /// Takes in the next piece of output.
    fn pump(&mut self) -> Result<(), Ended> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.output.recv_timeout(left) {
            Ok(piece) if self.transcript.len() < MAX_TRANSCRIPT_BYTES => {
                if self.echo {
                    let mut out = std::io::stdout();
                    let _ = out.write_all(&piece).and_then(|()| out.flush());
                }
                self.transcript.extend(piece);
                Ok(())
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => Err(Ended::TimedOut),
            Err(RecvTimeoutError::Disconnected) => {
                let exit = self.child.wait().map_or(Exit::Other(None), Exit::from_status);
                Err(Ended::Exited(exit))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(word: &str) -> impl Fn(&str) -> Option<usize> {
        move |text| text.find(word).map(|at| at + word.len())
    }

    fn shell(script: &str, limit_ms: u64) -> Session {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Session::start(command, Duration::from_millis(limit_ms), false).unwrap()
    }

    #[test]
    fn dialogue_goes_both_ways() {
        let mut session =
            shell("printf 'baton> '; read line; echo \"got <$line>\"; exit 33", 10_000);
        let at = session.wait_for(behind("baton> "), 0).unwrap();
        session.send_line("help").unwrap();
        let next = session.wait_for(behind("got <help>"), at).unwrap();
        assert!(next > at);
        assert_eq!(session.wait_for_end(|_| ()), Ended::Exited(Exit::Success));
    }

    #[test]
    fn a_machine_is_left_when_it_has_said_all() {
        let mut session = shell("printf 'a\\ntests done\\n'; exec sleep 60", 30_000);
        let mut lines = Vec::new();
        let ended = session.wait_for_line(|line| {
            lines.push(line.to_owned());
            line == "tests done"
        });
        assert_eq!((ended, lines.len()), (None, 2));
        let mut session = shell("echo a; exit 35", 10_000);
        assert_eq!(session.wait_for_line(|_| false), Some(Ended::Exited(Exit::Failure)));
    }

    #[test]
    fn a_machine_that_ends_early_is_reported() {
        let mut session = shell("echo something; exit 35", 10_000);
        let result = session.wait_for(behind("never"), 0);
        assert_eq!(result, Err(Ended::Exited(Exit::Failure)));
    }

    #[test]
    fn a_machine_that_hangs_is_stopped() {
        let started = Instant::now();
        let mut session = shell("echo here; exec sleep 60", 300);
        assert_eq!(session.wait_for_end(|_| ()), Ended::TimedOut);
        drop(session);
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn lines_arrive_complete_and_once() {
        let mut session = shell("printf 'a\\r\\nb'; sleep 0.1; printf 'c\\nend'; exit 0", 10_000);
        let mut lines = Vec::new();
        session.wait_for_end(|line| lines.push(line.to_owned()));
        assert_eq!(lines, ["a", "bc", "end"]);
    }
}
