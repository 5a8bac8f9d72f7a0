//! What users name as receivers on another processor, whatever it is: the fast paths' own text is gone through over the
//! tcb array as that processor sees it, and finds nobody but whoever has the very id and waits for the sender.

mod array;
mod text;

use crate::common::Random;
use crate::common::clan::World;
use crate::parties::{begin, talk};
use abi::id::{SYSTEM_BASE, USER_BASE};
use abi::{MsgTag, ThreadId};
use array::{Array, Call, NUMBERS, names};
use kernel::arch::thread::spare_block;
use kernel::elsewhere::visits::{accept, shadow};
use kernel::thread::rendezvous::{self, Busy};
use kernel::thread::tcb::USES_VECTOR;
use text::Text;

const SOURCES: [&str; 8] = [
    include_str!("../../../src/arch/x86_64/entry/path.S"),
    include_str!("../../../src/arch/x86_64/entry/ipc.S"),
    include_str!("../../../src/arch/x86_64/entry/string.S"),
    include_str!("../../../src/arch/x86_64/entry/foreign.S"),
    include_str!("../../../src/arch/x86_64/entry/vector.S"),
    include_str!("../../../src/arch/x86_64/entry/armed.S"),
    include_str!("../../../src/arch/x86_64/entry/beside.S"),
    include_str!("../../../src/arch/x86_64/entry/lrpc.S"),
];
const ENTRY: &str = "baton_ipc_entry";

/// One word, seven, eight, 63, a string, a string behind words, flags.
const TAGS: [u64; 7] = [1, 7, 8, 63, MsgTag::new(0, 0, 2).0, MsgTag::new(0, 3, 2).0, 1 << 12];

/// The state of a shadow besides those of a party that has been sent.
#[derive(Clone, Copy)]
enum Sits {
    Runs,
    Open,
    /// For the one that runs.
    ForUs,
    /// For somebody else.
    ForOther,
    Is(Busy),
}

/// Shadows as `elsewhere::party` fills them, for the numbers at the edges, in all states: those of the second half use
/// vector registers, and the first of either half runs in its turn.
fn crafted(runs_with_vector: bool) {
    let numbers = [USER_BASE, 1017, NUMBERS as u32 - 1, USER_BASE + 16, 0x10000, 0x8000];
    let own = id(numbers, if runs_with_vector { 6 } else { 0 });
    let sits =
        [Sits::Runs, Sits::Open, Sits::ForUs, Sits::ForOther, Sits::Is(Busy::Halted), Sits::Open];
    for index in 0..12 {
        let (it, has_vector) = (shadow(1 + index as u32 / 4, index % 4), index >= 6);
        it.id.set(id(numbers, index));
        it.partner.set(ThreadId::ANY);
        it.open_from.set(ThreadId::ANY);
        it.utcb.set(0x7FFF_0000_0000 + index as u64 * 0x400);
        it.special.set(if has_vector { USES_VECTOR } else { 0 });
        rendezvous::forbid_armed(it);
        match sits[index % 6] {
            Sits::Runs if has_vector != runs_with_vector => rendezvous::set_busy(it, Busy::Calls),
            Sits::Runs => rendezvous::set_busy(it, Busy::Ready),
            Sits::Open => rendezvous::set_open(it),
            Sits::ForUs => rendezvous::set_closed(it, own),
            Sits::ForOther => rendezvous::set_closed(it, id(numbers, (index + 2) % 12)),
            Sits::Is(busy) => rendezvous::set_busy(it, busy),
        }
        // Registers that are kept, of every second one.
        it.vector_from.set(index as u64 % 2);
        if has_vector {
            rendezvous::seal(it);
        }
    }
}

/// The id of shadow `index`; two versions, one of which is a code.
fn id(numbers: [u32; 6], index: usize) -> ThreadId {
    let number = if index < 6 { numbers[index] } else { numbers[index - 6] ^ 0x20 };
    ThreadId::global(number, if index % 2 == 0 { 1 } else { 0x0C01 })
}

/// On a machine of its own, whose memory lives for as long as its thread; what is wrong, if something is.
fn alone(what: impl FnOnce() + Send + 'static) -> Option<String> {
    let wrong = std::thread::spawn(what).join().err()?;
    Some(wrong.downcast_ref::<String>().cloned().unwrap_or_default())
}

/// `what` with each array: as a party is sent, as it has talked, and as it can be otherwise.
fn with_each(missing: Option<u32>, what: fn(&Array)) {
    for which in 0..4 {
        let wrong = alone(move || {
            let own = [spare_block(), spare_block()];
            match which {
                0 | 1 => {
                    let world = begin(World::new());
                    assert!(accept(1).is_some());
                    let two = world.two.id.get();
                    assert!(which == 0 || talk(two, two));
                    what(&Array::new(own, &[1], missing));
                }
                _ => {
                    crafted(which == 3);
                    what(&Array::new(own, &[1, 2, 3], missing));
                }
            }
        });
        assert_eq!(wrong, None);
    }
}

fn text() -> Text {
    Text::read(&SOURCES, &names())
}

/// Each way to ask for a message to `to`; how many found somebody.
fn try_all(array: &Array, text: &Text, to: u64) -> usize {
    let calls = TAGS.into_iter().flat_map(|tag| [to, !0, 0].map(|from| Call { to, from, tag }));
    let found = calls.filter(|call| array.tries(text, ENTRY, *call)).count();
    // A token of a procedure call is a word of the user's, too; the shadows have no records here.
    assert!(!array.tries(text, "baton_lrpc", Call { to, from: 0, tag: 0 }));
    found
}

/// All numbers, with what can stand above them and below.
#[test]
fn no_number_finds_somebody_else() {
    with_each(None, |array| {
        let text = text();
        let mut lows: Vec<u64> = array.ids().iter().map(|id| id.0 & 0xFFFF_FFFF).collect();
        lows.extend([0, 1, 0xFFFF_FFFF, 0xFFFF_FFC0, 0x8000_0000]);
        lows.sort_unstable();
        lows.dedup();
        let mut found = 0;
        for number in 0..NUMBERS {
            for above in [0, 1, 0x4000, 0x7FFF] {
                for low in &lows {
                    let to = (above << 17 | number) << 32 | low;
                    let finds = array.tries(&text, ENTRY, Call { to, from: to, tag: 1 });
                    assert_eq!(finds, array.is_awaited(to), "{to:#x}");
                    found += usize::from(finds);
                }
            }
        }
        assert!(found > 0, "it finds whom it is to find");
    });
}

/// Whatever leads to a code or an id by what stands in one of the words, and what else is no thread's.
#[test]
fn no_word_that_is_made_for_it_finds_somebody_else() {
    with_each(None, |array| {
        let text = text();
        let found: usize =
            array.interesting().into_iter().map(|to| try_all(array, &text, to)).sum();
        assert!(found > 0, "it finds whom it is to find");
    });
}

/// Any word.
#[test]
fn no_random_word_finds_somebody_else() {
    with_each(None, |array| {
        let (text, mut random) = (text(), Random::seeded(1));
        let pool = array.interesting();
        for _ in 0..20_000 {
            let (one, two) = (random.next(), pool[random.below(pool.len() as u64) as usize]);
            let mixed = two ^ 1 << random.below(64);
            for to in [one, one & 0xFFFF_FFFF | two & !0xFFFF_FFFF, mixed] {
                let _ = try_all(array, &text, to);
            }
        }
    });
}

/// Somebody has to be at the numbers that are codes of waits; at those of the others the partner is asked for, too.
#[test]
fn somebody_has_to_be_where_a_number_is_a_code() {
    for number in (0..SYSTEM_BASE).filter(|it| rendezvous::is_code_of_a_wait(*it)) {
        let wrong = alone(move || {
            crafted(false);
            let own = [spare_block(), spare_block()];
            let (array, text) = (Array::new(own, &[1, 2, 3], Some(number)), text());
            let _ = try_all(&array, &text, u64::from(number) << 32);
        });
        let finds = wrong.is_some_and(|wrong| wrong.ends_with("finds the null page"));
        assert_eq!(finds, [0, 8, 10, 12, 14].contains(&number), "number {number}");
    }
}

/// What is wrong in the text is found.
#[test]
fn a_text_that_compares_less_finds_somebody_else() {
    let changes = [
        ("    and     ebp, {TCB_MASK}\n", "", "is outside of the array"),
        ("    xor     rcx, [rbp + {TCB_FIRST} + {RENDEZVOUS}]\n", "    xor ecx, ecx\n", "finds "),
        (
            "    cmp     rcx, [rdi + {ID}]                   // closed wait: for us?\n",
            "    cmp     ecx, ecx\n",
            "finds ",
        ),
        (
            "    ja      baton_ipc_complete\n    mov     r11, [rdi + {ID}]\n",
            "    mov     r11, [rdi + {ID}]\n",
            "finds ",
        ),
        ("    cmp     rcx, {DEAD_OPEN}\n", "    cmp     ecx, ecx\n", "finds "),
    ];
    for (from, to, says) in changes {
        assert!(SOURCES.iter().any(|source| source.contains(from)), "{from}");
        let finds = [false, true].into_iter().any(|runs_with_vector| {
            let wrong = alone(move || {
                crafted(runs_with_vector);
                let sources = SOURCES.map(|source| source.replace(from, to));
                let text = Text::read(&sources.each_ref().map(String::as_str), &names());
                let array = Array::new([spare_block(), spare_block()], &[1, 2, 3], None);
                for to in array.interesting() {
                    let _ = try_all(&array, &text, to);
                }
            });
            wrong.is_some_and(|wrong| wrong.contains(says))
        });
        assert!(finds, "{from}");
    }
}
