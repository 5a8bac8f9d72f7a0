//! `run --exec`: one command in the guest's shell; its output here, its status as
//! this program's own.
//!
//! The Unix server says when the command begins and how it ended; what is on the
//! console before, and the server's own lines, go to the error output.

use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::session::Session;

/// What every line of the server begins with.
const SERVER: &str = "unix: ";
const BEGINS: &str = "unix: the command begins";
const EXITED: &str = "unix: the command exited with status ";

/// Reads the console of one command.
#[derive(Debug, Default)]
struct Reader {
    begun: bool,
    status: Option<u8>,
}

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Output,
    Errors,
    Nowhere,
}

impl Reader {
    fn line(&mut self, line: &str) -> To {
        if line == BEGINS {
            self.begun = true;
            return To::Nowhere;
        }
        if let Some(status) = line.strip_prefix(EXITED) {
            self.status = status.trim().parse().ok();
            return To::Nowhere;
        }
        if self.begun && self.status.is_none() && !line.starts_with(SERVER) {
            To::Output
        } else {
            To::Errors
        }
    }
}

/// Runs the machine that runs the command.
///
/// # Errors
/// A sentence when the machine ends without saying how the command ended.
pub fn run(machine: Command, limit: Duration) -> Result<ExitCode> {
    let mut reader = Reader::default();
    let ended =
        Session::start(machine, limit, false)?.wait_for_end(|line| match reader.line(line) {
            To::Output => println!("{line}"),
            To::Errors => eprintln!("{line}"),
            To::Nowhere => {}
        });
    match reader.status {
        Some(status) => Ok(ExitCode::from(status)),
        None => bail!("the command did not come to its end: {}", ended.sentence(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_go_where_they_belong() {
        let mut reader = Reader::default();
        assert_eq!(reader.line("kernel: booted"), To::Errors);
        assert_eq!(reader.line("unix: the command begins"), To::Nowhere);
        assert_eq!(reader.line("hello"), To::Output);
        assert_eq!(reader.line("unix: sh: no such call"), To::Errors);
        assert_eq!(reader.line("unix: the command exited with status 3"), To::Nowhere);
        assert_eq!(reader.line("root: the machine stops"), To::Errors);
        assert_eq!(reader.status, Some(3));
    }

    #[test]
    fn the_status_is_the_commands() {
        let limit = Duration::from_secs(10);
        let script =
            "echo unix: the command begins; echo unix: the command exited with status 9; exit 35";
        assert_eq!(run(shell(script), limit).unwrap(), ExitCode::from(9));
        let error = run(shell("echo nothing; exit 35"), limit).unwrap_err().to_string();
        assert!(error.contains("did not come to its end: the guest reported failure"), "{error}");
    }
}
