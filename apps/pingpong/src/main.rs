//! Instructions per IPC.
//!
//! Run it under an emulator that counts instructions as time (`-icount shift=0`):
//! then every figure is exact and repeats to the digit. On a real processor the
//! same program prints cycles of its time-stamp counter. It finds out and says which.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod fault;
mod measure;
mod text;

use abi::ThreadId;
use measure::{Figures, exchange};
use runtime::space::Child;
use runtime::{clock, println, thread};

runtime::entry!(main);

/// Message lengths measured, words.
const LENGTHS: [u32; 12] = [0, 1, 2, 4, 7, 8, 12, 16, 24, 32, 48, 63];

fn main() {
    heading();
    println!("pingpong: words   inside: call, reply, mean    between: call, reply, mean    ratio");
    let me = thread::me();
    let inside = thread::spawn(move || measure::serve(0, me));
    let between = Child::create().and_then(|child| {
        child
            .start(measure::serve_apart, me.0)
            .map(|()| child)
            .map_err(|_| runtime::root::Refusal::Kernel)
    });
    let (inside, between) = match (inside, between) {
        (Ok(inside), Ok(between)) => (inside, between),
        (Err(why), _) | (_, Err(why)) => {
            return println!("pingpong: no partner to play with: {why}.");
        }
    };
    let ready = measure::await_partner(inside).and_then(|()| measure::await_partner(between.id));
    if let Err(error) = ready {
        return println!("pingpong: a partner does not play: {error:?}.");
    }
    for words in LENGTHS {
        row(words, exchange(inside, 0, words), exchange(between.id, 1, words));
    }
    let (text_inside, text_between) = (text::measure(inside), text::measure(between.id));
    println!(
        "pingpong: string of {} bytes and an empty reply, round trip, user to user: {text_inside} inside, \
        {text_between} between",
        text::BYTES
    );
    thread_over(inside);
    between.delete();
    match fault::measure() {
        Ok(faults) => {
            println!("pingpong: page fault answered by a user-level pager, user to user: {faults}")
        }
        Err(why) => println!("pingpong: no space for the page-fault measurement: {why}."),
    }
    println!("pingpong: done.");
}

/// Says what the numbers are.
fn heading() {
    if clock::counts_instructions() {
        println!(
            "pingpong: kernel instructions per one-way IPC, minimum and mean of {} round trips",
            measure::ROUNDS
        );
        return;
    }
    println!(
        "pingpong: ticks of the time-stamp counter per one-way IPC, minimum and mean of {} round trips",
        measure::ROUNDS
    );
    println!("pingpong: on a processor these are cycles; under an emulator they mean nothing, and");
    println!("pingpong: `./baton run minimal --icount` counts instructions instead.");
}

fn row(words: u32, inside: Figures, between: Figures) {
    let ratio = between.round_trip() * 100 / inside.round_trip().max(1);
    println!("pingpong: {words:5}   {inside}    {between}    {}.{:02}", ratio / 100, ratio % 100);
}

fn thread_over(partner: ThreadId) {
    runtime::root::delete_thread(partner);
}
