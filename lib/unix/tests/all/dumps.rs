//! Core files.

use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as l;

/// The first process, which has no limit to its core files; a child inherits that.
fn without_limit(world: &World) {
    let limit = world.words(&world.first, &[u64::MAX, u64::MAX]);
    world.ok(&world.first, l::__NR_prlimit64, &[0, l::RLIMIT_CORE.into(), limit, 0]);
}

#[track_caller]
fn status(world: &World) -> u32 {
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, l::__NR_wait4, &[u64::MAX, at, 0, 0]);
    world.read_u32(&world.first, at)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn a_core_file_has_registers_and_memory() {
    let world = World::new();
    let first = &world.first;
    without_limit(&world);
    let text = world.put(first, b"what is to be found again");
    let hidden = world.ok(first, l::__NR_mmap, &[0, 4096, 3, 0x22, u64::MAX, 0]);
    world.write(first, hidden, b"what is not");
    world.ok(first, l::__NR_madvise, &[hidden, 4096, l::MADV_DONTDUMP.into()]);
    let child = world.fork(first);
    let pid = child.process.number;
    world.machine.with(child.machine.get(), |thread| thread.registers.r13 = 0x1234_5678);
    world.call(&child, l::__NR_kill, &[pid.into(), l::SIGABRT.into()]);
    assert_eq!(status(&world), l::SIGABRT | 0x80);
    let program = Program::new(&world, first);
    let core = program.contents("core");
    assert_eq!(core[..4], *b"\x7fELF");
    assert_eq!(core[16..20], [4, 0, 62, 0]);
    let entries = usize::from(core[56]) | usize::from(core[57]) << 8;
    let notes = word(&core, 64 + 8) as usize;
    assert_eq!(notes, 64 + 56 * entries);
    // The first note: CORE, 1, and the registers in it.
    assert_eq!(core[notes..notes + 20], *b"\x05\0\0\0\x50\x01\0\0\x01\0\0\0CORE\0\0\0\0");
    assert_eq!(core[notes + 20 + 12], l::SIGABRT as u8);
    assert_eq!(word(&core, notes + 20 + 112 + 16), 0x1234_5678);
    let entry = |address: u64| {
        let all = (1..entries).map(|index| 64 + index * 56);
        let mut fitting = all.filter(|at| {
            let start = word(&core, at + 16);
            (start..start + word(&core, at + 40)).contains(&address)
        });
        let at = fitting.next().unwrap();
        (word(&core, at + 8), word(&core, at + 16), word(&core, at + 32))
    };
    let (place, start, _) = entry(text);
    let at = (place + text - start) as usize;
    assert_eq!(core[at..at + 25], *b"what is to be found again");
    assert_eq!(entry(hidden).2, 0);
    assert!(!core.windows(11).any(|window| window == b"what is not"));
}

#[test]
fn who_has_no_core_file() {
    let world = World::new();
    let first = &world.first;
    let dies = |signal: u32| {
        let child = world.fork(first);
        world.call(&child, l::__NR_kill, &[child.process.number.into(), signal.into()]);
        status(&world)
    };
    // The limit is 0 at first.
    assert_eq!(dies(l::SIGSEGV), l::SIGSEGV);
    without_limit(&world);
    assert_eq!(dies(l::SIGTERM), l::SIGTERM);
    assert_eq!(dies(l::SIGKILL), l::SIGKILL);
    // Who keeps its memory to itself.
    world.ok(first, l::__NR_prctl, &[4, 0]);
    assert_eq!(dies(l::SIGQUIT), l::SIGQUIT);
    world.ok(first, l::__NR_prctl, &[4, 1]);
    // Where the name is somebody else's: a link, a second name, a directory.
    let program = Program::new(&world, first);
    let [core, other] = ["core", "other"].map(|name| world.text(first, name));
    world.ok(first, l::__NR_symlink, &[other, core]);
    assert_eq!(dies(l::SIGQUIT), l::SIGQUIT);
    world.ok(first, l::__NR_unlink, &[core]);
    world.ok(first, l::__NR_mkdir, &[core, 0o755]);
    assert_eq!(dies(l::SIGQUIT), l::SIGQUIT);
    world.ok(first, l::__NR_rmdir, &[core]);
    let file = world.ok(first, l::__NR_creat, &[core, 0o644]);
    world.ok(first, l::__NR_link, &[core, other]);
    assert_eq!(dies(l::SIGQUIT), l::SIGQUIT);
    world.ok(first, l::__NR_unlink, &[other]);
    assert_eq!(dies(l::SIGQUIT), l::SIGQUIT | 0x80);
    world.ok(first, l::__NR_close, &[file]);
    // As far as the limit allows, and where the pattern says.
    let limit = world.words(first, &[4096, 4096]);
    world.ok(first, l::__NR_prlimit64, &[0, l::RLIMIT_CORE.into(), limit, 0]);
    let path = world.text(first, "/proc/sys/kernel/core_pattern");
    let file = world.ok(first, l::__NR_open, &[path, 1]);
    let pattern = world.text(first, "/tmp/%%-%s-%e.core");
    world.ok(first, l::__NR_write, &[file, pattern, 18]);
    assert_eq!(dies(l::SIGFPE), l::SIGFPE | 0x80);
    let names = program.names("/tmp");
    let name = names.iter().find(|name| name.starts_with("%-8-")).unwrap();
    assert_eq!(program.contents(&format!("/tmp/{name}")).len(), 4096);
    let pipe = world.text(first, "|/bin/sh");
    world.refused(first, l::__NR_write, &[file, pipe, 8], unix::errno::Errno::EINVAL);
}

/// The server would be gone for minutes, for all programs.
#[test]
fn a_core_file_of_all_addresses_takes_no_time() {
    const PRIVATE: u64 = l::MAP_PRIVATE as u64;
    const NOBODYS: u64 = (l::MAP_ANONYMOUS | l::MAP_NORESERVE) as u64;
    let world = World::new();
    let first = &world.first;
    without_limit(&world);
    let effort = crate::common::effort::Effort::begin();
    let child = world.fork(first);
    let len = 1 << 45;
    let at = world.ok(&child, l::__NR_mmap, &[0, len, 3, PRIVATE | NOBODYS, u64::MAX, 0]);
    world.write(&child, at + len / 2 + 8, b"in the middle");
    // A file of nothing, mapped so that its pages would be in the core file, and so that not.
    let path = world.text(&child, "/tmp/sparse");
    let file = world.ok(&child, l::__NR_open, &[path, (l::O_CREAT | l::O_RDWR).into(), 0o600]);
    world.ok(&child, l::__NR_ftruncate, &[file, 1 << 42]);
    let text = world.put(&child, b"near its end");
    world.ok(&child, l::__NR_pwrite64, &[file, text, 12, (1 << 42) - 4096]);
    let flags = PRIVATE | u64::from(l::MAP_NORESERVE);
    for access in [1, 3] {
        world.ok(&child, l::__NR_mmap, &[0, 1 << 42, access, flags, file, 0]);
    }
    world.call(&child, l::__NR_kill, &[child.process.number.into(), l::SIGABRT.into()]);
    assert_eq!(status(&world), l::SIGABRT | 0x80);
    effort.is_less_than(10);
    // What is there is in it.
    let path = world.text(first, "core");
    let core = world.ok(first, l::__NR_open, &[path, 0]);
    let program = Program::new(&world, first);
    let (mut found, mut next) = ([0, 0], 0);
    while let Ok(data) = u64::try_from(program.call(l::__NR_lseek, &[core, next, 3])) {
        world.ok(first, l::__NR_lseek, &[core, data, 0]);
        let page = program.read(core, 4096);
        let has = |text: &[u8]| page.windows(text.len()).any(|window| window == text);
        found[0] += u32::from(has(b"in the middle"));
        found[1] += u32::from(has(b"near its end"));
        next = data / 4096 * 4096 + 4096;
    }
    // The file's page, and what was written there; what may not be written is in no core file.
    assert_eq!(found, [1, 2]);
}

#[test]
fn what_a_program_maps_costs_nothing_until_it_is_there() {
    let world = World::new();
    let first = &world.first;
    without_limit(&world);
    // Terabytes of nothing, of private and of shared memory, may be written and not.
    for (access, flags) in [(3, 0x4022), (1, 0x4022), (3, 0x4021)] {
        let at = world.ok(first, l::__NR_mmap, &[0, 1 << 43, access, flags, u64::MAX, 0]);
        if access == 3 {
            world.write(first, at + (1 << 42), b"far away");
        }
    }
    // A file of one page, mapped far beyond its end.
    let name = world.text(first, "file");
    let file = world.ok(first, l::__NR_open, &[name, 0o102, 0o600]);
    let text = world.put(first, b"of the file");
    world.ok(first, l::__NR_write, &[file, text, 11]);
    for access in [1, 3] {
        let at = world.ok(first, l::__NR_mmap, &[0, 1 << 43, access, 0x4002, file, 0]);
        world.write(first, world.scratch(first, 8), &at.to_le_bytes());
    }
    let child = world.fork(first);
    let free = world.unix.memory.available();
    world.call(&child, l::__NR_kill, &[child.process.number.into(), l::SIGABRT.into()]);
    assert_eq!(status(&world), l::SIGABRT | 0x80);
    let used = free.saturating_sub(world.unix.memory.available());
    assert!(used < 256, "{used} pages");
    let core = world.ok(first, l::__NR_open, &[world.text(first, "core"), 0]);
    let to = world.scratch(first, 256);
    world.ok(first, l::__NR_fstat, &[core, to]);
    assert!(world.read_u64(first, to + 48) > 3 << 43);
    assert!(world.read_u64(first, to + 64) < 256 * 8, "512-byte blocks");
}

#[test]
fn a_core_file_has_an_end() {
    let world = World::with_frames(24_000);
    let first = &world.first;
    without_limit(&world);
    // The same pages of a file so often that there are more of them than are written.
    let name = world.text(first, "file");
    let file = world.ok(first, l::__NR_open, &[name, 0o102, 0o600]);
    let len = 64 * 4096;
    let text = world.put(first, &vec![7; len as usize]);
    world.ok(first, l::__NR_write, &[file, text, len]);
    let most = u64::from(unix::dump::PAGES_MAX) * 4096;
    for _ in 0..most / len * 2 {
        world.ok(first, l::__NR_mmap, &[0, len, 3, 0x4002, file, 0]);
    }
    let child = world.fork(first);
    world.call(&child, l::__NR_kill, &[child.process.number.into(), l::SIGABRT.into()]);
    assert_eq!(status(&world), l::SIGABRT | 0x80);
    let core = world.ok(first, l::__NR_open, &[world.text(first, "core"), 0]);
    let to = world.scratch(first, 256);
    world.ok(first, l::__NR_fstat, &[core, to]);
    let size = world.read_u64(first, to + 48);
    assert!((most..most * 3 / 2).contains(&size), "{size} bytes");
}
