//! Entries of epolls.

use linux_raw_sys::general as l;

use super::{FRAMES, exhausts};
use crate::common::World;
use crate::common::caller::Program;
use crate::given_back;

#[test]
fn entries_of_epolls() {
    exhausts(|program, _| {
        let epoll = program.call(l::__NR_epoll_create1, &[0]);
        let file = program.call(l::__NR_eventfd2, &[1, 0]);
        if epoll < 0 || file < 0 {
            return epoll.min(file);
        }
        for _ in 0..500 {
            let copy = program.call(l::__NR_dup, &[file as u64]);
            let add = [epoll as u64, l::EPOLL_CTL_ADD.into(), copy as u64, program.buffer];
            let result = if copy < 0 { copy } else { program.call(l::__NR_epoll_ctl, &add) };
            if result < 0 {
                return result;
            }
        }
        0
    });
}

#[test]
fn an_entry_that_comes_and_goes_leaves_nothing() {
    let world = World::with_frames(FRAMES);
    let root = Program::new(&world, &world.first);
    let epoll = root.call(l::__NR_epoll_create1, &[0]) as u64;
    let file = root.call(l::__NR_eventfd2, &[1, 0]) as u64;
    given_back::limit(1 << 20);
    for _ in 0..100_000 {
        for what in [l::EPOLL_CTL_ADD, l::EPOLL_CTL_DEL] {
            assert_eq!(root.call(l::__NR_epoll_ctl, &[epoll, what.into(), file, root.buffer]), 0);
        }
    }
    given_back::no_limit();
}
