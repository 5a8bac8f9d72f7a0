//! The pager of all puppets: maps the root task's pages 1:1, counts, and can be told
//! to let some faults wait for ever.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use abi::{Fpage, MapItem, Rights, ThreadId};
use runtime::space::Fault;
use runtime::{Msg, ipc};

/// The region whose faults are counted.
static WATCHED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Faults in the watched region.
static FAULTS: AtomicU64 = AtomicU64::new(0);
/// The region whose faults get no answer.
static UNANSWERED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Address, IP, access and thread of the last counted fault.
static LAST: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

fn set(region: &[AtomicU64; 2], low: u64, high: u64) {
    region[0].store(low, SeqCst);
    region[1].store(high, SeqCst);
}

fn inside(region: &[AtomicU64; 2], address: u64) -> bool {
    address >= region[0].load(SeqCst) && address < region[1].load(SeqCst)
}

/// Counts faults from `low` to `high` from now on.
pub fn watch(low: u64, high: u64) {
    set(&WATCHED, low, high);
    FAULTS.store(0, SeqCst);
}

/// Faults since `watch`.
pub fn faults() -> u64 {
    FAULTS.load(SeqCst)
}

/// Leaves faults from `low` to `high` without an answer from now on.
pub fn leave_unanswered(low: u64, high: u64) {
    set(&UNANSWERED, low, high);
}

/// The last counted fault and the thread that had it.
pub fn last() -> (Fault, ThreadId) {
    let word = |at: usize| LAST[at].load(SeqCst);
    (Fault { address: word(0), ip: word(1), access: Rights(word(2) as u8) }, ThreadId(word(3)))
}

/// The pager's thread.
pub extern "C" fn run() -> ! {
    runtime::utcb::set_pager(ThreadId::SIGMA0);
    let mut reply = None;
    loop {
        let (client, message) = ipc::next_request(reply);
        reply = Fault::decode(&message).and_then(|fault| answer(client, &fault));
    }
}

fn answer(client: ThreadId, fault: &Fault) -> Option<(ThreadId, Msg)> {
    if inside(&WATCHED, fault.address) {
        FAULTS.fetch_add(1, SeqCst);
        let words = [fault.address, fault.ip, u64::from(fault.access.0), client.0];
        LAST.iter().zip(words).for_each(|(slot, word)| slot.store(word, SeqCst));
    }
    if inside(&UNANSWERED, fault.address) {
        return None;
    }
    let (low, high) = runtime::layout::image();
    let fpage = if fault.address >= low && fault.address < high {
        // All of the program at once: its pages never fault during a test.
        Fpage::memory(low, 24, Rights::RWX)
    } else {
        Fpage::memory(fault.address, 12, Rights::RWX)
    };
    Some((client, Msg::default().map(MapItem::map(fpage, fpage.base()))))
}
