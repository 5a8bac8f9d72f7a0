//! The checker's look at the kernel's half of the address space: what may be written cannot be
//! executed, nothing that runs or is constant can be written under any address, the map of
//! physical memory shows what it should, and all spaces have the same half.

use core::fmt::Arguments;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::{STUBS, USER_DATA};

use crate::arch::paging::{self, Entry, KERNEL_HALF, ROOT, Table, span};
use crate::arch::x86_64::kernel_tables::DEVICES;
use crate::arch::x86_64::percpu::cpu;
use crate::arch::x86_64::place::linked;
use crate::arch::x86_64::tables::{KernelTables, PORTS_SLOT, TCB_ARRAY};
use crate::arch::x86_64::{boot, physmap, slots};
use crate::boot::memory::Range;

static TEMPLATE: AtomicU64 = AtomicU64::new(0);
static TABLES_START: AtomicU64 = AtomicU64::new(0);
static TABLES_END: AtomicU64 = AtomicU64::new(0);

/// Entry bit: not cached.
const UNCACHED: u64 = 1 << 4;

/// Learns where the tables are.
pub fn init(tables: &KernelTables) {
    TEMPLATE.store(tables.root, Ordering::Relaxed);
    TABLES_START.store(tables.frames.start, Ordering::Relaxed);
    TABLES_END.store(tables.frames.end, Ordering::Relaxed);
}

/// What the tables on the way to an entry allow.
#[derive(Clone, Copy)]
struct Rights {
    write: bool,
    execute: bool,
    user: bool,
}

impl Rights {
    const ALL: Self = Self { write: true, execute: true, user: true };

    const fn below(self, entry: Entry) -> Self {
        Self {
            write: self.write && entry.has(Entry::W),
            execute: self.execute && !entry.has(Entry::NX),
            user: self.user && entry.has(Entry::U),
        }
    }
}

/// What must not be written: text, constants, tables; physical addresses.
struct Constant {
    ranges: [Range; 3],
    text: Range,
}

impl Constant {
    fn now() -> Self {
        let [hidden, constants] = boot::guarded_image();
        let (start, end) = (&TABLES_START, &TABLES_END);
        let tables = Range::new(start.load(Ordering::Relaxed), end.load(Ordering::Relaxed));
        Self { ranges: [hidden, constants, tables], text: hidden }
    }

    fn overlaps(&self, range: Range) -> bool {
        self.ranges.iter().any(|constant| constant.overlaps(range))
    }
}

/// Says to `note` what is wrong with the kernel's half.
pub fn check(note: &mut dyn FnMut(Arguments<'_>)) {
    let constant = Constant::now();
    let template = Table::at(TEMPLATE.load(Ordering::Relaxed));
    for index in KERNEL_HALF..512 {
        let address = 0xFFFF_0000_0000_0000 | (index as u64) << 39;
        entry(template.get(index), ROOT, address, Rights::ALL, &constant, note);
    }
    for guard in boot::guards() {
        if translation(template, guard).is_some() {
            note(format_args!("there is a page below a stack, at {:#x}", linked(guard)));
        }
    }
    slots::for_each_root(|root| replica(Table::at(root), template, &constant, note));
}

/// Checks what another processor sees: its own top, and everything else shared.
fn replica(root: Table, template: Table, constant: &Constant, note: &mut dyn FnMut(Arguments<'_>)) {
    for index in KERNEL_HALF..512 {
        let address = 0xFFFF_0000_0000_0000 | (index as u64) << 39;
        if index == 511 || index == PORTS_SLOT {
            entry(root.get(index), ROOT, address, Rights::ALL, constant, note);
        } else if root.get(index).address() != template.get(index).address() {
            note(format_args!("a processor's root entry {index} is not the kernel's"));
        }
    }
    for guard in boot::guards() {
        if translation(root, guard).is_some() {
            note(format_args!(
                "there is a page below a processor's stack, at {:#x}",
                linked(guard)
            ));
        }
    }
    let own = core::ptr::from_ref(cpu()) as u64;
    if translation(root, own).map(Entry::address) == translation(template, own).map(Entry::address)
    {
        note(format_args!("two processors share their state"));
    }
}

/// Checks what lies below an entry of a table of `level`. At most four deep.
fn entry(
    entry: Entry,
    level: u32,
    address: u64,
    rights: Rights,
    constant: &Constant,
    note: &mut dyn FnMut(Arguments<'_>),
) {
    if !entry.present() {
        return;
    }
    let rights = rights.below(entry);
    if entry.is_leaf(level) {
        return leaf(entry, level, address, rights, constant, note);
    }
    let table = entry.below();
    let mut last = Entry::EMPTY;
    for index in 0..512 {
        let next = table.get(index);
        // The tcb array begins as one leaf table, many times.
        if level == 2 && next == last && !next.is_leaf(1) {
            continue;
        }
        last = next;
        self::entry(
            next,
            level - 1,
            address + index as u64 * span(level - 1),
            rights,
            constant,
            note,
        );
    }
}

fn leaf(
    entry: Entry,
    level: u32,
    address: u64,
    rights: Rights,
    constant: &Constant,
    note: &mut dyn FnMut(Arguments<'_>),
) {
    // A large page's entry has one more bit that is none of the address.
    let phys = entry.address() & !(span(level) - 1);
    let range = Range::new(phys, phys + span(level));
    let is_physical = (physmap::FIRST..physmap::END).contains(&address);
    let is_stubs = address == STUBS;
    let is_device = (DEVICES..TCB_ARRAY).contains(&address);
    let mut wrong = |is: bool, what: &str| {
        if is {
            note(format_args!("the kernel's page at {:#x} {what}", linked(address)));
        }
    };
    wrong(rights.write && rights.execute, "can be written and executed");
    wrong(rights.write && constant.overlaps(range), "writes to what must stay as it is");
    wrong(
        rights.execute && !is_stubs && !constant.text.contains(range),
        "can be executed and is no text",
    );
    wrong(rights.user && !is_stubs && address != USER_DATA, "is open to users");
    wrong(is_device != entry.has(UNCACHED), "is a device's and cached, or the other way round");
    wrong(
        is_physical && phys != address.wrapping_sub(physmap::base()),
        "shows the wrong physical memory",
    );
    wrong(is_physical && constant.text.overlaps(range), "shows the kernel's text");
}

/// The leaf entry for `address`, if there is a page.
fn translation(root: Table, address: u64) -> Option<Entry> {
    let mut table = root;
    for level in (0..=ROOT).rev() {
        let entry = table.get(paging::index(address, level));
        if !entry.present() || entry.is_leaf(level) {
            return entry.present().then_some(entry);
        }
        table = entry.below();
    }
    None
}
