//! What can be done with thread numbers: of nobody, of others, of the next one.

use abi::inspect::What;
use abi::{Fpage, Item, MsgTag, Rights, ThreadId, Time, Timeouts, protocol};
use alloc::format;
use alloc::string::String;
use proto::{layout, root as op};
use runtime::window::Window;
use runtime::{Msg, accept, ipc, kernel, thread, utcb};

use crate::hostile::{Hostile, Reached, rest, wait_until};
use crate::machine::{self, share, shared};
use crate::order::{ALIVE, Help};

/// Thread of this task whose stack and UTCB the further threads use.
const INDEX: u64 = 15;
/// Another, for a second one.
const SECOND: u64 = 14;
/// The one that is left behind.
const LEFT: u64 = 13;
/// How long an answer may take, µs.
const PATIENCE_US: u64 = 50_000;
/// First thread number of Linux programs.
const PROGRAMS: u64 = 4096;
/// Numbers of programs that are occupied, as far as the quota goes.
const OCCUPIED: u64 = 40;

/// The shared words: what is asked for, whether it is I/O, the answer.
const ASKED: usize = 0;
const IS_IO: usize = 1;
const ANSWER: usize = 2;
const REFUSED: u64 = 1;
const GOT: u64 = 2;

/// Whether σ0 gives the calling thread what the words in `ASKED` and `IS_IO` say.
fn ask_sigma0() -> bool {
    let patience = Timeouts::new(Time::micros(PATIENCE_US), Time::micros(PATIENCE_US));
    let request = Msg::protocol(protocol::SIGMA0, 0).word(shared(ASKED)).word(0);
    let mut window = Window::claim(layout::WINDOWS, 4096);
    let ask = || ipc::call_within(ThreadId::SIGMA0, &request, patience);
    let reply = match &mut window {
        _ if shared(IS_IO) != 0 => Some(accept::ports(ask)),
        Some(window) => accept::window(window, ask),
        None => Some(ask()),
    };
    if let Some(window) = window {
        window.release();
    }
    reply.is_some_and(|reply| {
        reply.is_ok_and(|reply| match Item::decode(reply.mr[0], reply.mr[1]) {
            Item::Map(item) => reply.tag.typed() == 2 && !item.fpage.is_nil(),
            _ => false,
        })
    })
}

extern "C" fn ask_as_sigma1(_: u64) -> ! {
    share(ANSWER, if ask_sigma0() { GOT } else { REFUSED });
    rest()
}

/// Asks σ0 under σ1's thread number.
fn sigma1(what: &str, word: u64, is_io: bool) -> Reached {
    share(ASKED, word);
    share(IS_IO, is_io.into());
    let id = ThreadId::SIGMA1;
    if !machine::create(id, INDEX) {
        return None;
    }
    machine::start(id, INDEX, ask_as_sigma1, 0);
    wait_until(2 * PATIENCE_US, || shared(ANSWER) != 0);
    let _ = kernel::delete(id);
    (shared(ANSWER) == GOT).then(|| format!("under sigma1's number a task got {what} from sigma0"))
}

pub fn sigma0_direct(_: &Hostile) -> Reached {
    let requests = [
        (Fpage::memory(0xFEE0_0000, 12, Rights::NONE).0, false),
        (!0x3FF | 12 << 4, false),
        (Fpage::io(0x60, 3).0, true),
    ];
    let served = requests.iter().any(|(word, is_io)| {
        share(ASKED, *word);
        share(IS_IO, u64::from(*is_io));
        ask_sigma0()
    });
    served.then(|| String::from("sigma0 serves an ordinary task"))
}

pub fn sigma1_apic(_: &Hostile) -> Reached {
    sigma1("the local APIC's page", Fpage::memory(0xFEE0_0000, 12, Rights::NONE).0, false)
}

pub fn sigma1_pci(_: &Hostile) -> Reached {
    sigma1("the PCI configuration's ports", Fpage::io(0xCF8, 3).0, true)
}

pub fn sigma1_ports(_: &Hostile) -> Reached {
    sigma1("the keyboard controller's ports", Fpage::io(0x60, 3).0, true)
}

pub fn sigma1_memory(_: &Hostile) -> Reached {
    sigma1("a page of free memory", !0x3FF | 12 << 4, false)
}

/// Sends the pager a page fault for the address in shared word 0, as the kernel would.
extern "C" fn pretend_to_fault(pager: u64) -> ! {
    let Some(mut window) = Window::claim(layout::WINDOWS, 4096) else { rest() };
    let access = u32::from(Rights::RW.0);
    let fault = Msg::protocol(protocol::PAGE_FAULT, access).word(shared(0)).word(layout::IMAGE);
    let patience = Timeouts::new(Time::micros(PATIENCE_US), Time::micros(PATIENCE_US));
    let send = || ipc::call_within(ThreadId(pager), &fault, patience);
    let Some(reply) = accept::window(&mut window, send) else { rest() };
    if reply.is_ok_and(|reply| reply.tag.typed() == 2) {
        share(2, window.read(shared(0) & 0xFFF));
        window.write(shared(0) & 0xFFF, 0xBAD);
    }
    share(1, 1);
    rest()
}

/// A thread with a free number of the victim's and its generation tells the pager that it
/// has a page fault where the victim's secret is.
pub fn hand_made_fault(hostile: &Hostile) -> Reached {
    let [victim, secret] = hostile.ask(Help::Victim, 0);
    let (slot, _) = layout::slot_of(ThreadId(victim).number())?;
    let generation = op::generation_of(ThreadId(victim).version());
    let id = ThreadId::global(layout::thread_number(slot, INDEX), op::version_of(generation, 0));
    if !machine::create(id, INDEX) {
        return None;
    }
    share(0, secret + 8);
    machine::start(id, INDEX, pretend_to_fault, utcb::pager().0);
    wait_until(3 * PATIENCE_US, || shared(1) != 0);
    let _ = kernel::delete(id);
    let seen = hostile.ask(Help::IsSecret, shared(2))[0] == 1;
    seen.then(|| String::from("the pager gave the victim's page to another task: read and changed"))
}

/// A space of this task's own, in which somebody else may be started.
fn nest(id: ThreadId) -> bool {
    let kip = Fpage::memory(layout::KIP, 12, Rights::NONE);
    let utcbs = Fpage::memory(layout::UTCBS, layout::UTCB_BITS, Rights::NONE);
    kernel::create(id, id, thread::me(), layout::utcb_location(1)).is_ok()
        && kernel::configure_space(id, kip, utcbs).is_ok()
}

/// Occupies the number of the task that is started next: the root task's "create" then
/// finds a thread, and makes it the new task's.
pub fn next_task(hostile: &Hostile) -> Reached {
    let next = ThreadId(hostile.ask(Help::NextHeir, 0)[0]);
    let own = hostile.own_id(INDEX);
    let there =
        nest(own) && kernel::create(next, own, thread::me(), layout::utcb_location(0)).is_ok();
    let heir = ThreadId(hostile.ask(Help::StartHeir, 0)[0]);
    let mine = there && !heir.is_nil() && thread::registers(heir).is_some();
    let refused = there && heir.is_nil();
    let _ = kernel::delete(next);
    let _ = kernel::delete(own);
    match (mine, refused) {
        (true, _) => Some(String::from("the thread of a task that was started is the attacker's")),
        (_, true) => Some(String::from("a task could not be started: its number was taken")),
        _ => None,
    }
}

/// Occupies the numbers of the victim's further threads.
pub fn threads_of_another(hostile: &Hostile) -> Reached {
    let victim = ThreadId(hostile.ask(Help::Victim, 0)[0]);
    let (slot, _) = layout::slot_of(victim.number())?;
    let ids = (1..layout::THREADS).map(|i| ThreadId::global(layout::thread_number(slot, i), 65));
    let taken = ids
        .clone()
        .filter(|id| kernel::create(*id, thread::me(), thread::me(), !0).is_ok())
        .count();
    let spawned = hostile.ask(Help::VictimSpawns, 0)[0] == 1;
    for id in ids {
        let _ = kernel::delete(id);
    }
    (!spawned).then(|| format!("a task with {taken} of the victim's numbers kept it from threads"))
}

/// Occupies the numbers that the Unix server gives its next programs.
pub fn unix_numbers(hostile: &Hostile) -> Reached {
    let mut last = PROGRAMS;
    while let Some(record) = kernel::inspect(What::Thread, last, 0) {
        last = u64::from(ThreadId(record[0]).number()) + 1;
    }
    let ids = (last..last + OCCUPIED).map(|number| ThreadId::global(number as u32, 65));
    let taken = ids
        .clone()
        .filter(|id| kernel::create(*id, thread::me(), thread::me(), !0).is_ok())
        .count();
    // The judge looks whether Linux programs get on; the numbers stay taken until then.
    hostile.ask(Help::Pause, if taken == 0 { 0 } else { 300_000 });
    for id in ids {
        let _ = kernel::delete(id);
    }
    None
}

/// Makes a thread, deletes it, and makes another one with its very id.
pub fn id_again(hostile: &Hostile) -> Reached {
    let id = hostile.own_id(INDEX);
    if !machine::create(id, INDEX) || kernel::delete(id).is_err() {
        return None;
    }
    let again = machine::create(id, INDEX);
    let _ = kernel::delete(id);
    again.then(|| format!("the id {id} was given to a second thread"))
}

/// Sends the server a message in the name of the thread in shared word 1.
extern "C" fn send_in_a_name(server: u64) -> ! {
    utcb::set_virtual_sender(ThreadId(shared(1)));
    let mut msg = Msg::new(0x1234).word(1);
    msg.tag = msg.tag.with(MsgTag::PROPAGATED);
    let _ = ipc::send_within(ThreadId(server), &msg, Time::micros(1_000_000));
    rest()
}

/// Queues a message in the name of an own thread whose id another task gets meanwhile.
pub fn false_sender(hostile: &Hostile) -> Reached {
    let name = ThreadId(hostile.ask(Help::NextHeir, 0)[0]);
    let server = hostile.ask(Help::Server, 0)[0];
    let sender = hostile.own_id(INDEX);
    if !machine::create(name, SECOND) || !machine::create(sender, INDEX) {
        let _ = kernel::delete(name);
        return None;
    }
    share(1, name.0);
    machine::start(sender, INDEX, send_in_a_name, server);
    ipc::sleep(5_000);
    let _ = kernel::delete(name);
    let heir = hostile.ask(Help::StartHeir, 0)[0];
    let seen = hostile.ask(Help::Listen, 0)[0];
    let _ = kernel::delete(sender);
    (heir != 0 && seen == heir)
        .then(|| String::from("a message came in the name of a task that sent nothing"))
}

/// Says that it lives, for a while.
extern "C" fn live_on(judge: u64) -> ! {
    for _ in 0..100 {
        let _ = ipc::send_within(ThreadId(judge), &Msg::new(ALIVE), Time::ZERO);
        ipc::sleep(3_000);
    }
    rest()
}

/// Leaves a thread of its own making behind when the task is ended.
pub fn outlive(hostile: &Hostile) -> Reached {
    let id = hostile.own_id(LEFT);
    if machine::create(id, LEFT) {
        machine::start(id, LEFT, live_on, hostile.judge().0);
    }
    None
}
