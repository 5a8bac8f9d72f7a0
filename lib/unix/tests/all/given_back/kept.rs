//! Tables of what is there keep nothing of what is not any more, even if nobody uses them again, or it is paid for.

use linux_raw_sys::general as l;

use super::{LIVE, ends, ok};
use unix::account::What;

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDWR};

/// How many there are at once, and before, so that what is made once is there.
const MANY: usize = 600;
const FEW: usize = 8;
/// What a table may keep of each: more bytes than that, if all of it stays.
const EACH: usize = 16;

/// `round` makes so many of something and takes all away.
#[track_caller]
fn keeps_little((few, many): (usize, usize), round: impl Fn(&Program<'_>, usize)) {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    round(&program, few);
    let before = LIVE.get();
    round(&program, many);
    let left = LIVE.get() - before;
    assert!(left < (EACH * many) as isize, "{left} bytes are left of {many}");
}

#[test]
fn keys() {
    const SESSION: u64 = -3_i64 as u64;
    const UNLINK: u64 = 9;
    keeps_little((FEW, MANY), |program, count| {
        let key = |index: usize| {
            let kind = program.path(0, b"user");
            let name = program.path(1, format!("key {index}").as_bytes());
            ok(program, l::__NR_add_key, &[kind, name, program.buffer, 8, SESSION])
        };
        let keys: Vec<u64> = (0..count).map(key).collect();
        for key in keys {
            ok(program, l::__NR_keyctl, &[UNLINK, key, SESSION]);
        }
    });
}

#[test]
fn files_with_handles() {
    keeps_little((FEW, MANY), |program, count| {
        let names: Vec<String> = (0..count).map(|index| format!("/tmp/f{index}")).collect();
        let at = program.buffer;
        for name in &names {
            program.close(program.opened(name, RDWR | CREAT));
            program.world.write(&program.thread, at, &128_u32.to_le_bytes());
            let path = program.path(0, name.as_bytes());
            ok(program, l::__NR_name_to_handle_at, &[0, path, at, at + 256, 0]);
        }
        for name in &names {
            assert_eq!(program.on(l::__NR_unlink, name, &[]), 0);
        }
    });
}

#[test]
fn files_that_processes_have_mapped() {
    keeps_little((1, MANY / 6), |program, count| {
        let file = program.opened("/tmp/m", RDWR | CREAT);
        ok(program, l::__NR_ftruncate, &[file, 0x1000]);
        let at = ok(program, l::__NR_mmap, &[0, 0x1000, 3, 1, file, 0]);
        let children: Vec<_> = (0..count).map(|_| program.world.fork(&program.thread)).collect();
        children.iter().for_each(|child| ends(program, child));
        ok(program, l::__NR_munmap, &[at, 0x1000]);
        program.close(file);
    });
}

/// The other way round: a process that goes on has mapped files that are no more.
#[test]
fn files_that_a_process_has_mapped() {
    keeps_little((FEW, MANY), |program, count| {
        for _ in 0..count {
            let file = program.opened("/tmp/m", RDWR | CREAT);
            ok(program, l::__NR_ftruncate, &[file, 0x1000]);
            let at = ok(program, l::__NR_mmap, &[0, 0x1000, 3, 1, file, 0]);
            ok(program, l::__NR_munmap, &[at, 0x1000]);
            assert_eq!(program.on(l::__NR_unlink, "/tmp/m", &[]), 0);
            program.close(file);
        }
    });
}

/// Many at once are remembered by the process, which goes on: it pays for that.
#[test]
fn files_that_a_process_had_mapped_at_once() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let user = world.unix.accounts.user(0);
    let round = |count: usize| {
        for index in 0..count {
            let file = program.opened(&format!("/tmp/m{index}"), RDWR | CREAT);
            ok(&program, l::__NR_ftruncate, &[file, 0x1000]);
            let at = ok(&program, l::__NR_mmap, &[0, 0x1000, 3, 1, file, 0]);
            ok(&program, l::__NR_munmap, &[at, 0x1000]);
            program.close(file);
        }
        for index in 0..count {
            assert_eq!(program.on(l::__NR_unlink, &format!("/tmp/m{index}"), &[]), 0);
        }
    };
    round(FEW);
    let before = (LIVE.get(), user.used(What::Heap));
    round(MANY);
    let left = LIVE.get() - before.0;
    let paid = user.used(What::Heap).cast_signed() - before.1.cast_signed();
    assert!(left as i64 <= paid + 4096, "{left} bytes are left, {paid} are paid for");
    assert!(paid < 128 * MANY as i64, "{paid} bytes are paid for");
}
