//! What is told about a signal: the kernel's part of `siginfo_t`.

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::process::seccomp::filter;

/// About a signal. Its layout is that of `siginfo_t`'s first 48 bytes, all that carries
/// information.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Info {
    /// Signal.
    pub signal: u32,
    /// `si_errno`.
    pub errno: i32,
    /// `si_code`.
    pub code: i32,
    /// A timer's number + 1 while the signal is queued; programs see 0.
    pub timer: u32,
    /// The fields that depend on the signal.
    pub data: [u64; 4],
}

/// Bytes of a `siginfo_t`.
pub const SIGINFO_BYTES: usize = l::SI_MAX_SIZE as usize;

/// Two 32-bit fields side by side.
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl From<u32> for Info {
    /// As [`Info::kernel`].
    fn from(signal: u32) -> Self {
        Self::kernel(signal)
    }
}

impl Info {
    /// From the kernel itself.
    #[must_use]
    pub fn kernel(signal: u32) -> Self {
        Self { signal, code: l::SI_KERNEL as i32, ..Self::default() }
    }

    /// From a process, by `kill` (or another `code`).
    #[must_use]
    pub fn user(signal: u32, code: i32, pid: u32, uid: u32) -> Self {
        Self { signal, code, data: [pair(pid, uid), 0, 0, 0], ..Self::default() }
    }

    /// About a bad access to memory or a bad instruction.
    #[must_use]
    pub fn fault(signal: u32, code: i32, address: u64) -> Self {
        Self { signal, code, data: [address, 0, 0, 0], ..Self::default() }
    }

    /// About a child: `times` are user and system time in clock ticks.
    #[must_use]
    pub fn child(code: u32, pid: u32, uid: u32, status: u32, times: (u64, u64)) -> Self {
        let data = [pair(pid, uid), u64::from(status), times.0, times.1];
        Self { signal: l::SIGCHLD, code: code as i32, data, ..Self::default() }
    }

    /// From a timer that sends `value`.
    #[must_use]
    pub fn timer(signal: u32, timer: u32, value: u64) -> Self {
        let data = [u64::from(timer), value, 0, 0];
        Self { signal, code: l::SI_TIMER, timer: timer + 1, data, ..Self::default() }
    }

    /// About a file on which something happened (`F_SETSIG`).
    #[must_use]
    pub fn poll(signal: u32, code: i32, band: u64, fd: u32) -> Self {
        Self { signal, code, data: [band, u64::from(fd), 0, 0], ..Self::default() }
    }

    /// About a call that a filter refuses: the address behind it, its number, what the filter says.
    #[must_use]
    pub fn refused_call(address: u64, number: u32, errno: i32) -> Self {
        let data = [address, pair(number, filter::ARCH), 0, 0];
        Self { signal: l::SIGSYS, errno, code: l::SYS_SECCOMP as i32, data, ..Self::default() }
    }

    /// Sender's process id, where the kind of signal has one.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.data[0] as u32
    }

    /// Sender's user id, where the kind of signal has one.
    #[must_use]
    pub fn uid(&self) -> u32 {
        (self.data[0] >> 32) as u32
    }

    /// The value sent with it, where the kind of signal has one.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.data[1]
    }

    /// Status of a child, where the kind of signal has one.
    #[must_use]
    pub fn status(&self) -> u32 {
        self.data[1] as u32
    }

    /// As a `siginfo_t`.
    #[must_use]
    pub fn bytes(&self) -> [u8; SIGINFO_BYTES] {
        let mut bytes = [0; SIGINFO_BYTES];
        let seen = Self { timer: 0, ..*self };
        bytes[..size_of::<Self>()].copy_from_slice(seen.as_bytes());
        bytes
    }
}
