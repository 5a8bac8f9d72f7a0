//! Cargo for bare metal: kernel and Rust programs, with core and alloc compiled
//! from source.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::ui::Step;
use crate::workspace::Workspace;

/// The target triple of everything that runs on Baton.
const TRIPLE: &str = "x86_64-unknown-none";
/// Flags of every bare-metal crate: plain ld, fixed addresses. What the linker resolved stays in the
/// file: the list of what changes when the program moves is made of it (`places.rs`).
const USER_FLAGS: &str =
    "-Clinker=ld -Clinker-flavor=ld -Crelocation-model=static -Clink-arg=--emit-relocs";
/// The kernel lies in the top 2 GiB.
const KERNEL_FLAGS: &str =
    "-Clinker=ld -Clinker-flavor=ld -Crelocation-model=static -Ccode-model=kernel";

/// Whether the kernel's own assertions are compiled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assertions {
    /// As it is used.
    Off,
    /// As some tests run it.
    On,
}

/// How much the compiler is to do for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// Everything: what is measured.
    #[default]
    Full,
    /// Little, so that it takes seconds.
    Quick,
}

/// A set of bare-metal crates that are compiled with the same flags.
struct Batch {
    /// Build directory under `target/`.
    folder: &'static str,
    flags: &'static str,
    profile: &'static str,
    /// Which packages, and which binaries of them.
    packages: Vec<String>,
    bins: Vec<String>,
}

impl Batch {
    /// The kernel, alone.
    fn kernel(assertions: Assertions) -> Self {
        Self {
            folder: "kernel",
            flags: KERNEL_FLAGS,
            profile: match assertions {
                Assertions::Off => "release",
                Assertions::On => "checked",
            },
            packages: vec!["kernel".to_owned()],
            bins: vec!["baton-kernel".to_owned()],
        }
    }

    /// The programs of the tree that are wanted; `None` if there are none.
    fn programs(
        workspace: &Workspace,
        wanted: &dyn Fn(&str) -> bool,
        effort: Effort,
    ) -> Result<Option<Self>> {
        let mut batch = Self {
            folder: "user",
            flags: USER_FLAGS,
            profile: match effort {
                Effort::Full => "release",
                Effort::Quick => "quick",
            },
            packages: Vec::new(),
            bins: Vec::new(),
        };
        for package in workspace.packages()? {
            let mut programs = package.guest_programs(workspace);
            programs.retain(|name| wanted(name));
            if !programs.is_empty() {
                batch.packages.push(package.name);
                batch.bins.extend(programs);
            }
        }
        Ok((!batch.bins.is_empty()).then_some(batch))
    }

    /// `cargo VERB` for the batch, into `target/FOLDER`.
    fn cargo(&self, workspace: &Workspace, verb: &str, folder: &str) -> Result<Command> {
        let mut cargo = workspace.cargo();
        cargo
            .args([verb, "--profile", self.profile, "-Zbuild-std=core,alloc", "--target", TRIPLE])
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", self.flags)
            .env("CARGO_TARGET_DIR", workspace.target(folder)?);
        for package in &self.packages {
            cargo.args(["-p", package]);
        }
        for bin in &self.bins {
            cargo.args(["--bin", bin]);
        }
        Ok(cargo)
    }

    /// Where cargo puts its results.
    fn output(&self, workspace: &Workspace) -> Result<PathBuf> {
        Ok(workspace.target(self.folder)?.join(TRIPLE).join(self.profile))
    }
}

/// Whether the tree has a kernel to build.
pub(super) fn has_kernel(workspace: &Workspace) -> bool {
    workspace.path("kernel/src/main.rs").is_file()
}

/// Builds the kernel.
pub fn kernel(workspace: &Workspace, assertions: Assertions) -> Result<PathBuf> {
    ensure!(
        has_kernel(workspace),
        "this tree has no kernel/src/main.rs, so there is no kernel to build"
    );
    let batch = Batch::kernel(assertions);
    let log = run(&mut batch.cargo(workspace, "build", batch.folder)?, "the kernel")?;
    ensure!(log.success, "the build of the kernel failed:\n{}", log.words());
    Ok(batch.output(workspace)?.join("baton-kernel"))
}

/// What became of the programs that were wanted.
#[derive(Default)]
pub struct Outcome {
    /// Names and files.
    pub built: Vec<(String, PathBuf)>,
    /// Names of those that have a mistake in them.
    pub broken: Vec<String>,
    /// What the compiler said.
    pub words: String,
}

/// Builds the wanted Rust programs; a broken one does not keep the others from it.
pub fn programs(
    workspace: &Workspace,
    wanted: &dyn Fn(&str) -> bool,
    effort: Effort,
) -> Result<Outcome> {
    let Some(batch) = Batch::programs(workspace, wanted, effort)? else {
        return Ok(Outcome::default());
    };
    let mut cargo = batch.cargo(workspace, "build", batch.folder)?;
    cargo.args(["--keep-going", "--message-format=json-render-diagnostics"]);
    let log = run(&mut cargo, "the programs")?;
    let mut outcome = Outcome::default();
    for name in batch.bins {
        match log.executables.get(&name) {
            Some(file) => outcome.built.push((name, file.clone())),
            None => outcome.broken.push(name),
        }
    }
    if !log.success {
        ensure!(!outcome.broken.is_empty(), "cargo failed:\n{}", log.words());
        outcome.words = log.words() + "\n";
    }
    Ok(outcome)
}

/// The names of all Rust programs.
pub fn names(workspace: &Workspace) -> Result<Vec<String>> {
    let batch = Batch::programs(workspace, &|_| true, Effort::Full)?;
    Ok(batch.map_or_else(Vec::new, |batch| batch.bins))
}

/// The commands that show everything that runs on Baton, libraries included, to a verb of
/// cargo's that compiles nothing to the end (`check`, `clippy`), each with its title.
pub fn inspect(workspace: &Workspace, verb: &str) -> Result<Vec<(String, Command)>> {
    let mut commands = Vec::new();
    if has_kernel(workspace) {
        let mut cargo = Batch::kernel(Assertions::Off).cargo(workspace, verb, "kernel")?;
        cargo.arg("--lib");
        commands.push((format!("cargo {verb} (kernel)"), cargo));
    }
    if let Some(mut batch) = Batch::programs(workspace, &|_| true, Effort::Full)? {
        let libraries = workspace.packages()?.into_iter().filter(|p| p.is_guest_library(workspace));
        batch.packages.extend(libraries.map(|package| package.name));
        let mut cargo = batch.cargo(workspace, verb, batch.folder)?;
        cargo.arg("--lib");
        commands.push((format!("cargo {verb} (programs)"), cargo));
    }
    Ok(commands)
}

/// The same for the tool itself.
pub fn inspect_tool(workspace: &Workspace, verb: &str) -> Result<(String, Command)> {
    let mut cargo = workspace.cargo();
    cargo
        .args([verb, "--profile", "tool", "--all-targets", "-p", "xtask", "-p", "xtask-lab"])
        .env("CARGO_TARGET_DIR", workspace.target("lint-tool")?);
    Ok((format!("cargo {verb} (tool)"), cargo))
}

/// What cargo said.
struct Log {
    success: bool,
    lines: Vec<String>,
    /// Programs that are up to date now, by name.
    executables: BTreeMap<String, PathBuf>,
}

impl Log {
    fn words(&self) -> String {
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
fn run(cargo: &mut Command, what: &str) -> Result<Log> {
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
fn executables(messages: impl Read) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for line in BufReader::new(messages).lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Message>(&line) else { continue };
        if let (Some(target), Some(file)) = (message.target, message.executable) {
            found.insert(target.name, file);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with two programs, one of which no compiler takes.
    fn tree(name: &str) -> Workspace {
        let root = std::env::temp_dir().join(format!("baton-{name}-{}", std::process::id()));
        let put = |file: &str, text: &str| {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(
            "Cargo.toml",
            "[workspace]\nresolver = \"2\"\nmembers = [\"apps/good\", \"apps/bad\"]\n",
        );
        for (program, text) in [("good", ""), ("bad", "fn f( {"), ("stray", "")] {
            let manifest = format!("[package]\nname = \"{program}\"\nedition = \"2024\"\n");
            put(&format!("apps/{program}/Cargo.toml"), &manifest);
            put(
                &format!("apps/{program}/src/main.rs"),
                &format!("#![no_std]\n#![no_main]\n{text}"),
            );
        }
        Workspace { root }
    }

    #[test]
    fn what_is_compiled_quickly_lies_beside_what_is_measured() {
        let tree = tree("quick");
        let [full, quick] = [Effort::Full, Effort::Quick].map(|effort| {
            let batch = Batch::programs(&tree, &|_| true, effort).unwrap().unwrap();
            let cargo = batch.cargo(&tree, "build", batch.folder).unwrap();
            let words: Vec<_> = cargo.get_args().map(|word| word.to_owned()).collect();
            (batch.output(&tree).unwrap(), words[2].clone())
        });
        std::fs::remove_dir_all(&tree.root).unwrap();
        assert_eq!((full.1, quick.1), ("release".into(), "quick".into()));
        assert!(full.0.ends_with("user/x86_64-unknown-none/release"), "{full:?}", full = full.0);
        assert!(quick.0.ends_with("user/x86_64-unknown-none/quick"), "{quick:?}", quick = quick.0);
    }

    #[test]
    fn only_programs_that_are_wanted_are_built() {
        let tree = tree("wanted");
        let bins = |wanted: &dyn Fn(&str) -> bool| {
            Batch::programs(&tree, wanted, Effort::Full)
                .unwrap()
                .map(|batch| (batch.packages, batch.bins))
        };
        let good = vec!["good".to_owned()];
        let (one, none) = (bins(&|name| name == "good"), bins(&|name| name == "other"));
        let all = names(&tree).unwrap();
        let hint = tree.stray_crate("stray").unwrap();
        let member = tree.stray_crate("good").unwrap();
        std::fs::remove_dir_all(&tree.root).unwrap();
        assert_eq!(one, Some((good.clone(), good)));
        assert_eq!(none, None);
        assert_eq!(all.len(), 2);
        assert_eq!((hint.as_deref(), member), (Some("apps/stray"), None));
    }

    #[test]
    fn what_is_compiled_is_read_without_its_colours() {
        let coloured = "\x1B[0m\x1B[1m\x1B[32m   Compiling\x1B[0m abi v0.1.0".to_owned();
        assert!(is_compiling(&console::strip_ansi_codes(&coloured)));
        let warning = "\x1B[33mwarning\x1B[0m: unused".to_owned();
        let log = Log {
            success: true,
            lines: vec![coloured, warning.clone()],
            executables: BTreeMap::new(),
        };
        assert_eq!(log.words(), warning);
    }

    #[test]
    fn finished_programs_are_read_from_cargos_messages() {
        let text = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"a\"},\"executable\":null}\n\
                    {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"b\"},\"executable\":\"/x/b\"}\n\
                    not json\n{\"reason\":\"build-finished\",\"success\":false}\n";
        let found = executables(text.as_bytes());
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("b".to_owned(), PathBuf::from("/x/b"))]
        );
    }
}
