//! ELF files and scripts, as the Unix server reads them for `execve`.

use std::cell::OnceCell;
use std::rc::Rc;

use linux_raw_sys::general as linux;
use unix::machine::{Access, Reply};
use unix::thread::Thread;

use crate::common::World;
use crate::common::caller::Program;
use crate::common::program::{Member, archive};
use crate::samples;

/// End of the addresses that programs have.
const USER_END: u64 = 0x7FFF_FFFF_F000;

thread_local! {
    /// The world is made once; every input gets a process of its own.
    static WORLD: OnceCell<World> = const { OnceCell::new() };
}

fn world() -> World {
    let world = World::with_frames(4096);
    let other = samples::moving(None);
    let members = [Member("bin", 0o40_755, b""), Member("bin/other", 0o100_755, &other)];
    unix::fs::unpack(&world.unix, &archive(&members)).expect("a good archive");
    // The first program brings what all share: the vDSO.
    let child = world.fork(&world.first);
    assert!(exec(&world, &child, "/bin/other"), "a good program");
    end(&world, &child);
    world
}

/// A process runs the file. Whatever comes of that, its memory is back when it has ended.
pub fn program(bytes: &[u8]) -> bool {
    WORLD.with(|cell| {
        let world = cell.get_or_init(world);
        let program = Program::new(world, &world.first);
        program.make("/tmp/file", b"");
        let before = world.unix.memory.available();
        let member = [Member("tmp/file", 0o100_755, bytes)];
        unix::fs::unpack(&world.unix, &archive(&member)).expect("a good archive");
        let child = world.fork(&world.first);
        let runs = exec(world, &child, "/tmp/file");
        end(world, &child);
        program.make("/tmp/file", b"");
        world.unix.mm.bury(&world.unix);
        assert_eq!(world.unix.memory.available(), before, "frames");
        world.forget_scratch(&world.first);
        world.ok(&world.first, linux::__NR_munmap, &[program.scratch(), crate::common::SCRATCH]);
        runs
    })
}

/// Whether the program begins to run; then it can fetch its first instruction or gets a
/// signal for it, and has a stack.
fn exec(world: &World, child: &Rc<Thread>, path: &str) -> bool {
    let path = world.text(child, path);
    let arguments = world.words(child, &[path, 0]);
    if let Some(error) = world.call(child, linux::__NR_execve, &[path, arguments, arguments + 8]) {
        assert!((-133..0).contains(&(error as i64)), "execve returns {}", error as i64);
        return false;
    }
    if child.process().ended.get().is_some() {
        return false;
    }
    assert_eq!(world.next_event(child), Some(Reply::Resume));
    let registers = world.registers(child);
    assert!(registers.rip < USER_END && registers.rsp < USER_END, "{registers:x?}");
    let space = child.process().space();
    let stack = space.frame_for(&world.unix, registers.rsp, true);
    assert!(stack.is_ok(), "no stack at {:#x}: {stack:?}", registers.rsp);
    world.unix.page_fault(child, registers.rip, Access::EXECUTE);
    world.collect();
    if child.process().ended.get().is_none() {
        assert_eq!(world.next_event(child), Some(Reply::Mapped));
    }
    true
}

/// The process ends, unless it has, and is buried.
fn end(world: &World, child: &Rc<Thread>) {
    if child.process().ended.get().is_none() {
        assert_eq!(world.call(child, linux::__NR_exit_group, &[0]), None);
    }
    world.forget_scratch(child);
    let pid = u64::from(child.process().pid.first());
    assert_eq!(world.ok(&world.first, linux::__NR_wait4, &[pid, 0, 0, 0]), pid);
}
