//! The host tool's heavy half: the verbs that test, measure, fuzz and check. It has a
//! binary of its own, so that a first `./baton run` compiles none of it.
//!
//! [`cli`] knows the whole command line, the other half's verbs included: help,
//! completion and manual page are made from it ([`manual`]).
#![forbid(unsafe_code)]

pub mod bench;
pub mod cli;
pub mod doc;
#[cfg(test)]
mod documents;
pub mod fuzz;
pub mod idl;
pub mod lint;
pub mod linux;
pub mod manual;
pub mod new;
pub mod sdk;
pub mod techniques;
pub mod test;
pub mod trial;
pub mod variants;

pub use xtask::{build, compose, debug, image, iso, machine, session, ui, workspace};

/// What [`session::Session::wait_for`] looks for: the end of the pattern's first match.
fn end_of(pattern: &regex::Regex) -> impl Fn(&str) -> Option<usize> {
    |text| pattern.find(text).map(|found| found.end())
}
