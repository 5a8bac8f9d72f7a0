//! IPC on a running kernel, broadly: every form, every error, strings, mappings,
//! propagation, deletion, and the fast path against the complete path.
//!
//! A root task without servers. The first thread conducts: it gives orders to
//! puppets (threads in three spaces), lets them run until all wait, and looks at
//! what each of them saw. One line per test, then `tests done`.
#![no_std]
#![no_main]
// A failed test says what it saw; nobody waits for it.
#![allow(clippy::result_large_err)]

mod deletions;
mod errors;
mod faults;
mod forms;
mod items;
mod order;
mod pager;
mod partners;
mod paths;
mod places;
mod puppet;
mod raw;
mod short_strings;
mod speed;
mod stage;
mod storm;
mod strings;
mod verdict;
mod visits;

use runtime::{boot_entry, direct_println};
use stage::Stage;
use verdict::Test;

boot_entry!(main);

/// A group: its name and its tests.
type Group = (&'static str, &'static [Test]);

const GROUPS: [Group; 12] = [
    ("forms", forms::TESTS),
    ("errors", errors::TESTS),
    ("strings", strings::TESTS),
    ("short_strings", short_strings::TESTS),
    ("faults", faults::TESTS),
    ("deletions", deletions::TESTS),
    ("items", items::TESTS),
    ("partners", partners::TESTS),
    ("speed", speed::TESTS),
    ("paths", paths::TESTS),
    ("storm", storm::TESTS),
    ("visits", visits::TESTS),
];

fn main() -> ! {
    root_harness::begin();
    places::read();
    let stage = match Stage::build() {
        Ok(stage) => stage,
        Err(what) => {
            direct_println!(
                "test stage ... FAILED: {what} was refused; the kernel's error code is {}",
                runtime::utcb::error_code()
            );
            root_harness::end(false)
        }
    };
    let mut failures: usize = GROUPS.iter().map(|group| run(&stage, group)).sum();
    if !raw::stack_sufficed() {
        failures += 1;
        direct_println!(
            "test stage::stack ... FAILED: the conductor used up its stack; keep large values in statics"
        );
    }
    root_harness::end(failures == 0)
}

/// Runs a group, then the kernel's own checker; returns the number of failures.
fn run(stage: &Stage, (group, tests): &Group) -> usize {
    let mut failures = 0;
    for (name, test) in *tests {
        if let Some(why) = places::unfit(name) {
            direct_println!("{group}::{name} is of one processor: {why}");
            direct_println!("test {group}::{name} ... skipped");
            continue;
        }
        stage.reset();
        let verdict = test(stage);
        failures += usize::from(verdict.is_err());
        match verdict {
            Ok(()) => direct_println!("test {group}::{name} ... ok"),
            Err(complaint) => direct_println!("test {group}::{name} ... FAILED: {complaint}"),
        }
    }
    stage.reset();
    let violations = root_harness::violations();
    if violations == 0 {
        direct_println!("test {group}::kernel_checker ... ok");
    } else {
        direct_println!(
            "test {group}::kernel_checker ... FAILED: the kernel found {violations} broken invariants"
        );
    }
    failures + usize::from(violations != 0)
}
