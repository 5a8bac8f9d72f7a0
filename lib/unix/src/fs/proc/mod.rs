//! `/proc`: directories and files that say what the server knows. Inodes are made when
//! they are looked up; a file's text is made when it is first read.
//!
//! | file | owns |
//! |---|---|
//! | `system`, `settings` | what is not about one process |
//! | `cpuinfo` | what CPUID says |
//! | `node`, `subject` | what an inode is, and whom it is about |
//! | `process`, `status`, `figures` | what is |
//! | `namespaces` | `ns` |
//! | `devices` | what `/sys` is |
//! | `descriptors`, `memory` | `fd` and `fdinfo`, `mem` and `pagemap` |
//! | `mappings`, `records` | `maps` and `smaps` |
//! | `ipc` | System V's objects and their limits |
//! | `net` | sockets and interfaces |

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use super::inode::{Inode, Kind};
use super::listing::Item;
use super::spot::Spot;
use super::time::Time;
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::Source;
use crate::process::{Credentials, LookingBy, Pid, Process};

mod cpuinfo;
mod descriptors;
mod devices;
mod figures;
mod ipc;
mod mappings;
pub(super) mod memory;
pub(super) mod mounts;
mod namespaces;
mod net;
mod node;
mod process;
pub(super) mod records;
mod settings;
mod status;
mod subject;
mod system;

pub use node::Node;
use subject::{Subject, find_process, next_process, subject, threads};

/// Positions of processes in the root: behind those of all else there.
const PROCESSES: u64 = 256;
/// Bytes of a text that a file of `/proc` takes.
const WRITE_MAX: usize = 4096;

/// Makes a text about a process.
type SubjectText = fn(&Cx, &Subject) -> Result<Vec<u8>, Errno>;

/// Takes what only who has opened the file can answer for; how many bytes of it.
type WriteOwned = fn(&Cx, &Subject, &Written) -> Result<usize, Errno>;

/// What is written to a file.
struct Written<'a> {
    /// Who has opened it.
    by: &'a Credentials,
    offset: u64,
    text: &'a [u8],
}

impl Written<'_> {
    /// A text that is written at once.
    fn whole(&self) -> Result<&[u8], Errno> {
        if self.offset == 0 { Ok(self.text) } else { Err(Errno::EINVAL) }
    }
}

/// What an inode of `/proc` is.
#[derive(Clone, Copy)]
enum What {
    /// Names that are always there.
    Directory(&'static [Fixed]),
    /// `/proc` itself: those, and the processes.
    Root,
    /// A text.
    Text(fn(&Cx) -> Vec<u8>),
    /// A text that can be written.
    Setting(fn(&Cx) -> Vec<u8>, fn(&Cx, &[u8]) -> Result<(), Errno>),
    /// A symbolic link.
    Link(fn(&Cx, &Node) -> Option<Vec<u8>>),
    /// `/proc/PID`.
    Process(Pid, Pid),
    /// A thread in `task`.
    Thread(Pid, Pid),
    /// A text about a process (and thread).
    SubjectText(Pid, Pid, SubjectText),
    /// What a process sees mounted, of which a change can be waited for.
    Mounts(Pid, Pid, SubjectText),
    /// One that can be written.
    SubjectSetting(Pid, Pid, SubjectText, fn(&Cx, &Subject, &[u8]) -> Result<(), Errno>),
    /// One that can be written by who has opened it.
    SubjectOwned(Pid, Pid, SubjectText, WriteOwned),
    /// A text about a process's areas, a record for each.
    Areas(Pid, Pid, records::Tell),
    /// A text about many things, a record for each.
    Records(records::TellOfAll),
    /// A process's memory.
    Memory(Pid, Pid),
    /// What of it is there.
    Pages(Pid, Pid),
    /// A link to something of a process.
    SubjectLink(Pid, Pid, fn(&Cx, &Subject) -> Result<Target, Errno>),
    /// `task`
    Tasks(Pid),
    /// `ns`
    Namespaces(Pid, Pid),
    /// `fd`, or (true) `fdinfo`
    Descriptors(Pid, bool),
    /// A link in `fd`.
    Descriptor(Pid, u32),
    /// A file in `fdinfo`.
    DescriptorInfo(Pid, u32),
}

/// A name that is always there.
#[derive(Clone, Copy)]
struct Fixed {
    name: &'static str,
    mode: u32,
    what: What,
}

/// Where a link of `/proc` leads.
pub(super) enum Target {
    /// To a path.
    Path(Vec<u8>),
    /// To a file, whether or not it has a path.
    Spot(Spot),
}

impl What {
    fn file_type(self) -> u32 {
        match self {
            Self::Directory(_)
            | Self::Root
            | Self::Process(..)
            | Self::Thread(..)
            | Self::Tasks(_)
            | Self::Namespaces(..)
            | Self::Descriptors(..) => linux::S_IFDIR,
            Self::Link(_) | Self::SubjectLink(..) | Self::Descriptor(..) => linux::S_IFLNK,
            _ => linux::S_IFREG,
        }
    }

    /// The process it is about.
    fn pid(self) -> Option<Pid> {
        match self {
            Self::Process(pid, _)
            | Self::Thread(pid, _)
            | Self::SubjectText(pid, ..)
            | Self::Mounts(pid, ..)
            | Self::SubjectSetting(pid, ..)
            | Self::SubjectOwned(pid, ..)
            | Self::SubjectLink(pid, ..)
            | Self::Areas(pid, ..)
            | Self::Memory(pid, _)
            | Self::Pages(pid, _)
            | Self::Tasks(pid)
            | Self::Namespaces(pid, _)
            | Self::Descriptors(pid, _)
            | Self::Descriptor(pid, _)
            | Self::DescriptorInfo(pid, _) => Some(pid),
            _ => None,
        }
    }
}

/// What `name` is in `directory`.
pub(super) fn lookup(
    cx: &Cx,
    directory: &Rc<Inode>,
    node: &Node,
    name: &[u8],
) -> Result<Option<Rc<Inode>>, Errno> {
    let found = match node.what {
        What::Directory(table) => find_fixed(table, name),
        What::Root => find_fixed(system::ROOT, name).or_else(|| {
            let tid = node.find(number(name)?)?;
            let thread = cx.unix.processes.by_tid.borrow().get(&tid).cloned();
            let pid = thread.map_or(tid, |thread| thread.process().pid);
            find_process(cx, pid).map(|_| (What::Process(pid, tid), 0o555))
        }),
        What::Process(pid, tid) => process::find(process::of_process(), pid, tid, name),
        What::Thread(pid, tid) => process::find(process::of_thread(), pid, tid, name),
        What::Namespaces(pid, tid) => process::find(namespaces::ENTRIES, pid, tid, name),
        What::Tasks(pid) => number(name).and_then(|tid| {
            let there = threads(cx, node, pid).contains(&tid);
            let tid = node.find(tid).filter(|_| there)?;
            Some((What::Thread(pid, tid), 0o555))
        }),
        What::Descriptors(pid, info) => {
            number(name).and_then(|fd| descriptors::find(cx, pid, fd, info))
        }
        _ => return Err(Errno::ENOTDIR),
    };
    Ok(found.map(|(what, mode)| new_inode(cx, (directory, node), name, what, mode)))
}

fn find_fixed(table: &[Fixed], name: &[u8]) -> Option<(What, u32)> {
    let fixed = table.iter().find(|fixed| fixed.name.as_bytes() == name)?;
    Some((fixed.what, fixed.mode))
}

/// A name that is a number, as numbers are written.
fn number(name: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(name).ok()?;
    let number: u32 = text.parse().ok()?;
    (format!("{number}") == text).then_some(number)
}

fn new_inode(
    cx: &Cx,
    (parent, of_parent): (&Rc<Inode>, &Node),
    name: &[u8],
    what: What,
    mode: u32,
) -> Rc<Inode> {
    let owner = what.pid().and_then(|pid| find_process(cx, pid)).map_or((0, 0), |process| {
        let credentials = process.credentials.borrow();
        (credentials.euid, credentials.egid)
    });
    let mut number = inode_number(parent, name);
    let process = match what {
        What::Process(pid, _) => find_process(cx, pid),
        _ => None,
    };
    if let Some(process) = &process {
        // A later process with the same number is another.
        number ^= process.times.start_ns & u64::from(u32::MAX);
    }
    let process = process.as_ref().map(Rc::downgrade);
    let space = match what {
        What::Memory(pid, _) | What::Pages(pid, _) => {
            find_process(cx, pid).map(|process| process.space().serial())
        }
        _ => None,
    };
    let above = Some((parent.clone(), name.into()));
    let numbers = of_parent.numbers.clone();
    let node = Node { what, above, numbers, process, space };
    let now = Time::now(cx.unix);
    let inode = Inode::with_number(&parent.fs, number, Kind::Proc(node), mode, owner, now);
    if inode.is_directory() {
        inode.links.set(2);
    }
    let times = parent.fs.covered.borrow().get(&number).copied();
    inode.covered.set(times.unwrap_or(0));
    inode
}

/// A number that depends on the path alone (FNV-1a).
fn inode_number(parent: &Inode, name: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ parent.number;
    let hash = name
        .iter()
        .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    hash >> 24 | 1 << 32
}

/// The entry at or behind `position` (2 is the first).
pub(super) fn list(cx: &Cx, node: &Node, position: u64) -> Result<Option<Item>, Errno> {
    Ok(match node.what {
        What::Directory(table) => list_fixed(table, position),
        What::Root => list_fixed(system::ROOT, position).or_else(|| {
            let from = position.saturating_sub(PROCESSES).min(u32::MAX.into()) as u32;
            Some(numbered(next_process(cx, node, from)?, linux::S_IFDIR, PROCESSES))
        }),
        What::Process(pid, tid) => process::list(process::of_process(), node, (pid, tid), position),
        What::Thread(pid, tid) => process::list(process::of_thread(), node, (pid, tid), position),
        What::Namespaces(pid, tid) => {
            process::list(namespaces::ENTRIES, node, (pid, tid), position)
        }
        What::Tasks(pid) => next_number(&threads(cx, node, pid), position)
            .map(|tid| numbered(tid, linux::S_IFDIR, 2)),
        What::Descriptors(pid, info) => {
            let process = find_process(cx, pid).ok_or(Errno::ENOENT)?;
            let numbers = process.files.borrow().numbers();
            let file_type = if info { linux::S_IFREG } else { linux::S_IFLNK };
            next_number(&numbers, position).map(|fd| numbered(fd, file_type, 2))
        }
        _ => return Err(Errno::ENOTDIR),
    })
}

/// The first of `numbers` whose position (2 is that of 0) is at or behind `position`.
fn next_number(numbers: &[u32], position: u64) -> Option<u32> {
    numbers.iter().copied().find(|number| u64::from(*number) + 2 >= position)
}

fn numbered(number: u32, file_type: u32, base: u64) -> Item {
    let name = format!("{number}").into_bytes();
    let position = base + u64::from(number);
    Item { name: name.into(), number: position | 1 << 32, file_type, next: position + 1 }
}

fn list_fixed(table: &[Fixed], position: u64) -> Option<Item> {
    let index = position.saturating_sub(2);
    let fixed = table.get(usize::try_from(index).ok()?)?;
    Some(Item {
        name: fixed.name.as_bytes().into(),
        number: position | 1 << 32,
        file_type: fixed.what.file_type(),
        next: position + 1,
    })
}

/// Whether the caller may look closely at a process.
///
/// # Errors
/// `EACCES`.
pub fn check_close_look(cx: &Cx, process: &Process) -> Result<(), Errno> {
    let (who, whose) = (cx.process.credentials.borrow(), process.credentials.borrow());
    let own = core::ptr::eq(&raw const **cx.process, process);
    let may = who.may_look_into(&whose, LookingBy::Files);
    if own || may && process.shows_memory(&who) { Ok(()) } else { Err(Errno::EACCES) }
}

/// Where a link leads.
pub(super) fn follow(cx: &Cx, node: &Node) -> Result<Target, Errno> {
    match node.what {
        What::Link(text) => Ok(Target::Path(text(cx, node).ok_or(Errno::ENOENT)?)),
        What::SubjectLink(pid, tid, find) => {
            let subject = subject(cx, node, pid, tid)?;
            check_close_look(cx, &subject.process)?;
            find(cx, &subject)
        }
        What::Descriptor(pid, fd) => {
            let open = descriptors::open_file(cx, pid, fd)?;
            Ok(Target::Spot(Spot::of(cx, &open)))
        }
        _ => Err(Errno::EINVAL),
    }
}

/// What a link says.
pub(super) fn text(cx: &Cx, node: &Node) -> Result<Vec<u8>, Errno> {
    let root = cx.process.place.borrow().root();
    if let What::Descriptor(pid, fd) = node.what {
        let open = descriptors::open_file(cx, pid, fd)?;
        return Ok(super::path::of_open(&open, &root));
    }
    match follow(cx, node)? {
        Target::Path(text) => Ok(text),
        Target::Spot(spot) => Ok(super::path::of_directory_or_deleted(&spot, &root)),
    }
}

/// What a file says.
pub(super) fn read(cx: &Cx, node: &Node) -> Result<Vec<u8>, Stop> {
    match node.what {
        What::Text(make) | What::Setting(make, _) => Ok(make(cx)),
        What::SubjectText(pid, tid, make)
        | What::Mounts(pid, tid, make)
        | What::SubjectSetting(pid, tid, make, _)
        | What::SubjectOwned(pid, tid, make, _) => Ok(make(cx, &subject(cx, node, pid, tid)?)?),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// Writes to a file.
pub(super) fn write(
    cx: &Cx,
    node: &Node,
    opener: Option<&Credentials>,
    source: &mut Source,
    offset: u64,
) -> Result<usize, Stop> {
    if let What::Memory(..) = node.what {
        return memory::write(cx, node, source, offset);
    }
    let mut bytes = alloc::vec![0; source.left().min(WRITE_MAX)];
    let len = source.take(&mut bytes)?;
    match node.what {
        What::Setting(_, set) => set(cx, &bytes[..len])?,
        What::SubjectSetting(pid, tid, _, set) => {
            set(cx, &subject(cx, node, pid, tid)?, &bytes[..len])?;
        }
        What::SubjectOwned(pid, tid, _, set) => {
            let by = opener.ok_or(Errno::EINVAL)?;
            let written = Written { by, offset, text: &bytes[..len] };
            return Ok(set(cx, &subject(cx, node, pid, tid)?, &written)?);
        }
        _ => return Err(Errno::EIO.into()),
    }
    Ok(len)
}
