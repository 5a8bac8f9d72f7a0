//! Options that only raw sockets have: headers of their own, checksums, which messages of ICMP they want.

use alloc::vec::Vec;

use zerocopy::IntoBytes;

use super::icmp::{ICMP, ICMP_V6};
use super::{Raw, RawSocket};
use crate::call::Cx;
use crate::errno::Errno;

const IPPROTO_IP: u32 = 0;
const IPPROTO_IPV6: u32 = 41;
const SOL_ICMPV6: u32 = 58;
const SOL_RAW: u32 = 255;
pub(in crate::stream::socket) const IP_HDRINCL: u32 = 3;
const IPV6_HDRINCL: u32 = 36;
const IPV6_CHECKSUM: u32 = 7;
const ICMP_FILTER: u32 = 1;

/// Messages of ICMP that a socket does not want, a bit for each kind. Of IPv4 the first 32 kinds are known.
#[derive(Clone, Copy, Default)]
pub(super) struct Filter {
    words: [u32; 8],
}

impl Filter {
    pub fn refuses(self, kind: u8) -> bool {
        self.words[usize::from(kind) / 32] >> (kind % 32) & 1 != 0
    }
}

/// An option that only they have.
enum Own {
    Headers,
    Checksum,
    /// So many bytes of it count.
    Filter(usize),
}

impl RawSocket<'_> {
    /// Whether a level and a name mean one of theirs.
    fn own(&self, level: u32, name: u32) -> Result<Option<Own>, Errno> {
        let protocol = self.inet.protocol;
        Ok(Some(match (self.inet.v6, level, name) {
            (false, IPPROTO_IP, IP_HDRINCL) | (true, IPPROTO_IPV6, IPV6_HDRINCL) => Own::Headers,
            (false, SOL_RAW, ICMP_FILTER) if protocol == ICMP => Own::Filter(4),
            (true, SOL_ICMPV6, ICMP_FILTER) if protocol == ICMP_V6 => Own::Filter(32),
            (false, SOL_RAW, ICMP_FILTER) => return Err(Errno::EOPNOTSUPP),
            (true, SOL_ICMPV6, _) if protocol != ICMP_V6 => return Err(Errno::EOPNOTSUPP),
            (true, SOL_RAW | IPPROTO_IPV6, IPV6_CHECKSUM) => Own::Checksum,
            (_, SOL_RAW | SOL_ICMPV6, _) | (true, IPPROTO_IP, _) => return Err(Errno::ENOPROTOOPT),
            _ => return Ok(None),
        }))
    }

    /// `setsockopt` with the value of `len` bytes at `at`; whether the option is one of theirs.
    ///
    /// # Errors
    /// `EINVAL`, `ENOPROTOOPT`, `EOPNOTSUPP`, `EFAULT`.
    pub fn set(
        &self,
        cx: &Cx,
        (level, name): (u32, u32),
        (at, len): (u64, usize),
    ) -> Result<bool, Errno> {
        let Some(own) = self.own(level, name)? else { return Ok(false) };
        if let Own::Filter(most) = own {
            let mut filter = self.raw.filter.get();
            let bytes = filter.words.as_mut_bytes().get_mut(..len.min(most)).unwrap_or_default();
            cx.user().read_bytes(at, bytes)?;
            self.raw.filter.set(filter);
            return Ok(true);
        }
        let value = match len {
            1..4 if level == IPPROTO_IP => i32::from(cx.user().read::<u8>(at)?),
            0..4 => return Err(Errno::EINVAL),
            _ => cx.user().read::<i32>(at)?,
        };
        match own {
            Own::Headers => self.raw.makes_headers.set(value != 0),
            // ICMP's is always there, and nowhere else.
            _ if self.inet.protocol == ICMP_V6 && level == IPPROTO_IPV6 => {
                return Err(Errno::EINVAL);
            }
            _ if value > 0 && value & 1 != 0 => return Err(Errno::EINVAL),
            _ => self.raw.checksum.set(u32::try_from(value).ok()),
        }
        Ok(true)
    }

    /// What `getsockopt` tells of one of theirs.
    ///
    /// # Errors
    /// `ENOPROTOOPT`, `EOPNOTSUPP`.
    pub fn get(&self, level: u32, name: u32) -> Result<Option<Vec<u8>>, Errno> {
        let Raw { makes_headers, checksum, filter, .. } = self.raw;
        let number = match self.own(level, name)? {
            None => return Ok(None),
            Some(Own::Filter(len)) => {
                return Ok(filter.get().words.as_bytes().get(..len).map(Vec::from));
            }
            Some(Own::Headers) => i32::from(makes_headers.get()),
            Some(Own::Checksum) => checksum.get().map_or(-1, |at| at as i32),
        };
        Ok(Some(number.as_bytes().into()))
    }
}
