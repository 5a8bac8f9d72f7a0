//! Begins a build folder with what another one has of crates that nobody changes here: of the standard library, and
//! of what comes from a registry. Cargo looks at each as at its own; what does not fit is compiled.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::path::Path;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Crates of the standard library that are compiled for programs without a system below them.
const STANDARD: [&str; 3] = ["core", "alloc", "compiler_builtins"];
/// What cargo has of crates. Its notes come first: who has a note has all of it.
const PARTS: [&str; 3] = [".fingerprint", "build", "deps"];

/// Copies to the build folder `to`, if there is none yet, such crates of `workspace` as the folder `from` has for
/// `profile`, for the host and for `triple`: all at once, or nothing.
///
/// # Errors
/// When something cannot be read or written. Then all is compiled that is needed.
pub fn seed(
    workspace: &Workspace,
    from: &Path,
    to: &Path,
    profile: &str,
    triple: &str,
) -> Result<()> {
    let _alone = workspace.alone("seed")?;
    if to.join(profile).exists() || to.join(triple).exists() {
        return Ok(());
    }
    let crates = others(&fs::read_to_string(workspace.path("Cargo.lock")).unwrap_or_default());
    let begun = to.join("begun");
    let _ = fs::remove_dir_all(&begun);
    for place in [Path::new(profile).to_path_buf(), Path::new(triple).join(profile)] {
        for part in PARTS {
            let (from, to) = (from.join(&place).join(part), begun.join(&place).join(part));
            for entry in entries(&from).filter(|entry| is_of(&crates, entry)) {
                copy(&entry.path(), &to.join(entry.file_name()))
                    .with_context(|| format!("cannot copy {}", entry.path().display()))?;
            }
        }
    }
    for name in [profile, triple] {
        if begun.join(name).exists() {
            fs::rename(begun.join(name), to.join(name))
                .with_context(|| format!("cannot move {name} to {}", to.display()))?;
        }
    }
    let _ = fs::remove_dir_all(&begun);
    Ok(())
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// The names, as the compiler has them, of those that `lock` says are from elsewhere.
fn others(lock: &str) -> BTreeSet<String> {
    let packages = lock.split("[[package]]").filter(|package| package.contains("\nsource = "));
    let names = packages.filter_map(|package| package.split('"').nth(1));
    names.chain(STANDARD).map(compiled_name).collect()
}

/// Cargo's notes have the name of the package, its results that of the crate.
fn compiled_name(name: &str) -> String {
    name.replace('-', "_")
}

/// Whether a file or folder, `libNAME-HASH.rlib` or `NAME-HASH`, is of one of `crates`.
fn is_of(crates: &BTreeSet<String>, entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let Some((name, _)) = name.to_str().and_then(|name| name.rsplit_once('-')) else {
        return false;
    };
    let name = compiled_name(name);
    crates.contains(&name) || name.strip_prefix("lib").is_some_and(|name| crates.contains(name))
}

/// Copies a file, or all of a folder. Times are kept: cargo tells by them what is newer than its source.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        return entries(from)
            .try_for_each(|entry| copy(&entry.path(), &to.join(entry.file_name())));
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(from.metadata()?.modified()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n\n[[package]]\n\
                        name = \"wit-parser\"\nversion = \"1\"\nsource = \"registry+x\"\n";

    #[test]
    fn what_others_wrote_is_copied_with_its_times() {
        let root = std::env::temp_dir().join(format!("baton-seed-{}", std::process::id()));
        let put = |file: &str| {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, file).unwrap();
        };
        put("Cargo.lock");
        fs::write(root.join("Cargo.lock"), LOCK).unwrap();
        let theirs = [
            "release/build/wit-parser-1/out/a",
            "t/release/.fingerprint/core-2/lib-core",
            "t/release/deps/libcore-2.rlib",
            "t/release/deps/libwit_parser-3.rmeta",
        ];
        let ours =
            ["t/release/deps/libown-4.rlib", "t/release/own", "t/checked/deps/libcore-2.rlib"];
        theirs.iter().chain(&ours).for_each(|file| put(&format!("from/{file}")));
        let workspace = Workspace { root: root.clone() };
        let sow = || seed(&workspace, &root.join("from"), &root.join("to"), "release", "t");
        sow().unwrap();
        let modified = |at: &str| root.join(at).metadata().unwrap().modified().unwrap();
        for file in theirs {
            assert_eq!(modified(&format!("to/{file}")), modified(&format!("from/{file}")));
        }
        assert!(ours.iter().all(|file| !root.join("to").join(file).exists()));
        // Who has a folder keeps it as it is.
        fs::remove_file(root.join("to").join(theirs[2])).unwrap();
        sow().unwrap();
        assert!(!root.join("to").join(theirs[2]).exists());
        fs::remove_dir_all(&root).unwrap();
    }
}
