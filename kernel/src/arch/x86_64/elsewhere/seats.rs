//! Where the threads of a party are on another processor (`elsewhere`): *seats*, blocks of that
//! processor's own, which its tcb array shows at the addresses of whose they are; and *rooms*,
//! root tables of its own, in whose lower halves their spaces are.
//!
//! All of it is the first processor's to change while nobody is in the berth, and the other's while
//! somebody is. That one idles meanwhile on its own stack, and touches nothing of its array
//! but its idle thread.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::arch::paging::{Entry, KERNEL_HALF, ROOT, Table, index};
use crate::arch::phys_to_virt;
use crate::arch::x86_64::frame::{FRAME_SIZE, USER_CS, USER_SS};
use crate::arch::x86_64::mem::{iobitmap, root};
use crate::arch::x86_64::percpu::cpu;
use crate::arch::x86_64::slots::slot;
use crate::arch::x86_64::thread::pad::NOBODY;
use crate::arch::x86_64::thread::special;
use crate::arch::x86_64::thread::tcbs::{STRETCH, TcbRef, page};
use crate::arch::x86_64::{asm, kernel_tables, mitigations};
use crate::between::SEATS;
use crate::boot::madt::MAX_PROCESSORS;
use crate::mem::{PhysFrame, RootWord, SpaceRef};
use crate::thread::LinkagesRef;
use crate::thread::tcb::{TCB_SIZE, Tcb};

const PAGE: u64 = 4096;
/// Spaces whose threads can be there at the same time.
pub const ROOMS: usize = 3;
/// Tables that show them: stretches of the tcb array besides the first, in which they can be.
const LEAVES: usize = ROOMS;
/// A page of the array: present, writable, accessed, dirty, global, not executable.
const DATA: u64 = 1 << 63 | 1 << 8 | 1 << 6 | 1 << 5 | 3;
/// A table of the kernel's.
const TABLE: u64 = 3;

/// The frames of the tables that show a processor's seats, and of its rooms' roots but the
/// first, which it has for those who come alone.
#[derive(Clone, Copy, Default)]
pub struct Frames {
    pub leaves: [u64; LEAVES],
    pub roots: [u64; ROOMS - 1],
}

/// A processor's seats and rooms. Each has lines of its own.
#[repr(align(64))]
pub(super) struct Seats {
    /// Their blocks; 0: none.
    blocks: [AtomicU64; SEATS],
    /// The number of the thread whose block each seat is; 0: nobody's.
    numbers: [AtomicU32; SEATS],
    /// Those that are shown to whoever comes next, a bit each.
    shown: AtomicU32,
    leaves: [AtomicU64; LEAVES],
    /// Where copies of the linkage records of whoever has each seat are; 0: nowhere.
    linkages: [AtomicU64; SEATS],
    /// The stretch of the array that each of the leaf tables shows; 0: none.
    stretches: [AtomicU32; LEAVES],
    roots: [AtomicU64; ROOMS],
    /// The root tables of the spaces that are in the rooms; 0: none.
    tables: [AtomicU64; ROOMS],
    /// What the processor has copied into the rooms last.
    copies: [Copied; ROOMS],
    /// The space in the first room has a port bitmap of its own.
    has_ports: AtomicBool,
    /// The seat of whoever comes with others, and 1; 0: whoever comes is alone.
    guest: AtomicU32,
    /// The array shows others than it did when the processor looked last.
    changed: AtomicBool,
}

static ALL: [Seats; MAX_PROCESSORS] = [const { Seats::new() }; MAX_PROCESSORS];

/// Those of number `number`.
pub(super) fn of(number: u32) -> &'static Seats {
    &ALL[number as usize % MAX_PROCESSORS]
}

/// This processor's.
fn own() -> &'static Seats {
    of(cpu().number.get())
}

/// What a room shows: the users' half of this root table, as it was when so many changes had been
/// made to any. That processor's alone.
struct Copied {
    table: AtomicU64,
    changes: AtomicU64,
}

impl Copied {
    const fn new() -> Self {
        Self { table: AtomicU64::new(0), changes: AtomicU64::new(0) }
    }

    /// Whether a copy of the table at `from` has to be made now; then it is noted as made.
    fn is_stale(&self, from: u64) -> bool {
        let changes = root::changes();
        let is_there = self.table.load(Relaxed) == from && self.changes.load(Relaxed) == changes;
        self.table.store(from, Relaxed);
        self.changes.store(changes, Relaxed);
        !is_there
    }
}

impl Seats {
    pub(super) const fn new() -> Self {
        Self {
            blocks: [const { AtomicU64::new(0) }; SEATS],
            numbers: [const { AtomicU32::new(0) }; SEATS],
            shown: AtomicU32::new(0),
            leaves: [const { AtomicU64::new(0) }; LEAVES],
            linkages: [const { AtomicU64::new(0) }; SEATS],
            stretches: [const { AtomicU32::new(0) }; LEAVES],
            roots: [const { AtomicU64::new(0) }; ROOMS],
            tables: [const { AtomicU64::new(0) }; ROOMS],
            copies: [const { Copied::new() }; ROOMS],
            has_ports: AtomicBool::new(false),
            guest: AtomicU32::new(0),
            changed: AtomicBool::new(false),
        }
    }

    /// Makes room for them in `frames`; `users` is the root of those who come alone.
    pub(super) fn furnish(&self, frames: &Frames, users: u64) {
        let leaves = self.leaves.iter().zip(frames.leaves);
        let roots = [users].into_iter().chain(frames.roots);
        leaves.chain(self.roots.iter().zip(roots)).for_each(|(to, from)| to.store(from, Relaxed));
    }

    /// Hides all that are not shown to whoever comes next.
    #[cold]
    fn hide_others(&self, root: u64) {
        let shown = self.shown.load(Relaxed);
        (0..SEATS).filter(|seat| shown >> seat & 1 == 0).for_each(|seat| self.hide(root, seat));
    }

    /// The leaf table that shows the stretch of the array around thread `number`, as the processor
    /// with the root `root` sees it.
    fn leaf(&self, root: u64, number: u32) -> Option<Table> {
        let stretch = number / STRETCH;
        let at = |wanted| self.stretches.iter().position(|it| it.load(Relaxed) == wanted);
        // The first one is the processor's own anyway.
        if stretch != 0 && at(stretch).is_none() {
            let free = at(0)?;
            let table = self.leaves[free].load(Relaxed);
            let (directory, slot) = directory(root, number);
            directory.set(slot, Entry(table | TABLE));
            self.stretches[free].store(stretch, Relaxed);
        }
        let (directory, slot) = directory(root, number);
        Some(directory.get(slot).below())
    }

    /// The block of `seat` is nobody's.
    fn hide(&self, root: u64, seat: usize) {
        let number = self.numbers[seat].swap(0, Relaxed);
        if number == 0 {
            return;
        }
        let (directory, slot) = directory(root, number);
        directory.get(slot).below().set(index(page(number), 0), Entry(kernel_tables::null_entry()));
        let stretch = number / STRETCH;
        let is_used = self.numbers.iter().any(|it| {
            let number = it.load(Relaxed);
            number != 0 && number / STRETCH == stretch
        });
        if stretch != 0 && !is_used {
            directory.set(slot, Entry(kernel_tables::null_table() | TABLE));
            let leaf = self.stretches.iter().find(|it| it.load(Relaxed) == stretch);
            leaf.into_iter().for_each(|it| it.store(0, Relaxed));
        }
    }
}

/// The directory in which the leaf table of thread `number` is entered, and where.
fn directory(root: u64, number: u32) -> (Table, usize) {
    let address = page(number);
    let pointers = Table::at(root).get(index(address, ROOT)).below();
    (pointers.get(index(address, 2)).below(), index(address, 1))
}

/// The tcb in the block `frame`, as all processors may see it.
fn tcb(frame: u64) -> *mut Tcb {
    phys_to_virt(frame + PAGE - TCB_SIZE as u64).cast()
}

/// Makes a shadow in the block `frame`, which is all zeros: nobody's, and whatever the fast paths
/// do not serve of it ends where visitors' entries do (`foreign.S`).
fn make_shadow(frame: u64) {
    // SAFETY: the frame is the kernel's, taken for this, and nobody knows of it; zeros are a tcb.
    let shadow = unsafe { TcbRef::from_address(tcb(frame) as u64) };
    shadow.handler.set(NOBODY);
    shadow.stands_in.set(true);
    shadow.frame().cs.set(u64::from(USER_CS));
    shadow.frame().ss.set(u64::from(USER_SS));
}

/// Whether threads can meet elsewhere at all: the fast paths are in use, and forget nothing between
/// spaces.
#[must_use]
pub fn may_meet() -> bool {
    special::fast() && !mitigations::forgets_predictions()
}

/// The shadow in `seat` of processor `number`.
#[must_use]
pub fn shadow(number: u32, seat: usize) -> TcbRef {
    let frame = of(number).blocks[seat % SEATS].load(Relaxed);
    // SAFETY: nobody asks for that of a seat that is nobody's (`elsewhere::seat`).
    unsafe { TcbRef::from_address(tcb(frame) as u64) }
}

/// Whether `seat` of processor `number` has a block.
#[must_use]
pub fn is_up(number: u32, seat: usize) -> bool {
    of(number).blocks[seat % SEATS].load(Relaxed) != 0
}

/// The block of `seat` of processor `number` is in `frame`, which is full of zeros. It is not shown yet.
pub fn put_up(number: u32, seat: usize, frame: PhysFrame) {
    make_shadow(frame.address());
    of(number).blocks[seat % SEATS].store(frame.address(), Relaxed);
}

/// `seat` of processor `number`, where nobody is with others, has no block any more: its frame. Before
/// somebody else comes with others the processor forgets that it has seen it.
pub fn take_down(number: u32, seat: usize) -> Option<PhysFrame> {
    let (seats, seat) = (of(number), seat % SEATS);
    seats.hide(slot(number).root(), seat);
    seats.changed.store(true, Relaxed);
    take(&seats.blocks[seat])
}

/// What is in `place`, where nothing is afterwards.
fn take(place: &AtomicU64) -> Option<PhysFrame> {
    let address = place.swap(0, Relaxed);
    (address != 0).then(|| PhysFrame::at(address))
}

/// Where the copies of linkage records of whoever has `seat` of processor `number` are, if anywhere.
#[must_use]
pub fn linkages(number: u32, seat: usize) -> Option<LinkagesRef> {
    let [_, page] = frames_of_seat(number, seat);
    page.map(LinkagesRef::new)
}

/// From now on they are in `page`, which is full of zeros.
pub fn put_up_linkages(number: u32, seat: usize, page: PhysFrame) {
    of(number).linkages[seat % SEATS].store(page.address(), Relaxed);
}

/// From now on they are nowhere: the frame in which they were.
pub fn take_linkages(number: u32, seat: usize) -> Option<PhysFrame> {
    take(&of(number).linkages[seat % SEATS])
}

/// The frames of `seat` of processor `number`: its block, and the page for copies of linkage records.
#[must_use]
pub fn frames_of_seat(number: u32, seat: usize) -> [Option<PhysFrame>; 2] {
    let (seats, seat) = (of(number), seat % SEATS);
    [&seats.blocks[seat], &seats.linkages[seat]].map(|place| {
        let address = place.load(Relaxed);
        (address != 0).then(|| PhysFrame::at(address))
    })
}

/// Shows the block of `seat` as that of thread `thread` on processor `number`, where nobody is;
/// whether there was a table left for that.
#[must_use]
pub fn show(number: u32, seat: usize, thread: u32) -> bool {
    let (seats, root, seat) = (of(number), slot(number).root(), seat % SEATS);
    let shown = seats.shown.load(Relaxed) | 1 << seat;
    if seats.numbers[seat].load(Relaxed) == thread {
        seats.shown.store(shown, Relaxed);
        return true;
    }
    seats.changed.store(true, Relaxed);
    for other in 0..SEATS {
        if other == seat || seats.numbers[other].load(Relaxed) == thread {
            seats.hide(root, other);
        }
    }
    let leaf = seats.leaf(root, thread).or_else(|| {
        seats.hide_others(root);
        seats.leaf(root, thread)
    });
    let Some(leaf) = leaf else { return false };
    leaf.set(index(page(thread), 0), Entry(seats.blocks[seat].load(Relaxed) | DATA));
    seats.numbers[seat].store(thread, Relaxed);
    seats.shown.store(shown, Relaxed);
    true
}

/// A room for `space` on processor `number`, where nobody is; with what it is entered.
#[must_use]
pub fn room(number: u32, space: SpaceRef) -> Option<RootWord> {
    let seats = of(number);
    let table = space.root().table().address();
    let find = |wanted| seats.tables.iter().position(|it| it.load(Relaxed) == wanted);
    // All rooms show the same bitmap of ports: who has ports shares them with nobody.
    let (is_first, has_ports) =
        (find(table).is_none() && find(0) == Some(0), iobitmap::is_own(space));
    if is_first {
        seats.has_ports.store(has_ports, Relaxed);
    }
    let is_fit = |_: &usize| is_first || !has_ports && !seats.has_ports.load(Relaxed);
    let room = find(table).or_else(|| find(0).filter(is_fit))?;
    seats.tables[room].store(table, Relaxed);
    Some(RootWord::of_kernel(seats.roots[room].load(Relaxed)))
}

/// Whoever comes to processor `number` next is alone.
pub fn alone(number: u32) {
    let seats = of(number);
    seats.tables.iter().for_each(|table| table.store(0, Relaxed));
    seats.guest.store(0, Relaxed);
    seats.shown.store(0, Relaxed);
}

/// Whoever comes to processor `number` next has `seat`, and others come, too.
pub fn together(number: u32, seat: usize) {
    of(number).guest.store(seat as u32 + 1, Relaxed);
}

/// Copies the registers of `from` to `to`; neither runs.
pub fn copy_frame(from: TcbRef, to: TcbRef) {
    asm::copy_frame(from.frame(), to.frame());
}

/// The shadow with which this processor goes on, if its visitor is not alone; the rooms are as
/// they are to be.
pub(crate) fn come_in() -> Option<TcbRef> {
    let seats = own();
    let seat = (seats.guest.load(Relaxed) as usize).checked_sub(1)?;
    for (room, table) in seats.tables.iter().enumerate() {
        let from = Table::at(table.load(Relaxed));
        if from.address() != 0 {
            // All of them show the same bitmap of ports.
            let _ = show_space(room, from);
        }
    }
    if seats.changed.swap(false, Relaxed) {
        asm::flush_all();
    }
    let number = seats.numbers[seat % SEATS].load(Relaxed);
    let address = page(number) + PAGE - TCB_SIZE as u64;
    // SAFETY: the first processor has shown the block of the seat there.
    Some(unsafe { TcbRef::from_address(address) })
}

/// The visitors' spaces may have other tables below their roots than when they came: the rooms show
/// those.
pub(crate) fn look_again() {
    let seats = own();
    if seats.copies[0].changes.load(Relaxed) != root::changes() {
        for (room, copied) in seats.copies.iter().enumerate() {
            // Of whoever is alone nothing stands in `tables`, and its room is the first.
            let is_alone = seats.guest.load(Relaxed) == 0 && room == 0;
            let table = if is_alone { &copied.table } else { &seats.tables[room] }.load(Relaxed);
            if table != 0 {
                let _ = show_space(room, Table::at(table));
            }
        }
    }
}

/// Shows the space with the root table `from` in `room` of this processor, the first of which
/// is also that of those who come alone; the room's root table, which is not loaded.
pub(crate) fn show_space(room: usize, from: Table) -> Table {
    let seats = own();
    let to = Table::at(seats.roots[room % ROOMS].load(Relaxed));
    if seats.copies[room % ROOMS].is_stale(from.address()) {
        copy(from, to);
    }
    iobitmap::copy(from, to);
    to
}

/// Copies the users' half of the root table `from`.
#[cold]
fn copy(from: Table, to: Table) {
    // By whole words, each aligned: the first processor may add an entry meanwhile, which is found or not.
    let [to, from] = [to, from].map(|table| phys_to_virt(table.address()));
    // SAFETY: the half is this processor's, in a root that is not loaded, and all roots are in the physical map.
    unsafe { asm::copy_bytes(to, from, KERNEL_HALF * size_of::<Entry>()) };
}

const _: () = assert!(FRAME_SIZE < PAGE as usize - TCB_SIZE);
