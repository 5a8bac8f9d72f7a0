//! A pool of frames that answers page faults: shared by the pager and by the
//! root task for the tasks that it pages itself.
//!
//! The pool is one window. Its first page is a header, then come the entries of
//! the inverted page table (`paging::Frames`), then the frames. Since the book
//! lies in the pool, a pager that was killed finds everything again when it is
//! started on the same pool: its clients' pages, their contents and how often
//! this has happened.

use abi::{Fpage, MapItem, Rights};
use paging::{Entry, Frames, Image, Page, Refusal, Storage, place};

use crate::Msg;
use crate::window::{PAGE, Window};

const MAGIC: u64 = u64::from_le_bytes(*b"BATNPOOL");
const HEADER_MAGIC: u64 = 0;
const HEADER_STARTS: u64 = 8;
/// Task slots that a pool serves.
pub const SLOTS: usize = 64;

/// The frames, and how many each task has.
pub struct Pool {
    window: Window,
    frames: usize,
    used: [u32; SLOTS],
}

/// Where boot modules can be read: physical address `phys` is at the window's start.
pub struct Modules {
    /// The window.
    pub window: Window,
    /// The physical address of its first byte.
    pub phys: u64,
}

/// Who faults, and what is his.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Task slot.
    pub slot: usize,
    /// Generation of the task.
    pub generation: u64,
    /// Its program.
    pub image: Image,
    /// Limit of its private pages.
    pub limit: u64,
}

/// The entries inside the pool's window.
struct Entries<'a>(&'a Window);

impl Storage for Entries<'_> {
    fn get(&self, index: usize) -> Entry {
        Entry(self.0.read(PAGE + index as u64 * 8))
    }
    fn set(&mut self, index: usize, entry: Entry) {
        self.0.write(PAGE + index as u64 * 8, entry.0);
    }
}

/// Frames of a pool in `window`.
fn frames_in(window: &Window) -> usize {
    ((window.bytes() - 2 * PAGE) / (PAGE + 8)) as usize
}

/// Offset of frame `index` in the window of a pool of `frames`.
fn offset(frames: usize, index: usize) -> u64 {
    PAGE + (frames as u64 * 8).next_multiple_of(PAGE) + index as u64 * PAGE
}

/// The word at `address`, a multiple of 8, in `client`'s private memory, by the book in
/// `window`, which somebody else may keep.
#[must_use]
pub fn peek(window: &Window, client: &Client, address: u64) -> Option<u64> {
    let (mut entries, frames) = (Entries(window), frames_in(window));
    let key = Entry::new(client.slot, client.generation, address / PAGE);
    let index = Frames::new(&mut entries, frames).find(key)?;
    Some(window.read(offset(frames, index) + address % PAGE))
}

impl Pool {
    /// The word at `address`, a multiple of 8, in `client`'s private memory.
    #[must_use]
    pub fn peek(&self, client: &Client, address: u64) -> Option<u64> {
        peek(&self.window, client, address)
    }

    /// Opens the pool in `window`: a used one as it was, a fresh one empty.
    #[must_use]
    pub fn open(window: Window) -> Self {
        let frames = frames_in(&window);
        let mut pool = Self { window, frames, used: [0; SLOTS] };
        if pool.window.read(HEADER_MAGIC) == MAGIC {
            pool.recount();
        } else {
            pool.window.zero(0, PAGE + (frames as u64 * 8).next_multiple_of(PAGE));
            pool.window.write(HEADER_MAGIC, MAGIC);
        }
        pool.window.write(HEADER_STARTS, pool.starts() + 1);
        pool
    }

    fn recount(&mut self) {
        let entries = Entries(&self.window);
        for slot in (0..self.frames).filter_map(|index| entries.get(index).slot()) {
            if let Some(count) = self.used.get_mut(slot) {
                *count += 1;
            }
        }
    }

    /// How often a pager was started on this pool.
    #[must_use]
    pub fn starts(&self) -> u64 {
        self.window.read(HEADER_STARTS)
    }

    /// Number of frames.
    #[must_use]
    pub const fn frames(&self) -> usize {
        self.frames
    }

    /// Number of frames in use.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.used.iter().map(|count| u64::from(*count)).sum()
    }

    /// Offset of frame `index` in the window.
    fn offset(&self, index: usize) -> u64 {
        offset(self.frames, index)
    }

    /// The answer to `client`'s fault: a message with one map item.
    pub fn resolve(
        &mut self,
        client: &Client,
        modules: &Modules,
        address: u64,
        access: Rights,
    ) -> Result<Msg, Refusal> {
        let page = address & !(PAGE - 1);
        let fpage = match place(&client.image, address, access)? {
            Page::Text(phys) => {
                let offset = phys.wrapping_sub(modules.phys);
                // Only what is mapped here can be mapped there.
                modules.window.touch(offset);
                Fpage::memory(modules.window.base() + offset, 12, Rights::RX)
            }
            Page::Private { from, bytes } => {
                let frame =
                    self.private(client, page, from.wrapping_sub(modules.phys), bytes, modules)?;
                Fpage::memory(self.window.base() + frame, 12, Rights::RWX)
            }
        };
        Ok(Msg::default().map(MapItem::map(fpage, page)))
    }

    /// Offset of the frame for `page`; a new one gets its initial contents.
    fn private(
        &mut self,
        client: &Client,
        page: u64,
        from: u64,
        bytes: u64,
        modules: &Modules,
    ) -> Result<u64, Refusal> {
        let key = Entry::new(client.slot, client.generation, page / PAGE);
        let mut entries = Entries(&self.window);
        let mut frames = Frames::new(&mut entries, self.frames);
        if let Some(index) = frames.find(key) {
            let offset = self.offset(index);
            self.window.touch(offset);
            return Ok(offset);
        }
        let used = self.used.get_mut(client.slot).ok_or(Refusal::Stranger)?;
        if u64::from(*used) >= client.limit {
            return Err(Refusal::Limit);
        }
        let index = frames.take(key).ok_or(Refusal::Pool)?;
        *used += 1;
        let offset = self.offset(index);
        let whole = bytes & !7;
        self.window.copy(offset, &modules.window, if whole == 0 { 0 } else { from }, whole);
        self.window.zero(offset + whole, PAGE - whole);
        if bytes != whole {
            let mask = (1 << ((bytes - whole) * 8)) - 1;
            self.window.write(offset + whole, modules.window.read(from + whole) & mask);
        }
        Ok(offset)
    }

    /// Frees the frames of the task in `slot`, except those of `generation`.
    pub fn forget(&mut self, slot: usize, generation: Option<u64>) {
        let keep = generation.map(|generation| Entry::new(slot, generation, 0).0 >> 36);
        let mut entries = Entries(&self.window);
        let freed = Frames::new(&mut entries, self.frames)
            .free(|entry| entry.slot() == Some(slot) && Some(entry.0 >> 36) != keep);
        if let Some(count) = self.used.get_mut(slot) {
            *count -= freed as u32;
        }
    }
}
