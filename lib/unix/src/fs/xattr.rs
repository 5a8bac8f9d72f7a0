//! Extended attributes: there are none. Names in `user.` are not supported at all, as on
//! Linux's tmpfs; others could be there but never are.

use linux_raw_sys::general as linux;

use super::walk;
use crate::call::{Answer, Cx};
use crate::errno::Errno;

/// Longest name (`XATTR_NAME_MAX`), and room for its zero.
const NAME_MAX: usize = 256;

/// Finds the file, only to see whether it is there.
fn check_file(cx: &Cx, by: By) -> Result<(), Errno> {
    match by {
        By::Path => drop(walk::inode(cx, cx.arg(0))?),
        By::Link => {
            let flags = linux::AT_SYMLINK_NOFOLLOW;
            drop(walk::inode_at(cx, linux::AT_FDCWD, cx.arg(0), flags)?);
        }
        By::Descriptor => drop(cx.file(cx.uint(0))?),
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum By {
    Path,
    Link,
    Descriptor,
}

/// Why the attribute named at `address` is not there.
fn name_error(cx: &Cx, address: u64) -> Result<Errno, Errno> {
    let name = cx.user().read_string(address, NAME_MAX, Errno::ERANGE)?;
    if name.is_empty() {
        return Err(Errno::ERANGE);
    }
    let known = [&b"security."[..], b"trusted."];
    let known = known.iter().any(|prefix| name.starts_with(prefix));
    Ok(if known { Errno::ENODATA } else { Errno::EOPNOTSUPP })
}

fn get(cx: &Cx, by: By) -> Answer {
    check_file(cx, by)?;
    Err(name_error(cx, cx.arg(1))?.into())
}

fn set(cx: &Cx, by: By) -> Answer {
    if cx.uint(4) & !3 != 0 {
        return Err(Errno::EINVAL.into());
    }
    let error = name_error(cx, cx.arg(1))?;
    check_file(cx, by)?;
    let privileged = cx.process.credentials.borrow().may(linux::CAP_SYS_ADMIN);
    let refused = error == Errno::ENODATA && !privileged;
    Err(if refused { Errno::EPERM } else { Errno::EOPNOTSUPP }.into())
}

fn list(cx: &Cx, by: By) -> Answer {
    check_file(cx, by)?;
    Ok(0)
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $what:ident($by:ident);)*) => {
        $($(#[$doc])* pub(super) fn $name(cx: &Cx) -> Answer { $what(cx, By::$by) })*
    };
}

calls! {
    /// `getxattr(path, name, value, size)`.
    getxattr = get(Path);
    /// `lgetxattr(path, name, value, size)`.
    lgetxattr = get(Link);
    /// `fgetxattr(fd, name, value, size)`.
    fgetxattr = get(Descriptor);
    /// `setxattr(path, name, value, size, flags)`.
    setxattr = set(Path);
    /// `lsetxattr(path, name, value, size, flags)`.
    lsetxattr = set(Link);
    /// `fsetxattr(fd, name, value, size, flags)`.
    fsetxattr = set(Descriptor);
    /// `listxattr(path, list, size)`.
    listxattr = list(Path);
    /// `llistxattr(path, list, size)`.
    llistxattr = list(Link);
    /// `flistxattr(fd, list, size)`.
    flistxattr = list(Descriptor);
    /// `removexattr(path, name)`.
    removexattr = get(Path);
    /// `lremovexattr(path, name)`.
    lremovexattr = get(Link);
    /// `fremovexattr(fd, name)`.
    fremovexattr = get(Descriptor);
}
