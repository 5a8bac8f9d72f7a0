//! Python's own tests, from Debian's packages: a trial for each module of `python3 -m test`,
//! which names the tests that failed in it.

use std::path::Path;

use anyhow::{Context, Result};

use super::mark::{self, Mark, Marks};
use super::suite::{Name, Suite, Trial};
use crate::linux::cpio::Archive;
use crate::linux::guest::Ran;
use crate::linux::packages::Packages;
use crate::workspace::Workspace;

/// Packages whose files are all wanted, and where those are.
const WHOLE: [(&str, &str); 12] = [
    ("libpython3.11-stdlib", "usr/lib/python3.11"),
    ("libpython3.11-testsuite", "usr/lib/python3.11"),
    ("media-types", "etc"),
    ("libffi8", "usr/lib/x86_64-linux-gnu"),
    ("libssl3", "usr/lib/x86_64-linux-gnu"),
    ("libbz2-1.0", "lib/x86_64-linux-gnu"),
    ("liblzma5", "lib/x86_64-linux-gnu"),
    ("libncursesw6", "lib/x86_64-linux-gnu"),
    ("libuuid1", "usr/lib/x86_64-linux-gnu"),
    ("libcrypt1", "lib/x86_64-linux-gnu"),
    ("libdb5.3", "usr/lib/x86_64-linux-gnu"),
    ("ncurses-base", "lib/terminfo"),
];
/// Where the tests are.
const TESTS: &str = "usr/lib/python3.11/test";
/// Linux's loopback is down when it starts; Baton's is always there.
const BEFORE: &str = "ifconfig lo up 2>/dev/null";
/// Most seconds of a module.
const SECONDS: u64 = 240;
/// What takes about as long, or longer, on Linux, too, and most seconds of these: threads and processes that hand
/// each other the processor all the time, which the emulator is slow at.
const LONG: [&str; 7] = [
    "test_asyncio",
    "test_concurrent_futures",
    "test_multiprocessing_fork",
    "test_multiprocessing_forkserver",
    "test_multiprocessing_spawn",
    "test_subprocess",
    "test_weakref",
];
const LONG_SECONDS: u64 = 900;
/// A module that ends in that time on neither, in parts: their names, and which tests they have. The classes that
/// are there three times, of processes and of a manager's objects, are the longest of it.
const IN_PARTS: &str = "test_multiprocessing_spawn";
const PARTS: [(&str, &str); 11] = [
    ("threads", " -m '*.WithThreadsTest*'"),
    ("processes-barriers", " -m '*.WithProcessesTestBarrier*'"),
    ("manager-barriers", " -m '*.WithManagerTestBarrier*'"),
    ("locks", " -m '*.TestForkAwareThreadLock*'"),
    ("rest", " -i '*.With*Test*' -i '*.TestForkAwareThreadLock*'"),
    ("processes-conditions", " -m '*.WithProcessesTestCondition*'"),
    ("processes-pools", " -m '*.WithProcessesTestPool*'"),
    (
        "processes",
        " -m '*.WithProcessesTest*' -i '*TestBarrier*' -i '*TestCondition*' -i '*TestPool*'",
    ),
    ("manager-conditions", " -m '*.WithManagerTestCondition*'"),
    ("manager-pools", " -m '*.WithManagerTestPool*'"),
    ("manager", " -m '*.WithManagerTest*' -i '*TestBarrier*' -i '*TestCondition*' -i '*TestPool*'"),
];
/// Of these parts, those that wait half a minute for processes to come, which are later on an emulated processor.
const COUNTED: [&str; 2] = ["processes-barriers", "manager-barriers"];
const BATCH: usize = 40;
/// Of a machine, MiB: it has its archive and the files in that, and one module wants 685 at once.
const MEMORY_MB: u32 = 1536;

/// The suite.
///
/// # Errors
/// When packages cannot be had.
pub fn suite(workspace: &Workspace) -> Result<Suite> {
    let packages = Packages::get(workspace, &WHOLE.map(|part| part.0))?;
    let mut shared = Archive::default();
    for (package, folder) in WHOLE {
        shared.copy(folder, &packages.file(package, folder))?;
    }
    let mut trials = Vec::new();
    for module in modules(&packages.file("libpython3.11-testsuite", TESTS))? {
        let seconds = if LONG.contains(&module.as_str()) { LONG_SECONDS } else { SECONDS };
        let trial = |name: &str, which: &str| {
            let options = format!("-W -u none --timeout {seconds}{which}");
            let run = format!("{BEFORE}; exec python3 -m test {options} {module}");
            Trial::new(name, run, seconds)
        };
        if module == IN_PARTS {
            trials.extend(PARTS.iter().map(|(part, which)| {
                let trial = trial(&format!("{module}-{part}"), which);
                if COUNTED.contains(part) { trial.counted() } else { trial }
            }));
        } else {
            trials.push(trial(&module, ""));
        }
    }
    Ok(Suite { name: Name::Cpython, shared, trials, batch: BATCH, memory: MEMORY_MB, read })
}

/// Modules and packages called `test_*`.
fn modules(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("there are no tests in {}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let modules = names.map(|name| name.strip_suffix(".py").unwrap_or(&name).to_owned());
    let mut modules: Vec<String> = modules.filter(|name| name.starts_with("test_")).collect();
    modules.sort();
    modules.dedup();
    Ok(modules)
}

/// The status says how the module came out, and lines like `FAIL: test_x (test.test_os.A.test_x)`
/// what of it did not pass.
fn read(name: &str, ran: &Ran, status: i32) -> Marks {
    let nothing =
        ran.output.contains("Result: NO TESTS RAN") || ran.output.contains("1 test skipped");
    let mark = match status {
        _ if nothing => Mark::Skip,
        0 => Mark::Pass,
        _ => Mark::Fail,
    };
    let mut marks = mark::one(name, mark);
    if mark == Mark::Fail {
        let failed = ran.output.lines().filter_map(failed);
        marks.extend(failed.map(|test| (format!("{name}: {test}"), Mark::Fail)));
    }
    marks
}

/// The test that a line says has failed, by class and name.
fn failed(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "))?;
    let (_, path) = rest.split_once(" (")?;
    let (path, _) = path.split_once(')')?;
    Some(path.splitn(3, '.').nth(2).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::guest::End;

    #[test]
    fn what_failed_is_named() {
        let output = "test_a (test.test_os.A.test_a) ... FAIL\n\n\
                      FAIL: test_a (test.test_os.A.test_a) [with (this)]\n\
                      ERROR: setUpModule (test.test_os)\nOSError: no (such) thing\n";
        let ran = Ran { output: output.to_owned(), end: End::Status(2) };
        let marks = read("test_os", &ran, 2);
        let names: Vec<&str> = marks.keys().map(String::as_str).collect();
        assert_eq!(names, ["test_os", "test_os: A.test_a", "test_os: test.test_os"]);
        assert!(marks.values().all(|mark| *mark == Mark::Fail));
        assert_eq!(read("test_os", &ran, 0), mark::one("test_os", Mark::Pass));
    }
}
