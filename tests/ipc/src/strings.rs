//! Strings: simple, compound, scattered, gathered, several, continued, empty, too
//! long (X.2 4.5). Every test runs with all pages mapped and with none.

use abi::{IpcErrorKind, Phase, StringItem};

use crate::forms::{PAIRS, failed, succeeded};
use crate::puppet::{Order, Puppet};
use crate::raw::{differs, fill};
use crate::stage::{Stage, settle};
use crate::verdict::{Test, Verdict};
use crate::{ensure, same};

/// The tests.
pub const TESTS: &[Test] = &[
    ("sizes_and_alignments", sizes),
    ("four_mebibytes", large),
    ("gather", gather),
    ("scatter", scatter),
    ("gather_into_scatter", both_compound),
    ("continued_items", continued),
    ("several_strings", several),
    ("rest_of_a_buffer_is_skipped", skipping),
    ("empty_strings_and_substrings", empty),
    ("words_and_strings", with_words),
    ("buffer_too_small", too_small),
    ("no_buffer_left", no_buffer),
    ("strings_refused", refused),
    ("beyond_user_memory", beyond),
    ("malformed_item", malformed),
];

/// Offset of the receiver's half of the test memory.
pub const TARGET: u64 = 8 << 20;
/// Seed of what is sent.
pub const SENT: u64 = 0xA5;
/// Seed of what was in the buffers before.
const BEFORE: u64 = 0x5A;
/// Bytes checked around a buffer.
const GUARD: u64 = 24;

/// A piece of the test memory: address and length.
type Piece = (u64, u64);

/// Sender, receiver, base of the test memory.
#[derive(Clone, Copy)]
pub struct Scene {
    pub sender: Puppet,
    pub receiver: Puppet,
    pub memory: u64,
}

impl Scene {
    /// Starts the receiver, then the sender.
    pub fn play(&self, send: Order, receive: Order) {
        self.receiver.order(receive);
        settle();
        self.sender.order(send);
        settle();
    }

    /// Plays, and complains unless `from` arrives in `to`, piece after piece, and no
    /// byte around changes.
    fn copies(&self, from: &[Piece], to: &[Piece], send: Order, receive: Order) -> Verdict {
        prepare(from, to);
        self.play(send, receive);
        succeeded(&self.sender, 0)?;
        succeeded(&self.receiver, 0)?;
        check(to, from.iter().map(|piece| piece.1).sum())
    }

    /// Both fail with overflow after `offset` bytes.
    fn overflows(&self, offset: u64) -> Verdict {
        failed(&self.sender, 0, IpcErrorKind::Overflow, Phase::Send, offset)?;
        failed(&self.receiver, 0, IpcErrorKind::Overflow, Phase::Receive, offset)
    }
}

fn prepare(from: &[Piece], to: &[Piece]) {
    for (address, len) in to {
        fill(address - GUARD, len + 2 * GUARD, BEFORE, 0);
    }
    let mut first = 0;
    for (address, len) in from {
        fill(*address, *len, SENT, first);
        first += len;
    }
}

/// The first `sent` bytes of the pieces are what was sent, the rest is as before.
fn check(to: &[Piece], sent: u64) -> Verdict {
    let mut first = 0;
    for (address, len) in to {
        let here = (*len).min(sent - first);
        let wrong = differs(*address, here, SENT, first);
        ensure!(
            wrong.is_none(),
            "byte {} of {here} at {address:#x} did not arrive",
            wrong.unwrap_or(0)
        );
        let rest = differs(address + here, len - here + GUARD, BEFORE, GUARD + here);
        let front = differs(address - GUARD, GUARD, BEFORE, 0);
        ensure!(
            front.is_none() && rest.is_none(),
            "a byte around the {here} bytes received at {address:#x} changed"
        );
        first += here;
    }
    Ok(())
}

/// Runs `test` for each pair, with the memory mapped and not.
pub fn scenes(stage: &Stage, test: impl Fn(Scene) -> Verdict) -> Verdict {
    for (a, b) in PAIRS {
        for lazy in [true, false] {
            stage.reset();
            if lazy {
                stage.unmap_memory();
            }
            test(Scene {
                sender: stage.puppet(a),
                receiver: stage.puppet(b),
                memory: stage.memory.base(),
            })?;
        }
    }
    Ok(())
}

fn simple(scene: Scene, from: u64, to: u64, len: u64) -> Verdict {
    let (from, to) = (scene.memory + from, scene.memory + TARGET + to);
    let send = Order::send(scene.receiver.id).string(from, len);
    scene.copies(&[(from, len)], &[(to, len)], send, Order::wait().buffer(to, len))?;
    let outcome = scene.receiver.outcome(0);
    same!("the string item's first word", outcome.mr[1], len << 10);
    same!("the string item's address", outcome.mr[2], from);
    Ok(())
}

fn sizes(stage: &Stage) -> Verdict {
    let page = 4096;
    let big = 2 << 20;
    scenes(stage, |scene| {
        for len in [1, 2, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 70_001] {
            for (from, to) in
                [(64, 64), (65, 64), (64, 67), (77, 71), (page - 3, page - 5), (big - 5, big - 2)]
            {
                simple(scene, from, to, len)?;
            }
        }
        Ok(())
    })
}

fn large(stage: &Stage) -> Verdict {
    for (from, to) in [(4096, 4096), (4097, 4103)] {
        stage.reset();
        stage.unmap_memory();
        let scene = Scene {
            sender: stage.puppet(4),
            receiver: stage.puppet(8),
            memory: stage.memory.base(),
        };
        simple(scene, from, to, 4 << 20)?;
    }
    Ok(())
}

/// Words of a compound item: pieces of one length.
pub fn item<const N: usize>(pieces: &[Piece], flags: u64) -> [u64; N] {
    let mut words = [0; N];
    words[0] = StringItem::new(pieces[0].1, pieces.len() as u32, false).0 | flags;
    for (word, piece) in words[1..].iter_mut().zip(pieces) {
        *word = piece.0;
    }
    words
}

const CONTINUED: u64 = 1 << 9;
const MORE: u64 = 1;

/// `N` pieces of `len` bytes, spread from `base` on, not in order.
fn pieces<const N: usize>(base: u64, len: u64) -> [Piece; N] {
    core::array::from_fn(|at| (base + 100 + ((at as u64 * 3) % N as u64) * (len + 4003), len))
}

fn gather(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let from: [Piece; 5] = pieces(scene.memory, 777);
        let to = [(scene.memory + TARGET + 99, 5 * 777)];
        let send = Order::send(scene.receiver.id).item(&item::<6>(&from, 0));
        scene.copies(&from, &to, send, Order::wait().buffer(to[0].0, to[0].1))
    })
}

fn scatter(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let to: [Piece; 7] = pieces(scene.memory + TARGET, 500);
        let from = [(scene.memory + 33, 3500)];
        let send = Order::send(scene.receiver.id).string(from[0].0, from[0].1);
        scene.copies(&from, &to, send, Order::wait().buffers(&item::<8>(&to, 0)))
    })
}

fn both_compound(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let from: [Piece; 10] = pieces(scene.memory, 700);
        let to: [Piece; 7] = pieces(scene.memory + TARGET, 1003);
        let send = Order::send(scene.receiver.id).item(&item::<11>(&from, 0));
        scene.copies(&from, &to, send, Order::wait().buffers(&item::<8>(&to, 0)))
    })
}

/// One string of two items, one buffer of two items, of other sizes.
fn continued(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let at = |offset| scene.memory + offset;
        let from = [(at(100), 300), (at(9000), 300), (at(20_000), 1000)];
        let to = [(at(TARGET + 50), 900), (at(TARGET + 8190), 400), (at(TARGET + 12_000), 400)];
        let send = Order::send(scene.receiver.id)
            .item(&item::<3>(&from[..2], CONTINUED))
            .item(&item::<2>(&from[2..], 0));
        let buffers = [item::<3>(&to[..1], CONTINUED), item::<3>(&to[1..], 0)];
        let words = [buffers[0][0], buffers[0][1], buffers[1][0], buffers[1][1], buffers[1][2]];
        scene.copies(&from, &to, send, Order::wait().buffers(&words))
    })
}

/// Three strings, each into the next buffer.
fn several(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let at = |offset| scene.memory + offset;
        let from = [(at(10), 5000), (at(7000), 1), (at(8000), 300)];
        let to = [(at(TARGET + 30), 5000), (at(TARGET + 6000), 1), (at(TARGET + 8100), 300)];
        let send = from
            .iter()
            .fold(Order::send(scene.receiver.id), |order, piece| order.string(piece.0, piece.1));
        scene.copies(&from, &to, send, Order::wait().buffers(&chain(&to)))
    })
}

/// Buffer words of three simple buffers.
fn chain(to: &[Piece; 3]) -> [u64; 6] {
    let header = |len: u64, more: u64| StringItem::new(len, 1, false).0 | more;
    [header(to[0].1, MORE), to[0].0, header(to[1].1, MORE), to[1].0, header(to[2].1, 0), to[2].0]
}

/// Short strings into long buffers: the next string starts at the next buffer.
fn skipping(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let at = |offset| scene.memory + offset;
        let from = [(at(10), 50), (at(7000), 60), (at(8000), 70)];
        let to = [(at(TARGET + 30), 500), (at(TARGET + 6000), 5000), (at(TARGET + 16_100), 70)];
        prepare(&from, &to);
        let send = from
            .iter()
            .fold(Order::send(scene.receiver.id), |order, piece| order.string(piece.0, piece.1));
        scene.play(send, Order::wait().buffers(&chain(&to)));
        succeeded(&scene.sender, 0)?;
        succeeded(&scene.receiver, 0)?;
        let mut first = 0;
        for (piece, sent) in to.iter().zip([50, 60, 70]) {
            ensure!(
                differs(piece.0, sent, SENT, first).is_none(),
                "the string of {sent} bytes did not arrive in its buffer"
            );
            ensure!(
                differs(piece.0 + sent, piece.1 - sent, BEFORE, GUARD + sent).is_none(),
                "the rest of a buffer changed"
            );
            first += sent;
        }
        Ok(())
    })
}

fn empty(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let at = |offset| scene.memory + offset;
        let to = [(at(TARGET + 30), 500)];
        let send = Order::send(scene.receiver.id).string(at(10), 0);
        scene.copies(&[], &to, send, Order::wait().buffer(to[0].0, to[0].1))?;
        // An empty part, then one with something in it.
        let from = [(at(10), 0), (at(500), 100)];
        let send = Order::send(scene.receiver.id)
            .item(&item::<2>(&from[..1], CONTINUED))
            .item(&item::<2>(&from[1..], 0));
        scene.copies(&from, &to, send, Order::wait().buffer(to[0].0, to[0].1))?;
        // An empty part of the buffer.
        let parts = [(at(TARGET), 0), to[0]];
        let head = [item::<2>(&parts[..1], CONTINUED), item::<2>(&parts[1..], 0)];
        let send = Order::send(scene.receiver.id).string(at(500), 100);
        scene.copies(
            &from[1..],
            &to,
            send,
            Order::wait().buffers(&[head[0][0], head[0][1], head[1][0], head[1][1]]),
        )
    })
}

fn with_words(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let (from, to) = ((scene.memory + 3, 1000), (scene.memory + TARGET + 50, 1000));
        let values: [u64; 59] = core::array::from_fn(|at| at as u64 * 0x0101_0101_0101);
        for count in [0, 1, 6, 7, 8, 59] {
            let send = Order::send(scene.receiver.id)
                .label(0xBEEF)
                .words(&values[..count])
                .string(from.0, from.1);
            scene.copies(&[from], &[to], send, Order::wait().buffer(to.0, to.1))?;
            let outcome = scene.receiver.outcome(0);
            scene.told(0xBEEF << 16 | 2 << 6 | count as u64)?;
            ensure!(
                outcome.mr[1..=count] == values[..count],
                "the words beside a string did not arrive"
            );
            same!("the item behind the words", outcome.mr[count + 2], from.0);
        }
        Ok(())
    })
}

fn too_small(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        for room in [0, 1, 100, 4096, 5000] {
            let (from, to) = ((scene.memory + 3, 6000), (scene.memory + TARGET + 50, room));
            prepare(&[from], &[to]);
            scene.play(
                Order::send(scene.receiver.id).label(7).string(from.0, from.1),
                Order::wait().buffer(to.0, to.1),
            );
            scene.overflows(room)?;
            check(&[to], room)?;
            same!("the sender's tag", scene.sender.outcome(0).mr[0], 7 << 16 | 0x8080);
            scene.told(7 << 16 | 0x8080)?;
        }
        Ok(())
    })
}

/// The second of two strings finds no buffer: the first stays done.
fn no_buffer(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let (from, to) = ((scene.memory + 3, 900), (scene.memory + TARGET + 50, 1000));
        prepare(&[from], &[to]);
        let send = Order::send(scene.receiver.id).string(from.0, from.1).string(from.0, from.1);
        scene.play(send, Order::wait().buffer(to.0, to.1));
        scene.overflows(900)?;
        check(&[to], 900)
    })
}

fn refused(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        scene.play(
            Order::send(scene.receiver.id).words(&[5]).string(scene.memory, 10),
            Order::wait(),
        );
        scene.overflows(0)?;
        same!("the word before the refused string", scene.receiver.outcome(0).mr[1], 5);
        same!("the refused string's first word", scene.receiver.outcome(0).mr[2], 10 << 10);
        Ok(())
    })
}

/// Copies stop at the end of user memory, on either side.
fn beyond(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        for outside in [abi::layout::USER_END, 0xFFFF_8000_0000_0000, 0xFFFF_FFFF_FFFF_FFF0] {
            scene.play(
                Order::send(scene.receiver.id).string(outside, 64),
                Order::wait().buffer(scene.memory + TARGET, 64),
            );
            scene.overflows(0)?;
            scene.play(
                Order::send(scene.receiver.id).string(scene.memory, 64),
                Order::wait().buffer(outside, 64),
            );
            scene.overflows(0)?;
        }
        Ok(())
    })
}

/// Items of reserved types, and items that do not fit into the message.
fn malformed(stage: &Stage) -> Verdict {
    scenes(stage, |scene| {
        let to = scene.memory + TARGET;
        for words in [[0xC, 0], [0xE, 0], [StringItem::new(8, 2, false).0, scene.memory]] {
            scene.play(Order::send(scene.receiver.id).item(&words), Order::wait().buffer(to, 64));
            scene.overflows(0)?;
        }
        scene.play(
            Order::send(scene.receiver.id).item(&[8]),
            Order::wait().buffer(to, 64).window(abi::Fpage::COMPLETE),
        );
        scene.overflows(0)
    })
}
