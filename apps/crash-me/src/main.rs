//! Commits every kind of fault, each in a thread of its own, and survives.
//!
//! The root task reports each one as a sentence and ends the thread; here it is
//! checked that the thread is gone and the task is not.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use runtime::misdeed::{self, Misdeed};
use runtime::{ipc, println, root, thread};

runtime::entry!(main);

/// How long a fault may take until the thread is gone, in steps of 1 ms.
const PATIENCE: u32 = 200;

/// Number of misdeeds that had no consequence.
static SURVIVED: AtomicU64 = AtomicU64::new(0);

fn main() {
    let mut ended = 0;
    for misdeed in misdeed::ALL {
        println!("crash-me: now {misdeed:?}");
        SURVIVED.store(0, Ordering::Relaxed);
        match thread::spawn(move || attempt(misdeed)) {
            Ok(victim) => {
                ended += u32::from(is_over(victim) && SURVIVED.load(Ordering::Relaxed) == 0)
            }
            Err(why) => println!("crash-me: no thread for {misdeed:?}: {why}."),
        }
    }
    println!(
        "crash-me: {ended} of {} faults ended their thread and nothing else.",
        misdeed::ALL.len()
    );
}

fn attempt(misdeed: Misdeed) {
    misdeed::commit(misdeed);
    SURVIVED.store(1, Ordering::Relaxed);
    println!(
        "crash-me: {misdeed:?} had no consequence: the processor or the kernel leaves that check off."
    );
}

/// Waits until `victim` is gone.
fn is_over(victim: abi::ThreadId) -> bool {
    for _ in 0..PATIENCE {
        if !root::is_alive(victim) {
            return true;
        }
        ipc::sleep(1000);
    }
    println!("crash-me: thread {victim} is still there after {PATIENCE} ms.");
    root::delete_thread(victim);
    false
}
