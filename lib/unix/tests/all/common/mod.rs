//! A world on a machine made of ordinary memory to try the server in: the tests play
//! the programs (they make the calls that a program would make) and look at the answers.

#![allow(dead_code)]

pub mod caller;
pub mod effort;
pub mod file_calls;
pub mod machine;
pub mod program;

use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;
use std::rc::Rc;

use machine::FakeMachine;
use machine::Handle;
use unix::Unix;
use unix::errno::Errno;
use unix::machine::{MachineThread, Registers, Reply, Urgency};
use unix::memory::{Memory, PAGE};
use unix::process::{Pid, numbers};
use unix::thread::Thread;

/// Frames of a [`World`] unless it asks for another number: 64 MiB.
pub const FRAMES: usize = 16384;
/// Size of a process's scratch area.
pub const SCRATCH: u64 = 1 << 20;

/// A server with process 1, and what it answered.
pub struct World {
    pub unix: Unix,
    pub machine: Rc<FakeMachine>,
    pub first: Rc<Thread>,
    replies: RefCell<BTreeMap<MachineThread, VecDeque<Reply>>>,
    scratch: RefCell<BTreeMap<Pid, (u64, u64)>>,
    _memory: Region,
}

/// The memory of all frames.
struct Region(NonNull<u8>, Layout);

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `World::with_frames`.
        unsafe { std::alloc::dealloc(self.0.as_ptr(), self.1) };
    }
}

/// The arguments of a call, filled up with zeroes.
fn six(arguments: &[u64]) -> [u64; 6] {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    all
}

impl World {
    pub fn new() -> Self {
        Self::with_frames(FRAMES)
    }

    pub fn with_frames(frames: usize) -> Self {
        Self::with(frames, 1)
    }

    /// On so many processors.
    pub fn with_processors(count: u32) -> Self {
        Self::with(FRAMES, count)
    }

    fn with(frames: usize, processors: u32) -> Self {
        let layout = Layout::from_size_align(frames * PAGE, PAGE).unwrap();
        // SAFETY: the size is not zero.
        let base = NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap();
        // SAFETY: page-aligned memory that only `Memory` touches; freed after it.
        let memory = unsafe { Memory::new(base, frames) };
        let machine = Rc::new(FakeMachine::default());
        machine.max_threads.set(4096);
        machine.now_ns.set(1_000_000_000);
        machine.others.set(processors - 1);
        let unix = Unix::new(Box::new(Handle(machine.clone())), memory);
        let first = unix::process::first(&unix).expect("process 1");
        let (replies, scratch) = Default::default();
        let world = Self { unix, machine, first, replies, scratch, _memory: Region(base, layout) };
        world.unix.reply(&world.first, Reply::Resume);
        world.collect();
        assert_eq!(world.next_event(&world.first), Some(Reply::Resume));
        world
    }

    /// Takes the answers that are due from the server.
    pub fn collect(&self) {
        while let Some((thread, reply)) = self.unix.next_reply() {
            self.record(thread, reply);
        }
    }

    fn record(&self, thread: MachineThread, reply: Reply) {
        if let Reply::Result(value) = reply {
            self.machine.with(thread, |thread| thread.registers.rax = value);
        }
        self.replies.borrow_mut().entry(thread).or_default().push_back(reply);
    }

    /// `thread` makes a system call. `None`: it waits, or goes on otherwise (see `next_event`).
    #[track_caller]
    pub fn call(&self, thread: &Rc<Thread>, number: u32, arguments: &[u64]) -> Option<u64> {
        let id = thread.machine.get();
        assert!(!self.replies.borrow().contains_key(&id), "an answer was not looked at");
        self.machine.with(id, |machine| {
            machine.registers.rip += 2;
            machine.registers.rax = u64::from(number);
        });
        if let Some(value) = self.unix.system_call(thread, number, six(arguments)) {
            self.record(id, Reply::Result(value));
        }
        self.collect();
        self.next_reply(thread)
    }

    /// A call that must be answered at once.
    #[track_caller]
    pub fn now(&self, thread: &Rc<Thread>, number: u32, arguments: &[u64]) -> u64 {
        self.call(thread, number, arguments)
            .unwrap_or_else(|| panic!("call {number} {arguments:x?} waits"))
    }

    /// A call that must succeed at once.
    #[track_caller]
    pub fn ok(&self, thread: &Rc<Thread>, number: u32, arguments: &[u64]) -> u64 {
        let value = self.now(thread, number, arguments);
        let failed = (-4095..0).contains(&(value as i64));
        assert!(!failed, "call {number} {arguments:x?}: {}", value as i64);
        value
    }

    /// A call that must be refused at once.
    #[track_caller]
    pub fn refused(&self, thread: &Rc<Thread>, number: u32, arguments: &[u64], errno: Errno) {
        let value = self.now(thread, number, arguments) as i64;
        assert_eq!(value, -i64::from(errno.0), "call {number} {arguments:x?}");
    }

    /// A call that must wait.
    #[track_caller]
    pub fn waits(&self, thread: &Rc<Thread>, number: u32, arguments: &[u64]) {
        let answer = self.call(thread, number, arguments);
        assert_eq!(answer, None, "call {number} {arguments:x?} should wait");
        assert_eq!(self.next_event(thread), None, "call {number} {arguments:x?} should wait");
    }

    /// The result of a call that has waited, if it is there now.
    pub fn next_reply(&self, thread: &Rc<Thread>) -> Option<u64> {
        let result = match self.replies.borrow().get(&thread.machine.get())?.front()? {
            Reply::Result(value) => *value,
            _ => return None,
        };
        self.next_event(thread);
        Some(result)
    }

    /// The next answer to a thread, whatever kind it is.
    pub fn next_event(&self, thread: &Rc<Thread>) -> Option<Reply> {
        let mut replies = self.replies.borrow_mut();
        let queue = replies.get_mut(&thread.machine.get())?;
        let reply = queue.pop_front();
        if queue.is_empty() {
            replies.remove(&thread.machine.get());
        }
        reply
    }

    /// The thread with this number.
    #[track_caller]
    pub fn thread(&self, tid: u64) -> Rc<Thread> {
        self.thread_of(&self.first, tid)
    }

    /// The thread that `viewer` calls so.
    #[track_caller]
    pub fn thread_of(&self, viewer: &Rc<Thread>, tid: u64) -> Rc<Thread> {
        let process = viewer.process();
        let pid = numbers::find(process.state.numbers.as_ref(), tid as u32);
        let thread = pid.and_then(|pid| self.unix.processes.thread(pid));
        thread.unwrap_or_else(|| panic!("no thread {tid}"))
    }

    /// A process forks; the child's thread is ready to make calls.
    #[track_caller]
    pub fn fork(&self, parent: &Rc<Thread>) -> Rc<Thread> {
        let tid = self.ok(parent, linux_raw_sys::general::__NR_fork, &[]);
        let child = self.thread_of(parent, tid);
        assert_eq!(self.next_event(&child), Some(Reply::Resume));
        let area = self.scratch.borrow().get(&parent.process().pid).copied();
        if let Some(area) = area {
            self.scratch.borrow_mut().insert(child.process().pid, area);
        }
        child
    }

    /// A thread's registers.
    pub fn registers(&self, thread: &Rc<Thread>) -> Registers {
        self.machine.with(thread.machine.get(), |thread| thread.registers)
    }

    /// Turns the clock; alarms go off on the way.
    pub fn advance(&self, ns: u64) {
        let end = self.machine.now_ns.get() + ns;
        while let Some(at) = self.machine.alarm.get().filter(|at| *at <= end) {
            self.machine.now_ns.set(at.max(self.machine.now_ns.get()));
            self.machine.alarm.set(None);
            self.machine.alarms.set(self.machine.alarms.get() + 1);
            self.unix.alarm();
            self.collect();
        }
        self.machine.now_ns.set(end.max(self.machine.now_ns.get()));
    }

    /// All others have had their turn, which was asked for.
    #[track_caller]
    pub fn turn(&self) {
        assert!(self.machine.turn.get(), "nobody has asked for a turn of others");
        self.give_turns();
    }

    /// All others have had their turn, if that was asked for.
    pub fn give_turns(&self) {
        if self.machine.turn.take() {
            self.unix.turn(Urgency::Ordinary);
            self.unix.turn(Urgency::Background);
            self.collect();
        }
    }

    /// Somebody types at the console.
    pub fn type_in(&self, bytes: &[u8]) {
        self.unix.console_input(bytes);
        self.collect();
    }

    /// What was written to the console since the last time.
    pub fn console(&self) -> String {
        String::from_utf8_lossy(&self.machine.console.take()).into_owned()
    }

    /// `len` fresh bytes (aligned to 16) of the thread's memory.
    #[track_caller]
    pub fn scratch(&self, thread: &Rc<Thread>, len: usize) -> u64 {
        let pid = thread.process().pid;
        let known = self.scratch.borrow().get(&pid).copied();
        let (start, used) = known.unwrap_or_else(|| {
            // MAP_PRIVATE | MAP_ANONYMOUS, read and write.
            let number = linux_raw_sys::general::__NR_mmap;
            (self.ok(thread, number, &[0, SCRATCH, 3, 0x22, u64::MAX, 0]), 0)
        });
        let next = (used + len as u64 + 15) & !15;
        assert!(next <= SCRATCH, "the scratch area is used up");
        self.scratch.borrow_mut().insert(pid, (start, next));
        start + used
    }

    /// The scratch area is gone (exec).
    pub fn forget_scratch(&self, thread: &Rc<Thread>) {
        self.scratch.borrow_mut().remove(&thread.process().pid);
    }

    /// Puts bytes somewhere into the thread's memory.
    #[track_caller]
    pub fn put(&self, thread: &Rc<Thread>, bytes: &[u8]) -> u64 {
        let address = self.scratch(thread, bytes.len());
        self.write(thread, address, bytes);
        address
    }

    /// Puts a string, with the zero byte.
    #[track_caller]
    pub fn text(&self, thread: &Rc<Thread>, text: &str) -> u64 {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.put(thread, &bytes)
    }

    /// Puts 64-bit words.
    #[track_caller]
    pub fn words(&self, thread: &Rc<Thread>, words: &[u64]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(thread, &bytes)
    }

    /// Writes the thread's memory.
    #[track_caller]
    pub fn write(&self, thread: &Rc<Thread>, address: u64, bytes: &[u8]) {
        let memory = unix::user::UserMemory::new(&self.unix, thread.process().space());
        memory.write_bytes(address, bytes).expect("the test's own memory");
    }

    /// Reads the thread's memory.
    #[track_caller]
    pub fn read(&self, thread: &Rc<Thread>, address: u64, len: usize) -> Vec<u8> {
        let memory = unix::user::UserMemory::new(&self.unix, thread.process().space());
        let mut bytes = vec![0; len];
        memory.read_bytes(address, &mut bytes).expect("the test's own memory");
        bytes
    }

    /// Reads a word of the thread's memory.
    #[track_caller]
    pub fn read_u64(&self, thread: &Rc<Thread>, address: u64) -> u64 {
        u64::from_le_bytes(self.read(thread, address, 8).try_into().unwrap())
    }

    /// Reads a 32-bit word of the thread's memory.
    #[track_caller]
    pub fn read_u32(&self, thread: &Rc<Thread>, address: u64) -> u32 {
        u32::from_le_bytes(self.read(thread, address, 4).try_into().unwrap())
    }
}
