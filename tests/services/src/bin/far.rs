//! A proxy of the server: whoever finds `far` is told that the server is somewhere else, and has every answer of it.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use runtime::service::{Link, forward};
use runtime::{println, root};
use service_tests::carried::{INPUT, OUTPUT};

runtime::entry!(main);

/// How long the server may take to start, ms.
const PATIENCE_MS: u64 = 2000;

fn main() {
    let server = match Link::find("carried", PATIENCE_MS) {
        Ok(server) => server,
        Err(why) => return println!("far: there is no server to pass requests on to: {why}."),
    };
    if let Err(why) = root::register("far") {
        return println!("far: it cannot be found under this name: {why}.");
    }
    forward(&server, &[], &mut [0; INPUT], &mut [0; OUTPUT])
}
