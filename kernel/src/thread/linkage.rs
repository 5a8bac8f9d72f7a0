//! Where the bindings of a client's task lie: one page with a header, the bindings, and the
//! linkage records, one for each A-stack and a cache line each (Bershad 1990, 3.2). `crate::lrpc`
//! says what they mean.
//!
//! A token names a record by its offset in the page of the caller's own task, so no check of
//! bounds or owner is needed: the record's first word is its token, or differs from every token that
//! names it. In the lines before the records that word is zero for good, and only the token 0, which
//! leads to the header, equals it; the header has no procedure.
//!
//! A page is all zeros at first, and all its fields are cells for which zeros are a value.

use core::cell::Cell;
use core::mem::{offset_of, size_of};
use core::ops::Deref;
use core::ptr::NonNull;

use abi::lrpc::{MAX_A_STACKS_OF_TASK, MAX_BINDINGS};

use crate::arch::{phys_to_virt, virt_to_phys};
use crate::mem::SpaceRef;
use crate::mem::frames::{FRAME, PhysFrame};
use crate::ring::Links;
use crate::thread::{LINKAGE_BASE, TcbRef};

/// One A-stack: whether it is free, and where a call on it returns to.
#[repr(C, align(64))]
pub struct Record {
    /// Its token if the fast path may call here; else [`HIDDEN`] differs.
    pub token: Cell<u64>,
    /// The thread on which calls run; none before the first.
    pub host: Cell<Option<TcbRef>>,
    /// Who has called, if the fast path may return there.
    pub caller: Cell<Option<TcbRef>>,
    /// How many procedures there are.
    pub procedures: Cell<u64>,
    /// The A-stack in the server's space.
    pub a_stack: Cell<u64>,
    /// The clerk's word for the binding.
    pub cookie: Cell<u64>,
    /// Who has called, if only the complete path may return there.
    pub kept: Cell<Option<TcbRef>>,
    /// A call is under way to which nobody waits for the return.
    pub given_up: Cell<bool>,
    /// Number of its binding, from 1; 0: free.
    pub binding: Cell<u8>,
}

/// The bits in which a record's token differs while the fast path may not call there. The bits that
/// name the record are among them: whoever passes the hidden token names another record.
pub const HIDDEN: u64 = 0xFFFF_FFFF;
/// The bits of a token that name the record.
pub const PLACE: u64 = 0xFC0;

/// What a client's task may call at one server.
#[repr(C, align(64))]
pub struct Binding {
    never: Cell<u64>,
    /// Who has agreed; none: revoked, or nobody's.
    pub clerk: Cell<Option<TcbRef>>,
    /// The server, as long as it sees the A-stacks.
    pub server: Cell<Option<SpaceRef>>,
    /// Links of the clerk's bindings.
    pub links: Links<BindingRef>,
    /// The A-stacks in the client's space; 0: it sees them no more.
    pub client_window: Cell<u64>,
    /// The A-stacks in the server's space.
    pub server_window: Cell<u64>,
    /// Visits that were under way when it was revoked, and still are.
    pub visits: Cell<u16>,
    /// Its first record and how many they are; 0: free.
    pub first: Cell<u8>,
    /// See `first`.
    pub count: Cell<u8>,
    /// Pages of A-stacks.
    pub pages: Cell<u8>,
}

/// The page.
#[repr(C, align(4096))]
pub struct Linkages {
    never: Cell<u64>,
    /// The client; none once it has ended.
    pub client: Cell<Option<SpaceRef>>,
    /// Whose quota pays for the page and the A-stacks.
    pub payer: Cell<Option<SpaceRef>>,
    no_procedures: Cell<u64>,
    /// Links of what a task has inherited.
    pub links: Links<LinkagesRef>,
    rest: [Cell<u64>; 2],
    bindings: [Binding; MAX_BINDINGS],
    records: [Record; MAX_A_STACKS_OF_TASK],
}

/// Where the first record lies in a page.
const FIRST_RECORD: usize = offset_of!(Linkages, records);

const _: () = assert!(size_of::<Linkages>() == FRAME as usize && size_of::<Record>() == 64);
const _: () = assert!(offset_of!(Linkages, bindings) == 64 && size_of::<Binding>() == 64);
const _: () = assert!(offset_of!(Record, token) == 0 && offset_of!(Record, procedures) == 24);
const _: () = assert!(offset_of!(Linkages, no_procedures) == 24, "the header has none");

/// A page that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkagesRef(NonNull<Linkages>);

/// A binding in a page that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BindingRef(NonNull<Binding>);

/// A record in a page that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordRef(NonNull<Record>);

impl Deref for LinkagesRef {
    type Target = Linkages;
    fn deref(&self) -> &Linkages {
        // SAFETY: made by `new`; `lrpc` drops every copy before the page is freed. Cells only.
        unsafe { self.0.as_ref() }
    }
}

impl Deref for BindingRef {
    type Target = Binding;
    fn deref(&self) -> &Binding {
        // SAFETY: as for the page it lies in.
        unsafe { self.0.as_ref() }
    }
}

impl Deref for RecordRef {
    type Target = Record;
    fn deref(&self) -> &Record {
        // SAFETY: as for the page it lies in.
        unsafe { self.0.as_ref() }
    }
}

/// The page around `address`.
fn page_of(address: u64) -> LinkagesRef {
    // SAFETY: bindings and records lie only in pages that `new` has made, and never at address 0.
    LinkagesRef(unsafe { NonNull::new_unchecked((address & !(FRAME - 1)) as *mut Linkages) })
}

impl LinkagesRef {
    /// An empty page in `frame`, which is full of zeros.
    #[must_use]
    pub fn new(frame: PhysFrame) -> Self {
        // SAFETY: kernel addresses are not 0; zeros are a value of all fields.
        Self(unsafe { NonNull::new_unchecked(phys_to_virt(frame.address()).cast()) })
    }

    /// The frame it is in; whoever gives it back drops all references first.
    pub fn frame(self) -> PhysFrame {
        PhysFrame::at(virt_to_phys(self.0.as_ptr().cast()))
    }

    /// What a thread of the client has in its tcb for the fast path.
    #[must_use]
    pub fn word(self) -> u64 {
        (self.0.as_ptr() as u64).wrapping_sub(LINKAGE_BASE)
    }

    /// Binding `index`, from 0.
    #[must_use]
    pub fn binding(self, index: usize) -> Option<BindingRef> {
        // The page is not borrowed: it lives on as the reference does.
        self.bindings.get(index).map(|binding| BindingRef(NonNull::from(binding)))
    }

    /// Record `index`, from 0.
    #[must_use]
    pub fn record(self, index: usize) -> Option<RecordRef> {
        self.records.get(index).map(|record| RecordRef(NonNull::from(record)))
    }

    /// The record that `token` would name.
    #[must_use]
    pub fn named(self, token: u64) -> Option<RecordRef> {
        let offset = (token & (FRAME - 1)) as usize;
        let record = self.record(offset.checked_sub(FIRST_RECORD)? / size_of::<Record>())?;
        (record.binding.get() != 0 && record.full_token() == token).then_some(record)
    }

    /// The record in this page where `other` lies in its own.
    #[must_use]
    pub fn beside(self, other: RecordRef) -> Option<RecordRef> {
        self.record((other.offset() as usize).checked_sub(FIRST_RECORD)? / size_of::<Record>())
    }

    /// All bindings that are somebody's.
    pub fn bindings(self) -> impl Iterator<Item = BindingRef> {
        (0..MAX_BINDINGS)
            .filter_map(move |index| self.binding(index))
            .filter(|binding| binding.count.get() != 0)
    }

    /// All records that are a binding's.
    pub fn records(self) -> impl Iterator<Item = RecordRef> {
        (0..MAX_A_STACKS_OF_TASK)
            .filter_map(move |index| self.record(index))
            .filter(|record| record.binding.get() != 0)
    }
}

impl BindingRef {
    /// The page it lies in.
    #[must_use]
    pub fn page(self) -> LinkagesRef {
        page_of(self.0.as_ptr() as u64)
    }

    /// Its number in the page, from 1.
    #[must_use]
    pub fn number(self) -> u8 {
        let offset = self.0.as_ptr() as u64 & (FRAME - 1);
        (offset / size_of::<Binding>() as u64) as u8
    }

    /// Its records.
    pub fn records(self) -> impl Iterator<Item = RecordRef> {
        let first = usize::from(self.first.get());
        let page = self.page();
        (first..first + usize::from(self.count.get())).filter_map(move |index| page.record(index))
    }
}

impl RecordRef {
    /// The page it lies in.
    #[must_use]
    pub fn page(self) -> LinkagesRef {
        page_of(self.0.as_ptr() as u64)
    }

    /// The record that a host's tcb names for the fast path; 0: none.
    #[must_use]
    pub fn of(host: TcbRef) -> Option<Self> {
        let word = host.linkage.get();
        let address = word.wrapping_add(LINKAGE_BASE) as *mut Record;
        // Only `lrpc` writes the word, from a record that is there.
        if word == 0 { None } else { NonNull::new(address).map(Self) }
    }

    /// That word.
    #[must_use]
    pub fn word(self) -> u64 {
        (self.0.as_ptr() as u64).wrapping_sub(LINKAGE_BASE)
    }

    /// The low bits of its token.
    #[must_use]
    pub fn offset(self) -> u64 {
        self.0.as_ptr() as u64 & (FRAME - 1)
    }

    /// Its token, whatever the fast path may do.
    #[must_use]
    pub fn full_token(self) -> u64 {
        match self.token.get() {
            0 => 0,
            token if token & PLACE == self.offset() => token,
            hidden => hidden ^ HIDDEN,
        }
    }

    /// Lets the fast path call here.
    pub fn show(self) {
        self.token.set(self.full_token());
    }

    /// Lets only the complete path call here.
    pub fn hide(self) {
        let token = self.full_token();
        self.token.set(if token == 0 { 0 } else { token ^ HIDDEN });
    }

    /// Its binding.
    #[must_use]
    pub fn owner(self) -> Option<BindingRef> {
        self.page().binding(usize::from(self.binding.get()).checked_sub(1)?)
    }
}
