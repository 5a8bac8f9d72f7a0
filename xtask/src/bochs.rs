//! The second emulator: Bochs, an implementation of the architecture that shares nothing with QEMU's, and has what
//! QEMU's lacks: PCIDs, x2APIC, flags and faults to the letter. It boots a CD, by BIOS, and its serial port is a pipe.
//!
//! Its screen wants a terminal, which `script` makes; when that ends, Bochs ends.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::machine::Options;

/// The emulator (package bochs; its screen on a terminal: bochs-term).
pub const BOCHS: &str = "bochs";
/// Its BIOS (package bochsbios).
const BIOS: &str = "/usr/share/bochs/BIOS-bochs-latest";
/// The BIOS of its screen (package vgabios).
const SCREEN_BIOS: &str = "/usr/share/vgabios/vgabios.bin";
/// Instructions of a second of the machine's time.
const PER_SECOND: u32 = 50_000_000;
/// What Debian's Bochs, which is built with a debugger, is told: to go on, and to end when that ends.
const GO_ON: &str = "c\nq\n";
/// The serial port's file: what the shell below has made of its standard output.
const SERIAL: &str = "/proc/self/fd/3";

/// The command that boots `iso`; `options.cpu` is a model as Bochs names it. What Bochs reads and says is in `folder`.
///
/// # Errors
/// A sentence when a part of it is missing, or a file cannot be written.
pub fn command(iso: &Path, options: &Options, folder: &Path) -> Result<Command> {
    for (file, package) in [(BIOS, "bochsbios"), (SCREEN_BIOS, "vgabios")] {
        ensure!(
            Path::new(file).is_file(),
            "there is no {file} for Bochs; install the package {package}"
        );
    }
    ensure!(
        options.devices.is_empty() && !options.icount,
        "a machine of Bochs has no devices of QEMU's and does not count instructions"
    );
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let put = |name: &str, text: &str| -> Result<PathBuf> {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    };
    let description = put("bochsrc", &description(iso, options, &folder.join("bochs.log")))?;
    let commands = put("commands", GO_ON)?;
    let bochs = format!(
        "stty rows 40 cols 100; exec {BOCHS} -q -f '{}' -rc '{}'",
        description.display(),
        commands.display()
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec 3>&1 >/dev/null 2>&1; exec script -qec \"$0\" /dev/null", &bochs])
        .env("TERM", "xterm");
    Ok(shell)
}

/// The machine's description.
fn description(iso: &Path, options: &Options, log: &Path) -> String {
    format!(
        "megs: {}\n\
         romimage: file={BIOS}\n\
         vgaromimage: file={SCREEN_BIOS}\n\
         cpu: model={}, count={}, ips={PER_SECOND}, reset_on_triple_fault=0\n\
         clock: sync=none\n\
         ata0-master: type=cdrom, path={}, status=inserted\n\
         boot: cdrom\n\
         com1: enabled=1, mode=file, dev={SERIAL}\n\
         display_library: term\n\
         log: {}\n\
         info: action=ignore\n\
         panic: action=fatal\n",
        options.memory(),
        options.cpu,
        options.cpus(),
        iso.display(),
        log.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_as_the_options_say() {
        let options = Options {
            memory: Some(64),
            cpus: Some(2),
            cpu: "corei7_skylake_x".to_owned(),
            ..Options::default()
        };
        let text = description(Path::new("/cd"), &options, Path::new("/log"));
        let has = |line: &str| text.lines().any(|other| other.starts_with(line));
        assert!(has("megs: 64") && has("cpu: model=corei7_skylake_x, count=2, "));
        assert!(has("ata0-master: type=cdrom, path=/cd,") && has("log: /log"));
    }
}
