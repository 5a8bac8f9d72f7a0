//! Suite `linux`: what people use, in the same emulator with the same flags.
//!
//! Debian's kernel, from its package, boots with an initial file system that holds
//! one static program (`bench/host/linux/init.c`); its time stamp counter counts
//! instructions. The package is fetched once, by apt, and unpacked, not installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::native::compile;
use super::row::{Row, TICKS};
use crate::compose::{Bootable, Composer, Selection};
use crate::linux::Wishes;
use crate::linux::cpio::Archive;
use crate::linux::packages::Packages;
use crate::machine::{self, Console, Exit};
use crate::session::{Ended, Session};
use crate::ui::Step;
use crate::workspace::Workspace;

const PACKAGE: &str = "linux-image-amd64";
const SOURCE: &str = "bench/host/linux/init.c";
const SCRIPT: &str = "bench/host/linux/files.sh";
/// As the figures of the other peers were taken: without the mitigations of
/// processor faults that this emulated processor does not have.
pub(super) const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable";
const LIMIT: Duration = Duration::from_secs(300);

/// Boots Linux and reads its rows.
///
/// # Errors
/// When the kernel package cannot be had, or Linux did not come to the end.
pub fn rows(workspace: &Workspace) -> Result<Vec<Row>> {
    let dir = workspace.target("bench/linux")?;
    let kernel = kernel(&dir)?;
    let init = dir.join("init");
    compile(workspace, SOURCE, &["-O2", "-static"], &init)?;
    let initramfs = dir.join("initramfs");
    std::fs::write(&initramfs, first_file_system(workspace, &init)?.write()?)
        .context("cannot write Linux' initial file system")?;
    let step = Step::start("linux");
    step.say("booting in the emulator");
    let boot = machine::Boot::Pvh { kernel, image: initramfs };
    let options = machine::Options {
        icount: true,
        kernel_args: COMMAND_LINE.split(' ').map(str::to_owned).collect(),
        ..machine::Options::default()
    };
    let command = machine::command(&boot, &options, Console::Pipe)?;
    let mut session = Session::start(command, LIMIT, false)?;
    let ended = session.wait_for_end(|_| ());
    let console = session.transcript();
    if ended != Ended::Exited(Exit::Success) || !console.contains("bench done") {
        let last: Vec<&str> = console.lines().rev().take(8).collect();
        bail!(
            "Linux did not come to its end ({}); its last words, last first:\n    {}",
            ended.sentence(LIMIT),
            last.join("\n    ")
        );
    }
    let rows = read(&console, "linux")?;
    step.done(&format!("{} rows", rows.len()));
    Ok(rows)
}

/// The program, and what it runs: busybox and a script.
fn first_file_system(workspace: &Workspace, init: &Path) -> Result<Archive> {
    let mut archive = Archive::default();
    archive.copy("init", init)?;
    let packages = Packages::get(workspace, &["busybox-static"])?;
    archive.copy("bin/busybox", &packages.file("busybox-static", "bin/busybox"))?;
    for applet in ["sh", "find", "sort", "wc", "grep", "cat", "md5sum", "rm"] {
        archive.link(&format!("bin/{applet}"), "busybox");
    }
    archive.copy("script", &workspace.path(SCRIPT))?;
    archive.directory("dev", 0o755);
    Ok(archive)
}

/// Boots Baton with the same first file system and reads the same rows.
///
/// # Errors
/// When something cannot be built, or Baton did not come to the end.
pub fn rows_of_baton(workspace: &Workspace) -> Result<Vec<Row>> {
    boot_baton(workspace, None, workspace.target("bench/linux")?.join("initramfs"))
}

/// The single calls' rows on Baton and nothing else, for the gate; `kernel`: another than the
/// tree's.
///
/// # Errors
/// As [`rows_of_baton`].
pub fn calls_of_baton(workspace: &Workspace, kernel: Option<PathBuf>) -> Result<Vec<Row>> {
    let dir = workspace.target("bench/linux")?;
    let init = dir.join("init-calls");
    compile(workspace, SOURCE, &["-O2", "-static", "-DONLY_CALLS"], &init)?;
    let mut archive = Archive::default();
    archive.copy("init", &init)?;
    archive.directory("dev", 0o755);
    let initramfs = dir.join("initramfs-calls");
    std::fs::write(&initramfs, archive.write()?).context("cannot write a first file system")?;
    boot_baton(workspace, kernel, initramfs)
}

fn boot_baton(
    workspace: &Workspace,
    kernel: Option<PathBuf>,
    initramfs: PathBuf,
) -> Result<Vec<Row>> {
    let selection = Selection {
        system: Some("linux".to_owned()),
        kernel,
        wishes: Wishes { initramfs: Some(initramfs), ..Wishes::default() },
        fixed_addresses: true,
        ..Selection::default()
    };
    let Bootable { kernel, image, .. } =
        Composer::new(workspace).compose(&selection, "bench-linux")?;
    let step = Step::start("linux on baton");
    step.say("booting in the emulator");
    let boot = machine::Boot::Pvh { kernel, image };
    let options = machine::Options { icount: true, ..machine::Options::default() };
    let command = machine::command(&boot, &options, Console::Pipe)?;
    let mut session = Session::start(command, LIMIT, false)?;
    let ended = session.wait_for_end(|_| ());
    let console = session.transcript().replace('\r', "");
    if !console.contains("bench done") {
        bail!("the program for Linux did not come to its end on Baton ({})", ended.sentence(LIMIT));
    }
    let rows = read(&console, "baton")?;
    step.done(&format!("{} rows", rows.len()));
    Ok(rows)
}

/// The kernel of the package, fetched and unpacked on first use.
pub fn kernel(dir: &Path) -> Result<PathBuf> {
    if let Some(kernel) = find(dir, "boot", "vmlinuz")? {
        return Ok(kernel);
    }
    let step = Step::start("linux");
    step.say("fetching Debian's kernel package (apt-get download)");
    let package = current_package()?;
    run(
        Command::new("apt-get").args(["download", "-q", &package]).current_dir(dir),
        "fetch the package",
    )?;
    let archive = find(dir, ".", "linux-image")?.context("apt-get has fetched no package")?;
    run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(dir), "unpack the package")?;
    let _ = std::fs::remove_file(&archive);
    // The modules are a hundred times larger than the kernel, and not needed.
    let _ = std::fs::remove_dir_all(dir.join("lib"));
    step.done(&package);
    find(dir, "boot", "vmlinuz")?
        .with_context(|| format!("the package {package} has no kernel in boot/"))
}

/// The package that the current `linux-image-amd64` stands for.
fn current_package() -> Result<String> {
    let output = Command::new("apt-cache")
        .args(["depends", "--important", PACKAGE])
        .output()
        .context("cannot run apt-cache: the comparison needs Debian's kernel package")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: linux-image"));
    let package = named.map(|rest| format!("linux-image{rest}")).next();
    package.with_context(|| {
        format!("apt knows no package {PACKAGE}; run `apt-get update` and try again")
    })
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

/// The file in `dir/folder` whose name begins with `prefix`.
fn find(dir: &Path, folder: &str, prefix: &str) -> Result<Option<PathBuf>> {
    let folder = dir.join(folder);
    if !folder.is_dir() {
        return Ok(None);
    }
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files.into_iter().find(|file| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    }))
}

/// `row NAME VALUE [KEY=VALUE ...]`, after the counter has proved itself.
fn read(console: &str, whose: &str) -> Result<Vec<Row>> {
    let system =
        console.lines().find_map(|line| line.strip_prefix("system ")).unwrap_or("Linux").to_owned();
    let check = console.lines().find_map(|line| line.strip_prefix("check "));
    let (wanted, seen) =
        check.and_then(|line| line.split_once(' ')).context("Linux did not check the counter")?;
    ensure!(
        wanted == seen,
        "in Linux the counter shows {seen} for a loop of {wanted} instructions; nothing is reported"
    );
    let mut rows = Vec::new();
    for line in console.lines().filter_map(|line| line.strip_prefix("row ")) {
        let mut words = line.split(' ');
        let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse::<u64>))
        else {
            bail!("Linux printed `{line}`, which is no row");
        };
        let mut row = Row::baton("linux", name, value as f64)
            .of(whose, TICKS)
            .with("version", system.as_str());
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            row = match value.parse::<u64>() {
                Ok(number) => row.with(key, number),
                Err(_) => row.with(key, value),
            };
        }
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_once_the_counter_is_right() {
        let text = "system Linux 6.1\ncheck 2001 2001\nrow linux/getppid 337\nrow linux/pipe-roundtrip 10377 bytes=1\n";
        let rows = read(text, "linux").unwrap();
        assert_eq!(
            (rows[0].name.as_str(), rows[0].value, rows[0].system.as_str()),
            ("linux/getppid", 337.0, "linux")
        );
        assert_eq!(rows[1].parameter("bytes"), Some(1));
        assert!(read(&text.replace("2001 2001", "2001 2002"), "linux").is_err());
        assert!(read("row linux/getppid 337\n", "linux").is_err());
    }
}
