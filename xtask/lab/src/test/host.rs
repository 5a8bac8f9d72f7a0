//! Ring 1: the tests of every crate with a library that compiles on the
//! host; libtest's lines are counted one by one. Then the kernel for another
//! processor (`riscv`), the house rules (`lint`, `clippy`), and the C headers' own check.
//!
//! Cargo lets one command at a time into a build folder: who came second would wait while the last crate of the
//! first one's compiles on one processor. So the tests of all crates are compiled by one command, while suites with
//! folders of their own are under way, and their programs are run by themselves.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};

use super::lanes::Job;
use super::tally::Outcome;
use super::{Options, keep_log, riscv};
use crate::build::{self, HostTests};
use crate::lint::{self, Verdict};
use crate::sdk;
use crate::ui::Step;
use crate::workspace::{Package, Workspace};

/// Lines of a failed suite's output that are shown.
pub(super) const SHOWN_LINES: usize = 40;

/// The host tests of every wanted crate, and the rules'.
///
/// # Errors
/// When cargo does not say which crates there are.
pub fn jobs<'a>(workspace: &'a Workspace, options: &Options) -> Result<Vec<Job<'a>>> {
    let mut jobs = Vec::new();
    let is_sdk = workspace.is_sdk();
    let compiled = Arc::new(Compiled::new(workspace, options)?);
    if compiled.packages.len() > 1 {
        let compiled = Arc::clone(&compiled);
        jobs.push(Job::new(move |_, _| compiled.compile()));
    }
    let mut add = |name: &str, run: Box<dyn FnOnce() -> Result<Outcome> + Send + 'a>| {
        if options.wants(name) {
            let name = name.to_owned();
            jobs.push(Job::new(move |_, report| report.suite(&name, run)));
        }
    };
    if !is_sdk {
        for (suite, check) in RULES {
            add(suite, Box::new(move || Ok(rules_kept(check(workspace)?))));
        }
        // It takes long, and compiles elsewhere at first.
        let is_named = options.filter.as_deref() == Some(riscv::SUITE);
        add(riscv::SUITE, Box::new(move || riscv::run(workspace, is_named)));
    }
    for (at, package) in compiled.packages.iter().enumerate() {
        let compiled = Arc::clone(&compiled);
        add(&package.name, Box::new(move || compiled.run(at)));
    }
    if !is_sdk {
        add(C_HEADERS, Box::new(|| c_headers(workspace)));
    }
    Ok(jobs)
}

/// The crates whose tests are wanted, and their test programs, which are compiled when the first one is needed.
struct Compiled<'a> {
    workspace: &'a Workspace,
    packages: Vec<Package>,
    tests: OnceLock<HostTests>,
}

impl<'a> Compiled<'a> {
    fn new(workspace: &'a Workspace, options: &Options) -> Result<Self> {
        let mut packages = workspace.packages()?;
        let in_folder = |package: &Package| {
            sdk::CRATES.iter().any(|at| package.manifest_path.starts_with(workspace.path(at)))
        };
        // What an SDK has of Baton was tested where the SDK was written.
        packages.retain(|package| !(workspace.is_sdk() && in_folder(package)));
        packages.retain(|package| {
            options.wants(&package.name) && package.host_tests().next().is_some()
        });
        Ok(Self { workspace, packages, tests: OnceLock::new() })
    }

    fn compile(&self) {
        let packages: Vec<&Package> = self.packages.iter().collect();
        // What does not compile is said by the crate's own suite.
        self.tests.get_or_init(|| build::host_tests(self.workspace, &packages).unwrap_or_default());
    }

    /// Runs the tests of a package.
    fn run(&self, at: usize) -> Result<Outcome> {
        self.compile();
        let package = &self.packages[at];
        match self.tests.get().and_then(|tests| tests.get(&package.name)) {
            Some(programs) => run_tests(self.workspace, package, programs),
            None => cargo_test(self.workspace, package, &package.name, &[], &[]),
        }
    }
}

/// House rules as a suite.
fn rules_kept(verdict: Verdict) -> Outcome {
    let passed = verdict.rules - verdict.broken.len();
    Outcome { passed, failures: verdict.broken, ..Outcome::default() }
}

/// Checks house rules.
type Check = fn(&Workspace) -> Result<Verdict>;
/// The suites of the house rules: what reading the sources shows, and what clippy finds.
const RULES: [(&str, Check); 2] = [("lint", lint::check), ("clippy", lint::check_compiled)];
/// The suite that compiles and runs `include/l4` on the host.
const C_HEADERS: &str = "c-headers";
/// Its script, which prints `COMPILER OPTIONS: N tests ok` per way of compiling.
const C_HEADERS_SCRIPT: &str = "lib/l4c/check/run";

/// The C headers' inline calls against a stub, with gcc and g++ at all levels.
fn c_headers(workspace: &Workspace) -> Result<Outcome> {
    let step = Step::start(C_HEADERS.to_owned());
    step.say("compiling and running");
    let output = Command::new(workspace.path(C_HEADERS_SCRIPT))
        .arg(workspace.path("target/c-check"))
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {C_HEADERS_SCRIPT}"))?;
    step.vanish();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let log = format!("{}\n{stdout}", String::from_utf8_lossy(&output.stderr));
    let kept = keep_log(workspace, C_HEADERS, &log)?;
    let mut outcome = Outcome { passed: count_ok(&stdout), ..Outcome::default() };
    if !output.status.success() {
        outcome.notes = log.lines().rev().take(SHOWN_LINES).map(|l| format!("| {l}")).collect();
        let at = workspace.show(&kept);
        outcome.failures.push(format!("the headers do not do what they should; see {at}"));
    }
    Ok(outcome)
}

/// The sum of all `N tests ok`.
fn count_ok(stdout: &str) -> usize {
    let counts = stdout.lines().filter_map(|line| line.strip_suffix(" tests ok"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

/// The tests of `package` with cargo's `arguments`, as suite `name`, but for those that are `skipped`.
pub(super) fn cargo_test(
    workspace: &Workspace,
    package: &Package,
    name: &str,
    arguments: &[&str],
    skipped: &[&str],
) -> Result<Outcome> {
    let step = Step::start(name.to_owned());
    step.say("compiling and running");
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--profile", "tool", "--no-fail-fast", "-p", &package.name]);
    cargo.args(arguments);
    if package.has_host_library() {
        cargo.arg("--lib");
    }
    for test in package.integration_tests() {
        cargo.args(["--test", test]);
    }
    cargo.arg("--").args(skipped.iter().flat_map(|test| ["--skip", *test]));
    let output = cargo.stdin(Stdio::null()).output().context("cannot run cargo test")?;
    step.vanish();
    outcome(workspace, name, &output.stdout, &output.stderr, output.status.success())
}

/// The test `programs` of `package`, one after the other.
fn run_tests(workspace: &Workspace, package: &Package, programs: &[PathBuf]) -> Result<Outcome> {
    let step = Step::start(package.name.clone());
    step.say("running");
    let folder = package.manifest_path.parent().unwrap_or(&workspace.root);
    let (mut stdout, mut stderr, mut success) = (Vec::new(), Vec::new(), true);
    for program in programs {
        let output = Command::new(program)
            .current_dir(folder)
            .env("CARGO_MANIFEST_DIR", folder)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", workspace.show(program)))?;
        stdout.extend(output.stdout);
        stderr.extend(output.stderr);
        success &= output.status.success();
    }
    step.vanish();
    outcome(workspace, &package.name, &stdout, &stderr, success)
}

/// What tests came to that said this; the whole is kept.
fn outcome(
    workspace: &Workspace,
    name: &str,
    stdout: &[u8],
    stderr: &[u8],
    success: bool,
) -> Result<Outcome> {
    let [stdout, stderr] = [stdout, stderr].map(String::from_utf8_lossy);
    let log = keep_log(workspace, name, &format!("{stderr}\n{stdout}"))?;
    let mut outcome = read_libtest(&stdout, success);
    if !outcome.failures.is_empty() {
        let text = if stdout.contains("test result:") { stdout } else { stderr };
        let lines: Vec<&str> = text.lines().filter(|line| !line.ends_with("... ok")).collect();
        let from = lines.len().saturating_sub(SHOWN_LINES);
        outcome.notes = lines[from..].iter().map(|line| format!("| {line}")).collect();
        outcome.notes.push(format!("The whole output is in {}.", workspace.show(&log)));
    }
    Ok(outcome)
}

/// Counts libtest's summaries; a run that failed without naming a test counts
/// as one failure.
fn read_libtest(stdout: &str, success: bool) -> Outcome {
    let mut outcome = Outcome::default();
    let mut counted = 0;
    for line in stdout.lines() {
        if let Some((passed, failed)) = summary(line) {
            outcome.passed += passed;
            counted += failed;
        } else if let Some(name) = failed_test(line) {
            outcome.failures.push(name.to_owned());
        }
    }
    while outcome.failures.len() < counted {
        outcome.failures.push("a test that libtest counted but did not name".to_owned());
    }
    if !success && outcome.failures.is_empty() {
        outcome.failures.push("the suite could not be built, or died without a summary".to_owned());
    }
    outcome
}

/// `test result: ok. 15 passed; 1 failed; ...`
fn summary(line: &str) -> Option<(usize, usize)> {
    let rest = line.strip_prefix("test result: ")?;
    let count = |word: &str| -> Option<usize> {
        let before = rest.split(word).next()?;
        before.rsplit([' ', ';']).find(|part| !part.is_empty())?.parse().ok()
    };
    Some((count(" passed")?, count(" failed")?))
}

/// `test NAME ... FAILED`
fn failed_test(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("test ")?;
    let (name, verdict) = rest.rsplit_once(" ... ")?;
    verdict.starts_with("FAILED").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_output_is_counted() {
        let text = "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest a::d - should panic ... ok\n\
                    test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n\
                    running 12 tests\n\
                    test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let outcome = read_libtest(text, false);
        assert_eq!(
            outcome,
            Outcome { passed: 14, failures: vec!["a::c".to_owned()], ..Outcome::default() }
        );
    }

    #[test]
    fn the_headers_tests_are_counted() {
        assert_eq!(count_ok("gcc -O0: 36 tests ok\ng++ -O2: 40 tests ok\ngcc -O1: broken\n"), 76);
    }

    #[test]
    fn a_suite_that_does_not_build_fails() {
        assert_eq!(read_libtest("", false).failures.len(), 1);
        assert_eq!(read_libtest("test result: ok. 2 passed; 0 failed;", false).failures.len(), 1);
        assert_eq!(read_libtest("test result: ok. 2 passed; 0 failed;", true).passed, 2);
    }

    #[test]
    fn unnamed_failures_are_not_lost() {
        let outcome = read_libtest("test result: FAILED. 0 passed; 2 failed; 0 ignored", false);
        assert_eq!(outcome.failures.len(), 2);
    }
}
