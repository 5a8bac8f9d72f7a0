//! What the root task does for a task: the client side of `proto::root`.

use abi::{Framebuffer, IpcError, IpcErrorKind, Phase, ThreadId};
pub use interfaces::names::{Identity, Rights};
use interfaces::{names, parent, tasks};
pub use proto::Refusal;
use proto::{Name, REFUSED};

use crate::port::Ports;
use crate::service::{self, Thread};
use crate::window::Window;
use crate::{Msg, accept, ipc};

/// Exit code of a program that panicked.
pub const PANICKED: u64 = 101;

/// Calls the root task.
pub fn call(msg: &Msg) -> Result<Msg, Refusal> {
    answer(ipc::call(ThreadId::ROOT, msg))
}

/// An IPC's result as a server's answer.
pub fn answer(result: ipc::Result<Msg>) -> Result<Msg, Refusal> {
    match result {
        Ok(msg) if msg.label() == REFUSED => Err(Refusal::decode(msg.mr[0])),
        Ok(msg) => Ok(msg),
        Err(_) => Err(Refusal::NoAnswer),
    }
}

/// The root task as the server of names.
const NAMES: names::Client<Thread> = names::Client::new(Thread(ThreadId::ROOT));

/// The root task as this task's parent.
const PARENT: parent::Client<Thread> = parent::Client::new(Thread(ThreadId::ROOT));

/// The root task as the one who knows the tasks.
const TASKS: tasks::Client<Thread> = tasks::Client::new(Thread(ThreadId::ROOT));

/// A call's result as a server's answer.
pub fn outcome<T>(
    result: Result<Result<T, interfaces::common::Refusal>, service::Error>,
) -> Result<T, Refusal> {
    result.map_err(|_| Refusal::NoAnswer)?.map_err(Refusal::from)
}

/// Registers this thread under `name`.
pub fn register(name: &str) -> Result<(), Refusal> {
    outcome(NAMES.register(Name::new(name).as_str()))
}

/// The thread that is registered under `name`.
pub fn lookup(name: &str) -> Result<ThreadId, Refusal> {
    outcome(NAMES.lookup(Name::new(name).as_str()))
}

/// Like [`lookup`], repeated for up to `patience_ms` milliseconds.
pub fn find(name: &str, patience_ms: u64) -> Result<ThreadId, Refusal> {
    for _ in 0..patience_ms / 5 {
        if let Ok(thread) = lookup(name) {
            return Ok(thread);
        }
        ipc::sleep(5000);
    }
    lookup(name)
}

/// For a server: whose thread `client` is, and what that task's description says.
pub fn client(client: ThreadId) -> Result<Identity, Refusal> {
    outcome(NAMES.client(client))
}

/// Maps the I/O ports `base` to `base + count − 1`.
pub fn ports(base: u16, count: u16) -> Result<Ports, Refusal> {
    accept::ports(|| outcome(PARENT.ports(base.into(), count.into())))?;
    Ok(Ports::new(base, count))
}

/// Interrupts of `line` become messages to this thread.
pub fn attach_irq(line: u32) -> Result<ThreadId, Refusal> {
    outcome(PARENT.attach_interrupt(line))?;
    Ok(ThreadId::irq(line))
}

/// What a call maps into `window`.
fn mapped<T>(
    window: &mut Window,
    call: impl FnOnce() -> Result<Result<T, interfaces::common::Refusal>, service::Error>,
) -> Result<T, Refusal> {
    outcome(accept::window(window, call).ok_or(Refusal::BadArgument)?)
}

/// Fills `window` with contiguous memory (at `physical`, or anywhere); ordinary memory
/// is zeroed. Returns the physical address.
pub fn memory(window: &mut Window, physical: Option<u64>) -> Result<u64, Refusal> {
    let bits = window.bytes().trailing_zeros();
    let block = mapped(window, || PARENT.memory(bits, physical))?;
    if block.is_used {
        window.zero(0, window.bytes());
    }
    Ok(block.physical)
}

/// Shows the raw file `name` of the boot image in `window`, from the page of `offset` on, as far as one answer maps.
pub fn file(window: &mut Window, name: &str, offset: u64) -> Result<parent::Part, Refusal> {
    mapped(window, || PARENT.file(Name::new(name).as_str(), offset))
}

/// The boot loader's framebuffer in `window`, and where in that its first pixel is. The description of
/// the task must name it; refused as unknown where there is none.
pub fn framebuffer(window: &mut Window) -> Result<(Framebuffer, u64), Refusal> {
    let parent::Picture { address, row, height, bits, format } =
        mapped(window, || PARENT.framebuffer())?;
    let said = Framebuffer::decode([address, row, height, bits, format]);
    let offset = said.address % window.bytes();
    let fits = said.check().is_ok() && offset + said.bytes() <= window.bytes();
    if fits { Ok((said, offset)) } else { Err(Refusal::BadArgument) }
}

/// A new thread of this space, not started: its id and its index in the task.
pub fn create_thread() -> Result<(ThreadId, u64), Refusal> {
    outcome(PARENT.create_thread()).map(|made| (made.id, made.index))
}

/// A new thread in a space of its own, with this thread as its pager.
pub fn create_space() -> Result<(ThreadId, u64), Refusal> {
    outcome(PARENT.create_space()).map(|made| (made.id, made.index))
}

/// Sets the priority of a thread of this task: at most that which its description gives the task.
pub fn set_priority(thread: ThreadId, priority: u8) -> Result<(), Refusal> {
    outcome(PARENT.set_priority(thread, priority))
}

/// Has a thread of this task run on processor `number`, as the interface page counts them ([`crate::kip::Kip::processors`]).
///
/// # Errors
/// [`Refusal::NotAllowed`] if its description keeps the task where it is (no `processors = "all"`),
/// [`Refusal::BadArgument`] if there is no such processor, [`Refusal::Unknown`] for threads of others.
pub fn set_processor(thread: ThreadId, number: u32) -> Result<(), Refusal> {
    outcome(PARENT.set_processor(thread, number))
}

/// Deletes a thread of this task; does not return if it is the caller.
pub fn delete_thread(thread: ThreadId) {
    let _ = PARENT.delete_thread(thread);
}

/// Whether a thread of this task exists.
#[must_use]
pub fn is_alive(thread: ThreadId) -> bool {
    PARENT.is_alive(thread) == Ok(true)
}

/// Announces the end of this task.
pub(crate) fn exit(code: u64) {
    let _ = PARENT.exit(code);
}

/// For the console's driver: it has sent all that it had; whether the root task heard of it.
///
/// # Errors
/// When it was at something else.
pub fn drained() -> Result<(), service::Error> {
    PARENT.drained()
}

/// Shows text (at most 480 bytes) by way of the root task; what is too much for it is lost.
pub fn log(text: &[u8]) {
    for _ in 0..LOG_TRIES {
        // Another thread of this task may be at it.
        let text = &text[..text.len().min(proto::console::WORD_BYTES)];
        if PARENT.log(text) != Ok(Err(interfaces::common::Refusal::Exhausted)) {
            return;
        }
        ipc::sleep(LOG_PAUSE_US);
    }
}

/// How often, and how far apart in µs, a text is offered.
const LOG_TRIES: u32 = 5;
const LOG_PAUSE_US: u64 = 2_000;

/// A message of `label` with MR1 = number of bytes, then the bytes in words.
#[must_use]
pub fn text_message(label: u64, text: &[u8]) -> Msg {
    let text = &text[..text.len().min(proto::console::WORD_BYTES)];
    with_text(Msg::new(label).word(text.len() as u64), text)
}

/// [`text_message`] with MR2 = `word` before the text.
#[must_use]
pub fn text_message_for(label: u64, word: u64, text: &[u8]) -> Msg {
    let text = &text[..text.len().min(proto::console::WORD_BYTES)];
    with_text(Msg::new(label).word(text.len() as u64).word(word), text)
}

fn with_text(msg: Msg, text: &[u8]) -> Msg {
    text.chunks(8).fold(msg, |msg, chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        msg.word(u64::from_le_bytes(bytes))
    })
}

/// The text of a message made by [`text_message`]; returns its length.
pub fn message_text(msg: &Msg, buffer: &mut [u8]) -> usize {
    message_text_behind(msg, 1, buffer)
}

/// The text of a message, behind `words` words of which the first is its length.
pub fn message_text_behind(msg: &Msg, words: usize, buffer: &mut [u8]) -> usize {
    let room = msg.tag.untyped().saturating_sub(words) * 8;
    let len = (msg.mr[0] as usize).min(buffer.len()).min(room);
    for (index, chunk) in buffer[..len].chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&msg.get(index + words).to_le_bytes()[..chunk.len()]);
    }
    len
}

/// This task's argument line (what follows `args=` in its description) into `buffer`.
pub fn arguments(buffer: &mut [u8]) -> &str {
    let mut room = [0; parent::ROOM];
    let given = PARENT.arguments(&mut room).unwrap_or_default();
    let len = given.len().min(buffer.len());
    buffer[..len].copy_from_slice(&given[..len]);
    core::str::from_utf8(&buffer[..len]).unwrap_or("")
}

/// A task, as the root task describes it.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// What it is called.
    pub name: Name,
    /// What it is doing.
    pub state: tasks::State,
    /// Its first thread; nilthread if it does not run.
    pub main: ThreadId,
    /// How often it was started again.
    pub restarts: u64,
    /// What it left when it ended.
    pub exit_code: u64,
    /// Time until it is started again, µs.
    pub again_us: u64,
}

/// The task in slot `index`; refused behind the last.
pub fn describe(index: u64) -> Result<About, Refusal> {
    let mut room = [0; tasks::ROOM];
    let tasks::Task { name, state, main, restarts, exit_code, again_us } =
        outcome(TASKS.describe(index, &mut room))?;
    Ok(About { name: Name::new(name), state, main, restarts, exit_code, again_us })
}

/// Starts the task `name`. For those with `control`.
pub fn start(name: &str) -> Result<(), Refusal> {
    outcome(TASKS.start(Name::new(name).as_str())).map(|_| ())
}

/// Ends the task `name`; returns whether it was started again. For those with `control`.
pub fn kill(name: &str) -> Result<bool, Refusal> {
    outcome(TASKS.kill(Name::new(name).as_str()))
}

/// Ends the task `name` and starts it afresh. For those with `control`.
pub fn restart(name: &str) -> Result<(), Refusal> {
    outcome(TASKS.restart(Name::new(name).as_str())).map(|_| ())
}

/// Waits until the task `name` is over; returns its exit code.
pub fn wait(name: &str) -> Result<u64, Refusal> {
    outcome(TASKS.wait(Name::new(name).as_str()))
}

/// Where memory is.
pub fn memory_use() -> Result<tasks::Memory, Refusal> {
    TASKS.memory_use().map_err(|_| Refusal::NoAnswer)
}

/// A record of the kernel's. For those with `control`.
pub fn inspect(what: abi::inspect::What, index: u64, argument: u64) -> Result<[u64; 8], Refusal> {
    outcome(TASKS.inspect(what as u64, index, argument)).map(Into::into)
}

/// Ends the machine; does not return if that is allowed, but with a refusal.
pub fn halt(code: u64) -> Result<(), Refusal> {
    outcome(TASKS.halt(code))
}

/// Whether `error` says that the partner is gone.
#[must_use]
pub fn is_gone(error: IpcError) -> bool {
    error.kind == IpcErrorKind::NonExisting
        || (error.kind == IpcErrorKind::Cancelled && error.phase == Phase::Receive)
}
