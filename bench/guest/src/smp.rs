//! Several processors: short messages between two threads on each of them at the same time, and
//! between processors; pages that are taken back from spaces that run on some of them. The
//! instrument counts for each processor apart, and which lines they share.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::inspect::{Back, What};
use abi::kip::offset;
use abi::layout::INITIAL_UTCB_AREA;
use abi::{Fpage, MsgTag, Rights, ThreadId, Time, utcb};
use runtime::{Msg, direct_println, ipc, kernel, kip, schedule};

use crate::crowd;
use crate::marks::{self, READY, Role, exchange};
use crate::memory::block;
use crate::partner::{
    self, Partner, Result, STACK_WORDS_OF_A_LINK, between, link_inside, program, program_beside,
    program_inside, why,
};

/// Exchanges of each client: the first ones go through the first processor.
const ROUNDS: usize = 1_000;
/// Exchanges between processors.
const CROSSINGS: usize = 64;
/// Quota of a client's space beyond the kernel's default, pages.
const QUOTA_PAGES: i64 = 64;
/// Label of what is measured.
const LABEL: u64 = 1;
/// Pages that are taken back in each phase, and how long the space is left alone before: eight
/// calls in 2 ms would send its threads home for a while.
const TAKEN: usize = 16;
const PAUSE_US: u64 = 500;
/// Most processors.
pub(crate) const MOST: usize = 8;

/// Short messages on all processors at once: phase 1. Then between two of them: phase 2. A word
/// that two of them write: phase 3. Messages without the kernel: phase 4. Then pages are taken back: phases 5 and 6.
/// And a handler beside a crowd ([`crowd`]): phases 7 and 8.
pub fn run() -> Result<()> {
    let processors = (kip::get().word(offset::PROCESSOR_INFO) & 0xFFFF) as u32 + 1;
    direct_println!("note processors: {processors}");
    talk_everywhere(processors)?;
    if processors > 1 {
        cross()?;
        say_why(2, "talk and cross");
        share()?;
    } else {
        (0..2).for_each(|_| marks::phase());
    }
    talk_apart(processors)?;
    take_back(processors)?;
    crowd::run(processors)
}

/// Of these, what the gate watches: phases 1 and 3.
pub fn watched() -> Result<()> {
    talk_everywhere((kip::get().word(offset::PROCESSOR_INFO) & 0xFFFF) as u32 + 1)?;
    marks::phase();
    share()
}

/// Two threads on each processor.
fn talk_everywhere(processors: u32) -> Result<()> {
    let mut clients = [const { None }; MOST];
    for (number, place) in (0..processors).zip(&mut clients) {
        let server = between(Role::Anybody)?;
        let client = program(talk, server.id.0, QUOTA_PAGES)?;
        move_to(&server, number)?;
        move_to(&client, number)?;
        *place = Some(client);
    }
    marks::phase();
    for client in clients.iter().flatten() {
        ipc::send(client.id, &Msg::default()).map_err(|_| "a client is not there")?;
    }
    partner::await_all(clients.iter().flatten().count())?;
    say_why(processors, "talk");
    Ok(())
}

/// Pages of the root task's are taken back: while only somebody of another space is elsewhere, then while
/// a thread of its own is on each of the other processors. A phase each.
fn take_back(processors: u32) -> Result<()> {
    let stranger = program(compute, 0, QUOTA_PAGES)?;
    // One that waits for a page is nowhere.
    partner::settle(stranger.id);
    move_to(&stranger, processors - 1)?;
    if processors == 1 {
        stranger.delete();
        return take_pages();
    }
    take_pages()?;
    stranger.delete();
    for (number, stack) in (1..processors).zip(&LINKS) {
        let own = link_inside(stack, compute, 0)?;
        move_to(&own, number)?;
    }
    take_pages()
}

/// The stacks of those who compute in the root task's space.
static LINKS: [[AtomicU64; STACK_WORDS_OF_A_LINK]; MOST - 1] =
    [const { [const { AtomicU64::new(0) }; STACK_WORDS_OF_A_LINK] }; MOST - 1];

/// A page after the other, when those who are elsewhere have had time to go there again.
fn take_pages() -> Result<()> {
    let mut page = block(12)?;
    let whole = Fpage::memory(page.base(), 12, Rights::RWX);
    marks::phase();
    for round in 0..TAKEN {
        page.write(0, round as u64);
        let _ = ipc::receive(ThreadId::ROOT, Time::micros(PAUSE_US));
        let _ = marks::sample(|| kernel::flush(&mut page, whole));
    }
    Ok(())
}

/// Computes for ever, and lets other processors have their turns.
extern "C" fn compute(_: u64) -> ! {
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    loop {
        for round in 0..64 {
            let _ = black_box(round);
        }
        core::hint::spin_loop();
    }
}

/// Messages without the kernel between two threads of one space, on all processors at once: phase 4.
fn talk_apart(processors: u32) -> Result<()> {
    let mut clients = [const { None }; MOST];
    for (number, place) in (0..processors).zip(&mut clients) {
        let client = program(talk_local, 0, QUOTA_PAGES)?;
        let server = program_beside(client, marks::serve_local, 0)?;
        move_to(&server, number)?;
        move_to(&client, number)?;
        *place = Some(client);
    }
    marks::phase();
    for client in clients.iter().flatten() {
        ipc::send(client.id, &Msg::default()).map_err(|_| "a client is not there")?;
    }
    partner::await_all(clients.iter().flatten().count())?;
    say_why(processors, "talk, cross and local talk");
    Ok(())
}

/// A word that two processors write, in samples of theirs.
static SHARED: AtomicU64 = AtomicU64::new(0);

/// What the instrument has to find: one line that two processors share. Phase 3.
fn share() -> Result<()> {
    let other = program_inside(write_shared, 0)?;
    move_to(&other, 1)?;
    marks::phase();
    marks::sample(|| SHARED.fetch_add(1, Relaxed));
    ipc::send(other.id, &Msg::default()).map_err(|_| "a thread is not there")?;
    partner::await_all(1)?;
    marks::sample(|| SHARED.fetch_add(1, Relaxed));
    other.delete();
    Ok(())
}

/// Writes it when the root task says so.
extern "C" fn write_shared(_: u64) -> ! {
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    let _ = ipc::receive(ThreadId::ROOT, Time::NEVER);
    for _ in 0..4 {
        marks::sample(|| SHARED.fetch_add(1, Relaxed));
    }
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    runtime::thread::park()
}

/// Prints why threads have come back to the first processor until now, how often.
fn say_why(processors: u32, until: &str) {
    for number in 1..processors {
        for (index, (_, name)) in Back::ALL.iter().enumerate() {
            let (part, word) = (index as u64 / 8, index % 8);
            let record = kernel::inspect(What::Visits, number.into(), part).unwrap_or_default();
            if record[word] != 0 {
                direct_println!("note {until}: {} back from {number} for {name}", record[word]);
            }
        }
    }
}

pub(crate) fn move_to(partner: &Partner, number: u32) -> Result<()> {
    if number == 0 { Ok(()) } else { schedule::set_processor(partner.id, number).map_err(why) }
}

/// From the first processor to the second, and back.
fn cross() -> Result<()> {
    let server = between(Role::Plain)?;
    move_to(&server, 1)?;
    marks::phase();
    for _ in 0..CROSSINGS {
        let _ = exchange(server.id, MsgTag::new(LABEL, 0, 0), [0, 0], 1);
    }
    server.delete();
    Ok(())
}

/// Calls the other thread of its space when the root task says so.
extern "C" fn talk_local(_: u64) -> ! {
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    let _ = ipc::receive(ThreadId::ROOT, Time::NEVER);
    let server = ThreadId(INITIAL_UTCB_AREA + utcb::SIZE + utcb::POINTER_OFFSET);
    for _ in 0..ROUNDS {
        let _ = marks::local_exchange(server, MsgTag::new(LABEL, 0, 0));
    }
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    runtime::thread::park()
}

/// Calls `server` when the root task says so.
extern "C" fn talk(server: u64) -> ! {
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    let _ = ipc::receive(ThreadId::ROOT, Time::NEVER);
    for _ in 0..ROUNDS {
        let _ = exchange(ThreadId(server), MsgTag::new(LABEL, 0, 0), [0, 0], 2);
    }
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    runtime::thread::park()
}
