//! Who pays for what: random creation and deletion of threads and spaces under
//! tight quotas. Limits are moved, not made; every frame has a payer; a call that
//! fails has cost nothing; at the end all is as it was.

use crate::common::{Machine, Random};
use abi::id::USER_BASE;
use abi::{CallError, Fpage, Rights, ThreadId, utcb};
use kernel::arch::entry;
use kernel::check;
use kernel::control::lifecycle;
use kernel::control::thread_control::{After, Request, thread_control};
use kernel::destruction;
use kernel::mem::RootWord;
use kernel::mem::frames;
use kernel::space::spaces;
use kernel::space::{quota_control, space_control};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, current, lookup_number, own, registry, set_current};

const UTCBS: u64 = 0xBF00_0000;
const ROOT: u32 = USER_BASE + 3;
const NUMBERS: u64 = 24;
const ROUNDS: usize = 6_000;

/// A machine with one privileged thread in a space of 120 pages.
fn machine() -> (Machine, TcbRef) {
    let machine = Machine::new(1, 120, false);
    set_current(own::make_idle(RootWord::default()));
    let space = machine.spaces[1];
    space.task.privileged.set(true);
    spaces().insert(space);
    let kip = Fpage::memory(0xBFF0_0000, 12, Rights::NONE);
    space_control::initialise(space, kip, Fpage::memory(UTCBS, 18, Rights::NONE))
        .expect("quota suffices");
    let root = make(&machine);
    set_current(root);
    (machine, root)
}

fn make(machine: &Machine) -> TcbRef {
    let id = ThreadId::global(ROOT, 1);
    let root = lifecycle::create(id, machine.spaces[1], id).expect("quota suffices");
    lifecycle::place_utcb(root, UTCBS).expect("the location is good");
    lifecycle::activate_running(root, ThreadId::NIL, 0x1000, 0x2000);
    root
}

/// Sum of all limits, and of frames free and in use.
fn totals(machine: &Machine) -> (u64, u64) {
    let (mut limits, mut used) = (machine.bank.limit(), machine.bank.used());
    let sigma0 = machine.sigma0();
    limits += sigma0.quota().limit();
    used += sigma0.quota().used();
    spaces().for_each(|space| {
        limits += space.quota().limit();
        used += space.quota().used();
    });
    (limits, frames::free() + used)
}

/// ThreadControl as a call: a space that ends is destroyed to the end.
fn call(caller: TcbRef, request: &Request) -> Result<(), CallError> {
    caller.resume.set(Resume::Frame);
    match thread_control(caller, request)? {
        After::Nothing => {}
        After::Destroy(space) => {
            let mut next = destruction::start(caller, space);
            while caller.resume.get() == Resume::Destroy {
                next = entry::resume(caller);
            }
            assert!(next == caller && current() == caller);
        }
    }
    Ok(())
}

fn request(dest: ThreadId, space: ThreadId, pager: ThreadId, slot: u64) -> Request {
    let utcb_location = if pager.is_nil() { !0 } else { UTCBS + slot * utcb::SIZE };
    Request { dest, pager, scheduler: ThreadId::global(ROOT, 1), space, utcb_location }
}

/// Some other thread's current id.
fn somebody(random: &mut Random) -> Option<ThreadId> {
    lookup_number(ROOT + 1 + random.below(NUMBERS) as u32).map(|thread| thread.id.get())
}

fn random_call(random: &mut Random, root: TcbRef, version: u32) -> Result<(), CallError> {
    let slot = 1 + random.below(NUMBERS);
    let dest = ThreadId::global(ROOT + slot as u32, version << 6 | 1);
    let own = root.id.get();
    let other = somebody(random).unwrap_or(own);
    match random.below(8) {
        // A new space and its areas, if the number is free.
        0 | 1 if lookup_number(dest.number()).is_none() => {
            call(root, &request(dest, dest, ThreadId::NIL, 0))?;
            let kip = Fpage::memory(0xBFF0_0000, 12, Rights::NONE);
            space_control::space_control(root, dest, kip, Fpage::memory(UTCBS, 18, Rights::NONE))
        }
        // An active thread in one, at a UTCB of a page of its own or not.
        2..=4 if lookup_number(dest.number()).is_none() => {
            call(root, &request(dest, other, own, slot * 3))
        }
        5 => quota_control::quota_control(root, other, random.below(40) as i64 - 20).map(|_| ()),
        _ => call(root, &request(other, ThreadId::NIL, ThreadId::NIL, 0)),
    }
}

#[test]
fn every_page_has_a_payer_whatever_is_made_and_deleted() {
    let (machine, root) = machine();
    let mut random = Random::seeded(51);
    let (at_first, used_at_first) = (totals(&machine), machine.spaces[1].quota().used());
    let (mut made, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        let version = round as u32 + 2;
        let (threads, before) = (registry().count(), spaces().count());
        let free = frames::free();
        let done = random_call(&mut random, root, version);
        assert_eq!(totals(&machine), at_first, "round {round}");
        assert_eq!(check::violations(), 0, "round {round}");
        match done {
            Ok(()) => made += 1,
            Err(CallError::NoMemory) if spaces().count() == before => {
                refused += 1;
                assert_eq!(
                    (registry().count(), frames::free()),
                    (threads, free),
                    "round {round}: a refused call cost something"
                );
            }
            Err(_) => {}
        }
    }
    assert!(
        made > ROUNDS / 4 && refused > 20,
        "{made} calls done, {refused} refused for lack of memory"
    );
    for slot in 1..=NUMBERS {
        if let Some(thread) = lookup_number(ROOT + slot as u32) {
            call(root, &request(thread.id.get(), ThreadId::NIL, ThreadId::NIL, 0))
                .expect("the root may");
        }
    }
    // What stays are pages for UTCBs and tables of the root's own space.
    assert_eq!((registry().count(), spaces().count()), (1, 1));
    assert_eq!(totals(&machine), at_first);
    let grown = machine.spaces[1].quota().used() - used_at_first;
    assert!(grown <= NUMBERS, "the root's space uses {grown} pages more than at first");
    assert_eq!(check::violations(), 0);
}
