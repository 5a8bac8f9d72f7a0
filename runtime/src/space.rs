//! Further address spaces of this task: empty, and paged by one of its threads.
//!
//! What Baton's first principle of memory means for a program: a space starts
//! with nothing, and everything in it comes from its pager by mapping.

use abi::{Fpage, Rights};
use abi::{MapItem, MsgTag, ThreadId, protocol};

use crate::{Msg, ipc, root, thread, utcb};

/// The page that `object` begins in, to be mapped elsewhere.
///
/// Only what is in this space can be given, and a page is here only after its
/// first use: so it is read.
#[must_use]
pub fn page_of<T>(object: &T, rights: Rights) -> Fpage {
    let address = &raw const *object as u64;
    touch(address);
    Fpage::memory(address, 12, rights)
}

/// Reads a byte, so that its page is here.
fn touch(address: u64) {
    // SAFETY: the read is of a mapped address, or a page fault of this thread.
    let _ = unsafe { (address as *const u8).read_volatile() };
}

/// A thread in a space of its own, whose pager is the thread that created it.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// Its global id.
    pub id: ThreadId,
    index: u64,
}

/// A page fault message, decoded (X.2 6.2).
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Where.
    pub address: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// The access that was tried.
    pub access: Rights,
}

impl Fault {
    /// Decodes `msg`; `None` if it is no page fault.
    #[must_use]
    pub fn decode(msg: &Msg) -> Option<Self> {
        let is_fault = msg.tag.protocol_label() == protocol::PAGE_FAULT && msg.tag.untyped() == 2;
        let access = Rights((msg.tag.label() & 7) as u8);
        is_fault.then(|| Self { address: msg.mr[0], ip: msg.mr[1], access })
    }

    /// The answer that maps this task's own page at the same address.
    #[must_use]
    pub fn same_page(&self, rights: Rights) -> Msg {
        let page = self.address & !0xFFF;
        touch(page);
        Msg::default().map(MapItem::map(Fpage::memory(page, 12, rights), page))
    }
}

impl Child {
    /// Creates the space and its thread; it waits for [`Self::start`].
    pub fn create() -> Result<Self, root::Refusal> {
        let (id, index) = root::create_space()?;
        Ok(Self { id, index })
    }

    /// Starts the thread at `body` with `argument`, on the stack region that goes
    /// with its number: the same addresses as in this task, once mapped there.
    pub fn start(&self, body: extern "C" fn(u64) -> !, argument: u64) -> ipc::Result<()> {
        let top = crate::layout::stack_top(self.index);
        let sp = thread::put_start(top, argument, body as usize as u64);
        let mut msg = Msg::default().word(thread::start_address()).word(sp);
        msg.tag = MsgTag::new(0, 2, 0);
        ipc::send(self.id, &msg)
    }

    /// Deletes thread and space.
    pub fn delete(self) {
        root::delete_thread(self.id);
    }
}

/// A thread in a space of its own reports its faults like this task does.
pub fn report_to_root() {
    utcb::set_exception_handler(ThreadId::ROOT);
}
