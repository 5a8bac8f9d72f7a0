//! What an interrupt pays for messages that the kernel has not seen (Wenske 2002, 5.5): threads that
//! call each other in a chain, the last of which waits for the tick.

use core::sync::atomic::AtomicU64;

use abi::ThreadId;
use runtime::{Msg, ipc, thread};

use crate::life::wait_for_tick;
use crate::marks;
use crate::partner::{Partner, Result, STACK_WORDS_OF_A_LINK, link_inside};
use crate::{Samples, row};

/// Threads in the longest chain, the client included: so many may be armed in a space.
const MOST: usize = 64;
const WARM_UP: u64 = 3;
const ROUNDS: u64 = 8;

static STACKS: [[AtomicU64; STACK_WORDS_OF_A_LINK]; MOST - 1] =
    [const { [const { AtomicU64::new(0) }; STACK_WORDS_OF_A_LINK] }; MOST - 1];

/// Hands each request to the thread whose local id is `next`; without one it waits for as many ticks as
/// it is told, the first of which finds what all have done in user mode, and the second nothing.
extern "C" fn link(next: u64) -> ! {
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(0));
    let (mut client, mut request) = ipc::request();
    loop {
        let ticks = request.get(0);
        if next == 0 {
            (0..ticks).for_each(|_| wait_for_tick());
        } else {
            let _ = ipc::local_call(ThreadId(next), &Msg::default().word(ticks));
        }
        let answer = ipc::local_reply_wait(client, &Msg::default());
        (client, request) = answer.unwrap_or_else(|_| ipc::request());
    }
}

/// A call of a thread that calls another one before it answers, and so changes whom it waits for each time:
/// row `lipc/nested`, all four messages.
pub fn nested() -> Result<()> {
    let inner = link_inside(&STACKS[0], link, 0)?;
    let inner_local = thread::other_id(inner.id).ok_or("a link has no local id")?;
    let outer = link_inside(&STACKS[1], link, inner_local.0)?;
    let local = thread::other_id(outer.id).ok_or("a link has no local id")?;
    let call = || ipc::local_call(local, &Msg::default().word(0)).map_err(|_| "no answer");
    for _ in 0..2 * WARM_UP {
        call()?;
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        marks::sample(call)?;
    }
    row!(samples, "lipc/nested");
    outer.delete();
    inner.delete();
    Ok(())
}

/// Rows `lipc/fix-up/timer-tick threads=N` and `lipc/armed/timer-tick threads=N`.
pub fn fix_ups() -> Result<()> {
    let mut links: [Option<Partner>; MOST - 1] = [None; MOST - 1];
    let mut first = ThreadId(0);
    for (index, stack) in STACKS.iter().enumerate() {
        let partner = link_inside(stack, link, first.0)?;
        links[index] = Some(partner);
        first = thread::other_id(partner.id).ok_or("a link has no local id")?;
        let threads = index + 2;
        if ![2, 8, MOST].contains(&threads) {
            continue;
        }
        let call = |ticks| {
            ipc::local_call(first, &Msg::default().word(ticks)).map_err(|_| "the chain is broken")
        };
        let samples = Samples::start();
        for _ in 0..ROUNDS {
            // A tick may have closed the way: the next message goes through the kernel.
            for _ in 0..WARM_UP {
                call(0)?;
            }
            call(2)?;
        }
        samples.row(format_args!("lipc/fix-up/timer-tick threads={threads}"), 0, 2);
        samples.row(format_args!("lipc/armed/timer-tick threads={threads}"), 1, 2);
    }
    links.into_iter().flatten().for_each(Partner::delete);
    Ok(())
}
