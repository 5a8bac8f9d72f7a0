//! What belongs to one task: what a description may name, and when two descriptions clash.
//!
//! The image tool and the root task ask the same questions here, so that a mistake is found
//! where it is made, and an image that comes from elsewhere gets nothing by it.

use abi::devices;
use proto::Name;

use crate::ranges::shared;
use crate::{Screen, Spec};

/// Ports of devices that can reach no memory by themselves: serial and parallel ports,
/// keyboard, clock, display.
const PORTS_WITHOUT_DMA: [(u64, u64); 10] = [
    (0x60, 0x60),
    (0x64, 0x64),
    (0x70, 0x71),
    (0x1CE, 0x1CF),
    (0x278, 0x27F),
    (0x2E8, 0x2EF),
    (0x2F8, 0x2FF),
    (0x378, 0x37F),
    (0x3B0, 0x3DF),
    (0x3E8, 0x3FF),
];
/// Memory of such devices: the display's window, the event timer.
const MEMORY_WITHOUT_DMA: [(u64, u64); 2] = [(0xA_0000, 0xB_FFFF), (0xFED0_0000, 0xFED0_0FFF)];

/// What a device is reached by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// I/O ports.
    Ports,
    /// Physical memory.
    Memory,
    /// An interrupt line.
    Line,
}

/// Why a task cannot have what its description names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Another description names it, too.
    Taken(Resource, (u64, u64), Name, Name),
    /// The kernel, or the root task, drives it.
    Kernels(Resource, (u64, u64), Name),
    /// The kernel and the root task write there, too, and the description does not say so.
    Console((u64, u64), Name),
    /// Another description names the boot loader's framebuffer, too.
    Framebuffer(Name, Name),
    /// Another description provides the service, too.
    Name(Name, Name, Name),
    /// Another task has the console's input.
    Input(Name, Name),
    /// The device may reach all memory, and the description does not say so.
    Dma(Resource, (u64, u64), Name),
}

struct Range(Resource, (u64, u64));

impl core::fmt::Display for Range {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (what, one) = match self.0 {
            Resource::Ports => ("ports", "port"),
            Resource::Memory => ("memory", "memory"),
            Resource::Line => ("interrupts", "interrupt"),
        };
        match self.1 {
            (first, _) if self.0 == Resource::Line => write!(f, "{one} {first}"),
            (first, last) if first == last => write!(f, "{one} {first:#x}"),
            (first, last) => write!(f, "{what} {first:#x} to {last:#x}"),
        }
    }
}

impl core::fmt::Display for Claim {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::Taken(what, range, one, two) => write!(
                f,
                "`{one}` and `{two}` both name {}; a device belongs to one task",
                Range(what, range)
            ),
            Self::Kernels(what, range, name) => write!(
                f,
                "`{name}` names {}, which the kernel drives itself; nobody can have it",
                Range(what, range)
            ),
            Self::Console(range, name) => write!(
                f,
                "`{name}` names {}, on which the kernel and the root task write, too; if that \
                is meant, add trusted = [\"console\"]",
                Range(Resource::Ports, range)
            ),
            Self::Framebuffer(one, two) => write!(
                f,
                "`{one}` and `{two}` both name the boot loader's framebuffer; a device belongs to one task"
            ),
            Self::Name(service, one, two) => write!(
                f,
                "`{one}` and `{two}` both provide `{service}`; a name belongs to one task"
            ),
            Self::Input(one, two) => write!(
                f,
                "`{one}` and `{two}` both have console = true; what is typed goes to one task. If each is to have a \
                console of its own, name both in the args of the console's driver, and describe that before them"
            ),
            Self::Dma(what, range, name) => write!(
                f,
                "`{name}` names {}, by which a device may be told to read and write all memory; \
                if the task is trusted with that, add trusted = [\"dma\"]",
                Range(what, range)
            ),
        }
    }
}

/// Checks what `spec` names, against the kernel's needs and against the `others` before it.
///
/// # Errors
/// The first claim that it cannot have.
pub fn check<'a>(spec: &Spec, others: impl Iterator<Item = &'a Spec> + Clone) -> Result<(), Claim> {
    each(spec, |what, range| alone(spec, what, range))?;
    let has_its_own = |one: &Spec| others.clone().any(|driver| tells_apart(driver, one.name));
    others.clone().try_for_each(|other| {
        each(spec, |what, range| {
            let clash = |theirs| shared(range, theirs);
            let found = match what {
                Resource::Ports => other.ports.iter().find_map(clash),
                Resource::Memory => other.mmio.iter().chain(screen(other)).find_map(clash),
                Resource::Line => other
                    .irqs()
                    .iter()
                    .map(|line| (u64::from(*line), u64::from(*line)))
                    .find_map(clash),
            };
            found.map_or(Ok(()), |range| Err(Claim::Taken(what, range, other.name, spec.name)))
        })?;
        if spec.framebuffer != Screen::Unnamed && other.framebuffer != Screen::Unnamed {
            return Err(Claim::Framebuffer(other.name, spec.name));
        }
        if spec.console && other.console && !(has_its_own(spec) && has_its_own(other)) {
            return Err(Claim::Input(other.name, spec.name));
        }
        let both = spec.provides.iter().find(|name| other.provides.place(*name).is_some());
        both.map_or(Ok(()), |name| Err(Claim::Name(name, other.name, spec.name)))
    })
}

/// Whether `driver` has a console for the task of this name: it is in its `args`.
fn tells_apart(driver: &Spec, name: Name) -> bool {
    let names = core::str::from_utf8(driver.args()).unwrap_or_default();
    driver.provides.place(Name::new(proto::console::NAME)).is_some()
        && names.split_whitespace().any(|word| Name::new(word) == name)
}

/// Where the framebuffer of the task is, if that is known.
fn screen(spec: &Spec) -> Option<(u64, u64)> {
    match spec.framebuffer {
        Screen::At(range) => Some(range),
        Screen::Unnamed | Screen::Named => None,
    }
}

/// Whether a device of the task may reach memory that is not the task's.
#[must_use]
pub fn reaches_all_memory(spec: &Spec) -> bool {
    each(
        spec,
        |what, range| {
            if has_dma(what, range) && screen(spec) != Some(range) { Err(()) } else { Ok(()) }
        },
    )
    .is_err()
}

/// Calls `test` with everything that the description names.
fn each<E>(
    spec: &Spec,
    mut test: impl FnMut(Resource, (u64, u64)) -> Result<(), E>,
) -> Result<(), E> {
    spec.ports.iter().try_for_each(|range| test(Resource::Ports, range))?;
    spec.mmio.iter().chain(screen(spec)).try_for_each(|range| test(Resource::Memory, range))?;
    let line = |line: &u32| (u64::from(*line), u64::from(*line));
    spec.irqs().iter().map(line).try_for_each(|range| test(Resource::Line, range))
}

/// Checks a range by itself.
fn alone(spec: &Spec, what: Resource, range: (u64, u64)) -> Result<(), Claim> {
    let meets = |kernels: &[(u64, u64)]| kernels.iter().find_map(|theirs| shared(range, *theirs));
    let kernels = match what {
        Resource::Ports => meets(&devices::PORTS).or_else(|| meets(&[devices::EXIT])),
        Resource::Memory => meets(&devices::MEMORY),
        Resource::Line => devices::LINES.contains(&(range.0 as u32)).then_some(range),
    };
    if let Some(range) = kernels {
        return Err(Claim::Kernels(what, range, spec.name));
    }
    if what == Resource::Ports && !spec.trusted.console {
        meets(&[devices::CONSOLE]).map_or(Ok(()), |range| Err(Claim::Console(range, spec.name)))?;
    }
    // A framebuffer is memory of the display's own: where it is says the boot loader, who is believed
    // as it is about everything else.
    if has_dma(what, range) && screen(spec) != Some(range) && !spec.trusted.dma {
        return Err(Claim::Dma(what, range, spec.name));
    }
    Ok(())
}

/// Whether it is more than devices that are known to reach no memory. There is no driver for
/// an IOMMU yet, so what a device reaches by itself nobody holds back.
fn has_dma(what: Resource, range: (u64, u64)) -> bool {
    let harmless = match what {
        Resource::Ports => &PORTS_WITHOUT_DMA[..],
        Resource::Memory => &MEMORY_WITHOUT_DMA[..],
        Resource::Line => return false,
    };
    !harmless.iter().any(|(low, high)| *low <= range.0 && range.1 <= *high)
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// What is said of the last line, after those before it.
    fn said(lines: &[&str]) -> String {
        let specs: Vec<Spec> = lines.iter().map(|line| Spec::parse(line).unwrap()).collect();
        let (last, others) = specs.split_last().unwrap();
        check(last, others.iter()).map_or_else(|claim| claim.to_string(), |()| String::new())
    }

    #[test]
    fn two_tasks_never_share_a_device() {
        assert_eq!(said(&["a irq=4", "b irq=5"]), "");
        assert_eq!(
            said(&["a irq=4,8", "b irq=8"]),
            "`a` and `b` both name interrupt 8; a device belongs to one task"
        );
        assert!(
            said(&["a ports=0x70+2", "c", "b ports=0x60+1,0x71+1"])
                .starts_with("`a` and `b` both name port 0x71;")
        );
        assert!(
            said(&["a mmio=0xfd000000+0x4000 trusted=dma", "b mmio=0xfd002000+0x4000 trusted=dma"])
                .starts_with("`a` and `b` both name memory 0xfd002000 to 0xfd003fff;")
        );
        assert_eq!(
            said(&["a mmio=0xfd000000+0x4000 trusted=dma", "b mmio=0xfd004000+0x1000 trusted=dma"]),
            ""
        );
    }

    #[test]
    fn names_and_the_keyboard_belong_to_one_task() {
        assert_eq!(said(&["a provides=x,y", "b provides=z", "c uses=x,z"]), "");
        assert_eq!(
            said(&["a provides=x,y", "b provides=z,y"]),
            "`a` and `b` both provide `y`; a name belongs to one task"
        );
        assert!(said(&["a console=1", "b console=1"]).starts_with("`a` and `b` both have console"));
        assert_eq!(said(&["a console=1", "b console=0"]), "");
        let driver = "serial provides=console args=a b";
        assert_eq!(said(&[driver, "a console=1", "b console=1"]), "");
        let why = "`a` and `c` both have console";
        assert!(said(&[driver, "a console=1", "c console=1"]).starts_with(why));
        assert!(said(&["x args=a c", "a console=1", "c console=1"]).starts_with(why));
    }

    #[test]
    fn what_the_kernel_drives_is_nobodys() {
        for (line, what) in [
            ("a ports=0x20+2", "ports 0x20 to 0x21"),
            ("a ports=0xA1+1", "port 0xa1"),
            ("a ports=0+65535 trusted=dma,console", "ports 0x20 to 0x21"),
            ("a ports=0x42+1", "port 0x42"),
            ("a ports=0x61+1", "port 0x61"),
            ("a ports=0xF4+1 trusted=dma", "port 0xf4"),
            ("a mmio=0xfee00000+0x1000 trusted=dma", "memory 0xfee00000 to 0xfee00fff"),
            ("a mmio=0xfec00000+0x1000 trusted=dma", "memory 0xfec00000 to 0xfec00fff"),
            ("a mmio=0+0x100000000000 trusted=dma", "memory 0xfec00000 to 0xfecfffff"),
            ("a irq=0", "interrupt 0"),
            ("a irq=2", "interrupt 2"),
        ] {
            let said = said(&[line]);
            assert!(
                said.starts_with(&std::format!("`a` names {what}, which the kernel")),
                "{said}"
            );
        }
    }

    #[test]
    fn the_framebuffer_belongs_to_one_task() {
        assert_eq!(said(&["a mmio=framebuffer", "b mmio=0xb8000+0x1000"]), "");
        assert!(
            said(&["a mmio=framebuffer", "b mmio=framebuffer"]).contains("`a` and `b` both name")
        );
        let at = |line, range| {
            let mut spec = Spec::parse(line).unwrap();
            spec.framebuffer = Screen::At(range);
            spec
        };
        let screen = at("a mmio=framebuffer", (0xFD00_0000, 0xFD2F_FFFF));
        assert_eq!(check(&screen, [].iter()), Ok(()));
        assert!(!reaches_all_memory(&screen), "it needs no trust");
        let disk = Spec::parse("b mmio=0xfd2ff000+0x4000 trusted=dma").unwrap();
        let shared = (0xFD2F_F000, 0xFD2F_FFFF);
        let taken = |one: Name, two| Err(Claim::Taken(Resource::Memory, shared, one, two));
        assert_eq!(check(&disk, [screen].iter()), taken(screen.name, disk.name));
        assert_eq!(check(&screen, [disk].iter()), taken(disk.name, screen.name));
        let lie = at("a mmio=framebuffer", (0xFED0_0000, 0xFEE0_0FFF));
        assert!(matches!(check(&lie, [].iter()), Err(Claim::Kernels(..))));
    }

    #[test]
    fn what_reaches_further_says_so() {
        assert!(said(&["a ports=0x3f8+8"]).contains("add trusted = [\"console\"]"));
        assert!(said(&["a ports=0x3ff+1"]).contains("add trusted = [\"console\"]"));
        assert_eq!(said(&["a ports=0x3f8+8 trusted=console"]), "");
        for line in
            ["a ports=0xcf8+8", "a ports=0xc000+32", "a mmio=0xfd000000+0x1000", "a ports=0x6f+2"]
        {
            assert!(said(&[line]).contains("add trusted = [\"dma\"]"), "{line}");
            assert_eq!(said(&[&std::format!("{line} trusted=dma")]), "");
            assert!(reaches_all_memory(&Spec::parse(line).unwrap()));
        }
        for line in
            ["a mmio=0xfed00000+0x1000", "a mmio=0xa0000+0x20000", "a ports=0x70+2", "a irq=9"]
        {
            assert_eq!(said(&[line]), "", "{line}");
            assert!(!reaches_all_memory(&Spec::parse(line).unwrap()));
        }
    }
}
