//! Archives in the form that kernels unpack as their first file system: cpio,
//! "newc" (docs.kernel.org, "initramfs buffer format").
//!
//! What is written depends on nothing but what was put in: names sorted, one
//! owner, one time stamp for everything.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// Modification time of every file: the day Debian 12 appeared, seconds.
const TIME_STAMP: u32 = 1_686_355_200;
const MAGIC: &[u8] = b"070701";
/// Magic, and 13 numbers of 8 hexadecimal digits.
const HEADER_BYTES: usize = 6 + 13 * 8;
/// Magic, and the file's number.
const NUMBER_END: usize = 6 + 8;
const END: &str = "TRAILER!!!";
/// Longest path that Linux takes, bytes.
const MAX_PATH_BYTES: usize = 4095;

/// File type bits of the mode.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const TYPE_BITS: u32 = 0o170_000;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    contents: Vec<u8>,
}

/// A tree of files to be.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
}

impl Archive {
    /// Adds a directory, and those above it.
    pub fn directory(&mut self, path: &str, permissions: u32) {
        self.put(path, DIRECTORY | permissions, Vec::new());
    }

    /// Adds a regular file.
    pub fn file(&mut self, path: &str, permissions: u32, contents: impl Into<Vec<u8>>) {
        self.put(path, REGULAR | permissions, contents.into());
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.put(path, LINK | 0o777, target.into());
    }

    /// Whether something has this name.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.entries.contains_key(path.trim_matches('/'))
    }

    fn put(&mut self, path: &str, mode: u32, contents: Vec<u8>) {
        let path = path.trim_matches('/');
        if let Some((above, _)) = path.rsplit_once('/')
            && !self.entries.contains_key(above)
        {
            self.directory(above, 0o755);
        }
        self.entries.insert(path.to_owned(), Entry { mode, contents });
    }

    /// Adds what is at `source` on this machine, directories with all they hold.
    /// Permissions become 755 or 644, by whether the owner may execute the file;
    /// a directory that is here already keeps its own.
    ///
    /// # Errors
    /// When something cannot be read, or is neither file, directory nor link.
    pub fn copy(&mut self, path: &str, source: &Path) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let unreadable = || format!("cannot read {}", source.display());
        let metadata = source.symlink_metadata().with_context(unreadable)?;
        let kind = metadata.file_type();
        let permissions = if metadata.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
        if kind.is_symlink() {
            let target = std::fs::read_link(source).with_context(unreadable)?;
            self.link(path, &target.to_string_lossy());
        } else if kind.is_file() {
            self.file(path, permissions, std::fs::read(source).with_context(unreadable)?);
        } else if kind.is_dir() {
            if !self.has(path) {
                self.directory(path, 0o755);
            }
            for entry in std::fs::read_dir(source).with_context(unreadable)? {
                let entry = entry.with_context(unreadable)?;
                let name = entry.file_name();
                let name = name.to_str().with_context(|| {
                    format!("the name of {} is not UTF-8", entry.path().display())
                })?;
                self.copy(&format!("{path}/{name}"), &entry.path())?;
            }
        } else {
            bail!("{} is no file, directory or link; leave it out", source.display());
        }
        Ok(())
    }

    /// The archive's bytes.
    ///
    /// # Errors
    /// A sentence about the file that the form cannot hold.
    pub fn write(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for (number, (path, entry)) in (1..).zip(&self.entries) {
            ensure!(
                path.len() <= MAX_PATH_BYTES && u32::try_from(entry.contents.len()).is_ok(),
                "{path} is too large, or its name too long, for a cpio archive"
            );
            write_entry(&mut out, number, path, entry);
        }
        write_entry(&mut out, 0, END, &Entry { mode: 0, contents: Vec::new() });
        Ok(out)
    }
}

fn write_entry(out: &mut Vec<u8>, number: u32, path: &str, entry: &Entry) {
    let time = if number == 0 { 0 } else { TIME_STAMP };
    // number, mode, owner, group, links, time, size, device numbers (4), name length, check
    let size = entry.contents.len() as u32;
    let fields = [number, entry.mode, 0, 0, 1, time, size, 0, 0, 0, 0, path.len() as u32 + 1, 0];
    out.extend_from_slice(MAGIC);
    fields.iter().for_each(|field| out.extend_from_slice(format!("{field:08X}").as_bytes()));
    out.extend_from_slice(path.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(&entry.contents);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// What an archive says about one of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Path without the slash in front.
    pub path: String,
    /// Type and permissions.
    pub mode: u32,
    /// Size of the contents, bytes.
    pub bytes: usize,
    /// Where a link points to.
    pub target: Option<String>,
    /// Where the record begins.
    offset: usize,
}

impl Listed {
    /// One line, as `ls -l` has it.
    #[must_use]
    pub fn line(&self) -> String {
        let kind = match self.mode & TYPE_BITS {
            DIRECTORY => 'd',
            REGULAR => '-',
            LINK => 'l',
            0o020_000 => 'c',
            0o060_000 => 'b',
            0o010_000 => 'p',
            _ => '?',
        };
        let arrow = self.target.as_ref().map(|to| format!(" -> {to}")).unwrap_or_default();
        format!("{kind}{:04o} {:>9} {}{arrow}", self.mode & 0o7777, self.bytes, self.path)
    }
}

/// Reads the table of contents up to the end mark.
///
/// # Errors
/// A sentence about the first thing that is wrong, with its offset.
pub fn list(archive: &[u8]) -> Result<Vec<Listed>> {
    read(archive).map(|(entries, _)| entries)
}

/// The entries, and the offset of the end mark.
fn read(archive: &[u8]) -> Result<(Vec<Listed>, usize)> {
    let mut entries = Vec::new();
    let mut at = 0;
    loop {
        let (entry, next) =
            record(archive, at).with_context(|| format!("the archive is broken at byte {at}"))?;
        if entry.path == END {
            return Ok((entries, at));
        }
        entries.push(entry);
        at = next;
    }
}

/// The record at `at`, and where the next one begins.
fn record(archive: &[u8], at: usize) -> Result<(Listed, usize)> {
    let header = archive.get(at..at + HEADER_BYTES).context("it ends without an end mark")?;
    ensure!(header.starts_with(MAGIC), "there is no record of the kind `newc` (070701)");
    let field = |index: usize| -> Result<usize> {
        let digits = header.get(6 + index * 8..14 + index * 8).unwrap_or_default();
        let text = str::from_utf8(digits).ok();
        let number = text.and_then(|text| usize::from_str_radix(text, 16).ok());
        number.with_context(|| format!("field {index} is no hexadecimal number"))
    };
    let (mode, bytes, name_bytes) = (field(1)?, field(6)?, field(11)?);
    let name = at + HEADER_BYTES;
    let contents = (name + name_bytes).next_multiple_of(4);
    let end = contents + bytes;
    ensure!(name_bytes > 0 && end <= archive.len(), "a record reaches beyond the end");
    let path = String::from_utf8_lossy(&archive[name..name + name_bytes - 1]).into_owned();
    let is_link = mode as u32 & TYPE_BITS == LINK;
    let target = is_link.then(|| String::from_utf8_lossy(&archive[contents..end]).into_owned());
    let entry = Listed { path, mode: mode as u32, bytes, target, offset: at };
    Ok((entry, end.next_multiple_of(4)))
}

/// The contents of the regular file `path` of an archive.
#[must_use]
pub fn contents<'a>(archive: &'a [u8], path: &str) -> Option<&'a [u8]> {
    let entries = list(archive).ok()?;
    let entry = entries.iter().rfind(|entry| entry.path == path)?;
    let name = entry.offset + HEADER_BYTES;
    let from = (name + path.len() + 1).next_multiple_of(4);
    archive.get(from..from + entry.bytes)
}

/// Everything outside the folder `path`: the records, one after the other, without
/// their numbers, which depend on what is inside.
///
/// # Errors
/// When it is no archive.
pub fn outside(archive: &[u8], path: &str) -> Result<Vec<u8>> {
    let (entries, end) = read(archive)?;
    let mut kept = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let next = entries.get(index + 1).map_or(end, |next| next.offset);
        if !entry.path.starts_with(path) {
            kept.extend_from_slice(&archive[entry.offset + NUMBER_END..next]);
        }
    }
    Ok(kept)
}

/// One archive out of two: the files of `second` come after those of `first`,
/// so they win where names are the same.
///
/// # Errors
/// When one of them is no archive.
pub fn join(first: &[u8], second: &[u8]) -> Result<Vec<u8>> {
    let (_, end) = read(first)?;
    read(second)?;
    Ok([&first[..end], second].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Archive {
        let mut archive = Archive::default();
        archive.file("/bin/tool", 0o755, "hello");
        archive.link("/bin/sh", "tool");
        archive.directory("/tmp", 0o1777);
        archive
    }

    #[test]
    fn what_is_written_can_be_read() {
        let bytes = sample().write().unwrap();
        assert!(bytes.len().is_multiple_of(4));
        let lines: Vec<String> = list(&bytes).unwrap().iter().map(Listed::line).collect();
        assert_eq!(
            lines,
            [
                "d0755         0 bin",
                "l0777         4 bin/sh -> tool",
                "-0755         5 bin/tool",
                "d1777         0 tmp",
            ]
        );
        assert_eq!(contents(&bytes, "bin/tool"), Some(&b"hello"[..]));
        assert_eq!(contents(&bytes, "bin/other"), None);
    }

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let mut other = Archive::default();
        other.directory("tmp", 0o1777);
        other.link("bin/sh", "tool");
        other.file("bin/tool", 0o755, "hello");
        assert_eq!(other.write().unwrap(), sample().write().unwrap());
    }

    #[test]
    fn a_folder_can_be_left_out() {
        let mut other = sample();
        other.directory("tmp", 0o700);
        let rest = |archive: &Archive, path| outside(&archive.write().unwrap(), path).unwrap();
        assert_ne!(rest(&sample(), "bin/"), rest(&other, "bin/"));
        let mut more = sample();
        more.file("bin/more", 0o755, "more");
        assert_eq!(rest(&sample(), "bin/"), rest(&more, "bin/"));
        assert_ne!(rest(&sample(), "tmp/"), rest(&more, "tmp/"));
    }

    #[test]
    fn joined_archives_are_one() {
        let mut second = Archive::default();
        second.file("bin/tool", 0o755, "other words");
        let joined = join(&sample().write().unwrap(), &second.write().unwrap()).unwrap();
        let entries = list(&joined).unwrap();
        assert_eq!(entries.len(), 6);
        assert_eq!(contents(&joined, "bin/tool"), Some(&b"other words"[..]));
        assert_eq!(joined.windows(END.len()).filter(|w| *w == END.as_bytes()).count(), 1);
    }

    #[test]
    fn broken_archives_are_refused_with_the_place() {
        let bytes = sample().write().unwrap();
        let words = |bytes: &[u8]| format!("{:#}", list(bytes).unwrap_err());
        assert!(words(&bytes[..bytes.len() - 130]).contains("broken at byte"));
        assert!(words(b"not an archive").contains("it ends without an end mark"));
        let mut other = bytes.clone();
        other[3] = b'9';
        assert!(words(&other).contains("no record of the kind"));
        other = bytes.clone();
        other[10] = b'x';
        assert!(list(&other).is_ok(), "the inode number is of no interest");
        other[6 + 6 * 8] = b'F';
        assert!(words(&other).contains("reaches beyond the end"));
    }

    #[test]
    fn trees_are_copied() {
        let root = std::env::temp_dir().join(format!("baton-cpio-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "x").unwrap();
        std::os::unix::fs::symlink("b/file", root.join("a/link")).unwrap();
        let mut archive = Archive::default();
        let copied = archive.copy("share", &root);
        let refused = Archive::default().copy("x", Path::new("/dev/null")).unwrap_err();
        std::fs::remove_dir_all(&root).unwrap();
        copied.unwrap();
        let entries = list(&archive.write().unwrap()).unwrap();
        let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["share", "share/a", "share/a/b", "share/a/b/file", "share/a/link"]);
        assert!(refused.to_string().contains("no file, directory or link"));
    }

    #[test]
    fn archives_are_aligned_and_closed() {
        let mut archive = Archive::default();
        archive.file("init", 0o755, *b"hello");
        let bytes = archive.write().unwrap();
        assert!(bytes.starts_with(MAGIC) && bytes.len().is_multiple_of(4));
        assert_eq!(bytes.windows(END.len()).filter(|w| *w == END.as_bytes()).count(), 1);
        // header 110, name 5, padded to 116; five bytes, padded to 8.
        assert_eq!(&bytes[116..121], b"hello");
        assert!(bytes[124..].starts_with(MAGIC));
    }
}
