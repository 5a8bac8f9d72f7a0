//! A client: pins a note, reads it, takes it down.
//!
//! Its description must say `uses = ["console", "own-service"]`.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use own_service::own_service::{Client, ROOM};
use runtime::service::Thread;
use runtime::{println, root};

runtime::entry!(main);

/// How long the server may take to start, ms.
const PATIENCE_MS: u64 = 1000;

fn main() {
    let server = match root::find("own-service", PATIENCE_MS) {
        Ok(server) => server,
        Err(why) => return println!("ask-own-service: own-service cannot be found: {why}."),
    };
    let board = match Client::bind(Thread(server)) {
        Ok(board) => board,
        Err(why) => return println!("ask-own-service: {why}"),
    };
    let number = match board.pin("Buy milk, and 20 € of bread.") {
        Ok(Ok(number)) => number,
        Ok(Err(trouble)) => return println!("ask-own-service: refused: {trouble:?}."),
        Err(error) => return println!("ask-own-service: {error}."),
    };
    let mut room = [0; ROOM];
    match board.read(number, &mut room) {
        Ok(Ok(text)) => println!("Note {number} has {} bytes: {text}", text.len()),
        other => println!("ask-own-service: note {number} cannot be read: {other:?}."),
    }
    println!(
        "Taken down: {:?}; once more: {:?}.",
        board.take_down(number),
        board.take_down(number)
    );
}
