//! The instrument: builds the emulator's plugin, starts measured programs under it,
//! reads what it counted, and refuses to believe it when the known loops are off.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use object::{Object, ObjectSymbol};

use crate::compose::Bootable;
use crate::machine::{self, Boot, Console, Exit};
use crate::session::{Ended, Session};
use crate::workspace::Workspace;

mod read;

use read::{check, join};
pub use read::{longest_of, pairs};

/// Sources of the plugin, under `bench/host/plugin`.
const SOURCES: [&str; 5] = ["count.c", "decode.c", "handler.c", "shared.c", "stretch.c"];
/// Sources of the tally.
const TALLY: [&str; 2] = ["tally.c", "decode.c"];
/// Entries of the kernel's vector table and bytes of each (kernel/src/arch/x86_64/entry/entry.S, vectors.rs).
const VECTORS_BYTES: u64 = 128 * 16;
/// Those of devices' interrupts, without the timer's.
const DEVICES: Range<u64> = 49 * 16..112 * 16;
/// Bytes of the kernel's pages that are executed in user mode.
const STUBS_BYTES: u64 = 0x2000;
/// Parts of the mangled names of the functions of the kernel's own checker (`kernel::check`, `kernel::mem::check`), and how
/// many the plugin takes.
const CHECKERS: [&str; 2] = ["6kernel5check", "6kernel3mem5check"];
const MAX_CHECKERS: usize = 64;
/// Part of the mangled name of where a visitor's processor stands still.
const STANDS: &str = "8visitors11stand_still";
/// Part of the mangled name of where the kernel goes on with what it had put off.
const RESUME: &str = "5entry6switch6resume";
/// Part of the mangled name of where an interrupt is kept until its handler has acknowledged the one before.
const KEPT: &str = "5lines9keep_back";
/// The line that a measured program closes with.
const CLOSING_LINE: &str = "bench done";

/// One sample: what happened between two marks, by name.
pub type Sample = BTreeMap<String, u64>;

/// One row as the measured program announced it, with its samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// `ops/page-fault`, ...
    pub name: String,
    /// `words=63`, ...
    pub parameters: BTreeMap<String, u64>,
    /// Number of the first sample, and how far apart the samples are.
    pub first: u64,
    /// See `first`.
    pub stride: u64,
    /// In order.
    pub samples: Vec<Sample>,
}

impl Series {
    /// The sample with the fewest instructions, and its number: the one that no
    /// timer tick came into; of ticks themselves, one with exactly one kernel entry, whatever the program did meanwhile.
    #[must_use]
    pub fn best(&self) -> Option<(u64, &Sample)> {
        let ticks = self.name.ends_with("/timer-tick");
        let numbered =
            self.samples.iter().enumerate().filter(|(_, s)| !ticks || count(s, "entries") == 1);
        let user = |sample| if ticks { 0 } else { count(sample, "user") };
        let (index, sample) = numbered.min_by_key(|(_, s)| count(s, "kernel") + user(s))?;
        Some((self.first + index as u64 * self.stride, sample))
    }
}

/// A sample's counter; what is not named did not occur.
#[must_use]
pub fn count(sample: &Sample, name: &str) -> u64 {
    sample.get(name).copied().unwrap_or(0)
}

/// The longest stretch of a kind in a run: with interrupts off, or until a handler runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Instructions.
    pub instructions: u64,
    /// Its number among all instructions of the run.
    pub since: u64,
    /// Address of its first instruction.
    pub from: u64,
    /// Address of the first instruction behind it.
    pub to: u64,
    /// Its blocks of code: address, and instructions spent there.
    pub places: Vec<(u64, u64)>,
    /// The longest of the kernel's checker, which runs on demand and is judged apart.
    pub checker: u64,
}

/// The longest stretches of all kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretches {
    /// With interrupts off.
    pub off: Stretch,
    /// From an interrupt's entry until the kernel is left, for its handler or somebody who is
    /// more urgent.
    pub late: Stretch,
    /// With interrupts off on a processor that is not the first.
    pub elsewhere: Stretch,
    /// Visitors' processors stand still, in instructions of the first one's; if there are several.
    pub stands: Option<Stretch>,
}

impl Stretches {
    fn keep(&mut self, other: Self) {
        let kinds = [
            (&mut self.off, other.off),
            (&mut self.late, other.late),
            (&mut self.elsewhere, other.elsewhere),
        ];
        for (longest, now) in kinds {
            if now.instructions > longest.instructions {
                *longest = now;
            }
        }
        if let Some(now) = other.stands {
            let longest = self.stands.get_or_insert_default();
            if now.instructions >= longest.instructions {
                *longest = now;
            }
        }
    }
}

/// Everything that a run gave.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The rows.
    pub series: Vec<Series>,
    /// The longest stretches.
    pub stretches: Stretches,
    /// Lines `note ...` of the program.
    pub notes: Vec<String>,
    /// Lines of the kernel's.
    pub log: Vec<String>,
    /// The instruction trace, when one was asked for.
    pub trace: Vec<String>,
    /// Names of lines `call ...` of the program, each of which begins a phase.
    pub calls: Vec<String>,
    /// All samples, of several processors mixed.
    pub samples: Vec<Sample>,
}

impl Measured {
    /// The series with this name whose parameters include `parameters`.
    #[must_use]
    pub fn find(&self, name: &str, parameters: &[(&str, u64)]) -> Option<&Series> {
        self.series.iter().find(|s| {
            s.name == name
                && parameters.iter().all(|(key, value)| s.parameters.get(*key) == Some(value))
        })
    }
}

/// What a run is to give besides counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trace {
    /// Nothing.
    #[default]
    None,
    /// The instructions of this sample.
    Sample(u64),
}

/// The plugin, built.
#[derive(Clone, Debug)]
pub struct Instrument {
    plugin: PathBuf,
    dir: PathBuf,
}

impl Instrument {
    /// Builds the plugin unless it is newer than its sources.
    ///
    /// # Errors
    /// The compiler's words.
    pub fn build(workspace: &Workspace) -> Result<Self> {
        let dir = workspace.target("bench")?;
        let plugin = build(workspace, "instrument.so", &SOURCES)?;
        Ok(Self { plugin, dir })
    }

    /// The emulator's `-plugin` argument: counts into `out`, `extra` as the plugin takes it.
    ///
    /// # Errors
    /// When the kernel's symbols cannot be read.
    pub fn argument(&self, kernel: &Path, out: &Path, extra: &str) -> Result<String> {
        let stubs = stubs();
        let mut vectors = String::new();
        for table in ["baton_vectors", "baton_vectors_there"] {
            let at = symbol(kernel, table)?;
            vectors += &format!(",vectors={at:x}-{:x}", at + VECTORS_BYTES);
        }
        let checkers = ranges(kernel, &CHECKERS)?;
        let stands = ranges(kernel, &[STANDS])?;
        let stands: String =
            stands.iter().take(1).map(|(low, high)| format!(",stands={low:x}-{high:x}")).collect();
        let (resume, kept) = (named(kernel, RESUME)?, named(kernel, KEPT)?);
        let window = symbol(kernel, "baton_window")?;
        let vectors_at = symbol(kernel, "baton_vectors")?;
        let (device, device_end) = (vectors_at + DEVICES.start, vectors_at + DEVICES.end);
        let checkers: String =
            checkers.iter().map(|(low, high)| format!(",checker={low:x}-{high:x}")).collect();
        Ok(format!(
            "{},out={},user={:x}-{:x}{vectors}{stands},resume={resume:x},kept={kept:x},device={device:x}-{device_end:x},window={window:x}{checkers}{extra}",
            self.plugin.display(),
            out.display(),
            stubs.start,
            stubs.end
        ))
    }

    /// Boots a measured program and reads what it did.
    ///
    /// # Errors
    /// A sentence when the program did not come to its end, or when the counts of
    /// the known loops in it are wrong.
    pub fn run(
        &self,
        bootable: &Bootable,
        options: &machine::Options,
        limit: Duration,
        trace: Trace,
    ) -> Result<Measured> {
        let measured = self.observe(bootable, options, limit, trace)?;
        check(&measured)?;
        Ok(measured)
    }

    /// The same of a program that has no known loops: whoever calls this looks whether it counts.
    ///
    /// # Errors
    /// A sentence when the program did not come to its end.
    pub fn observe(
        &self,
        bootable: &Bootable,
        options: &machine::Options,
        limit: Duration,
        trace: Trace,
    ) -> Result<Measured> {
        let name = bootable.image.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let out = self.dir.join(format!("{name}.samples"));
        let boot = Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() };
        let options =
            machine::Options { icount: true, cpus: options.cpus.or(Some(1)), ..options.clone() };
        let options = options.at_first_places();
        let mut command = machine::command(&boot, &options, Console::Pipe)?;
        let extra = match trace {
            Trace::None => String::new(),
            Trace::Sample(number) => format!(",trace={number}"),
        };
        let _ = std::fs::remove_file(&out);
        command.arg("-plugin").arg(self.argument(&bootable.kernel, &out, &extra)?);
        let mut session = Session::start(command, limit, false)?;
        let ended = session.wait_for_end(|_| ());
        let console = session.transcript().replace('\r', "");
        let closed = console.lines().any(|line| line == CLOSING_LINE);
        if !closed || ended != Ended::Exited(Exit::Success) {
            let last: Vec<&str> = console.lines().rev().take(6).collect();
            let tail = last.into_iter().rev().collect::<Vec<_>>().join("\n    ");
            bail!(
                "the measured program {name} did not come to its end ({}); its last words:\n    {tail}",
                ended.sentence(limit)
            );
        }
        let counted = std::fs::read_to_string(&out)
            .with_context(|| format!("the instrument left no {}", out.display()))?;
        join(&console, &counted)
    }
}

/// The other plugin, which only says whose how many instructions are (`tally.c`), built.
///
/// # Errors
/// The compiler's words.
pub fn tally(workspace: &Workspace) -> Result<PathBuf> {
    build(workspace, "tally.so", &TALLY)
}

/// The kernel's pages that are executed in user mode.
#[must_use]
pub const fn stubs() -> Range<u64> {
    abi::layout::STUBS..abi::layout::STUBS + STUBS_BYTES
}

/// Builds a plugin unless it is newer than all sources.
fn build(workspace: &Workspace, name: &str, sources: &[&str]) -> Result<PathBuf> {
    let plugin = workspace.target("bench")?.join(name);
    let source = workspace.path("bench/host/plugin");
    if !is_newer(&plugin, &source)? {
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-o"])
            .arg(&plugin);
        gcc.args(sources.iter().map(|file| source.join(file)));
        let output = gcc
            .output()
            .context("cannot run gcc, which builds the instrument; install the package gcc")?;
        ensure!(
            output.status.success(),
            "the instrument (bench/host/plugin) could not be compiled:\n{}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    Ok(plugin)
}

/// Whether `file` exists and is newer than everything in `dir`.
fn is_newer(file: &Path, dir: &Path) -> Result<bool> {
    let Ok(built) = file.metadata().and_then(|m| m.modified()) else { return Ok(false) };
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    Ok(entries
        .flatten()
        .all(|e| e.metadata().and_then(|m| m.modified()).is_ok_and(|time| time < built)))
}

/// The address of a symbol of the kernel.
///
/// # Errors
/// When the file is no ELF file with that symbol.
pub fn symbol(kernel: &Path, name: &str) -> Result<u64> {
    address(kernel, name, |symbol| symbol == name)
}

/// The same by a part of its name.
fn named(kernel: &Path, part: &str) -> Result<u64> {
    address(kernel, part, |symbol| symbol.contains(part))
}

fn address(kernel: &Path, name: &str, is_it: impl Fn(&str) -> bool) -> Result<u64> {
    let bytes =
        std::fs::read(kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
    let file = object::File::parse(&*bytes)
        .with_context(|| format!("{} is no ELF file", kernel.display()))?;
    let found = file
        .symbols()
        .find(|symbol| symbol.name().is_ok_and(&is_it))
        .map(|symbol| symbol.address());
    found.with_context(|| {
        format!("{} has no symbol {name}, which the instrument needs", kernel.display())
    })
}

/// Where the functions are whose mangled names have one of `parts`.
fn ranges(kernel: &Path, parts: &[&str]) -> Result<Vec<(u64, u64)>> {
    let bytes =
        std::fs::read(kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
    let file = object::File::parse(&*bytes)
        .with_context(|| format!("{} is no ELF file", kernel.display()))?;
    let of_them = file.symbols().filter(|symbol| {
        let name = symbol.name().unwrap_or_default();
        symbol.size() > 0 && parts.iter().any(|part| name.contains(part))
    });
    let ranges = of_them.map(|symbol| (symbol.address(), symbol.address() + symbol.size()));
    Ok(ranges.take(MAX_CHECKERS).collect())
}
