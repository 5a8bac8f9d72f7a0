//! The client: every function of the interface over every carrier, with every length, and the end of the server.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use abi::{ThreadId, Time, Timeouts};
use runtime::service::{self, Carrier, Error, Link, Neighbour, Thread, Transport};
use runtime::{ipc, println, root, thread};
use service_tests::carried::{Client, INTERFACE, Kind, Pair, ROOM, Serve, Wide};
use service_tests::server::Carried;

runtime::entry!(main);

/// How long the server may take to start, ms.
const PATIENCE_MS: u64 = 2000;

/// What went wrong.
type Verdict = Result<(), &'static str>;

fn main() {
    show("every_form_by_messages", server().and_then(|server| all(&Client::new(Thread(server)))));
    show("every_form_by_procedure_calls", by_calls());
    show("every_form_by_calls_of_functions", inside());
    show("every_form_without_a_message", without_messages());
    show("a_server_of_the_task_is_called_by_local_ipc", local());
    show("a_neighbour_is_called_by_local_ipc", neighbour());
    show("every_form_by_a_proxy", far());
    show("who_was_behind_a_proxy_is_near_when_it_binds_again", no_longer_far());
    show("a_link_is_switched_between_its_carriers", switched());
    show("no_host_is_left_and_messages_go_on", busy());
    show("a_host_that_fails_is_an_error_of_its_caller", failed());
    show("a_server_that_starts_again_is_found_again", found_again());
    show("messages_stay_messages_when_it_starts_again", still_messages());
    show("a_procedure_call_in_flight_is_lost", in_flight(Transport::Calls));
    show("a_message_in_flight_is_lost", in_flight(Transport::Messages));
    show("without_a_name_it_is_not_looked_for", without_name());
    println!("tests done");
}

fn show(name: &str, verdict: Verdict) {
    match verdict {
        Ok(()) => println!("test carriers::{name} ... ok"),
        Err(why) => println!("test carriers::{name} ... FAILED: {why}"),
    }
}

fn server() -> Result<ThreadId, &'static str> {
    root::find("carried", PATIENCE_MS).map_err(|_| "the server cannot be found")
}

/// A client that is bound by procedure calls.
fn bound() -> Result<Client<Link>, &'static str> {
    Client::bind(Link::new(server()?)).map_err(|_| "the server does not fit")
}

fn by_calls() -> Verdict {
    let link = Link::new(server()?);
    link.take_calls();
    if link.transport() != Transport::Calls {
        return Err("the server takes no procedure calls");
    }
    all(&Client::new(&link))?;
    if link.transport() == Transport::Calls { Ok(()) } else { Err("the binding was given up") }
}

/// What the server's task serves, served by this one, too.
static OWN: Serve<'static, Carried> = Serve(&Carried);

fn inside() -> Verdict {
    ensure(service::offer::<_, ROOM>(&OWN, thread::me()), "there is no place for a server")?;
    let link = Link::new(thread::me());
    link.take_calls();
    ensure(link.transport() == Transport::Inside, "a server of the task is no function")?;
    let client = Client::new(&link);
    all(&client)?;
    let mut room = [0; 1000];
    ensure(client.echo_long(&[0; 1001], &mut room) == Err(Error::TooLong), "too much is taken")?;
    ensure(client.echo_long(&[7; 1000], &mut room[..999]).is_err(), "no room is enough")?;
    link.take_messages();
    ensure(link.transport() == Transport::Messages, "it takes what it was told not to")?;
    let other = Link::new(server()?);
    other.take_calls();
    ensure(
        other.transport() == Transport::Calls,
        "a server of another task is taken for one of this",
    )
}

/// A client that has bound calls what it has found then; one that binds after the link was told otherwise does not.
fn without_messages() -> Verdict {
    let server = thread::spawn(|| service::serve_local(&OWN, &mut [0; ROOM]))
        .map_err(|_| "there is no thread")?;
    ensure(service::offer::<_, ROOM>(&OWN, server), "there is no place for a server")?;
    let link = Link::new(server);
    let before = Client::bind(&link).map_err(|_| "the server does not fit")?;
    link.take_calls();
    ensure(link.transport() == Transport::Inside, "a server of the task is no function")?;
    let client = Client::bind(&link).map_err(|_| "the server does not fit")?;
    all(&client)?;
    all(&before)?;
    let mut room = [0; 1000];
    ensure(client.echo_long(&[0; 1001], &mut room) == Err(Error::TooLong), "too much is taken")?;
    ensure(client.echo_long(&[7; 1000], &mut room[..999]).is_err(), "no room is enough")?;
    ensure(client.lengthen("abc", &mut room[..30]).is_ok(), "enough room is none")?;
    link.take_messages();
    ensure(link.transport() == Transport::Messages, "it takes what it was told not to")?;
    let later = Client::bind(&link).map_err(|_| "the server does not fit")?;
    some(&later)?;
    some(&before)?;
    root::delete_thread(server);
    ensure(later.add(1, 2).is_err(), "a server that has gone answers messages")?;
    ensure(before.add(1, 2).is_err(), "a client calls what it has not found")?;
    ensure(client.add(1, 2) == Ok(3), "a function has gone with its thread")
}

/// What no link has to find out.
fn neighbour() -> Verdict {
    let server = thread::spawn(|| service::serve_local(&OWN, &mut [0; ROOM]))
        .map_err(|_| "there is no thread")?;
    ensure(Neighbour::of(self::server()?).is_none(), "another task's server is a neighbour")?;
    let neighbour = Neighbour::of(server).ok_or("a thread of the task is none")?;
    let client = Client::bind(neighbour).map_err(|_| "the server does not fit")?;
    (0..100).try_for_each(|_| some(&client))?;
    root::delete_thread(server);
    ensure(client.add(1, 2).is_err(), "a server that has gone answers")
}

fn local() -> Verdict {
    let server = thread::spawn(|| service::serve_local(&OWN, &mut [0; ROOM]))
        .map_err(|_| "there is no thread")?;
    let link = Link::new(server);
    let client = Client::bind(&link).map_err(|_| "the server does not fit")?;
    ensure(link.transport() == Transport::Local, "a server of the task is taken for another's")?;
    for _ in 0..100 {
        some(&client)?;
    }
    link.take_messages();
    ensure(link.transport() == Transport::Messages, "it takes what it was told not to")?;
    some(&client)?;
    link.take_local();
    some(&client)?;
    root::delete_thread(server);
    ensure(client.add(1, 2).is_err(), "a server that has gone answers")
}

/// What is said of a server behind a proxy: no procedure calls lead there, and its end is seen through it.
fn far() -> Verdict {
    let link = Link::find("far", PATIENCE_MS).map_err(|_| "the proxy cannot be found")?;
    let client = Client::bind(&link).map_err(|_| "the server behind it does not fit")?;
    ensure(link.transport() == Transport::Far, "a server behind a proxy is taken for a near one")?;
    all(&client)?;
    link.take_calls();
    ensure(link.transport() == Transport::Far, "it has bound where there is nothing to bind to")?;
    ensure(client.fail() == Err(Error::Lost), "a call whose server has failed is not lost")?;
    until(|| client.add(3, 4) == Ok(7))?;
    some(&client)
}

/// A thread of this task that says it is a proxy the first time, and serves then.
fn no_longer_far() -> Verdict {
    let first_far = || {
        let (client, request) = ipc::request();
        if let Some((mut answer, _)) = service::describe(&INTERFACE, &request).message() {
            answer.mr[0] |= service::IS_FAR;
            let at_once = Timeouts::new(Time::ZERO, Time::NEVER);
            let _ = ipc::lipc(client, ThreadId::NIL, at_once, &answer);
        }
        service::serve_local(&OWN, &mut [0; ROOM])
    };
    let server = thread::spawn(first_far).map_err(|_| "there is no thread")?;
    let link = Link::new(server);
    Client::bind(&link).map_err(|_| "the proxy does not fit")?;
    ensure(link.transport() == Transport::Far, "a proxy is taken for the server")?;
    let client = Client::bind(&link).map_err(|_| "the server does not fit")?;
    ensure(link.transport() == Transport::Local, "a server that is here is taken for far")?;
    some(&client)?;
    root::delete_thread(server);
    Ok(())
}

fn switched() -> Verdict {
    let link = Link::new(server()?);
    for _ in 0..3 {
        link.take_calls();
        some(&Client::new(&link))?;
        link.take_messages();
        if link.transport() != Transport::Messages {
            return Err("a link that was told to take messages takes none");
        }
        some(&Client::new(&link))?;
    }
    Ok(())
}

/// All forms, with all lengths.
fn all<C: Carrier>(client: &Client<C>) -> Verdict {
    some(client)?;
    let mut text = [0_u8; 200];
    text.iter_mut().zip(0..).for_each(|(byte, index)| *byte = b'a' + index % 26);
    let text = core::str::from_utf8(&text).unwrap_or("");
    let mut room = [0; 1000];
    for len in 0..=text.len() {
        let part = &text[..len];
        let same = client.echo_text(part, &mut room[..200]) == Ok(part);
        ensure(same, "a text is not the same again")?;
        let count = part.bytes().filter(|byte| *byte == b'c').count() as u32;
        ensure(client.count(b'c', part) == Ok(count), "a text is counted wrong")?;
        let dots = client.repeat('.', len as u32, &mut room[..200]);
        let right =
            dots.is_ok_and(|dots| dots.len() == len && dots.bytes().all(|byte| byte == b'.'));
        ensure(right, "an answer that is text alone is wrong")?;
        ensure(
            len == 0 || client.echo_text(part, &mut room[..len - 1]).is_err(),
            "no room is enough",
        )?;
    }
    for len in 0..=60 {
        let (first, second) = (&text[..len], &text[60 - len..120 - 2 * len]);
        let given = Pair { first, second };
        let swapped = client.swap(given, 7, &mut room[..121]);
        ensure(swapped == Ok(Pair { first: second, second: first }), "a pair is not swapped")?;
    }
    strings(client, text)
}

/// Functions that have strings.
fn strings<C: Carrier>(client: &Client<C>, text: &str) -> Verdict {
    let (mut bytes, mut room) = ([0_u8; 1000], [0; 1000]);
    bytes.iter_mut().zip(0..).for_each(|(byte, index)| *byte = b'a' + (index % 23) as u8);
    for len in (0..=1000).step_by(17) {
        let part = &bytes[..len];
        ensure(client.echo_long(part, &mut room) == Ok(part), "bytes are not the same again")?;
        let short = client.shorten(part, &mut room[..100]);
        let right = short.is_ok_and(|short| {
            short.len() == len.div_ceil(10) && short.bytes().eq(part.iter().step_by(10).copied())
        });
        ensure(right, "bytes are shortened wrong")?;
    }
    for len in 0..=100 {
        let long = client.lengthen(&text[..len], &mut room);
        let right = long.is_ok_and(|long| {
            long.len() == 10 * len
                && (0..10).all(|at| long[at * len..][..len] == text.as_bytes()[..len])
        });
        ensure(right, "a text is lengthened wrong")?;
    }
    Ok(())
}

/// Functions of words, and few others.
fn some<C: Carrier>(client: &Client<C>) -> Verdict {
    ensure(client.null() == Ok(()), "null fails")?;
    ensure(client.add(3, 4) == Ok(7), "a sum is wrong")?;
    ensure(client.seven(1, 2, 3, 4, 5, 6, 7) == Ok(1_234_567), "seven words are others")?;
    let wide = Wide { a: 5, b: 6, c: 7, d: 8, e: 9, f: 10, g: 11, h: 12, i: 13, j: 14 };
    ensure(client.widen(5) == Ok(wide), "ten words of an answer are others")?;
    ensure(client.narrow(wide, 1000) == Ok(1095), "eleven words of a request are others")?;
    let mut room = [0; 40];
    ensure(client.perhaps(false, Kind::Small, &mut room) == Ok(None), "nothing is something")?;
    ensure(client.perhaps(true, Kind::Large, &mut room) == Ok(Some("large")), "a name is another")
}

/// Both hosts are in calls of other threads: this one's calls go by messages.
fn busy() -> Verdict {
    let client = bound()?;
    for _ in 0..2 {
        let waits = || {
            if let Ok(client) = bound() {
                STARTED.fetch_add(1, Relaxed);
                let outcome = client.wait(300);
                ENDED.fetch_add(u32::from(outcome == Ok(())), Relaxed);
            }
        };
        thread::spawn(waits).map_err(|_| "there is no thread")?;
    }
    until(|| STARTED.load(Relaxed) == 2)?;
    ipc::sleep(20_000);
    some(&client)?;
    ensure(ENDED.load(Relaxed) == 0, "the others had ended already")?;
    until(|| ENDED.load(Relaxed) == 2)?;
    some(&client)
}

static STARTED: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

/// Waits a second at most.
fn until(done: impl Fn() -> bool) -> Verdict {
    for _ in 0..200 {
        if done() {
            return Ok(());
        }
        ipc::sleep(5000);
    }
    Err("the other threads have come to nothing")
}

/// The thread of the server that ran the call is gone; others serve.
fn failed() -> Verdict {
    let client = bound()?;
    ensure(client.fail() == Err(Error::Lost), "a call whose host failed is not lost")?;
    some(&client)?;
    some(&bound()?)
}

/// A client that is bound by `transport` to the server with the name.
fn named(transport: Transport) -> Result<Link, &'static str> {
    let link = Link::find("carried", PATIENCE_MS).map_err(|_| "the server cannot be found")?;
    Client::bind(&link).map_err(|_| "the server does not fit")?;
    if transport == Transport::Messages {
        link.take_messages();
    }
    ensure(link.transport() == transport, "the link does not take what it should")?;
    Ok(link)
}

/// The server's next life.
fn restart() -> Verdict {
    root::restart("carried").map_err(|_| "the server cannot be started again")
}

/// The first call after each restart is another one: one of many words, one with a string, one that has a body.
fn found_again() -> Verdict {
    let link = named(Transport::Calls)?;
    let client = Client::new(&link);
    let mut room = [0; 1000];
    some(&client)?;
    restart()?;
    let wide = Wide { a: 5, b: 6, c: 7, d: 8, e: 9, f: 10, g: 11, h: 12, i: 13, j: 14 };
    ensure(client.narrow(wide, 1000) == Ok(1095), "many words are others after a restart")?;
    ensure(link.transport() == Transport::Calls, "it has not bound again")?;
    restart()?;
    let bytes = [7; 777];
    ensure(client.echo_long(&bytes, &mut room) == Ok(&bytes[..]), "a string is lost by a restart")?;
    ensure(link.transport() == Transport::Calls, "it has not bound again")?;
    restart()?;
    let text = "The quick brown fox jumps over the lazy dog, again, and again, and again.";
    ensure(client.echo_text(text, &mut room[..200]) == Ok(text), "a text is lost by a restart")?;
    ensure(link.transport() == Transport::Calls, "it has not bound again")?;
    all(&client)
}

fn still_messages() -> Verdict {
    let link = named(Transport::Messages)?;
    restart()?;
    some(&Client::new(&link))?;
    ensure(link.transport() == Transport::Messages, "it takes what it was told not to")
}

/// The server's task ends while a thread is in a call: the call is lost, and the next one is not.
fn in_flight(transport: Transport) -> Verdict {
    OUTCOME.store(WAITS, Relaxed);
    let waits = move || {
        let outcome = match named(transport) {
            Ok(link) => {
                let client = Client::new(&link);
                OUTCOME.store(CALLS, Relaxed);
                match (client.wait(10_000), client.add(1, 2)) {
                    (Err(Error::Lost), Ok(3)) => LOST,
                    (Err(Error::Lost), _) => GONE,
                    _ => OTHER,
                }
            }
            Err(_) => OTHER,
        };
        OUTCOME.store(outcome, Relaxed);
    };
    thread::spawn(waits).map_err(|_| "there is no thread")?;
    until(|| OUTCOME.load(Relaxed) == CALLS)?;
    ipc::sleep(50_000);
    ensure(OUTCOME.load(Relaxed) == CALLS, "the call was over too soon")?;
    restart()?;
    until(|| OUTCOME.load(Relaxed) > CALLS)?;
    match OUTCOME.load(Relaxed) {
        LOST => Ok(()),
        GONE => Err("the call is lost, and the next one, too"),
        _ => Err("the call has another end"),
    }
}

const WAITS: u32 = 0;
const CALLS: u32 = 1;
const LOST: u32 = 2;
const GONE: u32 = 3;
const OTHER: u32 = 4;
static OUTCOME: AtomicU32 = AtomicU32::new(WAITS);

fn without_name() -> Verdict {
    let client = bound()?;
    restart()?;
    let gone = client.add(1, 2);
    ensure(matches!(gone, Err(Error::Ipc(_))), "a server that has gone is not said to be")?;
    some(&bound()?)
}

fn ensure(right: bool, otherwise: &'static str) -> Verdict {
    if right { Ok(()) } else { Err(otherwise) }
}
