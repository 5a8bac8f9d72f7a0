//! Builds what runs on Baton: the kernel, the Rust programs, the C programs.
//!
//! Kernel and programs need different compiler flags, so each has a build
//! directory of its own; nothing is built twice when nothing changed.

mod c;
mod rust;

pub use rust::clippy;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::workspace::Workspace;

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

/// Every program that was built, by name.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    by_name: BTreeMap<String, Program>,
}

impl Programs {
    /// The ELF file of `image`: a built program's name, or a path (relative
    /// paths from the current directory, then from the tree's root).
    ///
    /// # Errors
    /// A sentence that lists the programs there are.
    pub fn find(&self, workspace: &Workspace, image: &str, role: Role) -> Result<PathBuf> {
        if let Some(program) = self.by_name.get(image) {
            return Ok(match role {
                Role::Server => program.as_server.clone(),
                Role::Task => program.as_task.clone(),
            });
        }
        match file(workspace, image) {
            Some(path) => Ok(path),
            None => bail!(
                "there is no program and no file `{image}`; the programs are: {}",
                self.names().collect::<Vec<_>>().join(", ")
            ),
        }
    }

    /// The names of all programs, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Name and file (as a task) of every program.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.by_name.iter().map(|(name, program)| (name.as_str(), program.as_task.as_path()))
    }

    fn add(&mut self, name: &str, as_server: PathBuf, as_task: PathBuf) -> Result<()> {
        let program = Program { as_server, as_task };
        if self.by_name.insert(name.to_owned(), program).is_some() {
            bail!("two programs are called `{name}`; rename one of them");
        }
        Ok(())
    }
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
    rust::kernel(workspace)
}

/// Builds all programs.
///
/// # Errors
/// The compilers' words.
pub fn programs(workspace: &Workspace) -> Result<Programs> {
    let mut programs = Programs::default();
    for (name, elf) in rust::programs(workspace)? {
        programs.add(&name, elf.clone(), elf)?;
    }
    for built in c::programs(workspace)? {
        programs.add(&built.name, built.as_server, built.as_task)?;
    }
    Ok(programs)
}
