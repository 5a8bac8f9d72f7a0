//! The emulated machine: one place that knows QEMU's command line and what its
//! exit status means.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::bochs;
use crate::compose::Bootable;
use crate::ui;
use crate::workspace::Workspace;

/// The emulator.
pub const QEMU: &str = "qemu-system-x86_64";
/// UEFI firmware (package ovmf).
const FIRMWARE: &str = "/usr/share/ovmf/OVMF.fd";
/// Least memory that a machine can be asked for, MiB.
pub const MIN_MEMORY_MB: u32 = 16;
/// Most: a TiB.
pub const MAX_MEMORY_MB: u32 = 1 << 20;
/// What it has if nobody says anything, MiB.
const MEMORY_MB: u32 = 512;
/// Most processors: as many as the kernel starts.
pub const MAX_CPUS: u32 = 64;
/// The processor with everything that the emulator knows.
pub const DEFAULT_CPU: &str = "max";
/// Environment variable: a `-plugin` argument for every machine with one processor
/// (`bench` watches the tests that way).
pub const PLUGIN_VARIABLE: &str = "BATON_QEMU_PLUGIN";
/// The kernel's word for that; Linux has the same.
const FIRST_PLACES: &str = "nokaslr";
/// QEMU leaves with `(value << 1) | 1` when the guest writes `value` to the
/// debug-exit port: 0x10 is success.
const EXIT_SUCCESS: i32 = (0x10 << 1) | 1;
/// 0x11 is failure.
const EXIT_FAILURE: i32 = (0x11 << 1) | 1;

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
    /// Processors of the machine [default: what the system's description says, or 1]
    #[arg(long, value_name = "N", value_parser = ui::number::<u32>(1, MAX_CPUS as u64))]
    pub cpus: Option<u32>,
    /// Processor of the machine, as the emulator names it (`max,-xsave`)
    #[arg(long, value_name = "MODEL", default_value = DEFAULT_CPU)]
    pub cpu: String,
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

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: None,
            cpus: None,
            cpu: DEFAULT_CPU.to_owned(),
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

/// How the machine is started.
#[derive(Clone, Debug)]
pub enum Boot {
    /// QEMU loads kernel and image itself (PVH).
    Pvh {
        /// The kernel's ELF file.
        kernel: PathBuf,
        /// The boot image.
        image: PathBuf,
    },
    /// GRUB on a CD, started by BIOS.
    Iso(PathBuf),
    /// GRUB on a CD, started by UEFI.
    Uefi(PathBuf),
    /// GRUB on a CD, started by the BIOS of the second emulator ([`crate::bochs`]).
    Bochs(PathBuf),
}

/// Where the serial port goes.
#[derive(Clone, Copy, Debug)]
pub enum Console<'a> {
    /// This terminal, with the emulator's own keys.
    Terminal,
    /// Standard input and output, without the emulator's keys.
    Pipe,
    /// Output into a file.
    File(&'a Path),
}

/// Whether it is a card for whose network nobody has said anything: it gets one that leads nowhere.
fn is_network_card(device: &str) -> bool {
    let name = device.split(',').next().unwrap_or_default();
    let is_card =
        name.starts_with("e1000") || name.starts_with("rtl8139") || name.starts_with("virtio-net");
    is_card && !device.contains("netdev=")
}

/// The command that starts the machine.
///
/// # Errors
/// A sentence when the firmware is missing.
pub fn command(boot: &Boot, options: &Options, console: Console<'_>) -> Result<Command> {
    if let Boot::Bochs(iso) = boot {
        ensure!(matches!(console, Console::Pipe), "Bochs has its serial port at a pipe only");
        return bochs::command(iso, options, &iso.with_extension("bochs"));
    }
    let mut qemu = Command::new(QEMU);
    let accelerator = if options.in_turns { "tcg,thread=single" } else { "tcg" };
    qemu.args(["-accel", accelerator, "-cpu", &options.cpu]);
    qemu.args(["-display", "none", "-no-reboot", "-nic", "none"]);
    qemu.args(["-m", &options.memory().to_string(), "-smp", &options.cpus().to_string()]);
    qemu.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]);
    for (number, device) in options.devices.iter().enumerate() {
        if is_network_card(device) {
            // It warns of a card without a network.
            qemu.args(["-netdev", &format!("user,id=net{number},restrict=on")]);
            qemu.args(["-device", &format!("{device},netdev=net{number}")]);
        } else {
            qemu.args(["-device", device]);
        }
    }
    if options.icount {
        qemu.args(["-icount", "shift=0,align=off,sleep=off", "-rtc", "clock=vm"]);
        // The processor's random numbers are the same in every run, too.
        qemu.args(["-seed", "1"]);
    }
    let plugin = std::env::var_os(PLUGIN_VARIABLE).filter(|_| options.cpus() == 1);
    let watched = plugin.as_ref().map(|_| options.at_first_places());
    if let Some(plugin) = plugin {
        qemu.arg("-plugin").arg(plugin);
    }
    match console {
        Console::Terminal => qemu.args(["-serial", "mon:stdio"]),
        Console::Pipe => qemu.args(["-serial", "stdio", "-monitor", "none"]),
        Console::File(path) => {
            qemu.arg("-serial").arg(format!("file:{}", path.display())).args(["-monitor", "none"])
        }
    };
    media(&mut qemu, boot, watched.as_ref().unwrap_or(options))?;
    Ok(qemu)
}

/// What the machine boots from.
fn media(qemu: &mut Command, boot: &Boot, options: &Options) -> Result<()> {
    match boot {
        Boot::Pvh { kernel, image } => {
            qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(image);
            if !options.kernel_args.is_empty() {
                qemu.arg("-append").arg(options.kernel_args.join(" "));
            }
        }
        Boot::Iso(iso) | Boot::Bochs(iso) => {
            qemu.args(["-boot", "d", "-cdrom"]).arg(iso);
        }
        Boot::Uefi(iso) => {
            ensure!(
                Path::new(FIRMWARE).is_file(),
                "there is no UEFI firmware at {FIRMWARE}; install the package ovmf"
            );
            qemu.args(["-bios", FIRMWARE, "-cdrom"]).arg(iso);
        }
    }
    Ok(())
}

/// Why the machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The guest said success.
    Success,
    /// The guest said failure.
    Failure,
    /// Powered off or reset, or the person left with the emulator's key.
    Reset,
    /// Reset by the processor, which could not even deliver a fault.
    TripleFault,
    /// The emulator ended in another way.
    Other(Option<i32>),
}

impl Exit {
    /// Reads QEMU's exit status.
    #[must_use]
    pub fn from_status(status: ExitStatus) -> Self {
        match status.code() {
            Some(EXIT_SUCCESS) => Self::Success,
            Some(EXIT_FAILURE) => Self::Failure,
            Some(0) => Self::Reset,
            other => Self::Other(other),
        }
    }

    /// What happened, for a message.
    #[must_use]
    pub fn sentence(self) -> String {
        match self {
            Self::Success => "the guest reported success".to_owned(),
            Self::Failure => "the guest reported failure".to_owned(),
            Self::Reset => {
                "the emulator was left (Ctrl-A X), or the guest switched the machine off".to_owned()
            }
            Self::TripleFault => {
                "the machine was reset by a triple fault: a fault met a fault, and no handler \
                 could take it"
                    .to_owned()
            }
            Self::Other(Some(code)) => format!("the emulator ended with status {code}"),
            Self::Other(None) => "the emulator was killed by a signal".to_owned(),
        }
    }
}

/// Runs the machine with this terminal as its console until it ends.
///
/// # Errors
/// When QEMU cannot be started.
pub fn interact(workspace: &Workspace, boot: &Boot, options: &Options) -> Result<Exit> {
    let log = workspace.target("run")?.join("resets.log");
    let _ = std::fs::remove_file(&log);
    let mut qemu = command(boot, options, Console::Terminal)?;
    // The emulator ends with the same status for its own key and for a triple fault, which
    // it writes down.
    qemu.args(["-d", "cpu_reset", "-D"]).arg(&log);
    let status = qemu.stdin(Stdio::inherit()).status().with_context(|| {
        format!("cannot start {QEMU}; is the package qemu-system-x86 installed?")
    })?;
    let said = std::fs::read(&log).unwrap_or_default();
    Ok(Exit::from_status(status).explained(&String::from_utf8_lossy(&said)))
}

impl Exit {
    /// What it was, given what the emulator wrote down of resets.
    fn explained(self, log: &str) -> Self {
        match self {
            Self::Reset if log.contains("Triple fault") => Self::TripleFault,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn exit_codes_mean_what_the_guest_wrote() {
        let code = |code: i32| Exit::from_status(ExitStatus::from_raw(code << 8));
        assert_eq!(code(33), Exit::Success);
        assert_eq!(code(35), Exit::Failure);
        assert_eq!(code(0), Exit::Reset);
        assert_eq!(code(1), Exit::Other(Some(1)));
        assert_eq!(Exit::from_status(ExitStatus::from_raw(9)), Exit::Other(None));
        assert_eq!(code(0).explained("CPU Reset (CPU 0)\n"), Exit::Reset);
        assert_eq!(code(0).explained("Triple fault\nCPU Reset (CPU 0)\n"), Exit::TripleFault);
        assert_eq!(code(33).explained("Triple fault\n"), Exit::Success);
    }

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
    fn a_description_says_how_much_memory_unless_the_person_does() {
        let with = |memory| wants(Wanted { memory, ..Wanted::default() });
        let said = Options { memory: Some(64), ..Options::default() };
        assert_eq!(Options::default().suited_to(&with(None)).memory(), 512);
        assert_eq!(Options::default().suited_to(&with(Some(1024))).memory(), 1024);
        assert_eq!(said.suited_to(&with(Some(1024))).memory(), 64);
    }

    #[test]
    fn command_line_follows_the_options() {
        let boot = Boot::Pvh { kernel: "k".into(), image: "i".into() };
        let options = Options {
            memory: Some(64),
            icount: true,
            in_turns: false,
            kernel_args: vec!["a=1".into(), "b".into()],
            cpus: Some(2),
            cpu: "qemu64".to_owned(),
            devices: vec!["edu".into(), "e1000e,romfile=".into()],
        };
        let fixed = options.at_first_places();
        assert_eq!(fixed.kernel_args, ["a=1", "b", "nokaslr"]);
        assert_eq!(fixed.at_first_places().kernel_args, fixed.kernel_args);
        let command = command(&boot, &options, Console::Pipe).unwrap();
        let args: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        let has = |pair: [&str; 2]| args.windows(2).any(|w| w == pair);
        assert!(has(["-m", "64"]) && has(["-smp", "2"]) && has(["-append", "a=1 b"]));
        assert!(has(["-cpu", "qemu64"]) && has(["-device", "edu"]));
        assert!(has(["-netdev", "user,id=net1,restrict=on"]));
        assert!(has(["-device", "e1000e,romfile=,netdev=net1"]));
        assert!(has(["-kernel", "k"]) && has(["-initrd", "i"]) && has(["-serial", "stdio"]));
        assert!(has(["-icount", "shift=0,align=off,sleep=off"]) && has(["-accel", "tcg"]));
    }
}
