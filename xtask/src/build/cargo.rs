//! Runs cargo with a progress line, and reads what it says.

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::ui::Step;

/// What cargo said.
pub struct Log {
    /// Whether all is compiled.
    pub success: bool,
    lines: Vec<String>,
    /// Programs that are up to date now.
    pub executables: Vec<Executable>,
}

/// A finished program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Its target's name; tests of two packages may have the same.
    pub name: String,
    /// Its root file.
    pub source: PathBuf,
    /// The program.
    pub file: PathBuf,
}

impl Log {
    /// What the compiler said of the code.
    pub fn words(&self) -> String {
        let noise = |line: &&String| is_noise(&console::strip_ansi_codes(line));
        let words: Vec<&str> =
            self.lines.iter().filter(|line| !noise(line)).map(String::as_str).collect();
        words.join("\n")
    }
}

/// Whether a line of cargo's, without colours, is about a crate that it begins to compile.
fn is_compiling(line: &str) -> bool {
    line.contains("Compiling ")
}

/// Whether it says nothing about the code.
fn is_noise(line: &str) -> bool {
    is_compiling(line) || line.contains("Finished ")
}

/// Runs cargo with a progress line instead of its output, and shows its warnings.
///
/// # Errors
/// When it cannot be run.
pub fn run(cargo: &mut Command, what: &str) -> Result<Log> {
    let step = Step::start(format!("building {what}"));
    if std::io::stderr().is_terminal() {
        cargo.arg("--color=always");
    }
    let mut child = cargo
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run cargo; is it installed?")?;
    let stdout = child.stdout.take().context("cargo's messages cannot be read")?;
    let stderr = child.stderr.take().context("cargo's messages cannot be read")?;
    let messages = std::thread::spawn(move || executables(stdout));
    let mut lines = Vec::new();
    let mut compiled = 0;
    for line in BufReader::new(stderr).lines() {
        let line = line.context("cargo's messages cannot be read")?;
        // On a terminal it has colours, and one of them ends behind the word.
        let plain = console::strip_ansi_codes(&line);
        if is_compiling(&plain) {
            compiled += 1;
            step.say(plain.trim().to_owned());
        }
        lines.push(line);
    }
    let success = child.wait().context("cannot wait for cargo")?.success();
    let executables = messages.join().unwrap_or_default();
    let log = Log { success, lines, executables };
    if success && log.lines.iter().any(|line| line.contains("warning")) {
        step.line(&log.words());
    }
    match compiled {
        _ if !success => step.done("FAILED"),
        0 => step.vanish(),
        1 => step.done("1 crate compiled"),
        n => step.done(&format!("{n} crates compiled")),
    }
    Ok(log)
}

/// The programs that cargo names as finished.
fn executables(messages: impl Read) -> Vec<Executable> {
    let mut found = Vec::new();
    for line in BufReader::new(messages).lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Message>(&line) else { continue };
        if let (Some(target), Some(file)) = (message.target, message.executable) {
            found.push(Executable { name: target.name, source: target.src_path, file });
        }
    }
    found
}

/// A line of cargo's JSON output; of most kinds, nothing is of interest.
#[derive(Deserialize)]
struct Message {
    target: Option<Named>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    src_path: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_is_read_without_its_colours() {
        let coloured = "\x1B[0m\x1B[1m\x1B[32m   Compiling\x1B[0m abi v0.1.0".to_owned();
        assert!(is_compiling(&console::strip_ansi_codes(&coloured)));
        let warning = "\x1B[33mwarning\x1B[0m: unused".to_owned();
        let log =
            Log { success: true, lines: vec![coloured, warning.clone()], executables: Vec::new() };
        assert_eq!(log.words(), warning);
    }

    #[test]
    fn finished_programs_are_read_from_cargos_messages() {
        let text = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"a\",\"src_path\":\"/a.rs\"},\"executable\":null}\n\
                    {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"b\",\"src_path\":\"/b.rs\"},\"executable\":\"/x/b\"}\n\
                    not json\n{\"reason\":\"build-finished\",\"success\":false}\n";
        let found = executables(text.as_bytes());
        let b = Executable { name: "b".to_owned(), source: "/b.rs".into(), file: "/x/b".into() };
        assert_eq!(found, [b]);
    }
}
