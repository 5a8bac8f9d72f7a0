//! A server with a distributor and workers (Wenske 2002, 1.1; `runtime::workers`): so many requests are worked on
//! at once, more are queued, and what is too much is refused. Each request waits for something, as for a
//! device; so the same requests take a third of the time with three workers, and the distributor is there for
//! whoever asks meanwhile.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::sync::atomic::{AtomicUsize, Ordering};

use runtime::workers::{Event, Limits, Way, Workers};
use runtime::{clock, ipc, println};

runtime::entry!(main);

/// Requests, and what each waits for, µs.
const REQUESTS: u64 = 12;
const WAITS_US: u64 = 20_000;
/// How many may be in the queue.
const QUEUED: usize = 8;

/// Requests that are worked on, and the most that were at once.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// A request: a number, whose square is the answer.
struct Request {
    number: u64,
    answer: u64,
}

fn main() {
    for at_once in [1, 3] {
        match serve(at_once) {
            Some((ms, refused)) => println!(
                "workers: {REQUESTS} requests of {} ms, {} at once: {ms} ms, {refused} told to ask again.",
                WAITS_US / 1000,
                MOST.load(Ordering::Relaxed)
            ),
            None => return println!("workers: an answer is wrong, or a thread can't be had."),
        }
    }
}

/// What a worker does.
fn work(request: &mut Request) {
    let at_once = AT_WORK.fetch_add(1, Ordering::Relaxed) + 1;
    MOST.fetch_max(at_once, Ordering::Relaxed);
    ipc::sleep(WAITS_US);
    request.answer = request.number * request.number;
    AT_WORK.fetch_sub(1, Ordering::Relaxed);
}

/// Serves all requests with so many workers: how long that takes, ms, and how many were refused at first.
fn serve(at_once: usize) -> Option<(u64, u64)> {
    MOST.store(0, Ordering::Relaxed);
    let mut workers = Workers::new(Limits { at_once, queued: QUEUED }, Way::UserMode, work);
    let began = clock::now_us();
    let (mut next, mut done, mut refused) = (0, 0, 0);
    let mut sum = 0;
    while done < REQUESTS {
        while next < REQUESTS {
            if workers.give(Request { number: next, answer: 0 }).is_err() {
                refused += 1;
                break;
            }
            next += 1;
        }
        if workers.count() == (0, 0) {
            return None;
        }
        if let Event::Ended(_, request) = workers.wait() {
            done += 1;
            sum += request.answer;
        }
    }
    let expected: u64 = (0..REQUESTS).map(|number| number * number).sum();
    (sum == expected).then(|| ((clock::now_us() - began) / 1000, refused))
}
