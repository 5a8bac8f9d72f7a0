//! Services of other tasks, as programs reach them (decision 0076): a few workers that carry
//! calls, so that the server never waits.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::cell::RefCell;

use abi::{IpcError, IpcErrorKind, ThreadId, Time, Timeouts};
use interfaces::tasks;
use runtime::service::{BIND, Carrier as _, Error, Thread};
use runtime::workers::{Limits, Ticket, Way, Workers};
use runtime::{Msg, root};
use unix::Errno;
use unix::machine::{Packet, Service};
use unix::stream::socket::service::STRING_MAX;

/// Calls that are under way at once; who comes then is told so, and asks again.
const LIMITS: Limits = Limits { at_once: 8, queued: 0 };
/// How long a service may take to be registered, ms, and to take a request, µs.
const FIND_MS: u64 = 1000;
const SEND_US: u64 = 2_000_000;
/// The name under which programs reach the root task, as the one who knows the tasks.
const TASKS: &str = "tasks";
/// Words of a message behind its tag.
const WORDS: usize = 63;

/// A message, as it stands on a sheet.
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

/// A call of a service, and what comes of it.
struct Sheet {
    /// Which it is, for the library.
    call: u64,
    name: String,
    request: Letter,
    answer: Letter,
    outcome: Result<(), Errno>,
}

impl Sheet {
    fn new() -> Self {
        let (request, answer) = (Letter::new(), Letter::new());
        Self { call: 0, name: String::new(), request, answer, outcome: Ok(()) }
    }
}

/// The services that programs may ask, and who carries their calls.
pub struct Services {
    offered: Vec<(String, u32)>,
    carriers: RefCell<Carriers>,
}

/// Those who carry calls; this server's own thread is their distributor.
struct Carriers {
    /// It must not take part in local IPC: it answers programs, which are in spaces of their own.
    workers: Workers<Box<Sheet>>,
    /// Those that are under way.
    calls: Vec<(u64, Ticket)>,
    /// Sheets that have been used and are free.
    #[expect(clippy::vec_box, reason = "they go to the workers and back, a kilobyte each")]
    spare: Vec<Box<Sheet>>,
}

impl Services {
    /// Those that the words `srv/NAME` and `srv/NAME=MODE` of the task's `args` name.
    pub fn told(arguments: &str) -> Result<Self, String> {
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
        let workers =
            Workers::new(LIMITS, Way::Kernel, |sheet: &mut Box<Sheet>| sheet.outcome = call(sheet));
        let carriers = Carriers { workers, calls: Vec::new(), spare: Vec::new() };
        Ok(Self { offered, carriers: RefCell::new(carriers) })
    }

    /// Names and permissions.
    pub fn offered(&self) -> Vec<Service> {
        let offered = self.offered.iter();
        offered.map(|(name, mode)| Service { name: name.clone(), mode: *mode }).collect()
    }

    /// Has a call carried.
    pub fn ask(&self, service: usize, call: u64, packet: &Packet) -> Result<(), Errno> {
        let (name, _) = self.offered.get(service).ok_or(Errno::ECONNREFUSED)?;
        let carriers = &mut *self.carriers.borrow_mut();
        let mut sheet = carriers.spare.pop().unwrap_or_else(|| Box::new(Sheet::new()));
        sheet.call = call;
        sheet.name.clone_from(name);
        sheet.request.put(packet);
        match carriers.workers.give(sheet) {
            Ok(ticket) => {
                carriers.calls.push((call, ticket));
                Ok(())
            }
            Err(sheet) => {
                carriers.spare.push(sheet);
                // One that was told to stop just before it began did not hear it.
                carriers.workers.interrupt_again();
                Err(Errno::EAGAIN)
            }
        }
    }

    /// Nobody wants `call` any more: that wakes its carrier, wherever it waits.
    pub fn give_up(&self, call: u64) {
        let carriers = &mut *self.carriers.borrow_mut();
        let of_call = carriers.calls.iter().find(|(under_way, _)| *under_way == call);
        if let Some((_, ticket)) = of_call {
            // None waits in a queue: it would be in nobody's way.
            let _ = carriers.workers.interrupt(*ticket);
        }
    }

    /// Whether what `from` says is that a call has ended: `told` which it was, and what came of it.
    pub fn ended(
        &self,
        from: ThreadId,
        msg: &Msg,
        told: impl FnOnce(u64, Result<Packet, Errno>),
    ) -> bool {
        let ended = self.carriers.borrow_mut().workers.ended(from, msg);
        let Some((_, sheet)) = ended else { return false };
        let answer = &sheet.answer;
        let words: Vec<u8> =
            answer.words[..answer.count].iter().flat_map(|word| word.to_le_bytes()).collect();
        let packet = Packet { label: answer.label, words: &words, string: answer.string() };
        self.carriers.borrow_mut().calls.retain(|(call, _)| *call != sheet.call);
        told(sheet.call, sheet.outcome.map(|()| packet));
        self.carriers.borrow_mut().spare.push(sheet);
        true
    }
}

/// Asks the service; its answer is on the sheet.
fn call(sheet: &mut Sheet) -> Result<(), Errno> {
    let service = find(&sheet.name, sheet.request.label)?;
    let request = &sheet.request;
    let words = &request.words[..request.count];
    let msg = words.iter().fold(Msg::new(request.label), |msg, word| msg.word(*word));
    let timeouts = Timeouts::new(Time::micros(SEND_US), Time::NEVER);
    let letter = &mut sheet.answer;
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
