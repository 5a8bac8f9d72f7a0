//! Asynchronous I/O: what is done at once, what waits, what is refused.

use crate::common::World;
use crate::common::effort::Effort;
use linux_raw_sys::general as l;
use std::rc::Rc;
use unix::errno::Errno;
use unix::thread::Thread;

const PREAD: u64 = 0;
const PWRITE: u64 = 1;
const FSYNC: u64 = 2;
const POLL: u64 = 5;
const PREADV: u64 = 7;

struct Trial<'a> {
    world: &'a World,
    thread: Rc<Thread>,
    context: u64,
}

/// An event: what was said of it, its control block, its result.
type Told = (u64, u64, i64);

impl<'a> Trial<'a> {
    fn new(world: &'a World, most: u64) -> Self {
        let thread = world.first.clone();
        let place = world.words(&thread, &[0]);
        world.ok(&thread, l::__NR_io_setup, &[most, place]);
        let context = world.read_u64(&thread, place);
        Self { world, thread, context }
    }

    fn control(&self, what: u64, fd: u64, buffer: u64, len: u64, offset: u64) -> u64 {
        self.world.words(&self.thread, &[77, 0, what | fd << 32, buffer, len, offset, 0, 0])
    }

    fn submit(&self, controls: &[u64]) -> i64 {
        let list = self.world.words(&self.thread, controls);
        let arguments = [self.context, controls.len() as u64, list];
        self.world.now(&self.thread, l::__NR_io_submit, &arguments) as i64
    }

    /// The events that are there.
    fn told(&self) -> Vec<Told> {
        self.world.collect();
        let place = self.world.scratch(&self.thread, 32 * 16);
        let arguments = [self.context, 0, 16, place, 0];
        let count = self.world.ok(&self.thread, l::__NR_io_getevents, &arguments);
        let word = |at| self.world.read_u64(&self.thread, at);
        let event = |at: u64| (word(at), word(at + 8), word(at + 16) as i64);
        (0..count).map(|index| event(place + 32 * index)).collect()
    }
}

fn file(world: &World) -> u64 {
    let name = world.text(&world.first, "file");
    world.ok(&world.first, l::__NR_open, &[name, 0o102, 0o600])
}

fn pipe(world: &World) -> [u64; 2] {
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, l::__NR_pipe2, &[at, 0]);
    [0, 4].map(|i| world.read_u32(&world.first, at + i).into())
}

/// Another thread of the first process.
fn sibling(world: &World) -> Rc<Thread> {
    let flags = l::CLONE_VM | l::CLONE_FILES | l::CLONE_SIGHAND | l::CLONE_THREAD;
    let stack = world.scratch(&world.first, 4096) + 4096;
    let id = world.ok(&world.first, l::__NR_clone, &[flags.into(), stack]);
    let thread = world.thread(id);
    world.next_event(&thread);
    thread
}

#[test]
fn files_are_done_at_once() {
    let world = World::new();
    let trial = Trial::new(&world, 4);
    let first = &world.first;
    let fd = file(&world);
    let text = world.put(first, b"asynchronous");
    let to = world.scratch(first, 16);
    let write = trial.control(PWRITE, fd, text, 12, 4);
    let read = trial.control(PREAD, fd, to, 5, 5);
    let sync = trial.control(FSYNC, fd, 0, 0, 0);
    assert_eq!(trial.submit(&[write, read, sync]), 3);
    assert_eq!(trial.told(), [(77, write, 12), (77, read, 5), (77, sync, 0)]);
    assert_eq!(world.read(first, to, 5), b"synch");
    assert_eq!(trial.told(), []);
    // Into several pieces, and as many as there is room for.
    let pieces = world.words(first, &[to, 1, to + 8, 3]);
    let apart = trial.control(PREADV, fd, pieces, 2, 4);
    assert_eq!(trial.submit(&[apart, read, read, read, read]), 4);
    assert_eq!(trial.submit(&[read]), -11);
    assert_eq!(trial.told().len(), 4);
    assert_eq!((world.read(first, to + 8, 3)), b"syn");
    // An event that cannot be told stays.
    assert_eq!(trial.submit(&[read]), 1);
    world.refused(first, l::__NR_io_getevents, &[trial.context, 1, 1, 3, 0], Errno::EFAULT);
    assert_eq!(trial.told(), [(77, read, 5)]);
}

#[test]
fn what_is_not_ready_waits() {
    let world = World::new();
    let trial = Trial::new(&world, 8);
    let first = &world.first;
    let [reader, writer] = pipe(&world);
    let counter = world.ok(first, l::__NR_eventfd2, &[0, l::EFD_NONBLOCK.into()]);
    let to = world.scratch(first, 16);
    let read = trial.control(PREAD, reader, to, 16, 0);
    world.write(first, read + 56, &(1 | counter << 32).to_le_bytes());
    let poll = trial.control(POLL, reader, 1, 0, 0);
    let full = trial.control(POLL, writer, 4, 0, 0);
    assert_eq!(trial.submit(&[poll, read, full]), 3);
    assert_eq!(trial.told(), [(77, full, 4)]);
    let count = world.scratch(first, 8);
    world.refused(first, l::__NR_read, &[counter, count, 8], Errno::EAGAIN);
    // Somebody waits for both events at once.
    let sibling = sibling(&world);
    let place = world.scratch(first, 64);
    world.waits(&sibling, l::__NR_io_getevents, &[trial.context, 2, 2, place, 0]);
    let text = world.put(first, b"bytes");
    world.ok(first, l::__NR_write, &[writer, text, 5]);
    assert_eq!(world.next_reply(&sibling), Some(2));
    assert_eq!(world.read(first, to, 5), b"bytes");
    assert_eq!(world.read_u64(first, place + 16), 1);
    assert_eq!(world.read_u64(first, place + 32 + 16), 5);
    assert_eq!(world.ok(first, l::__NR_read, &[counter, count, 8]), 8);
    // Given up, by its control block; then there is nothing more to give up.
    assert_eq!(trial.submit(&[read]), 1);
    let cancel = [trial.context, read, 0];
    world.refused(first, l::__NR_io_cancel, &cancel, Errno::EINPROGRESS);
    world.refused(first, l::__NR_io_cancel, &cancel, Errno::EINVAL);
    assert_eq!(trial.told(), [(77, read, -125)]);
    // The end of a context is the end of what waits in it, and of who waits for it.
    assert_eq!(trial.submit(&[read, poll]), 2);
    world.waits(&sibling, l::__NR_io_getevents, &[trial.context, 1, 1, place, 0]);
    world.ok(first, l::__NR_io_destroy, &[trial.context]);
    assert_eq!(world.next_reply(&sibling), Some(-22_i64 as u64));
    world.ok(first, l::__NR_write, &[writer, text, 5]);
    world.collect();
    assert_eq!(world.ok(first, l::__NR_read, &[reader, to, 16]), 5);
    assert_eq!(world.unix.streams.aio_events.get(), 0);
}

#[test]
fn time_runs_out() {
    let world = World::new();
    let trial = Trial::new(&world, 8);
    let first = &world.first;
    let [reader, _] = pipe(&world);
    let poll = trial.control(POLL, reader, 1, 0, 0);
    assert_eq!(trial.submit(&[poll]), 1);
    let (place, time) = (world.scratch(first, 32), world.words(first, &[0, 5_000_000]));
    world.waits(first, l::__NR_io_pgetevents, &[trial.context, 1, 1, place, time, 0]);
    world.advance(6_000_000);
    assert_eq!(world.next_reply(first), Some(0));
}

#[test]
fn contexts_that_are_refused() {
    let world = World::new();
    let trial = Trial::new(&world, 8);
    let first = &world.first;
    let zero = world.words(first, &[0]);
    for (most, place, errno) in [
        (1, 3, Errno::EFAULT),
        (1, world.words(first, &[1]), Errno::EINVAL),
        (0, zero, Errno::EINVAL),
        (u32::MAX.into(), zero, Errno::EINVAL),
        (65_536, zero, Errno::EAGAIN),
    ] {
        world.refused(first, l::__NR_io_setup, &[most, place], errno);
    }
    let to = world.scratch(first, 16);
    for (least, most) in [(2, 1), (u64::MAX, 1), (0, u64::MAX)] {
        let arguments = [trial.context, least, most, to, 0];
        world.refused(first, l::__NR_io_getevents, &arguments, Errno::EINVAL);
    }
    world.refused(first, l::__NR_io_destroy, &[5], Errno::EINVAL);
    world.refused(first, l::__NR_io_cancel, &[trial.context, 0, 0], Errno::EFAULT);
    // A child has none of them.
    let child = world.fork(first);
    world.refused(&child, l::__NR_io_destroy, &[trial.context], Errno::EINVAL);
}

#[test]
fn requests_that_are_refused() {
    let world = World::new();
    let trial = Trial::new(&world, 8);
    let first = &world.first;
    let zero = world.words(first, &[0]);
    let fd = file(&world);
    let read_only = world.ok(first, l::__NR_open, &[world.text(first, "file"), 0]);
    let [reader, writer] = pipe(&world);
    let to = world.scratch(first, 16);
    for (control, errno) in [
        (trial.control(PREAD, 99, to, 4, 0), -9),
        (trial.control(PWRITE, read_only, to, 4, 0), -9),
        (trial.control(PREAD, writer, to, 4, 0), -9),
        (trial.control(6, fd, to, 4, 0), -22),
        (trial.control(PREAD, fd, to, u64::MAX, 0), -22),
        (trial.control(PREAD, fd, to, 4, u64::MAX), -22),
        (trial.control(PREAD, fd, 1 << 47, 4, 0), -14),
        (trial.control(POLL, fd, 1, 0, 0), -22),
        (trial.control(POLL, reader, 1 << 16, 0, 0), -22),
        (trial.control(FSYNC, reader, 0, 0, 0), -22),
        (0, -14),
    ] {
        assert_eq!(trial.submit(&[control]), errno);
    }
    let told = trial.control(PREAD, fd, to, 4, 0);
    world.write(first, told + 56, &(1 | fd << 32).to_le_bytes());
    assert_eq!(trial.submit(&[told]), -22);
    assert_eq!(trial.submit(&[]), 0);
    let more = |arguments: &[u64]| world.now(first, l::__NR_io_submit, arguments) as i64;
    assert_eq!(more(&[trial.context, u64::MAX, zero]), -22);
    assert_eq!(more(&[trial.context, 1, 3]), -14);
    assert_eq!(more(&[5, 1, zero]), -22);
}

/// What waits is found without a look at all others.
#[test]
fn many_wait_for_one_pipe() {
    const COUNT: u64 = 30_000;
    let world = World::new();
    let trial = Trial::new(&world, COUNT);
    let first = &world.first;
    let [reader, writer] = pipe(&world);
    let urgent = trial.control(POLL, reader, 2, 0, 0);
    let controls = world.words(first, &[urgent; 60]);
    for _ in 0..COUNT / 60 {
        let taken = world.ok(first, l::__NR_io_submit, &[trial.context, 60, controls]);
        assert_eq!(taken, 60);
    }
    let effort = Effort::begin();
    let text = world.put(first, b"x");
    for _ in 0..4 {
        world.ok(first, l::__NR_write, &[writer, text, 1]);
        world.collect();
    }
    world.ok(first, l::__NR_close, &[writer]);
    world.collect();
    effort.is_less_than(5);
    assert_eq!(trial.told()[0], (77, urgent, 16));
}
