//! Debian packages, fetched by apt and unpacked under `target/`; nothing is
//! installed on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::ui::Step;
use crate::workspace::Workspace;

/// Where packages are unpacked, each in a folder of its name.
const FOLDER: &str = "linux/packages";
/// Where source packages are.
const SOURCES: &str = "linux/sources";
/// Debian's archive of sources, as apt wants it said; machines often name only binaries.
const SOURCE_LIST: &str = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                           http://deb.debian.org/debian bookworm main\n";

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
        Self::get_by(workspace, names, fetch)
    }

    /// [`Packages::get`], fetched in a way of the caller's.
    fn get_by(
        workspace: &Workspace,
        names: &[&str],
        fetch: impl Fn(&Path, &[&str]) -> Result<()>,
    ) -> Result<Self> {
        let folder = workspace.target(FOLDER)?;
        if missing(&folder, names).is_empty() {
            return Ok(Self { folder });
        }
        // One at a time: what another invocation has begun is there when it is this one's turn.
        let _alone = workspace.alone("packages")?;
        let missing = missing(&folder, names);
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

/// Those of `names` that are not there yet.
fn missing<'n>(folder: &Path, names: &[&'n str]) -> Vec<&'n str> {
    let is_missing = |name: &&str| !folder.join(name).is_dir();
    let mut missing: Vec<&str> = names.iter().copied().filter(is_missing).collect();
    missing.sort_unstable();
    missing.dedup();
    missing
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

/// The unpacked source package `name`; fetched by apt, with lists of its own, on first use.
///
/// # Errors
/// apt's or tar's words.
pub fn source(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let folder = workspace.target(SOURCES)?;
    let tree = folder.join(name);
    let _alone = workspace.alone("packages")?;
    if tree.is_dir() {
        return Ok(tree);
    }
    let step = Step::start("Debian sources");
    step.say(format!("fetching {name} (apt-get source)"));
    let part = folder.join("unpacking");
    let _ = std::fs::remove_dir_all(&part);
    let unwritable = || format!("cannot write to {}", part.display());
    std::fs::create_dir_all(part.join("lists/partial")).with_context(unwritable)?;
    std::fs::write(part.join("sources.list"), SOURCE_LIST).with_context(unwritable)?;
    let place = |option: &str, at: &str| format!("-o{option}={}", part.join(at).display());
    let options = [
        place("Dir::Etc::SourceList", "sources.list"),
        place("Dir::Etc::SourceParts", "lists/partial"),
        place("Dir::State::Lists", "lists"),
    ];
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(&options).args(words).current_dir(&part);
        run(&mut command, "fetch Debian's sources")
    };
    apt(&["update", "-q"])?;
    apt(&["source", "-q", "--download-only", name])?;
    unpack(&part, name)?;
    std::fs::rename(part.join("tree"), &tree)
        .with_context(|| format!("cannot put the source of {name} in its place"))?;
    std::fs::remove_dir_all(&part).with_context(unwritable)?;
    step.done(&format!("{name} fetched and unpacked"));
    Ok(tree)
}

/// Unpacks `NAME_*.orig.tar.*` to `tree`, and Debian's part into it. Patches are not applied:
/// they are for the program, not for its tests.
fn unpack(part: &Path, name: &str) -> Result<()> {
    let tree = part.join("tree");
    std::fs::create_dir_all(&tree).with_context(|| format!("cannot create {}", tree.display()))?;
    let what = format!("unpack the source of {name}");
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(fetched(part, name, ".orig.tar.")?).arg("--strip-components=1");
    run(tar.arg("-C").arg(&tree), &what)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(fetched(part, name, ".debian.tar.")?);
    run(tar.arg("-C").arg(&tree), &what)
}

/// The file `NAME_*KIND*` of a folder.
fn fetched(folder: &Path, name: &str, kind: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot list {}", folder.display()))?
        .flatten();
    let found = entries.map(|entry| entry.path()).find(|path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        file.starts_with(&format!("{name}_")) && file.contains(kind) && !file.ends_with(".asc")
    });
    found.with_context(|| format!("apt-get has fetched no {name}{kind}*"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// As [`super::fetch`], with packages of nobody's: it takes a while, and has a folder of its own.
    fn slowly(folder: &Path, names: &[&str]) -> Result<()> {
        let part = folder.join("unpacking");
        std::fs::create_dir(&part).context("somebody else is unpacking")?;
        for name in names {
            std::fs::create_dir(part.join(name)).context("cannot unpack")?;
            std::thread::sleep(std::time::Duration::from_millis(30));
            std::fs::rename(part.join(name), folder.join(name)).context("cannot put")?;
        }
        std::fs::remove_dir(&part).context("somebody else has unpacked there")
    }

    #[test]
    fn who_comes_while_packages_are_fetched_waits_and_has_them() {
        let root = std::env::temp_dir().join(format!("baton-packages-{}", std::process::id()));
        let tree = Workspace { root };
        let fetches = AtomicUsize::new(0);
        let get = || {
            Packages::get_by(&tree, &["a", "b", "a"], |folder, names| {
                fetches.fetch_add(1, Ordering::Relaxed);
                slowly(folder, names)
            })
        };
        let results: Vec<Result<Packages>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(get)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let there = tree.path("target").join(FOLDER).join("b").is_dir();
        std::fs::remove_dir_all(&tree.root).unwrap();
        for result in results {
            result.unwrap();
        }
        assert!(there);
        assert_eq!(fetches.into_inner(), 1);
    }
}
