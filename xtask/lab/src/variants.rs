//! Kernels that differ from the tree's in one source file: built from a copy of the
//! tree, so that the tree itself is never touched and nothing is built twice.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use regex::Regex;

use crate::build;
use crate::workspace::{self, Alone, Workspace};

/// What a kernel is built from.
const FOLDERS: [&str; 2] = ["abi", "kernel"];

/// The copy, of which there is one; nobody else has it meanwhile.
pub struct Variants<'a> {
    _alone: Alone,
    tree: &'a Workspace,
    copy: Workspace,
    kernels: PathBuf,
}

impl<'a> Variants<'a> {
    /// Copies the kernel's sources. Unchanged files keep their times, so that only
    /// what changed is built again.
    ///
    /// # Errors
    /// When something cannot be read or written.
    pub fn copy(tree: &'a Workspace) -> Result<Self> {
        let alone = tree.alone("variants")?;
        let root = tree.target("bench/variants/tree")?;
        for folder in FOLDERS {
            copy_folder(&tree.path(folder), &root.join(folder))?;
        }
        write(&root.join("Cargo.lock"), &read(&tree.path("Cargo.lock"))?)?;
        let manifest = String::from_utf8_lossy(&read(&tree.path("Cargo.toml"))?).into_owned();
        let members = Regex::new(r"(?m)^members = \[[^\]]*\]")?;
        let list = format!("members = {FOLDERS:?}");
        // Cargo warns of what is said about packages that are not there.
        let others = Regex::new(r"(?m)^\[profile\.tool\.package\.[a-z_-]+\]\n(?:[^\[\n].*\n)*")?;
        let manifest = others.replace_all(&manifest, "");
        write(&root.join("Cargo.toml"), members.replace(&manifest, list.as_str()).as_bytes())?;
        let kernels = tree.target("bench/variants")?;
        let folder = build::KERNEL_FOLDER;
        build::seed(tree, &tree.target(folder)?, &root.join("target").join(folder));
        Ok(Self { _alone: alone, tree, copy: Workspace { root }, kernels })
    }

    /// A source file as it is in the tree.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn original(&self, file: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&read(&self.tree.path(file))?).into_owned())
    }

    /// Builds the kernel with `text` for `file`; afterwards the copy is as the tree.
    ///
    /// # Errors
    /// The compiler's words.
    pub fn build(&self, name: &str, file: &str, text: &str) -> Result<PathBuf> {
        write(&self.copy.path(file), text.as_bytes())?;
        let built = build::kernel(&self.copy);
        let kept = self.kernels.join(format!("kernel-{name}"));
        let kept = built.and_then(|built| {
            std::fs::copy(&built, &kept)
                .with_context(|| format!("cannot keep the kernel {name}"))?;
            Ok(kept)
        });
        write(&self.copy.path(file), self.original(file)?.as_bytes())?;
        kept
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes unless the file is like that already.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
    }
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies everything in `from`, and takes away what is no longer there.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let entries =
        std::fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?;
    for entry in entries.flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else {
            write(&target, &read(&path)?)?;
        }
    }
    for entry in std::fs::read_dir(to).into_iter().flatten().flatten() {
        if !from.join(entry.file_name()).exists() {
            workspace::remove(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_follows_the_original() {
        let dir = std::env::temp_dir().join(format!("baton-variants-{}", std::process::id()));
        let (from, to) = (dir.join("from"), dir.join("to"));
        std::fs::create_dir_all(from.join("a")).unwrap();
        std::fs::write(from.join("a/one"), "1").unwrap();
        std::fs::write(from.join("two"), "2").unwrap();
        copy_folder(&from, &to).unwrap();
        let first = to.join("a/one").metadata().unwrap().modified().unwrap();
        std::fs::remove_file(from.join("two")).unwrap();
        copy_folder(&from, &to).unwrap();
        assert!(!to.join("two").exists());
        assert_eq!(std::fs::read_to_string(to.join("a/one")).unwrap(), "1");
        assert_eq!(to.join("a/one").metadata().unwrap().modified().unwrap(), first);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
