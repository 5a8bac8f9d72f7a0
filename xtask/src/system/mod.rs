//! Reads system descriptions (`systems/*.toml`): which image is σ0, which is the
//! root task, which tasks the root task starts with which rights.
//!
//! A task becomes a program in the boot image; its rights travel in the command
//! line, which the root task reads at run time:
//! `serial priority=200 quota=64 irq=4 ports=0x3f8+8 start=1`.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use bootcfg::Spec;
use serde::Deserialize;
use toml::Spanned;

use crate::linux;
use crate::machine::{MAX_CPUS, MAX_MEMORY_MB, MIN_MEMORY_MB, Wanted};

mod task;

use task::Mistake;
pub use task::{Pager, Task};

/// Longest name of a task or file, bytes.
const MAX_NAME_BYTES: usize = 16;

/// A checked description.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The initial space.
    pub sigma0: ServerEntry,
    /// The root task.
    pub root: ServerEntry,
    /// Processors of the machine, unless the command line says how many.
    cpus: Option<Spanned<u32>>,
    /// Memory of the machine, MiB, unless the command line says how much.
    memory: Option<Spanned<u32>>,
    /// Devices of the machine beside the usual ones, as the emulator names them.
    #[serde(default)]
    devices: Vec<String>,
    /// Tasks, in the order in which the root task sees them.
    #[serde(default, rename = "task")]
    pub tasks: Vec<Task>,
    /// Raw files.
    #[serde(default, rename = "module")]
    pub modules: Vec<Module>,
}

/// σ0 or the root task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerEntry {
    /// Name of a built program, or a path.
    pub image: String,
    /// Words appended to its command line.
    #[serde(default)]
    pub args: String,
}

/// One raw file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Its name in the system.
    pub name: Spanned<String>,
    /// Path, relative to the tree's root.
    file: Option<String>,
    /// A first file system for Linux programs, built when it is needed.
    archive: Option<linux::Kind>,
}

/// Where the bytes of a raw file come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents<'a> {
    /// A path, relative to the tree's root.
    File(&'a str),
    /// A first file system, to be built.
    Archive(linux::Kind),
}

impl Module {
    /// What it holds; `None` if the description says not exactly one thing.
    #[must_use]
    pub fn contents(&self) -> Option<Contents<'_>> {
        match (&self.file, self.archive) {
            (Some(file), None) => Some(Contents::File(file)),
            (None, Some(kind)) => Some(Contents::Archive(kind)),
            _ => None,
        }
    }
}

impl System {
    /// Reads and checks the file at `path`; messages call it `shown`.
    ///
    /// # Errors
    /// `FILE:LINE: sentence` for the first thing that is wrong.
    pub fn read(path: &Path, shown: &str) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the system description {shown}"))?;
        Self::parse(&text, shown)
    }

    /// Parses and checks `text`.
    ///
    /// # Errors
    /// As [`System::read`].
    pub fn parse(text: &str, shown: &str) -> Result<Self> {
        let system: Self = toml::from_str(text).map_err(|error| {
            let what = error.message().trim_end_matches('\n').replace('\n', "; ");
            at(text, shown, error.span().unwrap_or(0..0), &what)
        })?;
        system.check(text, shown)?;
        Ok(system)
    }

    /// The machine that it asks for.
    #[must_use]
    pub fn machine(&self) -> Wanted {
        let number = |wanted: &Option<Spanned<u32>>| wanted.as_ref().map(|it| *it.get_ref());
        let (cpus, memory) = (number(&self.cpus), number(&self.memory));
        Wanted { cpus, memory, devices: self.devices.clone() }
    }

    /// What the types cannot say: names, ports, interrupt lines.
    fn check(&self, text: &str, shown: &str) -> Result<()> {
        if let Some(cpus) =
            self.cpus.as_ref().filter(|cpus| !(1..=MAX_CPUS).contains(cpus.get_ref()))
        {
            let why = format!("a machine has 1 to {MAX_CPUS} processors, not {}", cpus.get_ref());
            return Err(at(text, shown, cpus.span(), &why));
        }
        let sizes = MIN_MEMORY_MB..=MAX_MEMORY_MB;
        if let Some(memory) =
            self.memory.as_ref().filter(|memory| !sizes.contains(memory.get_ref()))
        {
            let why = format!(
                "a machine has {MIN_MEMORY_MB} to {MAX_MEMORY_MB} MiB of memory, not {}",
                memory.get_ref()
            );
            return Err(at(text, shown, memory.span(), &why));
        }
        let mut seen: Vec<&str> = vec!["sigma0", "root"];
        let names = self.tasks.iter().map(|t| &t.name).chain(self.modules.iter().map(|m| &m.name));
        for name in names {
            let refuse = |why: String| Err(at(text, shown, name.span(), &why));
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
            let word = name.get_ref().as_str();
            if word.is_empty() || word.len() > MAX_NAME_BYTES || !word.chars().all(plain) {
                return refuse(format!(
                    "`{word}` is no name; expected 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` or `.`"
                ));
            }
            if seen.contains(&word) {
                return refuse(format!("the name `{word}` is taken; names are unique in a system"));
            }
            seen.push(word);
        }
        if let Some(module) = self.modules.iter().find(|module| module.contents().is_none()) {
            let why = format!(
                "the module `{}` needs a `file`, or an `archive` (\"small\" or \"test\"), not both",
                module.name.get_ref()
            );
            return Err(at(text, shown, module.name.span(), &why));
        }
        let checked = self.tasks.iter().try_for_each(|task| task.check(self.machine().cpus));
        let checked = checked.and_then(|()| self.check_lines());
        checked.map_err(|(span, why)| at(text, shown, span, &why))
    }

    /// What the root task will find in the tasks' lines: that each can be read, and that
    /// what belongs to one task is named by one.
    fn check_lines(&self) -> Result<(), Mistake> {
        let mut specs: Vec<Spec> = Vec::new();
        for task in &self.tasks {
            let (line, refuse) = (task.cmdline(), |why| Err((task.name.span(), why)));
            if line.len() > bootcfg::LINE_BYTES {
                let why = format!(
                    "the description of `{}` takes {} bytes in the boot image; {} are read",
                    task.name.get_ref(),
                    line.len(),
                    bootcfg::LINE_BYTES
                );
                return refuse(why);
            }
            let spec = match Spec::parse(&line) {
                Ok(spec) => spec,
                Err(mistake) => return refuse(mistake.to_string()),
            };
            if let Err(claim) = bootcfg::claims::check(&spec, specs.iter()) {
                return refuse(claim.to_string());
            }
            specs.push(spec);
        }
        Ok(())
    }
}

/// An error with file and line.
fn at(text: &str, shown: &str, span: Range<usize>, why: &str) -> anyhow::Error {
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    anyhow!("{shown}:{line}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
[sigma0]
image = "sigma0"
[root]
image = "root"
[[task]]
name = "serial"
image = "serial"
priority = 200
irqs = [4]
ports = ["0x3f8+8", "0x70+1"]
mmio = ["0xfed00000+0x1000"]
trusted = ["console"]
restart = true
[[task]]
name = "shell"
image = "monitor"
quota_pages = 32
autostart = false
control = true
pager = "root"
args = "two words"
console = true
provides = ["time", "date"]
uses = []
[[module]]
name = "motd"
file = "README.md"
"#;

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let error = System::parse(text, "systems/x.toml").expect_err("must be refused").to_string();
        assert!(error.contains(words), "expected `{words}` in: {error}");
    }

    #[test]
    fn tasks_become_command_lines() {
        let system = System::parse(GOOD, "x").unwrap();
        assert_eq!(
            system.tasks[0].cmdline(),
            "serial priority=200 irq=4 ports=0x3f8+8,0x70+1 mmio=0xfed00000+0x1000 \
             trusted=console start=1 restart=1"
        );
        assert_eq!(
            system.tasks[1].cmdline(),
            "shell quota=32 start=0 control=1 console=1 provides=time,date uses=- pager=root args=two \
             words"
        );
        assert_eq!(system.modules[0].name.get_ref(), "motd");
        assert_eq!(system.modules[0].contents(), Some(Contents::File("README.md")));
        let other = GOOD.replace("file = \"README.md\"", "archive = \"test\"");
        let system = System::parse(&other, "x").unwrap();
        assert_eq!(system.modules[0].contents(), Some(Contents::Archive(linux::Kind::Test)));
    }

    #[test]
    fn mistakes_are_named_with_file_and_line() {
        refused(
            &GOOD.replace("priority = 200", "prio = 200"),
            "systems/x.toml:9: unknown field `prio`",
        );
        refused(&GOOD.replace("200", "255"), "systems/x.toml:9: `serial` has priority 255");
        refused(&GOOD.replace("[4]", "[1, 2, 3, 4, 5]"), "more than 4 interrupts");
        refused(
            &GOOD.replace("two words", &"x".repeat(bootcfg::ARGS_BYTES + 1)),
            "systems/x.toml:22: the args of `shell`",
        );
        refused(
            &GOOD.replace("\"root\"\nargs", "\"none\"\nargs"),
            "systems/x.toml:21: unknown variant",
        );
        refused(&GOOD.replace("[4]", "[64]"), "systems/x.toml:10: `serial` asks for interrupt 64");
        refused(
            &GOOD.replace("0x70+1", "0xffff+2"),
            "systems/x.toml:11: `0xffff+2` is no port range",
        );
        refused(&GOOD.replace("0x70+1", "80"), "expected BASE+COUNT");
        refused(
            &GOOD.replace("\"shell\"", "\"serial\""),
            "systems/x.toml:16: the name `serial` is taken",
        );
        refused(&GOOD.replace("\"shell\"", "\"a b\""), "`a b` is no name");
        refused(&GOOD.replace("\"shell\"", "\"root\""), "is taken");
        refused(
            &format!("{GOOD}archive = \"small\"\n"),
            "systems/x.toml:27: the module `motd` needs a `file`, or an `archive`",
        );
        refused(
            &GOOD.replace("file = \"README.md\"", "archive = \"big\""),
            "unknown variant `big`",
        );
        refused(
            &GOOD.replace("0xfed00000+0x1000", "0xfed00000+1"),
            "systems/x.toml:12: `0xfed00000+1` is no range of memory",
        );
        refused(&GOOD.replace("[\"console\"]", "[\"all\"]"), "unknown variant `all`");
        refused("[root]\nimage = \"r\"\n", "missing field `sigma0`");
        refused("[root\n", "systems/x.toml:1: ");
    }

    #[test]
    fn a_machine_has_as_many_processors_as_the_description_says() {
        assert_eq!(System::parse(GOOD, "x").unwrap().machine().cpus, None);
        let with = |number: &str| format!("cpus = {number}\n{GOOD}");
        assert_eq!(System::parse(&with("64"), "x").unwrap().machine().cpus, Some(64));
        assert_eq!(System::parse(GOOD, "x").unwrap().machine().memory, None);
        let of = |number: &str| System::parse(&format!("memory = {number}\n{GOOD}"), "x");
        assert_eq!(of("1024").unwrap().machine().memory, Some(1024));
        assert!(of("8").unwrap_err().to_string().contains("16 to 1048576 MiB of memory, not 8"));
        refused(&with("0"), "systems/x.toml:1: a machine has 1 to 64 processors, not 0");
        refused(&with("65"), "systems/x.toml:1: a machine has 1 to 64 processors");
        refused(&with("\"two\""), "systems/x.toml:1: ");
    }

    #[test]
    fn a_task_runs_on_a_processor_that_is_there() {
        let on =
            |number: &str| GOOD.replace("irqs = [4]", &format!("irqs = [4]\nprocessor = {number}"));
        let system = System::parse(&on("3"), "x").unwrap();
        assert!(system.tasks[0].cmdline().starts_with("serial priority=200 processor=3 irq=4 "));
        refused(&on("64"), "systems/x.toml:11: `serial` has processor 64; expected 0 to 63");
        let of = |number: &str| format!("cpus = 2\n{}", on(number));
        assert!(System::parse(&of("1"), "x").is_ok());
        let words =
            "systems/x.toml:12: `serial` wants processor 2, but `cpus = 2`: they are 0 to 1";
        refused(&of("2"), words);
    }

    #[test]
    fn a_task_may_move_its_threads_if_its_description_says_so() {
        let with = |text: &str| GOOD.replace("irqs = [4]", &format!("irqs = [4]\n{text}"));
        let line = |text: &str| System::parse(&with(text), "x").unwrap().tasks[0].cmdline();
        assert!(!line("processor = 3").contains("processors"));
        assert!(
            line("processors = \"all\"").starts_with("serial priority=200 processors=all irq=4 ")
        );
        let both = line("processors = \"all\"\nprocessor = 3");
        assert!(both.starts_with("serial priority=200 processor=3 processors=all irq=4 "));
        refused(&with("processors = \"two\""), "systems/x.toml:11: unknown variant `two`");
        refused(&with("processors = 2"), "systems/x.toml:11: ");
    }

    #[test]
    fn devices_belong_to_one_task() {
        refused(
            &GOOD.replace("quota_pages = 32", "irqs = [3, 4]"),
            "systems/x.toml:16: `serial` and `shell` both name interrupt 4",
        );
        refused(
            &GOOD.replace("quota_pages = 32", "ports = [\"0x6f+3\"]\ntrusted = [\"dma\"]"),
            "systems/x.toml:16: `serial` and `shell` both name port 0x70",
        );
        refused(
            &GOOD.replace("quota_pages = 32", "mmio = [\"0xfed00000+0x1000\"]"),
            "systems/x.toml:16: `serial` and `shell` both name memory 0xfed00000 to 0xfed00fff",
        );
        refused(
            &GOOD.replace("0xfed00000", "0xfee00000"),
            "systems/x.toml:7: `serial` names memory 0xfee00000 to 0xfee00fff, which the kernel",
        );
        refused(
            &GOOD.replace("restart = true", "provides = [\"date\"]"),
            "systems/x.toml:16: `serial` and `shell` both provide `date`",
        );
        refused(
            &GOOD.replace("restart = true", "console = true"),
            "`serial` and `shell` both have console = true",
        );
        refused(&GOOD.replace("\"time\"", "\"no good\""), "has no value");
        refused(&GOOD.replace("[4]", "[0]"), "`serial` names interrupt 0, which the kernel");
        refused(&GOOD.replace("[\"console\"]", "[]"), "add trusted = [\"console\"]");
        refused(
            &GOOD.replace("0xfed00000", "0xfd000000"),
            "by which a device may be told to read and write all memory",
        );
    }
}
