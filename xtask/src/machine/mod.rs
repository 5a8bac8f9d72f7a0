//! The emulated machine: one place that knows QEMU's command line and what its
//! exit status means.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

use crate::bochs;
use crate::workspace::Workspace;

mod options;

pub use options::{DEFAULT_CPU, MAX_CPUS, MAX_MEMORY_MB, MIN_MEMORY_MB, Options, Wanted};

/// The emulator.
pub const QEMU: &str = "qemu-system-x86_64";
/// UEFI firmware (package ovmf).
const FIRMWARE: &str = "/usr/share/ovmf/OVMF.fd";
/// Most processors that the plugin watches (bench/host/plugin/shared.h).
const MAX_WATCHED_CPUS: u32 = 8;
/// Environment variable: a `-plugin` argument for every machine with one processor, and for those with several
/// whose instructions are counted (`bench` watches the tests that way).
pub const PLUGIN_VARIABLE: &str = "BATON_QEMU_PLUGIN";
/// QEMU leaves with `(value << 1) | 1` when the guest writes `value` to the
/// debug-exit port: 0x10 is success.
const EXIT_SUCCESS: i32 = (0x10 << 1) | 1;
/// 0x11 is failure.
const EXIT_FAILURE: i32 = (0x11 << 1) | 1;

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
    if let Some(board) = &options.board {
        qemu.args(["-machine", board]);
    }
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
    // Of several processors it watches those that take turns.
    let is_watched = options.cpus() == 1 || options.icount && options.cpus() <= MAX_WATCHED_CPUS;
    let plugin = std::env::var_os(PLUGIN_VARIABLE).filter(|_| is_watched);
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
            board: Some("pc,acpi=off".to_owned()),
            devices: vec!["edu".into(), "e1000e,romfile=".into()],
        };
        let fixed = options.at_first_places();
        assert_eq!(fixed.kernel_args, ["a=1", "b", "nokaslr"]);
        assert_eq!(fixed.at_first_places().kernel_args, fixed.kernel_args);
        let command = command(&boot, &options, Console::Pipe).unwrap();
        let args: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        let has = |pair: [&str; 2]| args.windows(2).any(|w| w == pair);
        assert!(has(["-m", "64"]) && has(["-smp", "2"]) && has(["-append", "a=1 b"]));
        assert!(has(["-machine", "pc,acpi=off"]));
        assert!(has(["-cpu", "qemu64"]) && has(["-device", "edu"]));
        assert!(has(["-netdev", "user,id=net1,restrict=on"]));
        assert!(has(["-device", "e1000e,romfile=,netdev=net1"]));
        assert!(has(["-kernel", "k"]) && has(["-initrd", "i"]) && has(["-serial", "stdio"]));
        assert!(has(["-icount", "shift=0,align=off,sleep=off"]) && has(["-accel", "tcg"]));
    }
}
