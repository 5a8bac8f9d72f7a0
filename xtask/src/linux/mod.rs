//! Ordinary Linux programs on Baton, seen from the host: the first file system, and
//! what is asked of the Unix server.

pub mod cases;
pub mod cpio;
pub mod exec;
pub mod initramfs;
pub mod packages;
pub mod programs;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::workspace::Workspace;

/// What the person asks of the Unix server of a system.
#[derive(Args, Clone, Debug, Default)]
pub struct Wishes {
    /// Run one command in the system's shell and end with its status
    #[arg(long, value_name = "CMD")]
    pub exec: Option<String>,
    /// First file system instead of the system's (a cpio archive, newc)
    #[arg(long, value_name = "FILE")]
    pub initramfs: Option<PathBuf>,
    /// Directory to copy to /share of the first file system
    #[arg(long, value_name = "DIR")]
    pub share: Option<PathBuf>,
    /// The person's terminal: kind, rows, columns
    #[arg(skip)]
    pub terminal: Option<String>,
}

impl Wishes {
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.exec.is_none() && self.initramfs.is_none() && self.share.is_none()
    }

    /// The first file system that is meant, given the system's own.
    ///
    /// # Errors
    /// A sentence when it cannot be built or read.
    pub fn archive(&self, workspace: &Workspace, own: Kind) -> Result<Vec<u8>> {
        let archive = match &self.initramfs {
            Some(file) => initramfs::own(file)?,
            None => own.build(workspace)?,
        };
        match &self.share {
            Some(folder) => initramfs::share(&archive, folder),
            None => Ok(archive),
        }
    }
}

/// The first file systems that this tree can build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// For people.
    #[default]
    Small,
    /// With what the tests need.
    Test,
}

impl Kind {
    /// Builds it and reads it.
    ///
    /// # Errors
    /// When packages or compilers fail.
    pub fn build(self, workspace: &Workspace) -> Result<Vec<u8>> {
        let file = match self {
            Self::Small => initramfs::small(workspace)?,
            Self::Test => initramfs::test(workspace)?,
        };
        std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_own_archive_and_a_shared_directory_go_together() {
        let folder = std::env::temp_dir().join(format!("baton-wishes-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("shared")).unwrap();
        std::fs::write(folder.join("shared/x"), "y").unwrap();
        let mut archive = cpio::Archive::default();
        archive.file("init", 0o755, "mine");
        std::fs::write(folder.join("own"), archive.write().unwrap()).unwrap();
        let wishes = Wishes {
            exec: None,
            initramfs: Some(folder.join("own")),
            share: Some(folder.join("shared")),
            ..Wishes::default()
        };
        let bytes = wishes.archive(&Workspace { root: folder.clone() }, Kind::Small);
        std::fs::remove_dir_all(&folder).unwrap();
        let bytes = bytes.unwrap();
        assert_eq!(cpio::contents(&bytes, "init"), Some(&b"mine"[..]));
        assert_eq!(cpio::contents(&bytes, "share/x"), Some(&b"y"[..]));
        assert!(!wishes.is_empty() && Wishes::default().is_empty());
    }
}
