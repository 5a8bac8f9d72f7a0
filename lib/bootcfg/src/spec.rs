//! A task's description: `name key=value ...`.

use proto::Name;

use crate::names::{DEFAULT_USES, Names, PROVIDES, USES};
use crate::ranges::{LIST, Ranges};

/// Longest `args`, bytes.
pub const ARGS_BYTES: usize = 160;
const PAGE: u64 = 4096;
/// Among memory: the boot loader's framebuffer.
pub const FRAMEBUFFER: &str = "framebuffer";
/// Of processors: each that runs.
pub const ALL: &str = "all";
/// Most processors of a machine.
const PROCESSORS: u64 = 64;

/// With what a task is trusted beyond its own address space.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Trusted {
    /// Its devices can be told to read and write all memory.
    pub dma: bool,
    /// It shares the first serial port with the kernel and the root task.
    pub console: bool,
}

/// Whether a task has the boot loader's framebuffer, which a description names without knowing where it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Screen {
    /// It is not named.
    #[default]
    Unnamed,
    /// It is, and nothing is known of it.
    Named,
    /// It is, and lies in these pages: first and last byte.
    At((u64, u64)),
}

/// What a description says about a task.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name.
    pub name: Name,
    /// Its threads' priority, 0 to 254.
    pub priority: u8,
    /// The processor on which its threads run, from 0 on; on which they begin, if they may be moved.
    pub processor: u32,
    /// Whether its threads may be moved to any processor that runs.
    pub everywhere: bool,
    /// Kernel memory, pages.
    pub quota: u64,
    /// Memory of its own (data, bss, heap, stacks), pages.
    pub memory: u64,
    /// The pager's: memory that it has for others, pages; without it the largest block there is.
    pub pool: Option<u64>,
    /// Thread numbers for threads that it makes itself.
    pub threads: u32,
    /// Longest time slice of its threads, µs.
    pub slice_us: u64,
    /// Longest delay of a preemption by its threads, µs.
    pub delay_us: u16,
    /// Whether it starts with the system.
    pub start: bool,
    /// Whether it is started again when it ends by a fault.
    pub restart: bool,
    /// Whether it may start and end tasks, inspect the kernel and halt the machine.
    pub control: bool,
    /// Whether the root task itself is its pager.
    pub root_paged: bool,
    /// Whether the console's input is its own, and its output goes there as it is.
    pub console: bool,
    /// The names under which its threads may be found.
    pub provides: Names<PROVIDES>,
    /// The names that it may look up, if the line says so.
    uses: Option<Names<USES>>,
    /// With what it is trusted.
    pub trusted: Trusted,
    /// The I/O ports that it may have.
    pub ports: Ranges,
    /// The devices' memory that it may have.
    pub mmio: Ranges,
    /// Whether it has the boot loader's framebuffer.
    pub framebuffer: Screen,
    irqs: [u32; LIST],
    irq_count: usize,
    args: [u8; ARGS_BYTES],
    args_len: usize,
}

/// What is wrong with a description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake<'a> {
    /// The line is empty.
    NoName,
    /// A word is not `key=value`.
    NoValue(&'a str),
    /// No such key.
    Key(&'a str),
    /// The value does not fit the key.
    Value(&'a str, &'a str),
}

impl core::fmt::Display for Mistake<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoName => f.write_str("a task's line is empty; begin it with a name"),
            Self::NoValue(word) => write!(f, "`{word}` has no value; write {word}=..."),
            Self::Key(key) => write!(
                f,
                "there is no key `{key}`; the keys are priority, processor, processors, quota, memory, pool, threads, slice, delay, \
                irq, ports, mmio, trusted, console, provides, uses, start, restart, control, pager, args"
            ),
            Self::Value(key, value) => {
                write!(f, "{key} cannot be `{value}`; see docs/user-level.md for its form")
            }
        }
    }
}

/// A decimal number, or a hexadecimal one with 0x.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `BASE+COUNT`, or one number.
fn range(text: &str) -> Option<(u64, u64)> {
    let (base, count) = text.split_once('+').unwrap_or((text, "1"));
    Some((number(base)?, number(count)?))
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

impl Spec {
    /// A description with nothing but a name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: Name::new(name),
            priority: 100,
            processor: 0,
            everywhere: false,
            quota: 128,
            memory: 4096,
            pool: None,
            threads: 0,
            slice_us: 10_000,
            delay_us: 0,
            start: true,
            restart: false,
            control: false,
            root_paged: false,
            console: false,
            provides: Names::default(),
            uses: None,
            trusted: Trusted::default(),
            ports: Ranges::default(),
            mmio: Ranges::default(),
            framebuffer: Screen::default(),
            irqs: [0; LIST],
            irq_count: 0,
            args: [0; ARGS_BYTES],
            args_len: 0,
        }
    }

    /// Parses a line. A path in front of the name is dropped; everything behind
    /// `args=` belongs to the task itself.
    pub fn parse(line: &str) -> Result<Self, Mistake<'_>> {
        let (line, args) = match line.split_once("args=") {
            Some((line, args)) => (line, args.trim_end()),
            None => (line, ""),
        };
        let mut words = line.split_ascii_whitespace();
        let name = words.next().ok_or(Mistake::NoName)?;
        let mut spec = Self::new(name.rsplit('/').next().unwrap_or(name));
        spec.args_len = args.len().min(ARGS_BYTES);
        spec.args[..spec.args_len].copy_from_slice(&args.as_bytes()[..spec.args_len]);
        for word in words {
            let (key, value) = word.split_once('=').ok_or(Mistake::NoValue(word))?;
            spec.set(key, value)?.ok_or(Mistake::Value(key, value))?;
        }
        Ok(spec)
    }

    /// Takes one key; `Ok(None)` if the value does not fit.
    fn set<'a>(&mut self, key: &'a str, value: &str) -> Result<Option<()>, Mistake<'a>> {
        Ok(match key {
            "priority" => number(value).filter(|p| *p < 255).map(|p| self.priority = p as u8),
            "processor" => {
                number(value).filter(|n| *n < PROCESSORS).map(|n| self.processor = n as u32)
            }
            "processors" => (value == ALL).then(|| self.everywhere = true),
            "quota" => number(value).map(|pages| self.quota = pages),
            "memory" => number(value).map(|pages| self.memory = pages),
            "pool" => number(value).filter(|n| *n > 0).map(|pages| self.pool = Some(pages)),
            "threads" => number(value).filter(|n| *n <= 1 << 16).map(|n| self.threads = n as u32),
            "slice" => {
                number(value).filter(|us| (1..=1_000_000).contains(us)).map(|us| self.slice_us = us)
            }
            "delay" => number(value).filter(|us| *us < 65_535).map(|us| self.delay_us = us as u16),
            "start" => switch(value).map(|on| self.start = on),
            "restart" => switch(value).map(|on| self.restart = on),
            "control" => switch(value).map(|on| self.control = on),
            "console" => switch(value).map(|on| self.console = on),
            "provides" => Names::parse(value).map(|names| self.provides = names),
            "uses" => Names::parse(value).map(|names| self.uses = Some(names)),
            "pager" => match value {
                "root" => Some(true),
                "pager" => Some(false),
                _ => None,
            }
            .map(|root| self.root_paged = root),
            "irq" => value.split(',').try_for_each(|line| self.add_irq(line)),
            "ports" => value.split(',').try_for_each(|range| self.add_ports(range)),
            "mmio" => value.split(',').try_for_each(|range| self.add_memory(range)),
            "trusted" => value.split(',').try_for_each(|word| self.trust(word)),
            _ => return Err(Mistake::Key(key)),
        })
    }

    fn add_irq(&mut self, text: &str) -> Option<()> {
        let line = number(text).filter(|line| *line < 256)?;
        *self.irqs.get_mut(self.irq_count)? = line as u32;
        self.irq_count += 1;
        Some(())
    }

    fn add_ports(&mut self, text: &str) -> Option<()> {
        let (base, count) = range(text)?;
        let inside = count <= 0xFFFF && base.checked_add(count)? <= 0x1_0000;
        self.ports.add(base, inside.then_some(count)?)
    }

    fn add_memory(&mut self, text: &str) -> Option<()> {
        if text == FRAMEBUFFER {
            self.framebuffer = Screen::Named;
            return Some(());
        }
        let (base, bytes) = range(text)?;
        let whole = base.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE);
        self.mmio.add(base, whole.then_some(bytes)?)
    }

    fn trust(&mut self, word: &str) -> Option<()> {
        match word {
            "dma" => self.trusted.dma = true,
            "console" => self.trusted.console = true,
            _ => return None,
        }
        Some(())
    }

    /// Whether the task may look `name` up.
    #[must_use]
    pub fn may_use(&self, name: Name) -> bool {
        let own = self.provides.place(name).is_some();
        own || self.uses.map_or_else(
            || DEFAULT_USES.iter().any(|known| Name::new(known) == name),
            |uses| uses.place(name).is_some(),
        )
    }

    /// Whether the task may have the interrupts of `line`.
    #[must_use]
    pub fn may_irq(&self, line: u32) -> bool {
        self.irqs[..self.irq_count].contains(&line)
    }

    /// The interrupt lines that the task may have.
    #[must_use]
    pub fn irqs(&self) -> &[u32] {
        &self.irqs[..self.irq_count]
    }

    /// What followed `args=`.
    #[must_use]
    pub fn args(&self) -> &[u8] {
        &self.args[..self.args_len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults() {
        let spec = Spec::parse("  boot/hello ").unwrap();
        assert_eq!(spec.name.as_str(), "hello");
        assert!(spec.start && !spec.restart && !spec.control && !spec.root_paged);
        assert!(spec.processor == 0 && !spec.everywhere);
        assert_eq!((spec.priority, spec.quota, spec.memory, spec.pool), (100, 128, 4096, None));
        assert!(!spec.may_irq(0) && spec.ports.is_empty() && spec.mmio.is_empty());
        assert_eq!(spec.trusted, Trusted::default());
        assert!(!spec.console && spec.provides.iter().next().is_none());
        assert!(spec.may_use(Name::new("console")) && !spec.may_use(Name::new("hello")));
    }

    #[test]
    fn every_key() {
        let spec = Spec::parse(
            "serial priority=200 quota=0x40 memory=16 pool=8192 irq=4,8 ports=0x3F8+8,0x70+2 start=0 \
            restart=1 control=1 pager=root mmio=0xfed00000+0x1000,0xA0000+131072 \
            trusted=console,dma threads=64 processor=63 processors=all slice=5000 delay=20 args=one two",
        )
        .unwrap();
        assert_eq!((spec.priority, spec.quota, spec.memory), (200, 64, 16));
        assert_eq!(spec.pool, Some(8192));
        assert!(spec.processor == 63 && spec.everywhere);
        assert_eq!((spec.threads, spec.slice_us, spec.delay_us), (64, 5_000, 20));
        assert!(!spec.start && spec.restart && spec.control && spec.root_paged);
        assert!(spec.may_irq(4) && spec.may_irq(8) && !spec.may_irq(1));
        let ports = &spec.ports;
        assert!(ports.hold(0x3F8, 8) && ports.hold(0x3FA, 2) && ports.hold(0x71, 1));
        assert!(!ports.hold(0x3F7, 2) && !ports.hold(0x3F8, 9) && !ports.hold(0x3F8, 0));
        assert!(spec.mmio.hold(0xFED0_0000, 4096) && spec.mmio.hold(0xB_F000, 4096));
        assert!(!spec.mmio.hold(0xFED0_0000, 8192));
        assert!(spec.trusted.dma && spec.trusted.console);
        assert_eq!(spec.args(), b"one two");
    }

    #[test]
    fn services() {
        let spec = Spec::parse("a provides=echo,time uses=console console=1").unwrap();
        assert!(spec.console && spec.provides.place(Name::new("time")) == Some(1));
        for (name, may) in [("echo", true), ("console", true), ("pager", false), ("", false)] {
            assert_eq!(spec.may_use(Name::new(name)), may, "{name}");
        }
        assert!(!Spec::parse("a uses=-").unwrap().may_use(Name::new("console")));
    }

    #[test]
    fn the_framebuffer_is_memory_with_a_name() {
        let spec = |line| Spec::parse(line).unwrap();
        assert_eq!(spec("a mmio=0xb8000+0x1000").framebuffer, Screen::Unnamed);
        let both = spec("a mmio=0xb8000+0x1000,framebuffer");
        assert_eq!(both.framebuffer, Screen::Named);
        assert!(both.mmio.hold(0xB_8000, 4096));
        assert!(Spec::parse("a mmio=framebuffers").is_err());
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(Spec::parse("").unwrap_err(), Mistake::NoName);
        assert_eq!(Spec::parse("a b").unwrap_err(), Mistake::NoValue("b"));
        assert_eq!(Spec::parse("a colour=1").unwrap_err(), Mistake::Key("colour"));
        for line in [
            "a priority=255",
            "a priority=x",
            "a processor=64",
            "a processor=-1",
            "a processor=all",
            "a processors=1",
            "a processors=",
            "a processors=ALL",
            "a start=yes",
            "a irq=1,2,3,4,5",
            "a ports=0xFFFF+2",
            "a ports=1+0",
            "a ports=18446744073709551615+2",
            "a pager=me",
            "a mmio=0x1000",
            "a mmio=0x1800+0x1000",
            "a mmio=0xfffffffffffff000+0x2000",
            "a trusted=everybody",
            "a provides=b,b",
            "a uses=",
            "a console=2",
            "a irq=256",
            "a threads=65537",
            "a slice=0",
            "a delay=65535",
        ] {
            assert!(matches!(Spec::parse(line), Err(Mistake::Value(..))), "{line}");
        }
    }
}
