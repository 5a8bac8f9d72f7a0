//! The vDSO: code that programs call for the time without calling the system.

use alloc::rc::Rc;

use crate::errno::Errno;
use crate::mm::AddressSpace;
use crate::unix::Unix;

/// Maps it into `space`; where its ELF header is, 0 if there is none.
///
/// # Errors
/// `ENOMEM`.
pub fn map(unix: &Unix, space: &Rc<AddressSpace>) -> Result<u64, Errno> {
    let _ = (unix, space);
    Ok(0)
}
