//! A bootable CD image through grub-mkrescue: the way onto real machines, with
//! BIOS and (where grub-efi-amd64-bin is installed) UEFI.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::compose::Bootable;
use crate::workspace::Workspace;

/// Where Debian puts GRUB for UEFI.
const GRUB_EFI: &str = "/usr/lib/grub/x86_64-efi";
/// Where Debian puts GRUB for BIOS.
const GRUB_BIOS: &str = "/usr/lib/grub/i386-pc";

/// What the CD can be started by.
#[must_use]
pub fn firmwares() -> String {
    let both = [(GRUB_BIOS, "BIOS"), (GRUB_EFI, "UEFI")];
    let found = both.iter().filter(|(path, _)| Path::new(path).is_dir()).map(|(_, name)| *name);
    found.collect::<Vec<_>>().join(" and ")
}

/// Whether `output` can be written, asked before minutes of work for it.
///
/// # Errors
/// A sentence when it cannot.
pub fn check_output(output: &Path) -> Result<()> {
    ensure!(!output.is_dir(), "{} is a directory; name a file in it with -o", output.display());
    let existed = output.exists();
    OpenOptions::new().append(true).create(true).open(output).with_context(|| {
        format!("cannot write the CD image to {}; name another place with -o", output.display())
    })?;
    if !existed {
        let _ = std::fs::remove_file(output);
    }
    Ok(())
}

/// Writes `bootable` as a CD image to `output`.
///
/// # Errors
/// A sentence when GRUB's tools are missing or refuse.
pub fn write(
    workspace: &Workspace,
    bootable: &Bootable,
    kernel_args: &[String],
    output: &Path,
) -> Result<()> {
    ensure!(
        Path::new(GRUB_BIOS).is_dir() || Path::new(GRUB_EFI).is_dir(),
        "no GRUB is installed to make a CD with; install grub-pc-bin or grub-efi-amd64-bin"
    );
    let _alone = workspace.alone("disc")?;
    let tree = stage(workspace, bootable, kernel_args)?;
    let result = Command::new("grub-mkrescue")
        .arg("-o")
        .arg(output)
        .arg(&tree)
        .output()
        .context("cannot run grub-mkrescue; install grub-common, xorriso and mtools")?;
    if !result.status.success() || !output.is_file() {
        bail!(
            "grub-mkrescue could not write {}:\n{}",
            output.display(),
            String::from_utf8_lossy(&result.stderr).trim_end()
        );
    }
    Ok(())
}

/// The CD's content as a folder.
fn stage(workspace: &Workspace, bootable: &Bootable, kernel_args: &[String]) -> Result<PathBuf> {
    let name = bootable.image.file_stem().unwrap_or_default();
    let tree = workspace.target(Path::new("iso").join(name))?;
    let grub = workspace.target(Path::new("iso").join(name).join("boot/grub"))?;
    let boot = tree.join("boot");
    let put = |from: &Path, to: PathBuf| {
        std::fs::copy(from, &to)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
    };
    put(&bootable.kernel, boot.join("baton-kernel"))?;
    put(&bootable.image, boot.join("baton.img"))?;
    let config = grub.join("grub.cfg");
    std::fs::write(&config, menu(kernel_args, bootable.on_screen))
        .with_context(|| format!("cannot write {}", config.display()))?;
    Ok(tree)
}

/// What stays on the screen of a system that does not use it.
const CONTINUE: &str =
    "Baton starts. If nothing follows here, continue on the serial port (115200 baud, 8N1).";

/// What GRUB does with the screen, behind the line that names the kernel, whose header asks for a
/// framebuffer: the modes that are tried for a system that has a screen, largest first among those
/// that any machine has; for another one what GRUB says stays there.
const PIXELS: &str = "1280x800x32,1024x768x32,800x600x32,1280x800,1024x768,800x600,auto";
const TEXT: &str = "text";

/// GRUB's menu: one entry, started at once, everything also on the serial port.
fn menu(kernel_args: &[String], on_screen: bool) -> String {
    let (video, mode) = if on_screen { ("insmod all_video\n", PIXELS) } else { ("", TEXT) };
    let args: String = kernel_args.iter().map(|word| format!(" {word}")).collect();
    format!(
        "set timeout=0\n\
         set default=0\n\
         serial --unit=0 --speed=115200\n\
         terminal_output console serial\n\
         {video}\
         menuentry \"Baton\" {{\n\
         \techo '{CONTINUE}'\n\
         \tmultiboot2 /boot/baton-kernel{args}\n\
         \tmodule2 /boot/baton.img baton.img\n\
         \tset gfxpayload={mode}\n\
         \tboot\n\
         }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_cannot_be_is_refused_at_once() {
        let folder = std::env::temp_dir();
        let new = folder.join(format!("baton-iso-{}", std::process::id()));
        assert!(check_output(&new).is_ok() && !new.exists());
        let refused = |path: &Path| format!("{:#}", check_output(path).unwrap_err());
        assert!(refused(&folder).contains("is a directory"));
        assert!(refused(&new.join("x.iso")).contains("name another place with -o"));
    }

    #[test]
    fn menu_boots_kernel_and_image() {
        let text = menu(&["kmem=8M".to_owned(), "verbose".to_owned()], false);
        assert!(text.contains("multiboot2 /boot/baton-kernel kmem=8M verbose\n"));
        assert!(text.contains("module2 /boot/baton.img baton.img\n"));
        assert!(text.contains("continue on the serial port"));
        assert!(text.contains("gfxpayload=text\n") && !text.contains("all_video"));
        let text = menu(&[], true);
        assert!(text.contains("gfxpayload=1280x800x32,") && text.contains("insmod all_video\n"));
    }
}
