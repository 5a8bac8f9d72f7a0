//! Unpacks the archive that the root begins with: cpio in its "newc" format, as
//! `find | cpio -o -H newc` makes it, several of them one behind the other.
//!
//! The archive comes from outside: every number in it is checked, and a bad one is
//! refused with a sentence that says where.

use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use hashbrown::HashMap;
use linux_raw_sys::general as linux;

use super::directory::{Directory, NAME_MAX, Name};
use super::inode::{Inode, Kind};
use super::regular::Regular;
use super::time::Time;
use crate::file::Source;
use crate::unix::Unix;

/// Bytes of a header: a magic number and 13 fields of eight hexadecimal digits.
const HEADER: usize = 110;
const END: &[u8] = b"TRAILER!!!";

/// The fields of a header that matter.
struct Header {
    inode: u32,
    mode: u32,
    uid: u32,
    gid: u32,
    links: u32,
    time: u32,
    size: usize,
    device: [u32; 2],
    special: [u32; 2],
    name_size: usize,
}

/// Reads the archive from its beginning to its end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(len);
        let piece = end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| {
            format!(
                "the archive ends at byte {} inside {what} that begins at byte {}",
                self.bytes.len(),
                self.at
            )
        })?;
        self.at += len;
        Ok(piece)
    }

    fn align(&mut self) {
        self.at = self.at.next_multiple_of(4).min(self.bytes.len());
    }

    /// The next header; `None` at the end of the last archive.
    fn header(&mut self) -> Result<Option<Header>, String> {
        self.at += self.bytes[self.at..].iter().take_while(|byte| **byte == 0).count();
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let header = self.take(HEADER, "a header")?;
        if !header.starts_with(b"070701") && !header.starts_with(b"070702") {
            return Err(format!(
                "at byte {start} of the archive there is no header of a \"newc\" cpio archive; \
                 make one with: cpio -o -H newc"
            ));
        }
        let mut fields = [0_u32; 13];
        for (index, field) in fields.iter_mut().enumerate() {
            let digits = &header[6 + 8 * index..14 + 8 * index];
            *field = core::str::from_utf8(digits)
                .ok()
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
                .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                .ok_or_else(|| {
                    format!("field {index} of the header at byte {start} is not a number")
                })?;
        }
        let [inode, mode, uid, gid, links, time, size, major, minor, rmajor, rminor, name, _] =
            fields;
        Ok(Some(Header {
            inode,
            mode,
            uid,
            gid,
            links,
            time,
            size: size as usize,
            device: [major, minor],
            special: [rmajor, rminor],
            name_size: name as usize,
        }))
    }
}

/// Unpacks `archive` into the root.
///
/// # Errors
/// A sentence that says what is wrong with the archive, or that memory is full.
pub fn unpack(unix: &Unix, archive: &[u8]) -> Result<(), String> {
    unix.fs.set_times(Time::now(unix));
    let mut reader = Reader { bytes: archive, at: 0 };
    let mut linked = HashMap::new();
    while let Some(header) = reader.header()? {
        let name = reader.take(header.name_size, "a name")?;
        let Some((0, name)) = name.split_last() else {
            return Err(format!("the name before byte {} has no end", reader.at));
        };
        reader.align();
        let contents = reader.take(header.size, "a file's contents")?;
        reader.align();
        if name == END {
            linked.clear();
            continue;
        }
        enter(unix, &header, name, contents, &mut linked).map_err(|why| {
            format!("the archive's entry \"{}\": {why}", String::from_utf8_lossy(name))
        })?;
    }
    Ok(())
}

/// Inodes with several names, by device and number in the archive.
type Linked = HashMap<([u32; 2], u32), Rc<Inode>>;

/// The names of a path, `.` left out.
fn names(path: &[u8]) -> Result<Vec<&[u8]>, String> {
    let names: Vec<_> =
        path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    if names.contains(&&b".."[..]) {
        return Err(String::from("\"..\" leads out of the archive"));
    }
    if names.iter().any(|name| name.len() > NAME_MAX || name.contains(&0)) {
        return Err(format!("a name is longer than {NAME_MAX} bytes or has a zero in it"));
    }
    Ok(names)
}

/// Enters one file.
fn enter(
    unix: &Unix,
    header: &Header,
    path: &[u8],
    contents: &[u8],
    linked: &mut Linked,
) -> Result<(), String> {
    let names = names(path)?;
    let Some((last, above)) = names.split_last() else {
        set_attributes(&unix.fs.root(), header);
        return Ok(());
    };
    let parent = directory(unix, above)?;
    let entries =
        parent.directory().ok_or("what is to hold it is not a directory that can be changed")?;
    let name: Name = (*last).into();
    let file_type = header.mode & linux::S_IFMT;
    if let Some(there) = entries.find(&name) {
        if there.is_directory() && file_type == linux::S_IFDIR {
            set_attributes(&there, header);
            return Ok(());
        }
        if there.is_directory() {
            return Err(String::from("there is a directory of that name already"));
        }
        entries.remove(&name);
        there.links.set(there.links.get().saturating_sub(1));
    }
    let key = (header.device, header.inode);
    let is_linked = header.links > 1 && file_type != linux::S_IFDIR;
    let inode = match linked.get(&key).filter(|_| is_linked) {
        Some(inode) => {
            inode.links.set(inode.links.get() + 1);
            inode.clone()
        }
        None => new_inode(&parent, &name, header, contents)?,
    };
    entries.insert(&name, &inode).map_err(|_| String::from("its directory is gone"))?;
    if is_linked {
        linked.insert(key, inode.clone());
    }
    if inode.is_directory() {
        inode.links.set(2);
        parent.links.set(parent.links.get() + 1);
    }
    fill(unix, &inode, contents)?;
    set_attributes(&inode, header);
    Ok(())
}

/// The directory at a path; what is missing is made.
fn directory(unix: &Unix, names: &[&[u8]]) -> Result<Rc<Inode>, String> {
    let mut at = unix.fs.first_spot();
    for name in names {
        let entries =
            at.directory().ok_or("what is to hold it is not a directory that can be changed")?;
        let inode = match entries.find(name) {
            Some(inode) => inode,
            None => {
                let name = core::str::from_utf8(name).map_err(|_| "a directory is missing")?;
                super::tree::enter_directory(&at, name, 0o755)
            }
        };
        at.inode = inode;
        if let Some(mount) = unix.fs.table.over(&at) {
            at = mount.root_spot();
        }
    }
    Ok(at.inode)
}

fn new_inode(
    parent: &Rc<Inode>,
    name: &Name,
    header: &Header,
    contents: &[u8],
) -> Result<Rc<Inode>, String> {
    let [major, minor] = header.special.map(u64::from);
    let device = super::device::number(major & 0xfff, minor);
    let kind = match header.mode & linux::S_IFMT {
        linux::S_IFREG => Kind::Regular(Regular::default()),
        linux::S_IFDIR => Kind::Directory(Directory::below(parent, name)),
        linux::S_IFLNK if contents.is_empty() || contents.len() >= 4096 => {
            return Err(String::from("a symbolic link leads to 1 to 4095 bytes of path"));
        }
        linux::S_IFLNK => Kind::Symlink(Box::from(contents)),
        linux::S_IFCHR => Kind::Character(device),
        linux::S_IFBLK => Kind::Block(device),
        linux::S_IFIFO => Kind::Fifo,
        linux::S_IFSOCK => Kind::Socket,
        other => return Err(format!("there is no file type {other:#o}")),
    };
    let owner = (header.uid, header.gid);
    Inode::new(&parent.fs, kind, header.mode, owner, Time::default())
        .map_err(|_| String::from("there are too many files"))
}

/// Puts the contents into a regular file; of several names of one file only one has any.
fn fill(unix: &Unix, inode: &Rc<Inode>, contents: &[u8]) -> Result<(), String> {
    let Some(regular) = inode.regular().filter(|_| !contents.is_empty()) else { return Ok(()) };
    regular.truncate(unix, &inode.fs, 0);
    let wrote = regular.write(&inode.fs, &mut Source::Server(contents), 0, u64::MAX);
    if wrote == Ok(contents.len()) {
        return Ok(());
    }
    Err(format!(
        "its {} bytes do not fit into memory ({} frames are free)",
        contents.len(),
        unix.memory.available()
    ))
}

fn set_attributes(inode: &Inode, header: &Header) {
    inode.mode.set(inode.file_type() | header.mode & 0o7777);
    inode.uid.set(header.uid);
    inode.gid.set(header.gid);
    let time = Time { seconds: header.time.into(), nanoseconds: 0 };
    for cell in [&inode.accessed, &inode.modified, &inode.changed, &inode.created] {
        cell.set(time);
    }
}
