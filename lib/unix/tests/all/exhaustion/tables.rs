//! Tables of descriptors that one high number makes long.

use super::*;

#[test]
fn tables_of_descriptors() {
    exhausts(|program, _| {
        let file = program.call(l::__NR_eventfd2, &[0, 0]);
        if file < 0 {
            return file;
        }
        let child = program.call(l::__NR_fork, &[]);
        program.close(file as u64);
        if child < 0 {
            return child;
        }
        let thread = program.world.thread(child as u64);
        program.world.next_event(&thread);
        program.with(&thread).call(l::__NR_dup2, &[file as u64, 60_000])
    });
}
