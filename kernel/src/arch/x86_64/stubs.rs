//! The user page (system-call stubs) and the user data page: what every space
//! sees of the kernel at [`abi::layout::STUBS`].
//!
//! The stubs are assembled into one page-aligned page of the kernel image,
//! which the boot code maps user-executable; they are position-independent
//! except that the user data page follows the stub page directly.

use abi::ThreadId;
use abi::layout::{self, stub};
use abi::syscall::Call;
use core::arch::global_asm;
use core::mem::offset_of;

use crate::arch::clock::ClockPage;
use crate::techniques;

global_asm!(
    concat!(include_str!("words.S"), include_str!("stubs.S"), include_str!("local_stubs.S")),
    STUB_SIZE = const layout::STUB_SIZE,
    // Two from-specifiers; the bits that a local id, a UTCB pointer, has none of.
    ANY = const ThreadId::ANY.0 as i64,
    ANY_LOCAL = const ThreadId::ANY_LOCAL.0 as i64,
    VERSION_BITS = const 0x3F,
    // The bit of RDI that says that vector registers are dead.
    DEAD = const 1,
    CLOCK_HIGH = const 32,
    MY_GLOBAL_ID = const -8 * abi::utcb::MY_GLOBAL_ID as i64,
    CLOCK_MULTIPLIER = const PAGE_DISTANCE + offset_of!(ClockPage, multiplier) as u64,
    CLOCK_OFFSET = const PAGE_DISTANCE + offset_of!(ClockPage, offset_us) as u64,
    IPC = const stub::IPC,
    LIPC = const stub::LIPC,
    EXCHANGE_REGISTERS = const stub::EXCHANGE_REGISTERS,
    THREAD_CONTROL = const stub::THREAD_CONTROL,
    SYSTEM_CLOCK = const stub::SYSTEM_CLOCK,
    THREAD_SWITCH = const stub::THREAD_SWITCH,
    SCHEDULE = const stub::SCHEDULE,
    UNMAP = const stub::UNMAP,
    SPACE_CONTROL = const stub::SPACE_CONTROL,
    PROCESSOR_CONTROL = const stub::PROCESSOR_CONTROL,
    MEMORY_CONTROL = const stub::MEMORY_CONTROL,
    QUOTA_CONTROL = const stub::QUOTA_CONTROL,
    INSPECT = const stub::INSPECT,
    THREAD_STATE = const stub::THREAD_STATE,
    TASK_CONTROL = const stub::TASK_CONTROL,
    CREATE_THREAD = const stub::CREATE_THREAD,
    LOCAL_CALL = const stub::LOCAL_CALL,
    LOCAL_REPLY_WAIT = const stub::LOCAL_REPLY_WAIT,
    LOCAL_CALL_ONE = const stub::LOCAL_CALL_ONE,
    LOCAL_ONWARD = const stub::LOCAL_ONWARD,
    REPLY_WAIT = const abi::Timeouts::REPLY_WAIT.0,
    LOCAL_SLOW = const stub::LOCAL_SLOW,
    SECTION_ENTER = const stub::SECTION_ENTER,
    SECTION_RUN = const stub::SECTION_RUN,
    SECTION_BUSY = const abi::utcb::SECTION_BUSY as i64,
    LIPC_SECTION = const abi::utcb::LIPC_SECTION as i64,
    LIPC_WAIT = const abi::utcb::LIPC_WAIT,
    LIPC_SP = const abi::utcb::LIPC_SP,
    LIPC_STATE = const abi::utcb::LIPC_STATE,
    LIPC_WAITED = const abi::utcb::LIPC_WAITED,
    PENDING_SEND = const techniques::PENDING_SEND as u8,
    LIPC_RUNS = const abi::utcb::LIPC_RUNS,
    LIPC_UNKNOWN = const abi::utcb::LIPC_UNKNOWN,
    PUBLISH = const PUBLISH_BIT,
    // The first processor's.
    LIPC_OPEN = const abi::utcb::lipc_open(0) as i64,
    LIPC_OPEN_LOCAL = const abi::utcb::lipc_open_local(0) as i64,
    PROCESSOR_NO = const abi::utcb::PROCESSOR_NO,
    LIPC_REFUSED = const abi::utcb::LIPC_REFUSED,
    CALL_EXCHANGE_REGISTERS = const Call::ExchangeRegisters as u64,
    CALL_THREAD_CONTROL = const Call::ThreadControl as u64,
    CALL_THREAD_SWITCH = const Call::ThreadSwitch as u64,
    CALL_SCHEDULE = const Call::Schedule as u64,
    CALL_UNMAP = const Call::Unmap as u64,
    CALL_SPACE_CONTROL = const Call::SpaceControl as u64,
    CALL_PROCESSOR_CONTROL = const Call::ProcessorControl as u64,
    CALL_MEMORY_CONTROL = const Call::MemoryControl as u64,
    CALL_QUOTA_CONTROL = const Call::QuotaControl as u64,
    CALL_INSPECT = const Call::Inspect as u64,
    CALL_THREAD_STATE = const Call::ThreadState as u64,
    CALL_TASK_CONTROL = const Call::TaskControl as u64,
    CALL_CREATE_THREAD = const Call::CreateThread as u64,
    CALL_ARM_LOCAL = const Call::ArmLocal as u64,
);

/// A bit of R8 beside the timeouts that takes an IPC to the complete path.
const PUBLISH_BIT: u32 = 32;

/// Distance from the stub page to the user data page, bytes.
const PAGE_DISTANCE: u64 = layout::USER_DATA - layout::STUBS;
const _: () = assert!(stub::COUNT * layout::STUB_SIZE <= PAGE_DISTANCE);

unsafe extern "C" {
    static user_stubs: [u8; 4096];
    static ipc_syscall: u8;
    static lipc_syscall: u8;
}

/// The stub page as it lies in the kernel image.
#[must_use]
pub fn page() -> &'static [u8; 4096] {
    // SAFETY: `stubs.S` defines exactly one page there; nothing writes to it.
    unsafe { &user_stubs }
}

/// User address of the `syscall` instruction inside the Ipc stub.
#[must_use]
pub fn ipc_trap() -> u64 {
    user_address(&raw const ipc_syscall as u64)
}

/// User address of the `syscall` instruction inside the Lipc stub.
#[must_use]
pub fn lipc_trap() -> u64 {
    user_address(&raw const lipc_syscall as u64)
}

/// Where user mode finds what lies at `in_image` in the kernel's image of the page.
pub(super) fn user_address(in_image: u64) -> u64 {
    layout::STUBS + (in_image - page().as_ptr() as u64)
}

/// Where in the kernel's image is what programs have at user address `address`.
pub(super) fn in_image(address: u64) -> *const u8 {
    page().as_ptr().wrapping_add(address.wrapping_sub(layout::STUBS) as usize)
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
