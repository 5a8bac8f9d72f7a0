//! A server with a distributor and workers (Wenske 2002, 1.1; `runtime::workers`): so many requests are worked on
//! at once, more are queued, and what is too much is refused. Each request waits for something, as for a
//! device; so the same requests take a third of the time with three workers, and the distributor is there for
//! whoever asks meanwhile. Requests that compute take as long with several workers as with one, unless they run on several
//! processors: where the description says `processors = "all"` the workers are spread over all that run.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::fmt;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use runtime::workers::{Event, Limits, Way, Workers};
use runtime::{clock, ipc, println, utcb};

runtime::entry!(main);

/// Requests, what each waits for, µs, and how many rounds each computes.
const REQUESTS: u64 = 12;
const WAITS_US: u64 = 20_000;
const ROUNDS: u64 = 5_000_000;
/// How many may be in the queue.
const QUEUED: usize = 8;

/// Requests that are worked on, and the most that were at once.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
/// A bit for each processor on which one was.
static PLACES: AtomicU64 = AtomicU64::new(0);

/// A request: a number, whose square is the answer.
struct Request {
    number: u64,
    answer: u64,
}

/// The processors of these bits.
struct Places(u64);

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("on processor")?;
        (0..u64::BITS)
            .filter(|number| self.0 & 1 << number != 0)
            .try_for_each(|number| write!(f, " {number}"))
    }
}

fn main() {
    for at_once in [1, 3] {
        let Some((ms, refused)) = serve(at_once, wait) else { return complain() };
        println!(
            "workers: {REQUESTS} requests of {} ms, {} at once: {ms} ms, {refused} told to ask again, {}.",
            WAITS_US / 1000,
            MOST.load(Ordering::Relaxed),
            Places(PLACES.load(Ordering::Relaxed))
        );
    }
    for at_once in [1, 4] {
        let Some((ms, _)) = serve(at_once, compute) else { return complain() };
        println!(
            "workers: {REQUESTS} computations, {at_once} at once at most: {ms} ms, {}.",
            Places(PLACES.load(Ordering::Relaxed))
        );
    }
}

fn complain() {
    println!("workers: an answer is wrong, or a thread can't be had.");
}

/// What a worker does whose requests wait.
fn wait(request: &mut Request) {
    work(request, |number| {
        ipc::sleep(WAITS_US);
        number * number
    });
}

/// What a worker does whose requests compute.
fn compute(request: &mut Request) {
    work(request, |number| {
        let sum = (0..ROUNDS).fold(0, |sum: u64, round| black_box(sum + (number ^ round)));
        black_box(sum);
        number * number
    });
}

fn work(request: &mut Request, answer: fn(u64) -> u64) {
    let at_once = AT_WORK.fetch_add(1, Ordering::Relaxed) + 1;
    MOST.fetch_max(at_once, Ordering::Relaxed);
    PLACES.fetch_or(1 << utcb::processor(), Ordering::Relaxed);
    request.answer = answer(request.number);
    AT_WORK.fetch_sub(1, Ordering::Relaxed);
}

/// Serves all requests with so many workers: how long that takes, ms, and how many were refused at first.
fn serve(at_once: usize, work: fn(&mut Request)) -> Option<(u64, u64)> {
    MOST.store(0, Ordering::Relaxed);
    PLACES.store(0, Ordering::Relaxed);
    let limits = Limits { at_once, queued: QUEUED };
    let mut workers = Workers::new(limits, Way::UserMode, work).spread();
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
