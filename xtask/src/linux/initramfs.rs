//! The first file system: which files of which Debian packages it holds.
//!
//! The small one is for people: busybox, bash, the C library, and what lies in
//! `systems/linux/`. The one for the tests has sqlite3, Python, and the programs
//! and scripts of `tests/linux/` on top.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::cpio::{self, Archive};
use super::packages::Packages;
use super::programs;
use crate::ui;
use crate::workspace::Workspace;

/// Files of our own: configuration, greetings, help.
const OVERLAY: &str = "systems/linux";
/// Where the scripts of the tests are, here and there.
const SCRIPTS: &str = "tests/linux/scripts";
/// Most bytes of the small one: it is in every image that people boot.
const MAX_BYTES: usize = 8 << 20;
/// Where Debian has the libraries of this architecture.
const LIBRARIES: &str = "lib/x86_64-linux-gnu";

/// What one at a time does: two at once would compile and write the same files.
const MAKING: &str = "archive";

/// Package, file in it, name in the archive.
type Part = (&'static str, &'static str, &'static str);

const BASE: [Part; 10] = [
    ("busybox-static", "bin/busybox", "bin/busybox"),
    ("bash-static", "bin/bash-static", "bin/bash"),
    (
        "libc6",
        "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    ),
    ("libc6", "lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"),
    ("libc6", "lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libc.so.6"),
    ("libc6", "lib/x86_64-linux-gnu/libm.so.6", "lib/x86_64-linux-gnu/libm.so.6"),
    ("libc6", "lib/x86_64-linux-gnu/libpthread.so.0", "lib/x86_64-linux-gnu/libpthread.so.0"),
    ("libc6", "lib/x86_64-linux-gnu/libdl.so.2", "lib/x86_64-linux-gnu/libdl.so.2"),
    ("libc6", "lib/x86_64-linux-gnu/librt.so.1", "lib/x86_64-linux-gnu/librt.so.1"),
    ("libgcc-s1", "lib/x86_64-linux-gnu/libgcc_s.so.1", "lib/x86_64-linux-gnu/libgcc_s.so.1"),
];

/// Programs and standard library for the tests.
const TEST: [Part; 5] = [
    ("bubblewrap", "usr/bin/bwrap", "usr/bin/bwrap"),
    ("sqlite3", "usr/bin/sqlite3", "usr/bin/sqlite3"),
    ("python3.11-minimal", "usr/bin/python3.11", "usr/bin/python3.11"),
    ("libpython3.11-minimal", "usr/lib/python3.11", "usr/lib/python3.11"),
    // What `tempfile` imports, and the small library leaves out.
    ("libpython3.11-stdlib", "usr/lib/python3.11/shutil.py", "usr/lib/python3.11/shutil.py"),
];

/// Package, where it has its libraries, and which (with the links to them).
const TEST_LIBRARIES: [(&str, &str, &str); 8] = [
    ("libcap2", LIBRARIES, "libcap.so"),
    ("libselinux1", LIBRARIES, "libselinux.so"),
    ("libpcre2-8-0", "usr/lib/x86_64-linux-gnu", "libpcre2-8.so"),
    ("libsqlite3-0", "usr/lib/x86_64-linux-gnu", "libsqlite3.so"),
    ("libreadline8", LIBRARIES, "libreadline.so"),
    ("libtinfo6", LIBRARIES, "libtinfo.so"),
    ("zlib1g", LIBRARIES, "libz.so"),
    ("libexpat1", LIBRARIES, "libexpat.so"),
];

/// Writes the small archive to `target/linux/initramfs.cpio`, unless it is there
/// as it would be written.
///
/// # Errors
/// When packages cannot be had, or it has become too large.
pub fn small(workspace: &Workspace) -> Result<PathBuf> {
    let _alone = workspace.alone(MAKING)?;
    let mut archive = Archive::default();
    base(workspace, &mut archive)?;
    let bytes = archive.write()?;
    ensure!(
        bytes.len() <= MAX_BYTES,
        "the initial file system has {}; expected at most {}",
        ui::bytes(bytes.len() as u64),
        ui::bytes(MAX_BYTES as u64)
    );
    keep(workspace, "initramfs.cpio", &bytes)
}

/// Writes the archive of the tests to `target/linux/test.cpio`.
///
/// # Errors
/// When packages cannot be had, or a test program cannot be compiled.
pub fn test(workspace: &Workspace) -> Result<PathBuf> {
    let _alone = workspace.alone(MAKING)?;
    let mut archive = Archive::default();
    base(workspace, &mut archive)?;
    let names: Vec<&str> =
        TEST.iter().map(|part| part.0).chain(TEST_LIBRARIES.iter().map(|part| part.0)).collect();
    let packages = Packages::get(workspace, &names)?;
    for (package, from, to) in TEST {
        archive.copy(to, &packages.file(package, from))?;
    }
    archive.link("usr/bin/python3", "python3.11");
    for (package, folder, library) in TEST_LIBRARIES {
        libraries(&mut archive, &packages.file(package, folder), folder, library)?;
    }
    for (name, file) in programs::build(workspace)? {
        archive.copy(&format!("test/bin/{name}"), &file)?;
    }
    archive.copy("test/bin/pin", &programs::client(workspace, programs::EXAMPLE)?)?;
    archive.copy("test/scripts", &workspace.path(SCRIPTS))?;
    keep(workspace, "test.cpio", &archive.write()?)
}

/// What both have.
fn base(workspace: &Workspace, archive: &mut Archive) -> Result<()> {
    let packages = Packages::get(workspace, &BASE.map(|part| part.0))?;
    for (package, from, to) in BASE {
        archive.copy(to, &packages.file(package, from))?;
    }
    for applet in applets(&packages.file("busybox-static", "bin/busybox"))? {
        if !archive.has(&applet) {
            archive.link(&applet, "/bin/busybox");
        }
    }
    for (path, permissions) in
        [("dev", 0o755), ("proc", 0o555), ("root", 0o700), ("tmp", 0o1777), ("var/tmp", 0o1777)]
    {
        archive.directory(path, permissions);
    }
    for folder in ["etc", "home", "mnt", "run", "srv", "sys"] {
        archive.directory(folder, 0o755);
    }
    archive.copy("usr/bin/baton", &programs::client(workspace, programs::OPERATOR)?)?;
    let overlay = workspace.path(OVERLAY);
    let entries = std::fs::read_dir(&overlay)
        .with_context(|| format!("cannot list {}", overlay.display()))?;
    for entry in entries.flatten() {
        archive.copy(&entry.file_name().to_string_lossy(), &entry.path())?;
    }
    Ok(())
}

/// The paths that busybox answers to, from busybox itself.
fn applets(busybox: &Path) -> Result<Vec<String>> {
    let output = Command::new(busybox)
        .arg("--list-full")
        .output()
        .with_context(|| format!("cannot run {} to ask for its applets", busybox.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let applets: Vec<String> = text.lines().map(str::to_owned).collect();
    ensure!(applets.iter().any(|a| a == "bin/sh"), "busybox lists no applet bin/sh");
    Ok(applets)
}

/// Copies `library*` of a folder.
fn libraries(archive: &mut Archive, from: &Path, to: &str, library: &str) -> Result<()> {
    let entries =
        std::fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?;
    let mut found = false;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(library) {
            archive.copy(&format!("{to}/{name}"), &entry.path())?;
            found = true;
        }
    }
    ensure!(found, "there is no {library} in {}", from.display());
    Ok(())
}

/// Writes `target/linux/NAME` if that changes anything.
fn keep(workspace: &Workspace, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = workspace.target("linux")?.join(name);
    if std::fs::read(&path).is_ok_and(|old| old == bytes) {
        return Ok(path);
    }
    workspace.replace(&path, bytes)?;
    Ok(path)
}

/// An archive of the person's own: read, unpacked if it is compressed, checked.
///
/// # Errors
/// A sentence when it is no archive.
pub fn own(path: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let tool = match bytes.get(..4) {
        Some([0x1F, 0x8B, ..]) => Some("gzip"),
        Some([0xFD, b'7', b'z', b'X']) => Some("xz"),
        Some([0x28, 0xB5, 0x2F, 0xFD]) => Some("zstd"),
        _ => None,
    };
    let bytes = match tool {
        Some(tool) => decompress(tool, path)?,
        None => bytes,
    };
    cpio::list(&bytes).with_context(|| format!("{} is no initial file system", path.display()))?;
    Ok(bytes)
}

fn decompress(tool: &str, path: &Path) -> Result<Vec<u8>> {
    let output =
        Command::new(tool).arg("-dc").arg(path).output().with_context(|| {
            format!("{} is compressed, but {tool} cannot be run", path.display())
        })?;
    if !output.status.success() {
        bail!(
            "{} cannot be decompressed: {}",
            path.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(output.stdout)
}

/// `archive` with the directory `source` as /share.
///
/// # Errors
/// When the directory cannot be read.
pub fn share(archive: &[u8], source: &Path) -> Result<Vec<u8>> {
    ensure!(source.is_dir(), "{} is no directory to share", source.display());
    let mut shared = Archive::default();
    shared.copy("share", source)?;
    cpio::join(archive, &shared.write()?)
}

/// A short name for contents: what was measured with the same is the same.
#[must_use]
pub fn fingerprint(parts: &[&[u8]]) -> String {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("baton-initramfs-{name}-{}", std::process::id()))
    }

    #[test]
    fn compressed_archives_are_unpacked() {
        let mut archive = Archive::default();
        archive.file("init", 0o755, "x".repeat(1000));
        let bytes = archive.write().unwrap();
        let path = scratch("own");
        std::fs::write(&path, &bytes).unwrap();
        let packed = Command::new("gzip").arg("-c").arg(&path).output().unwrap().stdout;
        std::fs::write(&path, packed).unwrap();
        let read = own(&path);
        std::fs::write(&path, "no archive at all, but long enough to have a header: ".repeat(9))
            .unwrap();
        let refused = own(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap(), bytes);
        assert!(format!("{refused:#}").contains("is no initial file system"), "{refused:#}");
    }

    #[test]
    fn a_directory_is_shared() {
        let folder = scratch("share");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("notes"), "hello").unwrap();
        let joined = share(&Archive::default().write().unwrap(), &folder);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(cpio::contents(&joined.unwrap(), "share/notes"), Some(&b"hello"[..]));
        assert!(share(&[], &folder).is_err());
    }

    #[test]
    fn fingerprints_tell_contents_apart() {
        assert_eq!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"ab", b"c"]));
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
    }
}
