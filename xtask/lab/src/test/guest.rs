//! Rings 2 and 3: starts the machines that `tests/systems.toml` describes and
//! judges what they print and how they end.
//!
//! A guest reports single tests with lines `test NAME ... ok` and
//! `test NAME ... FAILED: sentence`, and closes with `tests done`; one that dies
//! before its closing line has failed, whatever it said until then.

use std::time::Duration;

use anyhow::{Context, Result};

use super::spec::{BootKind, CompiledStep, ExpectedExit, Run};
use super::tally::Outcome;
use super::tamper::Tamper;
use super::{damage, keep_log, open};
use crate::build;
use crate::compose::{Composer, Selection};
use crate::end_of;
use crate::iso;
use crate::machine::{self, Boot, Console, Exit};
use crate::session::{Ended, Session};
use crate::techniques::kernel_without;
use crate::ui::Step;
use crate::workspace::Workspace;

/// The line with which a guest says that all its tests were run.
const CLOSING_LINE: &str = "tests done";
/// The verdict on a test that the machine's list of skips names, with the reason; it counts nowhere.
const SKIPPED: &str = "skipped";
/// Lines of a failed run's console that are shown.
const SHOWN_LINES: usize = 30;

/// One machine from image to verdict.
///
/// # Errors
/// When it cannot be built or started.
pub fn suite(
    workspace: &Workspace,
    composer: &mut Composer<'_>,
    run: &Run,
    show: bool,
) -> Result<Outcome> {
    let bootable = composer.compose(&selection(workspace, run)?, &format!("test-{}", run.name))?;
    let step = Step::start(run.name.clone());
    if !run.damage.is_empty() || run.cut.is_some() {
        damage::apply(&bootable.image, &run.damage, run.cut)?;
    }
    let iso = bootable.image.with_extension("iso");
    let boot = match run.boot {
        BootKind::Pvh => {
            Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() }
        }
        BootKind::Iso => Boot::Iso(iso.clone()),
        BootKind::Uefi => Boot::Uefi(iso.clone()),
        BootKind::Bochs => Boot::Bochs(iso.clone()),
    };
    if run.boot != BootKind::Pvh {
        step.say("writing the CD image");
        iso::write(workspace, &bootable, &run.machine().kernel_args, &iso)?;
    }
    let limit = Duration::from_secs(run.seconds);
    let mut command = machine::command(&boot, &run.machine(), Console::Pipe)?;
    let tamper = Tamper::prepare(workspace, run, &mut command)?;
    let mut session = Session::start(command, limit, show)?;
    tamper.debug(&bootable.kernel, &run.tamper)?;
    let outcome = judge(run, &mut session, limit, &step, &tamper)?;
    step.vanish();
    let transcript = session.transcript();
    let mut outcome = match &run.open {
        Some(list) => {
            let held = transcript.lines().filter_map(case).filter(|(_, verdict)| *verdict == "ok");
            let held: Vec<&str> = held.map(|(name, _)| name).collect();
            open::sort(outcome, &open::read(workspace, list)?, &held)
        }
        None => outcome,
    };
    let log =
        keep_log(workspace, &run.name, &transcript).context("cannot keep the console's output")?;
    if !outcome.failures.is_empty() {
        outcome.notes = tail(&transcript);
        outcome.notes.push(format!("The whole console is in {}.", workspace.show(&log)));
    }
    Ok(outcome)
}

/// What to boot for `run`, its kernel built if it is not the usual one.
fn selection(workspace: &Workspace, run: &Run) -> Result<Selection> {
    let mut selection = run.selection(workspace);
    if run.assertions {
        selection.kernel = Some(build::checked_kernel(workspace)?);
    }
    if !run.without.is_empty() {
        selection.kernel = Some(kernel_without(workspace, &run.without)?);
    }
    Ok(selection)
}

/// Talks to the machine and decides.
fn judge(
    run: &Run,
    session: &mut Session,
    limit: Duration,
    step: &Step,
    tamper: &Tamper,
) -> Result<Outcome> {
    if let Err(why) = converse(run, session, limit, step, tamper)? {
        let mut outcome = read_cases(&session.transcript());
        outcome.failures.push(why);
        return Ok(outcome);
    }
    let leaves = run.boot == BootKind::Bochs;
    let ended = (run.cases || run.exit.is_some()).then(|| {
        session.wait_for_line(|line| {
            if let Some((name, _)) = case(line) {
                step.say(name.to_owned());
            }
            leaves && is_closing(line)
        })
    });
    let ended = ended.flatten();
    Ok(verdict(run, &session.transcript(), ended, limit))
}

/// Takes the steps of the dialogue; `Err` says which one failed.
fn converse(
    run: &Run,
    session: &mut Session,
    limit: Duration,
    step: &Step,
    tamper: &Tamper,
) -> Result<Result<(), String>> {
    let mut at = 0;
    for next in run.steps()? {
        match next {
            CompiledStep::Send(line) => session.send_line(line)?,
            CompiledStep::Type(text) => session.send(text)?,
            CompiledStep::Monitor(line) => tamper.monitor(line)?,
            CompiledStep::Screen(text, shown) => {
                step.say(format!("waiting for `{text}` on the screen"));
                if let Some(shown) = tamper.wait_for_screen(text, shown, limit)? {
                    return Ok(Err(format!(
                        "waited for `{text}` on the screen, which shows:\n{shown}"
                    )));
                }
            }
            CompiledStep::Expect(text, pattern) => {
                step.say(format!("waiting for `{}`", text.escape_debug()));
                match session.wait_for(end_of(&pattern), at) {
                    Ok(behind) => at = behind,
                    Err(ended) => {
                        let text = text.escape_debug();
                        return Ok(Err(format!(
                            "waited for `{text}` in vain: {}",
                            ended.sentence(limit)
                        )));
                    }
                }
            }
        }
    }
    Ok(Ok(()))
}

/// Decides from what was printed and how the machine ended (`None`: it was not
/// asked to end).
fn verdict(run: &Run, transcript: &str, ended: Option<Ended>, limit: Duration) -> Outcome {
    let mut outcome = if run.cases { read_cases(transcript) } else { Outcome::default() };
    let closed = transcript.lines().any(is_closing);
    if run.cases && !closed {
        let how = ended.map_or_else(String::new, |ended| ended.sentence(limit));
        let during =
            open_case(transcript).map_or_else(String::new, |name| format!(" in test {name}"));
        outcome
            .failures
            .push(format!("the guest died{during} without the line `{CLOSING_LINE}`: {how}"));
        return outcome;
    }
    if run.cases && outcome.passed == 0 && outcome.failures.is_empty() {
        outcome.failures.push("the guest closed without having run a test".to_owned());
    }
    let wanted = run.exit.map(|exit| match exit {
        ExpectedExit::Success => Exit::Success,
        ExpectedExit::Failure => Exit::Failure,
        ExpectedExit::Reset => Exit::Reset,
    });
    if let (Some(wanted), Some(ended)) = (wanted, ended)
        && ended != Ended::Exited(wanted)
        && outcome.failures.is_empty()
    {
        outcome.failures.push(format!(
            "the machine did not end as it should (expected: {}): {}",
            wanted.sentence(),
            ended.sentence(limit)
        ));
    }
    if !run.cases && outcome.failures.is_empty() {
        outcome.passed = 1;
    }
    outcome
}

/// Whether a guest says with `line` that all its tests were run. A task's lines by way of the root task begin with
/// its name.
fn is_closing(line: &str) -> bool {
    line.trim().rsplit(": ").next().is_some_and(|end| end == CLOSING_LINE)
}

/// `test NAME ... VERDICT`, anywhere in a line.
fn case(line: &str) -> Option<(&str, &str)> {
    let start = line.find("test ").filter(|at| *at == 0 || line.as_bytes()[at - 1] == b' ')?;
    let (name, verdict) = line[start + 5..].split_once(" ...")?;
    (!name.is_empty() && !name.contains(' ')).then_some((name, verdict.trim()))
}

/// Counts the single tests of a transcript.
fn read_cases(transcript: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for (name, verdict) in transcript.lines().filter_map(case) {
        match verdict {
            "ok" => outcome.passed += 1,
            SKIPPED => {}
            _ if verdict.starts_with("FAILED") => {
                let why = verdict["FAILED".len()..].trim_start_matches([':', ' ']);
                let why = if why.is_empty() { "no reason given" } else { why };
                outcome.failures.push(format!("{name}: {why}"));
            }
            _ => outcome.failures.push(format!("{name}: no verdict, but `{verdict}`")),
        }
    }
    outcome
}

/// The test that was begun last and has no verdict.
fn open_case(transcript: &str) -> Option<&str> {
    let (name, verdict) = transcript.lines().filter_map(case).next_back()?;
    (!matches!(verdict, "ok" | SKIPPED) && !verdict.starts_with("FAILED")).then_some(name)
}

/// The end of a console.
fn tail(transcript: &str) -> Vec<String> {
    let plain = without_escapes(transcript);
    let lines: Vec<&str> = plain.lines().collect();
    let from = lines.len().saturating_sub(SHOWN_LINES);
    lines[from..].iter().map(|line| format!("| {line}")).collect()
}

/// `text` without terminal control sequences (firmware and GRUB clear the screen).
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut pieces = text.split("\x1B[");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let parameters = |c: char| !c.is_ascii_alphabetic();
        let rest = piece.trim_start_matches(parameters);
        plain.push_str(rest.get(1..).unwrap_or_default());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(extra: &str) -> Run {
        let text = format!("name = \"r\"\nring = \"emulator\"\nroot = \"t\"\nseconds = 5\n{extra}");
        toml::from_str(&text).unwrap()
    }

    fn ended(exit: Exit) -> Option<Ended> {
        Some(Ended::Exited(exit))
    }

    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn what_is_skipped_counts_nowhere() {
        let outcome = read_cases("test a ... ok\ntest b ... skipped\n");
        assert_eq!((outcome.passed, outcome.failures.len()), (1, 0));
        assert_eq!(open_case("test b ... skipped\n"), None);
        assert_eq!(read_cases("test b ... skips\n").failures.len(), 1);
    }

    #[test]
    fn cases_are_counted_one_by_one() {
        let text =
            "boot\ntest a ... ok\ntest b ... FAILED: 3 is not 4\ntest c ... ok\ntests done\n";
        let outcome = verdict(&run("cases = true"), text, ended(Exit::Failure), LIMIT);
        assert_eq!(
            outcome,
            Outcome { passed: 2, failures: vec!["b: 3 is not 4".to_owned()], ..Outcome::default() }
        );
    }

    #[test]
    fn a_guest_that_dies_is_a_failure_with_the_test_named() {
        let text = "test a ... ok\ntest b ... ";
        let outcome = verdict(&run("cases = true"), text, ended(Exit::Reset), LIMIT);
        assert_eq!(outcome.passed, 1);
        assert!(outcome.failures.last().unwrap().contains("died in test b"), "{outcome:?}");
        let silent = verdict(&run("cases = true"), "test a ... ok\n", Some(Ended::TimedOut), LIMIT);
        assert!(silent.failures[0].contains("time limit of 5 s"), "{silent:?}");
    }

    #[test]
    fn a_guest_without_tests_is_a_failure() {
        let outcome = verdict(&run("cases = true"), "tests done\n", ended(Exit::Success), LIMIT);
        assert_eq!(outcome.failures.len(), 1);
    }

    #[test]
    fn the_exit_must_be_as_expected() {
        let run = run("exit = \"success\"");
        assert_eq!(verdict(&run, "", ended(Exit::Success), LIMIT).passed, 1);
        assert_eq!(verdict(&run, "", ended(Exit::Reset), LIMIT).failures.len(), 1);
        assert_eq!(verdict(&run, "", Some(Ended::TimedOut), LIMIT).failures.len(), 1);
    }

    #[test]
    fn a_failing_exit_behind_passing_cases_is_a_failure() {
        let run = run("cases = true\nexit = \"success\"");
        let outcome = verdict(&run, "test a ... ok\ntests done\n", ended(Exit::Failure), LIMIT);
        assert_eq!((outcome.passed, outcome.failures.len()), (1, 1));
    }

    #[test]
    fn control_sequences_are_left_out() {
        let text = "\x1B[2J\x1B[01;01Ha\x1B[=3hb\nc\x1B[0m";
        assert_eq!(without_escapes(text), "ab\nc");
    }

    #[test]
    fn lines_of_other_kinds_are_no_cases() {
        assert_eq!(case("the latest thing ... ok"), None);
        assert_eq!(case("kernel: test a-b ... ok"), Some(("a-b", "ok")));
        assert_eq!(case("test two words ... ok"), None);
    }

    #[test]
    fn dialogue_is_judged_step_by_step() {
        let run = run("dialogue = [{ expect = \"> \" }, { send = \"hi\" }, { expect = \"hi!\" }]");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "printf '> '; read x; echo \"$x!\"; exec sleep 9"]);
        let step = Step::start("t");
        let mut session = Session::start(command, LIMIT, false).unwrap();
        let outcome = judge(&run, &mut session, LIMIT, &step, &Tamper::default()).unwrap();
        assert_eq!(outcome, Outcome { passed: 1, ..Outcome::default() });
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "printf '> '; read x; echo no"]);
        let mut session = Session::start(command, LIMIT, false).unwrap();
        let outcome = judge(&run, &mut session, LIMIT, &step, &Tamper::default()).unwrap();
        assert!(outcome.failures[0].contains("waited for `hi!` in vain"), "{outcome:?}");
    }
}
