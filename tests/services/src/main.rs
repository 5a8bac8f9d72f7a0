//! The server: does what `wit/carried.wit` says, over messages and procedure calls.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use runtime::service::serve_calls;
use runtime::{println, root};
use service_tests::carried::{INPUT, OUTPUT, ROOM, Serve};
use service_tests::server::Carried;

runtime::entry!(main);

/// Threads on which calls run.
const HOSTS: usize = 2;

fn main() {
    if let Err(why) = root::register("carried") {
        return println!("carried: it cannot be found under this name: {why}.");
    }
    serve_calls::<_, INPUT, ROOM, OUTPUT>(&Serve(&Carried), HOSTS)
}
