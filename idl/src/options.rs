//! What an interface's author may decide beside the interface: the TOML file next to a WIT file.
//!
//! ```toml
//! [console.write]              # interface and function, or interface and record
//! bounds = { text = 480 }      # bytes of a text, elements of a list; `result` is the result's;
//!                              # [16, 32] of a list of texts: 16 of them, 32 bytes each
//! one-way = true               # no answer
//! later = true                 # the server may keep the answer
//! send-us = 500000             # how long the client waits until the server takes the request,
//! answer-us = 2000000          # and for the answer
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Largest text, in bytes, and longest list, in elements, unless the TOML file says otherwise.
const DEFAULT_BYTES: usize = 4096;
const DEFAULT_ELEMENTS: usize = 64;
/// The same of those inside a list.
const DEFAULT_INNER_BYTES: usize = 64;
const DEFAULT_INNER_ELEMENTS: usize = 16;

/// All that the files of a folder say, by interface and item.
#[derive(Debug, Default)]
pub struct Options {
    items: BTreeMap<String, BTreeMap<String, Item>>,
    /// What was asked for: the rest is a mistake.
    used: RefCell<BTreeSet<(String, String, String)>>,
}

/// One table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Item {
    /// Largest lengths by parameter or field.
    #[serde(default)]
    bounds: BTreeMap<String, Bound>,
    /// No answer.
    #[serde(default)]
    pub one_way: bool,
    /// The answer may come later.
    #[serde(default)]
    pub later: bool,
    /// Until the server takes the request.
    pub send_us: Option<u64>,
    /// For the answer.
    pub answer_us: Option<u64>,
}

/// How long a text or list may be; of a list of lists, from the outermost on.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Bound {
    Outermost(usize),
    Each(Vec<usize>),
}

impl Options {
    /// Adds what the file says, if it is there.
    ///
    /// # Errors
    /// When it is no such file.
    pub fn read(&mut self, file: &Path) -> Result<()> {
        if !file.is_file() {
            return Ok(());
        }
        let shown = file.display();
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
        let items: BTreeMap<String, BTreeMap<String, Item>> =
            toml::from_str(&text).with_context(|| format!("{shown} is no table of options"))?;
        for (interface, items) in items {
            self.items.entry(interface).or_default().extend(items);
        }
        Ok(())
    }

    /// What is said of a function.
    pub fn item(&self, interface: &str, name: &str) -> Item {
        self.note(interface, name, "");
        self.find(interface, name).cloned().unwrap_or_default()
    }

    fn find(&self, interface: &str, name: &str) -> Option<&Item> {
        self.items.get(interface)?.get(name)
    }

    fn note(&self, interface: &str, name: &str, part: &str) {
        self.used.borrow_mut().insert((interface.to_owned(), name.to_owned(), part.to_owned()));
    }

    /// Notes that there is such a place: options for it are no mistake.
    pub fn see(&self, place: &Place<'_>) {
        self.note(place.interface, place.item, place.part);
    }

    /// The bound of a text.
    pub fn bytes(&self, place: &Place<'_>) -> usize {
        let otherwise = if place.depth == 0 { DEFAULT_BYTES } else { DEFAULT_INNER_BYTES };
        self.bound(place).unwrap_or(otherwise)
    }

    /// The bound of a list.
    pub fn elements(&self, place: &Place<'_>) -> usize {
        let otherwise = if place.depth == 0 { DEFAULT_ELEMENTS } else { DEFAULT_INNER_ELEMENTS };
        self.bound(place).unwrap_or(otherwise)
    }

    fn bound(&self, place: &Place<'_>) -> Option<usize> {
        match self.find(place.interface, place.item)?.bounds.get(place.part)? {
            Bound::Outermost(bound) => Some(*bound).filter(|_| place.depth == 0),
            Bound::Each(bounds) => bounds.get(place.depth).copied(),
        }
    }

    /// Looks for tables and bounds that nothing asked for.
    ///
    /// # Errors
    /// A sentence about the first.
    pub fn complain(&self) -> Result<()> {
        let used = self.used.borrow();
        for (interface, items) in &self.items {
            for (name, item) in items {
                let parts = item.bounds.keys().cloned();
                if let Some(part) = parts
                    .chain([String::new()])
                    .filter(|part| !part.is_empty() || item.bounds.is_empty())
                    .find(|part| !used.contains(&(interface.clone(), name.clone(), part.clone())))
                {
                    let what =
                        if part.is_empty() { String::new() } else { format!(" bound of `{part}`") };
                    bail!(
                        "there are options for `{interface}.{name}`,{what} but the interface has nothing \
                         of that name that takes them"
                    );
                }
            }
        }
        Ok(())
    }
}

/// A parameter or field that may need a bound.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its interface.
    pub interface: &'a str,
    /// Its function or record.
    pub item: &'a str,
    /// Its name.
    pub part: &'a str,
    /// In how many lists it is.
    pub depth: usize,
}

impl<'a> Place<'a> {
    /// What an item of an interface has.
    pub const fn of(interface: &'a str, item: &'a str) -> Self {
        Self { interface, item, part: "", depth: 0 }
    }

    /// One of its parts.
    pub const fn at(self, part: &'a str) -> Self {
        Self { part, ..self }
    }

    /// An element's place.
    pub const fn element(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}
