//! Debian packages, fetched by apt and unpacked under `target/`; nothing is
//! installed on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::ui::Step;
use crate::workspace::Workspace;

/// Where packages are unpacked, each in a folder of its name.
const FOLDER: &str = "linux/packages";

/// Unpacked packages.
#[derive(Clone, Debug)]
pub struct Packages {
    folder: PathBuf,
}

impl Packages {
    /// Sees to it that all of `names` are there; fetches what is not.
    ///
    /// # Errors
    /// apt's or dpkg's words.
    pub fn get(workspace: &Workspace, names: &[&str]) -> Result<Self> {
        let folder = workspace.target(FOLDER)?;
        let is_missing = |name: &&str| !folder.join(name).is_dir();
        let mut missing: Vec<&str> = names.iter().copied().filter(is_missing).collect();
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            let step = Step::start("Debian packages");
            step.say(format!("fetching {} (apt-get download)", missing.join(", ")));
            fetch(&folder, &missing)?;
            step.done(&format!("{} fetched and unpacked", missing.len()));
        }
        Ok(Self { folder })
    }

    /// A file of a package; its path as on an installed system.
    #[must_use]
    pub fn file(&self, package: &str, path: &str) -> PathBuf {
        self.folder.join(package).join(path)
    }
}

/// Downloads and unpacks; a package's folder appears when it is complete.
fn fetch(folder: &Path, names: &[&str]) -> Result<()> {
    let part = folder.join("unpacking");
    let _ = std::fs::remove_dir_all(&part);
    std::fs::create_dir_all(&part).with_context(|| format!("cannot create {}", part.display()))?;
    let hint = "fetch Debian's packages (if they are not found, run `apt-get update` first)";
    run(Command::new("apt-get").args(["download", "-q"]).args(names).current_dir(&part), hint)?;
    for name in names {
        let archive = archive_of(&part, name)?;
        let tree = part.join(name);
        run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&tree), "unpack a package")?;
        std::fs::rename(&tree, folder.join(name))
            .with_context(|| format!("cannot put the package {name} in its place"))?;
    }
    std::fs::remove_dir_all(&part).with_context(|| format!("cannot remove {}", part.display()))
}

/// The file `NAME_VERSION_ARCHITECTURE.deb`.
fn archive_of(dir: &Path, name: &str) -> Result<PathBuf> {
    let prefix = format!("{name}_");
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?.flatten();
    let mut files = entries.map(|entry| entry.path());
    let found = files.find(|path| {
        path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&prefix))
    });
    found.with_context(|| format!("apt-get has fetched no package {name}"))
}

fn run(command: &mut Command, what: &str) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot {what}"))?;
    ensure!(
        output.status.success(),
        "cannot {what}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
