//! The house rules that a machine can check: formatting, clippy, where `unsafe`
//! may stand, how long files and functions are, and which of the kernel's rooms know which.

mod arrows;
mod known;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::manual;
use crate::ui;
use crate::workspace::{Package, Workspace};
use source::LongFunction;

/// Longest file, lines.
const MAX_FILE_LINES: usize = 400;
/// Longest function, lines.
const MAX_FUNCTION_LINES: usize = 50;
/// The only places where `unsafe` may stand.
/// (Test, fuzzing and measuring programs that execute raw traps;
/// the frames of the Unix library, what hands their memory over, and its tests, which play
/// the machine; tests that plant corruptions or ask the host's Linux.)
const UNSAFE_PLACES: [&str; 20] = [
    "kernel/src/arch",
    "kernel/src/mem",
    "kernel/src/thread/linkage.rs",
    "kernel/src/usermem",
    "runtime/",
    "tests/attacks/src/machine.rs",
    "tests/ipc",
    "tests/kernel",
    "tests/local-ipc/src",
    "tests/smp/src/machine.rs",
    "bench/guest",
    "fuzz/guest",
    "fuzz/system/src/main.rs",
    "kernel/tests/all/between.rs",
    "kernel/tests/all/stands.rs",
    "kernel/tests/all/checker.rs",
    "lib/unix/src/memory.rs",
    "lib/unix/tests",
    "lib/unix/examples",
    "servers/unix/src/boot.rs",
];
/// Lints that fail on top of the ordinary warnings.
const CLIPPY_DENIES: [&str; 6] = [
    "-Dwarnings",
    "-Dunsafe_op_in_unsafe_fn",
    "-Dclippy::undocumented_unsafe_blocks",
    "-Dclippy::missing_safety_doc",
    "-Dclippy::todo",
    "-Dclippy::unimplemented",
];

/// How to check.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Instead: make help, completion and manual page anew (xtask/help)
    #[arg(long)]
    accept: bool,
}

/// What reading the sources found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Uses of `unsafe` per crate folder.
    pub unsafe_per_crate: BTreeMap<String, usize>,
    /// `FILE:LINE` of every `unsafe` outside its places.
    pub unsafe_elsewhere: Vec<String>,
    /// Files over the limit, with their lines.
    pub long_files: Vec<(String, usize)>,
    /// Functions over the limit.
    pub long_functions: Vec<LongFunction>,
    /// Files and functions of the kernel with a parameter that is only true or false: a caller does
    /// not show what it means.
    pub bool_parameters: Vec<(String, String)>,
    /// Which of the kernel's rooms name which.
    pub arrows: arrows::Arrows,
    /// Files that no Rust parser understands.
    pub unreadable: Vec<String>,
}

impl Findings {
    /// All uses of `unsafe`.
    #[must_use]
    pub fn unsafe_total(&self) -> usize {
        self.unsafe_per_crate.values().sum()
    }

    /// One line for the test report.
    #[must_use]
    pub fn unsafe_line(&self) -> String {
        let crates: Vec<String> =
            self.unsafe_per_crate.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let list =
            if crates.is_empty() { String::new() } else { format!(" ({})", crates.join(", ")) };
        format!("unsafe: {}{list}", self.unsafe_total())
    }
}

/// Reads every source file of the tree.
///
/// # Errors
/// When git cannot list the files.
pub fn inspect(workspace: &Workspace) -> Result<Findings> {
    let mut findings = Findings::default();
    for file in sources(workspace)? {
        let shown = file.to_string_lossy().replace('\\', "/");
        let Ok(text) = std::fs::read_to_string(workspace.path(&file)) else {
            continue; // deleted in the working tree, or not text
        };
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES {
            findings.long_files.push((shown.clone(), lines));
        }
        if file.extension().is_some_and(|e| e == "rs") {
            inspect_rust(&shown, &text, &mut findings);
        }
    }
    findings.long_files.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    findings.long_functions.sort_by_key(|function| std::cmp::Reverse(function.lines));
    Ok(findings)
}

/// Adds what one Rust file shows.
fn inspect_rust(shown: &str, text: &str, findings: &mut Findings) {
    let Ok(seen) = source::read(shown, text, MAX_FUNCTION_LINES) else {
        findings.unreadable.push(shown.to_owned());
        return;
    };
    findings.long_functions.extend(seen.long_functions);
    if shown.starts_with("kernel/src/") {
        let named = seen.bool_parameters.into_iter().map(|name| (shown.to_owned(), name));
        findings.bool_parameters.extend(named);
    }
    findings.arrows.add(shown, seen.tokens);
    if seen.unsafe_lines.is_empty() {
        return;
    }
    *findings.unsafe_per_crate.entry(crate_of(shown)).or_default() += seen.unsafe_lines.len();
    if !UNSAFE_PLACES.iter().any(|place| shown.starts_with(place)) {
        findings
            .unsafe_elsewhere
            .extend(seen.unsafe_lines.iter().map(|line| format!("{shown}:{line}")));
    }
}

/// `servers/root/src/main.rs` belongs to `servers/root`, `kernel/src/..` to `kernel`.
fn crate_of(shown: &str) -> String {
    let before = shown.split("/src/").next().unwrap_or(shown);
    let folder =
        if before == shown { shown.rsplit_once('/').map_or(shown, |(dir, _)| dir) } else { before };
    folder.to_owned()
}

/// Tracked and new source files, as git sees them.
fn sources(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .current_dir(&workspace.root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .args(["*.rs", "*.S", "*.c", "*.h"])
        .output()
        .context("cannot run git to list the sources")?;
    if !output.status.success() {
        return Ok(walk(&workspace.root)); // a tree without git, from an archive
    }
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut files: Vec<PathBuf> =
        list.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The same without git: everything but build results and hidden folders.
fn walk(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                pending.push(path);
            } else if ["rs", "S", "c", "h"]
                .iter()
                .any(|e| path.extension().is_some_and(|x| x == *e))
            {
                files.push(path.strip_prefix(root).unwrap_or(&path).to_owned());
            }
        }
    }
    files.sort();
    files
}

/// The verb `lint`: everything, with a report; an error when a rule is broken.
///
/// # Errors
/// A sentence that sums up which rules are broken.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    if options.accept {
        manual::write(workspace)?;
        println!("xtask/help is as the command line is");
        return Ok(true);
    }
    let mut broken = check_compiled(workspace)?.broken;
    broken.extend(check(workspace)?.broken);
    ensure!(broken.is_empty(), "lint found broken rules: {}", broken.join(", "));
    println!("lint: no rule is broken");
    Ok(true)
}

/// What came of the rules.
pub struct Verdict {
    /// How many there are.
    pub rules: usize,
    /// Those that are broken; why has been said.
    pub broken: Vec<String>,
}

/// Checks what clippy finds, which compiles everything; says what breaks the rules.
///
/// # Errors
/// When clippy can't be run.
pub fn check_compiled(workspace: &Workspace) -> Result<Verdict> {
    run_all(clippy(workspace)?)
}

/// Runs tools that check rules.
fn run_all(tools: Vec<Tool>) -> Result<Verdict> {
    let mut broken = Vec::new();
    let rules = tools.len();
    for (name, command) in tools {
        eprintln!("== {name}");
        match command {
            None => eprintln!("{name} is not installed, so it is left out"),
            Some(mut command) => {
                let status = command.status().with_context(|| format!("cannot run {name}"))?;
                if !status.success() {
                    broken.push(name);
                }
            }
        }
    }
    Ok(Verdict { rules, broken })
}

/// Checks the rules that reading the sources shows, in seconds, and says what breaks them.
///
/// # Errors
/// When a tool can't be run, or git.
pub fn check(workspace: &Workspace) -> Result<Verdict> {
    let Verdict { mut rules, mut broken } = run_all(vec![formatter(workspace)])?;
    let findings = inspect(workspace)?;
    report(&findings);
    let outdated = manual::outdated(workspace)?;
    if !outdated.is_empty() {
        println!("== xtask/help: {} differ; ./baton lint --accept mends it", outdated.join(", "));
    }
    let long = known::differences(&findings);
    let bools = known::bool_differences(&findings);
    long.iter().chain(&bools).for_each(|line| println!("{line}"));
    let found = [
        (findings.unsafe_elsewhere.is_empty(), "unsafe outside its places"),
        (long.is_empty(), "files or functions that are too long"),
        (bools.is_empty(), "parameters of the kernel's that are only true or false"),
        (findings.arrows.broken().is_empty(), "rooms of the kernel that know what is above them"),
        (findings.unreadable.is_empty(), "unreadable Rust"),
        (outdated.is_empty(), "help that is not the command line's"),
    ];
    rules += found.len();
    broken.extend(found.iter().filter(|(kept, _)| !kept).map(|(_, rule)| (*rule).to_owned()));
    Ok(Verdict { rules, broken })
}

/// Prints the findings.
fn report(findings: &Findings) {
    println!("== files over {MAX_FILE_LINES} lines: {}", findings.long_files.len());
    for (file, lines) in &findings.long_files {
        println!("{lines:6}  {file}");
    }
    println!("== functions over {MAX_FUNCTION_LINES} lines: {}", findings.long_functions.len());
    for function in &findings.long_functions {
        println!("{:6}  {}:{} {}", function.lines, function.file, function.line, function.name);
    }
    ui::print(&format!("== {}", findings.unsafe_line()));
    for place in &findings.unsafe_elsewhere {
        println!("{place}: unsafe may only stand in {}", UNSAFE_PLACES.join(", "));
    }
    println!(
        "== functions of the kernel with a parameter that is only true or false: {}, each with its reason",
        findings.bool_parameters.len()
    );
    let (arrows, upward) = findings.arrows.count();
    println!("== arrows between rooms of the kernel: {arrows}, {upward} of them up");
    for arrow in findings.arrows.broken() {
        println!("{arrow}");
    }
    for file in &findings.unreadable {
        println!("{file}: this file cannot be parsed as Rust");
    }
}

/// A rule that another tool checks, and how; no command if the tool is not installed.
type Tool = (String, Option<Command>);

/// The formatter.
fn formatter(workspace: &Workspace) -> Tool {
    let mut fmt = workspace.cargo();
    fmt.args(["fmt", "--all", "--check", "--", "-l"]); // the files; `cargo fmt` mends them
    ("cargo fmt".to_owned(), installed(workspace, "fmt").then_some(fmt))
}

/// Clippy: what runs on Baton, then the host's crates, whose folder others may be compiling in.
fn clippy(workspace: &Workspace) -> Result<Vec<Tool>> {
    if !installed(workspace, "clippy") {
        return Ok(vec![("cargo clippy".to_owned(), None)]);
    }
    let mut host = workspace.cargo();
    host.args(["clippy", "--profile", "tool", "--lib"]);
    for package in workspace.packages()?.into_iter().filter(Package::has_host_library) {
        host.args(["-p", &package.name]);
    }
    let guests = crate::build::inspect(workspace, "clippy")?;
    let all = guests.into_iter().chain([("cargo clippy (host)".to_owned(), host)]);
    let denying = |(title, mut clippy): (String, Command)| {
        clippy.args(["--quiet", "--keep-going", "--"]).args(CLIPPY_DENIES);
        (title, Some(clippy))
    };
    Ok(all.map(denying).collect())
}

/// Whether cargo has the subcommand and it runs.
fn installed(workspace: &Workspace, verb: &str) -> bool {
    let probe = workspace.cargo().args([verb, "--version"]).output();
    probe.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_folders() {
        assert_eq!(crate_of("kernel/src/arch/x86_64/boot.rs"), "kernel");
        assert_eq!(crate_of("servers/root/src/main.rs"), "servers/root");
        assert_eq!(crate_of("kernel/build.rs"), "kernel");
        assert_eq!(crate_of("runtime/tests/x.rs"), "runtime/tests");
    }

    #[test]
    fn unsafe_is_counted_and_placed() {
        let mut findings = Findings::default();
        inspect_rust("kernel/src/arch/x.rs", "fn f() { unsafe { g() } }", &mut findings);
        inspect_rust(
            "kernel/src/ipc.rs",
            "\nunsafe fn f() {}\nunsafe impl T for U {}",
            &mut findings,
        );
        inspect_rust("runtime/src/lib.rs", "unsafe extern \"C\" {}", &mut findings);
        inspect_rust(
            "abi/src/lib.rs",
            "#![forbid(unsafe_code)] // unsafe\nfn f() -> &'static str { \"unsafe\" }",
            &mut findings,
        );
        assert_eq!(findings.unsafe_line(), "unsafe: 4 (kernel 3, runtime 1)");
        assert_eq!(findings.unsafe_elsewhere, ["kernel/src/ipc.rs:2", "kernel/src/ipc.rs:3"]);
    }

    #[test]
    fn broken_files_are_named() {
        let mut findings = Findings::default();
        inspect_rust("a/src/b.rs", "fn f( {", &mut findings);
        assert_eq!(findings.unreadable, ["a/src/b.rs"]);
    }
}
