//! NETLINK_GENERIC: families that are found by name (`CTRL_CMD_GETFAMILY`). There are two: the one that is
//! asked for the others, and TASKSTATS.

use alloc::vec::Vec;

use linux_raw_sys::general::CAP_NET_ADMIN;

use super::{Replies, attribute, attributes, nested, taskstats};
use crate::call::Cx;
use crate::errno::Errno;

/// The number of the family that knows all, and the first that others can have.
const CONTROL: u16 = 0x10;
const TASKSTATS: u16 = 0x13;
/// Bytes of a `struct genlmsghdr`.
const HEADER: usize = 4;
/// Commands of the former.
const NEW_FAMILY: u8 = 1;
const GET_FAMILY: u8 = 3;
/// `CTRL_ATTR_*`.
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const VERSION: u16 = 3;
const HEADER_SIZE: u16 = 4;
const MOST_ATTRIBUTES: u16 = 5;
const OPERATIONS: u16 = 6;
const OPERATION_ID: u16 = 1;
const OPERATION_FLAGS: u16 = 2;
/// `GENL_ADMIN_PERM`, `GENL_CMD_CAP_DO`, `GENL_CMD_CAP_DUMP`, `GENL_CMD_CAP_HASPOL`.
const ADMIN: u32 = 1;
const DO: u32 = 2;
const DUMP: u32 = 4;
const POLICY: u32 = 8;

/// A family.
struct Family {
    id: u16,
    name: &'static [u8],
    version: u32,
    most_attributes: u32,
    /// Commands, and what can be done with them.
    operations: &'static [(u32, u32)],
}

const FAMILIES: &[Family] = &[
    Family {
        id: CONTROL,
        name: b"nlctrl\0",
        version: 2,
        most_attributes: 10,
        operations: &[(GET_FAMILY as u32, DO | DUMP | POLICY)],
    },
    Family {
        id: TASKSTATS,
        name: b"TASKSTATS\0",
        version: 1,
        most_attributes: 4,
        operations: &[
            (taskstats::GET as u32, ADMIN | DO | POLICY),
            (taskstats::OF_GROUP as u32, DO | POLICY),
        ],
    },
];

/// Answers a request to the family with the number `kind`.
pub(super) fn answer(
    cx: &Cx,
    replies: &mut Replies,
    kind: u16,
    dumps: bool,
    payload: &[u8],
) -> Result<(), Errno> {
    let family = FAMILIES.iter().find(|family| family.id == kind).ok_or(Errno::ENOENT)?;
    let (Some(command), Some(rest)) = (payload.first(), payload.get(HEADER..)) else {
        return Err(Errno::EINVAL);
    };
    let operation = family.operations.iter().find(|(id, _)| *id == u32::from(*command));
    let flags = operation.ok_or(Errno::EOPNOTSUPP)?.1;
    if flags & ADMIN != 0 && !cx.process.credentials.borrow().may(CAP_NET_ADMIN) {
        return Err(Errno::EPERM);
    }
    if dumps && flags & DUMP == 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    match kind {
        // There are no control groups to ask about.
        TASKSTATS if *command == taskstats::OF_GROUP => return Err(Errno::EINVAL),
        TASKSTATS => {
            let content = taskstats::answer(cx, rest)?;
            replies.add(kind, 0, &content);
        }
        _ if dumps => FAMILIES.iter().for_each(|family| family.tell(replies, dumps)),
        _ => find(rest)?.tell(replies, dumps),
    }
    Ok(())
}

/// The family that a request is about: by number or by name.
fn find(request: &[u8]) -> Result<&'static Family, Errno> {
    let (mut id, mut name) = (None, None);
    for (kind, data) in attributes(request) {
        match kind {
            FAMILY_ID => {
                let number = data.first_chunk().ok_or(Errno::ERANGE)?;
                id = Some(u16::from_ne_bytes(*number));
            }
            FAMILY_NAME => {
                let end = data.iter().position(|byte| *byte == 0).ok_or(Errno::EINVAL)?;
                name = data.get(..end);
            }
            _ => {}
        }
    }
    if id.is_none() && name.is_none() {
        return Err(Errno::EINVAL);
    }
    let by_id = id.and_then(|id| FAMILIES.iter().find(|family| family.id == id));
    let is_called = |family: &&Family| family.name.strip_suffix(b"\0") == name;
    by_id.or_else(|| FAMILIES.iter().find(is_called)).ok_or(Errno::ENOENT)
}

impl Family {
    /// All that is known of it.
    fn tell(&self, replies: &mut Replies, dumps: bool) {
        let mut content = Vec::from([NEW_FAMILY, 2, 0, 0]);
        attribute(&mut content, FAMILY_NAME, self.name);
        attribute(&mut content, FAMILY_ID, &self.id.to_ne_bytes());
        let numbers =
            [(VERSION, self.version), (HEADER_SIZE, 0), (MOST_ATTRIBUTES, self.most_attributes)];
        for (kind, number) in numbers {
            attribute(&mut content, kind, &number.to_ne_bytes());
        }
        nested(&mut content, OPERATIONS, |content| {
            for (index, (id, flags)) in self.operations.iter().enumerate() {
                nested(content, index as u16 + 1, |content| {
                    attribute(content, OPERATION_ID, &id.to_ne_bytes());
                    attribute(content, OPERATION_FLAGS, &flags.to_ne_bytes());
                });
            }
        });
        replies.add(CONTROL, if dumps { super::NLM_F_MULTI } else { 0 }, &content);
    }
}
