//! Thread ids (X.2 1.2): global ids name a thread anywhere and are unique in
//! time, local ids name a thread of the caller's own space by its UTCB.

use core::fmt;

/// Number of bits of a thread number that the kernel tells apart (`ThreadInfo.t`).
pub const THREAD_BITS: u32 = 17;
/// First thread number that is not an interrupt. Lines 0 to 15 are the ISA bus's, those below
/// [`MESSAGE_BASE`] inputs of I/O APICs; which of them exist depends on the machine.
pub const SYSTEM_BASE: u32 = 64;
/// The first line that no wire leads to: a device signals it by a message (MSI, MSI-X), a word that
/// it writes to an address (the interface page's extension descriptor has both).
pub const MESSAGE_BASE: u32 = 32;
/// First thread number that is not the kernel's: σ0, σ1, root task, then free.
pub const USER_BASE: u32 = SYSTEM_BASE + 64;

/// A thread id: one word, global or local.
///
/// Global: `63..32` number, `31..0` version, with version bits 5..0 not all
/// zero. Local: the UTCB pointer, whose bits 5..0 are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct ThreadId(pub u64);

impl ThreadId {
    /// No thread.
    pub const NIL: Self = Self(0);
    /// Any thread (as a from-specifier).
    pub const ANY: Self = Self(!0);
    /// Any thread of the caller's own space (as a from-specifier).
    pub const ANY_LOCAL: Self = Self(0xFFFF_FFFF_FFFF_FFC0);
    /// σ0, the initial space's thread.
    pub const SIGMA0: Self = Self::global(USER_BASE, 1);
    /// σ1 (X.2 reserves the number; Baton starts it when the image has one).
    pub const SIGMA1: Self = Self::global(USER_BASE + 1, 1);
    /// The root task's first thread.
    pub const ROOT: Self = Self::global(USER_BASE + 2, 1);

    /// The global id of thread `number` in its incarnation `version`.
    #[must_use]
    pub const fn global(number: u32, version: u32) -> Self {
        Self((number as u64) << 32 | version as u64)
    }

    /// The id of interrupt `line`.
    #[must_use]
    pub const fn irq(line: u32) -> Self {
        Self::global(line, 1)
    }

    /// The local id of the thread whose UTCB pointer is `utcb`.
    #[must_use]
    pub const fn local(utcb: u64) -> Self {
        Self(utcb & !0x3F)
    }

    /// Thread number of a global id.
    #[must_use]
    pub const fn number(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Version of a global id.
    #[must_use]
    pub const fn version(self) -> u32 {
        self.0 as u32
    }

    /// Whether this is nilthread.
    #[must_use]
    pub const fn is_nil(self) -> bool {
        self.0 == 0
    }

    /// Whether bits 5..0 are zero and the id is not nil: a local id or [`Self::ANY_LOCAL`].
    #[must_use]
    pub const fn is_local(self) -> bool {
        self.0 != 0 && self.0 & 0x3F == 0
    }

    /// Whether this can be the global id of a thread (not nil, not any, version legal).
    #[must_use]
    pub const fn is_global(self) -> bool {
        self.0 & 0x3F != 0 && self.0 != Self::ANY.0
    }

    /// Whether this is the id of an interrupt line.
    #[must_use]
    pub const fn is_irq(self) -> bool {
        self.is_global() && self.number() < SYSTEM_BASE
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NIL => f.write_str("nilthread"),
            Self::ANY => f.write_str("anythread"),
            Self::ANY_LOCAL => f.write_str("anylocalthread"),
            id if id.is_local() => write!(f, "local {:#x}", id.0),
            id => write!(f, "{}.{}", id.number(), id.version()),
        }
    }
}
