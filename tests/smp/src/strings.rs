//! Long strings, whose sender or receiver moves while they are copied.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::{ThreadId, Time};
use root_harness::{Verdict, verdict};
use runtime::accept::{self, TransferLimit};
use runtime::sync::Lock;
use runtime::{Msg, ipc};

use crate::cast::{self, Actor, Part};
use crate::moves;
use crate::talks::{counts_on, none_wrong};
use crate::{last, processors};

/// Bytes of a string: copying them takes longer than all else that the two do.
const BYTES: usize = 1 << 20;
/// One byte of so many is the round's own.
const STRIDE: usize = 509;
/// How long a string may take while pages are not there; they all are.
const LIMIT: TransferLimit = TransferLimit::micros(1_000_000);

static GOODS: Lock<[u8; BYTES]> = Lock::new([0; BYTES]);
static ROOM: Lock<[u8; BYTES]> = Lock::new([0; BYTES]);

/// What byte number `at` is in this round.
const fn byte(round: u64, at: usize) -> u8 {
    (round as usize * 7 + at / STRIDE) as u8
}

/// All arrive, whole, while each of both moves to and fro: anywhere in a string where processors run in parallel; where
/// instructions are counted others have turns between strings only.
pub fn moved() -> Verdict {
    // Their pages are there.
    for buffer in [&GOODS, &ROOM] {
        buffer.lock().fill(0xFF);
    }
    let receiver = Actor::start_apart(0, Part::Take, 0);
    Actor::calls(1, &receiver);
    let sender = Actor::start(1, Part::Ship, last());
    let goes_on = [&sender, &receiver].iter().all(|one| moves_and_goes_on(one, &sender));
    [&sender, &receiver].into_iter().for_each(Actor::stop);
    none_wrong()?;
    verdict(goes_on, "one of them stands still")
}

/// While `one` moves about, further strings arrive.
fn moves_and_goes_on(one: &Actor, sender: &Actor) -> bool {
    moves::set_victim(one);
    let mover = Actor::start(2, Part::Move, 1 % processors());
    let goes_on = (0..4).all(|_| counts_on(sender) && counts_on(&mover));
    mover.stop();
    goes_on
}

/// Sends strings to `partner` for ever, and counts those that it has acknowledged.
pub fn ship(partner: ThreadId, count: &AtomicU64) -> ! {
    let mut goods = GOODS.lock();
    loop {
        let round = count.load(Ordering::Relaxed);
        (0..BYTES).step_by(STRIDE).for_each(|at| goods[at] = byte(round, at));
        let answer = ipc::call(partner, &Msg::default().words(&[round]).string(&*goods));
        // Where the emulator counts, other processors have no turn without it.
        spin_loop();
        if answer.is_ok_and(|msg| msg.get(0) == round) {
            count.fetch_add(1, Ordering::Relaxed);
        } else {
            cast::WRONG.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Acknowledges strings for ever, and looks at each.
pub fn take(count: &AtomicU64) -> ! {
    let mut room = ROOM.lock();
    let mut answer = None;
    loop {
        let received = accept::string(&mut *room, LIMIT, || match answer {
            Some((sender, round)) => ipc::reply_wait(sender, &Msg::default().words(&[round])),
            None => ipc::wait(Time::NEVER),
        });
        answer = received.ok().map(|(sender, msg)| {
            let round = msg.get(0);
            let is_right = msg.string_in(&*room).is_some_and(|goods| {
                let mut own = (0..BYTES).step_by(STRIDE);
                goods.len() == BYTES && own.all(|at| goods[at] == byte(round, at))
            });
            cast::WRONG.fetch_add(u64::from(!is_right), Ordering::Relaxed);
            count.fetch_add(1, Ordering::Relaxed);
            (sender, round)
        });
    }
}
