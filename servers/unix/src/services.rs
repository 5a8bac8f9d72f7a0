//! Services of other tasks, as programs reach them (decision 0076): a few threads that carry
//! calls, so that the server never waits. Each has a desk, on which the server lays a request
//! and finds the answer; they tell each other by messages when it is whose turn.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::cell::{Cell, RefCell};

use abi::{IpcError, IpcErrorKind, ThreadId, Time, Timeouts};
use interfaces::tasks;
use runtime::service::{BIND, Carrier as _, Error, Thread};
use runtime::sync::Lock;
use runtime::{Msg, ipc, root, thread};
use unix::Errno;
use unix::machine::{Packet, Service};
use unix::stream::socket::service::STRING_MAX;

/// Label of a carrier's message: its call has ended. MR1: which carrier it is.
pub const LABEL: u64 = 0x402;
/// Calls that are under way at once.
const CARRIERS: usize = 8;
/// How long a carrier may take to be ready for a message, µs.
const PATIENCE_US: u64 = 50_000;
/// How long a service may take to be registered, ms, and to take a request, µs.
const FIND_MS: u64 = 1000;
const SEND_US: u64 = 2_000_000;
/// The name under which programs reach the root task, as the one who knows the tasks.
const TASKS: &str = "tasks";
/// Words of a message behind its tag.
const WORDS: usize = 63;

/// A message, as it lies on a desk.
struct Letter {
    label: u64,
    count: usize,
    words: [u64; WORDS],
    /// The string's bytes, if there is one.
    string: Option<usize>,
    bytes: Vec<u8>,
}

impl Letter {
    fn new() -> Self {
        Self { label: 0, count: 0, words: [0; WORDS], string: None, bytes: vec![0; STRING_MAX] }
    }

    fn put(&mut self, packet: &Packet) {
        self.label = packet.label;
        let words = packet.words.chunks_exact(8);
        self.count = words.len().min(WORDS);
        for (to, from) in self.words.iter_mut().zip(words) {
            *to = from.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        self.string = packet.string.map(|string| {
            let len = string.len().min(STRING_MAX);
            self.bytes[..len].copy_from_slice(&string[..len]);
            len
        });
    }

    fn string(&self) -> Option<&[u8]> {
        self.string.map(|len| &self.bytes[..len])
    }
}

/// What a carrier works on.
struct Desk {
    name: String,
    request: Letter,
    answer: Letter,
    outcome: Result<(), Errno>,
}

/// A thread that carries calls.
struct Carrier {
    id: ThreadId,
    /// Its name inside this task, which is how its messages come.
    local: ThreadId,
    desk: &'static Lock<Desk>,
    /// The call that it carries.
    call: Cell<Option<u64>>,
    /// Nobody wants it any more.
    given_up: Cell<bool>,
}

/// The services that programs may ask, and who carries their calls.
pub struct Services {
    server: ThreadId,
    offered: Vec<(String, u32)>,
    carriers: RefCell<Vec<Carrier>>,
}

impl Services {
    /// Those that the words `srv/NAME` and `srv/NAME=MODE` of the task's `args` name; calls end with
    /// a message to `server`.
    pub fn told(arguments: &str, server: ThreadId) -> Result<Self, String> {
        let mut offered = Vec::new();
        for word in arguments.split_whitespace() {
            let Some(service) = word.strip_prefix("srv/") else { continue };
            let (name, mode) = service.split_once('=').unwrap_or((service, "600"));
            let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o777);
            let Some(mode) = mode.filter(|_| !name.is_empty() && !name.contains('/')) else {
                return Err(format!(
                    "`{word}` in args is no service; write srv/NAME, or srv/NAME=666 for all users"
                ));
            };
            offered.push((String::from(name), mode));
        }
        Ok(Self { server, offered, carriers: RefCell::default() })
    }

    /// Names and permissions.
    pub fn offered(&self) -> Vec<Service> {
        let offered = self.offered.iter();
        offered.map(|(name, mode)| Service { name: name.clone(), mode: *mode }).collect()
    }

    /// Has a call carried.
    pub fn ask(&self, service: usize, call: u64, packet: &Packet) -> Result<(), Errno> {
        let (name, _) = self.offered.get(service).ok_or(Errno::ECONNREFUSED)?;
        let mut carriers = self.carriers.borrow_mut();
        let carrier = match carriers.iter().position(|carrier| carrier.call.get().is_none()) {
            Some(index) => &carriers[index],
            None if carriers.len() < CARRIERS => {
                let carrier = Carrier::start(self.server, carriers.len() as u64)?;
                carriers.push(carrier);
                &carriers[carriers.len() - 1]
            }
            None => {
                // One that was told to stop just before it began did not hear it.
                carriers.iter().for_each(Carrier::stop_again);
                return Err(Errno::EAGAIN);
            }
        };
        {
            let mut desk = carrier.desk.lock();
            desk.name.clone_from(name);
            desk.request.put(packet);
        }
        let patience = Time::micros(PATIENCE_US);
        ipc::send_within(carrier.id, &Msg::new(LABEL), patience)
            .map_err(|_| Errno::ECONNREFUSED)?;
        carrier.call.set(Some(call));
        carrier.given_up.set(false);
        Ok(())
    }

    /// Nobody wants `call` any more.
    pub fn give_up(&self, call: u64) {
        let carriers = self.carriers.borrow();
        if let Some(carrier) = carriers.iter().find(|carrier| carrier.call.get() == Some(call)) {
            carrier.given_up.set(true);
            carrier.stop_again();
        }
    }

    /// `from` says that its call has ended: which it was, and what came of it.
    pub fn ended(
        &self,
        from: ThreadId,
        msg: &Msg,
        told: impl FnOnce(u64, Result<Packet, Errno>),
    ) -> bool {
        let carriers = self.carriers.borrow();
        let carrier = carriers.get(msg.mr[0] as usize).filter(|carrier| carrier.local == from);
        let Some(carrier) = carrier.filter(|_| msg.label() == LABEL) else { return false };
        if let Some(call) = carrier.call.take() {
            let desk = carrier.desk.lock();
            let answer = &desk.answer;
            let words: Vec<u8> =
                answer.words[..answer.count].iter().flat_map(|word| word.to_le_bytes()).collect();
            let packet = Packet { label: answer.label, words: &words, string: answer.string() };
            told(call, desk.outcome.map(|()| packet));
        }
        true
    }
}

impl Carrier {
    fn start(server: ThreadId, index: u64) -> Result<Self, Errno> {
        let desk: &'static Lock<Desk> = Box::leak(Box::new(Lock::new(Desk {
            name: String::new(),
            request: Letter::new(),
            answer: Letter::new(),
            outcome: Ok(()),
        })));
        let id = thread::spawn(move || carry(server, index, desk)).map_err(|_| Errno::EAGAIN)?;
        let local = thread::other_id(id).unwrap_or(id);
        Ok(Self { id, local, desk, call: Cell::new(None), given_up: Cell::new(false) })
    }

    /// Ends its call, if nobody wants it: that wakes it, wherever it waits.
    fn stop_again(&self) {
        if self.given_up.get() && self.call.get().is_some() {
            thread::cancel_ipc(self.id);
        }
    }
}

fn carry(server: ThreadId, index: u64, desk: &'static Lock<Desk>) {
    loop {
        if ipc::receive(server, Time::NEVER).is_err() {
            continue;
        }
        {
            let desk = &mut *desk.lock();
            desk.outcome = call(desk);
        }
        // Given up meanwhile, it is interrupted once more.
        while ipc::send(server, &Msg::new(LABEL).word(index)).is_err() {}
    }
}

/// Asks the service; its answer is on the desk.
fn call(desk: &mut Desk) -> Result<(), Errno> {
    let service = find(&desk.name, desk.request.label)?;
    let request = &desk.request;
    let words = &request.words[..request.count];
    let msg = words.iter().fold(Msg::new(request.label), |msg, word| msg.word(*word));
    let timeouts = Timeouts::new(Time::micros(SEND_US), Time::NEVER);
    let letter = &mut desk.answer;
    let answer = Thread(service)
        .call_with(msg, request.string(), &mut letter.bytes, timeouts)
        .map_err(errno)?;
    letter.label = answer.tag.label();
    letter.count = answer.tag.untyped().min(WORDS);
    for (at, word) in letter.words[..letter.count].iter_mut().enumerate() {
        *word = answer.get(at);
    }
    letter.string = answer.string_in(&letter.bytes).map(<[u8]>::len);
    Ok(())
}

/// The thread that serves `name`. The root task has no name: as [`TASKS`] it is asked what its
/// interface for operators has, and nothing that it does for this task.
fn find(name: &str, label: u64) -> Result<ThreadId, Errno> {
    if name != TASKS {
        return root::find(name, FIND_MS).map_err(|_| Errno::ECONNREFUSED);
    }
    if label != BIND && !tasks::label::ALL.contains(&label) {
        return Err(Errno::EACCES);
    }
    Ok(ThreadId::ROOT)
}

/// What a program is told of a call that has no answer.
fn errno(error: Error) -> Errno {
    match error {
        Error::Ipc(error) if root::is_gone(error) => Errno::ECONNRESET,
        Error::Ipc(IpcError { kind: IpcErrorKind::Timeout, .. }) => Errno::ETIMEDOUT,
        Error::Ipc(IpcError { kind: IpcErrorKind::Overflow, .. }) => Errno::EMSGSIZE,
        _ => Errno::EIO,
    }
}
