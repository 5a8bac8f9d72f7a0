//! Every system call but IPC: results, refusals, side effects.

mod control;
mod exchange;
mod interface;
mod quota;
mod schedule;
mod space;
mod switch;
mod task;
mod thread;
mod unmap;

/// Runs the tests of this group.
pub fn run() {
    interface::run();
    exchange::run();
    thread::run();
    task::run();
    space::run();
    schedule::run();
    switch::run();
    unmap::run();
    control::run();
    quota::run();
}
