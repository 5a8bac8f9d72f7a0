//! Speed, roughly: bounds that only a broken fast path exceeds. Under an emulator
//! that counts instructions the time stamp counter ticks once per instruction.

use crate::ensure;
use crate::forms::succeeded;
use crate::puppet::{self, Order};
use crate::stage::{Stage, settle};
use crate::verdict::{Complaint, Test, Verdict};

/// The tests.
pub const TESTS: &[Test] =
    &[("short_ipc_between_spaces", between), ("short_ipc_inside_a_space", inside)];

/// Ticks that a call or a reply may take on the fast path, with some thirty
/// instructions of the puppets around it.
const BOUND: u64 = 100;
/// The same on the complete path.
const BOUND_COMPLETE: u64 = 1_000;

fn between(stage: &Stage) -> Verdict {
    measure(stage, (4, 8), "between spaces")
}

fn inside(stage: &Stage) -> Verdict {
    measure(stage, (4, 5), "inside a space")
}

fn measure(stage: &Stage, pair: (usize, usize), what: &str) -> Verdict {
    let fast = one_way(stage, pair, |order| order)?;
    let complete = one_way(stage, pair, Order::complete)?;
    runtime::direct_println!(
        "speed: {what}: call {} and reply {} ticks; {} and {} on the complete path",
        fast.0,
        fast.1,
        complete.0,
        complete.1
    );
    let (slowest, slowest_complete) = (fast.0.max(fast.1), complete.0.max(complete.1));
    let bound = if puppet::have_vector_path() { BOUND } else { BOUND_COMPLETE };
    ensure!(slowest < bound, "a short IPC {what} takes {slowest} ticks, not less than {bound}");
    ensure!(
        slowest_complete < BOUND_COMPLETE,
        "a short IPC {what} takes {slowest_complete} ticks on the complete path, not less than {BOUND_COMPLETE}"
    );
    Ok(())
}

/// The shortest call and the shortest reply of some.
fn one_way(
    stage: &Stage,
    pair: (usize, usize),
    path: fn(Order) -> Order,
) -> Result<(u64, u64), Complaint> {
    let (client, server) = (stage.puppet(pair.0), stage.puppet(pair.1));
    let (mut call, mut reply) = (u64::MAX, u64::MAX);
    for _ in 0..8 {
        stage.reset();
        let answer = path(Order::reply_wait(client.id).words(&[1, 2]));
        server.start(&[path(Order::wait()), answer, answer]);
        settle();
        client.start(&[path(Order::call(server.id).words(&[3, 4])); 2]);
        settle();
        succeeded(&client, 1)?;
        succeeded(&server, 1)?;
        // The server sends its first reply in its second order.
        call = call.min(server.outcome(1).after - client.outcome(1).before);
        reply = reply.min(client.outcome(0).after - server.outcome(1).before);
    }
    Ok((call, reply))
}
