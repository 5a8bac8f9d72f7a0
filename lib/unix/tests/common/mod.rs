//! A machine made of ordinary memory, and a world to try the server in: the tests play
//! the programs (they make the calls that a program would make) and look at the answers.

#![allow(dead_code)]

pub mod program;

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;
use std::rc::Rc;

use unix::Unix;
use unix::errno::Errno;
use unix::machine::{
    Access, Machine, MachineThread, Mapping, Registers, Reply, SpaceId, VECTOR_STATE_MAX,
};
use unix::memory::{FrameId, Memory, PAGE};
use unix::thread::Thread;

/// Frames of a [`World`] unless it asks for another number: 64 MiB.
pub const FRAMES: usize = 16384;
/// Bytes of vector state: XSAVE with SSE and AVX.
pub const VECTOR_BYTES: usize = 832;
/// 2026-01-01, the time at boot.
pub const BOOT_NS: u64 = 1_767_225_600_000_000_000;
/// Size of a process's scratch area.
pub const SCRATCH: u64 = 1 << 20;

/// A thread of the machine.
pub struct FakeThread {
    pub space: SpaceId,
    pub registers: Registers,
    pub vector: Vec<u8>,
    pub bound: Option<Rc<Thread>>,
    pub user_ns: u64,
    pub stops: u32,
}

/// A machine whose clock stands still until somebody turns it.
#[derive(Default)]
pub struct FakeMachine {
    pub now_ns: Cell<u64>,
    pub alarm: Cell<Option<u64>>,
    pub threads: RefCell<BTreeMap<MachineThread, FakeThread>>,
    pub spaces: RefCell<BTreeMap<SpaceId, BTreeMap<u64, Mapping>>>,
    pub revoked: RefCell<Vec<(FrameId, Access)>>,
    pub console: RefCell<Vec<u8>>,
    pub log: RefCell<Vec<String>>,
    pub halted: Cell<Option<u32>>,
    pub max_threads: Cell<usize>,
    next: Cell<u32>,
    random: Cell<u64>,
}

impl FakeMachine {
    fn fresh(&self) -> u32 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    /// What the program of `space` has mapped at a page.
    pub fn mapping(&self, space: SpaceId, page: u64) -> Option<Mapping> {
        self.spaces.borrow().get(&space)?.get(&page).copied()
    }

    /// Works on a thread, which must be there.
    #[track_caller]
    pub fn with<T>(&self, thread: MachineThread, work: impl FnOnce(&mut FakeThread) -> T) -> T {
        work(self.threads.borrow_mut().get_mut(&thread).expect("no such thread"))
    }
}

/// The machine as the server holds it.
struct Handle(Rc<FakeMachine>);

impl Machine for Handle {
    fn now_ns(&self) -> u64 {
        self.0.now_ns.get()
    }
    fn boot_time_ns(&self) -> u64 {
        BOOT_NS
    }
    fn tsc_scale(&self) -> (u64, u64) {
        (0, 1 << 32)
    }
    fn set_alarm(&self, at_ns: Option<u64>) {
        self.0.alarm.set(at_ns);
    }
    fn create_space(&self) -> Result<SpaceId, Errno> {
        let space = SpaceId(self.0.fresh());
        self.0.spaces.borrow_mut().insert(space, BTreeMap::new());
        Ok(space)
    }
    fn destroy_space(&self, space: SpaceId) {
        let threads = self.0.threads.borrow();
        assert!(threads.values().all(|thread| thread.space != space), "a space with threads");
        assert!(self.0.spaces.borrow_mut().remove(&space).is_some(), "no such space");
    }
    fn create_thread(&self, space: SpaceId) -> Result<MachineThread, Errno> {
        assert!(self.0.spaces.borrow().contains_key(&space), "a thread in no space");
        let mut threads = self.0.threads.borrow_mut();
        if threads.len() >= self.0.max_threads.get() {
            return Err(Errno::EAGAIN);
        }
        let id = MachineThread(u64::from(self.0.fresh()));
        let registers = Registers { rip: 0x40_0000, rsp: 0x7000_0000, ..Registers::default() };
        let vector = vec![0; VECTOR_BYTES];
        let thread = FakeThread { space, registers, vector, bound: None, user_ns: 0, stops: 0 };
        threads.insert(id, thread);
        Ok(id)
    }
    fn destroy_thread(&self, thread: MachineThread) {
        let gone = self.0.threads.borrow_mut().remove(&thread).expect("no such thread");
        assert!(gone.bound.is_none(), "destroyed while bound");
    }
    fn bind(&self, machine: MachineThread, thread: Option<&Rc<Thread>>) {
        self.0.with(machine, |machine| machine.bound = thread.cloned());
    }
    fn stop(&self, thread: MachineThread) {
        self.0.with(thread, |thread| thread.stops += 1);
    }
    fn registers(&self, thread: MachineThread) -> Registers {
        self.0.with(thread, |thread| thread.registers)
    }
    fn set_registers(&self, thread: MachineThread, registers: &Registers) {
        self.0.with(thread, |thread| thread.registers = *registers);
    }
    fn vector_state(&self, thread: MachineThread, to: &mut [u8; VECTOR_STATE_MAX]) -> usize {
        self.0.with(thread, |thread| to[..VECTOR_BYTES].copy_from_slice(&thread.vector));
        VECTOR_BYTES
    }
    fn set_vector_state(&self, thread: MachineThread, from: &[u8]) {
        let mut vector = from.to_vec();
        vector.resize(VECTOR_BYTES, 0);
        self.0.with(thread, |thread| thread.vector = vector);
    }
    fn copy_vector_state(&self, from: MachineThread, to: MachineThread) {
        let vector = self.0.with(from, |thread| thread.vector.clone());
        self.0.with(to, |thread| thread.vector = vector);
    }
    fn map(&self, thread: MachineThread, pages: &[Mapping]) {
        let space = self.0.with(thread, |thread| thread.space);
        let mut spaces = self.0.spaces.borrow_mut();
        let space = spaces.get_mut(&space).expect("no such space");
        for page in pages {
            assert_eq!(page.address % PAGE as u64, 0, "a mapping at {:#x}", page.address);
            space.insert(page.address, *page);
        }
    }
    fn revoke(&self, frames: &[FrameId], rights: Access) {
        let mut spaces = self.0.spaces.borrow_mut();
        for frame in frames {
            self.0.revoked.borrow_mut().push((*frame, rights));
            for space in spaces.values_mut() {
                for page in space.values_mut().filter(|page| page.frame == *frame) {
                    page.access -= rights;
                }
                space.retain(|_, page| !page.access.is_empty());
            }
        }
    }
    fn is_running(&self, _thread: MachineThread) -> bool {
        true
    }
    fn user_time_ns(&self, thread: MachineThread) -> u64 {
        self.0.with(thread, |thread| thread.user_ns)
    }
    fn console_write(&self, bytes: &[u8]) {
        self.0.console.borrow_mut().extend_from_slice(bytes);
    }
    fn random(&self, to: &mut [u8]) {
        for byte in to {
            let state = self.0.random.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            self.0.random.set(state);
            *byte = (state >> 56) as u8;
        }
    }
    fn log(&self, line: &str) {
        self.0.log.borrow_mut().push(line.to_string());
    }
    fn halt(&self, status: u32) {
        self.0.halted.set(Some(status));
    }
}

/// A server with process 1, and what it answered.
pub struct World {
    pub unix: Unix,
    pub machine: Rc<FakeMachine>,
    pub first: Rc<Thread>,
    replies: RefCell<BTreeMap<MachineThread, VecDeque<Reply>>>,
    scratch: RefCell<BTreeMap<u32, (u64, u64)>>,
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
        let layout = Layout::from_size_align(frames * PAGE, PAGE).unwrap();
        // SAFETY: the size is not zero.
        let base = NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap();
        // SAFETY: page-aligned memory that only `Memory` touches; freed after it.
        let memory = unsafe { Memory::new(base, frames) };
        let machine = Rc::new(FakeMachine::default());
        machine.max_threads.set(4096);
        machine.now_ns.set(1_000_000_000);
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

    /// The thread with this id.
    #[track_caller]
    pub fn thread(&self, tid: u64) -> Rc<Thread> {
        let threads = self.unix.processes.by_tid.borrow();
        threads.get(&(tid as u32)).unwrap_or_else(|| panic!("no thread {tid}")).clone()
    }

    /// A process forks; the child's thread is ready to make calls.
    #[track_caller]
    pub fn fork(&self, parent: &Rc<Thread>) -> Rc<Thread> {
        let tid = self.ok(parent, linux_raw_sys::general::__NR_fork, &[]);
        let child = self.thread(tid);
        assert_eq!(self.next_event(&child), Some(Reply::Resume));
        let area = self.scratch.borrow().get(&parent.process().pid).copied();
        if let Some(area) = area {
            self.scratch.borrow_mut().insert(tid as u32, area);
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
            self.unix.alarm();
            self.collect();
        }
        self.machine.now_ns.set(end);
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
