//! The instrument: builds the emulator's plugin, starts measured programs under it,
//! reads what it counted, and refuses to believe it when the known loops are off.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use object::{Object, ObjectSymbol};

use crate::compose::Bootable;
use crate::machine::{self, Boot, Console, Exit};
use crate::session::{Ended, Session};
use crate::workspace::Workspace;

/// Sources of the plugin, under `bench/host/plugin`.
const SOURCES: [&str; 3] = ["count.c", "decode.c", "stretch.c"];
/// Entries of the kernel's vector table and bytes of each (kernel/src/arch/x86_64/entry.S).
const VECTORS_BYTES: u64 = 48 * 16;
/// Bytes of the kernel's pages that are executed in user mode.
const STUBS_BYTES: u64 = 0x2000;
/// Parts of the mangled names of the checker's functions, and how many the plugin takes.
const CHECKERS: [&str; 2] = ["6kernel5check", "6kernel3mem5check"];
const MAX_CHECKERS: usize = 64;
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
    /// timer tick came into.
    #[must_use]
    pub fn best(&self) -> Option<(u64, &Sample)> {
        let numbered = self.samples.iter().enumerate();
        let (index, sample) =
            numbered.min_by_key(|(_, s)| count(s, "kernel") + count(s, "user"))?;
        Some((self.first + index as u64 * self.stride, sample))
    }
}

/// A sample's counter; what is not named did not occur.
#[must_use]
pub fn count(sample: &Sample, name: &str) -> u64 {
    sample.get(name).copied().unwrap_or(0)
}

/// The longest stretch with interrupts off in a run.
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

/// Everything that a run gave.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The rows.
    pub series: Vec<Series>,
    /// The longest stretch with interrupts off.
    pub stretch: Stretch,
    /// Lines `note ...` of the program.
    pub notes: Vec<String>,
    /// The instruction trace, when one was asked for.
    pub trace: Vec<String>,
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
        let plugin = dir.join("instrument.so");
        let source = workspace.path("bench/host/plugin");
        if !is_newer(&plugin, &source)? {
            let mut gcc = Command::new("gcc");
            gcc.args(["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-o"])
                .arg(&plugin);
            gcc.args(SOURCES.map(|file| source.join(file)));
            let output = gcc
                .output()
                .context("cannot run gcc, which builds the instrument; install the package gcc")?;
            ensure!(
                output.status.success(),
                "the instrument (bench/host/plugin) could not be compiled:\n{}",
                String::from_utf8_lossy(&output.stderr).trim_end()
            );
        }
        Ok(Self { plugin, dir })
    }

    /// The emulator's `-plugin` argument: counts into `out`, `extra` as the plugin takes it.
    ///
    /// # Errors
    /// When the kernel's symbols cannot be read.
    pub fn argument(&self, kernel: &Path, out: &Path, extra: &str) -> Result<String> {
        let vectors = symbol(kernel, "baton_vectors")?;
        let (stubs, vectors_end) = (abi::layout::STUBS, vectors + VECTORS_BYTES);
        let checkers = checkers(kernel)?;
        let checkers: String =
            checkers.iter().map(|(low, high)| format!(",checker={low:x}-{high:x}")).collect();
        Ok(format!(
            "{},out={},user={stubs:x}-{:x},vectors={vectors:x}-{vectors_end:x}{checkers}{extra}",
            self.plugin.display(),
            out.display(),
            stubs + STUBS_BYTES
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
        let name = bootable.image.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let out = self.dir.join(format!("{name}.samples"));
        let boot = Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() };
        let options = machine::Options { icount: true, cpus: 1, ..options.clone() };
        let mut command = machine::command(&boot, &options, Console::Pipe)?;
        let extra = match trace {
            Trace::None => String::new(),
            Trace::Sample(number) => format!(",trace={number}"),
        };
        let _ = std::fs::remove_file(&out);
        command.arg("-plugin").arg(self.argument(&bootable.kernel, &out, &extra)?);
        let mut session = Session::start(command, limit, false)?;
        let ended = session.wait_for_end(|_| ());
        let console = session.transcript();
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
        let measured = join(&console, &counted)?;
        check(&measured)?;
        Ok(measured)
    }
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
    let bytes =
        std::fs::read(kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
    let file = object::File::parse(&*bytes)
        .with_context(|| format!("{} is no ELF file", kernel.display()))?;
    let found =
        file.symbols().find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address());
    found.with_context(|| {
        format!("{} has no symbol {name}, which the instrument needs", kernel.display())
    })
}

/// Where the code of the kernel's own checker is: the functions of the modules
/// `kernel::check` and `kernel::mem::check`, by their mangled names.
fn checkers(kernel: &Path) -> Result<Vec<(u64, u64)>> {
    let bytes =
        std::fs::read(kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
    let file = object::File::parse(&*bytes)
        .with_context(|| format!("{} is no ELF file", kernel.display()))?;
    let of_checker = file.symbols().filter(|symbol| {
        let name = symbol.name().unwrap_or_default();
        symbol.size() > 0 && CHECKERS.iter().any(|part| name.contains(part))
    });
    let ranges = of_checker.map(|symbol| (symbol.address(), symbol.address() + symbol.size()));
    Ok(ranges.take(MAX_CHECKERS).collect())
}

/// Brings the program's rows and the instrument's samples together.
fn join(console: &str, counted: &str) -> Result<Measured> {
    let mut measured = Measured::default();
    let mut samples = Vec::new();
    let mut excused = 0;
    for line in counted.lines() {
        match line.split_once(' ') {
            Some(("sample", rest)) => samples.push(pairs(rest.split(' ').skip(1))),
            Some(("excused", rest)) => excused = rest.parse()?,
            Some(("longest", rest)) => {
                measured.stretch = Stretch { checker: excused, ..stretch(rest)? };
            }
            Some(("place", rest)) => measured.stretch.places.extend(place(rest)),
            Some(("restart", at)) => bail!(
                "the instrument saw two begin marks in a row in sample {at}; the measured program is wrong"
            ),
            Some(("stray", at)) => bail!(
                "the instrument saw an end mark without its begin after sample {at}; the measured program is wrong"
            ),
            Some(("i" | "m", _)) => measured.trace.push(line.to_owned()),
            _ => {}
        }
    }
    for line in console.lines() {
        if let Some(note) = line.strip_prefix("note ") {
            measured.notes.push(note.to_owned());
        }
        if let Some(row) = line.strip_prefix("row ") {
            measured.series.push(series(row, &samples)?);
        }
    }
    Ok(measured)
}

fn pairs<'a>(words: impl Iterator<Item = &'a str>) -> Sample {
    let number =
        |word: &str| word.split_once('=').and_then(|(k, v)| Some((k.to_owned(), v.parse().ok()?)));
    words.filter_map(number).collect()
}

fn series(row: &str, samples: &[Sample]) -> Result<Series> {
    let mut words = row.split(' ');
    let name = words.next().unwrap_or_default().to_owned();
    let mut parameters = pairs(words);
    let mut take = |key: &str| {
        parameters.remove(key).with_context(|| format!("the row `{row}` has no {key}="))
    };
    let (first, count, stride) = (take("first")?, take("count")?, take("stride")?.max(1));
    let picked: Option<Vec<Sample>> =
        (0..count).map(|index| samples.get((first + index * stride) as usize).cloned()).collect();
    let samples = picked.with_context(|| {
        format!("the row `{row}` names samples that the instrument has not seen")
    })?;
    Ok(Series { name, parameters, first, stride, samples })
}

/// `HEX N`
fn place(text: &str) -> Option<(u64, u64)> {
    let (address, instructions) = text.split_once(' ')?;
    Some((u64::from_str_radix(address, 16).ok()?, instructions.parse().ok()?))
}

/// The longest stretch of several machines that wrote into one file.
///
/// # Errors
/// When the file is not the instrument's.
pub fn longest_of(counted: &str) -> Result<(Stretch, usize)> {
    let keep = |longest: &mut Stretch, now: Stretch| {
        if now.instructions > longest.instructions {
            *longest = now;
        }
    };
    let (mut longest, mut now, mut machines) = (Stretch::default(), Stretch::default(), 0);
    let mut excused = 0;
    for line in counted.lines() {
        match line.split_once(' ') {
            Some(("excused", rest)) => excused = excused.max(rest.parse()?),
            Some(("longest", rest)) => {
                keep(&mut longest, std::mem::replace(&mut now, stretch(rest)?));
                machines += 1;
            }
            Some(("place", rest)) => now.places.extend(place(rest)),
            _ => {}
        }
    }
    keep(&mut longest, now);
    longest.checker = excused;
    Ok((longest, machines))
}

/// `N from=HEX to=HEX since=N ...`
fn stretch(text: &str) -> Result<Stretch> {
    let mut words = text.split(' ');
    let instructions = words
        .next()
        .and_then(|n| n.parse().ok())
        .context("the instrument's last line has no number")?;
    let mut stretch = Stretch { instructions, ..Stretch::default() };
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        match key {
            "from" => stretch.from = u64::from_str_radix(value, 16)?,
            "to" => stretch.to = u64::from_str_radix(value, 16)?,
            "since" => stretch.since = value.parse()?,
            _ => {}
        }
    }
    Ok(stretch)
}

/// Compares the known loops, lines and pages with what was counted; without any,
/// there is nothing to believe either.
fn check(measured: &Measured) -> Result<()> {
    let known = measured.series.iter().filter(|series| series.name.starts_with("check/"));
    let mut checked = 0;
    for series in known {
        for (what, counters) in
            [("instructions", "user"), ("lines", "udlines"), ("pages", "udpages")]
        {
            let Some(expected) = series.parameters.get(what) else { continue };
            let seen = series.samples.first().map_or(0, |sample| count(sample, counters));
            ensure!(
                seen == *expected,
                "the instrument counts {seen} {what} where {} has exactly {expected}; nothing is reported. \
                 Is this another version of QEMU than 7.2?",
                series.name
            );
            checked += 1;
        }
    }
    ensure!(
        checked > 0 || measured.series.iter().all(|s| !s.name.starts_with("ipc/")),
        "the measured program has no known loops to check the instrument with"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "boot\nrow check/loop instructions=4 first=0 count=1 stride=1\n\
        row ipc/x words=63 first=1 count=2 stride=2\nnote hello there\nbench done\n";

    fn counted(user: u64) -> String {
        format!(
            "sample 0 user={user} kernel=0\nsample 1 user=1 kernel=40\nsample 2 user=1 kernel=50\n\
             sample 3 user=1 kernel=39 syscall=1\nlongest 77 from=ffffffff80000000 to=10 since=5 total=9 restarts=0\n"
        )
    }

    #[test]
    fn rows_and_samples_are_joined() {
        let measured = join(CONSOLE, &counted(4)).unwrap();
        check(&measured).unwrap();
        let series = measured.find("ipc/x", &[("words", 63)]).unwrap();
        let (number, best) = series.best().unwrap();
        assert_eq!(
            (number, count(best, "kernel"), count(best, "syscall"), count(best, "iret")),
            (3, 39, 1, 0)
        );
        assert_eq!(measured.notes, ["hello there"]);
        let stretch = &measured.stretch;
        assert_eq!(
            (stretch.instructions, stretch.since, stretch.from, stretch.to),
            (77, 5, 0xFFFF_FFFF_8000_0000, 0x10)
        );
    }

    #[test]
    fn an_instrument_that_is_off_by_one_is_refused() {
        for wrong in [3, 5] {
            let error = check(&join(CONSOLE, &counted(wrong)).unwrap()).unwrap_err();
            assert!(error.to_string().contains("exactly 4"), "{error}");
        }
    }

    #[test]
    fn the_longest_of_several_machines_is_found() {
        let text = "longest 5 from=1 to=2 since=3 total=9\nplace 10 5\nlongest 9 from=1 to=2 since=3 total=9\n\
            place 20 4\nplace 30 5\nlongest 7 from=1 to=2 since=3 total=9\nplace 40 7\n";
        let (longest, machines) = longest_of(text).unwrap();
        assert_eq!((longest.instructions, machines), (9, 3));
        assert_eq!(longest.places, [(0x20, 4), (0x30, 5)]);
    }

    #[test]
    fn a_stray_mark_and_a_missing_sample_are_refused() {
        assert!(join(CONSOLE, "stray 0\n").is_err());
        assert!(join(CONSOLE, "sample 0 user=4\n").is_err());
    }
}
