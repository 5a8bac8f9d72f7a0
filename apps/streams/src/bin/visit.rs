//! A client of a Linux program: connects to the program's socket `/run/desk`, sends a line, and says what
//! comes back.
//!
//! Its description must say `uses = ["console", "unix"]`, that of the task `unix`
//! `args = "socket/visit=/run/desk"`.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use interfaces::sockets::{Client, ROOM, Trouble};
use runtime::service::Thread;
use runtime::{ipc, println, root};

runtime::entry!(main);

/// The program's socket.
const DESK: &str = "/run/desk";
/// How often, and how far apart in µs, it looks for somebody there.
const TRIES: u32 = 100;
const PAUSE_US: u64 = 100_000;

fn main() {
    let server = match root::find(proto::unix::NAME, 10_000) {
        Ok(server) => server,
        Err(why) => return println!("visit: the Unix server cannot be found: {why}."),
    };
    let unix = Client::new(Thread(server));
    let mut answer = unix.connect(DESK);
    for _ in 0..TRIES {
        if !matches!(answer, Ok(Err(Trouble::Unknown | Trouble::Refused | Trouble::Busy))) {
            break;
        }
        ipc::sleep(PAUSE_US);
        answer = unix.connect(DESK);
    }
    let desk = match answer {
        Ok(Ok(desk)) => desk,
        Ok(Err(trouble)) => return println!("visit: {DESK} cannot be connected to: {trouble:?}."),
        Err(error) => return println!("visit: {error}."),
    };
    println!("visit: user {} listens at {DESK}.", desk.uid);
    let sent = unix.connection_send(desk.connection, b"good day\n");
    let _ = unix.connection_shut(desk.connection);
    let mut room = [0; ROOM];
    match unix.connection_receive(desk.connection, &mut room) {
        Ok(Ok(text)) => println!("visit: {}", text.trim_ascii_end().escape_ascii()),
        other => println!("visit: sent {sent:?}, but there is no answer: {other:?}."),
    }
    let _ = unix.connection_drop(desk.connection);
}
