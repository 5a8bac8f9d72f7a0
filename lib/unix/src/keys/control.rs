//! `keyctl`.

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as l;

use super::calls::{read_bytes, read_description, read_type, update};
use super::{CHANGE, Key, Kind, LINK, READ, SEARCH, VIEW, WRITE, rings};
use crate::call::{Answer, Cx, Entry, Stop, partial};
use crate::errno::Errno;
use crate::fs::permission::in_group;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[partial(
    l::__NR_keyctl,
    "keyctl",
    keyctl,
    "making keys for others, persistent keyrings, moving, cryptography",
)];

/// All rights there are.
const RIGHTS: u32 = 0x3F3F_3F3F;

fn serial(key: &Key) -> Answer {
    Ok(key.serial as u64)
}

fn keyctl(cx: &Cx) -> Answer {
    let id = cx.int(1);
    match cx.int(0) {
        0 => serial(&rings::find(cx, id, cx.arg(2) != 0, SEARCH)?.0),
        1 => join_session(cx),
        2 => update_key(cx),
        3 => revoke(cx),
        4 => change_owner(cx),
        5 => set_rights(cx),
        6 => describe(cx),
        7 => {
            let (ring, _) = rings::find(cx, id, true, WRITE)?;
            ring.check_keyring()?;
            ring.clear();
            Ok(0)
        }
        8 => {
            let (ring, _) = rings::find(cx, cx.int(2), true, WRITE)?;
            let (key, _) = rings::find(cx, id, true, LINK)?;
            rings::link(cx, &ring, &key)?;
            Ok(0)
        }
        9 => unlink(cx),
        10 => search(cx),
        11 => read(cx),
        // Nobody is asked to make keys, so nobody has the right to.
        12 | 13 | 19 | 20 => Err(Errno::EPERM.into()),
        14 => set_default(cx),
        15 => set_timeout(cx),
        16 => match id {
            0 => Ok(0),
            ..0 => Err(Errno::EINVAL.into()),
            _ => Err(Errno::ENOKEY.into()),
        },
        17 => {
            rings::find(cx, id, true, VIEW)?;
            give(cx, b"\0")
        }
        21 => invalidate(cx),
        _ => Err(Errno::EOPNOTSUPP.into()),
    }
}

/// Gives the program `bytes` if it has room for them (arguments 2 and 3); how many there are.
fn give(cx: &Cx, bytes: &[u8]) -> Answer {
    let (to, room) = (cx.arg(2), cx.arg(3));
    if to != 0 && room >= bytes.len() as u64 {
        cx.user().write_bytes(to, bytes)?;
    }
    Ok(bytes.len() as u64)
}

fn join_session(cx: &Cx) -> Answer {
    if cx.arg(1) == 0 {
        return serial(&*rings::join(cx, None)?);
    }
    let name = read_description(cx, cx.arg(1))?;
    match name.first() {
        None => Err(Errno::EINVAL.into()),
        Some(b'.') => Err(Errno::EPERM.into()),
        Some(_) => serial(&*rings::join(cx, Some(&name))?),
    }
}

fn update_key(cx: &Cx) -> Answer {
    let bytes = read_bytes(cx, cx.arg(2), cx.arg(3))?;
    let (key, _) = rings::find(cx, cx.int(1), false, WRITE)?;
    if key.is_keyring() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    key.kind.check(&key.description, bytes.len())?;
    update(&key, bytes)?;
    Ok(0)
}

/// A key that the caller may change in one way or the other.
fn to_end(cx: &Cx, one: u32, other: u32) -> Result<Rc<Key>, Errno> {
    let id = cx.int(1);
    match rings::find(cx, id, false, one) {
        Err(Errno::EACCES) => Ok(rings::find(cx, id, false, other)?.0),
        found => Ok(found?.0),
    }
}

fn revoke(cx: &Cx) -> Answer {
    let key = to_end(cx, WRITE, CHANGE)?;
    key.revoked.set(true);
    key.clear();
    Ok(0)
}

fn invalidate(cx: &Cx) -> Answer {
    let key = to_end(cx, SEARCH, SEARCH)?;
    key.revoked.set(true);
    key.clear();
    Ok(0)
}

fn change_owner(cx: &Cx) -> Answer {
    let (uid, gid) = (cx.user_meant(cx.uint(2))?, cx.group_meant(cx.uint(3))?);
    let (key, _) = rings::find(cx, cx.int(1), true, CHANGE)?;
    let who = cx.process.credentials.borrow();
    let may =
        uid == u32::MAX && (gid == u32::MAX || in_group(&who, gid)) || who.may(l::CAP_SYS_ADMIN);
    if !may {
        return Err(Errno::EACCES.into());
    }
    if uid != u32::MAX {
        key.uid.set(uid);
    }
    if gid != u32::MAX {
        key.gid.set(gid);
    }
    Ok(0)
}

fn set_rights(cx: &Cx) -> Answer {
    let rights = cx.uint(2);
    if rights & !RIGHTS != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (key, _) = rings::find(cx, cx.int(1), true, CHANGE)?;
    let who = cx.process.credentials.borrow();
    if who.fsuid != key.uid.get() && !who.may(l::CAP_SYS_ADMIN) {
        return Err(Errno::EACCES.into());
    }
    key.rights.set(rights);
    Ok(0)
}

fn describe(cx: &Cx) -> Answer {
    let (key, _) = rings::find(cx, cx.int(1), false, VIEW)?;
    let (kind, uid, gid) =
        (key.kind.name(), cx.user_told(key.uid.get()), cx.group_told(key.gid.get()));
    let mut text = format!("{kind};{uid};{gid};{:08x};", key.rights.get()).into_bytes();
    text.extend_from_slice(&key.description);
    text.push(0);
    give(cx, &text)
}

fn unlink(cx: &Cx) -> Answer {
    let (ring, _) = rings::find(cx, cx.int(2), false, WRITE)?;
    let (key, _) = rings::find(cx, cx.int(1), false, 0)?;
    ring.check_keyring()?;
    if ring.unlink(&key) { Ok(0) } else { Err(Errno::ENOENT.into()) }
}

fn search(cx: &Cx) -> Answer {
    let name = read_type(cx, cx.arg(2))?;
    let description = read_description(cx, cx.arg(3))?;
    let (ring, _) = rings::find(cx, cx.int(1), false, SEARCH)?;
    let to = match cx.int(4) {
        0 => None,
        id => Some(rings::find(cx, id, true, WRITE)?.0),
    };
    let kind = Kind::by_name(&name)?;
    ring.check_keyring()?;
    let key = rings::search(cx, &ring, kind, &description)?;
    if let Some(to) = to {
        key.check(cx, true, LINK)?;
        rings::link(cx, &to, &key)?;
    }
    serial(&key)
}

fn read(cx: &Cx) -> Answer {
    let (key, possesses) = rings::find(cx, cx.int(1), false, 0)?;
    key.check_alive(cx.unix)?;
    // Who possesses a key may read it if it may be searched for.
    match key.check(cx, possesses, READ) {
        Err(_) if possesses => key.check(cx, true, SEARCH)?,
        other => other?,
    }
    if key.kind == Kind::Logon {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if !key.is_keyring() {
        let bytes = key.bytes.borrow();
        let len = bytes.len().min(cx.arg(3) as usize);
        if cx.arg(2) != 0 && len == bytes.len() {
            cx.user().write_bytes(cx.arg(2), &bytes)?;
        }
        return Ok(bytes.len() as u64);
    }
    // As many numbers as there is room for.
    let links = key.links.borrow();
    let numbers: Vec<u8> = links.iter().flat_map(|key| key.serial.to_ne_bytes()).collect();
    let room = numbers.len().min(cx.arg(3) as usize) / 4 * 4;
    if cx.arg(2) != 0 {
        cx.user().write_bytes(cx.arg(2), &numbers[..room])?;
    }
    Ok(numbers.len() as u64)
}

/// `KEYCTL_SET_REQKEY_KEYRING`: what it was before.
fn set_default(cx: &Cx) -> Answer {
    let requested = &cx.process.state.keys.requested;
    let (old, new) = (requested.get(), cx.int(1));
    match new {
        -1 => {}
        1 | 2 => {
            rings::find(cx, -new, true, SEARCH)?;
            requested.set(new);
        }
        0 | 3..=5 => requested.set(new),
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(old as u64)
}

fn set_timeout(cx: &Cx) -> Result<u64, Stop> {
    let (key, _) = rings::find(cx, cx.int(1), true, CHANGE)?;
    let seconds = u64::from(cx.uint(2));
    let at_ns = cx.unix.machine.now_ns().saturating_add(seconds * 1_000_000_000);
    key.expires_ns.set((seconds != 0).then_some(at_ns));
    Ok(0)
}
