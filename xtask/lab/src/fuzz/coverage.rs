//! Which lines of the kernel ran: the blocks that the coverage instrument
//! (fuzz/host/cover.c) saw, translated by the kernel's line table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::machine::PLUGIN_VARIABLE;
use crate::workspace::Workspace;

/// Where the kernel is linked.
const KERNEL_BASE: u64 = 0xFFFF_FFFF_8000_0000;
const KERNEL_END: u64 = 0xFFFF_FFFF_A000_0000;

/// The instrument, built.
pub struct Cover {
    plugin: PathBuf,
    out: PathBuf,
}

/// Code that ran: start and length of each block.
#[derive(Default)]
pub struct Coverage {
    blocks: BTreeSet<(u64, u64)>,
}

/// Lines of the kernel, each with whether it ran.
#[derive(Default)]
pub struct Lines {
    ran: BTreeMap<(String, u32), bool>,
}

impl Cover {
    /// Builds the instrument.
    ///
    /// # Errors
    /// The compiler's words.
    pub fn build(workspace: &Workspace) -> Result<Self> {
        let dir = workspace.target("fuzz")?;
        let (plugin, out) = (dir.join("cover.so"), dir.join("blocks"));
        let output = Command::new("gcc")
            .args(["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-o"])
            .arg(&plugin)
            .arg(workspace.path("fuzz/host/cover.c"))
            .output()
            .context("cannot run gcc, which builds the instrument; install the package gcc")?;
        ensure!(
            output.status.success(),
            "the instrument (fuzz/host/cover.c) could not be compiled:\n{}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        let _ = std::fs::remove_file(&out);
        Ok(Self { plugin, out })
    }

    /// The emulator's `-plugin` argument.
    #[must_use]
    pub fn argument(&self) -> String {
        format!("{},out={},low={KERNEL_BASE:x}", self.plugin.display(), self.out.display())
    }

    /// The blocks that the last machine (or all since they were last read) ran.
    ///
    /// # Errors
    /// When the instrument left none.
    pub fn read(&self) -> Result<Coverage> {
        let text = std::fs::read_to_string(&self.out)
            .with_context(|| format!("the instrument left no {}", self.out.display()))?;
        let _ = std::fs::remove_file(&self.out);
        Ok(Coverage { blocks: text.lines().filter_map(block).collect() })
    }

    /// The blocks that the tests in the emulator run.
    ///
    /// # Errors
    /// When they cannot be run.
    pub fn of_tests(&self, workspace: &Workspace) -> Result<Coverage> {
        let this = std::env::current_exe().context("cannot tell which program this is")?;
        Command::new(this)
            .args(["test", "--ring", "emulator", "--ring", "system"])
            .env("BATON_ROOT", &workspace.root)
            .env(PLUGIN_VARIABLE, self.argument())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context("cannot run the tests")?;
        self.read()
    }
}

/// `ADDRESS BYTES ...`
fn block(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split(' ');
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let bytes = words.next()?.parse().ok()?;
    (KERNEL_BASE..KERNEL_END).contains(&start).then_some((start, bytes))
}

impl Coverage {
    /// Adds `other`; how many of its blocks were new.
    pub fn add(&mut self, other: &Self) -> usize {
        let before = self.blocks.len();
        self.blocks.extend(&other.blocks);
        self.blocks.len() - before
    }

    fn ran(&self, address: u64) -> bool {
        // Blocks are at most a page long and may overlap.
        let near = self.blocks.range((address.saturating_sub(4096), 0)..=(address, u64::MAX));
        near.rev().any(|(start, bytes)| address < start + bytes)
    }

    /// The lines of the kernel's own sources, by the line table of its ELF file.
    ///
    /// # Errors
    /// When binutils cannot be run.
    pub fn lines(&self, workspace: &Workspace) -> Result<Lines> {
        let kernel = crate::build::kernel(workspace)?;
        let addresses = instructions(&kernel)?;
        let mut child = Command::new("addr2line")
            .arg("-e")
            .arg(&kernel)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run addr2line; install the package binutils")?;
        let mut input = child.stdin.take().context("addr2line takes no input")?;
        let list: String = addresses.iter().fold(String::new(), |mut list, address| {
            let _ = writeln!(list, "{address:#x}");
            list
        });
        let writer = std::thread::spawn(move || input.write_all(list.as_bytes()));
        let output = child.wait_with_output().context("addr2line does not end")?;
        ensure!(writer.join().is_ok_and(|r| r.is_ok()), "addr2line stopped reading");
        let mut lines = Lines::default();
        for (address, place) in
            addresses.iter().zip(String::from_utf8_lossy(&output.stdout).lines())
        {
            if let Some(place) = place_of(place) {
                *lines.ran.entry(place).or_default() |= self.ran(*address);
            }
        }
        Ok(lines)
    }
}

/// The addresses of all instructions of the kernel's text.
fn instructions(kernel: &Path) -> Result<Vec<u64>> {
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(kernel)
        .output()
        .context("cannot run objdump; install the package binutils")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let address = |line: &str| {
        let (address, _) = line.strip_prefix("ffff")?.split_once(":\t")?;
        u64::from_str_radix(&format!("ffff{address}"), 16).ok()
    };
    Ok(text.lines().filter_map(|line| address(line.trim_start())).collect())
}

/// `kernel/src/ipc/send.rs` and the line, for lines of the kernel's own sources.
fn place_of(text: &str) -> Option<(String, u32)> {
    let text = text.split(" (").next()?;
    let (file, line) = text.rsplit_once(':')?;
    let at = file.rfind("/kernel/src/")?;
    let line: u32 = line.parse().ok().filter(|line| *line > 0)?;
    Some((file[at + 1..].to_owned(), line))
}

impl Lines {
    /// Writes the lines that did not run, by file; returns a sentence with the figures.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<String> {
        let reached = self.ran.values().filter(|ran| **ran).count();
        let mut text = String::new();
        let mut files: BTreeMap<&str, (usize, Vec<u32>)> = BTreeMap::new();
        for ((file, line), ran) in &self.ran {
            let entry = files.entry(file).or_default();
            entry.0 += 1;
            if !ran {
                entry.1.push(*line);
            }
        }
        for (file, (all, missed)) in &files {
            let ranges = ranges(missed);
            let percent = 100.0 * (all - missed.len()) as f64 / *all as f64;
            let _ = writeln!(text, "{percent:5.1} %  {file}  {ranges}");
        }
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        let all = self.ran.len().max(1);
        let percent = 100.0 * reached as f64 / all as f64;
        Ok(format!(
            "{reached} of {all} lines of the kernel with code were reached ({percent:.1} %)."
        ))
    }
}

/// `3-5, 9`
fn ranges(lines: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *line => *last = *line,
            _ => parts.push((*line, *line)),
        }
    }
    let words: Vec<String> = parts
        .iter()
        .map(
            |(first, last)| {
                if first == last { first.to_string() } else { format!("{first}-{last}") }
            },
        )
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_their_instructions() {
        let text = "ffffffff80200000 16 4 9\n1000 8 2 1\nffffffff80200020 4 1 1\n";
        let mut coverage = Coverage { blocks: text.lines().filter_map(block).collect() };
        assert_eq!(coverage.blocks.len(), 2, "user code is none of the kernel's");
        assert!(coverage.ran(0xFFFF_FFFF_8020_000F));
        assert!(!coverage.ran(0xFFFF_FFFF_8020_0010));
        assert!(coverage.ran(0xFFFF_FFFF_8020_0020));
        let more = Coverage { blocks: [(0xFFFF_FFFF_8020_0010, 4)].into() };
        assert_eq!(coverage.add(&more), 1);
        assert_eq!(coverage.add(&more), 0);
    }

    #[test]
    fn lines_are_told_by_file() {
        assert_eq!(ranges(&[1, 3, 4, 5, 9]), "1, 3-5, 9");
        let place = place_of("/tree/kernel/src/ipc/send.rs:12 (discriminator 3)");
        assert_eq!(place, Some(("kernel/src/ipc/send.rs".to_owned(), 12)));
        assert_eq!(place_of("/usr/lib/core/num.rs:7"), None);
        assert_eq!(place_of("??:0"), None);
    }
}
