//! Error codes (X.2 4.9 and 5.3).

/// The phase in which an IPC failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// While sending.
    Send = 0,
    /// While receiving.
    Receive = 1,
}

/// Why an IPC failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpcErrorKind {
    /// The timeout expired before the partner was ready.
    Timeout = 1,
    /// The partner does not exist.
    NonExisting = 2,
    /// Cancelled by ExchangeRegisters before the transfer began.
    Cancelled = 3,
    /// The receiver had no room (offset: string bytes transferred).
    Overflow = 4,
    /// Transfer timeout, own.
    XferTimeoutOwn = 5,
    /// Transfer timeout, the partner's.
    XferTimeoutPartner = 6,
    /// Aborted by ExchangeRegisters during the transfer.
    Aborted = 7,
}

/// The IPC error word: `63..4` offset, `3..1` kind, `0` phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpcError {
    /// Why.
    pub kind: IpcErrorKind,
    /// Where.
    pub phase: Phase,
    /// Bytes of string data transferred before the failure.
    pub offset: u64,
}

impl IpcError {
    /// An error before any transfer.
    #[must_use]
    pub const fn new(kind: IpcErrorKind, phase: Phase) -> Self {
        Self { kind, phase, offset: 0 }
    }

    /// The ErrorCode word.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.offset << 4 | (self.kind as u64) << 1 | self.phase as u64
    }

    /// Decodes an ErrorCode word of a failed IPC.
    #[must_use]
    pub const fn decode(word: u64) -> Option<Self> {
        let kind = match word >> 1 & 7 {
            1 => IpcErrorKind::Timeout,
            2 => IpcErrorKind::NonExisting,
            3 => IpcErrorKind::Cancelled,
            4 => IpcErrorKind::Overflow,
            5 => IpcErrorKind::XferTimeoutOwn,
            6 => IpcErrorKind::XferTimeoutPartner,
            7 => IpcErrorKind::Aborted,
            _ => return None,
        };
        let phase = if word & 1 == 0 { Phase::Send } else { Phase::Receive };
        Some(Self { kind, phase, offset: word >> 4 })
    }
}

/// ErrorCode of the calls that are not IPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum CallError {
    /// The caller may not do that.
    NoPrivilege = 1,
    /// The thread does not exist or is of the wrong kind.
    InvalidThread = 2,
    /// The space does not exist or is not ready.
    InvalidSpace = 3,
    /// The scheduler does not exist.
    InvalidScheduler = 4,
    /// A parameter is out of range.
    InvalidParameter = 5,
    /// The UTCB area or location is bad.
    UtcbArea = 6,
    /// The KIP area is bad.
    KipArea = 7,
    /// The payer's kernel-memory quota is used up.
    NoMemory = 8,
}

impl CallError {
    /// Decodes an ErrorCode word.
    #[must_use]
    pub const fn decode(word: u64) -> Option<Self> {
        Some(match word {
            1 => Self::NoPrivilege,
            2 => Self::InvalidThread,
            3 => Self::InvalidSpace,
            4 => Self::InvalidScheduler,
            5 => Self::InvalidParameter,
            6 => Self::UtcbArea,
            7 => Self::KipArea,
            8 => Self::NoMemory,
            _ => return None,
        })
    }
}
