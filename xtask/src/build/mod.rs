//! Builds what runs on Baton: the kernel, the Rust programs, the C programs.
//!
//! Kernel and programs need different compiler flags, so each has a build
//! directory of its own; nothing is built twice when nothing changed.

mod c;
mod cargo;
mod host;
mod places;
mod rust;
mod seed;

pub use host::{HostTests, host_tests};
use rust::Assertions;
pub use rust::{Effort, KERNEL_FOLDER, PROGRAMS_FOLDER, inspect, inspect_tool, seed};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// What the kernel is called where programs are named.
pub const KERNEL: &str = "kernel";

/// As what a program is going to run: C programs are linked for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Loaded by the kernel at its physical address: σ0 or the root task.
    Server,
    /// Started by the root task.
    Task,
}

/// A built program.
#[derive(Clone, Debug)]
struct Program {
    as_server: PathBuf,
    as_task: PathBuf,
}

/// Programs that were built, by name, and those that could not be.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    by_name: BTreeMap<String, Program>,
    /// Programs with a mistake in them: only who needs one is stopped by it.
    broken: BTreeSet<String>,
    /// What the compilers said of these.
    words: String,
    /// How they are compiled.
    pub effort: Effort,
}

impl Programs {
    /// Builds those of `names` that are programs of the tree and were not built yet.
    ///
    /// # Errors
    /// When the compilers cannot be run at all.
    pub fn build<'a>(
        &mut self,
        workspace: &Workspace,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<()> {
        let fresh = |name: &&str| !self.by_name.contains_key(*name) && !self.broken.contains(*name);
        let names: BTreeSet<String> = names.filter(fresh).map(str::to_owned).collect();
        if names.is_empty() { Ok(()) } else { self.make(workspace, Some(&names)) }
    }

    /// Builds all programs of the tree.
    ///
    /// # Errors
    /// As [`Programs::build`].
    pub fn build_all(&mut self, workspace: &Workspace) -> Result<()> {
        self.make(workspace, None)
    }

    fn make(&mut self, workspace: &Workspace, names: Option<&BTreeSet<String>>) -> Result<()> {
        let wanted = |name: &str| names.is_none_or(|names| names.contains(name));
        let rust = rust::programs(workspace, &wanted, self.effort)?;
        for (name, elf) in rust.built {
            self.add(&name, elf.clone(), elf)?;
        }
        self.broken.extend(rust.broken);
        self.words += &rust.words;
        for (name, built) in c::programs(workspace, &wanted)? {
            match built {
                Ok((as_server, as_task)) => self.add(&name, as_server, as_task)?,
                Err(words) => {
                    self.broken.insert(name);
                    self.words += &format!("{words:#}\n");
                }
            }
        }
        Ok(())
    }

    /// The ELF file of `image`: a built program's name, or a path (relative
    /// paths from the current directory, then from the tree's root).
    ///
    /// # Errors
    /// The compilers' words if it is broken; a sentence that lists the programs there
    /// are if there is none of that name.
    pub fn find(&self, workspace: &Workspace, image: &str, role: Role) -> Result<PathBuf> {
        if let Some(program) = self.by_name.get(image) {
            return Ok(match role {
                Role::Server => program.as_server.clone(),
                Role::Task => program.as_task.clone(),
            });
        }
        if self.broken.contains(image) {
            bail!("the program `{image}` could not be built:\n{}", self.words.trim_end());
        }
        if let Some(path) = file(workspace, image) {
            return Ok(path);
        }
        if let Some(path) = ready(workspace, image) {
            return Ok(path);
        }
        if let Some(folder) = workspace.stray_crate(image)? {
            bail!(
                "there is no program `{image}`: {folder} has a crate of that name, but the \
                 workspace does not know it; add \"{folder}\" to `members` in Cargo.toml"
            );
        }
        bail!("there is no program and no file `{image}`; the programs are: {}", all(workspace)?)
    }

    /// Says what is broken, if anything is.
    ///
    /// # Errors
    /// The compilers' words.
    pub fn complain(&self) -> Result<()> {
        if self.broken.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.broken.iter().map(String::as_str).collect();
        bail!("{}\nnot built: {}", self.words.trim_end(), names.join(", "))
    }

    /// Name and file (as a task) of every program.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.by_name.iter().map(|(name, program)| (name.as_str(), program.as_task.as_path()))
    }

    fn add(&mut self, name: &str, as_server: PathBuf, as_task: PathBuf) -> Result<()> {
        let program = Program { as_server, as_task };
        if let Some(other) = self.by_name.insert(name.to_owned(), program)
            && self.by_name.get(name).is_some_and(|new| new.as_task != other.as_task)
        {
            bail!("two programs are called `{name}`; rename one of them");
        }
        Ok(())
    }
}

/// Where an SDK has programs as they were built elsewhere.
const READY: &str = "bin";

/// A program that came with the SDK, if this is one.
fn ready(workspace: &Workspace, name: &str) -> Option<PathBuf> {
    let plain = !name.contains(['/', '.']);
    Some(workspace.path(READY).join(name)).filter(|path| plain && path.is_file())
}

/// A file named on the command line or in a description, if it exists.
#[must_use]
pub fn file(workspace: &Workspace, name: &str) -> Option<PathBuf> {
    [PathBuf::from(name), workspace.path(name)].into_iter().find(|path| path.is_file())
}

/// Builds the kernel and returns its ELF file.
///
/// # Errors
/// The compiler's words, or a sentence when the tree has no kernel.
pub fn kernel(workspace: &Workspace) -> Result<PathBuf> {
    if let Some(kernel) = ready(workspace, KERNEL).filter(|_| !rust::has_kernel(workspace)) {
        return Ok(kernel);
    }
    places::fill(&rust::kernel(workspace, Assertions::Off)?)
}

/// The same with the kernel's own assertions compiled in.
///
/// # Errors
/// As [`kernel`].
pub fn checked_kernel(workspace: &Workspace) -> Result<PathBuf> {
    places::fill(&rust::kernel(workspace, Assertions::On)?)
}

/// The names of all programs of the tree, built or not.
fn all(workspace: &Workspace) -> Result<String> {
    let mut names = rust::names(workspace)?;
    names.extend(c::names(workspace)?);
    let ready = std::fs::read_dir(workspace.path(READY)).into_iter().flatten().flatten();
    let ready = ready.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.extend(
        ready.filter(|name| ![KERNEL, "VERSION", "xtask", "xtask-lab"].contains(&name.as_str())),
    );
    names.sort();
    Ok(names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_program_stops_only_who_needs_it() {
        let mut programs = Programs::default();
        programs.add("good", "/g".into(), "/g".into()).unwrap();
        programs.broken.insert("bad".to_owned());
        programs.words = "error: expected `)`\n".to_owned();
        let workspace = Workspace { root: std::env::temp_dir() };
        let find = |name| programs.find(&workspace, name, Role::Task);
        assert_eq!(find("good").unwrap(), PathBuf::from("/g"));
        assert!(find("bad").unwrap_err().to_string().contains("expected `)`"));
        assert!(programs.complain().unwrap_err().to_string().ends_with("not built: bad"));
        assert!(Programs::default().complain().is_ok());
        let twice = programs.add("good", "/x".into(), "/x".into()).unwrap_err().to_string();
        assert!(twice.contains("two programs are called `good`"), "{twice}");
    }
}
