//! `add_key`, `request_key`.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as l;

use super::{CHANGE, Key, Kind, LINK, READ, SEARCH, USER_SHIFT, VIEW, WRITE, rings};
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_add_key, "add_key", add_key, "types but keyring, user, logon, big_key"),
    partial(
        l::__NR_request_key,
        "request_key",
        request_key,
        "nobody is asked to make a key: what is not there is ENOKEY",
    ),
];

/// Longest name of a type, and description.
const TYPE_MAX: usize = 32;
const DESCRIPTION_MAX: usize = 4096;
/// Longest contents.
const BYTES_MAX: u64 = (1 << 20) - 1;

/// The name of a type at `address`; those of the server's own begin with a period.
pub(super) fn read_type(cx: &Cx, address: u64) -> Result<Vec<u8>, Errno> {
    let name = cx.user().read_string(address, TYPE_MAX, Errno::EINVAL)?;
    match name.first() {
        None => Err(Errno::EINVAL),
        Some(b'.') => Err(Errno::EPERM),
        Some(_) => Ok(name),
    }
}

/// The description at `address`.
pub(super) fn read_description(cx: &Cx, address: u64) -> Result<Vec<u8>, Errno> {
    cx.user().read_string(address, DESCRIPTION_MAX, Errno::EINVAL)
}

/// The contents at `address`.
pub(super) fn read_bytes(cx: &Cx, address: u64, len: u64) -> Result<Vec<u8>, Errno> {
    if len > BYTES_MAX {
        return Err(Errno::EINVAL);
    }
    cx.check_heap(len as usize)?;
    let mut bytes = alloc::vec![0; len as usize];
    cx.user().read_bytes(address, &mut bytes)?;
    Ok(bytes)
}

/// `add_key(type, description, contents, len, keyring)`.
fn add_key(cx: &Cx) -> Answer {
    if cx.arg(3) > BYTES_MAX {
        return Err(Errno::EINVAL.into());
    }
    let name = read_type(cx, cx.arg(0))?;
    let description = match cx.arg(1) {
        0 => Vec::new(),
        address => read_description(cx, address)?,
    };
    if name == Kind::Keyring.name().as_bytes() && description.first() == Some(&b'.') {
        return Err(Errno::EPERM.into());
    }
    let bytes = read_bytes(cx, cx.arg(2), cx.arg(3))?;
    let (ring, _) = rings::find(cx, cx.int(4), true, WRITE)?;
    let kind = Kind::by_name(&name)?;
    ring.check_keyring()?;
    if description.is_empty() {
        return Err(Errno::EINVAL.into());
    }
    kind.check(&description, bytes.len())?;
    if kind != Kind::Keyring
        && let Some(key) = ring.find(kind, &description)
    {
        key.check(cx, true, WRITE)?;
        update(&key, bytes)?;
        return Ok(key.serial as u64);
    }
    let mut rights = VIEW | SEARCH | LINK | CHANGE | WRITE | VIEW >> USER_SHIFT;
    if kind != Kind::Logon {
        rights |= READ;
    }
    let key = cx.unix.keys.make(cx, kind, &description, bytes, rights)?;
    ring.link(&key)?;
    Ok(key.serial as u64)
}

/// Gives a key that is there other contents; one that was revoked or has expired lives again.
pub(super) fn update(key: &Rc<Key>, bytes: Vec<u8>) -> Result<(), Errno> {
    key.set(bytes)?;
    key.revoked.set(false);
    key.expires_ns.set(None);
    Ok(())
}

/// Where keys go that are requested for no keyring: the first of these that there is.
fn default_ring(cx: &Cx) -> Result<rings::Found, Errno> {
    let chosen = cx.process.state.keys.requested.get();
    if chosen > 0 {
        return rings::find(cx, -chosen, false, WRITE);
    }
    let first = [-1, -2].into_iter().find_map(|id| rings::find(cx, id, false, WRITE).ok());
    first.map_or_else(|| rings::find(cx, -3, false, WRITE), Ok)
}

/// `request_key(type, description, info, keyring)`.
fn request_key(cx: &Cx) -> Answer {
    let name = read_type(cx, cx.arg(0))?;
    let description = read_description(cx, cx.arg(1))?;
    if cx.arg(2) != 0 {
        read_description(cx, cx.arg(2))?;
    }
    let ring = match cx.int(3) {
        0 => None,
        id => Some(rings::find(cx, id, true, WRITE)?.0),
    };
    let kind = Kind::by_name(&name)?;
    match rings::search_all(cx, kind, &description) {
        Ok(key) => {
            if let Some(ring) = ring {
                rings::link(cx, &ring, &key)?;
            }
            Ok(key.serial as u64)
        }
        // It would be made, and there has to be a place for it; but there is nobody to make it.
        Err(Errno::ENOKEY) if cx.arg(2) != 0 && ring.is_none() => {
            default_ring(cx)?;
            Err(Errno::ENOKEY.into())
        }
        Err(errno) => Err(errno.into()),
    }
}
