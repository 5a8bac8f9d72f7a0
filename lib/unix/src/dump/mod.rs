//! Core files: what a process was when a signal ended it, as an ELF file that debuggers read.
//!
//! Written by the process itself on its way out: with its identity, in its working directory, as far as
//! its limit (`RLIMIT_CORE`, 0 at first) and [`PAGES_MAX`] allow. Pages that are not there are holes.

use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::iter;

use linux_raw_sys::general as l;

use crate::call::Cx;
use crate::errno::Errno;
use crate::file::{Open, Source};
use crate::fs::inode::{Inode, Kind};
use crate::fs::open::{How, open_path};
use crate::memory::PAGE;
use crate::mm::AddressSpace;
use crate::mm::area::{Area, AreaFlags, Backing};
use crate::signal::set::{self, bit};
use crate::stream::socket::netlink::connector;
use crate::thread::{Doing, Thread};
use crate::trace::memory::read_some;
use crate::unix::Unix;

mod notes;

/// Signals that leave a core file.
const DUMPING: u64 = bit(l::SIGQUIT)
    | bit(l::SIGILL)
    | bit(l::SIGTRAP)
    | bit(l::SIGABRT)
    | bit(l::SIGBUS)
    | bit(l::SIGFPE)
    | bit(l::SIGSEGV)
    | bit(l::SIGXCPU)
    | bit(l::SIGXFSZ)
    | bit(l::SIGSYS);
/// The bit of a wait status that says so.
const DUMPED: u32 = 0x80;
/// Longest name pattern, as on Linux.
pub const PATTERN_MAX: usize = 127;
/// What `core_pattern` is at first.
pub const PATTERN: &[u8] = b"core";
/// Bytes of an ELF header, and of an entry of its table.
const HEADER: usize = 64;
const ENTRY: usize = 56;
const ET_CORE: u16 = 4;
const EM_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
/// Bytes of notes at most: those of so many threads.
const NOTES_MAX: usize = 512 * 1024;
/// Pages of memory at most: what all others wait for.
pub const PAGES_MAX: u32 = 16 * 1024;
/// Entries at most.
const ENTRIES_MAX: usize = 0xFFFE;
const PT_NOTE: u32 = 4;

/// The wait status of a process that `signal` ends, of which `thread` takes it: a core file is
/// written if it should be.
pub fn status(unix: &Unix, thread: &Rc<Thread>, signal: u32) -> u32 {
    let cx = Cx { unix, thread, process: &thread.process };
    let dumps = bit(signal) & DUMPING != 0 && bit(signal) & set::UNSTOPPABLE == 0;
    if dumps {
        connector::dumped(unix, thread);
    }
    if dumps && write(&cx, signal).is_ok() { signal | DUMPED } else { signal }
}

/// Writes the core file.
fn write(cx: &Cx, signal: u32) -> Result<(), Errno> {
    let most = cx.process.limit(l::RLIMIT_CORE);
    if most == 0 || cx.process.state.not_dumpable.get() {
        return Err(Errno::EPERM);
    }
    stop_others(cx);
    let mut out = File { open: create(cx, signal)?, at: 0, most, pages: PAGES_MAX };
    let count = cx.process.space().area_count();
    if count >= ENTRIES_MAX {
        return Err(Errno::ENOMEM);
    }
    let table = HEADER + (count + 1) * ENTRY;
    cx.check_heap(table + count * size_of::<(Area, u64)>() * 2 + NOTES_MAX)?;
    let areas = cx.process.space().areas().into_iter();
    let sized = |area: Area| {
        let len = dumped(cx, &area);
        (area, len)
    };
    let areas: Vec<(Area, u64)> = areas.map(sized).collect();
    let notes = notes::all(cx, signal);
    let first = (table + notes.len()).next_multiple_of(PAGE) as u64;
    out.put(cx, &header(&areas, notes.len(), first))?;
    out.put(cx, &notes)?;
    out.at = first;
    for (area, len) in &areas {
        let end = out.at + len;
        contents(cx, area, end, &mut out)?;
        out.at = end;
    }
    // What is behind the last page is a hole, too.
    let inode = out.open.file.inode();
    let end = out.at.min(out.most);
    if let (Kind::Regular(regular), true) = (&inode.kind, inode.size() < end) {
        regular.truncate(cx.unix, &inode.fs, end);
    }
    Ok(())
}

/// No other thread of the process goes on.
fn stop_others(cx: &Cx) {
    for other in cx.process.threads.borrow().iter() {
        let runs = other.doing.get() == Doing::Running && other.reply.borrow().is_none();
        if runs && !Rc::ptr_eq(other, cx.thread) {
            cx.unix.machine.stop(other.machine.get());
            other.doing.set(Doing::Stopped);
        }
    }
}

/// Opens the file, empty: a new one, or one that is the process's own alone.
fn create(cx: &Cx, signal: u32) -> Result<Rc<Open>, Errno> {
    let flags = l::O_CREAT | l::O_WRONLY | l::O_NOFOLLOW | l::O_NONBLOCK | l::O_CLOEXEC;
    let how = How { flags: flags.into(), mode: 0o600, resolve: 0 };
    let open = open_path(cx, l::AT_FDCWD, name(cx, signal), how).map_err(|_| Errno::EACCES)?;
    let inode = open.file.inode();
    let Kind::Regular(regular) = &inode.kind else { return Err(Errno::EACCES) };
    if inode.links.get() != 1 || inode.uid.get() != cx.process.credentials.borrow().fsuid {
        return Err(Errno::EACCES);
    }
    regular.truncate(cx.unix, &inode.fs, 0);
    drop(inode);
    Ok(open)
}

/// The file's name, as `core_pattern` says.
fn name(cx: &Cx, signal: u32) -> Vec<u8> {
    let mut name = Vec::new();
    let pattern = cx.unix.core_pattern.borrow();
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            name.push(*byte);
            continue;
        }
        let credentials = cx.process.credentials.borrow();
        let number = match bytes.next() {
            Some(b'p') => cx.process.number,
            Some(b'P') => cx.process.pid.first(),
            Some(b'i') => cx.thread.own_tid.get(),
            Some(b'I') => cx.thread.tid.get().first(),
            Some(b'u') => credentials.uid,
            Some(b'g') => credentials.gid,
            Some(b's') => signal,
            Some(b'e') => {
                let own = cx.thread.name.get();
                let text = own.iter().take_while(|byte| **byte != 0);
                // No other directory than the one that is meant.
                name.extend(text.map(|byte| if *byte == b'/' { b'!' } else { *byte }));
                continue;
            }
            Some(b'%') => {
                name.push(b'%');
                continue;
            }
            _ => continue,
        };
        name.extend_from_slice(format!("{number}").as_bytes());
    }
    name
}

/// How many bytes of an area are in the file.
fn dumped(cx: &Cx, area: &Area) -> u64 {
    if area.flags.contains(AreaFlags::DONT_DUMP) || area.access.is_empty() {
        return 0;
    }
    let written = area.access.contains(crate::machine::Access::WRITE);
    match &area.backing {
        Backing::File { .. } if area.flags.contains(AreaFlags::SHARED) => 0,
        Backing::File { inode, .. } if !written && !has_own(cx, area, inode) => {
            // The first page of a program or library tells debuggers which one it is.
            let mut magic = [0; 4];
            let space = cx.process.space();
            let is_elf = area.offset_at(area.start) == 0
                && read_some(cx.unix, &space, area.start, &mut magic) == 4
                && magic == *b"\x7fELF";
            if is_elf { PAGE as u64 } else { 0 }
        }
        _ => area.len(),
    }
}

/// Whether a private mapping of a file that may not be written now was written (by the loader: what is
/// read-only behind relocation).
fn has_own(cx: &Cx, area: &Area, inode: &Inode) -> bool {
    let space = cx.process.space();
    let own = iter::successors(space.first_present(area.start, area.end), |page| {
        space.first_present(page + PAGE as u64, area.end)
    });
    own.into_iter().any(|at| {
        let file = || inode.page(cx.unix, area.offset_at(at) / PAGE as u64, false).ok();
        space.present(at, false).is_some_and(|own| file().is_some_and(|file| file != own))
    })
}

/// The pages of an area that are there, up to `end` in the file. An area may be as large as the
/// address space, so nobody looks at the others.
fn contents(cx: &Cx, area: &Area, end: u64, out: &mut File) -> Result<(), Errno> {
    let space = cx.process.space();
    let mut page = Box::new([0; PAGE]);
    let (first, stop) = (out.at, area.start + (end.min(out.most) - out.at.min(out.most)));
    let mut next = first_there(&space, area, area.start);
    while let Some(at) = next.filter(|at| *at < stop) {
        out.at = first + (at - area.start);
        if !out.takes_page() {
            break;
        }
        if read_some(cx.unix, &space, at, &mut page[..]) == PAGE {
            out.put(cx, &page[..])?;
        }
        next = first_there(&space, area, at + PAGE as u64);
    }
    Ok(())
}

/// The first page of an area from `at` on that is there: in memory, or in the file behind it.
fn first_there(space: &AddressSpace, area: &Area, at: u64) -> Option<u64> {
    let own = space.first_present(at, area.end);
    let Backing::File { inode, .. } = &area.backing else { return own };
    let begin = area.offset_at(area.start);
    let data = inode.regular().and_then(|file| file.seek(begin + (at - area.start), true));
    let file = data.map(|data| area.start + (data - begin) / PAGE as u64 * PAGE as u64);
    own.into_iter().chain(file.filter(|file| *file < area.end)).min()
}

/// The ELF header and its table: the notes, then an entry for each area with the bytes that it has
/// in the file, from `first` on.
fn header(areas: &[(Area, u64)], notes: usize, first: u64) -> Vec<u8> {
    let count = areas.len() + 1;
    let table = HEADER + count * ENTRY;
    let mut bytes = Vec::with_capacity(table);
    bytes.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    bytes.extend([ET_CORE, EM_X86_64, 1, 0].iter().flat_map(|half| half.to_le_bytes()));
    bytes.extend([0, HEADER as u64, 0].iter().flat_map(|word| word.to_le_bytes()));
    let halves = [0, 0, HEADER as u16, ENTRY as u16, count as u16, 0, 0, 0];
    bytes.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
    entry(&mut bytes, [PT_NOTE, 0], [table as u64, 0, 0, notes as u64, 0, 1]);
    let mut at = first;
    for (area, len) in areas {
        let rights = u32::from(area.access.bits());
        entry(&mut bytes, [PT_LOAD, rights], [at, area.start, 0, *len, area.len(), PAGE as u64]);
        at += len;
    }
    bytes
}

/// An entry: type and flags; place in the file, address, physical address, bytes in the file and in
/// memory, alignment.
fn entry(bytes: &mut Vec<u8>, kind: [u32; 2], words: [u64; 6]) {
    bytes.extend(kind.iter().flat_map(|half| half.to_le_bytes()));
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// The core file.
struct File {
    open: Rc<Open>,
    at: u64,
    most: u64,
    /// Pages of memory that it may still get.
    pages: u32,
}

impl File {
    /// Whether there is a page more; if not, the file ends here, and debuggers say so.
    fn takes_page(&mut self) -> bool {
        if self.pages == 0 || self.at >= self.most {
            self.most = self.most.min(self.at);
            return false;
        }
        self.pages -= 1;
        true
    }

    /// Writes at the present place, as far as the limit allows.
    fn put(&mut self, cx: &Cx, bytes: &[u8]) -> Result<(), Errno> {
        let room = self.most.saturating_sub(self.at).min(bytes.len() as u64) as usize;
        let mut source = Source::Server(&bytes[..room]);
        let mut at = self.at;
        self.at += bytes.len() as u64;
        while source.left() > 0 {
            match self.open.file.write(cx, &self.open, &mut source, at) {
                Ok(0) | Err(_) => return Err(Errno::ENOSPC),
                Ok(wrote) => at += wrote as u64,
            }
        }
        Ok(())
    }
}
