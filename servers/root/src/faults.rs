//! What goes wrong in tasks, and page faults of those that the root task pages.
//!
//! Reports name addresses of a program as it was linked: debuggers and `explain` know those, and the
//! log does not tell where the program is.

use abi::inspect::What;
use abi::protocol::{EXCEPTION_WORDS, exception};
use abi::{Fpage, MapItem, Rights, ThreadId};
use interfaces::common::Refusal as Why;
use interfaces::images::{Image, Server};
use paging::Refusal;
use proto::layout;
use report::{BadFault, BadPort, Exception, Memory, Trace};
use runtime::pool::{self, Client};
use runtime::service::Caller;
use runtime::space::Fault;
use runtime::window::Window;
use runtime::{Msg, kernel};

use crate::asked::Asked;
use crate::task::Task;
use crate::{Reply, Root, clan, say};

/// What a report of a fault counts, bytes.
pub const REPORT_BYTES: u64 = 256;
/// Log2 size of the pieces in which the pager's pool is mapped.
const PIECE_BITS: u32 = 21;

impl Server for Asked<'_> {
    fn of(&self, _: Caller, id: ThreadId) -> Result<Image, Why> {
        let root = self.root.borrow();
        if root.pager == Some(self.slot) { root.task_image(id) } else { Err(Why::NotAllowed) }
    }

    fn pool_bytes(&self, _: Caller) -> Result<u64, Why> {
        let root = self.root.borrow();
        let is_pager = root.pager == Some(self.slot);
        let pool = root.pager_pool.as_ref().filter(|_| is_pager);
        pool.map(|pool| pool.bytes()).ok_or(Why::NotAllowed)
    }

    fn bad_fault(&self, _: Caller, id: ThreadId, address: u64, ip: u64, access: u64, why: u64) {
        let mut root = self.root.borrow_mut();
        let (Some((victim, _)), true) = (root.sender(id), root.pager == Some(self.slot)) else {
            return;
        };
        match Refusal::decode(why) {
            Refusal::Port => root.bad_port(victim, id, Fpage(address), ip),
            why => {
                let fault = Fault { address, ip, access: Rights((access & 7) as u8) };
                root.bad_fault(victim, id, &fault, why);
            }
        }
    }
}

impl Root {
    /// A page fault that came to the root task.
    pub fn page_fault(&mut self, slot: usize, from: ThreadId, msg: &Msg) -> Reply {
        let fault = Fault::decode(msg)?;
        if self.is_paged_outside(slot) {
            return self.pass_on(slot, from);
        }
        match self.resolve(slot, &fault) {
            Ok(answer) => Some(answer),
            Err(why) => {
                self.bad_fault(slot, from, &fault, why);
                None
            }
        }
    }

    /// A thread of the pager's faults here: it was started, or its old pager went,
    /// before it knew its pager. It learns it and faults again, or waits for it.
    fn pass_on(&mut self, slot: usize, from: ThreadId) -> Reply {
        if let Some(pager) = self.pager_thread() {
            let _ = kernel::set_pager(from, from, pager, !0);
            return Some(Msg::default());
        }
        if let (Some((_, index)), Some(task)) =
            (layout::slot_of(from.number()), self.task_mut(slot))
        {
            task.stalled |= 1 << index;
        }
        None
    }

    fn resolve(&mut self, slot: usize, fault: &Fault) -> Result<Msg, Refusal> {
        if self.pager == Some(slot)
            && let Some(answer) = self.pager_window(fault)
        {
            return Ok(answer);
        }
        let task = self.tasks.get(slot).and_then(Option::as_ref).ok_or(Refusal::Stranger)?;
        let modules = task.modules.as_ref().ok_or(Refusal::Stranger)?;
        let pool = self.pool.as_mut().ok_or(Refusal::Pool)?;
        pool.resolve(&task.client(slot), modules, fault.address, fault.access)
    }

    /// The pager's two windows: its pool, and the boot modules read-only.
    fn pager_window(&self, fault: &Fault) -> Option<Msg> {
        let pool = self.pager_pool.as_ref()?;
        if let Some(offset) =
            fault.address.checked_sub(layout::POOL).filter(|offset| *offset < pool.bytes())
        {
            let piece = offset >> PIECE_BITS << PIECE_BITS;
            let fpage = Fpage::memory(pool.base() + piece, PIECE_BITS, Rights::RW);
            return Some(Msg::default().map(MapItem::map(fpage, layout::POOL + piece)));
        }
        let phys = fault.address.checked_sub(layout::MODULES)?;
        let known = |task: &Task| {
            task.modules
                .as_ref()
                .is_some_and(|m| phys >= m.phys && phys - m.phys < m.window.bytes())
        };
        if fault.access.contains(Rights::W) || !self.tasks.iter().flatten().any(known) {
            return None;
        }
        let fpage = Fpage::memory(phys, 12, Rights::RX);
        Some(Msg::default().map(MapItem::map(fpage, fault.address & !0xFFF)))
    }

    /// What the pager needs to know about the task of `thread`.
    fn task_image(&self, thread: ThreadId) -> Result<Image, Why> {
        let (slot, _) = self.sender(thread).ok_or(Why::Unknown)?;
        let task = self.task(slot).filter(|task| task.modules.is_some()).ok_or(Why::Unknown)?;
        let image = &task.image;
        Ok(Image {
            physical: image.phys,
            address: image.virt,
            text: image.text,
            data: image.data,
            bss: image.bss,
            pages: task.spec.memory,
            life: task.generation,
            numbers: clan::of_slot(slot).word(),
        })
    }

    fn bad_fault(&mut self, slot: usize, thread: ThreadId, fault: &Fault, why: Refusal) {
        if !self.may_report(slot, REPORT_BYTES) {
            return self.end_thread(slot, thread);
        }
        let Some(task) = self.task(slot) else { return };
        let Fault { address, ip, access } = *fault;
        let report = BadFault {
            task: task.spec.name.as_str(),
            thread,
            address: task.as_linked(address),
            ip: task.as_linked(ip),
            access,
            why: why.as_str(),
        };
        say!("root: {report}");
        self.tell_calls(slot, thread);
        self.end_thread(slot, thread);
    }

    /// An access to a port without the right.
    pub fn io_fault(&mut self, slot: usize, from: ThreadId, msg: &Msg) -> Reply {
        self.bad_port(slot, from, Fpage(msg.mr[0]), msg.mr[1]);
        None
    }

    fn bad_port(&mut self, slot: usize, thread: ThreadId, port: Fpage, ip: u64) {
        if !self.may_report(slot, REPORT_BYTES) {
            return self.end_thread(slot, thread);
        }
        let Some(task) = self.task(slot) else { return };
        let why = Refusal::Port.as_str();
        let (name, ip) = (task.spec.name, task.as_linked(ip));
        let report = BadPort { task: name.as_str(), thread, port: port.io_base(), ip, why };
        say!("root: {report}");
        self.tell_calls(slot, thread);
        self.end_thread(slot, thread);
    }

    /// A processor exception: reported, and the thread is ended.
    pub fn exception(&mut self, slot: usize, from: ThreadId, msg: &Msg) -> Reply {
        let mut words = [0; EXCEPTION_WORDS];
        let count = msg.tag.untyped().min(EXCEPTION_WORDS);
        for (index, word) in words[..count].iter_mut().enumerate() {
            *word = msg.get(index);
        }
        if !self.may_report(slot, REPORT_BYTES) {
            self.end_thread(slot, from);
            return None;
        }
        let task = self.task(slot)?;
        words[exception::RIP] = task.as_linked(words[exception::RIP]);
        let report =
            Exception { task: task.spec.name.as_str(), thread: from, words: &words[..count] };
        say!("root: {report}");
        self.tell_calls(slot, from);
        self.end_thread(slot, from);
        None
    }

    /// Tells by which calls a thread, which stands still, has come to where it is.
    pub fn tell_calls(&self, slot: usize, thread: ThreadId) {
        let record = kernel::inspect(What::Thread, u64::from(thread.number()), 0);
        let (Some(record), Some(task)) = (record, self.task(slot)) else { return };
        if record[0] != thread.0 {
            return;
        }
        let pager_pool = self.pager_pool.as_ref().filter(|_| self.is_paged_outside(slot));
        let victim = Victim { task, client: task.client(slot), root: self, pager_pool };
        let trace = Trace { memory: &victim, sp: record[6] };
        if trace.returns().next().is_some() {
            say!("root: {}: called from {trace}.", task.spec.name);
        }
    }

    /// Ends a thread that cannot go on; a task goes with its main thread.
    fn end_thread(&mut self, slot: usize, thread: ThreadId) {
        match layout::slot_of(thread.number()) {
            Some((_, 0)) => self.crash(slot),
            _ => self.delete_thread(slot, thread),
        }
    }
}

/// What the root task can read of a task.
struct Victim<'a> {
    task: &'a Task,
    client: Client,
    root: &'a Root,
    /// The pager's pool, if that pages the task.
    pager_pool: Option<&'a Window>,
}

impl Memory for Victim<'_> {
    fn text(&self, address: u64) -> Option<u8> {
        let (image, modules) = (&self.task.image, self.task.modules.as_ref()?);
        let inside = address.checked_sub(image.virt).filter(|offset| *offset < image.text)?;
        let offset = (image.phys + inside).checked_sub(modules.phys)?;
        Some(modules.window.read(offset & !7).to_le_bytes()[(offset & 7) as usize])
    }

    fn as_linked(&self, address: u64) -> u64 {
        self.task.as_linked(address)
    }

    fn word(&self, address: u64) -> Option<u64> {
        match self.pager_pool {
            Some(window) => pool::peek(window, &self.client, address),
            None => self.root.pool.as_ref()?.peek(&self.client, address),
        }
    }
}
