//! What a program has, and who runs it has not: nobody reaches it by having been the same process.

use std::rc::Rc;

use super::{FILE, Member, exec, plain, world, world_with};
use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::prctl::{PR_GET_DUMPABLE, PR_GET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_PDEATHSIG};
use linux_raw_sys::{general as l, ptrace as p};
use unix::errno::Errno;
use unix::machine::Reply;
use unix::thread::Thread;

/// Where [`plain`] has its data.
const DATA: u64 = 0x40_3ff0;

/// A set-id program that writes what its caller wants (a name, in an error's sentence) to its standard
/// error wrote it into its own memory.
#[test]
fn memory_that_was_opened_is_not_the_next_programs() {
    let world = world();
    let first = &world.first;
    let path = world.text(first, "/proc/self/mem");
    let file = world.ok(first, l::__NR_open, &[path, 2]);
    world.ok(first, l::__NR_lseek, &[file, DATA, 0]);
    exec(&world, "/bin/suid", &["suid"], &[]);
    let text = world.put(first, b"code");
    assert_eq!(world.ok(first, l::__NR_write, &[file, text, 4]), 0);
    assert_eq!(world.ok(first, l::__NR_pwrite64, &[file, text, 4, DATA]), 0);
    assert_eq!(world.ok(first, l::__NR_pread64, &[file, text, 4, DATA]), 0);
    assert_eq!(world.read(first, DATA, 4), b"data");
    // Its own it may look at.
    let path = world.text(first, "/proc/self/mem");
    let file = world.ok(first, l::__NR_open, &[path, 2]);
    assert_eq!(world.ok(first, l::__NR_pwrite64, &[file, text, 4, DATA]), 4);
    assert_eq!(world.read(first, DATA, 4), b"code");
}

fn user(world: &World) {
    world.ok(&world.first, l::__NR_setresgid, &[1000, 1000, 1000]);
    world.ok(&world.first, l::__NR_setresuid, &[1000, 1000, 1000]);
    // As whoever has run a program since is.
    world.ok(&world.first, l::__NR_prctl, &[PR_SET_DUMPABLE.into(), 1]);
}

/// A file that may be executed and not read was read by who traced its program.
#[test]
fn a_program_that_is_not_to_be_read_is_not_seen_running() {
    let world = world_with(&[
        Member("bin", 0o40_755, b""),
        Member("bin/plain", FILE, &plain()),
        Member("bin/hidden", 0o100_711, &plain()),
    ]);
    let first = &world.first;
    user(&world);
    let (tracer, stranger) = (world.fork(first), world.fork(first));
    let pid = u64::from(first.process.number);
    let trace = |thread, request: u32, address, data| {
        world.call(thread, l::__NR_ptrace, &[request.into(), pid, address, data])
    };
    exec(&world, "/bin/plain", &["plain"], &[]);
    assert_eq!(world.ok(first, l::__NR_prctl, &[PR_GET_DUMPABLE.into()]), 1);
    assert_eq!(trace(&tracer, p::PTRACE_SEIZE, 0, 0), Some(0));
    exec(&world, "/bin/hidden", &["hidden"], &[]);
    assert_eq!(world.ok(first, l::__NR_prctl, &[PR_GET_DUMPABLE.into()]), 0);
    assert_eq!(trace(&tracer, p::PTRACE_INTERRUPT, 0, 0), Some(0));
    world.collect();
    let word = world.scratch(&tracer, 8);
    assert_eq!(trace(&tracer, p::PTRACE_PEEKDATA, DATA, word), Some(Errno::EIO.result()));
    assert_eq!(trace(&tracer, p::PTRACE_POKEDATA, DATA, 0), Some(Errno::EIO.result()));
    assert_eq!(trace(&tracer, p::PTRACE_DETACH, 0, 0), Some(0));
    assert_eq!(trace(&stranger, p::PTRACE_SEIZE, 0, 0), Some(Errno::EPERM.result()));
}

/// Runs a program in the process of `thread`.
fn run(world: &World, thread: &Rc<Thread>, path: &str) {
    let name = world.text(thread, path);
    let argv = world.words(thread, &[name, 0]);
    assert_eq!(world.call(thread, l::__NR_execve, &[name, argv, 0]), None, "{path}");
    assert_eq!(world.next_event(thread), Some(Reply::Resume));
    world.forget_scratch(thread);
}

fn effective(world: &World, thread: &Rc<Thread>) -> u64 {
    world.ok(thread, l::__NR_geteuid, &[])
}

fn clone(world: &World, parent: &Rc<Thread>, flags: u64) -> Rc<Thread> {
    let child = world.thread(world.ok(parent, l::__NR_clone, &[flags, 0, 0, 0, 0]));
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    child
}

/// A set-id program that its user runs traces nobody with its rights: it may give them up and run the
/// user's own program, which would trace a root's.
#[test]
fn rights_that_a_tracer_gets_later_do_not_count() {
    let world = world();
    let first = &world.first;
    user(&world);
    let tracer = world.fork(first);
    let child = world.fork(&tracer);
    assert_eq!(world.ok(&child, l::__NR_ptrace, &[p::PTRACE_TRACEME.into()]), 0);
    run(&world, &tracer, "/bin/suid");
    assert_eq!(effective(&world, &tracer), 0);
    let name = world.text(&child, "/bin/suid");
    let argv = world.words(&child, &[name, 0]);
    let _ = world.call(&child, l::__NR_execve, &[name, argv, 0]);
    assert_eq!(child.process.credentials.borrow().euid, 1000);
    // Root's own may.
    let world = self::world();
    let child = world.fork(&world.first);
    world.ok(&world.first, l::__NR_ptrace, &[p::PTRACE_SEIZE.into(), child.process.number.into()]);
    world.ok(&child, l::__NR_setresuid, &[1000, 1000, 1000]);
    run(&world, &child, "/bin/suid");
    assert_eq!(effective(&world, &child), 0);
}

/// Somebody else would say in which directory it is, and what its new files may be.
#[test]
fn a_program_whose_place_is_shared_gets_no_rights() {
    let world = world();
    let first = &world.first;
    user(&world);
    let flags = u64::from(l::CLONE_FS | l::SIGCHLD);
    let child = clone(&world, first, flags);
    run(&world, &child, "/bin/suid");
    assert_eq!(effective(&world, &child), 1000);
    // Alone again.
    world.ok(&child, l::__NR_unshare, &[l::CLONE_FS.into()]);
    run(&world, &child, "/bin/suid");
    assert_eq!(effective(&world, &child), 0);
}

/// What a process has ordered for its parent's or children's ends would reach root's programs.
#[test]
fn signals_that_were_ordered_do_not_reach_a_set_id_program() {
    let world = world();
    let first = &world.first;
    user(&world);
    let told = |thread: &Rc<Thread>| {
        let at = world.scratch(thread, 4);
        world.ok(thread, l::__NR_prctl, &[PR_GET_PDEATHSIG.into(), at]);
        world.read_u32(thread, at)
    };
    let child = world.fork(first);
    world.ok(&child, l::__NR_prctl, &[PR_SET_PDEATHSIG.into(), l::SIGUSR1.into()]);
    run(&world, &child, "/bin/plain");
    assert_eq!(told(&child), l::SIGUSR1, "it stays");
    run(&world, &child, "/bin/suid");
    assert_eq!(told(&child), 0);
    world.ok(&child, l::__NR_prctl, &[PR_SET_PDEATHSIG.into(), l::SIGUSR1.into()]);
    world.ok(&child, l::__NR_setresuid, &[0, 1000, 0]);
    assert_eq!(told(&child), 0);
    // A child's end.
    let parent = world.fork(first);
    let child = clone(&world, &parent, l::SIGUSR1.into());
    run(&world, &parent, "/bin/suid");
    world.call(&child, l::__NR_exit_group, &[0]);
    world.collect();
    assert!(parent.process.ended.get().is_none(), "killed by its child's end");
}

#[test]
fn where_others_programs_are_is_not_told() {
    let world = world();
    let first = &world.first;
    let child = world.fork(first);
    exec(&world, "/bin/plain", &["plain"], &[]);
    let words = |thread: &Rc<Thread>, path: &str| {
        let text = Program::new(&world, thread).contents(path);
        let text = String::from_utf8(text).unwrap();
        let rest = text.rsplit_once(") ").unwrap().1;
        let fields: Vec<u64> =
            rest.split(' ').map(|word| word.trim().parse().unwrap_or(0)).collect();
        // Fields 26 to 28, and 45 to 51.
        [&fields[23..26], &fields[42..49]].concat()
    };
    assert_ne!(words(first, "/proc/self/stat")[0], 0);
    assert_ne!(words(&child, "/proc/1/stat")[0], 0);
    world.ok(&child, l::__NR_setresuid, &[1000, 1000, 1000]);
    assert_eq!(words(&child, "/proc/1/stat"), [0; 10]);
}
