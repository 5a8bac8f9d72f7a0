//! musl's libc-test, from a folder in which it was built for any C library of this machine: its
//! `config.mak` says which. The programs are all that is wanted; they need not have been run.
//!
//! A trial is a program, `src/KIND/NAME.exe`. Its status says it all.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::mark::{self, Mark, Marks};
use super::suite::{Name, Suite, Trial};
use crate::linux::cpio::Archive;
use crate::linux::guest::Ran;
use crate::linux::machines::MEMORY_MB;
use crate::linux::packages::Packages;
use crate::workspace::Workspace;

/// Where programs are, there and here: some name their libraries from where this is.
const KINDS: [&str; 4] = ["functional", "regression", "math", "musl"];
const PLACE: &str = "judge/libc-test";
/// Packages beside the C library of the tests: its other libraries, and musl with its loader.
const BESIDE: [(&str, &str); 2] =
    [("libcrypt1", "lib/x86_64-linux-gnu"), ("musl", "lib/x86_64-linux-musl")];
/// The name of musl's loader in its programs, and what it leads to.
const LOADER: (&str, &str) = ("lib/ld-musl-x86_64.so.1", "/lib/x86_64-linux-musl/libc.so");
/// Most seconds of a program.
const SECONDS: u64 = 60;
const BATCH: usize = 150;

/// The suite in `source`.
///
/// # Errors
/// When it is not there or was not built, or packages cannot be had.
pub fn suite(workspace: &Workspace, source: &Path) -> Result<Suite> {
    let packages = Packages::get(workspace, &BESIDE.map(|part| part.0))?;
    let mut shared = Archive::default();
    for (package, folder) in BESIDE {
        shared.copy(folder, &packages.file(package, folder))?;
    }
    shared.link(LOADER.0, LOADER.1);
    let mut trials = Vec::new();
    for kind in KINDS {
        for (name, file) in files(&source.join("src").join(kind))? {
            let place = format!("{PLACE}/src/{kind}/{name}");
            if name.ends_with(".so") {
                shared.copy(&place, &file)?;
            } else if let Some(name) = name.strip_suffix(".exe") {
                let run = format!("cd /{PLACE}; exec src/{kind}/{name}.exe");
                let mut trial = Trial::new(&format!("{kind}.{name}"), run, SECONDS);
                trial.files.push((place, file));
                trials.push(trial);
            }
        }
    }
    ensure!(
        !trials.is_empty(),
        "{} was not built: it has no programs src/functional/NAME.exe; its README says how to \
         make them",
        source.display()
    );
    Ok(Suite { name: Name::LibcTest, shared, trials, batch: BATCH, memory: MEMORY_MB, read })
}

/// The files of a folder by their names.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("there is nothing to judge in {}", folder.display()))?;
    let mut files: Vec<(String, PathBuf)> = entries
        .flatten()
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect();
    files.sort();
    Ok(files)
}

fn read(name: &str, _: &Ran, status: i32) -> Marks {
    mark::one(name, if status == 0 { Mark::Pass } else { Mark::Fail })
}
