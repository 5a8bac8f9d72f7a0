//! The kernel's rooms, from the bottom to the top, and the arrows between them: a room that
//! names another one leans on it, and should find it below. Each arrow that runs up is listed
//! here with its reason; a new one, or a reason that nobody needs any more, is an error.

use std::collections::BTreeMap;
use std::iter::Peekable;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{TokenStream, TokenTree};

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

/// Folders that are other rooms than the folder in which they are. Of those of a processor the kernel outside
/// `arch` knows the first name.
const PLACES: [(&str, &str); 4] = [
    ("arch/entry", "entry"),
    ("arch/x86_64/entry", "entry"),
    ("arch/host/entry", "entry"),
    ("arch/riscv64/entry", "entry"),
];
/// Arrows that run up, with the reason (docs/decisions/0121-what-is-above-what.md).
const UPWARD: [(&str, &str, &str); 3] = [
    ("arch", "mem", "tables and tcbs lie in frames, for which a quota pays"),
    (
        "arch",
        "thread",
        "a `TcbRef` is an address of the processor's array: it knows the tcb's size and id",
    ),
    ("arch", "elsewhere", "who uses tables elsewhere is stopped before they change"),
];

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
        let mut named = Vec::new();
        find(tokens, &module, &mut named);
        for other in named.iter().map(|path| room(path)).filter(|other| *other != own) {
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
        let mut broken = Vec::new();
        for ((from, to), files) in &self.0 {
            let listed = UPWARD.iter().any(|(a, b, _)| a == from && b == to);
            match (height(from), height(to)) {
                (None, _) => broken.push(format!("{}: the lint has no place for the room `{from}`", files[0])),
                (Some(own), Some(other)) if own < other && !listed => broken.push(format!(
                    "{}: `{from}` names `{to}`, a room above it; turn the arrow round, or list it with its reason",
                    files.join(", ")
                )),
                _ => {}
            }
        }
        if !self.0.is_empty() {
            let gone = UPWARD.iter().filter(|(a, b, _)| {
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
    let is_in = |place: &str| {
        path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let placed = PLACES.iter().find(|(place, _)| is_in(place)).map(|(_, room)| *room);
    placed.unwrap_or_else(|| path.split('/').next().unwrap_or(path))
}

/// The paths behind every `crate` and `super` in `tokens` of the module `own`.
fn find(tokens: TokenStream, own: &str, named: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    let mut declared = None;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                let inner = declared.take().map(|name| format!("{own}/{name}"));
                find(group.stream(), inner.as_deref().unwrap_or(own), named);
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => declared = None,
            TokenTree::Ident(word) if word == "mod" => {
                declared = tokens.peek().map(ToString::to_string);
            }
            TokenTree::Ident(word) => {
                let start = match word.to_string().as_str() {
                    "crate" => Some(""),
                    "super" => Some(above(own)),
                    _ => None,
                };
                if let Some(start) = start {
                    follow(start, &mut tokens, named);
                }
            }
            _ => {}
        }
    }
}

/// The module around `path`.
fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// The paths that begin with `start` and go on in `tokens`, for each part of a group one.
fn follow(start: &str, tokens: &mut Peekable<IntoIter>, named: &mut Vec<String>) {
    let mut path = start.to_owned();
    loop {
        let colons = [tokens.next_if(is_colon), tokens.next_if(is_colon)];
        if !colons.iter().all(Option::is_some) {
            break;
        }
        match tokens.next_if(|token| !matches!(token, TokenTree::Punct(_))) {
            Some(TokenTree::Ident(name)) if name == "super" => path = above(&path).to_owned(),
            Some(TokenTree::Ident(name)) if name == "self" => {}
            Some(TokenTree::Ident(name)) if path.is_empty() => path = name.to_string(),
            Some(TokenTree::Ident(name)) => path = format!("{path}/{name}"),
            Some(TokenTree::Group(group)) => return parts(&path, group.stream(), named),
            _ => break,
        }
    }
    named.push(path);
}

/// The same for each part of a group of imports.
fn parts(start: &str, group: TokenStream, named: &mut Vec<String>) {
    let mut tokens = group.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) if name == "self" => follow(start, &mut tokens, named),
            TokenTree::Ident(name) => {
                let path =
                    if start.is_empty() { name.to_string() } else { format!("{start}/{name}") };
                follow(&path, &mut tokens, named);
                // `as` and another name.
                while tokens.next_if(|token| !is_comma(token)).is_some() {}
            }
            _ => {}
        }
    }
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')
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
        let machine = "use super::{apic, entry::{self as e, trap}}; mod tests { use super::*; }";
        for (text, count) in [(machine, 1), ("crate::arch::entry::X", 1), ("super::entries::X", 0)]
        {
            let found = arrows(&[("kernel/src/arch/x86_64/tlb.rs", text)]);
            assert_eq!(found.count(), (count, count), "{text}");
        }
    }

    #[test]
    fn an_arrow_that_runs_up_needs_a_reason() {
        let found = arrows(&[("kernel/src/ring.rs", "use crate::sched;")]).broken();
        assert!(
            found[0].starts_with("kernel/src/ring.rs: `ring` names `sched`, a room above it"),
            "{found:?}"
        );
        let listed = arrows(&[("kernel/src/arch/clock.rs", "crate::mem::X")]).broken();
        assert!(!listed.iter().any(|line| line.starts_with("kernel/src")), "{listed:?}");
        let stale = arrows(&[("kernel/src/call.rs", "crate::mem::X")]).broken();
        let gone = |line: &String| line.starts_with("`arch` names `mem` no more");
        assert!(stale.iter().any(gone), "{stale:?}");
        let new = arrows(&[("kernel/src/attic.rs", "crate::mem::X")]).broken();
        assert!(new[0].contains("no place for the room `attic`"), "{new:?}");
        assert!(arrows(&[("xtask/src/main.rs", "crate::mem::X")]).broken().is_empty());
    }
}
