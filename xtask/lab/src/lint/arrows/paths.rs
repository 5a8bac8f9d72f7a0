//! The paths that a module names, from the crate's root. A path begins with `crate`, `self` or `super`, with a module
//! that is declared there, or with a name that an import has given. What a glob brings is not known: a beginning
//! that nobody has declared is taken for a path from the crate's root if more follows, so that the name of a room
//! counts as that room.

use std::collections::BTreeMap;
use std::iter::Peekable;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

type Tokens = Peekable<IntoIter>;

/// The names that a module has for others: where they lead, `None` for out of the crate.
type Names = BTreeMap<String, Option<String>>;

/// A path that is named.
#[derive(Debug)]
pub struct Named {
    pub path: String,
    /// The path of the name that an import gives it.
    pub imported_as: Option<String>,
}

/// What the module `own` names in `tokens`.
pub fn read(tokens: TokenStream, own: &str) -> Vec<Named> {
    let mut named = Vec::new();
    Module::new(&tokens, own, Names::new()).read(tokens, &mut named);
    named
}

struct Module<'a> {
    own: &'a str,
    names: Names,
}

/// A leaf of an import.
struct Leaf {
    path: Option<String>,
    name: Option<String>,
}

impl<'a> Module<'a> {
    /// The module `own`, in which `around` may be known, too.
    fn new(tokens: &TokenStream, own: &'a str, around: Names) -> Self {
        let mut module = Self { own, names: around };
        // An import may begin with a name that a later one gives.
        for _ in 0..2 {
            module.declare(tokens.clone());
        }
        module
    }

    /// Learns the names that `tokens` declare, those of modules in them not.
    fn declare(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "mod" => {
                    if let Some(TokenTree::Ident(name)) = tokens.next_if(is_word) {
                        self.names
                            .insert(name.to_string(), Some(join(self.own, &name.to_string())));
                        tokens.next_if(is_braces);
                    }
                }
                TokenTree::Ident(word) if word == "use" => {
                    for Leaf { path, name } in self.import(&mut tokens) {
                        name.into_iter()
                            .for_each(|name| drop(self.names.insert(name, path.clone())));
                    }
                }
                TokenTree::Group(group) => self.declare(group.stream()),
                _ => {}
            }
        }
    }

    /// Adds what `tokens` name.
    fn read(&self, tokens: TokenStream, named: &mut Vec<Named>) {
        let mut tokens = tokens.into_iter().peekable();
        let mut colons = 0;
        while let Some(token) = tokens.next() {
            let is_inner = colons == 2;
            colons = if is_colon(&token) { colons + 1 } else { 0 };
            match token {
                TokenTree::Ident(word) if word == "mod" => {
                    let Some(TokenTree::Ident(name)) = tokens.next_if(is_word) else { continue };
                    if let Some(TokenTree::Group(inner)) = tokens.next_if(is_braces) {
                        let (own, inner) = (join(self.own, &name.to_string()), inner.stream());
                        Module::new(&inner, &own, self.names.clone()).read(inner, named);
                    }
                }
                TokenTree::Ident(word) if word == "use" => {
                    named.extend(self.import(&mut tokens).into_iter().filter_map(|leaf| {
                        let imported_as = leaf.name.map(|name| join(self.own, &name));
                        leaf.path.map(|path| Named { path, imported_as })
                    }));
                }
                TokenTree::Ident(word) => {
                    let start = self.start(&word.to_string()).filter(|_| !is_inner);
                    let (more, end) = segments(&mut tokens);
                    let is_keyword = ["crate", "super"].contains(&word.to_string().as_str());
                    if let Some(start) = start.filter(|_| !more.is_empty() || is_keyword) {
                        let path = more.iter().fold(start, |path, part| step(&path, part));
                        named.push(Named { path, imported_as: None });
                    }
                    colons = if end { 2 } else { 0 };
                }
                TokenTree::Group(group) => self.read(group.stream(), named),
                _ => {}
            }
        }
    }

    /// Where a path leads that begins with `word`; `None`: out of the crate.
    fn start(&self, word: &str) -> Option<String> {
        match word {
            "crate" => Some(String::new()),
            "self" | "super" => Some(step(self.own, word)),
            _ => match self.names.get(word) {
                Some(known) => known.clone(),
                None if super::height(word).is_some() => Some(word.to_owned()),
                None => None,
            },
        }
    }

    /// The leaves of the import that follows, up to its end.
    fn import(&self, tokens: &mut Tokens) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        tokens.next_if(is_colon).and_then(|_| tokens.next_if(is_colon));
        let first = match tokens.next_if(is_word) {
            Some(TokenTree::Ident(first)) => first.to_string(),
            _ => {
                if let Some(TokenTree::Group(group)) = tokens.next_if(is_braces) {
                    self.parts(group.stream(), &mut leaves);
                }
                return leaves;
            }
        };
        tree(self.start(&first), &first, tokens, &mut leaves);
        leaves
    }

    /// The same of each part of a group with nothing before it.
    fn parts(&self, group: TokenStream, leaves: &mut Vec<Leaf>) {
        let mut tokens = group.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if let TokenTree::Ident(first) = token {
                let first = first.to_string();
                tree(self.start(&first), &first, &mut tokens, leaves);
            }
        }
    }
}

/// The leaves of the tree whose part with the name `last` leads to `path`, and goes on in `tokens`.
fn tree(mut path: Option<String>, last: &str, tokens: &mut Tokens, leaves: &mut Vec<Leaf>) {
    let mut last = last.to_owned();
    while colons(tokens) {
        match tokens.next() {
            Some(TokenTree::Ident(part)) => {
                let part = part.to_string();
                path = path.map(|path| step(&path, &part));
                if part != "self" {
                    last = part;
                }
            }
            Some(TokenTree::Group(group)) => {
                let mut tokens = group.stream().into_iter().peekable();
                while let Some(token) = tokens.next() {
                    match token {
                        TokenTree::Ident(part) => {
                            let part = part.to_string();
                            let name = if part == "self" { &last } else { &part };
                            let path = path.as_ref().map(|path| step(path, &part));
                            tree(path, name, &mut tokens, leaves);
                        }
                        TokenTree::Punct(star) if star.as_char() == '*' => {
                            leaves.push(Leaf { path: path.clone(), name: None });
                        }
                        _ => {}
                    }
                }
                return;
            }
            _ => return leaves.push(Leaf { path, name: None }), // all of it
        }
    }
    if tokens.next_if(|token| matches!(token, TokenTree::Ident(word) if word == "as")).is_some() {
        last = tokens.next().map_or(last, |name| name.to_string());
    }
    leaves.push(Leaf { path, name: Some(last) });
}

/// The parts of a path that follow its beginning, and whether more follows that is none: generic arguments.
fn segments(tokens: &mut Tokens) -> (Vec<String>, bool) {
    let mut parts = Vec::new();
    while colons(tokens) {
        match tokens.next_if(is_word) {
            Some(part) => parts.push(part.to_string()),
            None => return (parts, true),
        }
    }
    (parts, false)
}

/// Takes two colons, if they follow.
fn colons(tokens: &mut Tokens) -> bool {
    let first = tokens.next_if(|token| {
        matches!(token, TokenTree::Punct(it) if it.as_char() == ':' && it.spacing() == proc_macro2::Spacing::Joint)
    });
    first.is_some() && tokens.next_if(is_colon).is_some()
}

/// The path `path` and one part more.
fn step(path: &str, part: &str) -> String {
    match part {
        "self" => path.to_owned(),
        "super" => path.rsplit_once('/').map_or("", |(above, _)| above).to_owned(),
        _ => join(path, part),
    }
}

fn join(path: &str, part: &str) -> String {
    if path.is_empty() { part.to_owned() } else { format!("{path}/{part}") }
}

fn is_word(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(_))
}

fn is_braces(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
}
