//! Error numbers of Linux.

use linux_raw_sys::errno;

/// Why a system call was refused, as Linux numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub u16);

macro_rules! errors {
    ($($name:ident)*) => {
        impl Errno {
            $(#[doc = concat!("Linux's `", stringify!($name), "`.")]
            pub const $name: Self = Self(errno::$name as u16);)*
        }
    };
}

errors! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT
    EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC
    ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP
    ENODATA ETIME EOVERFLOW EILSEQ ENOMSG EIDRM ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT
    EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL
    ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ETIMEDOUT ECONNREFUSED EALREADY EINPROGRESS
    ECANCELED EOWNERDEAD ENOTRECOVERABLE ESHUTDOWN ETOOMANYREFS ENETUNREACH
    ENOKEY EKEYEXPIRED EKEYREVOKED EDQUOT EBADMSG ESTALE EUSERS
}

impl Errno {
    /// What a system call returns in RAX for this error.
    #[must_use]
    pub const fn result(self) -> u64 {
        -(self.0 as i64) as u64
    }
}
