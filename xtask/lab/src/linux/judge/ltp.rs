//! The Linux Test Project's tests of system calls, from a folder in which they were built:
//! `make autotools && ./configure && make -C testcases/kernel/syscalls && make -C testcases/lib`.
//!
//! A trial is a line of `runtest/syscalls`. Its status says it all: 0 passed, 32 "cannot be
//! tested here".

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::mark::{self, Mark, Marks};
use super::suite::{Name, Suite, Trial};
use crate::linux::cpio::Archive;
use crate::linux::guest::Ran;
use crate::linux::machines::MEMORY_MB;

/// Where the programs are, there and here.
const PROGRAMS: &str = "testcases/kernel/syscalls";
const HELPERS: &str = "testcases/lib";
const PLACE: &str = "judge/ltp/testcases/bin";
/// The list of tests.
const LIST: &str = "runtest/syscalls";
/// The tests look up users and groups that a small system lacks.
const USERS: &str = "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/:/bin/false\n\
                     bin:x:2:2:bin:/:/bin/false\nsys:x:3:3:sys:/:/bin/false\n\
                     nobody:x:65534:65534:nobody:/:/bin/false\n";
const GROUPS: &str = "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nusers:x:100:\n\
                      nogroup:x:65534:\nnobody:x:65533:\n";
/// What they are told; they may not ask for the kernel's configuration.
const ENVIRONMENT: &str = "export LTPROOT=/judge/ltp TMPDIR=/tmp LTP_COLORIZE_OUTPUT=n \
                           KCONFIG_SKIP_CHECK=1 LTP_RUNTIME_MUL=0.2 \
                           PATH=$PATH:/judge/ltp/testcases/bin";
/// Tests that put clocks back by ten seconds, which a system must have run for, and what waits until it has.
const PUT_CLOCKS_BACK: [&str; 3] = ["clock_gettime03", "sysinfo03", "timerfd04"];
const UNTIL_OLD: &str = "until [ \"$(cut -d. -f1 /proc/uptime)\" -ge 12 ]; do sleep 1; done; ";
/// Files that no test reads.
const SOURCES: [&str; 5] = ["c", "h", "o", "d", "a"];
/// Most seconds of a test.
const SECONDS: u64 = 45;
/// A test's status that means it cannot be run here.
const CANNOT: i32 = 32;
const BATCH: usize = 80;

/// The suite in `source`.
///
/// # Errors
/// When it is not there or was not built.
pub fn suite(source: &Path) -> Result<Suite> {
    let folders = programs(&source.join(PROGRAMS))?;
    ensure!(
        folders.contains_key("getpid01"),
        "{} was not built: there, type `make autotools && ./configure && make -C {PROGRAMS} && \
         make -C {HELPERS}`",
        source.display()
    );
    let mut shared = Archive::default();
    shared.file("etc/passwd", 0o644, USERS);
    shared.file("etc/group", 0o644, GROUPS);
    for (name, file) in useful(&source.join(HELPERS))? {
        shared.copy(&format!("{PLACE}/{name}"), &file)?;
    }
    let list = source.join(LIST);
    let list = std::fs::read_to_string(&list)
        .with_context(|| format!("cannot read {}", list.display()))?;
    let mut trials = Vec::new();
    let mut seen = BTreeSet::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, run)) = line.trim().split_once(char::is_whitespace) else { continue };
        let program = run.split_whitespace().next().unwrap_or_default();
        let Some(folder) = folders.get(program) else { continue };
        if !seen.insert(name) {
            continue;
        }
        let first = if PUT_CLOCKS_BACK.contains(&name) { UNTIL_OLD } else { "" };
        let mut trial = Trial::new(name, format!("{ENVIRONMENT}; {first}{}", run.trim()), SECONDS);
        let files = useful(folder)?.into_iter();
        trial.files = files.map(|(name, file)| (format!("{PLACE}/{name}"), file)).collect();
        trials.push(trial);
    }
    Ok(Suite { name: Name::Ltp, shared, trials, batch: BATCH, memory: MEMORY_MB, read })
}

/// The folder of each program.
fn programs(above: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut left = vec![above.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in entries(&folder)? {
            if entry.is_dir() {
                left.push(entry);
            } else if let Some(name) = entry.file_name().and_then(|name| name.to_str()) {
                found.insert(name.to_owned(), folder.clone());
            }
        }
    }
    Ok(found)
}

/// The files of a folder that tests could want, with their names.
fn useful(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for file in entries(folder)? {
        let source = file.extension().is_some_and(|end| SOURCES.iter().any(|s| end == *s));
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if file.is_file() && !source && !name.starts_with('.') && name != "Makefile" {
            files.push((name.to_owned(), file));
        }
    }
    files.sort();
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("there is nothing to judge in {}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn read(name: &str, _: &Ran, status: i32) -> Marks {
    let mark = match status {
        0 => Mark::Pass,
        CANNOT => Mark::Skip,
        _ => Mark::Fail,
    };
    mark::one(name, mark)
}
