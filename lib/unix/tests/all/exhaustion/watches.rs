//! Watches, and what they have to tell.

use std::cell::Cell;

use linux_raw_sys::general as l;

use super::exhausts;
use crate::common::caller::{CREAT, Program, RDWR};

fn new(program: &Program<'_>) -> i64 {
    program.call(l::__NR_inotify_init1, &[l::IN_NONBLOCK.into()])
}

#[test]
fn inotifies() {
    exhausts(|program, _| new(program));
}

#[test]
fn watches_and_what_they_tell() {
    // The children have it, too.
    let inotify = Cell::new(-1);
    exhausts(|program, number| {
        if inotify.get() < 0 {
            inotify.set(new(program));
        }
        let name = format!("/tmp/{number}-{}", "n".repeat(200));
        let file = program.open(&name, RDWR | CREAT, 0o644);
        if file < 0 {
            return file;
        }
        let path = program.path(0, name.as_bytes());
        let watch = [inotify.get() as u64, path, l::IN_ALL_EVENTS.into()];
        let added = program.call(l::__NR_inotify_add_watch, &watch);
        for _ in 0..10 {
            program.call(l::__NR_pread64, &[file as u64, program.buffer, 1, 0]);
            program.call(l::__NR_pwrite64, &[file as u64, program.buffer, 1, 0]);
        }
        program.close(file as u64);
        added
    });
}
