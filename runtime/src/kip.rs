//! The kernel interface page: what the kernel says about itself (X.2 2).

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::kip::{LineMessage, MemoryDescriptor, baton, offset};

static KIP: AtomicU64 = AtomicU64::new(0);

/// The kernel interface page of this space.
#[derive(Clone, Copy)]
pub struct Kip(u64);

/// Finds the page by `lock nop` (X.2 2.1), once per task.
#[must_use]
pub fn get() -> Kip {
    let known = KIP.load(Ordering::Relaxed);
    if known != 0 {
        return Kip(known);
    }
    let address: u64;
    // SAFETY: the kernel emulates the instruction: it changes these four registers only.
    unsafe {
        asm!(".byte 0xF0, 0x90", out("rax") address, out("rcx") _, out("rdx") _, out("rsi") _, options(nostack));
    }
    KIP.store(address, Ordering::Relaxed);
    Kip(address)
}

impl Kip {
    /// Where it is mapped.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0
    }

    /// The word at `offset` bytes.
    #[must_use]
    pub fn word(self, offset: usize) -> u64 {
        assert!(offset.is_multiple_of(8) && offset < 4096);
        // SAFETY: the page is mapped read-only at this address in every space and never unmapped.
        unsafe { ((self.0 + offset as u64) as *const u64).read_volatile() }
    }

    /// How many processors run.
    #[must_use]
    pub fn processors(self) -> u32 {
        (self.word(offset::PROCESSOR_INFO) & 0xFFFF) as u32 + 1
    }

    /// What a device writes, and where, to signal interrupt `line`: `None` for a line with a wire, and on
    /// a machine without such lines.
    #[must_use]
    pub fn message(self, line: u32) -> Option<LineMessage> {
        let desc = self.word(offset::BATON_DESC_PTR) as usize;
        let word = |index: usize| self.word(desc + 8 * index);
        LineMessage::of(line, [word(baton::MESSAGE_ADDRESS), word(baton::MESSAGE_ADDRESS + 1)])
    }

    /// The memory descriptors, in the order in which they apply.
    pub fn memory(self) -> impl Iterator<Item = MemoryDescriptor> {
        let info = self.word(offset::MEMORY_INFO);
        let (count, first) = (info as u32 as usize, (info >> 32) as usize);
        (0..count).map(move |index| {
            let at = first + index * 16;
            MemoryDescriptor::decode([self.word(at), self.word(at + 8)])
        })
    }

    /// Low and high (exclusive) physical bounds of an initial server's image.
    #[must_use]
    pub fn server_image(self, server: usize) -> (u64, u64) {
        (self.word(server + 16), self.word(server + 24))
    }

    /// Physical address of the bootinfo, 0 if there is none.
    #[must_use]
    pub fn bootinfo(self) -> u64 {
        self.word(offset::BOOT_INFO)
    }
}
