//! A machine made of ordinary memory, whose clock stands still until somebody turns it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use unix::errno::Errno;
use unix::machine::{
    Access, Gauge, Machine, MachineThread, Mapping, Packet, Registers, Service, Share, SpaceId,
    Told, Urgency, VECTOR_STATE_MAX,
};
use unix::memory::{FrameId, PAGE};
use unix::thread::Thread;

/// Bytes of vector state: XSAVE with SSE and AVX.
pub const VECTOR_BYTES: usize = 832;
/// 2026-01-01, the time at boot.
pub const BOOT_NS: u64 = 1_767_225_600_000_000_000;

/// A thread of the machine.
pub struct FakeThread {
    pub space: SpaceId,
    pub registers: Registers,
    pub vector: Vec<u8>,
    pub bound: Option<Rc<Thread>>,
    pub user_ns: u64,
    pub system_ns: u64,
    pub stops: u32,
    pub processor: u32,
    /// How often it was brought back.
    pub fences: u32,
    /// Urgency and ticks, if they are not those of nice 0.
    pub share: Option<Share>,
}

/// A machine whose clock stands still until somebody turns it.
#[derive(Default)]
pub struct FakeMachine {
    pub now_ns: Cell<u64>,
    pub alarm: Cell<Option<u64>>,
    /// Whether others are to have their turn before some go on.
    pub turn: Cell<bool>,
    /// Programs are placed at random.
    pub randomizes: Cell<bool>,
    /// Alarms that went off.
    pub alarms: Cell<u32>,
    /// How long a look at the clock takes.
    pub ns_per_look: Cell<u64>,
    pub threads: RefCell<BTreeMap<MachineThread, FakeThread>>,
    pub spaces: RefCell<BTreeMap<SpaceId, BTreeMap<u64, Mapping>>>,
    /// Pages of kernel memory that the newest space was to have.
    pub kernel_pages: Cell<u64>,
    /// No kernel memory is left for spaces.
    pub refuses_spaces: Cell<bool>,
    pub revoked: RefCell<Vec<(FrameId, Access)>>,
    pub console: RefCell<Vec<u8>>,
    pub log: RefCell<Vec<String>>,
    pub halted: Cell<Option<u32>>,
    pub max_threads: Cell<usize>,
    /// Processors beside the first.
    pub others: Cell<u32>,
    /// What its CPUID says.
    pub cpuid: RefCell<BTreeMap<(u32, u32), [u32; 4]>>,
    /// Services that programs may ask: names and permissions.
    pub services: RefCell<Vec<(&'static str, u32)>>,
    /// Calls that it carries at once.
    pub carriers: Cell<usize>,
    /// What it carries: the service, the call, label, words, string.
    pub asked: RefCell<Vec<Asked>>,
    /// Calls that were given up.
    pub given_up: RefCell<Vec<u64>>,
    /// What native tasks' threads were told.
    pub told: RefCell<Vec<(u64, Heard)>>,
    /// Native tasks' threads that have given up waiting.
    pub impatient: RefCell<Vec<u64>>,
    next: Cell<u32>,
    random: Cell<u64>,
}

/// What a native task was told.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Accepted(u64, u32),
    Came(Vec<u8>),
    Sent(u32),
    Refused(Errno),
}

/// A message to a service.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    pub service: usize,
    pub call: u64,
    pub label: u64,
    pub words: Vec<u8>,
    pub string: Option<Vec<u8>>,
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
pub struct Handle(pub Rc<FakeMachine>);

impl Machine for Handle {
    fn now_ns(&self) -> u64 {
        self.0.now_ns.replace(self.0.now_ns.get() + self.0.ns_per_look.get())
    }
    fn boot_time_ns(&self) -> u64 {
        BOOT_NS
    }
    fn tsc_scale(&self) -> (u64, u64) {
        (0, 1 << 32)
    }
    fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        self.0.cpuid.borrow().get(&(leaf, subleaf)).copied().unwrap_or_default()
    }
    fn ask_for_turn(&self, _: Urgency) {
        self.0.turn.set(true);
    }
    fn set_alarm(&self, at_ns: Option<u64>) {
        self.0.alarm.set(at_ns);
    }
    fn create_space(&self, pages: u64) -> Result<SpaceId, Errno> {
        if self.0.refuses_spaces.get() {
            return Err(Errno::EAGAIN);
        }
        self.0.kernel_pages.set(pages);
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
        let thread = FakeThread {
            space,
            registers,
            vector,
            bound: None,
            user_ns: 0,
            system_ns: 0,
            stops: 0,
            processor: 0,
            fences: 0,
            share: None,
        };
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
    fn processors(&self) -> u32 {
        1 + self.0.others.get()
    }
    fn set_processor(&self, thread: MachineThread, number: u32) -> bool {
        self.0.with(thread, |thread| thread.processor = number);
        number < self.processors()
    }
    fn bring_back(&self, thread: MachineThread) {
        self.0.with(thread, |thread| thread.fences += 1);
    }
    fn set_share(&self, thread: MachineThread, share: Share) {
        self.0.with(thread, |thread| thread.share = Some(share));
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
    fn user_time_ns(&self, thread: MachineThread) -> u64 {
        self.0.with(thread, |thread| thread.user_ns)
    }
    fn system_time_ns(&self, thread: MachineThread) -> u64 {
        self.0.with(thread, |thread| thread.system_ns)
    }
    fn console_write(&self, bytes: &[u8]) {
        self.0.console.borrow_mut().extend_from_slice(bytes);
    }
    fn services(&self) -> Vec<Service> {
        let services = self.0.services.borrow();
        services.iter().map(|(name, mode)| Service { name: (*name).into(), mode: *mode }).collect()
    }
    fn ask_service(&self, service: usize, call: u64, packet: &Packet) -> Result<(), Errno> {
        let mut asked = self.0.asked.borrow_mut();
        if asked.len() >= self.0.carriers.get() {
            return Err(Errno::EAGAIN);
        }
        let (words, string) = (packet.words.to_vec(), packet.string.map(<[u8]>::to_vec));
        asked.push(Asked { service, call, label: packet.label, words, string });
        Ok(())
    }
    fn give_up_call(&self, call: u64) {
        self.0.given_up.borrow_mut().push(call);
    }
    fn tell_native(&self, asker: u64, told: Told) -> bool {
        if self.0.impatient.borrow().contains(&asker) {
            return false;
        }
        let heard = match told {
            Told::Accepted { socket, uid } => Heard::Accepted(socket, uid),
            Told::Came(bytes) => Heard::Came(bytes.to_vec()),
            Told::Sent(count) => Heard::Sent(count),
            Told::Refused(errno) => Heard::Refused(errno),
        };
        self.0.told.borrow_mut().push((asker, heard));
        true
    }
    fn heap_gauge(&self) -> Gauge {
        crate::given_back::heap
    }
    fn randomizes(&self) -> bool {
        self.0.randomizes.get()
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
