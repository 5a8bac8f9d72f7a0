//! What goes with a message: open files (`SCM_RIGHTS`) and who sent it
//! (`SCM_CREDENTIALS`).

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use linux_raw_sys::net::SOL_SOCKET;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::flights::{Baggage, Closing};
use super::inbox::Header as Datagram;
use super::inet::Inet;
use super::inet_options::Names;
use super::{Kind, Socket};
use crate::account::{Charge, What};
use crate::call::Cx;
use crate::errno::Errno;
use crate::file::Open;
use crate::process::{Pid, numbers};

const SCM_RIGHTS: i32 = 1;
const SCM_CREDENTIALS: i32 = 2;
/// Files that one message carries, at most.
const RIGHTS_MAX: usize = 253;
/// Bytes of control data of one message, at most (`optmem_max`).
const CONTROL_MAX: u64 = 20_480;
/// Files that are under way in all messages, at most.
const FLYING_MAX: usize = 4096;

/// Who sends, or is at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Credentials {
    pub pid: Pid,
    pub uid: u32,
    pub gid: u32,
}

impl Credentials {
    /// Of nobody.
    pub const NOBODY: Self = Self { pid: Pid::NONE, uid: u32::MAX, gid: u32::MAX };

    /// Of the system.
    pub const SYSTEM: Self = Self { pid: Pid::NONE, uid: 0, gid: 0 };

    /// The caller's, as the other side is told them.
    #[must_use]
    pub fn of(cx: &Cx) -> Self {
        let credentials = cx.process.credentials.borrow();
        Self { pid: cx.process.pid, uid: credentials.euid, gid: credentials.egid }
    }

    /// As a `struct ucred`, as the caller is told them.
    #[must_use]
    pub fn told(self, cx: &Cx) -> [u32; 3] {
        let nobody = self.uid == u32::MAX && cx.numbers().is_none() && cx.users().is_none();
        let (uid, gid) = match nobody {
            true => (self.uid, self.gid),
            false => (cx.user_told(self.uid), cx.group_told(self.gid)),
        };
        [cx.shown(self.pid), uid, gid]
    }
}

/// `struct cmsghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    len: u64,
    level: i32,
    kind: i32,
}

/// Bytes of a [`Header`].
const HEADER: usize = size_of::<Header>();

/// Open files on their way, counted.
pub struct Rights {
    /// The files, until it ends.
    baggage: Option<Box<Baggage>>,
    flying: Rc<Cell<usize>>,
    closing: Rc<Closing>,
    /// What they cost the sender.
    _charges: [Charge; 2],
}

impl Rights {
    /// The files.
    #[must_use]
    pub fn files(&self) -> &[Rc<Open>] {
        self.baggage.as_ref().map_or(&[], |baggage| &baggage.files)
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        self.flying.set(self.flying.get().saturating_sub(self.files().len()));
        if let Some(baggage) = self.baggage.take() {
            self.closing.add(baggage);
        }
    }
}

/// What a message is sent with.
#[derive(Default)]
pub struct Sent {
    /// Files.
    pub rights: Option<Rc<Rights>>,
    /// Who the sender claims to be.
    pub credentials: Option<Credentials>,
    /// The hops that a datagram may go, if not as many as its socket says.
    pub hops: Option<u8>,
    /// Its traffic class, likewise.
    pub class: Option<u8>,
}

/// Reads `len` bytes of control messages for `socket`.
///
/// # Errors
/// `EINVAL` for what is none, `EBADF` for a descriptor that is none, `ETOOMANYREFS`, `EPERM`
/// for credentials of somebody else, `ENOBUFS` if there is too much.
pub fn read(cx: &Cx, socket: &Socket, address: u64, len: u64) -> Result<Sent, Errno> {
    let mut sent = Sent::default();
    if len == 0 {
        return Ok(sent);
    }
    if len > CONTROL_MAX {
        return Err(Errno::ENOBUFS);
    }
    let mut bytes = vec![0; len as usize];
    cx.user().read_bytes(address, &mut bytes)?;
    let mut rest = bytes.as_slice();
    let mut files = Vec::new();
    while let Ok((header, _)) = Header::read_from_prefix(rest) {
        let end = usize::try_from(header.len).map_err(|_| Errno::EINVAL)?;
        let data = rest.get(HEADER..end).ok_or(Errno::EINVAL)?;
        if header.level == SOL_SOCKET as i32 {
            match header.kind {
                SCM_RIGHTS => read_rights(cx, data, &mut files)?,
                SCM_CREDENTIALS => sent.credentials = Some(read_credentials(cx, data)?),
                _ => return Err(Errno::EINVAL),
            }
        } else if let Some(inet) = &socket.inet {
            read_header(inet, (header.level as u32, header.kind as u32), data, &mut sent)?;
        }
        rest = rest.get(end.next_multiple_of(8)..).unwrap_or_default();
    }
    if !files.is_empty() {
        let flights = &cx.unix.streams.flights;
        let (flying, closing) = (flights.count.clone(), flights.closing.clone());
        let user = cx.process.user();
        let all = (flying.get() as u64, FLYING_MAX as u64);
        let share = Charge::share(&user, What::Flights, files.len() as u64, all);
        let share = share.map_err(|_| Errno::ETOOMANYREFS)?;
        let bytes =
            files.len() * size_of::<Rc<Open>>() + size_of::<Rights>() + size_of::<Baggage>();
        let charges = [cx.pay(bytes).map_err(|_| Errno::ENOBUFS)?, share];
        let most = cx.descriptor_limit();
        if user.uid != 0 && user.used(What::Flights) > most {
            return Err(Errno::ETOOMANYREFS);
        }
        flying.set(flying.get() + files.len());
        let baggage = Some(Baggage::new(files));
        sent.rights = Some(Rc::new(Rights { baggage, flying, closing, _charges: charges }));
    }
    Ok(sent)
}

fn read_rights(cx: &Cx, data: &[u8], files: &mut Vec<Rc<Open>>) -> Result<(), Errno> {
    for number in data.chunks_exact(4) {
        let fd = u32::from_ne_bytes(number.try_into().map_err(|_| Errno::EINVAL)?);
        if files.len() >= RIGHTS_MAX {
            return Err(Errno::EINVAL);
        }
        files.push(cx.file_or_path(fd)?);
    }
    Ok(())
}

/// What of a datagram's header one of them says, if it is about that.
fn read_header(
    inet: &Inet,
    (level, kind): (u32, u32),
    data: &[u8],
    sent: &mut Sent,
) -> Result<(), Errno> {
    let names = Names::of(inet);
    if level != names.level || ![names.hops, names.class].contains(&kind) {
        return Ok(());
    }
    let number = match data {
        [byte] if kind == names.class && !inet.v6 => i32::from(*byte),
        _ => i32::from_ne_bytes(data.try_into().map_err(|_| Errno::EINVAL)?),
    };
    // IPv6: as the socket says.
    if number == -1 && inet.v6 {
        return Ok(());
    }
    let value = u8::try_from(number).map_err(|_| Errno::EINVAL)?;
    match kind == names.hops {
        true if value == 0 && !inet.v6 => return Err(Errno::EINVAL),
        true => sent.hops = Some(value),
        false => sent.class = Some(value),
    }
    Ok(())
}

fn read_credentials(cx: &Cx, data: &[u8]) -> Result<Credentials, Errno> {
    let claimed = <[u32; 3]>::read_from_bytes(data).map_err(|_| Errno::EINVAL)?;
    let [number, uid, gid] = claimed;
    if uid == u32::MAX || gid == u32::MAX {
        return Err(Errno::EINVAL);
    }
    let (uid, gid) = (cx.user_meant(uid)?, cx.group_meant(gid)?);
    let own = cx.process.credentials.borrow();
    let users = [own.uid, own.euid, own.suid];
    let groups = [own.gid, own.egid, own.sgid];
    let may_claim = (number == cx.process.number
        || own.may_in(&numbers::owner(cx.numbers()), linux_raw_sys::general::CAP_SYS_ADMIN))
        && (users.contains(&uid) || own.may_here(linux_raw_sys::general::CAP_SETUID))
        && (groups.contains(&gid) || own.may_here(linux_raw_sys::general::CAP_SETGID));
    if !may_claim {
        return Err(Errno::EPERM);
    }
    Ok(Credentials { pid: cx.pid_of(number as i32)?, uid, gid })
}

/// Control messages being written to a program.
pub struct Writer<'a> {
    cx: &'a Cx<'a>,
    address: u64,
    room: usize,
    /// Bytes written.
    pub written: usize,
    /// Something did not fit (`MSG_CTRUNC`).
    pub cut: bool,
}

impl<'a> Writer<'a> {
    /// Into `room` bytes at `address`.
    #[must_use]
    pub fn new(cx: &'a Cx, address: u64, room: u64) -> Self {
        let room = if address == 0 { 0 } else { room.min(1 << 30) as usize };
        Self { cx, address, room, written: 0, cut: false }
    }

    /// Writes one, cut off where the room ends.
    ///
    /// # Errors
    /// `EFAULT`.
    fn put(&mut self, level: u32, kind: i32, data: &[u8]) -> Result<(), Errno> {
        let room = self.room - self.written.min(self.room);
        if room < HEADER {
            self.cut = true;
            return Ok(());
        }
        let len = data.len().min(room - HEADER);
        self.cut |= len < data.len();
        let header = Header { len: (HEADER + len) as u64, level: level as i32, kind };
        let at = self.address.wrapping_add(self.written as u64);
        self.cx.user().write(at, &header)?;
        let data = data.get(..len).unwrap_or_default();
        self.cx.user().write_bytes(at.wrapping_add(HEADER as u64), data)?;
        self.written += (HEADER + len).next_multiple_of(8).min(room);
        Ok(())
    }

    /// Writes who sent a message.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn put_credentials(&mut self, credentials: Credentials) -> Result<(), Errno> {
        self.put(SOL_SOCKET, SCM_CREDENTIALS, credentials.told(self.cx).as_bytes())
    }

    /// Writes what of a datagram's header its receiver has asked for.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn put_header(&mut self, socket: &Socket, header: Datagram) -> Result<(), Errno> {
        let Some(inet) = socket.inet.as_ref().filter(|_| socket.kind == Kind::Datagram) else {
            return Ok(());
        };
        let names = Names::of(inet);
        if names.is_set(socket, inet, names.wants_hops) {
            let hops = i32::from(header.hops);
            self.put(names.level, names.hops as i32, hops.as_bytes())?;
        }
        if names.is_set(socket, inet, names.wants_class) {
            // IPv4 tells a byte.
            let class = i32::from(header.class);
            let len = if inet.v6 { 4 } else { 1 };
            let class = class.as_bytes().get(..len).unwrap_or_default();
            self.put(names.level, names.class as i32, class)?;
        }
        Ok(())
    }

    /// Gives the caller descriptors of files, as many as there is room and limit for.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn put_rights(&mut self, rights: &Rights, close_on_exec: bool) -> Result<(), Errno> {
        let room = self.room - self.written.min(self.room);
        let max = room.saturating_sub(HEADER) / 4;
        let mut numbers: Vec<u32> = Vec::new();
        for open in rights.files().iter().take(max) {
            match self.cx.add_file(open.clone(), close_on_exec) {
                Ok(fd) => numbers.push(fd),
                Err(_) => break,
            }
        }
        self.cut |= numbers.len() < rights.files().len();
        if numbers.is_empty() {
            Ok(())
        } else {
            self.put(SOL_SOCKET, SCM_RIGHTS, numbers.as_bytes())
        }
    }
}
