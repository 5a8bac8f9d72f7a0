//! `fuzz --parsers SECONDS`: the parsers of outside input (fuzz/targets) under libFuzzer,
//! one after the other. The compiler instruments them by ordinary options; no toolchain
//! of its own is needed, only a C++ compiler for libFuzzer itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::ui::Step;
use crate::workspace::Workspace;

/// The programs' own workspace.
const MANIFEST: &str = "fuzz/libfuzzer/Cargo.toml";
/// One file per program.
const PROGRAMS: &str = "fuzz/libfuzzer/targets";
/// What the tests replay; the search begins there.
const CORPUS: &str = "fuzz/targets/corpus";
/// Named, so that what runs while it is built is not instrumented.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Counters, addresses and comparisons for libFuzzer.
const FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Longest input, bytes.
const LONGEST: u32 = 65_536;
/// Memory that a program may have, MiB: what an input of that length can ask for.
const MEMORY_MIB: u32 = 2048;
/// An input that takes so many seconds counts as a failure.
const PATIENCE_S: u32 = 10;

/// Gives every parser `seconds`; whether none failed.
///
/// # Errors
/// When the programs cannot be built or started.
pub fn run(workspace: &Workspace, seconds: u64) -> Result<bool> {
    let folder = build(workspace)?;
    let (mut inputs, mut failures) = (0, 0);
    for name in names(&workspace.path(PROGRAMS))? {
        let step = Step::start(name.clone());
        step.say("under libFuzzer");
        let output = command(workspace, &folder, &name, seconds)?
            .output()
            .with_context(|| format!("cannot run {}", folder.join(&name).display()))?;
        let log = workspace.target("fuzz")?.join(format!("{name}.log"));
        let text = String::from_utf8_lossy(&output.stderr);
        std::fs::write(&log, &*text).with_context(|| format!("cannot write {}", log.display()))?;
        let tried = tried(&text).unwrap_or(0);
        inputs += tried;
        let failed = !output.status.success() || tried == 0;
        failures += u64::from(failed);
        step.done(&format!("{tried} inputs, {} failures", u64::from(failed)));
        if failed {
            println!("  What {name} says is in {}.", workspace.show(&log));
            for input in found(&workspace.target("fuzz")?, &name)? {
                println!("  The input is {}; put it into {CORPUS}/{name}.", workspace.show(&input));
            }
        }
    }
    println!("{inputs} inputs, {failures} failures");
    Ok(failures == 0)
}

/// Builds the programs; the folder they are in.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let step = Step::start("building the parsers");
    step.say("instrumented, with libFuzzer");
    let target = workspace.target("libfuzzer")?;
    let output = workspace
        .cargo()
        .args(["build", "--release", "--target", TARGET, "--manifest-path", MANIFEST])
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", FLAGS)
        .stdin(Stdio::null())
        .output()
        .context("cannot run cargo")?;
    ensure!(
        output.status.success(),
        "the parsers could not be built for libFuzzer (it needs a C++ compiler: apt-get install \
         g++):\n{}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    step.done("built");
    Ok(target.join(TARGET).join("release"))
}

/// The programs, by their files.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    if names.is_empty() {
        bail!("{} has no programs", folder.display());
    }
    Ok(names)
}

/// One program, with what it has learned before and what the tests replay.
fn command(workspace: &Workspace, folder: &Path, name: &str, seconds: u64) -> Result<Command> {
    let learned = workspace.target(format!("fuzz/corpus/{name}"))?;
    let mut command = Command::new(folder.join(name));
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={LONGEST}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-timeout={PATIENCE_S}"))
        .arg(format!("-artifact_prefix={}/{name}-", workspace.target("fuzz")?.display()))
        .arg("-print_final_stats=1")
        .arg(&learned)
        .stdin(Stdio::null());
    let replayed = workspace.path(CORPUS).join(name);
    if replayed.is_dir() {
        command.arg(replayed);
    }
    Ok(command)
}

/// How many inputs libFuzzer says it has tried.
fn tried(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line?.trim().parse().ok()
}

/// The inputs on which a program failed, as libFuzzer names their files.
fn found(folder: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let mut inputs = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if is_input(&file, name) {
            inputs.push(path.clone());
        }
    }
    inputs.sort();
    Ok(inputs)
}

fn is_input(file: &str, name: &str) -> bool {
    let kind = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    let kinds = ["crash-", "timeout-", "oom-", "leak-", "slow-unit-"];
    kind.is_some_and(|kind| kinds.iter().any(|known| kind.starts_with(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_inputs_is_read() {
        let text = "Done 12 runs in 1 second(s)\nstat::number_of_executed_units: 1241724\n";
        assert_eq!(tried(text), Some(1_241_724));
        assert_eq!(tried("==1== ERROR: libFuzzer: deadly signal"), None);
    }

    #[test]
    fn inputs_are_told_from_logs() {
        assert!(is_input("archive-crash-12ab", "archive"));
        assert!(is_input("archive-oom-3", "archive"));
        assert!(!is_input("archive.log", "archive"));
        assert!(!is_input("program-crash-1", "archive"));
    }
}
