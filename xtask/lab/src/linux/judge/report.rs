//! What the two systems made of a suite, side by side.

use super::known::Known;
use super::mark::{self, Mark, Marks};
use super::run::Results;
use super::suite::Suite;
use crate::linux::guest::Ran;

/// Lines of a trial's output that are shown for a new difference.
const LAST_LINES: usize = 12;

/// The comparison of both.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What passes on Linux.
    pub natively: usize,
    /// What of this passes on Baton.
    pub of_these: usize,
    /// Differences that the list does not have.
    pub new: Vec<String>,
    /// Differences that it has, with their cause.
    pub known: Vec<(String, String)>,
    /// Entries of the list that are no difference any more.
    pub gone: Vec<String>,
    /// What neither ended nor failed.
    stopped: Vec<String>,
}

/// All marks of a run.
fn all(suite: &Suite, results: &Results) -> Marks {
    let trials = suite.trials.iter();
    let ran = trials.filter_map(|trial| results.get_key_value(&trial.case.name));
    ran.flat_map(|(name, ran)| mark::marks(name, ran, suite.read)).collect()
}

/// The results of trials all of which passed.
#[must_use]
pub fn passed(suite: &Suite, results: &Results) -> Results {
    let passed = |name: &str, ran: &Ran| {
        let marks = mark::marks(name, ran, suite.read);
        !marks.is_empty() && marks.values().all(|mark| *mark == Mark::Pass)
    };
    let passed = results.iter().filter(|(name, ran)| passed(name, ran));
    passed.map(|(name, ran)| (name.clone(), ran.clone())).collect()
}

impl Verdict {
    /// Compares the marks of all trials that both have run.
    #[must_use]
    pub fn of(suite: &Suite, linux: &Results, baton: &Results, known: &Known) -> Self {
        Self::between(&all(suite, linux), &all(suite, baton), known)
    }

    fn between(linux: &Marks, baton: &Marks, known: &Known) -> Self {
        let mut verdict = Self::default();
        for (name, _) in linux.iter().filter(|(_, mark)| **mark == Mark::Pass) {
            verdict.natively += 1;
            let seen = baton.get(name).copied().unwrap_or(Mark::Stopped);
            match (seen, known.get(name)) {
                (Mark::Pass, None) => verdict.of_these += 1,
                (Mark::Pass, Some(_)) => {
                    verdict.of_these += 1;
                    verdict.gone.push(name.clone());
                }
                (_, Some(cause)) => verdict.known.push((name.clone(), cause.clone())),
                (_, None) => verdict.new.push(name.clone()),
            }
        }
        verdict.inside(linux, baton, known);
        let stopped = baton.iter().filter(|(_, mark)| **mark == Mark::Stopped);
        verdict.stopped = stopped.map(|(name, _)| name.clone()).collect();
        verdict
    }

    /// A trial that fails on both names what of it has failed: what does so on Baton alone counts.
    fn inside(&mut self, linux: &Marks, baton: &Marks, known: &Known) {
        let both = |name: &str| {
            let fails = |marks: &Marks| marks.get(name) == Some(&Mark::Fail);
            fails(linux) && fails(baton)
        };
        let of_both = |name: &String| name.split_once(": ").is_some_and(|(trial, _)| both(trial));
        let failed = baton.iter().filter(|(_, mark)| **mark == Mark::Fail);
        for (name, _) in failed.filter(|(name, _)| of_both(name) && !linux.contains_key(*name)) {
            self.natively += 1;
            match known.get(name) {
                Some(cause) => self.known.push((name.clone(), cause.clone())),
                None => self.new.push(name.clone()),
            }
        }
        let gone = known.keys().filter(|name| of_both(name) && !baton.contains_key(*name));
        self.gone.extend(gone.cloned());
    }

    /// For a person.
    pub fn print(&self, suite: &Suite, baton: &Results) {
        for (name, cause) in &self.known {
            println!("known  {name}: {cause}");
        }
        for name in &self.gone {
            println!("gone   {name}: passes; strike it from the list (--accept)");
        }
        for name in &self.new {
            println!("NEW    {name}");
            let ran = suite.trials.iter().find(|trial| {
                let case = &trial.case.name;
                name == case || name.strip_prefix(case).is_some_and(|rest| rest.starts_with(':'))
            });
            let ran = ran.and_then(|trial| baton.get(&trial.case.name));
            ran.into_iter().for_each(|ran| tail(&ran.output));
        }
        if !self.stopped.is_empty() {
            println!("\nNot ended on Baton: {}", self.stopped.join(", "));
        }
        println!(
            "\n{}: {} pass on Linux, {} of these on Baton; {} differences are known, {} new.",
            suite.name.word(),
            self.natively,
            self.of_these,
            self.known.len(),
            self.new.len()
        );
    }
}

fn tail(output: &str) {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    lines
        .iter()
        .skip(lines.len().saturating_sub(LAST_LINES))
        .for_each(|line| println!("    {line}"));
}

/// One system's marks, and what was printed by trials that did not pass.
pub fn print(suite: &Suite, results: &Results) {
    let mut counts = [0; 4];
    for trial in &suite.trials {
        let Some(ran) = results.get(&trial.case.name) else { continue };
        let marks = mark::marks(&trial.case.name, ran, suite.read);
        for (name, mark) in &marks {
            println!("{:<40} {}", name, mark.word());
            counts[*mark as usize] += 1;
        }
        if marks.values().any(|mark| matches!(mark, Mark::Fail | Mark::Stopped)) {
            ran.output.lines().for_each(|line| println!("    {line}"));
        }
    }
    let [pass, skip, fail, stopped] = counts;
    println!("\n{pass} pass, {skip} are skipped, {fail} fail, {stopped} did not end.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_on_linux_is_asked_for() {
        let marks = |list: &[(&str, Mark)]| -> Marks {
            list.iter().map(|(name, mark)| ((*name).to_owned(), *mark)).collect()
        };
        let linux = marks(&[
            ("a", Mark::Pass),
            ("b", Mark::Pass),
            ("c", Mark::Fail),
            ("d", Mark::Pass),
            ("e", Mark::Skip),
            ("f", Mark::Pass),
            ("g", Mark::Pass),
        ]);
        let baton = marks(&[
            ("a", Mark::Pass),
            ("b", Mark::Fail),
            ("c", Mark::Stopped),
            ("d", Mark::Skip),
            ("e", Mark::Fail),
            ("f", Mark::Pass),
        ]);
        let known = Known::from([
            ("d".to_owned(), "no such thing".to_owned()),
            ("f".to_owned(), "was wrong".to_owned()),
            ("z".to_owned(), "not run".to_owned()),
        ]);
        let verdict = Verdict::between(&linux, &baton, &known);
        assert_eq!((verdict.natively, verdict.of_these), (5, 2));
        assert_eq!(verdict.new, ["b", "g"]);
        assert_eq!(verdict.known, [("d".to_owned(), "no such thing".to_owned())]);
        assert_eq!(verdict.gone, ["f"]);
        assert_eq!(verdict.stopped, ["c"]);
    }

    #[test]
    fn what_fails_here_alone_in_a_trial_that_fails_on_both_is_a_difference() {
        let fails = |list: &[&str]| -> Marks {
            list.iter().map(|name| ((*name).to_owned(), Mark::Fail)).collect()
        };
        let linux = fails(&["a", "a: 1", "a: 2", "b", "b: 1"]);
        let mut baton = fails(&["a", "a: 2", "a: 3", "a: 4", "c: 1"]);
        baton.insert("b".to_owned(), Mark::Pass);
        let known = ["a: 4", "a: 5", "c: 2"].map(|name| (name.to_owned(), "so".to_owned()));
        let verdict = Verdict::between(&linux, &baton, &Known::from(known));
        assert_eq!(verdict.new, ["a: 3"]);
        assert_eq!(verdict.known, [("a: 4".to_owned(), "so".to_owned())]);
        assert_eq!(verdict.gone, ["a: 5"]);
        assert_eq!((verdict.natively, verdict.of_these), (2, 0));
    }

    #[test]
    fn linux_is_granted_what_passes_whole() {
        use super::super::suite::Name;
        use crate::linux::cpio::Archive;
        use crate::linux::guest::End;

        let read = |name: &str, ran: &Ran, status: i32| {
            let mark = |passes| if passes { Mark::Pass } else { Mark::Skip };
            let mut marks = mark::one(name, mark(status == 0));
            marks.insert(format!("{name}: part"), mark(ran.output.is_empty()));
            marks
        };
        let (shared, trials) = (Archive::default(), Vec::new());
        let suite = Suite { name: Name::StressNg, shared, trials, batch: 1, memory: 1, read };
        let ran = |output: &str, end| Ran { output: output.to_owned(), end };
        let results = Results::from([
            ("part".to_owned(), ran("partly", End::Status(0))),
            ("skips".to_owned(), ran("", End::Status(4))),
            ("stops".to_owned(), ran("", End::Hung)),
            ("whole".to_owned(), ran("", End::Status(0))),
        ]);
        assert!(passed(&suite, &results).into_keys().eq(["whole".to_owned()]));
    }
}
