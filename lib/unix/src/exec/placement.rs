//! Where the parts of a program go: at random, as on Linux, unless the system
//! (`/proc/sys/kernel/randomize_va_space`) or the program (`personality`) says otherwise.

use crate::call::Cx;
use crate::mm::{PAGE, USER_END};

/// `ADDR_NO_RANDOMIZE`.
const NOT_AT_RANDOM: u32 = 0x0004_0000;
/// What a program with more rights than its caller does not keep of `personality`:
/// `READ_IMPLIES_EXEC`, `ADDR_NO_RANDOMIZE`, `ADDR_COMPAT_LAYOUT`, `MMAP_PAGE_ZERO`.
pub const LOST_BY_SET_ID: u32 = 0x0400_0000 | NOT_AT_RANDOM | 0x0020_0000 | 0x0010_0000;
/// Mappings and movable programs: 28 bits of pages, as `vm.mmap_rnd_bits` has it.
const MAP_PAGES: u64 = 1 << 28;
/// The stack: 22 bits of pages, and within a page pair.
const STACK_PAGES: u64 = 1 << 22;
const STACK_BYTES: u64 = 8192;
/// The heap: 32 MiB.
const HEAP_PAGES: u64 = (32 << 20) / PAGE;

/// How far the parts lie from where they would be without randomness, in bytes; all but the
/// last are whole pages.
#[derive(Clone, Copy, Default)]
pub struct Placement {
    /// Mappings, downwards.
    pub mappings: u64,
    /// A program that can be anywhere, upwards.
    pub program: u64,
    /// The heap, upwards.
    pub heap: u64,
    /// The stack's end, downwards.
    pub stack: u64,
    /// The first contents of the stack, downwards.
    pub stack_pointer: u64,
}

impl Placement {
    /// Where the stack ends.
    #[must_use]
    pub const fn stack_end(&self) -> u64 {
        USER_END - self.stack
    }

    /// For a program that the caller is about to run; `secure`: with more rights.
    #[must_use]
    pub fn new(cx: &Cx, secure: bool) -> Self {
        let wanted = cx.process.state.personality.get() & NOT_AT_RANDOM == 0 || secure;
        let level = cx.unix.randomize.get();
        if level == 0 || !wanted {
            return Self::default();
        }
        let below = |end: u64| {
            let mut bytes = [0; 8];
            cx.unix.machine.random(&mut bytes);
            u64::from_le_bytes(bytes) % end
        };
        Self {
            // The stack's own way is kept free.
            mappings: (below(MAP_PAGES) + STACK_PAGES) * PAGE,
            program: below(MAP_PAGES) * PAGE,
            heap: if level > 1 { below(HEAP_PAGES) * PAGE } else { 0 },
            stack: below(STACK_PAGES) * PAGE,
            stack_pointer: below(STACK_BYTES),
        }
    }
}
