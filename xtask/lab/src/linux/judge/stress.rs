//! stress-ng, from Debian's package: a trial for each stressor, four workers. Beside it a shell is
//! asked something each second, and has to answer soon: a mark of its own.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::mark::{self, Mark, Marks};
use super::suite::{Name, Suite, Trial};
use crate::linux::cpio::Archive;
use crate::linux::guest::Ran;
use crate::linux::machines::MEMORY_MB;
use crate::linux::packages::Packages;
use crate::linux::programs;
use crate::workspace::Workspace;

/// The program and the libraries that it names.
const LIBRARIES: [(&str, &str); 20] = [
    ("libapparmor1", USR),
    ("libbsd0", USR),
    ("libmd0", USR),
    ("libcrypt1", LIB),
    ("libdrm2", USR),
    ("libegl1", USR),
    ("libffi8", USR),
    ("libgbm1", USR),
    ("libgles2", USR),
    ("libglvnd0", USR),
    ("libipsec-mb1", USR),
    ("libjpeg62-turbo", USR),
    ("libjudydebian1", USR),
    ("libkmod2", USR),
    ("liblzma5", LIB),
    ("libsctp1", USR),
    ("libssl3", USR),
    ("libwayland-server0", USR),
    ("libxxhash0", USR),
    ("libzstd1", USR),
];
const USR: &str = "usr/lib/x86_64-linux-gnu";
const LIB: &str = "lib/x86_64-linux-gnu";
const PROGRAM: &str = "usr/bin/stress-ng";
const WORKERS: u32 = 4;
/// What asks the shell: its source's name, and where it is in the archive.
const ASKING: (&str, &str) = ("answers", "judge/answers");
/// What it prints before the longest time, milliseconds.
const LONGEST: &str = "the longest took ";
/// Longest that an answer may take.
const SOON_MS: u64 = 2000;
/// Beside the time that it works, seconds. Processes of `resources` give back one by one what they had, and the
/// emulator, which has no tags, forgets all translations at each switch to the server and back.
const PAUSE_S: u64 = 120;
const BATCH: usize = 60;
/// Statuses that mean: no resources, not here, not trusted.
const CANNOT: [i32; 3] = [3, 4, 5];

/// The suite; each stressor works for so many seconds.
///
/// # Errors
/// When packages cannot be had.
pub fn suite(workspace: &Workspace, seconds: u64) -> Result<Suite> {
    let names: Vec<&str> = LIBRARIES.iter().map(|part| part.0).chain(["stress-ng"]).collect();
    let packages = Packages::get(workspace, &names)?;
    let mut shared = Archive::default();
    shared.copy(PROGRAM, &packages.file("stress-ng", PROGRAM))?;
    let mut places = Vec::new();
    for (package, folder) in LIBRARIES {
        shared.copy(folder, &packages.file(package, folder))?;
        places.push(packages.file(package, folder).to_string_lossy().into_owned());
    }
    let told = Command::new(packages.file("stress-ng", PROGRAM))
        .arg("--stressors")
        .env("LD_LIBRARY_PATH", places.join(":"))
        .output()
        .context("cannot run stress-ng to ask for its stressors")?;
    ensure!(
        told.status.success(),
        "stress-ng does not name its stressors: {}",
        String::from_utf8_lossy(&told.stderr).trim()
    );
    let (name, place) = ASKING;
    let program = workspace.target("linux/programs")?.join(name);
    programs::compile_static(workspace, name, &program)?;
    shared.copy(place, &program)?;
    let mut trials = Vec::new();
    for stressor in String::from_utf8_lossy(&told.stdout).split_whitespace() {
        let stress = format!("stress-ng --{stressor} {WORKERS} --timeout {seconds}s --oomable");
        let run = format!("exec /{place} {stress}");
        trials.push(Trial::new(stressor, run, seconds + PAUSE_S));
    }
    Ok(Suite { name: Name::StressNg, shared, trials, batch: BATCH, memory: MEMORY_MB, read })
}

fn read(name: &str, ran: &Ran, status: i32) -> Marks {
    let mark = match status {
        0 => Mark::Pass,
        status if CANNOT.contains(&status) => Mark::Skip,
        _ => Mark::Fail,
    };
    let mut marks = mark::one(name, mark);
    if let Some(longest) = longest(&ran.output) {
        let mark = if longest <= SOON_MS { Mark::Pass } else { Mark::Fail };
        marks.insert(format!("{name}: {}", ASKING.0), mark);
    }
    marks
}

/// The longest that an answer of the shell took, milliseconds.
fn longest(output: &str) -> Option<u64> {
    let (_, rest) = output.rsplit_once(LONGEST)?;
    rest.split_once(" ms")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::guest::End;

    fn marks(output: &str, status: i32) -> Vec<(String, Mark)> {
        let ran = Ran { output: output.to_owned(), end: End::Status(status) };
        read("vm", &ran, status).into_iter().collect()
    }

    #[test]
    fn a_shell_that_answers_late_is_a_mark_of_its_own() {
        let answers = |mark| ("vm: answers".to_owned(), mark);
        let own = |mark| ("vm".to_owned(), mark);
        let soon = "answers: 10, the longest took 2000 ms\n";
        let late = "answers: 3, the longest took 2001 ms\n";
        assert_eq!(marks(soon, 0), [own(Mark::Pass), answers(Mark::Pass)]);
        assert_eq!(marks(late, 0), [own(Mark::Pass), answers(Mark::Fail)]);
        assert_eq!(marks(late, 2), [own(Mark::Fail), answers(Mark::Fail)]);
        assert_eq!(marks(soon, 4), [own(Mark::Skip), answers(Mark::Pass)]);
        assert_eq!(marks("", 137), [own(Mark::Fail)]);
    }

    #[test]
    fn what_asks_prints_what_is_read() {
        let source = include_str!("../../../../../tests/linux/programs/answers.c");
        assert!(source.contains(&format!("{LONGEST}%ld ms")));
    }
}
