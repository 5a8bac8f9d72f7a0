//! Strings of a page at most in calls and replies, with no word to more than registers hold: the
//! fast path copies them on its way, the complete path must do the same.

use crate::forms::{kept, succeeded, together};
use crate::places;
use crate::puppet::{Order, Puppet};
use crate::raw::{differs, fill};
use crate::stage::{Stage, settle};
use crate::strings::{Scene, TARGET, scenes};
use crate::verdict::{Test, Verdict};
use crate::{ensure, same};

/// The tests.
pub const TESTS: &[Test] =
    &[("calls_and_replies", calls_and_replies), ("strings_that_do_not_fit", do_not_fit)];

/// Bytes from one buffer to the next.
const APART: u64 = 1 << 16;
/// What was in a buffer before.
const BEFORE: u64 = 0x33;

/// A call with a string, a reply with one, a call again: open and closed waits on both sides.
fn calls_and_replies(stage: &Stage) -> Verdict {
    for path in [|order| order, Order::complete] {
        for (words, len, shift) in
            [(0, 1, 0), (0, 64, 7), (1, 4096, 0), (5, 4096, 4093), (6, 100, 4090), (9, 4000, 90)]
        {
            scenes(stage, |scene| exchange(scene, path, (words, len, shift)))?;
        }
    }
    Ok(())
}

fn exchange(
    Scene { sender: client, receiver: server, memory }: Scene,
    path: fn(Order) -> Order,
    (words, len, shift): (usize, u64, u64),
) -> Verdict {
    let source = |number: u64| memory + number * APART + shift;
    let target = |number: u64| source(number) + TARGET;
    for number in 0..3 {
        fill(source(number), len, 0x77 + number, 0);
        fill(target(number), len + 8, BEFORE, 0);
    }
    let values: [u64; 9] = core::array::from_fn(|at| at as u64 + 0xA0_B0C0_D0E0);
    let message = |order: Order, number: u64| {
        path(order.label(number).words(&values[..words]).string(source(number), len))
    };
    server.start(&[
        path(Order::wait().buffer(target(0), len)),
        message(Order::reply_wait(client.id), 1).buffer(target(2), 4096),
    ]);
    settle();
    client.start(&[
        message(Order::call(server.id), 0).buffer(target(1), len + 5),
        message(Order::call(server.id), 2),
    ]);
    settle();
    let got = |who: &Puppet, step: usize, number: u64, from: &Puppet| {
        succeeded(who, step)?;
        let outcome = who.outcome(step);
        let flag = places::flag(from.id, who.index);
        same!("the tag", outcome.mr[0], number << 16 | 2 << 6 | words as u64 | flag);
        ensure!(outcome.mr[1..=words] == values[..words], "words beside a string did not arrive");
        same!("the item", outcome.mr[words + 1], len << 10);
        same!("its address", outcome.mr[words + 2], source(number));
        let near = together(client.index, server.index);
        same!("the sender", outcome.from.0, from.name(near).0);
        let wrong = differs(target(number), len, 0x77 + number, 0);
        ensure!(wrong.is_none(), "byte {} of {len} did not arrive", wrong.unwrap_or(0));
        ensure!(differs(target(number) + len, 8, BEFORE, len).is_none(), "a byte behind changed");
        kept(who, step)
    };
    got(&server, 0, 0, &client)?;
    got(&client, 0, 1, &server)?;
    got(&server, 1, 2, &client)
}

/// A string that the fast path cannot copy leaves for the complete path with all registers as
/// they were: too long for the buffer, no buffer, a page that is not there.
fn do_not_fit(stage: &Stage) -> Verdict {
    for path in [|order| order, Order::complete] {
        scenes(stage, |Scene { sender: client, receiver: server, memory }| {
            for room in [Some(99), None] {
                let wait = match room {
                    Some(room) => Order::wait().buffer(memory + TARGET, room),
                    None => Order::wait(),
                };
                server.start(&[path(wait)]);
                settle();
                let call = Order::call(server.id).label(3).words(&[4, 5]).string(memory, 100);
                client.start(&[path(call)]);
                settle();
                let (sent, got) = (client.outcome(0), server.outcome(0));
                ensure!(sent.tag().is_error() && got.tag().is_error(), "the string has arrived");
                ensure!(got.mr[1..3] == [4, 5], "the words beside it did not arrive");
                for outcome in [sent, got] {
                    let bytes = outcome.failure().map_or(u64::MAX, |error| error.offset);
                    same!("what arrived", bytes, room.unwrap_or(0));
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
