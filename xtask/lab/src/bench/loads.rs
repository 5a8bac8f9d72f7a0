//! Suite `linux`, its second part: real work of Debian's own programs (`bench/host/linux/loads`), from fork to wait, on
//! both systems under the tally (`bench/host/plugin/tally.c`): how many instructions are the program's, the server's
//! and the kernel's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::instrument::{self, Sample, count};
use super::linux::{self, COMMAND_LINE};
use super::native::compile;
use super::row::{INSTRUMENT, Row};
use super::trace::Symbols;
use crate::compose::{Bootable, Composer, Selection};
use crate::linux::Wishes;
use crate::linux::cpio::Archive;
use crate::linux::packages::Packages;
use crate::machine::{self, Boot, Console};
use crate::session::Session;
use crate::ui::Step;
use crate::workspace::Workspace;

const SOURCE: &str = "bench/host/linux/loads.c";
const SCRIPTS: &str = "bench/host/linux/loads";
/// What they work on.
const PREPARE: &str = "prepare.sh";
/// The sample of a single load's second round: the known loop is sample 0.
const LAST_ROUND: u64 = 2;
/// What a load is called among the rows.
pub const PREFIX: &str = "linux/load-";
const MEMORY_MB: u32 = 1024;
const LIMIT: Duration = Duration::from_secs(1800);
/// User instructions of the known loop, what sets the count included.
const LOOP: u64 = 2_001;
/// Functions that a profile names.
const SHOWN: usize = 40;

/// The programs of the loads and their libraries.
const PACKAGES: [&str; 22] = [
    "bash",
    "coreutils",
    "dash",
    "diffutils",
    "findutils",
    "gawk",
    "git",
    "libacl1",
    "libattr1",
    "libcrypt1",
    "libgmp10",
    "libmpfr6",
    "libpcre2-8-0",
    "libreadline8",
    "libselinux1",
    "libsigsegv2",
    "libsqlite3-0",
    "libtinfo6",
    "make",
    "perl-base",
    "sqlite3",
    "tar",
];
const MORE: [&str; 2] = ["tcc", "zlib1g"];
/// Where programs and libraries are in a package; the rest of it is left out.
const FOLDERS: [&str; 4] = ["bin", "usr/bin", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
/// Of the packages of the C library: what is taken.
const OF_LIBC: [(&str, &str); 9] = [
    ("libc6", "lib/x86_64-linux-gnu"),
    ("libc6", "lib64"),
    ("libc6-dev", "usr/include"),
    ("libc6-dev", "usr/lib/x86_64-linux-gnu/crt1.o"),
    ("libc6-dev", "usr/lib/x86_64-linux-gnu/crti.o"),
    ("libc6-dev", "usr/lib/x86_64-linux-gnu/crtn.o"),
    ("libc6-dev", "usr/lib/x86_64-linux-gnu/libc.so"),
    ("libc6-dev", "usr/lib/x86_64-linux-gnu/libc_nonshared.a"),
    ("libc6-dev", "usr/lib/x86_64-linux-gnu/libm.so.6"),
];

/// What a system made of the loads: names, and the samples behind that of the known loop.
pub(super) struct Ran {
    names: Vec<String>,
    samples: Vec<Sample>,
    places: Vec<(u64, u64)>,
}

/// A machine under the tally.
pub(super) struct Tallied<'a> {
    /// What people are told.
    pub title: &'a str,
    /// What it boots.
    pub boot: Boot,
    /// Words for its kernel.
    pub kernel_args: Vec<String>,
    /// Whose what is, as the tally takes it.
    pub whose: String,
    /// The sample whose places are wanted.
    pub places: Option<u64>,
    /// So many processors that take turns by the emulator's clock; none: one that counts.
    pub cpus: Option<u32>,
}

impl Ran {
    /// The cheapest sample of a load, and its number.
    pub(super) fn best(&self, index: usize) -> Option<(u64, &Sample)> {
        let rounds = (self.samples.len() - 1) / self.names.len();
        let first = 1 + index * rounds;
        let numbered = (first as u64..).zip(self.samples.get(first..first + rounds)?);
        numbered.min_by_key(|(_, sample)| total(sample))
    }

    fn rows(&self, system: &str) -> Vec<Row> {
        let rows = self.names.iter().enumerate().filter_map(|(index, name)| {
            let (_, sample) = self.best(index)?;
            let [program, server, kernel] =
                ["program", "server", "kernel"].map(|whose| count(sample, whose));
            let name = format!("{PREFIX}{name}");
            let row = |name: &str, value: u64| {
                Row::baton("linux", name, value as f64).of(system, INSTRUMENT)
            };
            let whole = row(&name, program + server + kernel)
                .with("program", program.to_string())
                .with("server", server.to_string())
                .with("kernel", kernel.to_string());
            Some([whole, row(&format!("{name}-system"), server + kernel)])
        });
        rows.flatten().collect()
    }
}

/// Whosever it is.
pub(super) fn total(sample: &Sample) -> u64 {
    ["program", "server", "kernel"].iter().map(|whose| count(sample, whose)).sum()
}

/// The rows of both systems.
///
/// # Errors
/// When packages cannot be had, or a load fails.
pub fn rows(workspace: &Workspace) -> Result<Vec<Row>> {
    let plugin = instrument::tally(workspace)?;
    let mut rows = on_linux(workspace, &plugin)?.rows("linux");
    rows.extend(on_baton(&plugin, &bootable(workspace, None)?, None)?.rows("baton"));
    Ok(rows)
}

/// Prints where server and kernel spend a load (its row's name).
///
/// # Errors
/// When there is no such row.
pub fn profile(workspace: &Workspace, wanted: &str) -> Result<()> {
    let plugin = instrument::tally(workspace)?;
    let name = wanted.strip_prefix(PREFIX).unwrap_or(wanted);
    let bootable = bootable(workspace, Some(name))?;
    let ran = on_baton(&plugin, &bootable, Some(LAST_ROUND))?;
    let server = bootable.tasks.iter().find(|(name, _)| name == "unix");
    let (_, server) = server.context("the image has no Unix server")?;
    for (title, file, is_kernel) in
        [("server", server.as_path(), false), ("kernel", bootable.kernel.as_path(), true)]
    {
        let of_it: Vec<(u64, u64)> =
            ran.places.iter().copied().filter(|(at, _)| (at >> 63 == 1) == is_kernel).collect();
        let sources = workspace.path("kernel/src/arch/x86_64");
        let addresses = of_it.iter().map(|place| place.0).collect();
        let symbols = Symbols::at(addresses, file, &sources)?;
        let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
        for (address, times) in &of_it {
            *functions.entry(symbols.own(*address)).or_default() += times;
        }
        let mut functions: Vec<_> = functions.into_iter().collect();
        functions.sort_by_key(|function| std::cmp::Reverse(function.1));
        let sum: u64 = of_it.iter().map(|place| place.1).sum();
        println!("\n{sum} instructions of the {title}:");
        functions.iter().take(SHOWN).for_each(|(name, times)| println!("  {times:10}  {name}"));
    }
    Ok(())
}

/// The first file system of both; `only`: with this load.
fn first_file_system(workspace: &Workspace, only: Option<&str>) -> Result<PathBuf> {
    let dir = workspace.target("bench/linux")?;
    let init = dir.join("init-loads");
    compile(workspace, SOURCE, &["-O2", "-static-pie"], &init)?;
    let names: Vec<&str> =
        PACKAGES.into_iter().chain(MORE).chain(OF_LIBC.iter().map(|part| part.0)).collect();
    let packages = Packages::get(workspace, &names)?;
    let mut archive = Archive::default();
    archive.copy("init", &init)?;
    for package in PACKAGES.into_iter().chain(MORE) {
        for folder in FOLDERS {
            let from = packages.file(package, folder);
            if from.is_dir() {
                archive.copy(folder, &from)?;
            }
        }
    }
    for (package, file) in OF_LIBC {
        let from = packages.file(package, file);
        if from.symlink_metadata().is_ok() {
            archive.copy(file, &from)?;
        }
    }
    archive.link("bin/sh", "dash");
    archive.link("usr/bin/awk", "gawk");
    let scripts = workspace.path(SCRIPTS);
    match only {
        Some(name) => {
            for file in [PREPARE, &format!("{name}.sh")] {
                archive.copy(&format!("loads/{file}"), &scripts.join(file))?;
            }
        }
        None => archive.copy("loads", &scripts)?,
    }
    archive.directory("dev", 0o755);
    let path = dir.join("initramfs-loads");
    std::fs::write(&path, archive.write()?).context("cannot write a first file system")?;
    Ok(path)
}

/// Boots Linux with the loads.
fn on_linux(workspace: &Workspace, plugin: &Path) -> Result<Ran> {
    let kernel = linux::kernel(&workspace.target("bench/linux")?)?;
    let boot = Boot::Pvh { kernel, image: first_file_system(workspace, None)? };
    on_linux_with("loads on linux", boot, None).run(plugin)
}

/// Linux with the first file system in `boot`, where no task is Baton's.
pub(super) fn on_linux_with(title: &str, boot: Boot, cpus: Option<u32>) -> Tallied<'_> {
    let kernel_args = COMMAND_LINE.split(' ').map(str::to_owned).collect();
    Tallied { title, boot, kernel_args, whose: "user=0-0".to_owned(), places: None, cpus }
}

/// The system with the loads.
pub(super) fn bootable(workspace: &Workspace, only: Option<&str>) -> Result<Bootable> {
    let selection = Selection {
        system: Some("linux".to_owned()),
        wishes: Wishes {
            initramfs: Some(first_file_system(workspace, only)?),
            ..Wishes::default()
        },
        fixed_addresses: true,
        ..Selection::default()
    };
    Composer::new(workspace).compose(&selection, "bench-loads")
}

/// Boots Baton with the loads; `places`: the sample whose places are wanted.
fn on_baton(plugin: &Path, bootable: &Bootable, places: Option<u64>) -> Result<Ran> {
    Tallied { places, ..on_baton_with("loads on baton", bootable, None) }.run(plugin)
}

/// Baton with `bootable`.
pub(super) fn on_baton_with<'a>(
    title: &'a str,
    bootable: &Bootable,
    cpus: Option<u32>,
) -> Tallied<'a> {
    let Bootable { kernel, image, servers, tasks, .. } = bootable;
    let boot = Boot::Pvh { kernel: kernel.clone(), image: image.clone() };
    let stubs = instrument::stubs();
    let mut whose = format!("user={:x}-{:x}", stubs.start, stubs.end);
    for own in servers.iter().chain(tasks.iter().map(|(_, file)| file)) {
        whose += &format!(",own={}", own.display());
    }
    Tallied { title, boot, kernel_args: Vec::new(), whose, places: None, cpus }
}

impl Tallied<'_> {
    /// Runs it under the tally `plugin`.
    ///
    /// # Errors
    /// When it does not come to its end, or its known loop is not counted as long as it is.
    pub(super) fn run(self, plugin: &Path) -> Result<Ran> {
        let step = Step::start(self.title);
        step.say("running in the emulator");
        let options = machine::Options {
            icount: self.cpus.is_none(),
            in_turns: self.cpus.is_some(),
            cpus: self.cpus,
            memory: Some(MEMORY_MB),
            kernel_args: self.kernel_args,
            ..machine::Options::default()
        };
        let mut command = machine::command(&self.boot, &options.at_first_places(), Console::Pipe)?;
        let out = plugin.with_extension("samples");
        let _ = std::fs::remove_file(&out);
        let places = self.places.map_or(String::new(), |number| format!(",places={number}"));
        command.arg("-plugin").arg(format!(
            "{},out={},{}{places}",
            plugin.display(),
            out.display(),
            self.whose
        ));
        let mut session = Session::start(command, LIMIT, false)?;
        let ended = session.wait_for_end(|_| ());
        let console = session.transcript().replace('\r', "");
        if !console.contains("bench done") {
            let last: Vec<&str> = console.lines().rev().take(12).collect();
            let tail = last.into_iter().rev().collect::<Vec<_>>().join("\n    ");
            bail!(
                "{} did not come to their end ({}); the last words:\n    {tail}",
                self.title,
                ended.sentence(LIMIT)
            );
        }
        let counted = std::fs::read_to_string(&out)
            .with_context(|| format!("the tally left no {}", out.display()))?;
        let ran = read(&console, &counted)?;
        step.done(&format!("{} loads", ran.names.len()));
        Ok(ran)
    }
}

/// Brings what was printed and what was counted together, once the known loop is as long as it is.
pub(super) fn read(console: &str, counted: &str) -> Result<Ran> {
    let names: Vec<String> =
        console.lines().filter_map(|line| line.strip_prefix("load ")).map(str::to_owned).collect();
    let samples: Vec<Sample> = counted
        .lines()
        .filter_map(|line| line.strip_prefix("sample "))
        .map(instrument::pairs)
        .collect();
    let known = samples.first().map_or(0, |sample| count(sample, "program"));
    ensure!(
        known == LOOP,
        "a loop of {LOOP} instructions is counted as {known}; nothing is reported"
    );
    ensure!(
        !names.is_empty() && (samples.len() - 1).is_multiple_of(names.len()),
        "{} loads have {} samples; nothing is reported",
        names.len(),
        samples.len() - 1
    );
    let places = counted.lines().filter_map(|line| {
        let (address, times) = line.strip_prefix("place ")?.split_once(' ')?;
        Some((u64::from_str_radix(address, 16).ok()?, times.parse().ok()?))
    });
    Ok(Ran { names, samples, places: places.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "load a\nload b\nbench done\n";

    fn counted(known: u64) -> String {
        format!(
            "sample 0 program={known} server=0 kernel=0\nsample 1 program=5 server=9 kernel=1\n\
             sample 2 program=5 server=3 kernel=2\nsample 3 program=1 server=0 kernel=0\n\
             sample 4 program=2 server=0 kernel=0\nplace 400000 7\n"
        )
    }

    #[test]
    fn the_cheapest_round_of_each_load_is_its_row() {
        let ran = read(CONSOLE, &counted(LOOP)).unwrap();
        let rows = ran.rows("baton");
        let named: Vec<(&str, f64)> =
            rows.iter().map(|row| (row.name.as_str(), row.value)).collect();
        assert_eq!(
            named,
            [
                ("linux/load-a", 10.0),
                ("linux/load-a-system", 5.0),
                ("linux/load-b", 1.0),
                ("linux/load-b-system", 0.0)
            ]
        );
        assert_eq!(rows[0].parameters["kernel"], "2");
        assert_eq!((ran.best(0).unwrap().0, ran.places), (2, vec![(0x40_0000, 7)]));
    }

    #[test]
    fn a_tally_that_is_off_by_one_is_refused() {
        assert!(read(CONSOLE, &counted(LOOP - 1)).is_err());
        assert!(read("load a\nload b\nload c\n", &counted(LOOP)).is_err());
    }
}
