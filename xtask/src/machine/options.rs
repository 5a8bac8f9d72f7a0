//! What can be said about the emulated machine, by a system's description and by the person.

use std::num::NonZero;

use clap::Args;

use crate::compose::Bootable;
use crate::ui;

/// Least memory that a machine can be asked for, MiB.
pub const MIN_MEMORY_MB: u32 = 16;
/// Most: a TiB.
pub const MAX_MEMORY_MB: u32 = 1 << 20;
/// What it has if nobody says anything, MiB.
const MEMORY_MB: u32 = 512;
/// Most processors: as many as the kernel starts.
pub const MAX_CPUS: u32 = 64;
/// Most that a person's machine has unasked.
const USUAL_CPUS: u32 = 4;
/// The processor with everything that the emulator knows.
pub const DEFAULT_CPU: &str = "max";
/// The kernel's word for that; Linux has the same.
const FIRST_PLACES: &str = "nokaslr";

/// What a system's description says of its machine.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Processors.
    pub cpus: Option<u32>,
    /// Memory, MiB.
    pub memory: Option<u32>,
    /// Devices that it has beside the usual ones, as the emulator names them.
    pub devices: Vec<String>,
}

/// What the person can choose about the machine.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Memory of the machine [default: what the system's description says, or 512]
    #[arg(long, value_name = "MB", value_parser = ui::number::<u32>(MIN_MEMORY_MB.into(), MAX_MEMORY_MB.into()))]
    pub memory: Option<u32>,
    /// Processors of the machine [default: what the system's description says, or as many as this
    /// computer has, 4 at most; 1 with --icount or --test and for `debug`]
    #[arg(long, value_name = "N", value_parser = ui::number::<u32>(1, MAX_CPUS as u64))]
    pub cpus: Option<u32>,
    /// Processor of the machine, as the emulator names it (`max,-xsave`)
    #[arg(long, value_name = "MODEL", default_value = DEFAULT_CPU)]
    pub cpu: String,
    /// The board, as the emulator names it, where it is not its own choice
    #[arg(skip)]
    pub board: Option<String>,
    /// A further device of the machine, as the emulator names it (`edu`; repeatable)
    #[arg(long = "device", value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Count instructions: the time stamp counter ticks once per instruction
    #[arg(long)]
    pub icount: bool,
    /// Give each processor its turn, by the emulator's clock: plugins that have no locks can watch
    #[arg(skip)]
    pub in_turns: bool,
    /// Word for the kernel's command line (repeatable)
    #[arg(long = "kernel-arg", value_name = "WORD")]
    pub kernel_args: Vec<String>,
}

impl Options {
    /// The machine's processors.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.cpus.unwrap_or(1)
    }

    /// The same machine; if nobody has said how many processors it has and nothing is counted on
    /// it, it has as many as this computer, but no more than usual.
    #[must_use]
    pub fn for_a_person(self) -> Self {
        let unasked = (!self.icount).then(|| usual_cpus(std::thread::available_parallelism().ok()));
        Self { cpus: self.cpus.or(unasked), ..self }
    }

    /// The machine's memory, MiB.
    #[must_use]
    pub fn memory(&self) -> u32 {
        self.memory.unwrap_or(MEMORY_MB)
    }

    /// The same machine, with as many processors and as much memory as `bootable` asks for unless
    /// the person has said how many and how much, and with the devices of both.
    #[must_use]
    pub fn suited_to(&self, bootable: &Bootable) -> Self {
        let Wanted { cpus, memory, devices } = &bootable.machine;
        let (cpus, memory) = (self.cpus.or(*cpus), self.memory.or(*memory));
        Self { cpus, memory, devices: [devices.as_slice(), &self.devices].concat(), ..self.clone() }
    }
}

/// How many processors a machine has on a computer with so many.
fn usual_cpus(of_computer: Option<NonZero<usize>>) -> u32 {
    of_computer.map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)).min(USUAL_CPUS)
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: None,
            cpus: None,
            cpu: DEFAULT_CPU.to_owned(),
            board: None,
            devices: Vec::new(),
            icount: false,
            in_turns: false,
            kernel_args: Vec::new(),
        }
    }
}

impl Options {
    /// The same with everything of the kernel's where it was linked: debuggers and instruments
    /// look for it there.
    #[must_use]
    pub fn at_first_places(&self) -> Self {
        let mut options = self.clone();
        if !options.kernel_args.iter().any(|word| word == FIRST_PLACES) {
            options.kernel_args.push(FIRST_PLACES.to_owned());
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(machine: Wanted) -> Bootable {
        Bootable { machine, ..Bootable::default() }
    }

    #[test]
    fn a_machine_has_the_devices_of_description_and_person() {
        let bootable = wants(Wanted { devices: vec!["edu".into()], ..Wanted::default() });
        let said = Options { devices: vec!["e1000e".into()], ..Options::default() };
        assert_eq!(said.suited_to(&bootable).devices, ["edu", "e1000e"]);
    }

    #[test]
    fn a_description_says_how_many_processors_unless_the_person_does() {
        let with = |cpus| wants(Wanted { cpus, ..Wanted::default() });
        let said = Options { cpus: Some(3), ..Options::default() };
        assert_eq!(Options::default().suited_to(&with(None)).cpus(), 1);
        assert_eq!(Options::default().suited_to(&with(Some(2))).cpus(), 2);
        assert_eq!(said.suited_to(&with(Some(2))).cpus(), 3);
    }

    #[test]
    fn a_machine_has_this_computers_processors_if_nobody_says() {
        let of = |count| usual_cpus(NonZero::new(count));
        assert_eq!([of(0), of(1), of(3), of(4), of(64), of(usize::MAX)], [1, 1, 3, 4, 4, 4]);
        let here = usual_cpus(std::thread::available_parallelism().ok());
        let counted = Options { icount: true, ..Options::default() };
        let said = Options { cpus: Some(7), ..Options::default() };
        assert_eq!(Options::default().for_a_person().cpus(), here);
        assert_eq!(counted.for_a_person().cpus(), 1);
        assert_eq!(said.for_a_person().cpus(), 7);
    }

    #[test]
    fn a_description_says_how_much_memory_unless_the_person_does() {
        let with = |memory| wants(Wanted { memory, ..Wanted::default() });
        let said = Options { memory: Some(64), ..Options::default() };
        assert_eq!(Options::default().suited_to(&with(None)).memory(), 512);
        assert_eq!(Options::default().suited_to(&with(Some(1024))).memory(), 1024);
        assert_eq!(said.suited_to(&with(Some(1024))).memory(), 64);
    }
}
