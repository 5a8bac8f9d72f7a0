//! Procedure calls into one server, from all processors at the same time: the server is a space with a clerk and a
//! host on each processor, each client has a space of its own. None of them has ports, as the root task's space does.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::ThreadId;
use abi::layout::INITIAL_UTCB_AREA;
use abi::lrpc::Status;
use root_harness::{FIRST_NUMBER, Verdict, verdict};
use runtime::{Msg, ipc, kernel, lrpc, schedule};

use crate::cast::{self, Actor, Part};
use crate::talks::{none_wrong, rest};
use crate::{alone, machine, processors};

/// Hosts have the first places, clients those behind, the clerk the last one.
const HOSTS: usize = 4;
const CLERK: usize = 2 * HOSTS;
/// Where a client sees its A-stack, and the server that of the client at place 0.
const OWN: u64 = INITIAL_UTCB_AREA + 0x1_0000;
const THEIRS: u64 = INITIAL_UTCB_AREA + 0x2_0000;
const BYTES: u64 = 256;
/// The cookie of the client at place 0.
const COOKIE: u64 = 0xC0_0C1E;
const PROCEDURE: u64 = 2;
/// What a procedure does to a word.
const MASK: u64 = 0x5EED_0000_0000;
/// How often each pair is disturbed.
const ROUNDS: u32 = 4;
/// What the clerk is told: to end the bindings with a cookie, or its visitors' least priority.
const REVOKE: u64 = 2;
const FLOOR: u64 = 3;

/// The clerk's id.
static CLERK_ID: AtomicU64 = AtomicU64::new(0);
/// Calls that have ended otherwise than by a return.
static ENDED: AtomicU64 = AtomicU64::new(0);

fn clerk() -> ThreadId {
    ThreadId(CLERK_ID.load(Ordering::Relaxed))
}

/// The server: a clerk, which lives on processor `number`, as yet without hosts.
fn server(number: u32) -> Actor {
    let clerk = Actor::start_apart(CLERK, Part::Agree, number);
    CLERK_ID.store(clerk.id.0, Ordering::Relaxed);
    clerk
}

/// A host, and the client whose calls come to it.
struct Pair([Actor; 2]);

impl Pair {
    /// Both live on processor `number`.
    fn start(number: u32, clerk: &Actor) -> Self {
        let place = number as usize % HOSTS;
        let host = Actor::start_beside(place, Part::Lend, number, clerk);
        Self([host, Actor::start_apart(HOSTS + place, Part::CallProcedures, number)])
    }

    fn client(&self) -> &Actor {
        &self.0[1]
    }

    /// The processor on which it was started.
    fn number(&self) -> u32 {
        (self.0[0].id.number() - FIRST_NUMBER) % HOSTS as u32
    }

    fn goes_on(&self) -> bool {
        let before = self.client().count();
        (0..1_000).any(|_| {
            rest();
            self.client().count() > before + 4
        })
    }

    /// Whether the client gets many answers while this thread leaves the first processor to nobody.
    fn stays(&self) -> bool {
        (0..200).any(|_| {
            rest();
            let before = self.client().count();
            (0..20_000).any(|_| {
                core::hint::spin_loop();
                self.client().count() > before + 20
            })
        })
    }

    fn stop(&self) {
        self.0.iter().for_each(Actor::stop);
    }
}

/// Waits a while without leaving the processor to anybody. Where processors take turns each look is one of another's.
fn busy() {
    (0..1_000).for_each(|_| core::hint::spin_loop());
}

/// Says that it has its pages to whoever has started it, and waits for them until then.
fn begin() {
    let _ = kernel::use_no_vector_registers();
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(1));
}

/// The clerk: agrees to whatever is asked for, and does what the root task says.
pub fn agree() -> ! {
    begin();
    let mut reply = None;
    loop {
        let (from, message) = ipc::next_request(reply);
        let answer = if lrpc::import(&message).is_some() {
            let place = u64::from(from.number() - FIRST_NUMBER);
            lrpc::agree(THEIRS + place * 0x1000, PROCEDURE + 1, COOKIE + place)
        } else {
            let (own, word) = (clerk(), message.get(0));
            let done = match message.tag.label() {
                REVOKE => lrpc::revoke_cookie(own, word).is_ok(),
                _ => lrpc::set_floor(own, word as u8).is_ok(),
            };
            Msg::default().words(&[u64::from(done)])
        };
        reply = Some((from, answer));
    }
}

/// The clerk does what `label` stands for, with `word`.
fn tell(label: u64, word: u64) -> bool {
    let answer = ipc::call(clerk(), &Msg::new(label).words(&[word]));
    answer.is_ok_and(|answer| answer.get(0) == 1)
}

/// A host: answers with the word and what is on the A-stack, changed, with the cookie and the procedure.
pub fn lend(count: &AtomicU64) -> ! {
    begin();
    let mut visit = lrpc::lend(clerk());
    loop {
        visit = match visit {
            Ok(visit) => {
                count.fetch_add(1, Ordering::Relaxed);
                let word = visit.words[0] ^ MASK;
                let on_stack = machine::read_utcb(visit.a_stack, 0) ^ MASK;
                lrpc::give_back([word, on_stack, visit.cookie, visit.procedure, 0, 0, 0, 0])
            }
            Err(_) => {
                core::hint::spin_loop();
                lrpc::lend(clerk())
            }
        };
    }
}

/// A client at `place`: calls for ever, looks at the answers, and binds again when its binding is revoked.
pub fn call(place: usize, count: &AtomicU64) -> ! {
    begin();
    loop {
        let Ok(binding) = lrpc::bind(clerk(), OWN, 1, BYTES) else {
            core::hint::spin_loop();
            continue;
        };
        while call_once(&binding, place as u64, count) != Some(Status::NoBinding) {}
        let _ = binding.revoke();
    }
}

/// One call; why it has not come back.
fn call_once(binding: &lrpc::Binding, place: u64, count: &AtomicU64) -> Option<Status> {
    let round = count.load(Ordering::Relaxed);
    machine::write_utcb(OWN, 0, round + place);
    match binding.call(0, PROCEDURE, [round, 0, 0, 0, 0, 0]) {
        Ok(words) => {
            let expected = [round ^ MASK, (round + place) ^ MASK, COOKIE + place, PROCEDURE];
            if words[..4] != expected {
                cast::WRONG.fetch_add(1, Ordering::Relaxed);
            }
            count.fetch_add(1, Ordering::Relaxed);
            alone::end_turn(round);
            None
        }
        Err(why) => {
            ENDED.fetch_add(1, Ordering::Relaxed);
            core::hint::spin_loop();
            Some(why)
        }
    }
}

type Pairs = [Option<Pair>; HOSTS];

/// A server, and a pair on each processor; that of the first one, which never rests, begins last.
fn stage() -> (Actor, Pairs) {
    stage_with(0)
}

/// The same with a clerk that lives on processor `number`.
fn stage_with(number: u32) -> (Actor, Pairs) {
    let clerk = server(number);
    let count = processors().min(HOSTS as u32);
    let pairs = core::array::from_fn(|at| {
        let number = count.checked_sub(at as u32 + 1)?;
        Some(Pair::start(number, &clerk))
    });
    (clerk, pairs)
}

fn stop(clerk: &Actor, pairs: &Pairs) {
    pairs.iter().flatten().for_each(Pair::stop);
    clerk.stop();
}

/// Calls of each processor are right, and stay there.
pub fn everywhere() -> Verdict {
    let (clerk, pairs) = stage();
    let go_on = (0..5).all(|_| pairs.iter().flatten().all(Pair::goes_on));
    let stay = pairs.iter().flatten().all(|pair| pair.number() == 0 || pair.stays());
    stop(&clerk, &pairs);
    verdict(go_on, "a client gets no answers")?;
    verdict(stay, "each call comes to the first processor")?;
    none_wrong()
}

/// One of a pair meets something, and what it was is undone; all of them go on.
fn disturbed(act: impl Fn(u32, &mut Pair, &Actor)) -> Verdict {
    let (clerk, mut pairs) = stage();
    let count = processors().min(HOSTS as u32);
    let go_on = (0..ROUNDS * count).all(|round| {
        if let Some(pair) = pairs.iter_mut().flatten().nth((round % count) as usize) {
            act(round / count, pair, &clerk);
        }
        pairs.iter().flatten().all(Pair::goes_on)
    });
    stop(&clerk, &pairs);
    verdict(go_on, "a client gets no answers any more")?;
    none_wrong()
}

/// The client, the host or both are deleted in the middle, and others take their places.
pub fn deleted() -> Verdict {
    disturbed(|round, pair, clerk| {
        let which = round as usize % 4;
        if which < 2 {
            pair.0[which].stop();
        }
        busy();
        pair.stop();
        *pair = Pair::start(pair.number(), clerk);
    })
}

/// The clerk is deleted, and so are its hosts, before or behind it; there is another server then.
pub fn ended() -> Verdict {
    for round in 0..6 {
        let (clerk, pairs) = stage();
        let go_on = pairs.iter().flatten().all(Pair::goes_on);
        if round % 2 == 0 {
            clerk.stop();
        }
        busy();
        pairs.iter().flatten().for_each(|pair| pair.0[round % 3 / 2].stop());
        stop(&clerk, &pairs);
        verdict(go_on, "a client gets no answers")?;
        verdict(root_harness::violations() == 0, "the checker finds something")?;
    }
    none_wrong()
}

/// The clerk ends the binding, and the client has another one.
pub fn revoked() -> Verdict {
    let before = ENDED.load(Ordering::Relaxed);
    disturbed(|_, pair, _| {
        let place = u64::from(pair.client().id.number() - FIRST_NUMBER);
        if !tell(REVOKE, COOKIE + place) {
            cast::WRONG.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    verdict(ENDED.load(Ordering::Relaxed) > before, "no call has met the end of a binding")
}

/// One of the two is halted for a while.
pub fn halted() -> Verdict {
    disturbed(|round, pair, _| {
        let one = &pair.0[round as usize % 2];
        machine::halt(one.id, true);
        busy();
        let before = pair.client().count();
        busy();
        if pair.client().count() > before + 1 {
            cast::WRONG.fetch_add(1, Ordering::Relaxed);
        }
        machine::halt(one.id, false);
    })
}

/// One of the two moves to another processor and back.
pub fn moved() -> Verdict {
    disturbed(|round, pair, _| {
        let (one, number) = (&pair.0[round as usize % 2], pair.number());
        let _ = schedule::set_processor(one.id, (number + 1) % processors());
        let _ = pair.goes_on();
        let _ = schedule::set_processor(one.id, number);
    })
}

/// Visitors have a floor, and have none.
pub fn lifted() -> Verdict {
    disturbed(|round, _, _| {
        if !tell(FLOOR, u64::from(round % 2) * 30) {
            cast::WRONG.fetch_add(1, Ordering::Relaxed);
        }
    })
}

/// The clerk lives elsewhere, on each processor once, and moves on while its clients bind anew.
pub fn agreed_elsewhere() -> Verdict {
    for number in 1..processors() {
        let (clerk, pairs) = stage_with(number);
        let go_on = pairs.iter().flatten().all(|pair| {
            let place = u64::from(pair.client().id.number() - FIRST_NUMBER);
            let goes = pair.goes_on() && tell(REVOKE, COOKIE + place) && pair.goes_on();
            let _ = schedule::set_processor(clerk.id, (number + 1) % processors());
            let still = tell(REVOKE, COOKIE + place) && pair.goes_on();
            let _ = schedule::set_processor(clerk.id, number);
            goes && still
        });
        stop(&clerk, &pairs);
        verdict(go_on, "a client gets no answers by a clerk elsewhere")?;
        verdict(root_harness::violations() == 0, "the checker finds something")?;
    }
    none_wrong()
}
