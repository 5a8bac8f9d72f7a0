//! One task of a system description: its rights, checked, and the command line
//! in which they travel to the root task (docs/user-level.md has the keys).

use std::fmt::Write as _;
use std::ops::Range;

use bootcfg::Spec;
use serde::Deserialize;
use toml::Spanned;

use crate::machine::MAX_CPUS;

/// Highest priority of a task; 255 is the root task's own.
const MAX_PRIORITY: u32 = 254;
/// Most thread numbers of one task: half of all.
const MAX_THREADS: u32 = 1 << 16;
/// Longest time slice, µs.
const MAX_SLICE_US: u32 = 1_000_000;
/// Longest delay that the kernel knows, µs.
const MAX_DELAY_US: u32 = 65_534;
/// Interrupt lines that a task may ask for.
const IRQ_LINES: u32 = abi::id::SYSTEM_BASE;
/// Interrupt lines, and ranges of ports and memory, that one task can have.
const MAX_LIST: usize = bootcfg::LIST;
/// Longest argument text of a task, bytes.
const MAX_ARGS_BYTES: usize = bootcfg::ARGS_BYTES;

/// One task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name in the system.
    pub name: Spanned<String>,
    /// Name of a built program, or a path.
    pub image: String,
    /// 0 (lowest) to 254; without it, what the root task gives.
    pub priority: Option<Spanned<u32>>,
    /// The processor on which its threads run, from 0 on; on which they begin, if they may be moved.
    pub processor: Option<Spanned<u32>>,
    /// Where its threads may be moved; without it, nowhere.
    pub processors: Option<Processors>,
    /// Kernel memory, pages.
    pub quota_pages: Option<u32>,
    /// Memory of its own (data, bss, heap, stacks), pages.
    pub memory_pages: Option<u32>,
    /// The pager's: memory that it has for others, pages; without it the largest block there is.
    pub pool_pages: Option<u32>,
    /// Thread numbers for threads that it makes itself.
    pub threads: Option<Spanned<u32>>,
    /// Longest time slice of its threads, µs.
    pub slice_us: Option<Spanned<u32>>,
    /// Longest delay of a preemption by its threads, µs.
    pub delay_us: Option<Spanned<u32>>,
    /// Port ranges, `BASE+COUNT`.
    #[serde(default)]
    pub ports: Vec<Spanned<String>>,
    /// Devices' memory: `BASE+BYTES`, whole pages, or `framebuffer`, the boot loader's.
    #[serde(default)]
    pub mmio: Vec<Spanned<String>>,
    /// Interrupt lines.
    #[serde(default)]
    pub irqs: Vec<Spanned<u32>>,
    /// What it is trusted with beyond its own address space.
    #[serde(default)]
    pub trusted: Vec<Trust>,
    /// Start it at boot.
    #[serde(default = "yes")]
    pub autostart: bool,
    /// Start it again when it dies.
    #[serde(default)]
    pub restart: bool,
    /// It may start and end tasks, inspect the kernel and halt the machine.
    #[serde(default)]
    pub control: bool,
    /// What is typed on the console is its own.
    #[serde(default)]
    pub console: bool,
    /// The names under which others find it.
    #[serde(default)]
    pub provides: Vec<String>,
    /// The names that it may look up; without it, those of the default systems.
    pub uses: Option<Vec<String>>,
    /// Who serves its page faults; without it, the pager task.
    pub pager: Option<Pager>,
    /// What the task itself reads.
    pub args: Option<Spanned<String>>,
}

/// Where a task may have its threads moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Processors {
    /// To any processor that runs.
    All,
}

/// Who serves a task's page faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pager {
    /// The root task.
    Root,
    /// The pager task.
    Pager,
}

/// What a task can be trusted with beyond its own address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Devices that can be told to read and write all memory.
    Dma,
    /// The first serial port, on which the kernel and the root task write, too.
    Console,
}

const fn yes() -> bool {
    true
}

/// A mistake: where in the file, and the sentence.
pub(super) type Mistake = (Range<usize>, String);

impl Task {
    /// What the types cannot say.
    pub(super) fn check(&self, cpus: Option<u32>) -> Result<(), Mistake> {
        let name = self.name.get_ref();
        if let Some(priority) = self.priority.as_ref().filter(|p| *p.get_ref() > MAX_PRIORITY) {
            let given = priority.get_ref();
            let why = format!("`{name}` has priority {given}; expected 0 to {MAX_PRIORITY}");
            return Err((priority.span(), why));
        }
        check_most(name, "processor", self.processor.as_ref(), MAX_CPUS - 1)?;
        check_processor(name, self.processor.as_ref(), cpus)?;
        check_most(name, "threads", self.threads.as_ref(), MAX_THREADS)?;
        check_most(name, "slice_us", self.slice_us.as_ref(), MAX_SLICE_US)?;
        check_most(name, "delay_us", self.delay_us.as_ref(), MAX_DELAY_US)?;
        if [self.irqs.len(), self.ports.len(), self.mmio.len()].iter().any(|len| *len > MAX_LIST) {
            let why = format!(
                "`{name}` has more than {MAX_LIST} interrupts or ranges of ports or memory; split \
                 the task"
            );
            return Err((self.name.span(), why));
        }
        self.irqs.iter().try_for_each(|irq| check_irq(name, irq))?;
        self.ports.iter().try_for_each(|ports| check_ports(name, ports))?;
        self.mmio.iter().try_for_each(|memory| check_memory(name, memory))?;
        self.args.iter().try_for_each(|args| check_args(name, args))
    }

    /// The command line that tells the root task about it: only what differs
    /// from the root task's defaults, and whether it starts.
    #[must_use]
    pub fn cmdline(&self) -> String {
        let number = |value: &u32| value.to_string();
        let irqs = self.irqs.iter().map(|irq| irq.get_ref().to_string());
        let ranges = self.ports.iter().filter_map(|ports| parse_ports(ports.get_ref()));
        let ports = ranges.map(|(base, count)| format!("{base:#x}+{count}"));
        let memory = self.mmio.iter().map(|memory| memory.get_ref().clone());
        let trusted = self.trusted.iter().map(|with| format!("{with:?}").to_lowercase());
        let switch = |on: bool| on.then(|| "1".to_owned());
        let pager = |pager| if pager == Pager::Root { "root" } else { "pager" }.to_owned();
        let keys = [
            ("priority", self.priority.as_ref().map(|p| number(p.get_ref()))),
            ("processor", self.processor.as_ref().map(|n| number(n.get_ref()))),
            ("processors", self.processors.map(|Processors::All| bootcfg::ALL.to_owned())),
            ("quota", self.quota_pages.as_ref().map(number)),
            ("memory", self.memory_pages.as_ref().map(number)),
            ("pool", self.pool_pages.as_ref().map(number)),
            ("threads", self.threads.as_ref().map(|n| number(n.get_ref()))),
            ("slice", self.slice_us.as_ref().map(|n| number(n.get_ref()))),
            ("delay", self.delay_us.as_ref().map(|n| number(n.get_ref()))),
            ("irq", list(irqs)),
            ("ports", list(ports)),
            ("mmio", list(memory)),
            ("trusted", list(trusted)),
            ("start", Some(u8::from(self.autostart).to_string())),
            ("restart", switch(self.restart)),
            ("control", switch(self.control)),
            ("console", switch(self.console)),
            ("provides", list(self.provides.iter().cloned())),
            (
                "uses",
                self.uses
                    .as_ref()
                    .map(|names| if names.is_empty() { "-".to_owned() } else { names.join(",") }),
            ),
            ("pager", self.pager.map(pager)),
            ("args", self.args.as_ref().map(|args| args.get_ref().clone())), // last: may hold blanks
        ];
        let mut line = self.name.get_ref().clone();
        for (key, value) in keys {
            if let Some(value) = value {
                let _ = write!(line, " {key}={value}");
            }
        }
        line
    }
}

/// `a,b,c`, or nothing for an empty list.
fn list(words: impl Iterator<Item = String>) -> Option<String> {
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(","))
}

/// Refuses 0 slices and what is above `most`.
fn check_most(
    name: &str,
    key: &str,
    value: Option<&Spanned<u32>>,
    most: u32,
) -> Result<(), Mistake> {
    let least = u32::from(key == "slice_us");
    match value {
        Some(value) if !(least..=most).contains(value.get_ref()) => Err((
            value.span(),
            format!("`{name}` has {key} {}; expected {least} to {most}", value.get_ref()),
        )),
        _ => Ok(()),
    }
}

/// Refuses a processor that the system's own machine has not.
fn check_processor(
    name: &str,
    number: Option<&Spanned<u32>>,
    cpus: Option<u32>,
) -> Result<(), Mistake> {
    match (number, cpus) {
        (Some(number), Some(cpus)) if *number.get_ref() >= cpus => Err((
            number.span(),
            format!(
                "`{name}` wants processor {}, but `cpus = {cpus}`: they are 0 to {}",
                number.get_ref(),
                cpus - 1
            ),
        )),
        _ => Ok(()),
    }
}

fn check_irq(name: &str, irq: &Spanned<u32>) -> Result<(), Mistake> {
    if *irq.get_ref() < IRQ_LINES {
        return Ok(());
    }
    let why =
        format!("`{name}` asks for interrupt {}; expected 0 to {}", irq.get_ref(), IRQ_LINES - 1);
    Err((irq.span(), why))
}

fn check_ports(name: &str, ports: &Spanned<String>) -> Result<(), Mistake> {
    let text = ports.get_ref();
    if parse_ports(text).is_some() {
        return Ok(());
    }
    let why = format!(
        "`{text}` is no port range for `{name}`; expected BASE+COUNT inside 0x0..0x10000, for \
         example \"0x3f8+8\""
    );
    Err((ports.span(), why))
}

fn check_memory(name: &str, memory: &Spanned<String>) -> Result<(), Mistake> {
    let text = memory.get_ref();
    let is_known = text.contains('+') || text == bootcfg::FRAMEBUFFER;
    if Spec::parse(&format!("{name} mmio={text}")).is_ok() && is_known {
        return Ok(());
    }
    let why = format!(
        "`{text}` is no range of memory for `{name}`; expected BASE+BYTES in whole pages, for \
         example \"0xfed00000+0x1000\", or \"framebuffer\""
    );
    Err((memory.span(), why))
}

fn check_args(name: &str, args: &Spanned<String>) -> Result<(), Mistake> {
    let text = args.get_ref();
    if text.len() <= MAX_ARGS_BYTES && !text.contains(char::is_control) {
        return Ok(());
    }
    let why = format!(
        "the args of `{name}` do not fit; expected at most {MAX_ARGS_BYTES} bytes in one line"
    );
    Err((args.span(), why))
}

/// `BASE+COUNT`, decimal or hexadecimal, inside the 64 Ki ports; the root task
/// takes at most 65,535 at once.
fn parse_ports(text: &str) -> Option<(u32, u32)> {
    let (base, count) = text.split_once('+')?;
    let (base, count) = (parse_number(base)?, parse_number(count)?);
    let inside = (1..=0xFFFF).contains(&count) && base.checked_add(count)? <= 0x1_0000;
    inside.then_some((base, count))
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_ranges() {
        assert_eq!(parse_ports("0x3f8+8"), Some((0x3F8, 8)));
        assert_eq!(parse_ports("0+65535"), Some((0, 65535)));
        assert_eq!(parse_ports("0+0"), None);
        assert_eq!(parse_ports("1+65536"), None);
        assert_eq!(parse_ports("4294967295+1"), None);
    }
}
