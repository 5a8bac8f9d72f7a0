//! Tasks that take kernel memory: threads, tasks, mappings, chains of mappings, timers;
//! and one that makes and deletes a given number of tasks.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::{Fpage, MapItem, Rights, ThreadId, Time, Timeouts};
use runtime::{Msg, ipc, kernel, thread};

use super::hostile::{self, CHILDREN, MADE, REFUSED, count, fresh, number, spawn, spawn_task};
use super::turns::{self, Account};
use crate::machine;
use crate::rng::Rng;

/// A page to map.
#[repr(align(4096))]
struct Page([AtomicU64; 512]);

static PAGE: Page = Page([const { AtomicU64::new(7) }; 512]);
/// Where it is mapped: each place needs a page table of its own.
const PLACES: u64 = 0x40_0000_0000;
const DISTANCE: u64 = 1 << 21;
/// Where the links of a chain have it.
const LINK: u64 = 0x50_0000_0000;
/// Links of the chain, each a task.
const LINKS: u32 = 48;
/// Threads that sleep.
const SLEEPERS: u32 = 100;
/// Threads that spin beside one that makes more.
const CROWD: u32 = 24;

/// How many tasks [`cycle`] is to make.
pub static WANTED: AtomicU64 = AtomicU64::new(0);

/// Makes one more of something with each id that `make` accepts, without end; what is
/// refused costs the oldest.
fn without_end(make: impl Fn(ThreadId) -> kernel::Result<()>) -> ! {
    let (mut newest, mut oldest) = (0u32, 0u32);
    let mut account = Account::open();
    loop {
        account.settle();
        let crowded = newest - oldest >= CHILDREN - 1;
        if !crowded && count(make(fresh(number(newest)))) {
            newest += 1;
        } else if oldest < newest {
            let _ = kernel::delete(ThreadId::global(number(oldest), 1));
            oldest += 1;
        }
    }
}

/// Threads without end.
pub extern "C" fn threads(_: u64) -> ! {
    let me = thread::me();
    without_end(|id| kernel::create(id, me, me, !0))
}

/// Tasks without end.
pub extern "C" fn tasks(_: u64) -> ! {
    without_end(|id| hostile::make_space(id, 12))
}

/// A crowd that spins, and threads without end.
pub extern "C" fn crowd(_: u64) -> ! {
    (1..=CROWD).for_each(|index| {
        // Numbers that `threads` does not come to.
        let id = fresh(hostile::FIRST + 1 + CHILDREN + index);
        if count(hostile::make_thread(id, index)) {
            hostile::place(id, hostile::home(id.number()));
            hostile::start(id, &hostile::STACKS[index as usize], hostile::spin, 0);
        }
    });
    threads(0)
}

/// Whether the thread with this number is one of the crowd that spins.
pub const fn only_computes(number: u32) -> bool {
    number > hostile::FIRST + CHILDREN
}

/// Mappings without end: one page at as many places of a mate's as both can pay for.
pub extern "C" fn mappings(_: u64) -> ! {
    let _ = PAGE.0[0].load(Relaxed);
    let mate = spawn_task(1, take_mappings, 1_000);
    let page = Fpage::memory(&raw const PAGE as u64, 12, Rights::R);
    let mut place = 0;
    let mut account = Account::open();
    loop {
        account.settle();
        let item = MapItem::map(page, PLACES + place * DISTANCE);
        match ipc::call(mate, &Msg::new(0).map(item)) {
            Ok(_) => {
                MADE.fetch_add(1, Relaxed);
                place += 1;
            }
            Err(_) => {
                REFUSED.fetch_add(1, Relaxed);
                kernel::unmap(page.with_rights(Rights::RWX));
                // Its tables stay: the next round is at other places.
                place = 0;
            }
        }
    }
}

/// One page at as many places as there is memory for, close to each other: the end of this task
/// takes long. Afterwards it computes, so that the canary's fair share stays what it was.
pub extern "C" fn tree(_: u64) -> ! {
    let _ = PAGE.0[0].load(Relaxed);
    let mate = spawn_task(1, take_mappings, 2_000);
    let page = Fpage::memory(&raw const PAGE as u64, 12, Rights::R);
    let place = |index: u64| PLACES + (index << 12);
    let take = |at| ipc::call(mate, &Msg::new(0).map(MapItem::map(page, at)));
    let mut account = Account::open();
    while take(place(MADE.load(Relaxed))).is_ok() {
        MADE.fetch_add(1, Relaxed);
        account.settle();
    }
    hostile::spin(0)
}

extern "C" fn take_mappings(_: u64) -> ! {
    machine::accepting_everything(|| {
        let mut reply = None;
        loop {
            turns::give();
            let (from, _) = ipc::next_request(reply.take());
            reply = Some((from, Msg::default()));
        }
    })
}

/// A deep chain: a page goes from task to task, the last one reports, the first takes it
/// back from all, again and again.
pub extern "C" fn chain(_: u64) -> ! {
    let _ = PAGE.0[0].load(Relaxed);
    NEXT[LINKS as usize].store(thread::me().0, Relaxed);
    for index in (1..=LINKS).rev() {
        let id = spawn_task(index, link, 0);
        NEXT[index as usize - 1].store(id.0, Relaxed);
    }
    let first = ThreadId(NEXT[0].load(Relaxed));
    let page = Fpage::memory(&raw const PAGE as u64, 12, Rights::RW);
    let mut account = Account::open();
    machine::accepting_everything(|| {
        loop {
            account.settle();
            // Each passes the page and its slice on in one operation; the last one's is here.
            let counter = match pass(first, &Msg::new(0).map(MapItem::map(page, LINK))) {
                Ok(_) => &MADE,
                Err(_) => &hostile::ODD,
            };
            counter.fetch_add(1, Relaxed);
            kernel::unmap(page.with_rights(Rights::RWX));
        }
    })
}

/// Sends, and waits for whatever comes next.
fn pass(to: ThreadId, msg: &Msg) -> ipc::Result<(ThreadId, Msg)> {
    ipc::ipc(to, ThreadId::ANY, Timeouts::NEVER, msg)
}

/// Whom each link passes the page on to.
static NEXT: [AtomicU64; LINKS as usize + 1] = [const { AtomicU64::new(0) }; LINKS as usize + 1];

extern "C" fn link(index: u64) -> ! {
    let next = ThreadId(NEXT[index as usize].load(Relaxed));
    let page = Fpage::memory(LINK, 12, Rights::RW);
    machine::accepting_everything(|| {
        let mut came = ipc::wait(Time::NEVER);
        loop {
            turns::give();
            came = match came {
                Ok(_) => pass(next, &Msg::new(0).map(MapItem::map(page, LINK))),
                Err(_) => ipc::wait(Time::NEVER),
            };
        }
    })
}

/// Timers without end: threads that sleep for times of all lengths.
pub extern "C" fn timers(_: u64) -> ! {
    (1..=SLEEPERS).for_each(|index| {
        let _ = spawn(index, sleeper, index.into());
    });
    sleeper(0)
}

extern "C" fn sleeper(index: u64) -> ! {
    let mut rng = Rng::new(index + 1);
    loop {
        let longest_us = 1 << rng.below(14);
        ipc::sleep(1 + rng.below(longest_us));
        MADE.fetch_add(1, Relaxed);
        turns::give();
    }
}

/// Makes and deletes as many tasks as are wanted, each with an active thread.
pub extern "C" fn cycle(_: u64) -> ! {
    let mut done = 0;
    let mut account = Account::open();
    while u64::from(done) < WANTED.load(Relaxed) {
        let id = fresh(number(done));
        let made = count(hostile::make_space(id, 12));
        if !made || kernel::delete(id).is_err() {
            hostile::ODD.fetch_add(1 << 8, Relaxed);
        }
        done += 1;
        account.settle();
    }
    thread::park()
}
