//! What a process may do beyond the rights of its user: Linux's capabilities, without those
//! of files. `identity` calls this when user ids change, `exec` when a program is run; all
//! others ask [`Credentials::may`](super::Credentials::may).

use linux_raw_sys::general as l;
use linux_raw_sys::prctl as p;
use zerocopy::IntoBytes;

use super::groups::process_or_self;
use super::identity::{Credentials, Ids};
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_capget, "capget", capget, "threads of a process have the same"),
    partial(l::__NR_capset, "capset", capset, "threads of a process have the same"),
];

/// All capabilities there are.
pub const ALL: u64 = (1 << (l::CAP_LAST_CAP + 1)) - 1;

/// `SECBIT_NOROOT`: user 0 has nothing for its number.
const NO_ROOT: u32 = 1;
/// `SECBIT_NO_SETUID_FIXUP`: a change of user ids changes no capabilities.
const NO_FIX_UP: u32 = 4;
/// `SECBIT_KEEP_CAPS`: who stops being user 0 keeps what is permitted.
const KEEP: u32 = 16;
/// `SECBIT_NO_CAP_AMBIENT_RAISE`.
const NO_RAISE: u32 = 64;
/// All bits, and for each the one above that locks it.
const SECURE_BITS: u32 = 0x55;
const SECURE_LOCKS: u32 = 0xAA;

/// Capabilities about files: in effect while the file system's user is 0.
const OF_FILES: u64 = 1 << l::CAP_CHOWN
    | 1 << l::CAP_DAC_OVERRIDE
    | 1 << l::CAP_DAC_READ_SEARCH
    | 1 << l::CAP_FOWNER
    | 1 << l::CAP_FSETID
    | 1 << l::CAP_LINUX_IMMUTABLE
    | 1 << l::CAP_MKNOD
    | 1 << l::CAP_MAC_OVERRIDE;

/// The sets of a process, a bit for each capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// What it may put into effect.
    pub permitted: u64,
    /// What is looked at.
    pub effective: u64,
    /// What a program with file capabilities may inherit.
    pub inheritable: u64,
    /// What every program inherits.
    pub ambient: u64,
    /// What a program can be given at most.
    pub bounding: u64,
    /// `SECBIT_*`.
    pub secure: u32,
}

impl Default for Capabilities {
    /// Those of process 1.
    fn default() -> Self {
        let (permitted, effective, bounding) = (ALL, ALL, ALL);
        Self { permitted, effective, bounding, inheritable: 0, ambient: 0, secure: 0 }
    }
}

impl Capabilities {
    /// Whether all these bits are set.
    const fn is_secure(&self, bits: u32) -> bool {
        self.secure & bits == bits
    }

    /// The user ids were `old` and are `new`.
    pub(super) fn users_changed(&mut self, old: Ids, new: Ids, root: Option<u32>) {
        let has_root = |ids: Ids| ids.iter().any(|id| Some(*id) == root);
        if self.is_secure(NO_FIX_UP) {
            return;
        }
        if has_root(old) && !has_root(new) {
            if !self.is_secure(KEEP) {
                (self.permitted, self.effective) = (0, 0);
            }
            self.ambient = 0;
        }
        match (Some(old[1]) == root, Some(new[1]) == root) {
            (true, false) => self.effective = 0,
            (false, true) => self.effective = self.permitted,
            _ => {}
        }
    }

    /// The file system's user was `old` and is `new`.
    pub(super) fn file_user_changed(&mut self, old: u32, new: u32, root: Option<u32>) {
        match (Some(old) == root, Some(new) == root) {
            _ if self.is_secure(NO_FIX_UP) => {}
            (true, false) => self.effective &= !OF_FILES,
            (false, true) => self.effective |= self.permitted & OF_FILES,
            _ => {}
        }
    }

    /// For `access`, which asks what the real user may.
    pub(crate) fn of_real_user(&mut self, is_root: bool) {
        if !self.is_secure(NO_FIX_UP) {
            self.effective = if is_root { self.permitted } else { 0 };
        }
    }
}

/// Who a process is that runs a program.
pub struct Executed {
    /// Its new credentials.
    pub who: Credentials,
    /// The program has more rights than who runs it (`AT_SECURE`).
    pub secure: bool,
}

/// `old` runs a program whose set-id bits give it this user and this group; `no_new`: it has
/// said that it wants no more rights than it has (`PR_SET_NO_NEW_PRIVS`).
#[must_use]
pub fn execute(old: &Credentials, user: Option<u32>, group: Option<u32>, no_new: bool) -> Executed {
    let mut who = old.clone();
    if !no_new {
        (who.euid, who.egid) = (user.unwrap_or(old.euid), group.unwrap_or(old.egid));
    }
    let set_id = who.euid != old.uid || who.egid != old.gid;
    let is_root = !old.capabilities.is_secure(NO_ROOT);
    let in_effect = is_root && old.is_root(who.euid);
    let mut permitted = match is_root && (in_effect || old.is_root(who.uid)) {
        true => old.capabilities.bounding | old.capabilities.inheritable,
        false => 0,
    };
    if no_new && (set_id || permitted & !old.capabilities.permitted != 0) {
        (who.euid, who.egid) = (who.uid, who.gid);
        permitted &= old.capabilities.permitted;
    }
    (who.suid, who.fsuid) = (who.euid, who.euid);
    (who.sgid, who.fsgid) = (who.egid, who.egid);
    let now = &mut who.capabilities;
    if set_id {
        now.ambient = 0;
    }
    now.permitted = permitted | now.ambient;
    now.effective = if in_effect { now.permitted } else { now.ambient };
    now.secure &= !KEEP;
    let more = in_effect || now.permitted & !now.ambient != 0;
    Executed { secure: set_id || !old.is_root(who.uid) && more, who }
}

/// `_LINUX_CAPABILITY_VERSION_3` and its predecessors, with their sets' number of words.
const VERSIONS: [(u32, usize); 3] = [(0x2008_0522, 2), (0x2007_1026, 2), (0x1998_0330, 1)];

/// Reads the header (version, process id) of `capget` and `capset`; the number of words of
/// a set. A version that is not known is answered with the newest.
fn header(cx: &Cx) -> Result<(usize, i32), Errno> {
    let [version, pid]: [u32; 2] = cx.user().read(cx.arg(0))?;
    match VERSIONS.iter().find(|(known, _)| *known == version) {
        Some((_, words)) => Ok((*words, pid as i32)),
        None => {
            cx.user().write(cx.arg(0), &VERSIONS[0].0)?;
            Err(Errno::EINVAL)
        }
    }
}

fn capget(cx: &Cx) -> Answer {
    let (words, pid) = match header(cx) {
        // Asking for the version only.
        Ok(_) | Err(Errno::EINVAL) if cx.arg(1) == 0 => return Ok(0),
        other => other?,
    };
    if pid < 0 {
        return Err(Errno::EINVAL.into());
    }
    let process = process_or_self(cx, pid)?;
    let own = process.credentials.borrow().capabilities;
    let mut sets = [0_u32; 6];
    for (word, set) in sets.chunks_mut(3).enumerate() {
        let part = |all: u64| (all >> (32 * word)) as u32;
        set.copy_from_slice(&[own.effective, own.permitted, own.inheritable].map(part));
    }
    cx.user().write_bytes(cx.arg(1), sets[..3 * words].as_bytes())?;
    Ok(0)
}

fn capset(cx: &Cx) -> Answer {
    let (words, pid) = header(cx)?;
    if pid != 0 && pid as u32 != cx.process.number {
        return Err(Errno::EPERM.into());
    }
    let mut sets = [0_u32; 6];
    cx.user().read_bytes(cx.arg(1), sets[..3 * words].as_mut_bytes())?;
    let set = |which: usize| (u64::from(sets[3 + which]) << 32 | u64::from(sets[which])) & ALL;
    let (effective, permitted, inheritable) = (set(0), set(1), set(2));
    let mut who = cx.process.credentials.borrow_mut();
    let may_inherit_any = who.may_here(l::CAP_SETPCAP);
    let now = &mut who.capabilities;
    if !may_inherit_any && inheritable & !(now.inheritable | now.permitted) != 0
        || inheritable & !(now.inheritable | now.bounding) != 0
        || permitted & !now.permitted != 0
        || effective & !permitted != 0
    {
        return Err(Errno::EPERM.into());
    }
    (now.effective, now.permitted, now.inheritable) = (effective, permitted, inheritable);
    now.ambient &= permitted & inheritable;
    Ok(0)
}

/// The part of `prctl` that is about capabilities; all others are `EINVAL`.
pub(super) fn prctl(cx: &Cx) -> Answer {
    let mut who = cx.process.credentials.borrow_mut();
    let may_change = who.may_here(l::CAP_SETPCAP);
    let now = &mut who.capabilities;
    let value = cx.arg(1);
    match cx.uint(0) {
        p::PR_GET_KEEPCAPS => return Ok(u64::from(now.is_secure(KEEP))),
        p::PR_SET_KEEPCAPS if value > 1 => return Err(Errno::EINVAL.into()),
        p::PR_SET_KEEPCAPS if now.is_secure(KEEP << 1) => return Err(Errno::EPERM.into()),
        p::PR_SET_KEEPCAPS => now.secure = now.secure & !KEEP | if value == 0 { 0 } else { KEEP },
        p::PR_CAPBSET_READ => return Ok(now.bounding >> checked(value)? & 1),
        p::PR_CAPBSET_DROP if !may_change => return Err(Errno::EPERM.into()),
        p::PR_CAPBSET_DROP => now.bounding &= !(1 << checked(value)?),
        p::PR_GET_SECUREBITS => return Ok(now.secure.into()),
        p::PR_SET_SECUREBITS => {
            let locked = now.secure & SECURE_LOCKS;
            let wrong = locked >> 1 & (now.secure ^ value as u32) != 0
                || locked & !(value as u32) != 0
                || value & !u64::from(SECURE_BITS | SECURE_LOCKS) != 0;
            if wrong || !may_change {
                return Err(Errno::EPERM.into());
            }
            now.secure = value as u32;
        }
        p::PR_CAP_AMBIENT => return ambient(cx, now),
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}

/// The number of a capability.
fn checked(number: u64) -> Result<u32, Errno> {
    if number <= l::CAP_LAST_CAP.into() { Ok(number as u32) } else { Err(Errno::EINVAL) }
}

/// `PR_CAP_AMBIENT`.
fn ambient(cx: &Cx, now: &mut Capabilities) -> Answer {
    let (what, number) = (cx.arg(1), cx.arg(2));
    if cx.arg(3) != 0 || cx.arg(4) != 0 {
        return Err(Errno::EINVAL.into());
    }
    if what == p::PR_CAP_AMBIENT_CLEAR_ALL.into() {
        if number != 0 {
            return Err(Errno::EINVAL.into());
        }
        now.ambient = 0;
        return Ok(0);
    }
    let bit = 1 << checked(number)?;
    match what as u32 {
        p::PR_CAP_AMBIENT_IS_SET => return Ok(u64::from(now.ambient & bit != 0)),
        p::PR_CAP_AMBIENT_LOWER => now.ambient &= !bit,
        p::PR_CAP_AMBIENT_RAISE => {
            if now.permitted & now.inheritable & bit == 0 || now.is_secure(NO_RAISE) {
                return Err(Errno::EPERM.into());
            }
            now.ambient |= bit;
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}
