//! σ0's answers (X.2 6.7).

use abi::kip::{MemoryDescriptor, memory_type};
use abi::{Fpage, MapItem, MsgTag, Rights, ThreadId, devices, protocol};

use crate::{Owner, Regions};

/// Regions of memory that the book can tell apart.
const MEMORY_REGIONS: usize = 1024;
/// Regions of ports.
const PORT_REGIONS: usize = 256;
const PAGE: u64 = 4096;

/// What σ0 does with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Reply with this item (the nil item refuses).
    Map(MapItem),
    /// Reply with an empty message.
    Empty,
    /// Show the book; reply with an empty message if asked to.
    Dump {
        /// Whether the asker waits for the end.
        reply: bool,
    },
    /// Do not reply.
    Silence,
}

/// A refusal: nothing, at address 0.
const NOTHING: Answer = Answer::Map(MapItem::map(Fpage::NIL, 0));

/// Who owns what.
pub struct Book {
    memory: Regions<MEMORY_REGIONS>,
    ports: Regions<PORT_REGIONS>,
    /// 0: silent. Set by the root task.
    pub verbosity: u64,
    /// Only the root task is served (Baton: extended request 3).
    closed: bool,
    /// There is a σ1.
    sigma1: bool,
}

impl Default for Book {
    fn default() -> Self {
        Self::new()
    }
}

impl Book {
    /// A book in which all is reserved. It is 40 KiB: keep it in a static.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            memory: Regions::new(),
            ports: Regions::new(),
            verbosity: 0,
            closed: false,
            sigma1: false,
        }
    }

    /// There is a σ1: its thread is an initial server, too.
    pub fn know_sigma1(&mut self) {
        self.sigma1 = true;
    }

    /// Whether `thread` is an initial server's. Ids that nobody has are nobody's: a task could
    /// come by one.
    fn is_initial(&self, thread: ThreadId) -> bool {
        thread == ThreadId::ROOT || self.sigma1 && thread == ThreadId::SIGMA1
    }

    /// Frees all ports but those that the kernel drives itself.
    pub fn open_ports(&mut self) {
        let _ = self.ports.assign(0, 0xFFFF, Owner::Free);
        for (low, high) in devices::PORTS {
            let _ = self.ports.assign(low, high, Owner::Reserved);
        }
    }

    /// Takes out the devices' memory that the kernel drives itself, whatever the
    /// descriptors say.
    pub fn keep_kernels_devices(&mut self) {
        for (low, high) in devices::MEMORY {
            let _ = self.memory.assign(low, high, Owner::Reserved);
        }
    }

    /// Applies a memory descriptor; later ones override earlier ones. Pages that
    /// a conventional region covers only in part are left out.
    pub fn apply(&mut self, descriptor: MemoryDescriptor) {
        if descriptor.is_virtual {
            return;
        }
        let owner = match descriptor.kind {
            memory_type::CONVENTIONAL => Owner::Free,
            memory_type::RESERVED | memory_type::UNDEFINED => Owner::Reserved,
            memory_type::SHARED => Owner::Shared,
            _ => Owner::Special,
        };
        self.assign_pages(descriptor.low, descriptor.high, owner);
    }

    /// Gives the image of an initial server to `owner` (`None`: nobody). `high` is exclusive.
    pub fn server(&mut self, low: u64, high: u64, owner: Option<ThreadId>) {
        if low < high {
            self.assign_pages(
                low & !(PAGE - 1),
                (high - 1) | (PAGE - 1),
                owner.map_or(Owner::Reserved, Owner::Thread),
            );
        }
    }

    fn assign_pages(&mut self, low: u64, high: u64, owner: Owner) {
        let shrink = owner == Owner::Free;
        let first = if shrink {
            low.checked_add(PAGE - 1).map(|l| l & !(PAGE - 1))
        } else {
            Some(low & !(PAGE - 1))
        };
        let last = if shrink {
            (high.wrapping_add(1) & !(PAGE - 1)).wrapping_sub(1)
        } else {
            high | (PAGE - 1)
        };
        if let Some(first) = first.filter(|first| *first <= last) {
            // With no room for another region the pages stay what they were;
            // tables are sized for any firmware's map.
            let _ = self.memory.assign(first, last, owner);
        }
    }

    /// The memory regions: low, high, owner.
    pub fn memory(&self) -> impl Iterator<Item = (u64, u64, Owner)> {
        self.memory.iter()
    }

    /// The port regions: low, high, owner.
    pub fn ports(&self) -> impl Iterator<Item = (u64, u64, Owner)> {
        self.ports.iter()
    }

    /// Answers a message with words `mr` (MR1..MR3) from `from`.
    pub fn answer(&mut self, from: ThreadId, tag: MsgTag, mr: [u64; 3]) -> Answer {
        let shape = (tag.untyped(), tag.typed());
        if self.closed && !self.is_initial(from) {
            return match tag.protocol_label() {
                protocol::SIGMA0 | protocol::PAGE_FAULT | protocol::IO_FAULT => NOTHING,
                _ => Answer::Silence,
            };
        }
        match (tag.protocol_label(), shape) {
            (protocol::PAGE_FAULT, (2, 0)) => self.page_fault(from, mr[0]),
            (protocol::IO_FAULT, (2, 0)) => self.port(from, Fpage(mr[0])),
            (protocol::SIGMA0, (2 | 3, 0)) => self.request(from, shape.0, mr),
            (protocol::SIGMA0_EXTENDED, _) if self.is_initial(from) => self.extended(mr),
            _ => Answer::Silence,
        }
    }

    /// A page, 1:1, if it is conventional, shared, or the asker's own.
    fn page_fault(&mut self, from: ThreadId, address: u64) -> Answer {
        self.take(from, address & !(PAGE - 1), 12, |owner| owner == Owner::Free)
    }

    fn request(&mut self, from: ThreadId, words: usize, mr: [u64; 3]) -> Answer {
        let extended = mr[0] & 8 != 0;
        let fpage = Fpage(mr[0]);
        // Attributes need MemoryControl, which is not available on this
        // architecture; an extended request needs its third word.
        if mr[1] != 0 || (extended && words < 3) {
            return NOTHING;
        }
        let anywhere = mr[0] >> 10 == !0 >> 10;
        if fpage.is_io() {
            return if anywhere { NOTHING } else { self.port(from, fpage) };
        }
        let bits = (mr[0] >> 4 & 0x3F) as u32;
        if !(12..=52).contains(&bits) {
            return NOTHING;
        }
        if anywhere {
            return match self.memory.highest_free(bits) {
                Some(base) => self.take(from, base, bits, |owner| owner == Owner::Free),
                None => NOTHING,
            };
        }
        let above = if extended { mr[2] << 32 } else { 0 };
        let low = if extended { mr[0] & 0xFFFF_FC00 } else { mr[0] & !0x3FF };
        let base = (above | low) >> bits << bits;
        self.take(from, base, bits, |owner| matches!(owner, Owner::Free | Owner::Special))
    }

    /// Gives 2^`bits` bytes at `base` if all of it is shared, the asker's, or `available`.
    fn take(
        &mut self,
        from: ThreadId,
        base: u64,
        bits: u32,
        available: impl Fn(Owner) -> bool,
    ) -> Answer {
        let high = base | ((1 << bits) - 1);
        let mine = |owner| owner == Owner::Thread(from);
        if !self.memory.all(base, high, |o| mine(o) || o == Owner::Shared || available(o)) {
            return NOTHING;
        }
        // Shared memory stays shared, whoever has got it.
        if self.memory.all(base, high, |o| o != Owner::Shared)
            && self.memory.assign(base, high, Owner::Thread(from)).is_err()
        {
            return NOTHING;
        }
        Answer::Map(MapItem::map(Fpage::memory(base, bits, Rights::RWX), base))
    }

    /// Gives the ports of an I/O flexpage if they are free or the asker's.
    fn port(&mut self, from: ThreadId, fpage: Fpage) -> Answer {
        let low = u64::from(fpage.io_base());
        let high = low + (1 << fpage.io_bits()) - 1;
        let available = |owner| owner == Owner::Free || owner == Owner::Thread(from);
        if !fpage.is_io() || !self.ports.all(low, high, available) {
            return NOTHING;
        }
        if self.ports.assign(low, high, Owner::Thread(from)).is_err() {
            return NOTHING;
        }
        Answer::Map(MapItem::map(
            Fpage::io(fpage.io_base(), fpage.io_bits()).with_rights(Rights::RWX),
            low,
        ))
    }

    /// Verbosity (1), dump (2); Baton: serve nobody but the root task (3).
    fn extended(&mut self, mr: [u64; 3]) -> Answer {
        match mr[0] {
            1 => {
                self.verbosity = mr[1];
                Answer::Silence
            }
            2 => Answer::Dump { reply: mr[1] != 0 },
            3 => {
                self.closed = true;
                Answer::Empty
            }
            _ => Answer::Silence,
        }
    }
}

#[cfg(test)]
mod tests;
