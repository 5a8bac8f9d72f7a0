//! An SDK is written, and in it a service of one's own with its interface, client and test: built,
//! tested and started, by its own tool and from its own files. What it lacks shows here.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::keep_log;
use super::tally::Outcome;
use crate::build;
use crate::sdk;
use crate::ui::Step;
use crate::workspace::{self, Workspace};

/// The suite's name.
pub const SUITE: &str = "sdk";
/// Where it is written; it stays, so that the next time less is compiled.
const FOLDER: &str = "target/sdk";
/// What the system in it says when it is up.
const UP: &str = "Baton. `help` lists the commands.";

/// Writes it, and has it build and start its sample.
///
/// # Errors
/// When it cannot be written, or the tool in it cannot be run.
pub fn trial(workspace: &Workspace) -> Result<Outcome> {
    let folder = Workspace { root: workspace.path(FOLDER) };
    clear(&folder)?;
    sdk::write(workspace, &folder)?;
    // The standard library and others' crates are compiled for programs already.
    let programs = build::PROGRAMS_FOLDER;
    build::seed(workspace, &workspace.target(programs)?, &folder.target(programs)?);
    let step = Step::start(SUITE);
    let mut outcome = Outcome::default();
    for (words, sign) in [
        (&["--help"][..], "Usage: ./baton <VERB>"),
        (&["test"], "\n3 passed, 0 failed"),
        (&["new", "service", "post"], "./baton test post"),
        (&["idl", "servers/post/wit", "--messages"], "post@0.1.read("),
        (&["idl"], "pub mod console"),
        // Its board's tests on the host, and its client's run.
        (&["test", "post"], "\n3 passed, 0 failed"),
        (&["new", "pager", "mine"], "./baton test mine"),
        (&["test", "mine"], "\n1 passed, 0 failed"),
        (&["build", "kernel", "ask-in-c"], "bin/kernel"),
        (&["run", "post", "--test", "--limit", "20"], UP),
    ] {
        step.say(words.join(" "));
        let text = tool(&folder, words)?;
        if text.contains(sign) {
            outcome.passed += 1;
            continue;
        }
        let log = workspace.show(&keep_log(workspace, SUITE, &text)?);
        outcome.failures.push(format!("./baton {}: no `{sign}`; see {log}", words.join(" ")));
    }
    step.vanish();
    Ok(outcome)
}

/// Takes away what an earlier trial has made, but for what was compiled, and for what says that it
/// is an SDK.
fn clear(folder: &Workspace) -> Result<()> {
    let entries = std::fs::read_dir(&folder.root).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name() != "target" && entry.file_name() != "bin")
    {
        workspace::remove(&entry.path())?;
    }
    Ok(())
}

/// What the SDK's own tool prints.
fn tool(folder: &Workspace, words: &[&str]) -> Result<String> {
    let mut command = Command::new(folder.path("baton"));
    command.args(words).current_dir(&folder.root).env_remove("BATON_ROOT").stdin(Stdio::null());
    let output = command.output().context("the SDK's tool cannot be run")?;
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).replace('\r', ""))
}
