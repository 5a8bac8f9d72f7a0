//! The message tag, MR0 (X.2 4.1).

/// `63..16` label, `15` E, `14` X, `13` r, `12` p, `11..6` t typed words, `5..0` u untyped words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct MsgTag(pub u64);

impl MsgTag {
    /// The operation failed; ErrorCode says why.
    pub const ERROR: u64 = 1 << 15;
    /// The message came from another processor.
    pub const XCPU: u64 = 1 << 14;
    /// The message was redirected.
    pub const REDIRECTED: u64 = 1 << 13;
    /// Send: propagate. Receive: was propagated.
    pub const PROPAGATED: u64 = 1 << 12;

    /// A tag without flags.
    #[must_use]
    pub const fn new(label: u64, untyped: u32, typed: u32) -> Self {
        Self(label << 16 | (typed as u64 & 0x3F) << 6 | untyped as u64 & 0x3F)
    }

    /// The kernel's protocol tags: signed label `l` in bits 63..20, `n` in 19..16.
    #[must_use]
    pub const fn protocol(l: i64, n: u32, untyped: u32, typed: u32) -> Self {
        Self::new((l << 4) as u64 | n as u64, untyped, typed)
    }

    /// The 48-bit label.
    #[must_use]
    pub const fn label(self) -> u64 {
        self.0 >> 16
    }

    /// The signed protocol label of bits 63..20.
    #[must_use]
    pub const fn protocol_label(self) -> i64 {
        self.0 as i64 >> 20
    }

    /// Number of untyped words.
    #[must_use]
    pub const fn untyped(self) -> usize {
        (self.0 & 0x3F) as usize
    }

    /// Number of words of typed items.
    #[must_use]
    pub const fn typed(self) -> usize {
        (self.0 >> 6 & 0x3F) as usize
    }

    /// Whether the operation failed.
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 & Self::ERROR != 0
    }

    /// Whether propagation is asked for or took place.
    #[must_use]
    pub const fn is_propagated(self) -> bool {
        self.0 & Self::PROPAGATED != 0
    }

    /// The same tag with all four flags cleared.
    #[must_use]
    pub const fn without_flags(self) -> Self {
        Self(self.0 & !0xF000)
    }

    /// The same tag with `flags` set.
    #[must_use]
    pub const fn with(self, flags: u64) -> Self {
        Self(self.0 | flags)
    }
}
