//! The requests about network interfaces that any socket takes (SIOCGIF...): there is `lo`.

use linux_raw_sys::general::CAP_NET_ADMIN;
use linux_raw_sys::ioctl::{
    SIOCGIFADDR, SIOCGIFBRDADDR, SIOCGIFCONF, SIOCGIFFLAGS, SIOCGIFHWADDR, SIOCGIFINDEX,
    SIOCGIFMETRIC, SIOCGIFMTU, SIOCGIFNAME, SIOCGIFNETMASK, SIOCGIFTXQLEN, SIOCSIFADDR,
    SIOCSIFFLAGS, SIOCSIFNETMASK,
};

use super::inet::{Endpoint, v4};
use crate::call::{Cx, Stop};
use crate::errno::Errno;

/// Bytes of an interface's name, and of a `struct ifreq`.
const NAME: usize = 16;
const REQUEST: usize = 40;
/// `lo`, as it is named.
const LO: &[u8; 3] = b"lo\0";
/// Its number, flags (UP, LOOPBACK, RUNNING) and sizes.
const LO_INDEX: i32 = 1;
const LO_FLAGS: i16 = 0x49;
const LO_MTU: i32 = 65_536;
const QUEUE_LEN: i32 = 1000;
const ARPHRD_LOOPBACK: u16 = 772;

/// Carries out a request; `None` if it is not one of these.
pub(super) fn ioctl(cx: &Cx, request: u32, at: u64) -> Option<Result<u64, Stop>> {
    Some(match request {
        SIOCGIFCONF => list(cx, at),
        SIOCGIFNAME => name(cx, at),
        SIOCGIFADDR | SIOCGIFBRDADDR | SIOCGIFFLAGS | SIOCGIFHWADDR | SIOCGIFINDEX
        | SIOCGIFMETRIC | SIOCGIFMTU | SIOCGIFNETMASK | SIOCGIFTXQLEN => tell(cx, request, at),
        SIOCSIFADDR | SIOCSIFFLAGS | SIOCSIFNETMASK => set(cx, at),
        _ => return None,
    })
}

/// The address of `lo`, or its mask.
fn address(ip: [u8; 4]) -> [u8; 16] {
    let bytes = Endpoint { ip: v4(ip), port: 0 }.bytes(false);
    bytes.try_into().unwrap_or_default()
}

/// `SIOCGIFCONF`: the interfaces that have addresses.
fn list(cx: &Cx, at: u64) -> Result<u64, Stop> {
    let [len, buffer] = cx.user().read::<[u64; 2]>(at)?;
    let room = len as i32;
    if buffer != 0 && room >= REQUEST as i32 {
        let mut entry = [0; REQUEST];
        entry[..LO.len()].copy_from_slice(LO);
        entry[NAME..2 * NAME].copy_from_slice(&address([127, 0, 0, 1]));
        cx.user().write_bytes(buffer, &entry)?;
    }
    let fits = buffer == 0 || room >= REQUEST as i32;
    cx.user().write(at, &(if fits { REQUEST as i32 } else { 0 }))?;
    Ok(0)
}

/// `SIOCGIFNAME`: the name that a number has.
fn name(cx: &Cx, at: u64) -> Result<u64, Stop> {
    if cx.user().read::<i32>(at + NAME as u64)? != LO_INDEX {
        return Err(Errno::ENODEV.into());
    }
    let mut name = [0; NAME];
    name[..LO.len()].copy_from_slice(LO);
    cx.user().write_bytes(at, &name)?;
    Ok(0)
}

/// Whether a request is about `lo`.
fn check_name(cx: &Cx, at: u64) -> Result<(), Errno> {
    let name = cx.user().read::<[u8; NAME]>(at)?;
    if name.starts_with(LO) { Ok(()) } else { Err(Errno::ENODEV) }
}

/// The requests for one property.
fn tell(cx: &Cx, request: u32, at: u64) -> Result<u64, Stop> {
    check_name(cx, at)?;
    let mut value = [0; NAME];
    let mut put = |bytes: &[u8]| value[..bytes.len()].copy_from_slice(bytes);
    match request {
        SIOCGIFADDR => put(&address([127, 0, 0, 1])),
        SIOCGIFNETMASK => put(&address([255, 0, 0, 0])),
        SIOCGIFBRDADDR => put(&address([0; 4])),
        SIOCGIFFLAGS => put(&LO_FLAGS.to_ne_bytes()),
        SIOCGIFHWADDR => put(&ARPHRD_LOOPBACK.to_ne_bytes()),
        SIOCGIFINDEX => put(&LO_INDEX.to_ne_bytes()),
        SIOCGIFMTU => put(&LO_MTU.to_ne_bytes()),
        SIOCGIFTXQLEN => put(&QUEUE_LEN.to_ne_bytes()),
        _ => put(&0_i32.to_ne_bytes()),
    }
    // Nothing behind the property is touched.
    let len = match request {
        SIOCGIFFLAGS => 2,
        SIOCGIFINDEX | SIOCGIFMTU | SIOCGIFTXQLEN | SIOCGIFMETRIC => 4,
        _ => NAME,
    };
    cx.user().write_bytes(at + NAME as u64, value.get(..len).unwrap_or_default())?;
    Ok(0)
}

/// What would change an interface: `lo` is as it is wanted already.
fn set(cx: &Cx, at: u64) -> Result<u64, Stop> {
    check_name(cx, at)?;
    if !cx.process.credentials.borrow().may(CAP_NET_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    Ok(0)
}
