//! Counts single tests and prints one line per suite.

use std::time::Duration;

use crate::ui;

/// What one suite came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Tests that passed.
    pub passed: usize,
    /// Sentences of the tests that failed.
    pub failures: Vec<String>,
    /// Attacks that succeed and are known to (`Run::open`).
    pub open: Vec<String>,
    /// Lines that are printed above the suite's.
    pub notes: Vec<String>,
}

impl Outcome {
    /// A suite that counts as one test and failed.
    #[must_use]
    pub fn failed(why: impl Into<String>) -> Self {
        Self { failures: vec![why.into()], ..Self::default() }
    }
}

/// All suites together.
#[derive(Debug, Default)]
pub struct Tally {
    passed: usize,
    failures: Vec<String>,
    open: usize,
}

impl Tally {
    /// Takes in a suite and prints its line and its failures.
    pub fn add(&mut self, suite: &str, outcome: Outcome, duration: Duration) {
        let mut lines: Vec<String> =
            outcome.notes.iter().map(|note| format!("    {note}")).collect();
        lines.push(format!(
            "  {suite:<36} {:>5} passed {:>4} failed  {:>8}",
            outcome.passed,
            outcome.failures.len(),
            ui::seconds(duration)
        ));
        lines.extend(outcome.failures.iter().map(|failure| format!("      FAILED {failure}")));
        lines.extend(outcome.open.iter().map(|open| format!("      open   {open}")));
        ui::print(&lines.join("\n"));
        self.open += outcome.open.len();
        self.passed += outcome.passed;
        self.failures.extend(outcome.failures.iter().map(|failure| format!("{suite}: {failure}")));
    }

    /// Tests that passed.
    #[must_use]
    pub const fn passed(&self) -> usize {
        self.passed
    }

    /// Tests that failed.
    #[must_use]
    pub const fn failed(&self) -> usize {
        self.failures.len()
    }

    /// `SUITE: sentence` of each failure.
    #[must_use]
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Attacks that succeed and are known to.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.open
    }

    /// The last line of a test run.
    #[must_use]
    pub fn closing_line(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_add_up() {
        let mut tally = Tally::default();
        tally.add(
            "a",
            Outcome {
                passed: 3,
                failures: vec!["x was 1".to_owned()],
                open: vec!["y".to_owned()],
                ..Outcome::default()
            },
            Duration::ZERO,
        );
        tally.add("b", Outcome::failed("it hung"), Duration::ZERO);
        assert_eq!(tally.closing_line(), "3 passed, 2 failed");
        assert_eq!(tally.open(), 1);
        assert_eq!(tally.failures(), ["a: x was 1", "b: it hung"]);
    }
}
