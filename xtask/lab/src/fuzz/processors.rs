//! The machine of a run: how many processors, in turns or at once, and which of a system's tasks
//! are on which.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::machine::{self, MAX_CPUS};
use crate::ui;

/// What real time is stretched by: the emulator's processors may have to wait for those of the
/// machine at hand.
const SLACK: u64 = 100;

/// How many processors.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    /// Processors of the machine; hostile tasks and their victims are spread over them
    #[arg(long, value_name = "N", value_parser = ui::number::<u32>(1, MAX_CPUS as u64), default_value_t = 1)]
    pub cpus: u32,
    /// Let them run at once instead of in turns: such a run does not repeat
    #[arg(long)]
    pub parallel: bool,
}

/// One, whose runs repeat.
impl Default for Processors {
    fn default() -> Self {
        Self { cpus: 1, parallel: false }
    }
}

impl Processors {
    /// The machine.
    #[must_use]
    pub fn machine(&self) -> machine::Options {
        let options = machine::Options { icount: !self.parallel, ..machine::Options::default() };
        machine::Options { cpus: Some(self.cpus), ..options }
    }

    /// By how much the guest stretches the times in which something must happen.
    #[must_use]
    pub fn slack(&self) -> u64 {
        if self.parallel { SLACK } else { 1 }
    }

    /// The words that ask for it.
    #[must_use]
    pub fn words(&self) -> String {
        let parallel = if self.parallel { " --parallel" } else { "" };
        match self.cpus {
            1 => parallel.to_owned(),
            cpus => format!(" --cpus {cpus}{parallel}"),
        }
    }

    /// What is said of repeating a run.
    #[must_use]
    pub fn repeats(&self) -> &'static str {
        if self.parallel { "The run was begun" } else { "The run repeats to the instruction" }
    }

    /// The system at `path`, with its tasks of the program `image` spread over the processors, but
    /// for the one that controls it.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn spread(&self, path: PathBuf, image: &str, folder: &Path) -> Result<PathBuf> {
        if self.cpus == 1 {
            return Ok(path);
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let spread = folder.join("spread.toml");
        std::fs::write(&spread, spread_over(&text, image, self.cpus))
            .with_context(|| format!("cannot write {}", spread.display()))?;
        Ok(spread)
    }
}

/// `text` with `processor = N` in the tasks of `image`, the first of them on the second processor.
fn spread_over(text: &str, image: &str, cpus: u32) -> String {
    let line = format!("image = \"{image}\"\n");
    let mut next = 0;
    let tasks = text.split_inclusive("[[task]]\n").map(|task| {
        if !task.contains(&line) || task.contains("control = true") {
            return task.to_owned();
        }
        next += 1;
        task.replace(&line, &format!("{line}processor = {}\n", next % cpus))
    });
    tasks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_spread_but_for_the_one_in_control() {
        let task = |image: &str, more: &str| format!("[[task]]\nimage = \"{image}\"\n{more}\n");
        let all = ["", "control = true\n", "", ""].map(|more| task("x", more)).concat();
        let text = format!("{}{all}", task("y", ""));
        let spread = spread_over(&text, "x", 2);
        let there: Vec<_> = spread.lines().filter(|line| line.starts_with("processor")).collect();
        assert_eq!(there, ["processor = 1", "processor = 0", "processor = 1"]);
        assert_eq!(spread.replace("processor = 1\n", "").replace("processor = 0\n", ""), text);
        assert!(!spread.contains("processor = 1\ncontrol"));
    }
}
