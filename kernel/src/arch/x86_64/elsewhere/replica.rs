//! The kernel's half of the address space as another processor sees it: everything the same,
//! but at the addresses of `Cpu`, the stacks and the tcb array its own.
//!
//! So the kernel's text finds "this processor" by a constant address, on every stack, an NMI's
//! included, and needs no register for it (docs/decisions/0039-a-kernel-per-processor.md). The
//! tcb array is all null page, but for the processor's idle thread, whom it adds itself, and
//! for number 0. Of `Cpu` it has what it uses: where the first processor has the lists of those who wait for a
//! time, which are most of it, all others see the same page of zeros: empty lists.

use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU64, Ordering};

use abi::ThreadId;
use abi::id::SYSTEM_BASE;

use super::seats;
use crate::arch::line::Line;
use crate::arch::paging::{self, Entry, Table};
use crate::arch::phys_to_virt;
use crate::arch::x86_64::mem::iobitmap;
use crate::arch::x86_64::percpu::{Cpu, cpu};
use crate::arch::x86_64::tables::{PORTS_SLOT, STATE_THERE, TCB_ARRAY, TCB_ARRAY_BYTES};
use crate::arch::x86_64::thread::{TcbRef, current, frames_of, pad, tcbs};
use crate::arch::x86_64::{asm, boot, descriptors, kernel_tables};
use crate::mem::{PhysFrame, frames};
use crate::thread::rendezvous;
use crate::thread::tcb::TCB_SIZE;

const PAGE: u64 = 4096;
/// Tables on the way to an entry: kernel tables only, so present and writable.
const TABLE: u64 = 3;
/// Present, writable, accessed, dirty, global, not executable.
const DATA: u64 = 1 << 63 | 1 << 8 | 1 << 6 | 1 << 5 | 3;

/// The same, but read-only.
const CONSTANT: u64 = DATA & !2;

/// How many of a processor's frames are root tables.
pub const ROOTS: u64 = 1 + seats::ROOMS as u64;

/// A processor's own root table, and the frame of its `Cpu`'s first page.
#[derive(Clone, Copy)]
pub struct Replica {
    /// Physical address of the root table.
    pub root: u64,
    /// Physical address of the first page of its [`Cpu`], all zeros.
    pub cpu: u64,
    /// The frame that all threads of the kernel have for vector registers, and one for its idle thread.
    pub idle: [u64; 2],
    /// Physical address of its second root table, in whose lower half its visitors' spaces are.
    pub users: u64,
    /// A frame for what the first processor keeps of it.
    pub other: u64,
    /// Where those are who come together.
    pub seats: seats::Frames,
}

fn take() -> Option<u64> {
    frames::take_zeroed_for_kernel().map(PhysFrame::address)
}

/// A copy of the table at `from`.
#[inline(never)] // as above
fn copy(from: u64) -> Option<u64> {
    let to = frames::take_for_kernel()?.address();
    // SAFETY: the frame was just taken; `from` is a table of the kernel's.
    unsafe { asm::copy_bytes(phys_to_virt(to), phys_to_virt(from), PAGE as usize) };
    Some(to)
}

/// Replaces the table that entry `index` of `table` leads to by a copy, unless that has been
/// done: `original` is the entry that all share. Returns the copy.
#[inline(never)] // it is at every level of every page
fn own(table: Table, index: usize, original: Entry) -> Option<Table> {
    let entry = table.get(index);
    if entry.address() == original.address() {
        let flags = entry.0 & !Entry::ADDRESS;
        table.set(index, Entry(copy(entry.address())? | flags));
    }
    Some(table.get(index).below())
}

/// Builds what a processor needs; `template` is the first processor's root table. `None` if
/// the pool is empty.
pub fn build(template: u64) -> Option<Replica> {
    let top = paging::index(TCB_ARRAY, paging::ROOT);
    let entry = Table::at(template).get(top);
    let root = Table::at(copy(template)?);
    let (pointers, shared) = (own(root, top, entry)?, entry.below());
    clear_threads(pointers, shared)?;
    show_stacks(pointers, shared)?;
    for page in foreign_pages() {
        show(pointers, shared, page, common(&COMMON.zeros, take)? | CONSTANT)?;
    }
    let mut first = None;
    for page in private_pages() {
        let frame = take()?;
        show(pointers, shared, page, frame | DATA)?;
        first = first.or(Some(frame));
    }
    let own = first?;
    root.set(PORTS_SLOT, Entry::EMPTY);
    show_state_segment(pointers, shared, own)?;
    show_nobody(pointers, shared)?;
    let idle = [frames_of(current())[0], take()?];
    show(
        pointers,
        shared,
        descriptors::IDT_PAGE,
        descriptors::idt_there() - boot::base() | CONSTANT,
    )?;
    let seats = build_seats(root)?;
    Some(Replica {
        root: root.address(),
        cpu: own,
        idle,
        users: copy(root.address())?,
        other: take()?,
        seats,
    })
}

/// What those need who come together, besides what they pay for: tables that show them, roots.
fn build_seats(root: Table) -> Option<seats::Frames> {
    let mut seats = seats::Frames::default();
    for leaf in &mut seats.leaves {
        *leaf = copy(kernel_tables::null_table())?;
    }
    for own in &mut seats.roots {
        *own = copy(root.address())?;
    }
    Some(seats)
}

/// Shows a page of its own for thread number 0, which nilthread names, and for those whose numbers
/// are the codes of waits: somebody who waits for nobody. In the null page a message to nilthread,
/// which is no message, would find an open wait, and one to number 8 without a version that of somebody
/// who uses vector registers ([`rendezvous::is_code_of_a_wait`]); on the first processor they find
/// interrupts. The table in which it is has room for the idle thread, too.
fn show_nobody(pointers: Table, shared: Table) -> Option<()> {
    const { assert!(SYSTEM_BASE < 256, "one table shows 256 threads") };
    let page = tcbs::page(0);
    let [upper, middle] = [2, 1].map(|level| paging::index(page, level));
    let directory = own(pointers, upper, shared.get(upper))?;
    let leaf = own(directory, middle, Entry(kernel_tables::null_table() | TABLE))?;
    let nobody = common(&COMMON.nobody, nobody)?;
    for number in (0..SYSTEM_BASE).filter(|number| rendezvous::is_code_of_a_wait(*number)) {
        leaf.set(paging::index(tcbs::page(number), 0), Entry(nobody | CONSTANT));
    }
    Some(())
}

/// A frame with the tcb of somebody who waits for nobody.
fn nobody() -> Option<u64> {
    let frame = take()?;
    let tcb = phys_to_virt(frame + PAGE - TCB_SIZE as u64);
    // SAFETY: the tcb lies in the frame, which was just taken for good, and is all zeros.
    let tcb = unsafe { TcbRef::from_address(tcb as u64) };
    tcb.id.set(ThreadId::irq(0));
    rendezvous::set_no_thread(tcb);
    Some(frame)
}

/// Bytes of [`Cpu`] that other processors than the first have, too.
const OWN: u64 = (offset_of!(Cpu, scheduler) + <Cpu as Line>::OWN) as u64;

/// The pages that every processor has for itself; [`Cpu`]'s first.
fn private_pages() -> impl Iterator<Item = u64> {
    let cpu = core::ptr::from_ref(cpu()) as u64;
    let own = (cpu..cpu + OWN).step_by(PAGE as usize);
    own.chain([pad::page()])
}

/// What all other processors have together.
struct Common {
    /// A page of zeros.
    zeros: AtomicU64,
    /// Somebody who waits for nobody.
    nobody: AtomicU64,
}

static COMMON: Common = Common { zeros: AtomicU64::new(0), nobody: AtomicU64::new(0) };

/// The frame that stands in `place`, made by `make` for the first one who asks.
fn common(place: &AtomicU64, make: fn() -> Option<u64>) -> Option<u64> {
    if place.load(Ordering::Relaxed) == 0 {
        place.store(make()?, Ordering::Relaxed);
    }
    Some(place.load(Ordering::Relaxed))
}

/// The pages of the first processor's [`Cpu`] that no other one has.
fn foreign_pages() -> impl Iterator<Item = u64> {
    let cpu = core::ptr::from_ref(cpu()) as u64;
    (cpu + OWN.next_multiple_of(PAGE)..cpu + size_of::<Cpu>() as u64).step_by(PAGE as usize)
}

/// Nobody lives here yet: the whole array is the null page.
fn clear_threads(pointers: Table, shared: Table) -> Option<()> {
    let null = Entry(kernel_tables::null_table() | TABLE);
    for address in (TCB_ARRAY..TCB_ARRAY + TCB_ARRAY_BYTES).step_by(1 << 21) {
        let index = paging::index(address, 2);
        own(pointers, index, shared.get(index))?.set(paging::index(address, 1), null);
    }
    Some(())
}

/// The stacks are one page: nobody sends an NMI to a processor that starts, and on the others nothing needs much
/// (`descriptors::own_ist_tops`). What is below a stack is not there.
fn show_stacks(pointers: Table, shared: Table) -> Option<()> {
    let [double_fault, nmi, machine_check] = descriptors::ist_tops();
    let [lowest_of_ist, _, _, lowest] = boot::guards();
    let missing = (lowest_of_ist..machine_check).chain(lowest..boot::stack_top());
    for page in missing.step_by(PAGE as usize) {
        show(pointers, shared, page, 0)?;
    }
    let frame = take()?;
    for top in [double_fault, machine_check, nmi, boot::stack_top()] {
        show(pointers, shared, top - PAGE, frame | DATA)?;
    }
    Some(())
}

/// Sets the last-level entry of `page` in tables of the replica's own.
#[inline(never)] // many pages
fn show(pointers: Table, shared: Table, page: u64, entry: u64) -> Option<()> {
    let [upper, middle] = [2, 1].map(|level| paging::index(page, level));
    let directory = own(pointers, upper, shared.get(upper))?;
    let original = shared.get(upper).below().get(middle);
    let leaf = own(directory, middle, original)?;
    leaf.set(paging::index(page, 0), Entry(entry));
    Some(())
}

/// Shows the task state segment in `cpu`, and no port open.
fn show_state_segment(pointers: Table, shared: Table, cpu: u64) -> Option<()> {
    let closed = iobitmap::closed();
    let pages = (STATE_THERE..).step_by(PAGE as usize);
    for (at, page) in pages.zip([cpu, closed, closed, closed]) {
        show(pointers, shared, at, page | Entry::P | Entry::W | Entry::NX)?;
    }
    Some(())
}
