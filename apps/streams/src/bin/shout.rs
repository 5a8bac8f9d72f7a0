//! A service that Linux programs open as a file: what they write to `/srv/shout` comes back in capitals.
//!
//! Its description must say `provides = ["shout"]` and `uses = ["console", "unix"]`, that of the task
//! `unix` `uses = [.., "shout"]` and `args = "srv/shout=666"`.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use interfaces::sockets::{Client, Connection, Listener, ROOM, Trouble};
use runtime::service::{Caller, Error, Thread};
use runtime::{ipc, println, root, thread};

runtime::entry!(main);

/// How long it pauses when it cannot go on, µs.
const PAUSE_US: u64 = 100_000;

type Unix = Client<Thread>;

fn main() {
    if let Err(why) = root::register("shout") {
        return println!("shout: it cannot be found under this name: {why}.");
    }
    // The Unix server may start later, and again: then its sockets are new.
    loop {
        if let Ok(server) = root::lookup(proto::unix::NAME) {
            let unix = Client::new(Thread(server));
            match unix.listen("shout") {
                Ok(Ok(listener)) => serve(server, listener),
                Ok(Err(Trouble::NotAllowed)) => {
                    return println!(
                        "shout: the Unix server does not offer it; add srv/shout to its args, and shout to what it uses."
                    );
                }
                _ => {}
            }
        }
        ipc::sleep(PAUSE_US);
    }
}

/// Accepts connections, each served by a thread of its own, until the server ends.
fn serve(server: Caller, listener: Listener) {
    let unix: Unix = Client::new(Thread(server));
    loop {
        match unix.listener_accept(listener) {
            Ok(Ok(accepted)) => {
                let connection = accepted.connection;
                let served = thread::spawn(move || shout(Client::new(Thread(server)), connection));
                if served.is_err() {
                    let _ = unix.connection_drop(connection);
                }
            }
            // As many as there may be: one of them will end.
            Ok(Err(_)) => ipc::sleep(PAUSE_US),
            Err(_) => return,
        }
    }
}

/// Sends back what comes, in capitals. Whoever does not read waits alone.
fn shout(unix: Unix, connection: Connection) {
    let mut room = [0; ROOM];
    while let Ok(Ok(text)) = unix.connection_receive(connection, &mut room) {
        if text.is_empty() {
            break;
        }
        let mut text = text.to_ascii_uppercase();
        while !text.is_empty() {
            match unix.connection_send(connection, &text) {
                Ok(Ok(sent)) => drop(text.drain(..sent as usize)),
                _ => break,
            }
        }
    }
    let _: Result<_, Error> = unix.connection_drop(connection);
}
