//! Procedure calls between spaces: on the fast path, which two that use no vector registers take, and
//! on the complete one, with the same orders; what is refused; and the ends of both sides.

use abi::layout::INITIAL_UTCB_AREA;
use abi::lrpc::{Status, control, step};
use abi::syscall::{Call, exregs, state};
use abi::{ThreadId, protocol};
use runtime::kernel;

use crate::puppet::{Order, Puppet};
use crate::stage::{Stage, settle};
use crate::verdict::{Test, Verdict};
use crate::{ensure, same};

/// The tests.
pub const TESTS: &[Test] = &[
    ("vector_users_call_and_return", by_vector_users),
    ("a_fast_call_is_as_a_complete_one", fast),
    ("no_other_token_is_good", tokens),
    ("a_captured_caller_is_taken_back", captured),
    ("a_dead_host_gives_its_caller_back", dead_host),
    ("a_dead_client_leaves_the_visit", dead_client),
    ("a_binding_is_revoked_in_a_call", revoked),
];

const OWN: u64 = INITIAL_UTCB_AREA + 0x1_0000;
const THEIRS: u64 = INITIAL_UTCB_AREA + 0x2_0000;
const BYTES: u64 = 256;
const PROCEDURES: u64 = 3;
const COOKIE: u64 = 0xC0_0C1E;
/// A client, a clerk, and its two hosts.
const CLIENT: usize = 4;
const CLERK: usize = 8;
const HOST: usize = 9;

/// The system call `number` with RSI, RDX and R14 as given.
fn system_call(number: Call, rsi: u64, rdx: u64, r14: u64) -> Order {
    let mut order = Order::NONE;
    order.to = ThreadId(rsi);
    order.from = ThreadId(rdx);
    order.timeouts = (number as u64).wrapping_neg();
    order.mr[6] = r14;
    order
}

/// Calls `procedure` with MR1 to MR6 counting from `word` on.
fn call(token: u64, procedure: u64, word: u64) -> Order {
    let mut order = system_call(Call::LrpcCall, token, 0, 0);
    order.mr[0] = procedure;
    (1..7).for_each(|index| order.mr[index] = word + index as u64);
    order
}

/// The same by another number: all above LrpcCall's are that call.
fn call_beyond(token: u64, procedure: u64, word: u64) -> Order {
    let mut order = call(token, procedure, word);
    order.timeouts -= 1 + 999 * procedure;
    order
}

/// Returns with MR0 to MR7 counting from `word` on, and is lent to `clerk`.
fn give_back(clerk: Puppet, word: u64) -> Order {
    let mut order = system_call(Call::LrpcReturn, clerk.id.0, 0, 0);
    (0..8).for_each(|index| order.mr[index] = word + index as u64);
    order
}

/// Whether `puppet` uses vector registers from now on.
fn declare(puppet: Puppet, what: u64) {
    puppet.order(system_call(Call::ThreadState, what, 0, puppet.id.0));
    settle();
}

/// `client` gets a binding with two A-stacks from `clerk`; the first token.
fn bind(client: Puppet, clerk: Puppet, theirs: u64) -> Result<u64, crate::verdict::Complaint> {
    clerk.order(Order::wait());
    settle();
    let mut order = system_call(Call::LrpcBind, OWN, 2, clerk.id.0);
    order.mr[4] = BYTES;
    client.order(order);
    settle();
    let seen = clerk.outcome(0);
    ensure!(clerk.done() == 1, "the clerk has not heard of the import");
    same!("who imports, as the clerk sees it", seen.from.0, client.id.0);
    same!("the label", seen.tag().protocol_label() as u64, protocol::LRPC_BIND as u64);
    same!("the number of A-stacks", seen.mr[1], 2);
    same!("bytes of each", seen.mr[2], BYTES);
    clerk.order(Order::send(client.id).words(&[theirs, PROCEDURES, COOKIE]));
    settle();
    same!("the result of LrpcBind", client.outcome(0).mr[1], 1);
    Ok(client.outcome(0).from.0)
}

/// Three calls, the last two alone; how many entries into the complete path those two made.
fn three_calls(stage: &Stage) -> Result<u64, crate::verdict::Complaint> {
    let (client, clerk, host) = (stage.puppet(CLIENT), stage.puppet(CLERK), stage.puppet(HOST));
    let token = bind(client, clerk, THEIRS)?;
    host.start(&[1, 2, 3, 4].map(|round| give_back(clerk, round * 100)));
    settle();
    ensure!(host.done() == 0, "a host that is lent goes on");
    client.order(call(token, 2, 7));
    settle();
    let before = entries();
    client.stop();
    settle();
    let middle = entries();
    client.start(&[call(token, 0, 17), call_beyond(token, 1, 27)]);
    settle();
    let more = (entries() - middle).wrapping_sub(middle - before);
    ensure!(client.done() == 2, "{} calls of 2 have returned", client.done());
    for (round, procedure) in [(0, 2), (1, 0), (2, 1)] {
        let seen = host.outcome(round);
        same!("the A-stack that the host sees", seen.from.0, THEIRS);
        same!("the procedure", seen.mr[0], procedure);
        same!("the cookie", seen.mr[7], COOKIE);
        same!("RDI of the host", seen.rdi, host.local.0);
        for index in 1..7 {
            same!("a word of the call", seen.mr[index], 7 + 10 * round as u64 + index as u64);
        }
    }
    for round in 0..2 {
        let seen = client.outcome(round);
        same!("the status", seen.from.0, Status::Done as u64);
        same!("RDI of the caller", seen.rdi, client.local.0);
        for index in 0..8 {
            same!("a word of the return", seen.mr[index], 100 * (round as u64 + 3) + index as u64);
        }
    }
    unbind(stage, token);
    Ok(more)
}

fn unbind(stage: &Stage, token: u64) {
    stage.puppet(CLIENT).order(system_call(Call::LrpcControl, control::REVOKE, token, 0));
    settle();
    stage.puppet(HOST).stop();
    settle();
}

/// Entries into the kernel's complete paths so far.
fn entries() -> u64 {
    kernel::inspect(abi::inspect::What::Kernel, 0, 0).map_or(0, |record| record[4])
}

/// A tick during what is compared with makes a count too small.
fn by_vector_users(stage: &Stage) -> Verdict {
    let mut more = 0;
    for _ in 0..5 {
        stage.reset();
        more = more.max(three_calls(stage)? as i64);
    }
    ensure!(more >= 4, "two calls of vector users made {more} entries: they took a fast path");
    Ok(())
}

/// Client, clerk and host use no vector registers.
fn make_plain(stage: &Stage, what: u64) {
    [CLIENT, CLERK, HOST].into_iter().for_each(|index| declare(stage.puppet(index), what));
}

fn fast(stage: &Stage) -> Verdict {
    make_plain(stage, state::NO_VECTOR);
    let mut least = u64::MAX;
    for _ in 0..5 {
        stage.reset();
        least = least.min(three_calls(stage)?);
    }
    make_plain(stage, state::VECTOR);
    ensure!(least == 0, "two calls made {least} entries into the complete path");
    Ok(())
}

fn tokens(stage: &Stage) -> Verdict {
    for what in [state::NO_VECTOR, state::VECTOR] {
        make_plain(stage, what);
        bad_tokens(stage)?;
        stage.reset();
    }
    Ok(())
}

fn bad_tokens(stage: &Stage) -> Verdict {
    let (client, clerk, host) = (stage.puppet(CLIENT), stage.puppet(CLERK), stage.puppet(HOST));
    let token = bind(client, clerk, THEIRS)?;
    let refused = |caller: Puppet, token, procedure, why: Status| {
        caller.order(call(token, procedure, 1));
        settle();
        ensure!(caller.done() == 1, "a call with token {token:#x} does not return");
        same!("the status", caller.outcome(0).from.0, why as u64);
        Ok(())
    };
    refused(client, token, 0, Status::NoHost)?;
    // The procedure's end is a wait for nobody: the A-stack stays in use.
    host.start(&[give_back(clerk, 0), Order::receive(clerk.id)]);
    settle();
    let low = 0xFFFF_FFFF;
    let lies = [0, 1, 64, 1024, !0, token ^ 1, token ^ low, token ^ low << 32, token + 4096];
    for bad in lies.into_iter().chain([step(token, 2), step(token, 1) ^ 0xFC0]) {
        refused(client, bad, 0, Status::NoBinding)?;
    }
    refused(stage.puppet(0), token, 0, Status::NoBinding)?;
    refused(client, token, PROCEDURES, Status::NoProcedure)?;
    refused(client, token, !0, Status::NoProcedure)?;
    let other = stage.puppet(CLIENT + 1);
    client.order(call(token, 0, 1));
    settle();
    ensure!(client.done() == 0 && host.done() == 1, "the call is not under way");
    refused(other, token, 0, Status::InUse)?;
    refused(other, token ^ low, 0, Status::NoBinding)?;
    refused(other, step(token, 1), 0, Status::NoHost)?;
    other.order(system_call(Call::LrpcControl, control::REVOKE, token, 0));
    settle();
    refused(other, token, 0, Status::NoBinding)?;
    host.order(give_back(clerk, 0));
    settle();
    same!("the status of the call", client.outcome(0).from.0, Status::Revoked as u64);
    Ok(())
}

fn captured(stage: &Stage) -> Verdict {
    let (client, clerk, host) = (stage.puppet(CLIENT), stage.puppet(CLERK), stage.puppet(HOST));
    let token = bind(client, clerk, THEIRS)?;
    host.start(&[give_back(clerk, 0), Order::receive(clerk.id)]);
    settle();
    client.start(&[call(token, 0, 1), call(token, 0, 1)]);
    settle();
    ensure!(client.done() == 0, "a captured caller goes on");
    client.abort(exregs::ABORT_RECEIVE);
    settle();
    ensure!(client.done() == 2, "a caller that is taken back does not go on");
    same!("the status", client.outcome(0).from.0, Status::Aborted as u64);
    same!("the status of the next call", client.outcome(1).from.0, Status::InUse as u64);
    host.order(give_back(clerk, 0));
    settle();
    client.order(call(token, 0, 1));
    settle();
    ensure!(host.done() == 1, "the A-stack of a visit that is over can't be used");
    host.order(give_back(clerk, 0));
    settle();
    unbind(stage, token);
    Ok(())
}

fn dead_host(stage: &Stage) -> Verdict {
    let (client, clerk) = (stage.puppet(CLIENT), stage.puppet(CLERK));
    let token = bind(client, clerk, THEIRS)?;
    let Ok(host) = stage.create_spare(12, CLERK) else {
        return Err(crate::verdict::Complaint::new(format_args!("no host can be created")));
    };
    host.start(&[give_back(clerk, 0), Order::receive(clerk.id)]);
    settle();
    client.order(call(token, 0, 1));
    settle();
    ensure!(client.done() == 0 && host.done() == 1, "the call is not under way");
    ensure!(kernel::delete(host.id).is_ok(), "the host can't be deleted");
    settle();
    same!("the status", client.outcome(0).from.0, Status::ServerFailed as u64);
    unbind(stage, token);
    Ok(())
}

fn dead_client(stage: &Stage) -> Verdict {
    let (clerk, host) = (stage.puppet(CLERK), stage.puppet(HOST));
    let Ok(client) = stage.create_spare_space(13) else {
        return Err(crate::verdict::Complaint::new(format_args!("no client can be created")));
    };
    let token = bind(client, clerk, THEIRS)?;
    host.start(&[give_back(clerk, 0), Order::receive(clerk.id)]);
    settle();
    client.order(call(token, 0, 1));
    settle();
    ensure!(client.done() == 0 && host.done() == 1, "the call is not under way");
    ensure!(kernel::delete(client.id).is_ok(), "the client can't be deleted");
    same!("broken invariants while the visit goes on", root_harness::violations(), 0);
    host.order(give_back(clerk, 0));
    settle();
    ensure!(host.done() == 0, "the host is not lent again");
    same!("broken invariants after the visit", root_harness::violations(), 0);
    Ok(())
}

fn revoked(stage: &Stage) -> Verdict {
    let (client, clerk, host) = (stage.puppet(CLIENT), stage.puppet(CLERK), stage.puppet(HOST));
    let token = bind(client, clerk, THEIRS)?;
    host.start(&[give_back(clerk, 0), Order::receive(clerk.id)]);
    settle();
    client.start(&[call(token, 0, 1), call(token, 0, 1)]);
    settle();
    clerk.order(system_call(Call::LrpcControl, control::REVOKE_COOKIE, COOKIE, clerk.id.0));
    settle();
    same!("the result of LrpcControl", clerk.outcome(0).mr[1], 1);
    same!("broken invariants while the visit goes on", root_harness::violations(), 0);
    host.order(give_back(clerk, 0));
    settle();
    same!("the status", client.outcome(0).from.0, Status::Revoked as u64);
    same!("the status of the next call", client.outcome(1).from.0, Status::NoBinding as u64);
    unbind(stage, token);
    same!("whether the client could let go of it", client.outcome(0).mr[1], 1);
    same!("broken invariants", root_harness::violations(), 0);
    Ok(())
}
