//! Herds: many threads, many of them with timers, and many mappings; the basic
//! operations are measured in their presence.

use abi::{CallError, Fpage, MapItem, MsgTag, Rights, ThreadId, Time};
use runtime::{Msg, direct_println, ipc, kernel};

use crate::exchange::Where;
use crate::life;
use crate::marks::{Role, exchange, sample, start_of};
use crate::memory::block;
use crate::partner::{self, Partner, Result, fresh_id};
use crate::{Samples, row};

/// Sizes at which is measured.
const SIZES: [u64; 5] = [10, 100, 1_000, 10_000, 100_000];
/// Log2 of the herd's UTCB area: room for 2^17 threads of 1 KiB.
const HERD_UTCB_BITS: u32 = 27;
/// Where the herd's UTCBs are: an area of that size, naturally aligned.
const HERD_UTCBS: u64 = 0x1_0000_0000;
/// Kernel memory per thread (two frames, its share of a page of UTCBs and tables)
/// and per small mapping, in pages of 4 KiB; generous, in quarters.
const QUARTERS_PER_THREAD: u64 = 10;
const ROUNDS: u64 = 4;
/// A time in which the idle thread's ticks look at all threads.
const QUIET: Time = Time::micros(400_000);
/// Timers of the herd: an hour, so that none goes off while it is measured.
const SLEEP: Time = Time::micros(3_600_000_000);

/// Rows `growth/...` with `threads=N`: half of them wait with a timeout.
pub fn threads() -> Result<()> {
    let partner = Where::Cross.partner(Role::Marked)?;
    let home = herd_space()?;
    let mut size = 0;
    for wanted in SIZES {
        while size < wanted {
            match member(home, size) {
                Ok(()) => size += 1,
                Err(CallError::NoMemory) => return finish("threads", size),
                Err(error) => return Err(partner::why(error)),
            }
        }
        measure(partner, &format_parameter("threads", wanted))?;
    }
    let _ = kernel::delete(partner.id);
    Ok(())
}

fn finish(what: &str, reached: u64) -> Result<()> {
    direct_println!("note growth of {what} ends at {reached}: the kernel's memory is used up");
    Ok(())
}

/// The herd's space with a first thread that never runs.
fn herd_space() -> Result<ThreadId> {
    let id = fresh_id();
    let (limit, used) = kernel::move_quota(ThreadId::ROOT, 0).map_err(partner::why)?;
    let threads = (limit - used).saturating_sub(2048) * 4 / QUARTERS_PER_THREAD;
    let pages = (threads.min(110_000) * QUARTERS_PER_THREAD / 4) as i64;
    kernel::create(id, id, ThreadId::ROOT, HERD_UTCBS).map_err(partner::why)?;
    kernel::move_quota(id, pages).map_err(partner::why)?;
    let kip = Fpage::memory(abi::layout::INITIAL_KIP, 12, Rights::NONE);
    let utcbs = Fpage::memory(HERD_UTCBS, HERD_UTCB_BITS, Rights::NONE);
    kernel::configure_space(id, kip, utcbs).map_err(partner::why)?;
    kernel::set_pager(id, id, ThreadId::ROOT, !0).map_err(partner::why)?;
    start(id, 0);
    Ok(id)
}

/// Member number `index` of the herd; every second one has a timer.
fn member(home: ThreadId, index: u64) -> core::result::Result<(), CallError> {
    let id = fresh_id();
    let location = HERD_UTCBS + (index + 1) * 1024;
    kernel::create_active(id, home, ThreadId::ROOT, ThreadId::ROOT, location)?;
    start(id, index);
    Ok(())
}

/// Starts a sleeper and serves its first fault, if it has one (the first of all does).
fn start(id: ThreadId, index: u64) {
    let timeout = if index.is_multiple_of(2) { SLEEP.0 } else { Time::NEVER.0 };
    let message = Msg::default().word(start_of(Role::Sleeper)).word(u64::from(timeout));
    let _ = ipc::send(id, &message);
    // It runs when this thread waits: until it sleeps, or has faulted and slept.
    while let Ok(message) = ipc::receive(id, Time::micros(1)) {
        let Some(fault) = runtime::space::Fault::decode(&message) else { break };
        let _ = ipc::send(id, &fault.same_page(Rights::RWX));
    }
}

/// A parameter on its own, short enough for a row.
fn format_parameter(name: &'static str, value: u64) -> Parameter {
    Parameter { name, value }
}

/// ` NAME=VALUE`.
struct Parameter {
    name: &'static str,
    value: u64,
}

impl core::fmt::Display for Parameter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, " {}={}", self.name, self.value)
    }
}

/// What is measured at each size.
fn measure(partner: Partner, parameter: &Parameter) -> Result<()> {
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        let _ = exchange(partner.id, MsgTag::new(1, 0, 0), [0, 0], 2);
    }
    samples.row(format_args!("growth/short-ipc{parameter}"), 0, 2);
    // Whoever waits for a thread of an earlier measurement has been found by then.
    let _ = ipc::receive(ThreadId::ROOT, QUIET);
    life::ticks("growth", parameter, 3);
    life::threads("growth", parameter)?;
    life::sweeping_ticks("growth", parameter, 3);
    life::tasks("growth", parameter)?;
    Ok(())
}

/// Rows `growth/map` and `growth/unmap` with `mappings=N`: a mapping beside so many
/// others, and its removal. `growth/map-again`: the same mapping a second time, of the
/// page that has all the others. `growth/unmap-tree`: all of them at once.
pub fn mappings() -> Result<()> {
    /// Where the child's mappings begin.
    const BASE: u64 = 0x40_0000_0000;
    let memory = block(12)?;
    let child = partner::program(take, 0, 12_288)?;
    let mut size = 0;
    for wanted in SIZES {
        while size < wanted {
            let item =
                MapItem::map(Fpage::memory(memory.base(), 12, Rights::R), BASE + (size << 12));
            if ipc::call(child.id, &Msg::default().map(item)).is_err() {
                return finish("mappings", size);
            }
            size += 1;
        }
        let other = block(12)?;
        let fpage = Fpage::memory(other.base(), 12, Rights::R);
        let message = Msg::default().map(MapItem::map(fpage, BASE + (1 << 30)));
        let _ = partner::call(child.id, &message)?;
        let _ = kernel::unmap(fpage);
        let samples = Samples::start();
        for _ in 0..ROUNDS {
            let _ = sample(|| ipc::call(child.id, &message));
            let _ = sample(|| kernel::unmap(fpage));
        }
        samples.row(format_args!("growth/map mappings={wanted}"), 0, 2);
        samples.row(format_args!("growth/unmap mappings={wanted}"), 1, 2);
        let same = Fpage::memory(memory.base(), 12, Rights::R);
        let message = Msg::default().map(MapItem::map(same, BASE + (1 << 30)));
        let samples = Samples::start();
        for _ in 0..ROUNDS {
            let _ = sample(|| ipc::call(child.id, &message));
        }
        row!(samples, "growth/map-again mappings={wanted}");
    }
    let samples = Samples::start();
    let _ = sample(|| kernel::unmap(Fpage::memory(memory.base(), 12, Rights::R)));
    row!(samples, "growth/unmap-tree mappings={size}");
    child.delete();
    Ok(())
}

/// Takes whatever is mapped to it, anywhere in its window.
extern "C" fn take(_: u64) -> ! {
    use runtime::{accept, window::Window};
    let Some(mut window) = Window::claim(0x40_0000_0000, 1 << 31) else { runtime::thread::park() };
    let ready = Msg::new(crate::marks::READY);
    accept::window(&mut window, || {
        loop {
            let _ = ipc::call(ThreadId::ROOT, &ready);
        }
    });
    runtime::thread::park()
}
