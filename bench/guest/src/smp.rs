//! Several processors: short messages between two threads on each of them at the same time, and
//! between processors. The instrument counts for each processor apart, and which lines they share.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::inspect::{Back, What};
use abi::kip::offset;
use abi::{MsgTag, ThreadId, Time};
use runtime::{Msg, direct_println, ipc, kernel, kip, schedule};

use crate::marks::{self, READY, Role, exchange};
use crate::partner::{self, Partner, Result, between, program, program_inside, why};

/// Exchanges of each client: the first ones go through the first processor.
const ROUNDS: usize = 400;
/// Exchanges between processors.
const CROSSINGS: usize = 64;
/// Quota of a client's space beyond the kernel's default, pages.
const QUOTA_PAGES: i64 = 64;
/// Label of what is measured.
const LABEL: u64 = 1;

/// Short messages on all processors at once: phase 1. Then between two of them: phase 2.
pub fn run() -> Result<()> {
    let processors = (kip::get().word(offset::PROCESSOR_INFO) & 0xFFFF) as u32 + 1;
    direct_println!("note processors: {processors}");
    let mut clients = [const { None }; 8];
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
    if processors > 1 {
        cross()?;
        say_why(2, "talk and cross");
        share()?;
    }
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

fn move_to(partner: &Partner, number: u32) -> Result<()> {
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
