//! What a suite is: files that all its trials need, the trials, and how what they print is read.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use super::mark::Marks;
use super::{Options, busybox, cpython, libc_test, ltp, sqlite, stress};
use crate::linux::cases::Case;
use crate::linux::cpio::Archive;
use crate::linux::guest::Ran;
use crate::workspace::Workspace;

/// The suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// The Linux Test Project's system calls (--source)
    Ltp,
    /// Busybox's own tests
    Busybox,
    /// Python's `-m test`, a trial for each module
    Cpython,
    /// stress-ng, a trial for each stressor
    StressNg,
    /// musl's libc-test, a trial for each program (--source)
    LibcTest,
    /// SQLite's `veryquick`, a trial for each file
    Sqlite,
}

impl Name {
    /// As it is typed.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ltp => "ltp",
            Self::Busybox => "busybox",
            Self::Cpython => "cpython",
            Self::StressNg => "stress-ng",
            Self::LibcTest => "libc-test",
            Self::Sqlite => "sqlite",
        }
    }
}

/// One thing to run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its name, its line and its time.
    pub case: Case,
    /// What it needs beside what all need: path in the archive, file on this machine.
    pub files: Vec<(String, PathBuf)>,
}

impl Trial {
    /// A trial that needs no files of its own.
    #[must_use]
    pub fn new(name: &str, run: String, seconds: u64) -> Self {
        let name = name.to_owned();
        let (short, cpus, counted, masks) = (false, 1, false, Vec::new());
        let case = Case { name, run, seconds, short, cpus, counted, masks };
        Self { case, files: Vec::new() }
    }

    /// The same in a machine of its kind whose time goes by what it executes.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.case.counted = true;
        self
    }
}

/// A suite, ready to be run.
pub struct Suite {
    /// Which.
    pub name: Name,
    /// What all trials need, on top of the archive of the tests.
    pub shared: Archive,
    /// In the order in which they are run.
    pub trials: Vec<Trial>,
    /// Most trials of one machine.
    pub batch: usize,
    /// Memory of a machine, MiB.
    pub memory: u32,
    /// What a trial that came to its end has to tell.
    pub read: fn(&str, &Ran, i32) -> Marks,
}

impl Suite {
    /// Fetches what is missing.
    ///
    /// # Errors
    /// When packages or sources cannot be had.
    pub fn get(workspace: &Workspace, options: &Options) -> Result<Self> {
        match options.suite {
            Name::Ltp => {
                let source = options.source.as_deref();
                let missing = "the Linux Test Project is no package of Debian: \
                               say with --source DIR where its built source is";
                ltp::suite(source.context(missing)?)
            }
            Name::LibcTest => {
                let source = options.source.as_deref();
                let missing = "libc-test is no package of Debian: say with --source DIR where \
                               its built source is";
                libc_test::suite(workspace, source.context(missing)?)
            }
            name if options.source.is_some() => {
                bail!("{} comes from Debian's archive; leave out --source", name.word())
            }
            Name::Busybox => busybox::suite(workspace),
            Name::Cpython => cpython::suite(workspace),
            Name::StressNg => stress::suite(workspace, options.seconds),
            Name::Sqlite => sqlite::suite(workspace),
        }
    }
}

/// One of several parts of about the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    which: usize,
    of: usize,
}

impl Shard {
    /// Leaves only this part: neighbours stay together, for they share files.
    pub fn keep<T>(self, list: &mut Vec<T>) {
        let begin = list.len() * (self.which - 1) / self.of;
        let end = list.len() * self.which / self.of;
        list.truncate(end);
        list.drain(..begin);
    }
}

impl FromStr for Shard {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('/').and_then(|(which, of)| {
            Some(Self { which: which.parse().ok()?, of: of.parse().ok()? })
        });
        let shard = parts.context("a part is written as 2/5, the second of five")?;
        ensure!(
            (1..=shard.of).contains(&shard.which),
            "there is no part {} of {}; the first is 1",
            shard.which,
            shard.of
        );
        Ok(shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_of_it_and_nothing_twice() {
        let mut together = Vec::new();
        for which in 1..=7 {
            let mut list: Vec<u32> = (0..100).collect();
            format!("{which}/7").parse::<Shard>().unwrap().keep(&mut list);
            assert!((14..=15).contains(&list.len()));
            together.extend(list);
        }
        assert_eq!(together, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn parts_that_are_none_are_refused() {
        for text in ["", "3", "0/4", "5/4", "x/2", "1/0"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
