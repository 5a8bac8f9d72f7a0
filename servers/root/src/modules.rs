//! Raw files of the boot image, mapped read-only to the tasks that ask for them.

use abi::{Fpage, MapItem, Rights};
use interfaces::parent::Part;
use proto::{Name, Refusal};
use runtime::service::{MAX_MAPPINGS, Mappings};
use runtime::window::Window;
use runtime::{direct_println, sigma0};

/// Files that an image can have for tasks.
const FILES: usize = 8;
/// Map items in one reply.
const ITEMS: usize = MAX_MAPPINGS;
const PAGE: u64 = 4096;

/// Flexpages that make up a range, as far as a reply has room for them.
pub struct Blocks {
    /// They, and how many.
    pub list: [Fpage; ITEMS],
    pub count: usize,
    /// One past the last byte of them.
    pub end: u64,
}

/// The flexpages of `first` to `end` (exclusive), whole pages both.
pub fn blocks(first: u64, end: u64, rights: Rights) -> Blocks {
    let (mut list, mut at, mut count) = ([Fpage::NIL; ITEMS], first, 0);
    while at < end && count < ITEMS {
        let bits = at.trailing_zeros().min((end - at).ilog2()).min(30);
        list[count] = Fpage::memory(at, bits, rights);
        at += 1 << bits;
        count += 1;
    }
    Blocks { list, count, end: at }
}

/// Maps these, each at its own address.
pub fn map_all(list: &[Fpage], mappings: &mut Mappings) -> Result<(), Refusal> {
    list.iter()
        .try_for_each(|block| mappings.map(MapItem::map(*block, block.base())))
        .map_err(|_| Refusal::Exhausted)
}

struct File {
    name: Name,
    start: u64,
    size: u64,
    /// Its pages, once somebody has asked.
    window: Option<Window>,
}

/// All files.
pub struct Files {
    list: [Option<File>; FILES],
}

impl Files {
    /// None yet.
    pub const fn new() -> Self {
        Self { list: [const { None }; FILES] }
    }

    /// Enters the file of a module record; the first word of its line is its name.
    pub fn add(&mut self, line: &str, start: u64, size: u64) {
        let name = Name::new(line.split_whitespace().next().unwrap_or(""));
        match self.list.iter_mut().find(|file| file.is_none()) {
            _ if name.is_empty() => {}
            Some(free) => *free = Some(File { name, start, size, window: None }),
            None => direct_println!(
                "root: {name} is not added: there are {FILES} raw files at most in an image."
            ),
        }
    }

    /// Whether there is a file of that name.
    pub fn has(&self, name: &str) -> bool {
        self.list.iter().flatten().any(|file| file.name == Name::new(name))
    }

    /// Maps pages of the file `name` from `offset` on.
    pub fn map(
        &mut self,
        name: Name,
        offset: u64,
        mappings: &mut Mappings,
    ) -> Result<Part, Refusal> {
        let file = self
            .list
            .iter_mut()
            .flatten()
            .find(|file| file.name == name)
            .ok_or(Refusal::Unknown)?;
        let part = Part { size: file.size, physical: file.start, length: 0 };
        if offset >= file.size {
            return Ok(part);
        }
        let end = (file.start + file.size).next_multiple_of(PAGE);
        if file.window.is_none() {
            file.window = sigma0::range(file.start, end);
        }
        if file.window.is_none() {
            return Err(Refusal::Taken);
        }
        let first = (file.start + offset) & !(PAGE - 1);
        let Blocks { list, count, end } = blocks(first, end, Rights::RX);
        map_all(&list[..count], mappings)?;
        Ok(Part { length: end - first, ..part })
    }
}
