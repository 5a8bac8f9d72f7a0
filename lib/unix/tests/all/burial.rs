//! The end of what asks for no memory: it comes when there is none.

use linux_raw_sys::general as l;
use unix::machine::Access;

use crate::common::World;
use crate::common::caller::Program;
use crate::given_back;

const PAGE: u64 = 4096;

/// A process that is killed because memory is used up has thousands of shared memories. What
/// was left of each was noted in a list that grew: the server had 884,736 bytes less than that.
#[test]
fn thousands_of_shared_memories_die_without_memory() {
    let world = World::with_frames(8192);
    let first = Program::new(&world, &world.first);
    let user = first.fork();
    user.lose_privileges();
    for _ in 0..3000 {
        let at = user.call(l::__NR_mmap, &[0, 2 * PAGE, 3, 0x21, u64::MAX, 0]);
        assert!(at > 0, "mmap gave {at}");
        world.unix.page_fault(&user.thread, at as u64, Access::WRITE);
        world.collect();
        while world.next_event(&user.thread).is_some() {}
    }
    let free = world.unix.memory.available();
    given_back::limit(4096);
    world.call(&user.thread, l::__NR_exit_group, &[0]);
    given_back::no_limit();
    world.next_event(&user.thread);
    let (any, options) = (u64::MAX, u64::from(l::WNOHANG | l::__WALL));
    while world.now(&world.first, l::__NR_wait4, &[any, 0, options, 0]) as i64 > 0 {}
    // What is dead is buried when somebody wants something.
    first.call(l::__NR_fork, &[]);
    assert!(world.unix.memory.available() >= free + 2900, "the pages did not come back");
}
