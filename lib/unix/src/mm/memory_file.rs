//! `memfd_create`: files that live in memory and have no name.

use linux_raw_sys::general as linux;

use crate::call::{Answer, Cx};
use crate::errno::Errno;

/// Longest name in bytes.
const NAME_MAX: usize = 249;
/// `MFD_NOEXEC_SEAL` and `MFD_EXEC`: whether the file may be executed for ever.
const NO_EXEC_SEAL: u32 = 8;
const EXEC: u32 = 16;
/// `F_SEAL_SEAL`: no further seals. The state of files made without `MFD_ALLOW_SEALING`.
const SEAL_SEAL: u32 = 1;

/// `memfd_create(name, flags)`.
pub(super) fn memfd_create(cx: &Cx) -> Answer {
    let flags = cx.uint(1);
    let known = linux::MFD_CLOEXEC | linux::MFD_ALLOW_SEALING | NO_EXEC_SEAL | EXEC;
    if flags & !known != 0 || flags & NO_EXEC_SEAL != 0 && flags & EXEC != 0 {
        return Err(Errno::EINVAL.into());
    }
    let name = cx.user().read_string(cx.arg(0), NAME_MAX + 1, Errno::EINVAL)?;
    let sealable = flags & (linux::MFD_ALLOW_SEALING | NO_EXEC_SEAL) != 0;
    let open = cx.unix.fs.memory_file(cx, &name, if sealable { 0 } else { SEAL_SEAL })?;
    Ok(cx.add_file(open, flags & linux::MFD_CLOEXEC != 0)?.into())
}
