//! On which node memory is to be. There is one, where everything is: what programs ask for is checked, kept, inherited and told
//! as by Linux on such a machine, and nothing has to move.

use alloc::rc::Rc;
use alloc::vec;

use linux_raw_sys::general as linux;
use zerocopy::IntoBytes;

use super::area::{AREAS_MAX, AreaFlags};
use super::{AddressSpace, PAGE, page_of};
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::process::Process;
use crate::trace::attach::may_trace;

/// The calls this file carries out.
pub(super) const MBIND: Entry = partial(
    linux::__NR_mbind,
    "mbind",
    mbind,
    "a shared mapping's policy is not that of what is mapped",
);
pub(super) const SET_MEMPOLICY: Entry =
    full(linux::__NR_set_mempolicy, "set_mempolicy", set_mempolicy);
pub(super) const GET_MEMPOLICY: Entry =
    full(linux::__NR_get_mempolicy, "get_mempolicy", get_mempolicy);
pub(super) const MIGRATE_PAGES: Entry =
    full(linux::__NR_migrate_pages, "migrate_pages", migrate_pages);
pub(super) const MOVE_PAGES: Entry = full(linux::__NR_move_pages, "move_pages", move_pages);
pub(super) const HOME_NODE: Entry =
    full(linux::__NR_set_mempolicy_home_node, "set_mempolicy_home_node", set_home_node);

/// `MPOL_*`: what a policy is.
const DEFAULT: u16 = 0;
const PREFERRED: u16 = 1;
const BIND: u16 = 2;
const INTERLEAVE: u16 = 3;
const LOCAL: u16 = 4;
const PREFERRED_MANY: u16 = 5;
/// `MPOL_F_*`: bits beside it, which say how nodes are meant.
const BALANCING: u16 = 1 << 13;
const RELATIVE: u16 = 1 << 14;
const STATIC: u16 = 1 << 15;
const MEANT: u16 = BALANCING | RELATIVE | STATIC;
/// `MPOL_F_*` of `get_mempolicy`: the node rather than the policy; of an address; of what is allowed.
const OF_NODE: u64 = 1;
const OF_ADDRESS: u64 = 2;
const OF_ALLOWED: u64 = 4;
/// `MPOL_MF_*`: all is there already; also what others have.
const KNOWN: u32 = 7;
const MOVE: u32 = 2;
const MOVE_ALL: u32 = 4;
/// Most nodes that a mask names, as Debian's kernel has it.
const NODES_MAX: u64 = 1024;
/// Pages that are looked at before others have their turn.
const TURN: u64 = 4096;

/// A policy, as it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy(u16);

impl Policy {
    fn mode(self) -> u16 {
        self.0 & !MEANT
    }

    /// It among the flags of an area.
    fn flags(self) -> AreaFlags {
        AreaFlags::from_bits_retain((self.mode() | self.0 >> 13 << 3) << 8)
    }

    /// That of an area with these flags.
    fn of(flags: AreaFlags) -> Self {
        let bits = (flags & AreaFlags::POLICY).bits() >> 8;
        Self(bits & 7 | bits >> 3 << 13)
    }

    /// Its name, and what follows that if it names nodes.
    pub(crate) fn told(flags: AreaFlags) -> (&'static str, &'static str) {
        let policy = Self::of(flags);
        let name = match policy.mode() {
            PREFERRED => "prefer",
            BIND => "bind",
            INTERLEAVE => "interleave",
            LOCAL => "local",
            PREFERRED_MANY => "prefer (many)",
            _ => "default",
        };
        let nodes = match (policy.has_nodes(), policy.0 & STATIC != 0, policy.0 & RELATIVE != 0) {
            (false, ..) => "",
            (_, true, _) => "=static:0",
            (_, _, true) => "=relative:0",
            _ => ":0",
        };
        (name, nodes)
    }

    fn has_nodes(self) -> bool {
        !matches!(self.mode(), DEFAULT | LOCAL)
    }
}

/// What a mask of nodes comes to here.
#[derive(Clone, Copy, Default)]
struct Nodes {
    /// The one that there is, is among them.
    first: bool,
    any: bool,
    others: bool,
}

/// Reads a mask of `count` - 1 nodes, as Linux counts.
fn nodes_at(cx: &Cx, at: u64, count: u64) -> Result<Nodes, Errno> {
    let count = count.wrapping_sub(1);
    if count == 0 || at == 0 {
        return Ok(Nodes::default());
    }
    if count > 8 * PAGE {
        return Err(Errno::EINVAL);
    }
    let mut words = vec![0_u64; count.div_ceil(64) as usize];
    cx.user().read_bytes(at, words.as_mut_bytes())?;
    let mut nodes = Nodes::default();
    for (first, word) in (0..).step_by(64).zip(words) {
        let word = if count - first < 64 { word & ((1 << (count - first)) - 1) } else { word };
        if first >= NODES_MAX && word != 0 {
            return Err(Errno::EINVAL);
        }
        nodes.first |= first == 0 && word & 1 != 0;
        nodes.others |= if first == 0 { word > 1 } else { word != 0 };
        nodes.any |= word != 0;
    }
    Ok(nodes)
}

/// The parts of what a program says a policy is.
fn parts(word: u32) -> Result<(u16, u16), Errno> {
    let meant = word & u32::from(MEANT);
    let mode = word & !meant;
    let balances = meant & u32::from(BALANCING) != 0 && mode != u32::from(BIND);
    let both = u32::from(STATIC | RELATIVE);
    if mode > u32::from(PREFERRED_MANY) || meant & both == both || balances {
        return Err(Errno::EINVAL);
    }
    Ok((mode as u16, meant as u16))
}

/// The policy of those parts.
fn policy((mode, meant): (u16, u16), nodes: Nodes) -> Result<Policy, Errno> {
    let exact = meant & (STATIC | RELATIVE) != 0;
    match mode {
        DEFAULT if nodes.any => Err(Errno::EINVAL),
        DEFAULT => Ok(Policy(DEFAULT)),
        PREFERRED | LOCAL if !nodes.any => {
            if exact {
                Err(Errno::EINVAL)
            } else {
                Ok(Policy(LOCAL))
            }
        }
        LOCAL => Err(Errno::EINVAL),
        // Relative ones are counted among those that there are.
        _ if nodes.first || nodes.any && meant & RELATIVE != 0 => Ok(Policy(mode | meant)),
        _ => Err(Errno::EINVAL),
    }
}

fn set_mempolicy(cx: &Cx) -> Answer {
    let parts = parts(cx.uint(0))?;
    let nodes = nodes_at(cx, cx.arg(1), cx.arg(2))?;
    cx.thread.memory_policy.set(policy(parts, nodes)?);
    Ok(0)
}

/// `get_mempolicy(policy, nodes, count, address, flags)`.
fn get_mempolicy(cx: &Cx) -> Answer {
    let (to, mask, count, address, flags) = (cx.arg(0), cx.arg(1), cx.arg(2), cx.arg(3), cx.arg(4));
    if flags & !(OF_NODE | OF_ADDRESS | OF_ALLOWED) != 0 || mask != 0 && count < 1 {
        return Err(Errno::EINVAL.into());
    }
    let own = cx.thread.memory_policy.get();
    let (told, has_nodes) = if flags & OF_ALLOWED != 0 {
        if flags != OF_ALLOWED {
            return Err(Errno::EINVAL.into());
        }
        (0, true)
    } else if flags & OF_ADDRESS != 0 {
        let space = cx.process.space();
        let flags_there = space.areas.borrow().at(address).map(|area| area.flags);
        let of_area = Policy::of(flags_there.ok_or(Errno::EFAULT)?);
        let policy = if of_area == Policy::default() { own } else { of_area };
        if flags & OF_NODE != 0 {
            space.frame_for(cx.unix, page_of(address), false)?;
            (0, policy.has_nodes())
        } else {
            (policy.0, policy.has_nodes())
        }
    } else if address != 0 || flags & OF_NODE != 0 && own.mode() != INTERLEAVE {
        return Err(Errno::EINVAL.into());
    } else {
        (if flags & OF_NODE != 0 { 0 } else { own.0 }, own.has_nodes())
    };
    if to != 0 {
        cx.user().write(to, &u32::from(told))?;
    }
    if mask != 0 {
        write_nodes(cx, mask, count, has_nodes)?;
    }
    Ok(0)
}

/// Writes a mask of `count` - 1 nodes, of which the only one is among them or not.
fn write_nodes(cx: &Cx, to: u64, count: u64, is_there: bool) -> Result<(), Errno> {
    let words = (count - 1).div_ceil(64);
    if words > PAGE / 8 {
        return Err(Errno::EINVAL);
    }
    let mut mask = vec![0_u64; words as usize];
    if let Some(first) = mask.first_mut() {
        *first = u64::from(is_there);
    }
    cx.user().write_bytes(to, mask.as_bytes())
}

/// The range of a call: `None` if nothing is in it. Lengths wrap as Linux rounds them.
fn range(start: u64, len: u64) -> Result<Option<(u64, u64)>, Errno> {
    let end = start.wrapping_add(page_of(len.wrapping_add(PAGE - 1)));
    if !start.is_multiple_of(PAGE) || end < start {
        return Err(Errno::EINVAL);
    }
    Ok((end > start).then_some((start, end)))
}

/// `mbind(start, len, policy, nodes, count, flags)`.
fn mbind(cx: &Cx) -> Answer {
    let parts = parts(cx.uint(2))?;
    let nodes = nodes_at(cx, cx.arg(3), cx.arg(4))?;
    let flags = cx.uint(5);
    if flags & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    check_all(cx, flags)?;
    let Some((start, end)) = range(cx.arg(0), cx.arg(1))? else { return Ok(0) };
    let policy = policy(parts, nodes)?;
    cx.process.space().set_policy(start, end, policy)?;
    Ok(0)
}

impl AddressSpace {
    fn set_policy(&self, start: u64, end: u64, policy: Policy) -> Result<(), Errno> {
        self.make_room()?;
        let mut areas = self.areas.borrow_mut();
        if !areas.covers(start, end) {
            return Err(Errno::EFAULT);
        }
        if areas.list().len() + 2 > AREAS_MAX {
            return Err(Errno::ENOMEM);
        }
        areas.change(start, end, |area| {
            area.flags = area.flags.difference(AreaFlags::POLICY).union(policy.flags());
        });
        Ok(())
    }
}

/// Who would move what others have as well needs a privilege.
fn check_all(cx: &Cx, flags: u32) -> Result<(), Errno> {
    let may = cx.process.credentials.borrow().may(linux::CAP_SYS_NICE);
    if flags & MOVE_ALL != 0 && !may { Err(Errno::EPERM) } else { Ok(()) }
}

/// `set_mempolicy_home_node(start, len, node, flags)`: of ranges that are bound, or prefer several.
fn set_home_node(cx: &Cx) -> Answer {
    let start = cx.arg(0);
    if !start.is_multiple_of(PAGE) || cx.arg(3) != 0 || cx.arg(2) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let Some((start, end)) = range(start, cx.arg(1))? else { return Ok(0) };
    let space = cx.process.space();
    let areas = space.areas.borrow();
    let touched = areas.within(start, end);
    if touched.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let modes = touched.iter().map(|area| Policy::of(area.flags).mode());
    // Linux goes as far as nobody has asked for anything.
    for mode in modes.take_while(|mode| *mode != DEFAULT) {
        if !matches!(mode, BIND | PREFERRED_MANY) {
            return Err(Errno::EOPNOTSUPP.into());
        }
    }
    Ok(0)
}

/// The process whose memory is to move; 0 is the caller's.
fn process_of(cx: &Cx) -> Result<Rc<Process>, Errno> {
    let number = cx.uint(0);
    let process = match number {
        0 => cx.process.clone(),
        _ => {
            let thread = cx.find_thread(number).map(|thread| thread.process.clone());
            thread.or_else(|| cx.find_process(number)).ok_or(Errno::ESRCH)?
        }
    };
    if !Rc::ptr_eq(&process, cx.process) && !may_trace(cx.process, &process) {
        return Err(Errno::EPERM);
    }
    if process.ended.get().is_some() { Err(Errno::EINVAL) } else { Ok(process) }
}

/// `migrate_pages(pid, count, from, to)`: how many pages could not move.
fn migrate_pages(cx: &Cx) -> Answer {
    nodes_at(cx, cx.arg(2), cx.arg(1))?;
    let to = nodes_at(cx, cx.arg(3), cx.arg(1))?;
    process_of(cx)?;
    if to.others && !cx.process.credentials.borrow().may(linux::CAP_SYS_NICE) {
        return Err(Errno::EPERM.into());
    }
    if to.first { Ok(0) } else { Err(Errno::EINVAL.into()) }
}

/// `move_pages(pid, count, pages, nodes, status, flags)`: all that are there are where they belong.
fn move_pages(cx: &Cx) -> Answer {
    let (count, pages, nodes, status) = (cx.arg(1), cx.arg(2), cx.arg(3), cx.arg(4));
    if cx.uint(5) & !(MOVE | MOVE_ALL) != 0 {
        return Err(Errno::EINVAL.into());
    }
    check_all(cx, cx.uint(5))?;
    let space = process_of(cx)?.space();
    let first = cx.progress();
    for index in first..count.min(first + TURN) {
        let page: u64 = cx.user().read(pages.wrapping_add(8 * index))?;
        if nodes != 0 {
            let node: u32 = cx.user().read(nodes.wrapping_add(4 * index))?;
            if node != 0 {
                return Err(Errno::ENODEV.into());
            }
        }
        let is_mapped = space.areas.borrow().at(page).is_some();
        let absent = if is_mapped { Errno::ENOENT } else { Errno::EFAULT };
        let mut state = absent.result() as u32;
        if is_mapped {
            space.each_present(page_of(page), page_of(page) + PAGE, |_| state = 0);
        }
        cx.user().write(status.wrapping_add(4 * index), &state)?;
    }
    match count.saturating_sub(first) {
        left if left > TURN => Err(cx.give_way(first + TURN)),
        _ => Ok(0),
    }
}
