//! Calls that move much: others have their turn meanwhile.

use linux_raw_sys::general as l;

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDWR};

const LEN: u64 = 18 << 20;

/// Two processes, a file of more than `LEN` bytes that is a hole, and `LEN` bytes of memory of the first.
fn prepared<'a>(world: &'a World) -> ([Program<'a>; 2], u64, u64) {
    let program = Program::new(world, &world.first);
    let other = program.fork();
    let file = program.opened("/tmp/long", RDWR | CREAT);
    assert_eq!(program.call(l::__NR_ftruncate, &[file, LEN + 100]), 0);
    let flags = u64::from(l::MAP_PRIVATE | l::MAP_ANONYMOUS);
    let at = program.call(l::__NR_mmap, &[0, LEN, 3, flags, u64::MAX, 0]) as u64;
    ([program, other], file, at)
}

/// The result of a call that others are not to wait for, if they have had their turn a few times.
fn in_turns([program, other]: &[Program<'_>; 2], number: u32, arguments: &[u64]) -> u64 {
    let world = program.world;
    assert_eq!(world.call(&program.thread, number, arguments), None, "call {number} has no end");
    for turns in 1..100 {
        assert!(other.call(l::__NR_getpid, &[]) > 0);
        world.advance(10_000);
        if let Some(result) = world.next_reply(&program.thread) {
            assert!(turns > 1, "nobody had a turn while call {number} went on");
            return result;
        }
    }
    panic!("call {number} never ends");
}

#[test]
fn others_have_their_turn() {
    let world = World::new();
    let (both, file, at) = prepared(&world);
    let program = &both[0];
    assert_eq!(in_turns(&both, l::__NR_read, &[file, at, LEN]), LEN);
    assert_eq!(program.call(l::__NR_lseek, &[file, 0, l::SEEK_CUR.into()]), LEN as i64);
    // What is left is less than was asked for.
    assert_eq!(program.call(l::__NR_read, &[file, at, LEN]), 100);
    assert_eq!(in_turns(&both, l::__NR_pread64, &[file, at, LEN, 50]), LEN);
    let half = LEN / 2;
    let ranges = world.words(&program.thread, &[at, half, 0, 0, at + half, half]);
    assert_eq!(in_turns(&both, l::__NR_preadv, &[file, ranges, 3, 0, 0]), LEN);
    assert_eq!(in_turns(&both, l::__NR_preadv, &[file, ranges, 3, half, 0]), half + 100);
    let zeros = program.opened("/dev/zero", RDWR);
    assert_eq!(in_turns(&both, l::__NR_read, &[zeros, at, LEN]), LEN);
}

/// Memory comes before it is touched, so much of it at a time.
#[test]
fn memory_comes_in_turns() {
    let world = World::new();
    let (both, file, at) = prepared(&world);
    let space = world.first.process().space();
    let come = |number, arguments: &[u64]| {
        let before = space.resident();
        let result = in_turns(&both, number, arguments);
        assert_eq!(space.resident() - before, LEN as usize / 4096);
        result
    };
    let dont_need = [at, LEN, l::MADV_DONTNEED.into()];
    assert_eq!(come(l::__NR_madvise, &[at, LEN, l::MADV_POPULATE_WRITE.into()]), 0);
    assert_eq!(both[0].call(l::__NR_madvise, &dont_need), 0);
    assert_eq!(come(l::__NR_mlock, &[at, LEN]), 0);
    assert_eq!(both[0].call(l::__NR_munlock, &[at, LEN]), 0);
    assert_eq!(both[0].call(l::__NR_madvise, &dont_need), 0);
    let flags = u64::from(l::MAP_PRIVATE | l::MAP_ANONYMOUS | l::MAP_POPULATE);
    let mapped = come(l::__NR_mmap, &[0, LEN, 3, flags, u64::MAX, 0]);
    assert_eq!(both[0].call(l::__NR_munmap, &[mapped, LEN]), 0);
    // Where there is a gap, what is in front of it has come.
    assert_eq!(both[0].call(l::__NR_munmap, &[at + LEN - 4096, 4096]), 0);
    let gap = in_turns(&both, l::__NR_madvise, &[at, LEN, l::MADV_POPULATE_READ.into()]);
    assert_eq!(gap as i64, -12);
    assert_eq!(both[0].call(l::__NR_ftruncate, &[file, 0]), 0);
    assert_eq!(in_turns(&both, l::__NR_fallocate, &[file, 0, 0, LEN]), 0);
    assert_eq!(both[0].call(l::__NR_lseek, &[file, 0, l::SEEK_HOLE.into()]), LEN as i64);
}

/// A file is mapped when its pages begin to come, even if its number ends meanwhile.
#[test]
fn who_closes_a_file_whose_pages_come_keeps_its_mapping() {
    let world = World::new();
    let (_, file, _) = prepared(&world);
    let first = &world.first;
    let flags = l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD | l::CLONE_FILES | l::CLONE_FS;
    let tid = world.ok(first, l::__NR_clone, &[flags.into(), 0, 0, 0, 0]);
    let sibling = world.thread(tid);
    let _ = world.next_event(&sibling);
    let flags = u64::from(l::MAP_SHARED | l::MAP_POPULATE);
    assert_eq!(world.call(first, l::__NR_mmap, &[0, LEN, 3, flags, file, 0]), None);
    world.ok(&sibling, l::__NR_close, &[file]);
    let mut result = None;
    while result.is_none() {
        world.advance(10_000);
        result = world.next_reply(first);
    }
    let at = result.expect("it has ended");
    assert_eq!(at % 4096, 0, "{}", at as i64);
    world.write(first, at + LEN - 4096, &[1]);
}

/// Of much memory that is not there one is told in turns, too.
#[test]
fn what_is_there_is_told_in_turns() {
    let world = World::new();
    let (both, _, vector) = prepared(&world);
    let flags = u64::from(l::MAP_PRIVATE | l::MAP_ANONYMOUS | l::MAP_NORESERVE);
    let len = 4096 * 1_000_000;
    let at = both[0].call(l::__NR_mmap, &[0, len, 3, flags, u64::MAX, 0]) as u64;
    world.write(&world.first, at + len - 4096, &[1]);
    assert_eq!(in_turns(&both, l::__NR_mincore, &[at, len, vector]), 0);
    assert_eq!(world.read(&world.first, vector + 999_998, 2), [0, 1]);
}

#[test]
fn what_is_written_in_turns_is_in_its_place() {
    let world = World::new();
    let (both, _, at) = prepared(&world);
    let program = &both[0];
    let file = program.opened("/tmp/written", RDWR | CREAT);
    let len = 10 << 20;
    for (index, offset) in [0, 4 << 20, (8 << 20) + 5, len - 8].into_iter().enumerate() {
        world.write(&program.thread, at + offset, &[index as u8 + 1; 8]);
    }
    let check = |start: u64| {
        for (index, offset) in [0, 4 << 20, (8 << 20) + 5, len - 8].into_iter().enumerate() {
            let arguments = [file, program.buffer, 8, start + offset];
            assert_eq!(program.call(l::__NR_pread64, &arguments), 8);
            let found = world.read(&program.thread, program.buffer, 8);
            assert_eq!(found, [index as u8 + 1; 8], "{offset}");
        }
    };
    assert_eq!(in_turns(&both, l::__NR_write, &[file, at, len]), len);
    check(0);
    assert_eq!(in_turns(&both, l::__NR_pwrite64, &[file, at, len, 3]), len);
    check(3);
    assert_eq!(program.call(l::__NR_lseek, &[file, 0, l::SEEK_CUR.into()]), len as i64);
}

#[test]
fn from_file_to_file_comes_in_parts() {
    let world = World::new();
    let (both, from, _) = prepared(&world);
    let program = &both[0];
    let to = program.opened("/copy", RDWR | CREAT);
    let most = 16 << 20;
    assert_eq!(program.call(l::__NR_sendfile, &[to, from, 0, LEN]), most);
    assert_eq!(program.call(l::__NR_sendfile, &[to, from, 0, LEN]), LEN as i64 + 100 - most);
    assert_eq!(program.call(l::__NR_lseek, &[from, 0, 0]), 0);
    assert_eq!(program.call(l::__NR_copy_file_range, &[from, 0, to, 0, LEN, 0]), most);
}
