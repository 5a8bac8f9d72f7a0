//! QuotaControl, Baton's extension: kernel memory moves from task to task
//! (design 5.3: who creates gives).

use crate::thread::TcbRef;
use abi::{CallError, ThreadId};

/// Moves `pages` (negative: back) from the caller's quota to that of the task of
/// `specifier`; returns the target's limit and use in pages.
pub fn quota_control(
    caller: TcbRef,
    specifier: ThreadId,
    pages: i64,
) -> Result<(u64, u64), CallError> {
    let own = caller.space().ok_or(CallError::NoPrivilege)?;
    let member = super::controlled(caller, specifier, CallError::InvalidSpace)?;
    let target = member.space().ok_or(CallError::InvalidSpace)?;
    let amount = pages.unsigned_abs();
    let (giver, taker) = if pages >= 0 { (own, target) } else { (target, own) };
    if giver != taker && amount != 0 {
        giver.quota().transfer(taker.quota(), amount).map_err(|_| CallError::NoMemory)?;
    }
    Ok((target.quota().limit(), target.quota().used()))
}
