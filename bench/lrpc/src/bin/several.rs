//! Figure 2 of Bershad et al. (1990): procedure calls of several processors into one server, each client's with a host and
//! an A-stack of its own.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use abi::kip::offset;
use abi::{ThreadId, Time};
use bench_guest::marks::{self, READY};
use bench_guest::partner::{self, Partner, Result};
use bench_guest::{check, measured};
use runtime::layout::touch_image;
use runtime::service::{self, Caller, Link, Room, Transport};
use runtime::{Msg, direct_println, ipc, kip, schedule};

/// What the interface has and this measurement does not call is generated, too.
#[allow(dead_code)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}
use generated::table::{Client, INPUT, OUTPUT, ROOM, Serve, Server};

measured!(run);

/// Calls of each client in each phase.
const ROUNDS: usize = 1_000;
/// Calls before them.
const WARM_UP: usize = 8;
/// Clients at most: a processor each.
const CLIENTS: usize = 4;
/// Kernel memory of each space, pages.
const QUOTA_PAGES: i64 = 64;

/// Does what is asked, which is nothing.
struct Table;

impl Server for Table {
    #[inline(always)]
    fn null(&self, _: Caller) {}

    fn add(&self, _: Caller, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    fn big_in(&self, _: Caller, _: &[u8]) {}

    fn big_in_out<'r>(&'r self, _: Caller, bytes: &[u8], mut room: Room<'r>) -> &'r [u8] {
        room.copy(bytes)
    }
}

/// Phase `n` has the clients of the first `n` processors; the one behind these only that of the second.
fn run() -> Result<()> {
    check::run();
    let processors = (kip::get().word(offset::PROCESSOR_INFO) & 0xFFFF) as usize + 1;
    let clerk = partner::clerk(clerk, 0, QUOTA_PAGES)?;
    let mut clients = [const { None }; CLIENTS];
    for (number, place) in (0..processors as u32).zip(&mut clients) {
        let host = partner::program_among(clerk, u64::from(number) + 1, host, clerk.id.0)?;
        schedule::yield_to(host.id);
        let client = partner::clerk(call, clerk.id.0, QUOTA_PAGES)?;
        if number > 0 {
            for thread in [host.id, client.id] {
                schedule::set_processor(thread, number).map_err(partner::why)?;
            }
        }
        *place = Some(client);
    }
    for count in 1..=processors.min(CLIENTS) {
        phase(clients[..count].iter().flatten())?;
    }
    phase(clients.get(1).iter().copied().flatten())?;
    direct_println!("note processors: {processors}");
    Ok(())
}

/// All of these call at the same time.
fn phase<'c>(clients: impl Iterator<Item = &'c Partner> + Clone) -> Result<()> {
    marks::phase();
    for client in clients.clone() {
        ipc::send(client.id, &Msg::default()).map_err(|_| "a client is not there")?;
    }
    partner::await_all(clients.count())
}

extern "C" fn clerk(_: u64) -> ! {
    touch_image();
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    service::serve_calls::<_, INPUT, ROOM, OUTPUT>(&Serve(&Table), 0)
}

extern "C" fn host(clerk: u64) -> ! {
    touch_image();
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    service::serve_visits::<_, INPUT, ROOM, OUTPUT>(&Serve(&Table), ThreadId(clerk));
    runtime::thread::park()
}

/// Calls when the root task says so.
extern "C" fn call(clerk: u64) -> ! {
    touch_image();
    let link = Link::new(ThreadId(clerk));
    link.take_calls();
    let client = Client::new(&link);
    let mut fails = link.transport() != Transport::Calls;
    for _ in 0..WARM_UP {
        fails |= client.null().is_err();
    }
    loop {
        let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
        let _ = ipc::receive(ThreadId::ROOT, Time::NEVER);
        for _ in 0..ROUNDS {
            fails |= marks::sample(|| client.null()).is_err();
        }
        if fails {
            direct_println!("note a client has no procedure calls");
        }
    }
}
