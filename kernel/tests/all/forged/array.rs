//! The tcb array as another processor sees it (`arch/x86_64/elsewhere/replica.rs`, `seats.rs`): the null page, somebody
//! who waits for nobody, the idle thread, shadows.

use core::mem::offset_of;

use super::text::{End, Memory, Names, Text, register};
use abi::id::{SYSTEM_BASE, THREAD_BITS, USER_BASE};
use abi::{MsgTag, ThreadId};
use kernel::elsewhere::visits::shadow;
use kernel::ipc::simple_string;
use kernel::thread::rendezvous::{self, Busy, Waits};
use kernel::thread::tcb::{self, BLOCK_BITS, TCB_SIZE, Tcb, USES_VECTOR};
use kernel::thread::{TcbRef, linkage};

/// Threads that the array has room for.
pub const NUMBERS: u64 = 1 << THREAD_BITS;
/// Whose shadow has been taken down: the null page.
const NULL: u8 = u8::MAX;

/// The array's first byte, and that of its first tcb.
const ARRAY: u64 = 0xFFFF_FFFF_A000_0000;
const FIRST: u64 = ARRAY + (1 << BLOCK_BITS) - TCB_SIZE as u64;
const TCBS: &str = include_str!("../../../src/arch/x86_64/thread/tcbs.rs");
const TOLD: &str = include_str!("../../../src/arch/x86_64/entry/fast_path.rs");

/// Where the processor's own words are, and the path's limits among them.
const CPU: u64 = 0x1000_0000;
const PAD: u64 = 0x2000_0000;
const CURRENT: u64 = 0;
const LIMIT: u64 = 8;
const GATE: u64 = LIMIT + 4;
const BESIDE: u64 = GATE + 4;
const USER_RDI: u64 = 56;
const LIMITS_OPEN: u64 = 64 << 16 | 8;
const GATE_VECTOR: u64 = 8;
const NOT_SIMPLE: i64 = -0x7FFF_0001;

/// What is said in files that the host does not compile is what is said here, too.
fn look_at_sources() {
    for line in [
        "pub const TCB_ARRAY: u64 = 0xFFFF_FFFF_A000_0000;",
        "pub const TCB_FIRST: u64 = TCB_ARRAY + (BLOCK_SIZE - TCB_SIZE) as u64;",
        "pub const TCB_MASK: u64 = ((1 << THREAD_BITS) - 1) << BLOCK_BITS;",
        "TCB_ARRAY + (USER_BASE as u64 - 1) * BLOCK_SIZE as u64 + 4096;",
    ] {
        assert!(TCBS.contains(line), "{line}");
    }
    for line in [
        "const NOT_SIMPLE: i32 = -0x7FFF_0001;",
        "TCB_MASK = const TCB_MASK,",
        "NUMBER_AT = const 32,",
        "WAITS = const SYSTEM_CALL as u32,",
    ] {
        assert!(TOLD.contains(line), "{line}");
    }
}

/// What the text is told.
#[must_use]
pub fn names() -> Names {
    look_at_sources();
    let linkage_base = ARRAY + ((u64::from(USER_BASE) - 1) << BLOCK_BITS) + 4096;
    let mut names = Names::from([
        ("CPU", CPU as i64),
        ("PAD", PAD as i64),
        ("CURRENT", CURRENT as i64),
        ("LIMIT", LIMIT as i64),
        ("GATE", GATE as i64),
        ("BESIDE", BESIDE as i64),
        ("USER_RDI", USER_RDI as i64),
        ("LIMITS_OPEN", LIMITS_OPEN as i64),
        ("SECOND", 2),
        ("STATE", 4),
        ("OTHER_HALF", 32),
        ("CLOSED", 0),
        ("NUMBER_AT", 32),
        ("ONE_WORD", 1),
        ("NOT_SIMPLE", NOT_SIMPLE),
        ("ONE_ITEM", MsgTag::new(0, 0, 2).0 as i64),
        ("IN_REGISTERS", 7),
        ("NOT_SIMPLE_STRING", simple_string::NOT_SIMPLE as i64),
        ("LONGEST_STRING", simple_string::LONGEST_ITEM as i64),
        ("BLOCK_BITS", i64::from(BLOCK_BITS)),
        ("TCB_FIRST", FIRST as i64),
        ("TCB_MASK", ((NUMBERS - 1) << BLOCK_BITS) as i64),
        ("BASE", linkage_base as i64),
        ("PLACE", linkage::PLACE as i64),
        ("TOKEN", offset_of!(linkage::Record, token) as i64),
        ("PROCEDURES", 8),
        ("WAITS", rendezvous::SYSTEM_CALL as i64),
        ("DEAD_OPEN", rendezvous::DEAD_OPEN as i64),
        ("DEAD_CLOSED", rendezvous::DEAD_CLOSED as i64),
        ("KEPT_OPEN", rendezvous::KEPT_OPEN as i64),
        ("KEPT_CLOSED", rendezvous::KEPT_CLOSED as i64),
        ("PUBLISHED", rendezvous::PUBLISHED as i64),
        ("ARMED", rendezvous::ARMED as i64),
        ("ARMED_ONLY", i64::from(tcb::ARMED)),
    ]);
    names.extend(fields().map(|(name, offset)| (name, offset as i64)));
    names
}

/// The fields of a tcb that the text reads before it has chosen, and writes of the sender's.
fn fields() -> impl Iterator<Item = (&'static str, usize)> {
    [
        ("RENDEZVOUS", offset_of!(Tcb, rendezvous)),
        ("ID", offset_of!(Tcb, id)),
        ("CR3", offset_of!(Tcb, root)),
        ("UTCB", offset_of!(Tcb, utcb)),
        ("UTCB_K", offset_of!(Tcb, utcb_k)),
        ("IP", offset_of!(Tcb, ip)),
        ("SP", offset_of!(Tcb, sp)),
        ("FLAGS", offset_of!(Tcb, flags)),
        ("OPEN_FROM", offset_of!(Tcb, open_from)),
        ("PARTNER", offset_of!(Tcb, partner)),
        ("SPECIAL", offset_of!(Tcb, special)),
        ("LINKAGES", offset_of!(Tcb, linkages)),
        ("ARMED_RENDEZVOUS", offset_of!(Tcb, armed_rendezvous)),
    ]
    .into_iter()
}

/// The array, and whose turn it is.
pub struct Array {
    seats: Vec<TcbRef>,
    /// Who has the block of each number.
    blocks: Vec<u8>,
    sender: TcbRef,
}

/// How an IPC is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub to: u64,
    pub from: u64,
    pub tag: u64,
}

impl Array {
    /// That of processor 1 with those whose shadows are in the seats of it and, as if it had more, of others; one of
    /// them runs. `nobody` and `idle` are as a replica has them.
    #[must_use]
    pub fn new([nobody, idle]: [TcbRef; 2], processors: &[u32], missing: Option<u32>) -> Self {
        nobody.id.set(ThreadId::irq(0));
        rendezvous::set_no_thread(nobody);
        idle.id.set(ThreadId::global(SYSTEM_BASE, 1));
        rendezvous::set_busy(idle, Busy::Ready);
        let all = processors.iter().flat_map(|number| (0..4).map(|seat| shadow(*number, seat)));
        let shadows: Vec<TcbRef> = all.filter(|it| !it.id.get().is_nil()).collect();
        let is_running = |it: &&TcbRef| rendezvous::peek(**it) == Waits::Busy(Busy::Ready);
        let sender = *shadows.iter().find(is_running).expect("somebody runs");
        let mut blocks = vec![NULL; NUMBERS as usize];
        let codes = (0..SYSTEM_BASE).filter(|it| rendezvous::is_code_of_a_wait(*it));
        codes.filter(|it| missing != Some(*it)).for_each(|it| blocks[it as usize] = 0);
        let seats = [nobody, idle].into_iter().chain(shadows).collect::<Vec<_>>();
        for (index, seat) in seats.iter().enumerate().skip(1) {
            blocks[seat.id.get().number() as usize] = index as u8;
        }
        Self { seats, blocks, sender }
    }

    /// Who has the block of `number`.
    fn at(&self, number: u64) -> Option<TcbRef> {
        self.seats.get(usize::from(self.blocks[number as usize])).copied()
    }

    /// What is worth a try: ids, and words that lead to codes and to ids at each block.
    #[must_use]
    pub fn interesting(&self) -> Vec<u64> {
        let ids = || self.seats.iter().map(|it| it.id.get().0);
        let mut wanted = vec![0, 1, !0, !0x3F, self.sender.utcb.get(), 1 << 63, 1 << 47, ARRAY];
        wanted.extend(ids());
        for code in 0..=u64::from(SYSTEM_BASE) {
            for low in [0, 1, self.sender.id.get().0 & 0xFFFF_FFFF, 0xFFFF_FFFF] {
                wanted.push(code << 32 | low);
            }
        }
        let words = self.seats.iter().flat_map(|it| {
            let all = [&it.rendezvous, &it.armed_rendezvous, &it.beside_rendezvous];
            all.map(|word| word.get())
        });
        let words: Vec<u64> = words.chain([0]).collect();
        let mut all = Vec::new();
        for number in self.seats.iter().map(|it| u64::from(it.id.get().number())).chain(0..16) {
            for word in &words {
                for wish in &wanted {
                    let to = word ^ wish;
                    // As it is, and with the block's number, whatever stands above it.
                    all.extend([to, to & !((NUMBERS - 1) << 32) | number << 32]);
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Tries `call` by the text from `start`; what it finds has to be the one whom it names, who waits for the sender.
    /// Whether it finds one.
    pub fn tries(&self, text: &Text, start: &str, call: Call) -> bool {
        let mut registers = [0; 16];
        for (name, value) in [
            ("rsi", call.to),
            ("rdx", call.from),
            ("r9", call.tag),
            // A simple string, if the tag says that there is one.
            ("rax", if call.tag & 0xFFC0 == 0 { 7 } else { 64 << 10 }),
            ("rdi", self.sender.utcb.get()),
        ] {
            registers[register(name)] = value;
        }
        if start != "baton_ipc_entry" {
            registers[register("rdi")] = self.sender.address_there();
        }
        let End::Found(place) = text.run(start, registers, self) else { return false };
        assert!(place & ((1 << BLOCK_BITS) - 1) == 0 && place >> BLOCK_BITS < NUMBERS, "{call:x?}");
        let found = self.at(place >> BLOCK_BITS);
        let found = found.unwrap_or_else(|| panic!("{call:x?} finds the null page"));
        assert_eq!(found.id.get(), ThreadId(call.to), "{call:x?} finds somebody else");
        let own = self.sender.id.get();
        let waits = rendezvous::peek(found);
        assert!([Waits::Open, Waits::Closed(own)].contains(&waits), "{call:x?} finds {waits:?}");
        true
    }

    /// Whether a message to `to` with words in registers has to find somebody.
    #[must_use]
    pub fn is_awaited(&self, to: u64) -> bool {
        let own = self.sender.id.get();
        let mut shadows = self.seats.iter().skip(2);
        shadows.any(|it| {
            let is_waiting = [Waits::Open, Waits::Closed(own)].contains(&rendezvous::peek(*it));
            it.id.get().0 == to && is_waiting
        })
    }

    /// The words of users' ids that have been given, those apart who are there.
    #[must_use]
    pub fn ids(&self) -> Vec<ThreadId> {
        self.seats.iter().skip(2).map(|it| it.id.get()).collect()
    }
}

trait There {
    /// Where the processor sees it.
    fn address_there(self) -> u64;
}

impl There for TcbRef {
    fn address_there(self) -> u64 {
        FIRST + (u64::from(self.id.get().number()) << BLOCK_BITS)
    }
}

impl Memory for Array {
    fn word(&self, address: u64) -> u64 {
        let has_vector = self.sender.special.get() & USES_VECTOR != 0;
        match address.wrapping_sub(CPU) {
            CURRENT => return self.sender.address_there(),
            LIMIT if has_vector => return GATE_VECTOR << 32,
            LIMIT => return LIMITS_OPEN,
            16..64 => return 0,
            _ => {}
        }
        let place = address.wrapping_sub(ARRAY);
        assert!(place < NUMBERS << BLOCK_BITS, "{address:#x} is outside of the array");
        assert!(place & 4096 != 0, "{address:#x} is never there");
        let Some(tcb) = self.at(place >> BLOCK_BITS) else { return 0 };
        let field = place as usize & ((1 << BLOCK_BITS) - 1);
        let field = field
            .checked_sub((1 << BLOCK_BITS) - TCB_SIZE)
            .unwrap_or_else(|| panic!("{address:#x} is outside of the array's tcbs"));
        let (name, offset) = fields().find(|(_, offset)| offset & !7 == field).expect("is read");
        match name {
            "RENDEZVOUS" => tcb.rendezvous.get(),
            "ARMED_RENDEZVOUS" => tcb.armed_rendezvous.get(),
            "ID" => tcb.id.get().0,
            "CR3" => tcb.root.get().value(),
            "UTCB" => tcb.utcb.get(),
            "UTCB_K" => tcb.utcb_k.get(),
            "OPEN_FROM" => tcb.open_from.get().0,
            "PARTNER" => tcb.partner.get().0,
            "LINKAGES" => tcb.linkages.get(),
            "SPECIAL" => u64::from(tcb.special.get()) << (8 * (offset & 7)),
            _ => panic!("{name} is not read"),
        }
    }

    fn written(&self, address: u64) {
        let own = self.sender.address_there();
        let is_own = (own..own + TCB_SIZE as u64).contains(&address);
        assert!(is_own || address.wrapping_sub(CPU) < 64, "{address:#x} is written to");
    }
}
