//! ProcessorControl, MemoryControl, and who may run the kernel's checker.

use abi::inspect::What;
use abi::layout::stub;
use abi::protocol::exception as reg;
use abi::{CallError, Fpage, Rights};
use runtime::{syscall, utcb};

use crate::machine::memory_control;
use crate::report::{Outcome, case};
use crate::same;
use crate::victim::{Victim, registers};

/// Runs the tests.
pub fn run() {
    case("processor_control", processor);
    case("memory_control", memory);
    case("the_checker_is_for_the_initial_tasks", checker);
}

/// It keeps others waiting for long, and tells about everybody; so do the kernel's totals.
fn checker() -> Outcome {
    let victim = Victim::task()?;
    let mut regs = registers();
    regs[reg::RDI] = What::Kernel as u64;
    same!("looking at the kernel", victim.call(stub::INSPECT, regs)?[reg::RAX], 0);
    regs[reg::RDI] = What::Check as u64;
    same!("running the checker", victim.call(stub::INSPECT, regs)?[reg::RAX], 0);
    same!("its error", victim.error_code()?, CallError::NoPrivilege as u64);
    victim.delete()
}

fn processor() -> Outcome {
    same!("leaving all unchanged", syscall::processor_control(0, !0, !0, !0), true);
    for (cpu, khz) in [(1, !0), (0, 1_000_000)] {
        same!("what cannot be done", syscall::processor_control(cpu, khz, !0, !0), false);
        same!("its error", utcb::error_code(), CallError::InvalidParameter as u64);
    }
    let victim = Victim::task()?;
    let mut regs = registers();
    (regs[reg::RSI], regs[reg::RDX], regs[reg::R8]) = (!0, !0, !0);
    same!("without privilege", victim.call(stub::PROCESSOR_CONTROL, regs)?[reg::RAX], 0);
    same!("its error", victim.error_code()?, CallError::NoPrivilege as u64);
    victim.delete()
}

fn memory() -> Outcome {
    let page = Fpage::memory(0x100_0000, 12, Rights::NONE).0;
    same!("the default attribute", memory_control(0, page, [0; 4]).0, true);
    same!("an attribute that nobody selects", memory_control(0, page, [0, 1, 1, 1]).0, true);
    for selected in 0..4u64 {
        let mut attributes = [0; 4];
        attributes[selected as usize] = 5;
        let refused = memory_control(0, page | selected, attributes);
        same!("another attribute", refused, (false, CallError::InvalidParameter as u64));
    }
    let victim = Victim::task()?;
    let mut regs = registers();
    (regs[reg::RDI], regs[reg::R9]) = (victim.utcb, page);
    same!("without privilege", victim.call(stub::MEMORY_CONTROL, regs)?[reg::RDX], 0);
    same!("its error", victim.error_code()?, CallError::NoPrivilege as u64);
    // A UTCB pointer that is none faults in the stub, at user level.
    regs[reg::RDI] = 0x1000;
    victim.begin_call(stub::MEMORY_CONTROL, regs)?;
    match victim.event() {
        crate::victim::Event::PageFault(fault) => {
            same!("the fault's address", fault.address, 0x1000)
        }
        other => {
            return Err(crate::report::Sentence::new(format_args!(
                "a wrong UTCB pointer led to {other:x?}"
            )));
        }
    }
    victim.abandon()?;
    victim.delete()
}
