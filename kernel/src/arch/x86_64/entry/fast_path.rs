//! The fast paths (design 3): what their assembly is made of, and what it is told. Boot and the
//! processor's entry lead there; nothing here is called.
//!
//! `ipc.S` is the path of those about whom nothing is special, `string.S` of their strings, `vector.S` of users
//! of vector registers, `armed.S` of those who exchange messages in user mode, `beside.S` of those who do both,
//! `foreign.S` of foreign threads, `lrpc.S` of procedure calls; `path.S` and `spill.S` have the pieces that they share. Interrupts are off.

use core::arch::global_asm;
use core::mem::offset_of;

use abi::{MsgTag, utcb};

use crate::arch::x86_64::features::Features;
use crate::arch::x86_64::frame::{FRAME_SIZE, TrapFrame, VECTOR_CALL};
use crate::arch::x86_64::mitigations::Actions;
use crate::arch::x86_64::percpu::{
    self, BESIDE, CURRENT, Cpu, GATE, GATE_ARMED, GATE_VECTOR, LIMIT, LIMITS_OPEN, USER_RDI,
};
use crate::arch::x86_64::thread::pad;
use crate::arch::x86_64::thread::tcbs::{LINKAGE_BASE, TCB_FIRST, TCB_MASK};
use crate::arch::x86_64::{patch, xsave};
use crate::control::foreign;
use crate::ipc::simple_string;
use crate::mem::AddressSpace;
use crate::space::Task;
use crate::techniques;
use crate::thread::Kind;
use crate::thread::kind::SYSTEM_CALL_TAG;
use crate::thread::linkage::{self, Record};
use crate::thread::rendezvous::{self, Busy, SYSTEM_CALL};
use crate::thread::tcb::{self, BLOCK_BITS, Resume, Tcb};
use crate::usermem::CurrentWord;

/// The bits of R8 that are zero for an IPC that waits for its answer without a limit and has a
/// period as send timeout: the sign is a call's, the low half the receive timeout, bit 31 a point of time.
const NOT_SIMPLE: i32 = -0x7FFF_0001;
/// What in a tag counts the untyped words.
const WORDS_MASK: u32 = 63;
/// How many of them travel in registers.
const IN_REGISTERS: u32 = 7;
/// The low half of a tag that says one item, no words and no flags.
const ONE_ITEM: u64 = MsgTag::new(0, 0, 2).0;
/// The bit of a rendezvous word in which being ready differs from an open wait.
const READY_BIT: u32 = 32;
const _: () = assert!(Busy::Ready as u64 == 1, "READY_BIT is its only bit");

const _: () = assert!(rendezvous::NOBODY.0 as i32 as u64 == rendezvous::NOBODY.0, "an immediate");

/// Where a space keeps its current word.
const CURRENT_WORD: usize = offset_of!(AddressSpace, task) + offset_of!(Task, current_word);
/// The codes of `vector.S` and `armed.S` in one piece, and none of others among them; those of the
/// latter look as if a partner were waited for.
const _: () = assert!(
    rendezvous::AWAY > rendezvous::ARMED && rendezvous::SYSTEM_CALL < rendezvous::DEAD_OPEN
);
const _: () = assert!(rendezvous::PUBLISHED & rendezvous::ARMED & 1 == 1);

global_asm!(
    concat!(
        include_str!("../patch.S"),
        include_str!("path.S"),
        include_str!("../words.S"),
        include_str!("spill.S"),
        include_str!("ipc.S"),
        include_str!("string.S"),
        include_str!("foreign.S"),
        include_str!("vector.S"),
        include_str!("armed.S"),
        include_str!("beside.S"),
        include_str!("lrpc.S"),
    ),
    VERW = const Actions::VERW.bits(),
    IBPB = const Actions::IBPB.bits(),
    LACKS_FAST = const patch::LACKS_FAST,
    CPU = sym percpu::BATON_CPU,
    // Where a rendezvous word has the thread's state, and how far the word is turned so that the
    // state and the id in its other half change places.
    STATE = const 4,
    OTHER_HALF = const 32,
    // The number's place in an id; the bit of RDI that says that vector registers
    // are dead.
    NUMBER_AT = const 32,
    DEAD = const 1,
    // Limits and gate are two lengths each; the first word of a message that is in no register.
    SECOND = const 2,
    FIRST_IN_MEMORY = const 8 * (1 + IN_REGISTERS),
    // The limits' and the gate's value that lets no length of a message through.
    CLOSED = const 0,
    // The tag of one untyped word; XSAVE's and XRSTOR's components, all that are in use.
    ONE_WORD = const 1,
    ALL_COMPONENTS = const -1,
    CURRENT = const CURRENT,
    TCB_FIRST = const TCB_FIRST as i64,
    TCB_MASK = const TCB_MASK,
    BLOCK_BITS = const BLOCK_BITS,
    RENDEZVOUS = const offset_of!(Tcb, rendezvous),
    ID = const offset_of!(Tcb, id),
    CR3 = const offset_of!(Tcb, root),
    UTCB = const offset_of!(Tcb, utcb),
    UTCB_K = const offset_of!(Tcb, utcb_k),
    IP = const offset_of!(Tcb, ip),
    SP = const offset_of!(Tcb, sp),
    FLAGS = const offset_of!(Tcb, flags),
    OPEN_FROM = const offset_of!(Tcb, open_from),
    SELF = const utcb::SELF * 8,
    USER_RDI = const USER_RDI,
    LIMIT = const LIMIT,
    READY = const Busy::Ready as u32,
    LOOK_FIRST = const offset_of!(Cpu, look_first),
    VECTOR_AREA = const offset_of!(Tcb, vector_area),
    X87_SURVIVES_LOAD = const Features::X87_SURVIVES_LOAD.bits(),
    X87_SURVIVES_RESET = const Features::X87_SURVIVES_RESET.bits(),
    INITIAL = sym xsave::INITIAL,
    LIMITS_OPEN = const LIMITS_OPEN,
    PARTNER = const offset_of!(Tcb, partner),
    RESUME = const offset_of!(Tcb, resume),
    RESUME_IPC = const Resume::Ipc as u32,
    RESUME_FRAME = const Resume::Frame as u32,
    KIND = const offset_of!(Tcb, kind),
    HANDLER = const offset_of!(Tcb, handler),
    FS_BASE = const offset_of!(Tcb, own.fs_base),
    GS_BASE = const offset_of!(Tcb, own.gs_base),
    FRAME = const -(FRAME_SIZE as i64),
    KIND_USER = const Kind::User as u8,
    KIND_SYSTEM_CALL = const Kind::SystemCall as u8,
    WAITS = const SYSTEM_CALL as u32,
    TAG = const SYSTEM_CALL_TAG.0,
    FAST = const techniques::FOREIGN_FAST_PATH as u8,
    CALL = sym foreign::call,
    PAD = sym pad::PAD,
    PAD_TCB = const pad::PAD_TCB,
    STANDS_IN = const offset_of!(Tcb, stands_in),
    R15 = const offset_of!(TrapFrame, r15),
    R14 = const offset_of!(TrapFrame, r14),
    R13 = const offset_of!(TrapFrame, r13),
    R12 = const offset_of!(TrapFrame, r12),
    RBP = const offset_of!(TrapFrame, rbp),
    RBX = const offset_of!(TrapFrame, rbx),
    R11 = const offset_of!(TrapFrame, r11),
    R10 = const offset_of!(TrapFrame, r10),
    R9 = const offset_of!(TrapFrame, r9),
    R8 = const offset_of!(TrapFrame, r8),
    RAX = const offset_of!(TrapFrame, rax),
    RCX = const offset_of!(TrapFrame, rcx),
    RDX = const offset_of!(TrapFrame, rdx),
    RSI = const offset_of!(TrapFrame, rsi),
    RDI = const offset_of!(TrapFrame, rdi),
    VECTOR = const offset_of!(TrapFrame, vector),
    VECTOR_CALL = const VECTOR_CALL,
    FRAME_IP = const offset_of!(TrapFrame, ip),
    FRAME_FLAGS = const offset_of!(TrapFrame, flags),
    FRAME_SP = const offset_of!(TrapFrame, sp),
    GATE = const GATE,
    GATE_VECTOR = const GATE_VECTOR,
    VECTOR_INITIAL = const offset_of!(Tcb, vector_initial),
    VECTOR_FROM = const offset_of!(Tcb, vector_from),
    MXCSR = const xsave::MXCSR,
    DEAD_OPEN = const rendezvous::DEAD_OPEN as u32,
    DEAD_CLOSED = const rendezvous::DEAD_CLOSED as u32,
    KEPT_OPEN = const rendezvous::KEPT_OPEN as u32,
    KEPT_CLOSED = const rendezvous::KEPT_CLOSED as u32,
    PUBLISHED = const rendezvous::PUBLISHED as u32,
    ARMED = const rendezvous::ARMED as u32,
    NOBODY = const rendezvous::NOBODY.0 as i32,
    ARMED_RENDEZVOUS = const offset_of!(Tcb, armed_rendezvous),
    SPECIAL = const offset_of!(Tcb, special),
    ARMED_ONLY = const tcb::ARMED,
    SPACE = const offset_of!(Tcb, space),
    PUBLISHED_COUNT = const offset_of!(AddressSpace, task) + offset_of!(Task, entangled),
    WORD_USER = const CURRENT_WORD + CurrentWord::USER,
    WORD_KERNEL = const CURRENT_WORD + CurrentWord::KERNEL,
    PAD_THREAD = const pad::PAD_THREAD,
    PAD_WORD = const pad::PAD_WORD,
    GATE_ARMED = const GATE_ARMED,
    BESIDE = const BESIDE,
    BESIDE_RENDEZVOUS = const offset_of!(Tcb, beside_rendezvous),
    ARMED_VECTOR = const tcb::ARMED | tcb::USES_VECTOR,
    LIPC_WAIT = const utcb::LIPC_WAIT * 8,
    LIPC_SP = const utcb::LIPC_SP * 8,
    LIPC_RUNS = const utcb::LIPC_RUNS,
    LIPC_OPEN = const utcb::lipc_open(0) as i64,
    LIPC_OPEN_LOCAL = const utcb::lipc_open_local(0) as i64,
    READY_BIT = const READY_BIT,
    BASE = const LINKAGE_BASE as i64,
    PLACE = const linkage::PLACE,
    LINKAGES = const offset_of!(Tcb, linkages),
    LINKAGE = const offset_of!(Tcb, linkage),
    READY_LINKS = const offset_of!(Tcb, ready),
    PRIORITY = const offset_of!(Tcb, priority),
    TOKEN = const offset_of!(Record, token),
    HOST = const offset_of!(Record, host),
    CALLER = const offset_of!(Record, caller),
    PROCEDURES = const offset_of!(Record, procedures),
    A_STACK = const offset_of!(Record, a_stack),
    COOKIE = const offset_of!(Record, cookie),
    CALLS = const Busy::Calls as u32,
    LENT = const Busy::Lent as u32,
    NOT_SIMPLE = const NOT_SIMPLE,
    WORDS_MASK = const WORDS_MASK,
    IN_REGISTERS = const IN_REGISTERS,
    ONE_ITEM = const ONE_ITEM,
    NOT_SIMPLE_STRING = const simple_string::NOT_SIMPLE,
    LONGEST_STRING = const simple_string::LONGEST_ITEM,
    COPY_STRING = sym simple_string::copy_at_once,
);
