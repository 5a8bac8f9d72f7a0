//! The kernel's rooms, from the bottom to the top, and the arrows between them: a room that
//! names another one leans on it, and should find it below. Each arrow that runs up is listed
//! here with its reason; a new one, or a reason that nobody needs any more, is an error.

mod paths;

use std::collections::BTreeMap;

use proc_macro2::TokenStream;

use paths::Named;

/// Where the rooms are: a file or a folder each.
const ROOMS_FOLDER: &str = "kernel/src/";

/// The rooms, each above those that it may lean on.
const ROOMS: [&str; 25] = [
    "techniques",
    "between",
    "boot",
    "arch",
    "kip",
    "ring",
    "mem",
    "usermem",
    "thread",
    "space",
    "sched",
    "local",
    "elsewhere",
    "lrpc",
    "ipc",
    "irq",
    "unmap",
    "destruction",
    "control",
    "check",
    "inspect",
    "call",
    "resume",
    "start",
    "entry",
];

/// Where the processors are, a room of its own.
const MACHINE: &str = "arch";
/// Rooms of which a processor has a half: a file or a folder of this name in the processor's, and the name by which
/// the kernel outside `arch` knows the chosen processor's.
const HALVES: [&str; 5] = ["mem", "thread", "elsewhere", "check", "entry"];
/// Macros are known at the crate's root, wherever they are.
const MACROS: [(&str, &str); 1] = [("kprintln", MACHINE)];
/// Arrows that run up, with the reason. None does (docs/decisions/0135-a-processor-has-a-half-of-a-room.md).
const UPWARD: [(&str, &str, &str); 0] = [];

/// Arrows by the files they begin in.
#[derive(Debug, Default)]
pub struct Arrows(BTreeMap<(String, String), Vec<String>>);

impl Arrows {
    /// Adds what the file `shown` names, if it is one of the kernel's.
    pub fn add(&mut self, shown: &str, tokens: TokenStream) {
        let Some(file) = shown.strip_prefix(ROOMS_FOLDER) else { return };
        let module = module(file);
        let own = room(&module);
        if own == "lib" || own == "main" {
            return;
        }
        let named = paths::read(tokens, &module);
        let others = named.iter().filter(|named| !is_passed_on(named)).map(|it| room(&it.path));
        for other in others.filter(|other| *other != own && !other.is_empty()) {
            let files = self.0.entry((own.to_owned(), other.to_owned())).or_default();
            if files.last().is_none_or(|last| last != shown) {
                files.push(shown.to_owned());
            }
        }
    }

    /// How many arrows there are between rooms, and how many of them run up.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        let rooms = || self.0.keys().filter(|(_, to)| height(to).is_some());
        (rooms().count(), rooms().filter(|(from, to)| height(from) < height(to)).count())
    }

    /// A sentence for each arrow that should not be, and for each reason without an arrow.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        self.broken_but(&UPWARD)
    }

    /// The same if `upward` are those that may run up.
    fn broken_but(&self, upward: &[(&str, &str, &str)]) -> Vec<String> {
        let mut broken = Vec::new();
        for ((from, to), files) in &self.0 {
            let listed = upward.iter().any(|(a, b, _)| a == from && b == to);
            match (height(from), height(to)) {
                (_, None) => broken.push(format!(
                    "{}: the lint knows no room `{to}`; the crate's root passes nothing on",
                    files.join(", ")
                )),
                (None, _) => broken.push(format!("{}: the lint has no place for the room `{from}`", files[0])),
                (Some(own), Some(other)) if own < other && !listed => broken.push(format!(
                    "{}: `{from}` names `{to}`, a room above it; turn the arrow round, or list it with its reason",
                    files.join(", ")
                )),
                _ => {}
            }
        }
        if !self.0.is_empty() {
            let gone = upward.iter().filter(|(a, b, _)| {
                height(a) >= height(b) || !self.0.contains_key(&((*a).to_owned(), (*b).to_owned()))
            });
            broken.extend(gone.map(|(a, b, _)| {
                format!("`{a}` names `{b}` no more, or below it: take the reason out of the list")
            }));
        }
        broken
    }
}

/// How far up a room is.
fn height(room: &str) -> Option<usize> {
    ROOMS.iter().position(|known| *known == room)
}

/// The path of the module that a file below `kernel/src` is.
fn module(file: &str) -> String {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    path.strip_suffix("/mod").unwrap_or(path).to_owned()
}

/// The room of what has this path.
fn room(path: &str) -> &str {
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or(path);
    // `arch/entry` and `arch/x86_64/entry`.
    let half = parts.take(2).find(|part| HALVES.contains(part)).filter(|_| first == MACHINE);
    let of_macro = MACROS.iter().find(|(name, _)| *name == first).map(|(_, room)| *room);
    half.or(of_macro).unwrap_or(first)
}

/// Whether an import passes on a processor's half of a room under a name by which it is that: whoever uses the name
/// is found.
fn is_passed_on(named: &Named) -> bool {
    named.imported_as.as_ref().is_some_and(|name| {
        let last = name.rsplit('/').next().unwrap_or(name);
        HALVES.contains(&last) && room(name) == last && room(&named.path) == last
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(files: &[(&str, &str)]) -> Arrows {
        let mut arrows = Arrows::default();
        for (file, text) in files {
            arrows.add(file, text.parse().unwrap());
        }
        arrows
    }

    #[test]
    fn names_are_found_in_groups_and_expressions() {
        let text =
            "use crate::{mem::{self, Step}, irq, sched::pick}; fn f() { g(crate::unmap::x) }";
        let found = arrows(&[("kernel/src/call.rs", text)]);
        let to: Vec<&str> = found.0.keys().map(|(_, to)| to.as_str()).collect();
        assert_eq!(to, ["irq", "mem", "sched", "unmap"]);
        assert_eq!(found.count(), (4, 0));
    }

    #[test]
    fn a_folder_can_be_a_room_of_its_own() {
        let entry = arrows(&[(
            "kernel/src/arch/x86_64/entry/trap.rs",
            "use super::switch; use super::super::percpu::cpu; use crate::arch::x86_64::apic;",
        )]);
        let names: Vec<_> = entry.0.keys().map(|(from, to)| format!("{from} {to}")).collect();
        assert_eq!(names, ["entry arch"]);
        for (half, text, arrow) in [
            ("mem/tlb.rs", "crate::thread::X", 1),
            ("mem/tlb.rs", "crate::arch::thread::X", 1),
            ("mem/tlb.rs", "super::super::elsewhere::seats", 1),
            ("thread/tcbs.rs", "use crate::mem::X; use super::super::mem::root;", 0),
            ("thread.rs", "crate::elsewhere::visits", 1),
            ("percpu.rs", "pub use super::thread::current;", 1),
            ("mod.rs", "pub mod thread; pub use thread::TcbRef;", 1),
        ] {
            let found = arrows(&[(&format!("kernel/src/arch/x86_64/{half}"), text)]);
            assert_eq!(found.count().1, arrow, "{half}: {text}");
        }
        let machine = "use super::{apic, entry::{self as e, trap}}; mod tests { use super::*; }";
        for (text, count) in [(machine, 1), ("crate::arch::entry::X", 1), ("super::entries::X", 0)]
        {
            let found = arrows(&[("kernel/src/arch/x86_64/tlb.rs", text)]);
            assert_eq!(found.count(), (count, count), "{text}");
        }
    }

    #[test]
    fn nothing_is_hidden_by_how_it_is_named() {
        let chosen = "mod x86_64; use x86_64 as processor; pub use processor::entry;";
        for (text, count) in [
            (chosen, 0),
            ("mod x86_64; use x86_64 as processor; pub use processor::entry::Trap;", 1),
            ("mod x86_64; pub use x86_64::entry as ways; fn f() { ways::in_() }", 1),
            ("mod x86_64; pub use self::x86_64::entry::*;", 1),
            ("use crate::arch; fn f() { arch::entry::in_() }", 1),
            ("use super::arch::{self as machine, clock}; fn f() { machine::entry::in_() }", 1),
            ("use super::clock::*; fn f() { entry::in_() }", 1),
            ("use core::mem as entry; fn f() { entry::take(); core::entry::x() }", 0),
            ("fn f() { <crate::arch::x86_64::entry::T as U>::entry::<V>() }", 1),
            ("struct S { entry: u8 } fn f(s: S) { s.entry; entry(); E::entry::x() }", 0),
            ("mod tests { use super::*; fn f() { processor::entry::g() } } use x::y as z;", 0),
        ] {
            let found = arrows(&[("kernel/src/arch/mod.rs", text)]);
            assert_eq!(found.count().1, count, "{text}: {found:?}");
        }
    }

    #[test]
    fn an_arrow_that_runs_up_needs_a_reason() {
        let found = arrows(&[("kernel/src/ring.rs", "use crate::sched;")]).broken();
        assert!(
            found[0].starts_with("kernel/src/ring.rs: `ring` names `sched`, a room above it"),
            "{found:?}"
        );
        let listed = [("arch", "mem", "a reason")];
        let found = arrows(&[("kernel/src/arch/clock.rs", "crate::mem::X")]);
        assert!(found.broken_but(&listed).is_empty() && found.broken().len() == 1);
        let stale = arrows(&[("kernel/src/call.rs", "crate::mem::X")]).broken_but(&listed);
        assert!(stale[0].starts_with("`arch` names `mem` no more"), "{stale:?}");
        let new = arrows(&[("kernel/src/attic.rs", "crate::mem::X")]).broken();
        assert!(new[0].contains("no place for the room `attic`"), "{new:?}");
        let root = arrows(&[("kernel/src/call.rs", "use crate::{Passed, kprintln};")]).broken();
        assert!(root[0].contains("no room `Passed`"), "{root:?}");
        assert!(arrows(&[("xtask/src/main.rs", "crate::mem::X")]).broken().is_empty());
    }
}
