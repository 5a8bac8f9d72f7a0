//! The system calls that are not IPC, each at its cheapest.

use abi::inspect::What;
use abi::{Fpage, Rights, ThreadId};
use runtime::{clock, ipc, kernel, schedule, syscall, thread};

use crate::fault::call_in;
use crate::marks::sample;
use crate::partner::{self, PRIORITY, Result};
use crate::{Samples, row};

const ROUNDS: usize = 4;

/// Measures one call.
macro_rules! measure {
    ($name:literal, $call:expr) => {{
        let _ = $call;
        let samples = Samples::start();
        for _ in 0..ROUNDS {
            let _ = sample(|| $call);
        }
        row!(samples, "ops/{}", $name);
    }};
}

/// One row per call.
pub fn run() {
    measure!("system-clock", clock::now_us());
    measure!("thread-switch-self", schedule::yield_to(ThreadId::ROOT));
    measure!("thread-switch-nobody", schedule::yield_now());
    measure!("exchange-registers", thread::registers(ThreadId::ROOT));
    measure!("schedule", schedule::set_priority(ThreadId::ROOT, PRIORITY));
    measure!("unmap-nothing", kernel::unmap(Fpage::memory(0x30_0000_0000, 12, Rights::RWX)));
    measure!("quota-control", kernel::move_quota(ThreadId::ROOT, 0));
    measure!("inspect", kernel::inspect(What::Thread, 64, 0));
    measure!("processor-control", syscall::processor_control(0, !0, !0, !0));
    measure!("receive-timeout-zero", ipc::receive(ThreadId::SIGMA0, abi::Time::ZERO));
}

/// Row `ops/thread-switch`: from a thread to one in another space that is ready.
pub fn switch() -> Result<()> {
    let other = partner::program(switch_back, 0, 64)?;
    // It goes on, ready, and gives the processor back.
    ipc::send(other.id, &runtime::Msg::default())
        .map_err(|_| "the partner of the thread switch is gone")?;
    schedule::yield_to(other.id);
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        crate::marks::begin();
        schedule::yield_to(other.id);
        crate::marks::end();
        crate::marks::note(1);
    }
    row!(samples, "ops/thread-switch");
    other.delete();
    Ok(())
}

/// Ends the sample that the root task began, begins the way back.
extern "C" fn switch_back(_: u64) -> ! {
    // Brings in the pages of what follows: the pager does not listen later.
    crate::marks::note(core::hint::black_box(0));
    call_in();
    schedule::yield_to(ThreadId::ROOT);
    loop {
        crate::marks::end();
        crate::marks::note(1);
        crate::marks::begin();
        schedule::yield_to(ThreadId::ROOT);
    }
}
