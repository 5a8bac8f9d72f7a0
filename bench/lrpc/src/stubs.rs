//! Calls by generated stubs, and the same null call written by hand.

use abi::ThreadId;
use runtime::layout::touch_image;
use runtime::service::{
    self, Caller, Carrier, Link, Message as _, Neighbour, Room, Thread, Transport,
};
use runtime::{Msg, ipc, schedule};

use bench_guest::marks::{READY, sample};
use bench_guest::partner::{self, Partner, Result};
use bench_guest::{Samples, row};

/// What the interface has and this measurement does not call is generated, too.
#[allow(dead_code)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}
use generated::{long, table};

use table::{Client, Serve, Server, label};

/// Calls before the measured ones, and measured ones; the least counts.
const WARM_UP: u64 = 4;
const ROUNDS: u64 = 4;
/// The arguments that the paper calls big, bytes.
const BIG: usize = 200;
/// Kernel memory of the server, pages.
const QUOTA_PAGES: i64 = 64;

/// Does what is asked, which is nothing much.
struct Table;

impl Server for Table {
    #[inline(always)]
    fn null(&self, _: Caller) {}

    #[inline(always)]
    fn add(&self, _: Caller, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    fn big_in(&self, _: Caller, bytes: &[u8]) {
        core::hint::black_box(bytes);
    }

    fn big_in_out<'r>(&'r self, _: Caller, bytes: &[u8], mut room: Room<'r>) -> &'r [u8] {
        room.copy(bytes)
    }
}

impl long::Server for Table {
    fn echo<'r>(&'r self, _: Caller, bytes: &[u8], mut room: Room<'r>) -> &'r [u8] {
        room.copy(bytes)
    }
}

extern "C" fn with_strings(_: u64) -> ! {
    let mut input = core::hint::black_box([0; long::INPUT]);
    let mut room = core::hint::black_box([0; long::ROOM]);
    let mut output = core::hint::black_box([0; long::OUTPUT]);
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    service::serve_with(&long::Serve(&Table), &mut input, &mut room, &mut output)
}

/// Row `lrpc/echo-1000-string-user`: 1000 bytes there and back, as strings.
pub fn strings() -> Result<()> {
    let server = partner::program(with_strings, 0, QUOTA_PAGES)?;
    // The server faults on what it needs. This thread takes no string as an answer here.
    partner::settle(server.id);
    partner::call(server.id, &Msg::new(long::label::ECHO))?;
    let client = long::Client::new(Thread(server.id));
    let (bytes, mut room) = ([7; 1000], [0; 1000]);
    let request: Msg = service::request_words(long::label::ECHO, &(&bytes[..],));
    let _ = partner::call_with_string(server.id, request, &bytes);
    partner::settle(server.id);
    let failed = |_| "a call with strings has failed";
    let samples = measure(|| client.echo(&bytes, &mut room).map(|_| ()).map_err(failed))?;
    row!(samples, "lrpc/echo-1000-string-user");
    if client.echo(&bytes, &mut room) != Ok(&bytes[..]) {
        return Err("a call with strings has a wrong result");
    }
    if client.echo(&[], &mut room) != Ok(&[][..]) {
        return Err("a call with empty strings has a wrong result");
    }
    if client.echo(&bytes, &mut room[..10]).is_ok() || client.echo(&[0; 1001], &mut [0; 9]).is_ok()
    {
        return Err("a call with strings that are too long has a result");
    }
    server.delete();
    Ok(())
}

extern "C" fn generated(_: u64) -> ! {
    // The pager calls this thread next, and may not do so while it faults: its room comes first.
    let mut room = core::hint::black_box([0; table::ROOM]);
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    service::serve(&Serve(&Table), &mut room)
}

/// The same server as one writes it without a compiler: a loop, a `match`, the checks that are needed.
extern "C" fn by_hand(_: u64) -> ! {
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    let (mut from, mut request) = ipc::request();
    loop {
        let words = request.tag.0 & 0xFFF;
        let answer = match (request.label(), words) {
            (1, 0) => Msg::new(0),
            (2, 2) if request.mr[0] <= 0xFFFF_FFFF && request.mr[1] <= 0xFFFF_FFFF => {
                let sum = (request.mr[0] as u32).wrapping_add(request.mr[1] as u32);
                Msg::new(0).word(sum.into())
            }
            (3, 26) => core::hint::black_box(Msg::new(0)),
            (4, 26) => core::hint::black_box(Msg::new(0).word(1)),
            _ => Msg::new(1),
        };
        (from, request) = ipc::next_request(Some((from, answer)));
    }
}

/// Rows `lrpc/CALL transport=register`: the paper's four calls over messages, and
/// `lrpc/null-by-hand`.
pub fn table() -> Result<()> {
    let server = partner::program(generated, 0, QUOTA_PAGES)?;
    settle(server)?;
    let client = Client::new(Thread(server.id));
    Client::bind(Thread(server.id)).map_err(|_| "the measured client cannot bind")?;
    rows(&client, "register")?;
    server.delete();
    let server = partner::program(by_hand, 0, QUOTA_PAGES)?;
    partner::settle(server.id);
    for label in 1..=4 {
        let _ = partner::call(server.id, &Msg::new(label))?;
    }
    let samples = measure(|| match ipc::call(server.id, &Msg::new(1)) {
        Ok(answer) if answer.tag.0 == 0 => Ok(()),
        _ => Err("a call by hand has failed"),
    })?;
    row!(samples, "lrpc/null-by-hand");
    server.delete();
    Ok(())
}

/// Lets the server fault on everything that it is going to need: this thread is its pager.
fn settle(server: Partner) -> Result<()> {
    // What it needs before it waits for the first one, too.
    partner::settle(server.id);
    let body = [7; BIG];
    for label in [label::BIG_IN, label::BIG_IN_OUT] {
        let request: Msg = service::request_inline(label, &(&body[..],), &mut [0; BIG])
            .map_err(|_| "the measured request is too long")?;
        partner::call(server.id, &request)?;
    }
    partner::call(server.id, &Msg::new(label::NULL))?;
    partner::call(server.id, &Msg::new(label::ADD).push(1).push(2))?;
    partner::call(server.id, &Msg::new(service::BIND).push(0).push(0))?;
    let bind = Msg::new(service::BIND).push(table::INTERFACE.id).push(0);
    partner::call(server.id, &label::ALL.iter().fold(bind, |bind, label| bind.push(*label)))?;
    Ok(())
}

extern "C" fn clerk(_: u64) -> ! {
    touch_image();
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    service::serve_calls::<_, { table::INPUT }, { table::ROOM }, { table::OUTPUT }>(
        &Serve(&Table),
        0,
    )
}

extern "C" fn host(clerk: u64) -> ! {
    touch_image();
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    service::serve_visits::<_, { table::INPUT }, { table::ROOM }, { table::OUTPUT }>(
        &Serve(&Table),
        ThreadId(clerk),
    );
    runtime::thread::park()
}

/// Rows `lrpc/CALL-calls-user`: the same four over procedure calls, and `lrpc/CALL-plain-user`: as calls of functions.
pub fn by_calls() -> Result<()> {
    let clerk = partner::clerk(clerk, 0, QUOTA_PAGES)?;
    let host = partner::program_beside(clerk, host, clerk.id.0)?;
    schedule::yield_to(host.id);
    let link = Link::new(clerk.id);
    let client = Client::bind(link).map_err(|_| "the measured client cannot bind")?;
    rows(&client, "calls")?;
    drop(client);
    host.delete();
    clerk.delete();
    plain()
}

static TABLE: Serve<'static, Table> = Serve(&Table);

extern "C" fn neighbour(_: u64) -> ! {
    let mut room = core::hint::black_box([0; table::ROOM]);
    let _ = ipc::send(ThreadId::ROOT, &Msg::new(READY));
    service::serve_local(&TABLE, &mut room)
}

/// Rows `lrpc/CALL-inside-user`, `lrpc/CALL-inside-message-user`, `lrpc/CALL-local-user` and `lrpc/CALL-link-local-user`: the
/// same client and server in one space, by calls of functions, by calls to which a message is given, by local IPC, and by a
/// link that has found out that it can take that.
pub fn inside() -> Result<()> {
    let server = partner::program_inside(neighbour, 0)?;
    let offered = service::offer::<_, { table::ROOM }>(&TABLE, server.id);
    let link = Link::new(server.id);
    let client = Client::bind(&link).map_err(|_| "the measured client cannot bind")?;
    if !offered || link.transport() != Transport::Local {
        return Err("a server of the own space is not called by local IPC");
    }
    rows(&client, "link-local")?;
    let neighbour = Neighbour::of(server.id).ok_or("a server of the own space is no neighbour")?;
    rows(&Client::bind(neighbour).map_err(|_| "the neighbour does not fit")?, "local")?;
    link.take_calls();
    let client = Client::bind(&link).map_err(|_| "the measured client cannot bind")?;
    if link.transport() != Transport::Inside {
        return Err("a server of the own space is not called as a function");
    }
    rows(&client, "inside")?;
    rows(&Client::new(&link), "inside-message")?;
    server.delete();
    Ok(())
}

fn rows<C: Carrier>(client: &Client<C>, way: &str) -> Result<()> {
    let failed = |_| "a call by generated stubs has failed";
    let (bytes, mut room) = ([7; BIG], [0; BIG]);
    let samples = measure(|| client.null().map_err(failed))?;
    row!(samples, "lrpc/null-{way}-user");
    let samples = measure(|| client.add(3, 4).map(|_| ()).map_err(failed))?;
    row!(samples, "lrpc/add-{way}-user");
    let samples = measure(|| client.big_in(&bytes).map_err(failed))?;
    row!(samples, "lrpc/big-in-{way}-user");
    let samples = measure(|| client.big_in_out(&bytes, &mut room).map(|_| ()).map_err(failed))?;
    row!(samples, "lrpc/big-in-out-{way}-user");
    if client.add(3, 4) != Ok(7) || room != bytes {
        return Err("a call by generated stubs has a wrong result");
    }
    Ok(())
}

/// The server's functions, called inside the space.
fn plain() -> Result<()> {
    let (server, me): (&dyn Server, _) = (core::hint::black_box(&Table), ThreadId::ROOT);
    let (bytes, mut room) = ([7; BIG], [0; BIG]);
    let samples = measure(|| {
        server.null(me);
        Ok(())
    })?;
    row!(samples, "lrpc/null-plain-user");
    let samples = measure(|| {
        core::hint::black_box(server.add(me, 3, 4));
        Ok(())
    })?;
    row!(samples, "lrpc/add-plain-user");
    let samples = measure(|| {
        server.big_in(me, &bytes);
        Ok(())
    })?;
    row!(samples, "lrpc/big-in-plain-user");
    let samples = measure(|| {
        core::hint::black_box(server.big_in_out(me, &bytes, Room::new(&mut room)));
        Ok(())
    })?;
    row!(samples, "lrpc/big-in-out-plain-user");
    Ok(())
}

fn measure(mut call: impl FnMut() -> Result<()>) -> Result<Samples> {
    let mut samples = Samples::start();
    // One place from which it is called: so it has no frame of its own, as in a program.
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            samples = Samples::start();
        }
        sample(&mut call)?;
    }
    Ok(samples)
}
