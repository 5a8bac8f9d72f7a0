//! The two machines that run the cases: Debian's kernel and ours, in the same
//! emulator with the same memory, with the same archive.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::cases::Case;
use super::guest;
use super::{Wishes, cpio, initramfs, programs};
use crate::bench;
use crate::compose::{Bootable, Composer, LINUX_SYSTEM, Selection};
use crate::machine::{self, Boot, Console};
use crate::workspace::Workspace;

/// Memory of both, MiB, where nobody says more.
pub const MEMORY_MB: u32 = 1024;
/// Nothing but the cases on the console. Linux does not test at its start whether the timer is wired
/// right: on a busy host the emulator's ticks come late, and it gives up.
const LINUX_WORDS: &str =
    "console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off no_timer_check rdinit=/test/bin/";

/// The line that runs `command` in a session with the console as its terminal, as `init.c`
/// does on Linux: shells look for one. The first shell stays, and waits for it.
fn own_session(command: &str) -> String {
    format!("setsid -c {command} </dev/console; exit $?")
}

fn options(words: &str, cpus: u32, memory: u32, cases: &[&Case]) -> machine::Options {
    machine::Options {
        memory: Some(memory),
        cpus: Some(cpus),
        icount: cases.iter().any(|case| case.counted),
        kernel_args: words.split_whitespace().map(str::to_owned).collect(),
        ..machine::Options::default()
    }
}

/// Debian's kernel.
pub struct Linux {
    kernel: PathBuf,
    image: PathBuf,
    cpus: u32,
    memory: u32,
}

impl Linux {
    /// Fetches the kernel on first use.
    ///
    /// # Errors
    /// When the package cannot be had.
    pub fn prepare(workspace: &Workspace) -> Result<Self> {
        let kernel = bench::linux::kernel(&workspace.target("bench/linux")?)?;
        let image = workspace.target("linux")?.join("linux.cpio");
        Ok(Self { kernel, image, cpus: 1, memory: MEMORY_MB })
    }

    /// The same with so many processors.
    #[must_use]
    pub fn with(self, cpus: u32) -> Self {
        Self { cpus, ..self }
    }

    /// The same with so much memory, MiB.
    #[must_use]
    pub fn with_memory(self, memory: u32) -> Self {
        Self { memory, ..self }
    }

    /// The kernel's file name, which has its version.
    #[must_use]
    pub fn name(&self) -> String {
        self.kernel.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The machine that runs `cases`.
    ///
    /// # Errors
    /// When the archive cannot be written.
    pub fn command(&self, archive: &[u8], cases: &[&Case]) -> Result<Command> {
        std::fs::write(&self.image, guest::with_plan(archive, cases)?)
            .with_context(|| format!("cannot write {}", self.image.display()))?;
        let boot = Boot::Pvh { kernel: self.kernel.clone(), image: self.image.clone() };
        machine::command(
            &boot,
            &options(&format!("{LINUX_WORDS}{}", programs::INIT), self.cpus, self.memory, cases),
            Console::Pipe,
        )
    }
}

/// The system of `systems/linux.toml`.
pub struct Baton<'a, 'w> {
    composer: &'a mut Composer<'w>,
    image: PathBuf,
    cpus: u32,
    memory: u32,
}

impl<'a, 'w> Baton<'a, 'w> {
    /// Nothing built yet.
    ///
    /// # Errors
    /// When the build directory cannot be made.
    pub fn prepare(workspace: &Workspace, composer: &'a mut Composer<'w>) -> Result<Self> {
        let image = workspace.target("linux")?.join("baton.cpio");
        Ok(Self { composer, image, cpus: 1, memory: MEMORY_MB })
    }

    /// The same with so many processors.
    #[must_use]
    pub fn with(self, cpus: u32) -> Self {
        Self { cpus, ..self }
    }

    /// The same with so much memory, MiB.
    #[must_use]
    pub fn with_memory(self, memory: u32) -> Self {
        Self { memory, ..self }
    }

    /// A name for what this tree builds: the same as long as kernel, servers and system are.
    ///
    /// # Errors
    /// When something cannot be built or read.
    pub fn fingerprint(&mut self) -> Result<String> {
        let empty = cpio::Archive::default().write()?;
        drop(self.command(&empty, &[])?);
        let Bootable { kernel, image, .. } = self.built()?;
        let read = |path: &PathBuf| {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
        };
        Ok(initramfs::fingerprint(&[&read(&kernel)?, &read(&image)?]))
    }

    /// The machine that runs `cases`.
    ///
    /// # Errors
    /// When something cannot be built or written.
    pub fn command(&mut self, archive: &[u8], cases: &[&Case]) -> Result<Command> {
        std::fs::write(&self.image, guest::with_plan(archive, cases)?)
            .with_context(|| format!("cannot write {}", self.image.display()))?;
        let Bootable { kernel, image, .. } = self.built()?;
        let options = options("", self.cpus, self.memory, cases);
        machine::command(&Boot::Pvh { kernel, image }, &options, Console::Pipe)
    }

    /// The system with the archive that was written last.
    fn built(&mut self) -> Result<Bootable> {
        let selection = Selection {
            system: Some(LINUX_SYSTEM.to_owned()),
            wishes: Wishes {
                exec: Some(own_session(guest::DRIVER)),
                initramfs: Some(self.image.clone()),
                ..Wishes::default()
            },
            fixed_addresses: true,
            ..Selection::default()
        };
        self.composer.compose(&selection, "linux-compare")
    }
}
