//! Kernel IPC between threads of one space that take part in messages without the kernel and use vector
//! registers (0074).

use core::sync::atomic::Ordering;

use abi::{MsgTag, ThreadId, Timeouts, utcb};
use runtime::{Msg, ipc, syscall};

use crate::cast::{self, Actor, Part, RIGHT, WRONG};
use crate::vector::as_user;
use crate::{CALLS, Verdict, calls, entries, machine, me, pause};

/// Bit 0 of RDI: vector registers are dead.
const DEAD: u64 = 1;
/// The client's control words: towards zero; 53 bits.
const OURS: (u32, u16) = (0x7F80, 0x027F);
/// The server's: downwards; a division by zero is an exception.
const THEIRS: (u32, u16) = (0x3F80, 0x037B);

/// Calls `server` by kernel IPC and says that it is the thread whose UTCB is at `own`.
fn call_as(own: u64, server: ThreadId, words: [u64; 2]) -> [u64; 3] {
    let tag = MsgTag::new(0, 2, 0).0;
    let message = [tag, words[0], words[1], 0, 0, 0, 0, 0];
    // SAFETY: no buffers, no window.
    let (_, answer) =
        unsafe { syscall::ipc(server.0, server.0, Timeouts::NEVER.0, own | DEAD, message) };
    [answer[0], answer[1], answer[2]]
}

/// Whether `server` answers kernel IPC as a thread that adds.
fn adds(server: ThreadId, round: u64) -> bool {
    let [tag, sum, name] = call_as(me().0, server, [round, 7]);
    MsgTag(tag).untyped() == 2 && sum == round + 7 && name == me().0
}

/// They call by kernel IPC, and are served by a fast path; in between they do without the kernel.
pub fn meet() -> Verdict {
    as_user(|| {
        let adder = Actor::start(0, Part::VectorAdd);
        calls(adder.local, 10)?;
        let mut least = u64::MAX;
        for _ in 0..3 {
            let before = entries();
            if !(0..CALLS).all(|round| adds(adder.id, round)) {
                return Err("a call through the kernel was answered otherwise");
            }
            least = least.min(entries() - before);
        }
        for round in 0..CALLS {
            calls(adder.local, round % 4)?;
            if !(0..round % 3).all(|round| adds(adder.id, round)) {
                return Err("a call between others was answered otherwise");
            }
        }
        adder.stop();
        if least < CALLS / 50 { Ok(()) } else { Err("most messages took the complete path") }
    })
}

/// Control words are each thread's own; what is pending in the x87 unit is nobody's.
pub fn controls() -> Verdict {
    as_user(|| {
        let server = Actor::start(0, Part::Control);
        // In user mode they share them.
        calls(server.local, 10)?;
        let mut verdict = Ok(());
        for round in 0..CALLS {
            if round == 2 {
                WRONG.store(0, Ordering::Relaxed);
            }
            machine::set_controls(OURS);
            if !adds(server.id, round) || machine::controls() != OURS {
                verdict = Err("a call has changed control words");
            }
        }
        machine::set_controls((0x1F80, 0x037F));
        server.stop();
        verdict?;
        let wrong = WRONG.load(Ordering::Relaxed);
        if wrong == 0 { Ok(()) } else { Err("an answer has changed the server's control words") }
    })
}

pub fn keep_controls() -> ! {
    machine::set_controls(THEIRS);
    let (mut client, mut request) = cast::first();
    loop {
        if machine::controls() != THEIRS {
            WRONG.fetch_add(1, Ordering::Relaxed);
        }
        machine::set_controls(THEIRS);
        machine::divide_by_zero();
        let sum = request.get(0).wrapping_add(request.get(1));
        let reply = Msg::default().words(&[sum, client.0]);
        let next = ipc::local_reply_wait(client, &reply);
        (client, request) = next.unwrap_or_else(|_| cast::first());
    }
}

/// A thread says that it is one that it isn't: its client, in whose place it runs, or any other.
pub fn lies() -> Verdict {
    as_user(|| {
        let adder = Actor::start(0, Part::VectorAdd);
        calls(adder.local, 10)?;
        for own in [adder.local.0, 0, !0 - 1, me().0 + 8, 0x1000] {
            let [_, sum, name] = call_as(own, adder.id, [own, 1]);
            if sum != own.wrapping_add(1) || name != me().0 {
                return Err("who lies about itself is another");
            }
        }
        for round in 0..50 {
            RIGHT.store(0, Ordering::Relaxed);
            let pretender = Actor::start(1, Part::Pretend);
            let client = Actor::start(2, Part::CallNext);
            pause(1_000 + 13 * round);
            if RIGHT.load(Ordering::Relaxed) == 0 {
                return Err("nobody lied");
            }
            // Whoever it has been, others are who they were.
            calls(adder.local, 2)?;
            client.stop();
            pretender.stop();
        }
        adder.stop();
        Ok(())
    })
}

pub fn pretend() -> ! {
    let adder = runtime::thread::other_id(root_harness::local(0)).unwrap_or(ThreadId::NIL);
    let (mut client, mut request) = cast::first();
    for _ in 0..5 {
        let reply = Msg::default().words(&[request.get(0), client.0]);
        let next = ipc::local_reply_wait(client, &reply);
        (client, request) = next.unwrap_or_else(|_| cast::first());
    }
    RIGHT.fetch_add(1, Ordering::Relaxed);
    loop {
        let _ = call_as(client.0, adder, [1, 2]);
    }
}

pub fn call_next() -> ! {
    let next = runtime::utcb::pointer() - utcb::SIZE;
    loop {
        let _ = ipc::local_call(ThreadId::local(next), &Msg::default().words(&[1, 2]));
    }
}
