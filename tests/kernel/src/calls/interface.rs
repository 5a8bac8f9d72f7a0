//! KernelInterface, SystemClock, Inspect, call numbers that do not exist.

use abi::inspect::What;
use abi::kip::{self, offset};
use abi::layout::{INITIAL_KIP, STUBS, stub};
use abi::protocol::exception as reg;
use abi::{Fpage, Rights, ThreadId, utcb};
use runtime::{clock, kernel};

use crate::report::{Outcome, because, case};
use crate::victim::{Registers, Victim, registers};
use crate::{check, same, world};

/// `lock nop`.
const KERNEL_INTERFACE: &[u8] = &[0xF0, 0x90];
/// Registers of an exception message that are general ones, RSP excepted.
const GENERAL: [usize; 15] = [
    reg::RAX,
    reg::RBX,
    reg::RCX,
    reg::RDX,
    reg::RSI,
    reg::RDI,
    reg::RBP,
    reg::R8,
    reg::R9,
    reg::R10,
    reg::R11,
    reg::R12,
    reg::R13,
    reg::R14,
    reg::R15,
];

/// Runs the tests.
pub fn run() {
    case("kernel_interface_changes_four_registers_only", kernel_interface);
    case("kernel_interface_knows_the_space", kernel_interface_elsewhere);
    case("kip_fields", kip_fields);
    case("system_clock_is_monotone_and_agrees_with_the_counter", clock_agrees);
    case("inspect_walks_threads_and_spaces", inspect_walks);
    case("inspect_is_refused_to_strangers", inspect_refused);
    case("unknown_call_numbers_are_errors", unknown_calls);
}

/// A different value in every general register.
pub fn pattern(salt: u64) -> Registers {
    let mut regs = registers();
    for (index, register) in (1..).zip(GENERAL) {
        regs[register] = 0x0101_0101_0101_0101 * index ^ salt;
    }
    regs
}

fn kernel_interface() -> Outcome {
    let victim = Victim::task()?;
    for round in 0..3 {
        let before = pattern(round << 40);
        let after = victim.exec(KERNEL_INTERFACE, before)?;
        for register in GENERAL {
            let expected = match register {
                reg::RAX => INITIAL_KIP,
                reg::RCX => kip::API_VERSION,
                reg::RDX => kip::API_FLAGS,
                reg::RSI => kip::KERNEL_ID,
                other => before[other],
            };
            same!("a register after lock nop", after[register], expected);
        }
        same!("RSP after lock nop", after[reg::RSP], victim.stack_top());
    }
    victim.delete()
}

fn kernel_interface_elsewhere() -> Outcome {
    let id = world::fresh();
    because(kernel::create(id, id, ThreadId::ROOT, !0), "creating a space")?;
    let (place, area) = (0x7654_3210_0000, 0x1234_5678_0000);
    let kip = Fpage::memory(place, 12, Rights::NONE);
    because(
        kernel::configure_space(id, kip, Fpage::memory(area, 12, Rights::NONE)),
        "SpaceControl",
    )?;
    because(kernel::set_pager(id, id, ThreadId::ROOT, area + 3 * utcb::SIZE), "activation")?;
    let victim = Victim::adopt(id, area + 3 * utcb::SIZE + utcb::POINTER_OFFSET)?;
    let regs = victim.exec(KERNEL_INTERFACE, registers())?;
    same!("the KIP's address", regs[reg::RAX], place);
    same!("the KIP's magic number", victim.load(place)?, kip::MAGIC);
    same!("MyGlobalId", victim.word(utcb::MY_GLOBAL_ID)?, id.0);
    victim.delete()
}

fn kip_fields() -> Outcome {
    let kip = runtime::kip::get();
    same!("the magic number", kip.word(offset::MAGIC), kip::MAGIC);
    same!("ApiVersion", kip.word(offset::API_VERSION), kip::API_VERSION);
    same!("UtcbAreaInfo", kip.word(offset::UTCB_AREA_INFO), kip::UTCB_AREA_INFO);
    same!("KipAreaInfo", kip.word(offset::KIP_AREA_INFO), kip::KIP_AREA_INFO);
    let pages = kip.word(offset::PAGE_INFO);
    same!("the rights in PageInfo", pages & 7, 7);
    check!(pages & 1 << 12 != 0 && pages & 1 << 21 != 0, "PageInfo {pages:#x} lacks a page size");
    let links = [
        (offset::SPACE_CONTROL, stub::SPACE_CONTROL),
        (offset::THREAD_CONTROL, stub::THREAD_CONTROL),
        (offset::PROCESSOR_CONTROL, stub::PROCESSOR_CONTROL),
        (offset::MEMORY_CONTROL, stub::MEMORY_CONTROL),
        (offset::IPC, stub::IPC),
        (offset::LIPC, stub::LIPC),
        (offset::UNMAP, stub::UNMAP),
        (offset::EXCHANGE_REGISTERS, stub::EXCHANGE_REGISTERS),
        (offset::SYSTEM_CLOCK, stub::SYSTEM_CLOCK),
        (offset::THREAD_SWITCH, stub::THREAD_SWITCH),
        (offset::SCHEDULE, stub::SCHEDULE),
    ];
    for (field, index) in links {
        same!("a link of the KIP", kip.word(field), abi::layout::stub_address(index));
    }
    check!(kip.memory().count() >= 2, "the KIP describes no memory");
    Ok(())
}

fn clock_agrees() -> Outcome {
    let kip = runtime::kip::get();
    let mhz = kip.word(kip.word(offset::PROC_DESC_PTR) as usize + 8) / 1000;
    check!(mhz > 0, "the processor descriptor has no frequency");
    let (start_us, start) = (clock::now_us(), clock::ticks());
    let mut last = start_us;
    for _ in 0..20_000 {
        let now = clock::now_us();
        check!(now >= last, "the clock went from {last} back to {now}");
        last = now;
    }
    let (passed_us, counted_us) = (clock::now_us() - start_us, (clock::ticks() - start) / mhz);
    check!(passed_us > 100, "20000 readings took {passed_us} us");
    let apart = passed_us.abs_diff(counted_us);
    check!(
        apart <= 2 + counted_us / 1000,
        "the clock says {passed_us} us, the counter {counted_us} us"
    );
    Ok(())
}

fn inspect_walks() -> Outcome {
    let id = world::new_task()?;
    let (mut number, mut threads, mut seen) = (0, 0, false);
    while let Some(words) = kernel::inspect(What::Thread, number, 0) {
        let found = ThreadId(words[0]);
        check!(
            u64::from(found.number()) >= number,
            "thread {found} was found from number {number}"
        );
        (number, threads, seen) = (u64::from(found.number()) + 1, threads + 1, seen || found == id);
    }
    check!(seen, "thread {id} is not among the {threads} found");
    let totals = kernel::inspect(What::Kernel, 0, 0).unwrap_or_default();
    same!("the number of threads", totals[2], threads);
    let (mut index, mut spaces) = (0, 0);
    while let Some(words) = kernel::inspect(What::Space, index, 0) {
        check!(words[2] <= words[1], "space {} uses {} of {} pages", words[0], words[2], words[1]);
        (index, spaces) = (words[0] + 1, spaces + 1);
    }
    same!("the number of spaces", totals[3], spaces);
    check!(
        kernel::inspect(What::Mapping, 0, 0).is_none_or(|words| words[0] == 0),
        "a tree's first node has a depth"
    );
    for address in [
        abi::layout::USER_END,
        0x1234_0000_0000_0000,
        0xFFFF_8000_0000_0000,
        0xFFFF_FFFF_8000_0000,
        !0,
    ] {
        check!(
            kernel::inspect(What::Mapping, 0, address).is_none(),
            "there is a mapping tree of {address:#x}"
        );
    }
    world::delete(id)
}

fn inspect_refused() -> Outcome {
    let (child, stranger) = (Victim::task()?, Victim::task()?);
    let mut regs = registers();
    (regs[reg::RDI], regs[reg::RSI]) = (What::Thread as u64, 0);
    let own = child.call(stub::INSPECT, regs)?;
    same!("Inspect by a task of the root task's", own[reg::RAX], 1);
    same!("the first thread that it is told about", own[reg::RDX], child.id().0);
    for what in [What::Thread, What::Time] {
        regs[reg::RDI] = what as u64;
        let last = child.id().max(stranger.id());
        let next = u64::from(last.number()) + 1;
        regs[reg::RSI] = if what == What::Thread { next } else { stranger.id().0 };
        same!("Inspect of a stranger", child.call(stub::INSPECT, regs)?[reg::RAX], 0);
    }
    stranger.delete()?;
    regs[reg::RDI] = 99;
    same!("Inspect of nothing known", child.call(stub::INSPECT, regs)?[reg::RAX], 0);
    same!("its error", child.error_code()?, abi::CallError::InvalidParameter as u64);
    let grandchild = super::thread::grandchild(&child)?;
    regs[reg::RDI] = What::Kernel as u64;
    same!("Inspect by a grandchild", grandchild.call(stub::INSPECT, regs)?[reg::RAX], 0);
    same!("its error", grandchild.error_code()?, abi::CallError::NoPrivilege as u64);
    grandchild.delete()?;
    child.delete()
}

fn unknown_calls() -> Outcome {
    let victim = Victim::task()?;
    for number in (0..70u64).chain([255, 4096, 1 << 31]) {
        if abi::syscall::Call::decode(number.wrapping_neg()).is_some() || number == 0 {
            continue;
        }
        let mut regs = pattern(number);
        (regs[reg::R8], regs[reg::RIP]) = (number.wrapping_neg(), victim.syscall_address());
        victim.set_word(utcb::ERROR_CODE, 0)?;
        victim.go(regs)?;
        victim.expect_parked()?;
        same!(
            "the error of an unknown call",
            victim.error_code()?,
            abi::CallError::InvalidParameter as u64
        );
    }
    check!(STUBS > abi::layout::USER_END, "the stubs lie in user memory");
    victim.delete()
}
