//! SQLite's own tests, from Debian's source package: `veryquick`, a trial for each of its files.
//!
//! They are a program, `testfixture`, that is SQLite with what only tests call inside a Tcl
//! interpreter. Nothing has it as a package, so it is built here, once: of the source as it was
//! released, with Debian's Tcl, none of which is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::mark::{self, Mark, Marks};
use super::suite::{Name, Suite, Trial};
use crate::linux::cpio::Archive;
use crate::linux::guest::Ran;
use crate::linux::machines::MEMORY_MB;
use crate::linux::packages::{self, Packages};
use crate::ui::Step;
use crate::workspace::Workspace;

/// The source package.
const PACKAGE: &str = "sqlite3";
/// What it is built with; the last two are needed by what it becomes.
const PACKAGES: [&str; 6] = ["make", "tcl8.6", "tcl8.6-dev", "zlib1g-dev", "libtcl8.6", "zlib1g"];
/// Where Tcl's library and its scripts are.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const SCRIPTS: &str = "usr/share/tcltk/tcl8.6";
const ZLIB: &str = "lib/x86_64-linux-gnu";
/// Where it is built, below `target/`.
const BUILD: &str = "linux/judge/sqlite/build";
const PROGRAM: &str = "testfixture";
/// Where tests are in the source.
const TESTS: &str = "test";
const EXTENSIONS: &str = "ext";
/// Where everything is.
const PLACE: &str = "judge/sqlite";
/// Most seconds of a file.
const SECONDS: u64 = 240;
/// What stands before the names of tests that failed.
const FAILED: &str = "!Failures on these tests:";
const BATCH: usize = 120;

/// The suite.
///
/// # Errors
/// When source or packages cannot be had, or the program cannot be built.
pub fn suite(workspace: &Workspace) -> Result<Suite> {
    let source = packages::source(workspace, PACKAGE)?;
    let packages = Packages::get(workspace, &PACKAGES)?;
    let build = workspace.target(BUILD)?;
    let maker = Maker { source: &source, packages: &packages, build: &build };
    let program = maker.program(workspace)?;
    let mut shared = Archive::default();
    shared.copy(&format!("{PLACE}/{PROGRAM}"), &program)?;
    shared.copy(LIBRARIES, &packages.file("libtcl8.6", LIBRARIES))?;
    shared.copy(SCRIPTS, &packages.file("libtcl8.6", SCRIPTS))?;
    for file in scripts(&source)? {
        shared.copy(&place(&source, &file), &file)?;
    }
    let mut trials = Vec::new();
    for file in maker.veryquick()? {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let run = format!(
            "export TCL_LIBRARY=/{SCRIPTS}; exec /{PLACE}/{PROGRAM} \
             /{PLACE}/{TESTS}/permutations.test veryquick {name}.test --verbose=0"
        );
        trials.push(Trial::new(&name, run, SECONDS));
    }
    Ok(Suite { name: Name::Sqlite, shared, trials, batch: BATCH, memory: MEMORY_MB, read })
}

/// Where a file of the source is in the archive.
fn place(source: &Path, file: &Path) -> String {
    let path = file.strip_prefix(source).unwrap_or(file);
    format!("{PLACE}/{}", path.display())
}

/// All tests and what they call: `veryquick` wants to see more than it runs.
fn scripts(source: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut left = vec![source.join(TESTS), source.join(EXTENSIONS)];
    while let Some(folder) = left.pop() {
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot list {}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|end| end == "tcl" || end == "test") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Builds the program, and asks it.
struct Maker<'a> {
    source: &'a Path,
    packages: &'a Packages,
    build: &'a Path,
}

impl Maker<'_> {
    /// The program; built if it is not there.
    fn program(&self, workspace: &Workspace) -> Result<PathBuf> {
        let program = self.build.join(PROGRAM);
        let _alone = workspace.alone("sqlite")?;
        if program.is_file() {
            return Ok(program);
        }
        let step = Step::start("SQLite's tests");
        step.say("building testfixture (some minutes, once)");
        // Nothing that this machine happens to have makes a difference.
        let mut configure = self.command(&self.source.join("configure"));
        configure.args(["--disable-tcl", "--disable-readline", "--disable-shared"]);
        finish(configure.env("ac_cv_search_deflate", "no"), "configure SQLite's tests")?;
        let tcl = self.packages.file("libtcl8.6", LIBRARIES);
        let zlib = self.packages.file("zlib1g", ZLIB);
        let headers = self.packages.file("tcl8.6-dev", "usr/include/tcl8.6");
        let more = self.packages.file("zlib1g-dev", "usr/include");
        let tclsh = self.packages.file("tcl8.6", "usr/bin/tclsh8.6");
        let mut make = self.command(&self.packages.file("make", "usr/bin/make"));
        make.args([
            format!("CFLAGS=-O2 -w -I{} -idirafter {}", headers.display(), more.display()),
            format!("LIBTCL=-L{} -ltcl8.6 -L{} -l:libz.so.1", tcl.display(), zlib.display()),
            format!("TCLSH_CMD={}", tclsh.display()),
            PROGRAM.to_owned(),
        ]);
        finish(&mut make, "build SQLite's tests")?;
        step.done("testfixture built");
        Ok(program)
    }

    /// The files of `veryquick`; it knows them itself.
    fn veryquick(&self) -> Result<Vec<PathBuf>> {
        let tests = self.source.join(TESTS);
        let list = self.build.join("list.tcl");
        let script = format!(
            "set argv0 {{{}/list.test}}\nsource {{{}/permutations.test}}\n\
             foreach file [dict get $::testspec(veryquick) -files] {{ puts \"file $file\" }}\n\
             exit 0\n",
            tests.display(),
            tests.display()
        );
        std::fs::write(&list, script)
            .with_context(|| format!("cannot write {}", list.display()))?;
        let told =
            finish(self.command(&self.build.join(PROGRAM)).arg(&list), "ask SQLite for its tests")?;
        let names = told.lines().filter_map(|line| line.strip_prefix("file "));
        // Those of the extensions are whole paths.
        let mut files: Vec<PathBuf> = names
            .map(|name| tests.join(name).canonicalize())
            .collect::<Result<_, _>>()
            .context("SQLite names tests that it does not have")?;
        files.sort();
        files.dedup();
        ensure!(!files.is_empty(), "SQLite names no tests");
        Ok(files)
    }

    /// A program that runs where the build is, with Debian's Tcl.
    fn command(&self, program: &Path) -> Command {
        let libraries =
            [self.packages.file("libtcl8.6", LIBRARIES), self.packages.file("zlib1g", ZLIB)];
        let libraries = libraries.map(|folder| folder.to_string_lossy().into_owned());
        let mut command = Command::new(program);
        command
            .current_dir(self.build)
            .env("LD_LIBRARY_PATH", libraries.join(":"))
            .env("TCL_LIBRARY", self.packages.file("libtcl8.6", SCRIPTS))
            .env_remove("MAKEFLAGS");
        command
    }
}

/// Runs it; what it printed.
fn finish(command: &mut Command, what: &str) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot {what}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = words.trim().lines().rev().take(10).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    ensure!(output.status.success(), "cannot {what}: {}", last.join("\n"));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The last lines say `0 errors out of 17 tests`, or `!Failures on these tests: NAME ...`. A file
/// that has found nothing to test here says that it did none.
fn read(name: &str, ran: &Ran, status: i32) -> Marks {
    let nothing = ran.output.lines().any(|line| line.starts_with("0 errors out of 0 tests"));
    let done = ran.output.lines().any(|line| line.starts_with("0 errors out of "));
    let mark = match status {
        0 if nothing => Mark::Skip,
        0 if done => Mark::Pass,
        _ => Mark::Fail,
    };
    let mut marks = mark::one(name, mark);
    let failed = ran.output.lines().filter_map(|line| line.strip_prefix(FAILED));
    for test in failed.flat_map(str::split_whitespace) {
        marks.insert(format!("{name}: {test}"), Mark::Fail);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::guest::End;

    fn ran(output: &str) -> Ran {
        Ran { output: output.to_owned(), end: End::Status(0) }
    }

    #[test]
    fn a_file_passes_when_it_has_tested_something() {
        let done = ran("0 errors out of 17 tests on linux\n");
        assert_eq!(read("wal", &done, 0), mark::one("wal", Mark::Pass));
        assert_eq!(read("wal", &done, 1), mark::one("wal", Mark::Fail));
        assert_eq!(read("wal", &ran(""), 0), mark::one("wal", Mark::Fail));
        let nothing = ran("0 errors out of 0 tests on linux\n");
        assert_eq!(read("wal", &nothing, 0), mark::one("wal", Mark::Skip));
    }

    #[test]
    fn what_failed_is_named() {
        let two = ran("2 errors out of 9 tests\n!Failures on these tests: wal-1.1 wal-1.2\n");
        let marks = read("wal", &two, 1);
        let names: Vec<&str> = marks.keys().map(String::as_str).collect();
        assert_eq!(names, ["wal", "wal: wal-1.1", "wal: wal-1.2"]);
    }
}
