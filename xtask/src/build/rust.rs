//! Cargo for bare metal: kernel and Rust programs, with core and alloc compiled
//! from source.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::cargo::run;
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

/// The profile of what is used and measured.
const RELEASE: &str = "release";
/// The kernel's build directory.
pub const KERNEL_FOLDER: &str = "kernel";
/// That of the programs.
pub const PROGRAMS_FOLDER: &str = "user";
/// The profile of a kernel with its own assertions, as far as it differs.
const ASSERTIONS_ON: [&str; 4] = [
    "profile.release.package.kernel.debug-assertions=true",
    "profile.release.package.kernel.overflow-checks=true",
    "profile.release.package.abi.debug-assertions=true",
    "profile.release.package.abi.overflow-checks=true",
];

/// Begins the build directory `to` with what `from` has of others' crates ([`super::seed::seed`]), or says why not.
pub fn seed(workspace: &Workspace, from: &Path, to: &Path) {
    if let Err(error) = super::seed::seed(workspace, from, to, RELEASE, TRIPLE) {
        eprintln!("{error:#}; so what is there already is compiled again");
    }
}

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
    /// What is to be different from the profile.
    settings: &'static [&'static str],
    /// Which packages, and which binaries of them.
    packages: Vec<String>,
    bins: Vec<String>,
}

impl Batch {
    /// The kernel, alone.
    fn kernel(assertions: Assertions) -> Self {
        let (folder, settings) = match assertions {
            Assertions::Off => (KERNEL_FOLDER, [].as_slice()),
            Assertions::On => ("checked", ASSERTIONS_ON.as_slice()),
        };
        Self {
            folder,
            flags: KERNEL_FLAGS,
            profile: RELEASE,
            settings,
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
            folder: PROGRAMS_FOLDER,
            flags: USER_FLAGS,
            settings: &[],
            profile: match effort {
                Effort::Full => RELEASE,
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
        for setting in self.settings {
            cargo.args(["--config", setting]);
        }
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
    if assertions == Assertions::On {
        seed(workspace, &workspace.target(KERNEL_FOLDER)?, &workspace.target(batch.folder)?);
    }
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
        match log.executables.iter().find(|program| program.name == name) {
            Some(program) => outcome.built.push((name, program.file.clone())),
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
        let mut cargo = Batch::kernel(Assertions::Off).cargo(workspace, verb, KERNEL_FOLDER)?;
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
}
