//! Addresses of sockets: paths and abstract names of UNIX sockets; what all families share.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::cell::RefCell;

use linux_raw_sys::net::AF_UNIX;

use super::Socket;
use super::inet::{Endpoint, Inet};
use crate::call::Cx;
use crate::errno::Errno;

/// `struct sockaddr_un` without the path.
const HEADER: usize = 2;
/// Bytes of `sun_path`.
const PATH: usize = 108;
/// No call takes a longer address (`struct sockaddr_storage`).
const STORAGE: u32 = 128;

/// The address of a socket.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Name {
    /// `sun_path`; an abstract name begins with a zero byte.
    Local(Vec<u8>),
    /// Of the Internet.
    Internet(Endpoint),
    /// Of AF_NETLINK: a port, 0 being the system's, and groups.
    Netlink {
        #[allow(missing_docs)]
        port: u32,
        /// To whose members it is said, a bit each.
        groups: u32,
    },
}

/// The abstract names in use.
pub type Names = Rc<RefCell<BTreeMap<Name, Weak<Socket>>>>;

impl Name {
    /// Whether it is no path.
    #[must_use]
    pub fn is_abstract(&self) -> bool {
        matches!(self, Self::Local(path) if path.first() == Some(&0))
    }

    /// Address and port, if it has them.
    #[must_use]
    pub fn endpoint(&self) -> Option<Endpoint> {
        match self {
            Self::Internet(endpoint) => Some(*endpoint),
            Self::Local(_) | Self::Netlink { .. } => None,
        }
    }

    /// The path of a file.
    fn path(&self) -> Vec<u8> {
        match self {
            Self::Local(path) => path.clone(),
            Self::Internet(_) | Self::Netlink { .. } => Vec::new(),
        }
    }

    /// As a `struct sockaddr_un` (a path ends with a zero byte), or as one of those that
    /// sockets of `inet` are told.
    #[must_use]
    pub fn bytes(&self, inet: Option<&Inet>) -> Vec<u8> {
        let path = match self {
            Self::Internet(endpoint) => return endpoint.bytes(inet.is_some_and(|inet| inet.v6)),
            Self::Netlink { port, groups } => {
                return super::netlink::address_bytes(*port, *groups);
            }
            Self::Local(path) => path,
        };
        let mut bytes = Vec::from((AF_UNIX as u16).to_ne_bytes());
        bytes.extend_from_slice(path);
        if !self.is_abstract() {
            bytes.push(0);
        }
        bytes
    }
}

/// What a program gives as an address.
pub enum Given {
    /// `AF_UNSPEC`: dissolves the connection of a datagram socket.
    Nothing,
    /// Only a family: any free name.
    Any,
    /// A name.
    Name(Name),
}

/// Reads an address of `len` bytes.
///
/// # Errors
/// `EINVAL` for a length or family that is none, `EFAULT`.
pub fn read(cx: &Cx, address: u64, len: u32) -> Result<Given, Errno> {
    if len > STORAGE {
        return Err(Errno::EINVAL);
    }
    let mut bytes = [0; STORAGE as usize];
    let bytes = bytes.get_mut(..len as usize).ok_or(Errno::EINVAL)?;
    cx.user().read_bytes(address, bytes)?;
    let Some((family, path)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(Errno::EINVAL);
    };
    match u32::from(u16::from_ne_bytes(*family)) {
        0 => return Ok(Given::Nothing),
        AF_UNIX if path.len() <= PATH => {}
        _ => return Err(Errno::EINVAL),
    }
    if path.is_empty() {
        return Ok(Given::Any);
    }
    if path.first() == Some(&0) {
        return Ok(Given::Name(Name::Local(path.to_vec())));
    }
    let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
    Ok(Given::Name(Name::Local(path.get(..end).unwrap_or_default().to_vec())))
}

/// Writes an address to `address`, cut off at the length found at `len_at`, where its
/// full length is written.
///
/// # Errors
/// `EINVAL` for a negative length, `EFAULT`.
pub fn write(
    cx: &Cx,
    socket: &Socket,
    name: Option<&Name>,
    address: u64,
    len_at: u64,
) -> Result<(), Errno> {
    let user = cx.user();
    let room = user.read::<i32>(len_at)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let len = write_cut(cx, socket, name, address, room)?;
    user.write(len_at, &(len as u32))
}

/// Writes an address, cut off at `room` bytes; its full length.
///
/// # Errors
/// `EFAULT`.
pub fn write_cut(
    cx: &Cx,
    socket: &Socket,
    name: Option<&Name>,
    address: u64,
    room: usize,
) -> Result<usize, Errno> {
    let bytes = match (name, &socket.inet) {
        (Some(name), inet) => name.bytes(inet.as_ref()),
        (None, None) if socket.netlink.get().is_some() => super::netlink::address_bytes(0, 0),
        (None, None) => Vec::from((AF_UNIX as u16).to_ne_bytes()),
        (None, Some(inet)) => inet.any().bytes(inet.v6),
    };
    let cut = bytes.get(..room.min(bytes.len())).unwrap_or_default();
    cx.user().write_bytes(address, cut)?;
    Ok(bytes.len())
}

/// Gives `socket` a name.
///
/// # Errors
/// `EADDRINUSE` for a name that is taken, and those of making a file.
pub fn bind(cx: &Cx, socket: &Rc<Socket>, name: Name) -> Result<(), Errno> {
    if name.is_abstract() {
        let mut names = socket.names.borrow_mut();
        if names.get(&name).is_some_and(|taken| taken.strong_count() > 0) {
            return Err(Errno::EADDRINUSE);
        }
        names.insert(name.clone(), Rc::downgrade(socket));
    } else {
        let inode = crate::fs::make_socket(cx, name.path())?;
        let any: Rc<dyn Any> = socket.clone();
        inode.bind(&any);
        *socket.place.borrow_mut() = Some(inode);
    }
    *socket.name.borrow_mut() = Some(Rc::new(name));
    Ok(())
}

/// Why a socket that has a name cannot be bound to `name`. A name in the file system is
/// looked at first: what is wrong with that counts more.
pub fn refusal(cx: &Cx, name: &Name) -> Errno {
    if name.is_abstract() {
        return Errno::EINVAL;
    }
    crate::fs::check_new_socket(cx, name.path()).err().unwrap_or(Errno::EINVAL)
}

/// Gives `socket` any free abstract name.
///
/// # Errors
/// `EADDRINUSE` if there is none.
pub fn bind_any(cx: &Cx, socket: &Rc<Socket>) -> Result<(), Errno> {
    for number in 0..0x10_0000 {
        let name = Name::Local(format!("\0{number:05x}").into_bytes());
        if !socket.names.borrow().contains_key(&name) {
            return bind(cx, socket, name);
        }
    }
    Err(Errno::EADDRINUSE)
}

/// The socket that has a name.
///
/// # Errors
/// `ECONNREFUSED` if none has, and those of finding a file.
pub fn find(cx: &Cx, name: &Name) -> Result<Rc<Socket>, Errno> {
    socket(bound(cx, name)?)
}

/// What has a name: a socket, or a service.
///
/// # Errors
/// As [`find`].
pub fn bound(cx: &Cx, name: &Name) -> Result<Rc<dyn Any>, Errno> {
    if name.is_abstract() {
        let names = cx.unix.streams.names.borrow();
        let socket = names.get(name).and_then(Weak::upgrade).ok_or(Errno::ECONNREFUSED)?;
        return Ok(socket);
    }
    let inode = crate::fs::find_socket(cx, name.path())?;
    let bound = inode.bound.borrow().as_ref().and_then(Weak::upgrade);
    bound.ok_or(Errno::ECONNREFUSED)
}

/// The socket that this is.
///
/// # Errors
/// `ECONNREFUSED` if it is a service.
pub fn socket(bound: Rc<dyn Any>) -> Result<Rc<Socket>, Errno> {
    bound.downcast::<Socket>().map_err(|_| Errno::ECONNREFUSED)
}
