//! The beginning: memory, the first file system, process 1.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::cell::Cell;

use abi::ThreadId;
use proto::root as op;
use runtime::window::Window;
use runtime::{root, thread};
use unix::Unix;
use unix::machine::Urgency;
use unix::memory::{FrameId, Memory};

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::console::Console;
use crate::machine::{Baton, Below};
use crate::natives::Natives;
use crate::pages::Pages;
use crate::serve::System;
use crate::services::Services;
use crate::tasks::Tasks;
use crate::turns::Turns;

/// Where the programs' memory is in this task: aligned for every size that is tried.
const MEMORY: u64 = 0x100_0000_0000;
/// Log2 sizes of its blocks to try: 1 GiB to 16 MiB.
const MEMORY_BITS: core::ops::RangeInclusive<u32> = 24..=30;
/// Log2 of the least size of a block beside the first one.
const FURTHER_BITS: u32 = 24;
/// Most blocks: fewer than the root task gives to one task.
const MOST_BLOCKS: u32 = 12;
/// The server's own part of that: one of so many.
const HEAP_PART: u64 = 8;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of a large page.
const LARGE_PAGE: u64 = 512 * PAGE;
/// Where boot modules are shown: physical addresses modulo the window's size.
const FILES: u64 = 0x200_0000_0000;
const FILES_BYTES: u64 = 1 << 36;

/// The thread of turns of programs that are so urgent.
fn turns(me: ThreadId, urgency: Urgency) -> Result<Turns, String> {
    Turns::start(me, urgency).map_err(|why| format!("cannot start a thread of turns: {why}"))
}

/// Everything up to the first program.
pub fn system() -> Result<System, String> {
    let me = thread::me();
    let command = Module::find("command").map(|module| module.copy());
    if command.is_some() && !is_told("again") && is_started_again(me) {
        // What a command had done when the server died is not done twice.
        let _ = root::halt(op::FAILURE);
    }
    let (window, frames) = memory()?;
    // From here on all that is allocated lies in this task's own memory.
    let machine = Rc::new(Baton {
        tasks: Tasks::new()?,
        processors: runtime::kip::get().processors(),
        pages: Pages::new(window),
        clock: Clock::new(),
        alarm: Alarm::start(me).map_err(|why| format!("cannot start the alarm thread: {why}"))?,
        turns: [turns(me, Urgency::Ordinary)?, turns(me, Urgency::Background)?],
        console: Console::start(me)
            .map_err(|why| format!("cannot start the console thread: {why}"))?,
        services: Services::told(&arguments())?,
        natives: Natives::told(&arguments(), me)?,
        command: command.is_some(),
        may_fail: is_told("may-fail"),
        fixed_addresses: is_told("fixed-addresses")
            || Module::find("fixed-addresses").is_some_and(Module::was_there),
    });
    let unix = Unix::new(Box::new(Below(machine.clone())), frames);
    first_file_system(&unix)?;
    unix::stream::socket::service::offer(&unix)
        .map_err(|errno| format!("cannot make the sockets in /srv: {errno:?}"))?;
    let terminal = Terminal::find();
    unix.terminals.size_console(terminal.rows, terminal.columns);
    if command.is_some() {
        machine_line(&machine, "unix: the command begins");
    }
    let (path, arguments): (&[u8], Vec<&[u8]>) = match &command {
        Some(command) => {
            let line = command.strip_suffix(b"\n").unwrap_or(command);
            (b"/bin/sh", vec![b"sh", b"-c", line])
        }
        None => (b"/init", vec![b"/init"]),
    };
    let term = format!("TERM={}", terminal.kind);
    let environment: [&[u8]; 4] =
        [b"HOME=/root", term.as_bytes(), b"PATH=/usr/sbin:/usr/bin:/sbin:/bin", b"USER=root"];
    unix::exec::start_first(&unix, path, &arguments, &environment)
        .map_err(|why| format!("cannot start {}: {why}", String::from_utf8_lossy(path)))?;
    Ok(System { unix, machine, later: Cell::new(false), asked: Cell::default() })
}

/// The terminal at the console, as the raw file `terminal` says: kind, rows, columns.
struct Terminal {
    kind: String,
    rows: u16,
    columns: u16,
}

impl Terminal {
    /// What is there, or the least that a terminal can be.
    fn find() -> Self {
        let bytes = Module::find("terminal").map(Module::copy).unwrap_or_default();
        let text = core::str::from_utf8(&bytes).unwrap_or_default();
        Self::parse(text).unwrap_or(Self { kind: String::from("vt100"), rows: 24, columns: 80 })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let (kind, rows, columns) = (words.next()?, words.next()?, words.next()?);
        let (rows, columns) = (rows.parse().ok()?, columns.parse().ok()?);
        (rows > 0 && columns > 0).then(|| Self { kind: String::from(kind), rows, columns })
    }
}

/// The task's `args`.
fn arguments() -> String {
    let mut buffer = [0; proto::console::WORD_BYTES];
    String::from(root::arguments(&mut buffer))
}

/// Whether the word stands in the task's `args`.
fn is_told(word: &str) -> bool {
    arguments().split_whitespace().any(|told| told == word)
}

/// Whether the task, whose thread is `me`, has lived before.
fn is_started_again(me: ThreadId) -> bool {
    (0..)
        .map_while(|slot| root::describe(slot).ok())
        .any(|task| task.main == me && task.restarts > 0)
}

fn machine_line(machine: &Rc<Baton>, line: &str) {
    machine.console.write(format!("{line}\r\n").as_bytes());
}

/// The programs' memory: the largest block that the root task gives, and behind it the largest of
/// what is left, and so on. What is too small for a further block is left to others.
fn memory() -> Result<(u64, Memory), String> {
    let (mut bytes, mut blocks) = (0, 0);
    for bits in MEMORY_BITS.rev() {
        while blocks < MOST_BLOCKS
            && (blocks == 0 || bits >= FURTHER_BITS)
            && let Some(window) = block(MEMORY + bytes, bits)
        {
            bytes += window.into_raw().1;
            blocks += 1;
        }
    }
    if bytes == 0 {
        return Err(String::from(
            "the root task gave no memory for programs; raise memory_pages of the task `unix`, or give the machine more memory",
        ));
    }
    Ok(frames(bytes))
}

/// A block of 2^`bits` bytes, at this address.
fn block(at: u64, bits: u32) -> Option<Window> {
    let mut window = Window::claim(at, 1 << bits)?;
    if root::memory(&mut window, None).is_ok() {
        return Some(window);
    }
    window.release();
    None
}

/// The heap, and the frames behind it, of the so many bytes from [`MEMORY`] on that this task has for good.
#[allow(unsafe_code)]
fn frames(bytes: u64) -> (u64, Memory) {
    let own = bytes / HEAP_PART / LARGE_PAGE * LARGE_PAGE;
    // SAFETY: the windows' memory is mapped, and is never given back; nothing else has its
    // first part.
    unsafe { runtime::heap::move_to(MEMORY, own) };
    let (base, bytes) = (MEMORY + own, bytes - own);
    let at = core::ptr::NonNull::new(base as *mut u8).unwrap_or(core::ptr::NonNull::dangling());
    // SAFETY: as above; the rest is this value's alone from now on.
    (base, unsafe { Memory::new(at, (bytes / PAGE) as usize) })
}

/// Unpacks the archive `initramfs`: it lies in the last frames meanwhile, which nobody has yet.
#[allow(unsafe_code)]
fn first_file_system(unix: &Unix) -> Result<(), String> {
    let archive = Module::find("initramfs").ok_or_else(|| {
        String::from("there is no first file system: add a module `initramfs` (a cpio archive) to the system description")
    })?;
    let (frames, total) = (archive.size.div_ceil(PAGE as usize), unix.memory.total());
    if frames > total / 2 {
        return Err(format!(
            "the first file system ({frames} pages) is larger than half of the memory for programs ({total} pages); raise memory_pages of the task `unix`, or give the machine more memory"
        ));
    }
    unix.memory.hold_back(frames);
    let first = unix.memory.address(FrameId((total - frames) as u32));
    // SAFETY: the frames from `first` on are held back: nobody but this function knows them
    // until `hold_back(0)`, after which the slice is not used.
    let bytes = unsafe { core::slice::from_raw_parts_mut(first as *mut u8, archive.size) };
    archive.read(bytes);
    unix::fs::unpack(unix, bytes)?;
    unix.memory.hold_back(0);
    Ok(())
}

/// A boot module, shown in a window.
struct Module {
    window: Window,
    start: u64,
    size: usize,
}

impl Module {
    /// The module `name`.
    fn find(name: &str) -> Option<Self> {
        let mut window = Window::claim(FILES, FILES_BYTES)?;
        let (mut size, mut start, mut offset) = (1, 0, 0);
        while offset < size {
            let Ok(part) = root::file(&mut window, name, offset) else {
                window.release();
                return None;
            };
            (size, start) = (part.size, part.physical);
            if part.length == 0 {
                break;
            }
            offset = (offset & !4095) + part.length;
        }
        Some(Self { window, start, size: size as usize })
    }

    /// Gives it back: it was only asked for.
    fn was_there(self) -> bool {
        self.window.release();
        true
    }

    /// Copies its bytes, `size` of them.
    fn read(self, to: &mut [u8]) {
        self.window.read_bytes(self.start % FILES_BYTES, to);
        self.window.release();
    }

    /// A copy on the heap.
    fn copy(self) -> Vec<u8> {
        let mut bytes = vec![0; self.size];
        self.read(&mut bytes);
        bytes
    }
}
