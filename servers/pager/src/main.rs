//! The pager of ordinary tasks: text shared from the boot modules, data copied,
//! everything else zeroed, all on demand.
//!
//! One thread. Its frames and its book lie in a pool that the root task keeps
//! (`runtime::pool`), so it can be killed and started again at any time: the
//! clients fault once more on each page and find it unchanged. It talks to the
//! root task only, never to servers that it pages itself.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::cell::RefCell;

use abi::{Numbers, ThreadId, Timeouts, protocol};
use interfaces::images;
use interfaces::pager::{Figures, Serve, Server};
use paging::{Image, Refusal};
use proto::{layout, pager as op, root as root_op};
use runtime::pool::{Client, Modules, Pool, SLOTS};
use runtime::service::{Caller, Dispatch as _, Thread};
use runtime::space::Fault;
use runtime::window::Window;
use runtime::{Msg, entry, ipc, root};

entry!(main);

/// Bytes of physical memory that the module window can show.
const MODULES_BYTES: u64 = 1 << 36;
/// The root task, who knows what programs tasks have.
const ROOT: images::Client<Thread> = images::Client::new(Thread(ThreadId::ROOT));

struct Pager {
    pool: Pool,
    modules: Modules,
    clients: [Option<(Client, Numbers)>; SLOTS],
    faults: u64,
    texts: u64,
}

/// What to do next.
enum Next {
    /// Answer somebody and wait.
    Answer(ThreadId, Msg),
    /// Report a bad fault to the root task, which ends the thread, and wait.
    Report(Msg),
    /// Wait.
    Wait,
}

impl Next {
    /// Does it; returns the next request. A report and the wait are one
    /// operation, so that the root task finds the pager waiting.
    fn request(self) -> (ThreadId, Msg) {
        match self {
            Self::Answer(to, msg) => ipc::next_request(Some((to, msg))),
            Self::Report(msg) => ipc::ipc(ThreadId::ROOT, ThreadId::ANY, Timeouts::NEVER, &msg)
                .unwrap_or_else(|_| ipc::request()),
            Self::Wait => ipc::request(),
        }
    }
}

fn main() {
    let bytes = root::outcome(ROOT.pool_bytes()).unwrap_or(0);
    let window = Window::claim(layout::POOL, bytes).filter(|window| window.bytes() > 0);
    let (Some(window), Some(modules)) = (window, Window::claim(layout::MODULES, MODULES_BYTES))
    else {
        panic!("the root task gave the pager no pool; it needs at least 4 MiB of free memory");
    };
    let mut pager = Pager {
        pool: Pool::open(window),
        modules: Modules { window: modules, phys: 0 },
        clients: [None; SLOTS],
        faults: 0,
        texts: 0,
    };
    let _ = root::register(op::NAME);
    let mut next = Next::Wait;
    loop {
        let (from, msg) = next.request();
        next = pager.serve(from, &msg);
    }
}

/// The pager, asked by somebody.
struct Asked<'p>(RefCell<&'p mut Pager>);

impl Server for Asked<'_> {
    fn statistics(&self, _: Caller) -> Figures {
        let pager = self.0.borrow();
        Figures {
            frames: pager.pool.frames() as u64,
            in_use: pager.pool.in_use(),
            faults: pager.faults,
            text_pages: pager.texts,
            starts: pager.pool.starts(),
        }
    }

    fn forget(&self, caller: Caller, slot: u32) {
        let (mut pager, slot) = (self.0.borrow_mut(), slot as usize);
        if caller != ThreadId::ROOT {
            return;
        }
        pager.pool.forget(slot, None);
        if let Some(client) = pager.clients.get_mut(slot) {
            *client = None;
        }
    }
}

impl Pager {
    fn serve(&mut self, from: ThreadId, msg: &Msg) -> Next {
        match msg.tag.protocol_label() {
            protocol::PAGE_FAULT => self.fault(from, msg),
            protocol::IO_FAULT => refuse(from, msg.mr[0], msg.mr[1], 0, Refusal::Port),
            _ => self.request(from, msg),
        }
    }

    fn request(&mut self, from: ThreadId, msg: &Msg) -> Next {
        let asked = Asked(RefCell::new(self));
        let answer = Serve(&asked).dispatch(from, msg, &[], &mut [], &mut []);
        answer.message().map_or(Next::Wait, |(answer, _)| Next::Answer(from, answer))
    }

    fn fault(&mut self, from: ThreadId, msg: &Msg) -> Next {
        let Some(fault) = Fault::decode(msg) else { return Next::Wait };
        let refused = match self.client(from) {
            None => Refusal::Stranger,
            Some(client) => {
                match self.pool.resolve(&client, &self.modules, fault.address, fault.access) {
                    Ok(answer) => {
                        self.faults += 1;
                        self.texts += u64::from(
                            fault.address.wrapping_sub(client.image.virt) < client.image.text,
                        );
                        return Next::Answer(from, answer);
                    }
                    Err(refused) => refused,
                }
            }
        };
        refuse(from, fault.address, fault.ip, u64::from(fault.access.0), refused)
    }

    /// The task that `thread` belongs to. Who it is and which numbers are its threads' says
    /// the root task; the kernel lets nobody else have threads with them.
    fn client(&mut self, thread: ThreadId) -> Option<Client> {
        let (slot, _) = layout::slot_of(thread.number())?;
        let generation = root_op::generation_of(thread.version());
        let is_of = |(client, numbers): &(Client, Numbers)| {
            client.generation == generation && numbers.contains(thread.number())
        };
        if let Some((client, _)) = self.clients.get(slot)?.filter(is_of) {
            return Some(client);
        }
        let found = root::outcome(ROOT.of(thread)).ok()?;
        let images::Image { physical: phys, address: virt, text, data, bss, .. } = found;
        let image = Image { phys, virt, text, data, bss };
        let client = Client { slot, generation, image, limit: found.pages };
        let numbers = Numbers::decode(found.numbers);
        self.pool.forget(slot, Some(generation));
        self.clients[slot] = Some((client, numbers));
        Some(client)
    }
}

/// The report of a fault that the thread does not survive.
fn refuse(from: ThreadId, address: u64, ip: u64, access: u64, why: Refusal) -> Next {
    Next::Report(Msg::new(root_op::BAD_FAULT).words(&[from.0, address, ip, access, why as u64]))
}
