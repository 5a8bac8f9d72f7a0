//! Commands about the kernel's own objects (Inspect, by way of the root task).

use alloc::string::{String, ToString};

use abi::ThreadId;
use abi::inspect::{What, state};
use runtime::{println, root};

use crate::names::Names;

/// One record; `None` behind the last.
pub fn record(what: What, index: u64, argument: u64) -> Option<[u64; 8]> {
    root::inspect(what, index, argument).ok()
}

/// Calls `show` with every record of objects that are found by "first one from
/// index": `next` says from which index on to ask for the one behind a record.
fn each(what: What, next: impl Fn(&[u64; 8]) -> u64, mut show: impl FnMut(&[u64; 8])) {
    let mut index = 0;
    let mut shown = 0;
    while let Some(found) = record(what, index, 0) {
        show(&found);
        shown += 1;
        let after = next(&found) + 1;
        if after <= index {
            break;
        }
        index = after;
    }
    if shown == 0 {
        println!("The kernel shows no such records; is control=1 in this task's description?");
    }
}

/// Lists the threads, or those of one task with more about each.
pub fn threads(task: &str) {
    let names = Names::read();
    if task.is_empty() {
        println!("  task             thread      state    prio partner          at (ip)");
    } else {
        println!("  thread        ip                sp                pager");
    }
    let mut shown = false;
    each(
        What::Thread,
        |found| u64::from(ThreadId(found[0]).number()),
        |found| {
            let [id, state, space, priority, partner, ip, sp, pager] = *found;
            let name = names.space(space);
            if task.is_empty() {
                let (state, with) = (state_name(state), names.thread(partner));
                println!("  {name:16} {:11} {state:8} {priority:4} {with:16} {ip:x}", Id(id));
            } else if name == task {
                shown = true;
                println!("  {:12}  {ip:16x}  {sp:16x}  {}", Id(id), names.thread(pager));
            }
        },
    );
    if !task.is_empty() && !shown {
        println!("{task} has no threads; `ps` lists all that there are.");
    }
}

/// A thread id, padded.
struct Id(u64);

impl core::fmt::Display for Id {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.0 == 0 {
            return f.pad("-");
        }
        f.pad(&alloc::format!("{}", ThreadId(self.0)))
    }
}

fn state_name(word: u64) -> &'static str {
    match word {
        state::READY => "ready",
        state::POLLING => "sending",
        state::WAITING => "waiting",
        state::TRANSFER => "transfer",
        state::INACTIVE => "inactive",
        state::HALTED => "halted",
        _ => "unknown",
    }
}

/// The chief in the record of a space that has none.
const NO_CHIEF: u64 = !0;

/// Lists the spaces.
pub fn spaces(_: &str) {
    let names = Names::read();
    println!("  space  task              threads  page tables  mappings  chief  root table");
    each(
        What::Space,
        |found| found[0],
        |found| {
            let [id, _, _, threads, tables, mappings, chief, root_table] = *found;
            let chief = if chief == NO_CHIEF { String::from("-") } else { chief.to_string() };
            println!(
                "  {id:5}  {:16}  {threads:7}  {tables:11}  {mappings:8}  {chief:>5}  {root_table:#x}",
                names.space(id)
            );
        },
    );
}

/// Lists the spaces' kernel memory.
pub fn quotas(_: &str) {
    let names = Names::read();
    println!("  space  task              limit (pages)  used");
    each(
        What::Space,
        |found| found[0],
        |found| {
            let [space, limit, used, ..] = *found;
            println!("  {space:5}  {:16}  {limit:13}  {used:4}", names.space(space));
        },
    );
}

/// Shows the mapping tree of a frame.
pub fn mapping(text: &str) {
    let digits = text.trim_start_matches("0x");
    let Ok(address) = u64::from_str_radix(digits, 16) else {
        return println!(
            "`{text}` is not an address; write it in hexadecimal, as in `map 1000000`."
        );
    };
    let names = Names::read();
    println!("  The frame at {:#x}:", address & !0xFFF);
    for index in 0.. {
        let Some([depth, space, at, bits, rights, ..]) = record(What::Mapping, index, address)
        else {
            if index == 0 {
                println!("  nobody has it but the initial space");
            }
            return;
        };
        let letter = |bit: u64, letter| if rights & bit != 0 { letter } else { '-' };
        println!(
            "  {:indent$}{} at {at:#x}, 2^{bits} bytes, {}{}{}",
            "",
            names.space(space),
            letter(4, 'r'),
            letter(2, 'w'),
            letter(1, 'x'),
            indent = depth as usize * 2
        );
    }
}

/// Shows the kernel's totals.
pub fn totals(_: &str) {
    let Some([pages, free, threads, spaces, entries, ticks, ..]) = record(What::Kernel, 0, 0)
    else {
        return println!(
            "The kernel does not show its totals; is control=1 in this task's description?"
        );
    };
    println!("  kernel memory: {free} of {pages} pages free");
    println!("  {threads} threads in {spaces} spaces");
    println!("  {entries} entries into the kernel, {ticks} timer ticks");
}

/// Runs the kernel's checker.
pub fn check(_: &str) {
    match record(What::Check, 0, 0) {
        Some([0, ..]) => println!("  The kernel's structures are consistent."),
        Some([count, ..]) => println!(
            "  The kernel found {count} violations of its own invariants; its log names them."
        ),
        None => println!("  The kernel has no checker in this build."),
    }
}
