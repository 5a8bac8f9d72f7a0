//! Programs: loading, scripts, the first stack, what exec changes.

mod placement;
mod secrets;

use std::rc::Rc;

use crate::common::World;
use crate::common::program::{Extra, Load, Member, archive, elf};
use linux_raw_sys::{auxvec, general as l};
use unix::errno::Errno;
use unix::machine::{Access, Reply};
use unix::mm::AddressSpace;
use unix::thread::Thread;

const CODE: &[u8] = &[0x0f, 0x05, 0xeb, 0xfe];

fn plain() -> Vec<u8> {
    let loads = [Load(0x40_1000, CODE, 4, 5), Load(0x40_3ff0, b"data at the end.", 0x5010, 6)];
    elf(0x40_1000, &loads, &Extra::default())
}

fn moving(interpreter: Option<&str>) -> Vec<u8> {
    let loads = [Load(0x1000, CODE, 4, 5), Load(0x3000, b"data", 0x10, 6)];
    elf(0x1002, &loads, &Extra { dynamic: true, interpreter, ..Extra::default() })
}

const FILE: u32 = 0o100_755;

fn world_with(members: &[Member]) -> World {
    let world = World::new();
    unix::fs::unpack(&world.unix, &archive(members)).unwrap();
    world
}

fn world() -> World {
    world_with(&[
        Member("bin", 0o40_755, b""),
        Member("bin/plain", FILE, &plain()),
        Member("bin/moving", FILE, &moving(None)),
        Member("bin/linked", FILE, &moving(Some("/bin/moving"))),
        Member("bin/orphan", FILE, &moving(Some("/bin/none"))),
        Member("bin/script", FILE, b"#! /bin/plain  -x -y \nrest"),
        Member("bin/nested", FILE, b"#!/bin/script"),
        Member("bin/loop", FILE, b"#!/bin/loop"),
        Member("bin/text", FILE, b"echo hello"),
        Member("bin/empty", FILE, b""),
        Member("bin/locked", 0o100_644, &plain()),
        Member("bin/suid", 0o104_755, &plain()),
    ])
}

fn strings(world: &World, thread: &Rc<Thread>, texts: &[&str]) -> u64 {
    let mut pointers: Vec<u64> = texts.iter().map(|text| world.text(thread, text)).collect();
    pointers.push(0);
    world.words(thread, &pointers)
}

#[track_caller]
fn exec(world: &World, path: &str, arguments: &[&str], environment: &[&str]) {
    let first = &world.first;
    let path = world.text(first, path);
    let (argv, envp) = (strings(world, first, arguments), strings(world, first, environment));
    let answer = world.call(first, l::__NR_execve, &[path, argv, envp]);
    assert_eq!(answer, None, "execve failed: {:?}", answer.map(|value| value as i64));
    assert_eq!(world.next_event(first), Some(Reply::Resume));
    world.forget_scratch(first);
}

#[track_caller]
fn refused(world: &World, path: &str, errno: Errno) {
    let path = world.text(&world.first, path);
    world.refused(&world.first, l::__NR_execve, &[path, 0, 0], errno);
}

/// A program's stack as it finds it.
struct Stack {
    arguments: Vec<String>,
    environment: Vec<String>,
    auxiliary: Vec<(u64, u64)>,
}

fn text(world: &World, mut at: u64) -> String {
    let mut text = Vec::new();
    loop {
        match world.read(&world.first, at, 1)[0] {
            0 => return String::from_utf8(text).unwrap(),
            byte => text.push(byte),
        }
        at += 1;
    }
}

fn stack(world: &World) -> Stack {
    let mut at = world.registers(&world.first).rsp;
    assert_eq!(at % 16, 0);
    let mut word = || {
        at += 8;
        world.read_u64(&world.first, at - 8)
    };
    let count = word();
    let arguments = (0..count).map(|_| text(world, word())).collect();
    assert_eq!(word(), 0);
    let mut environment = Vec::new();
    loop {
        match word() {
            0 => break,
            at => environment.push(text(world, at)),
        }
    }
    let mut auxiliary = Vec::new();
    loop {
        match (word(), word()) {
            (0, _) => return Stack { arguments, environment, auxiliary },
            pair => auxiliary.push(pair),
        }
    }
}

impl Stack {
    fn fact(&self, kind: u32) -> u64 {
        self.auxiliary.iter().find(|(k, _)| *k == u64::from(kind)).expect("no such fact").1
    }
}

#[test]
fn a_static_program_is_loaded() {
    let world = world();
    exec(&world, "/bin/plain", &["plain", "two words", ""], &["A=1", "B=2"]);
    let first = &world.first;
    let registers = world.registers(first);
    assert_eq!((registers.rip, registers.rax, registers.rdx), (0x40_1000, 0, 0));
    assert_eq!(world.read(first, 0x40_1000, 4), CODE);
    assert_eq!(world.read(first, 0x40_3ff0, 16), b"data at the end.");
    assert_eq!(world.read(first, 0x40_4000, 0x5000), vec![0; 0x5000]);
    let stack = stack(&world);
    assert_eq!(stack.arguments, ["plain", "two words", ""]);
    assert_eq!(stack.environment, ["A=1", "B=2"]);
    assert_eq!(stack.fact(auxvec::AT_ENTRY), 0x40_1000);
    assert_eq!(stack.fact(auxvec::AT_PAGESZ), 4096);
    assert_eq!(stack.fact(auxvec::AT_BASE), 0);
    assert_eq!(stack.fact(auxvec::AT_PHNUM), 3);
    assert_eq!(stack.fact(auxvec::AT_SECURE), 0);
    assert_eq!(text(&world, stack.fact(auxvec::AT_EXECFN)), "/bin/plain");
    assert_eq!(text(&world, stack.fact(auxvec::AT_PLATFORM)), "x86_64");
    assert_ne!(world.read(first, stack.fact(auxvec::AT_RANDOM), 16), [0; 16]);
    assert_eq!(world.read(first, stack.fact(auxvec::AT_SYSINFO_EHDR), 4), b"\x7fELF");
    assert_eq!(&first.name.get()[..6], b"plain\0");
    assert_eq!(*first.process().executable.borrow(), b"/bin/plain");
    let brk = world.ok(first, l::__NR_brk, &[0]);
    assert_eq!(brk, 0x40_9000);
    assert_eq!(world.ok(first, l::__NR_brk, &[brk + 4096]), brk + 4096);
    let space = first.process().space();
    assert_eq!(space.frame_for(&world.unix, 0x40_1000, true), Err(Errno::EFAULT));
}

#[test]
fn a_file_s_pages_are_shared_until_they_are_written() {
    let world = world();
    exec(&world, "/bin/plain", &["plain"], &[]);
    let one = world.first.process().space();
    let two = AddressSpace::fork(&world.unix, &one).unwrap();
    exec(&world, "/bin/plain", &["plain"], &[]);
    let now = world.first.process().space();
    let code = |space: &AddressSpace| space.frame_for(&world.unix, 0x40_1000, false).unwrap();
    assert_eq!(code(&two), code(&now));
    two.retire(&world.unix);
}

#[test]
fn programs_that_move_and_their_interpreters_are_placed() {
    let world = world();
    exec(&world, "/bin/linked", &["linked"], &[]);
    let stack = stack(&world);
    let base = stack.fact(auxvec::AT_BASE);
    assert_eq!(world.registers(&world.first).rip, base + 0x1002);
    assert_eq!(stack.fact(auxvec::AT_ENTRY), 0x5555_5555_4000 + 0x2);
    assert!(base > 0x7000_0000_0000);
    exec(&world, "/bin/moving", &["moving"], &[]);
    let rip = world.registers(&world.first).rip;
    assert!(rip > 0x7000_0000_0000 && rip % 4096 == 2);
    assert_eq!(world.ok(&world.first, l::__NR_brk, &[0]), 0x5555_5555_4000);
}

#[test]
fn scripts_run_their_interpreters() {
    let world = world();
    exec(&world, "/bin/script", &["zero", "one"], &[]);
    let found = stack(&world);
    assert_eq!(found.arguments, ["/bin/plain", "-x -y", "/bin/script", "one"]);
    assert_eq!(text(&world, found.fact(auxvec::AT_EXECFN)), "/bin/script");
    assert_eq!(&world.first.name.get()[..7], b"script\0");
    assert_eq!(*world.first.process().executable.borrow(), b"/bin/plain");
    exec(&world, "/bin/nested", &["zero", "one"], &[]);
    let expected = ["/bin/plain", "-x -y", "/bin/script", "/bin/nested", "one"];
    assert_eq!(stack(&world).arguments, expected);
}

#[test]
fn execve_refuses_as_linux_does() {
    let world = world();
    refused(&world, "/bin/none", Errno::ENOENT);
    refused(&world, "", Errno::ENOENT);
    refused(&world, "/bin", Errno::EACCES);
    refused(&world, "/bin/locked", Errno::EACCES);
    refused(&world, "/bin/text", Errno::ENOEXEC);
    refused(&world, "/bin/empty", Errno::ENOEXEC);
    refused(&world, "/bin/loop", Errno::ELOOP);
    refused(&world, "/bin/orphan", Errno::ENOENT);
    refused(&world, "/bin/plain/x", Errno::ENOTDIR);
    let (first, path) = (&world.first, world.text(&world.first, "/bin/plain"));
    world.refused(first, l::__NR_execve, &[0, 0, 0], Errno::EFAULT);
    world.refused(first, l::__NR_execve, &[path, 8, 0], Errno::EFAULT);
    let bad = world.words(first, &[8, 0]);
    world.refused(first, l::__NR_execve, &[path, bad, 0], Errno::EFAULT);
    let long = world.text(first, &"x".repeat(32 * 4096));
    let argv = world.words(first, &[long, 0]);
    world.refused(first, l::__NR_execve, &[path, argv, 0], Errno::E2BIG);
    world.refused(first, l::__NR_execveat, &[0, path, 0, 0, 0x8000], Errno::EINVAL);
}

#[test]
fn too_many_arguments_are_refused() {
    let world = world();
    let first = &world.first;
    let path = world.text(first, "/bin/plain");
    let text = world.text(first, &"x".repeat(30_000));
    let mut pointers = vec![text; 300];
    pointers.push(0);
    let argv = world.words(first, &pointers);
    world.refused(first, l::__NR_execve, &[path, argv, 0], Errno::E2BIG);
}

#[test]
fn a_program_without_arguments_gets_an_empty_one() {
    let world = world();
    let path = world.text(&world.first, "/bin/plain");
    assert_eq!(world.call(&world.first, l::__NR_execve, &[path, 0, 0]), None);
    assert_eq!(world.next_event(&world.first), Some(Reply::Resume));
    assert_eq!(stack(&world).arguments, [""]);
}

#[test]
fn corrupt_files_are_refused_and_nothing_is_lost() {
    let good = plain();
    let mut seed = 3_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut refusals = 0;
    for round in 0..400 {
        let mut bad = good.clone();
        for _ in 0..1 + round % 4 {
            bad[random(64 + 3 * 56)] = random(256) as u8;
        }
        if round % 5 == 0 {
            bad.truncate(random(good.len()));
        }
        let world = world_with(&[Member("bad", FILE, &bad)]);
        let path = world.text(&world.first, "/bad");
        match world.call(&world.first, l::__NR_execve, &[path, 0, 0]) {
            Some(value) => {
                let errno = -(value as i64);
                let known = [Errno::ENOEXEC, Errno::ENOMEM, Errno::ENOENT, Errno::EACCES];
                assert!(known.iter().any(|e| i64::from(e.0) == errno), "errno {errno}");
                assert_eq!(text(&world, path), "/bad");
                refusals += 1;
            }
            None => assert_eq!(world.next_event(&world.first), Some(Reply::Resume)),
        }
    }
    assert!(refusals > 100, "{refusals} of 400 were refused");
}

#[test]
fn memory_of_the_old_program_is_given_back() {
    let world = world();
    exec(&world, "/bin/plain", &["plain"], &[]);
    let before = (world.unix.memory.available(), world.machine.spaces.borrow().len());
    for _ in 0..10 {
        let private = (l::MAP_PRIVATE | l::MAP_ANONYMOUS | l::MAP_POPULATE).into();
        world.ok(&world.first, l::__NR_mmap, &[0, 64 << 12, 3, private, u64::MAX, 0]);
        exec(&world, "/bin/plain", &["plain"], &[]);
    }
    let after = (world.unix.memory.available(), world.machine.spaces.borrow().len());
    assert_eq!(after, before);
    assert_eq!(world.machine.threads.borrow().len(), 1);
}

#[test]
fn code_faults_bring_pages_of_the_file() {
    let world = world();
    exec(&world, "/bin/plain", &["plain"], &[]);
    let first = &world.first;
    world.unix.page_fault(first, 0x40_1002, Access::EXECUTE);
    world.collect();
    assert_eq!(world.next_event(first), Some(Reply::Mapped));
    let space = first.process().space().machine();
    let mapping = world.machine.mapping(space, 0x40_1000).unwrap();
    assert_eq!(mapping.access, Access::READ | Access::EXECUTE);
    world.unix.page_fault(first, 0x40_4000, Access::WRITE);
    world.collect();
    assert_eq!(world.next_event(first), Some(Reply::Mapped));
    let access = world.machine.mapping(space, 0x40_4000).unwrap().access;
    assert_eq!(access, Access::READ | Access::WRITE);
}

#[test]
fn a_running_program_cannot_be_written() {
    let world = world();
    let first = &world.first;
    let path = world.text(first, "/bin/plain");
    let fd = world.ok(first, l::__NR_open, &[path, l::O_RDWR.into()]);
    world.refused(first, l::__NR_execve, &[path, 0, 0], Errno::ETXTBSY);
    world.ok(first, l::__NR_close, &[fd]);
    exec(&world, "/bin/plain", &["plain"], &[]);
    let path = world.text(first, "/bin/plain");
    world.refused(first, l::__NR_open, &[path, l::O_RDWR.into()], Errno::ETXTBSY);
    world.refused(first, l::__NR_open, &[path, l::O_TRUNC.into()], Errno::ETXTBSY);
    exec(&world, "/bin/moving", &["moving"], &[]);
    let path = world.text(first, "/bin/plain");
    world.ok(first, l::__NR_open, &[path, l::O_RDWR.into()]);
}

#[test]
fn descriptors_close_on_exec() {
    let world = world();
    let first = &world.first;
    let path = world.text(first, "/bin/plain");
    let kept = world.ok(first, l::__NR_open, &[path, 0]);
    let closed = world.ok(first, l::__NR_open, &[path, l::O_CLOEXEC.into()]);
    exec(&world, "/bin/plain", &["plain"], &[]);
    world.ok(first, l::__NR_close, &[kept]);
    world.refused(first, l::__NR_close, &[closed], Errno::EBADF);
}

#[test]
fn execveat_runs_what_a_descriptor_has() {
    let world = world();
    let first = &world.first;
    let path = world.text(first, "/bin/plain");
    let fd = world.ok(first, l::__NR_open, &[path, 0]);
    let empty = world.text(first, "");
    let at = [fd, empty, 0, 0, 0];
    world.refused(first, l::__NR_execveat, &at, Errno::ENOENT);
    let at = [fd, empty, 0, 0, l::AT_EMPTY_PATH.into()];
    assert_eq!(world.call(first, l::__NR_execveat, &at), None);
    assert_eq!(world.next_event(first), Some(Reply::Resume));
    let name = stack(&world).fact(auxvec::AT_EXECFN);
    assert_eq!(text(&world, name), format!("/dev/fd/{fd}"));
}

#[test]
fn files_are_mapped() {
    let world = world();
    let first = &world.first;
    let path = world.text(first, "/bin/script");
    let fd = world.ok(first, l::__NR_open, &[path, l::O_RDWR.into()]);
    let (private, shared) = (l::MAP_PRIVATE.into(), l::MAP_SHARED.into());
    let own = world.ok(first, l::__NR_mmap, &[0, 8192, 3, private, fd, 0]);
    let common = world.ok(first, l::__NR_mmap, &[0, 8192, 3, shared, fd, 0]);
    assert_eq!(world.read(first, own, 6), b"#! /bi");
    world.write(first, own, b"mine");
    world.write(first, common + 4, b"ours");
    assert_eq!(world.read(first, own, 8), b"minebin/");
    let buffer = world.scratch(first, 16);
    world.ok(first, l::__NR_pread64, &[fd, buffer, 8, 0]);
    assert_eq!(world.read(first, buffer, 8), b"#! /ours");
    let space = first.process().space();
    assert_eq!(space.frame_for(&world.unix, own + 4096, false), Err(Errno::EFAULT));
    world.ok(first, l::__NR_ftruncate, &[fd, 0]);
    assert_eq!(space.frame_for(&world.unix, own, false), Err(Errno::EFAULT));
    assert_eq!(space.frame_for(&world.unix, common, true), Err(Errno::EFAULT));
    world.ok(first, l::__NR_ftruncate, &[fd, 10]);
    assert_eq!(world.read(first, common, 10), [0; 10]);
    // Rights that the descriptor does not give.
    let read_only = world.ok(first, l::__NR_open, &[path, 0]);
    world.refused(first, l::__NR_mmap, &[0, 1, 3, shared, read_only, 0], Errno::EACCES);
    let at = world.ok(first, l::__NR_mmap, &[0, 1, 1, shared, read_only, 0]);
    world.refused(first, l::__NR_mprotect, &[at, 1, 3], Errno::EACCES);
    let write_only = world.ok(first, l::__NR_open, &[path, l::O_WRONLY.into()]);
    world.refused(first, l::__NR_mmap, &[0, 1, 1, private, write_only, 0], Errno::EACCES);
}
