//! Where things are: the source tree, the build directories, the toolchain, and
//! the crates that the tree consists of.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::ui::Step;

/// Folders whose crates and C programs run on Baton rather than on the host.
pub const GUEST_FOLDERS: [&str; 6] = ["servers", "drivers", "apps", "tests", "bench", "fuzz"];

/// Folders of libraries for programs.
const LIBRARY_FOLDERS: [&str; 2] = ["runtime", "lib"];

/// What an SDK has and the tree has not: it says of which Baton the SDK is.
pub const SDK_VERSION: &str = "bin/VERSION";

/// Debian's toolchain, preferred where it exists.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// How long waiting for another invocation is not worth a word, and how often it is looked meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

/// The right to do something that one invocation at a time may do. It ends with this process at
/// the latest, however that ends.
#[must_use]
#[derive(Debug)]
pub struct Alone {
    _file: File,
}

/// The source tree.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Its root.
    pub root: PathBuf,
}

impl Workspace {
    /// Finds the tree: `BATON_ROOT` (set by the launcher), or the nearest
    /// parent of the current directory that holds this tool.
    ///
    /// # Errors
    /// A sentence when the current directory is not inside the tree.
    pub fn find() -> Result<Self> {
        if let Some(root) = std::env::var_os("BATON_ROOT") {
            return Ok(Self { root: root.into() });
        }
        let here = std::env::current_dir().context("cannot tell the current directory")?;
        let root = here.ancestors().find(|dir| dir.join("xtask/Cargo.toml").is_file());
        match root {
            Some(root) => Ok(Self { root: root.to_owned() }),
            None => bail!("{} is not inside a Baton source tree; change into one", here.display()),
        }
    }

    /// Whether it is an SDK rather than Baton's own tree.
    #[must_use]
    pub fn is_sdk(&self) -> bool {
        self.path(SDK_VERSION).is_file()
    }

    /// A path inside the tree.
    #[must_use]
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// A directory for build results, created if need be.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn target(&self, relative: impl AsRef<Path>) -> Result<PathBuf> {
        let dir = self.root.join("target").join(relative);
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("cannot create the build directory {}", dir.display()))?;
        Ok(dir)
    }

    /// Waits until no other `./baton` of this tree does `what`, and keeps others from it until the
    /// result is dropped.
    ///
    /// # Errors
    /// When the file that stands for it cannot be written.
    pub fn alone(&self, what: &str) -> Result<Alone> {
        let path = self.target("locks")?.join(what);
        let cannot = || format!("cannot lock {}", self.show(&path));
        let file = File::create(&path).with_context(cannot)?;
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match file.try_lock() {
                Ok(()) => return Ok(Alone { _file: file }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
                Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
            }
        }
        let step = Step::start("waiting");
        step.say(format!("another ./baton of this tree is at it ({what})"));
        file.lock().with_context(cannot)?;
        step.vanish();
        Ok(Alone { _file: file })
    }

    /// Writes a file so that who reads it meanwhile, or still has it open, sees the old one or the
    /// new one as a whole.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(&self, path: &Path, contents: &[u8]) -> Result<()> {
        let part = path.with_extension(format!("part-{}", std::process::id()));
        std::fs::write(&part, contents)
            .and_then(|()| std::fs::rename(&part, path))
            .with_context(|| format!("cannot write {}", self.show(path)))
    }

    /// `path` as messages show it: relative to the tree where possible.
    #[must_use]
    pub fn show(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// A cargo command of the chosen toolchain, run at the root of the tree.
    #[must_use]
    pub fn cargo(&self) -> Command {
        let (cargo, rustc) = toolchain();
        let mut command = Command::new(cargo);
        if let Some(rustc) = rustc {
            // What describes has to be of the same release as what compiles.
            command.env("RUSTDOC", Path::new(&rustc).with_file_name("rustdoc"));
            command.env("RUSTC", rustc);
        }
        command.current_dir(&self.root).env_remove("RUSTFLAGS").env_remove("CARGO_TARGET_DIR");
        command
    }

    /// Asks cargo which crates the tree has.
    ///
    /// # Errors
    /// When a manifest is broken; cargo's own words are passed on.
    pub fn packages(&self) -> Result<Vec<Package>> {
        let output = self
            .cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .context("cannot run cargo; is it installed?")?;
        ensure!(
            output.status.success(),
            "cargo cannot read the manifests:\n{}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        let metadata: Metadata = serde_json::from_slice(&output.stdout)
            .context("cargo's description of the crates has an unknown form")?;
        Ok(metadata.packages)
    }
}

/// Removes a file, or a folder with all that is in it.
///
/// # Errors
/// When it cannot be removed.
pub fn remove(path: &Path) -> Result<()> {
    let gone =
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    gone.with_context(|| format!("cannot remove {}", path.display()))
}

/// Cargo and, unless cargo finds it by itself, rustc.
fn toolchain() -> (String, Option<String>) {
    if let Ok(cargo) = std::env::var("BATON_CARGO") {
        return (cargo, std::env::var("BATON_RUSTC").ok());
    }
    if Path::new(DEBIAN_CARGO).exists() && Path::new(DEBIAN_RUSTC).exists() {
        return (DEBIAN_CARGO.to_owned(), Some(DEBIAN_RUSTC.to_owned()));
    }
    ("cargo".to_owned(), None)
}

impl Workspace {
    /// The folder of a crate called `name` that is no member of the workspace, if there
    /// is one where programs are.
    ///
    /// # Errors
    /// As [`Workspace::packages`].
    pub fn stray_crate(&self, name: &str) -> Result<Option<String>> {
        let members = self.packages()?;
        let folders = GUEST_FOLDERS.iter().map(|folder| self.path(folder));
        let entries = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
        for entry in entries.flatten() {
            let manifest = entry.path().join("Cargo.toml");
            let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
            let known = members.iter().any(|package| package.manifest_path == manifest);
            if !known && declares(&text, name) {
                return Ok(Some(self.show(&entry.path())));
            }
        }
        Ok(None)
    }
}

/// Whether the manifest `text` is of a crate, or has a program, called `name`.
fn declares(text: &str, name: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    let called = |table: &toml::Value| table.get("name").and_then(|n| n.as_str()) == Some(name);
    let bins = table.get("bin").and_then(|bins| bins.as_array()).into_iter().flatten();
    table.get("package").is_some_and(called) || bins.into_iter().any(called)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A crate of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// What it builds.
    pub targets: Vec<Target>,
    /// `[package.metadata]`.
    #[serde(default)]
    metadata: Option<PackageMetadata>,
}

/// `[package.metadata]`, of which only `baton` matters here.
#[derive(Clone, Debug, Default, Deserialize)]
struct PackageMetadata {
    #[serde(default)]
    baton: BatonMetadata,
}

/// `[package.metadata.baton]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BatonMetadata {
    /// Whether the library's tests run on the host.
    #[serde(default = "yes")]
    host_tests: bool,
}

impl Default for BatonMetadata {
    fn default() -> Self {
        Self { host_tests: true }
    }
}

const fn yes() -> bool {
    true
}

/// One thing that a crate builds.
#[derive(Clone, Debug, Deserialize)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// `lib`, `bin`, `test`, ...
    pub kind: Vec<String>,
    /// Its root source file.
    pub src_path: PathBuf,
    /// Whether `cargo test` covers it.
    pub test: bool,
}

impl Package {
    /// The names of its programs for Baton: binaries without a host `main`.
    #[must_use]
    pub fn guest_programs(&self, workspace: &Workspace) -> Vec<String> {
        if !self.is_in(workspace, &GUEST_FOLDERS) {
            return Vec::new();
        }
        let bins = self.targets.iter().filter(|target| target.kind.iter().any(|k| k == "bin"));
        bins.filter(|bin| is_bare_metal(&bin.src_path)).map(|bin| bin.name.clone()).collect()
    }

    /// Whether it is a library for programs.
    #[must_use]
    pub fn is_guest_library(&self, workspace: &Workspace) -> bool {
        self.is_in(workspace, &LIBRARY_FOLDERS)
    }

    fn is_in(&self, workspace: &Workspace, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.manifest_path.starts_with(workspace.path(folder)))
    }

    /// Whether it has a library whose tests run on the host.
    #[must_use]
    pub fn has_host_library(&self) -> bool {
        let wanted = self.metadata.as_ref().is_none_or(|metadata| metadata.baton.host_tests);
        wanted && self.targets.iter().any(|t| t.test && t.kind.iter().any(|k| k == "lib"))
    }

    /// The names of its integration tests.
    #[must_use]
    pub fn integration_tests(&self) -> Vec<&str> {
        let tests = self.targets.iter().filter(|t| t.test && t.kind.iter().any(|k| k == "test"));
        tests.map(|test| test.name.as_str()).collect()
    }

    /// The root files of its tests: the library, if it is tested on the host, and each integration test.
    pub fn host_tests(&self) -> impl Iterator<Item = &Path> {
        let library = self.has_host_library();
        let is_test = move |t: &&Target| {
            t.test && t.kind.iter().any(|k| k == "test" || k == "lib" && library)
        };
        self.targets.iter().filter(is_test).map(|target| target.src_path.as_path())
    }
}

/// Whether a binary's root file has no host `main`.
fn is_bare_metal(source: &Path) -> bool {
    let text = std::fs::read_to_string(source).unwrap_or_default();
    text.lines().any(|line| line.trim_start().starts_with("#![") && line.contains("no_main"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_under_its_readers() {
        let root = std::env::temp_dir().join(format!("baton-replace-{}", std::process::id()));
        let tree = Workspace { root };
        let path = tree.target("images").unwrap().join("a.img");
        tree.replace(&path, b"old").unwrap();
        let reader = File::open(&path).unwrap();
        tree.replace(&path, b"new one").unwrap();
        let (old, new) = (std::io::read_to_string(reader), std::fs::read_to_string(&path));
        let left = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        std::fs::remove_dir_all(&tree.root).unwrap();
        assert_eq!((old.unwrap().as_str(), new.unwrap().as_str(), left), ("old", "new one", 1));
    }

    #[test]
    fn manifests_are_known_by_crate_and_program() {
        let text = "[package]\nname = \"unix-server\"\n[[bin]]\nname = \"unix\"\n";
        assert!(declares(text, "unix") && declares(text, "unix-server"));
        assert!(!declares(text, "server") && !declares("[package", "unix"));
    }
}
