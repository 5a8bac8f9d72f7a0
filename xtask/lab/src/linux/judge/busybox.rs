//! Busybox's own tests, from Debian's source package, on Debian's busybox. A trial is all tests
//! of an applet, which reports each.

use std::path::Path;

use anyhow::{Context, Result};

use super::mark::{self, Mark, Marks};
use super::suite::{Name, Suite, Trial};
use crate::linux::cpio::Archive;
use crate::linux::guest::Ran;
use crate::linux::machines::MEMORY_MB;
use crate::linux::packages;
use crate::workspace::Workspace;

/// The source package.
const PACKAGE: &str = "busybox";
/// How Debian has configured the program that is tested.
const CONFIGURATION: &str = "debian/config/pkg/static";
/// Where everything is.
const PLACE: &str = "judge/busybox";
/// `SKIP_KNOWN_BUGS` has tests that are known to fail say so.
const ENVIRONMENT: &str = "export SKIP_KNOWN_BUGS=1 SKIP_INTERNET_TESTS=1 VERBOSE=1";
/// Most seconds of an applet's tests.
const SECONDS: u64 = 180;
const BATCH: usize = 200;

/// The suite.
///
/// # Errors
/// When the source cannot be had.
pub fn suite(workspace: &Workspace) -> Result<Suite> {
    let source = packages::source(workspace, PACKAGE)?;
    let mut shared = Archive::default();
    shared.copy(&format!("{PLACE}/testsuite"), &source.join("testsuite"))?;
    shared.copy(&format!("{PLACE}/.config"), &source.join(CONFIGURATION))?;
    shared.link(&format!("{PLACE}/busybox"), "/bin/busybox");
    let mut trials = Vec::new();
    for applet in applets(&source.join("testsuite"))? {
        let run = format!("{ENVIRONMENT}; cd /{PLACE}/testsuite; sh ./runtest {applet}");
        trials.push(Trial::new(&applet, run, SECONDS));
    }
    Ok(Suite { name: Name::Busybox, shared, trials, batch: BATCH, memory: MEMORY_MB, read })
}

/// What has tests: `APPLET.tests`, or a folder.
fn applets(testsuite: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(testsuite)
        .with_context(|| format!("there are no tests in {}", testsuite.display()))?;
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.strip_suffix(".tests") {
            Some(applet) => names.push(applet.to_owned()),
            None if entry.path().is_dir() => names.push(name),
            None => {}
        }
    }
    // They are about the source, or no applets.
    names.retain(|name| !["all_sourcecode", "mount.testroot"].contains(&name.as_str()));
    names.sort();
    names.dedup();
    Ok(names)
}

/// A line `PASS: name` or the like for each test.
fn read(name: &str, ran: &Ran, status: i32) -> Marks {
    let mut marks = Marks::new();
    for line in ran.output.lines() {
        let Some((word, test)) = line.split_once(": ") else { continue };
        let mark = match word {
            "PASS" => Mark::Pass,
            "FAIL" => Mark::Fail,
            "SKIPPED" | "UNTESTED" => Mark::Skip,
            _ => continue,
        };
        // Some names are there twice.
        let worst = marks.entry(format!("{name}: {}", test.trim())).or_insert(mark);
        if mark == Mark::Fail {
            *worst = mark;
        }
    }
    if marks.is_empty() {
        let mark = if status == 0 { Mark::Skip } else { Mark::Fail };
        return mark::one(name, mark);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::guest::End;

    #[test]
    fn each_test_of_an_applet_counts() {
        let output = "PASS: one\nsed: no PASS\nFAIL: two  \nPASS: two\nSKIPPED: three\n";
        let ran = Ran { output: output.to_owned(), end: End::Status(1) };
        let marks = read("sed", &ran, 1);
        let expected = [
            ("sed: one".to_owned(), Mark::Pass),
            ("sed: three".to_owned(), Mark::Skip),
            ("sed: two".to_owned(), Mark::Fail),
        ];
        assert!(marks.into_iter().eq(expected));
        let nothing = Ran { output: String::new(), end: End::Status(127) };
        assert_eq!(read("sed", &nothing, 127), mark::one("sed", Mark::Fail));
    }
}
