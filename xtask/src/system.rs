//! Reads system descriptions (`systems/*.toml`): which image is σ0, which is the
//! root task, which tasks the root task starts with which rights.
//!
//! A task becomes a program in the boot image; its rights travel in the command
//! line, which the root task reads at run time:
//! `serial priority=200 quota=64 irq=4 ports=0x3f8+8 start=1`.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use toml::Spanned;

/// Priority of a task that names none.
pub const DEFAULT_PRIORITY: u8 = 100;
/// Kernel-memory quota of a task that names none, pages.
pub const DEFAULT_QUOTA_PAGES: u32 = 64;
/// Interrupt lines that a task may ask for: the two 8259 controllers'.
const IRQ_LINES: u32 = 16;
/// Longest name of a task, bytes.
const MAX_NAME_BYTES: usize = 32;

/// A checked description.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The initial space.
    pub sigma0: ServerEntry,
    /// The root task.
    pub root: ServerEntry,
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

/// One task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name in the system.
    pub name: Spanned<String>,
    /// Name of a built program, or a path.
    pub image: String,
    /// 0 (idle) to 255.
    #[serde(default = "default_priority")]
    pub priority: u8,
    /// Kernel memory, pages.
    #[serde(default = "default_quota")]
    pub quota_pages: u32,
    /// Port ranges, `BASE+COUNT`.
    #[serde(default)]
    pub ports: Vec<Spanned<String>>,
    /// Interrupt lines.
    #[serde(default)]
    pub irqs: Vec<Spanned<u32>>,
    /// Start it at boot.
    #[serde(default = "yes")]
    pub autostart: bool,
    /// Start it again when it dies.
    #[serde(default)]
    pub restart: bool,
}

/// One raw file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Its name in the system.
    pub name: Spanned<String>,
    /// Path, relative to the tree's root.
    pub file: String,
}

const fn default_priority() -> u8 {
    DEFAULT_PRIORITY
}

const fn default_quota() -> u32 {
    DEFAULT_QUOTA_PAGES
}

const fn yes() -> bool {
    true
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

    /// What the types cannot say: names, ports, interrupt lines.
    fn check(&self, text: &str, shown: &str) -> Result<()> {
        let mut seen: Vec<&str> = vec!["sigma0", "root"];
        let names = self
            .tasks
            .iter()
            .map(|t| &t.name)
            .chain(self.modules.iter().map(|m| &m.name));
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
                return refuse(format!(
                    "the name `{word}` is taken; names are unique in a system"
                ));
            }
            seen.push(word);
        }
        self.tasks
            .iter()
            .try_for_each(|task| task.check(text, shown))
    }
}

impl Task {
    fn check(&self, text: &str, shown: &str) -> Result<()> {
        let name = self.name.get_ref();
        for irq in &self.irqs {
            if *irq.get_ref() >= IRQ_LINES {
                let why = format!(
                    "`{name}` asks for interrupt {}; expected 0 to 15",
                    irq.get_ref()
                );
                return Err(at(text, shown, irq.span(), &why));
            }
        }
        for ports in &self.ports {
            if parse_ports(ports.get_ref()).is_none() {
                let why = format!(
                    "`{}` is no port range for `{name}`; expected BASE+COUNT inside 0x0..0x10000, \
                     for example \"0x3f8+8\"",
                    ports.get_ref()
                );
                return Err(at(text, shown, ports.span(), &why));
            }
        }
        Ok(())
    }

    /// The command line that tells the root task about it.
    #[must_use]
    pub fn cmdline(&self) -> String {
        let mut line = format!(
            "{} priority={} quota={}",
            self.name.get_ref(),
            self.priority,
            self.quota_pages
        );
        let irqs: Vec<String> = self
            .irqs
            .iter()
            .map(|irq| irq.get_ref().to_string())
            .collect();
        if !irqs.is_empty() {
            let _ = write!(line, " irq={}", irqs.join(","));
        }
        let ranges = self
            .ports
            .iter()
            .filter_map(|ports| parse_ports(ports.get_ref()));
        let ports: Vec<String> = ranges
            .map(|(base, count)| format!("{base:#x}+{count}"))
            .collect();
        if !ports.is_empty() {
            let _ = write!(line, " ports={}", ports.join(","));
        }
        let _ = write!(line, " start={}", u8::from(self.autostart));
        if self.restart {
            line.push_str(" restart=1");
        }
        line
    }
}

/// `BASE+COUNT`, decimal or hexadecimal, inside the 64 Ki ports.
fn parse_ports(text: &str) -> Option<(u32, u32)> {
    let (base, count) = text.split_once('+')?;
    let (base, count) = (parse_number(base)?, parse_number(count)?);
    let inside = count > 0 && base.checked_add(count)? <= 0x1_0000;
    inside.then_some((base, count))
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
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
ports = ["0x3f8+8", "128+1"]
restart = true
[[task]]
name = "shell"
image = "monitor"
quota_pages = 32
autostart = false
[[module]]
name = "motd"
file = "README.md"
"#;

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let error = System::parse(text, "systems/x.toml")
            .expect_err("must be refused")
            .to_string();
        assert!(error.contains(words), "expected `{words}` in: {error}");
    }

    #[test]
    fn tasks_become_command_lines() {
        let system = System::parse(GOOD, "x").unwrap();
        assert_eq!(
            system.tasks[0].cmdline(),
            "serial priority=200 quota=64 irq=4 ports=0x3f8+8,0x80+1 start=1 restart=1"
        );
        assert_eq!(
            system.tasks[1].cmdline(),
            "shell priority=100 quota=32 start=0"
        );
        assert_eq!(system.modules[0].name.get_ref(), "motd");
    }

    #[test]
    fn mistakes_are_named_with_file_and_line() {
        refused(
            &GOOD.replace("priority = 200", "prio = 200"),
            "systems/x.toml:9: unknown field `prio`",
        );
        refused(&GOOD.replace("200", "300"), "systems/x.toml:9: ");
        refused(
            &GOOD.replace("[4]", "[16]"),
            "systems/x.toml:10: `serial` asks for interrupt 16",
        );
        refused(
            &GOOD.replace("128+1", "0xffff+2"),
            "systems/x.toml:11: `0xffff+2` is no port range",
        );
        refused(&GOOD.replace("128+1", "80"), "expected BASE+COUNT");
        refused(
            &GOOD.replace("\"shell\"", "\"serial\""),
            "systems/x.toml:14: the name `serial` is taken",
        );
        refused(&GOOD.replace("\"shell\"", "\"a b\""), "`a b` is no name");
        refused(&GOOD.replace("\"shell\"", "\"root\""), "is taken");
        refused("[root]\nimage = \"r\"\n", "missing field `sigma0`");
        refused("[root\n", "systems/x.toml:1: ");
    }

    #[test]
    fn port_ranges() {
        assert_eq!(parse_ports("0x3f8+8"), Some((0x3F8, 8)));
        assert_eq!(parse_ports("0+65536"), Some((0, 65536)));
        assert_eq!(parse_ports("0+0"), None);
        assert_eq!(parse_ports("1+65536"), None);
        assert_eq!(parse_ports("4294967295+1"), None);
    }
}
