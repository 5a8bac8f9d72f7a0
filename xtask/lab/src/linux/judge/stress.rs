//! stress-ng, from Debian's package: a trial for each stressor, four workers.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::mark::{self, Mark, Marks};
use super::suite::{Name, Suite, Trial};
use crate::linux::cpio::Archive;
use crate::linux::guest::Ran;
use crate::linux::packages::Packages;
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
/// Beside the time that it works, seconds.
const PAUSE_S: u64 = 40;
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
    let mut trials = Vec::new();
    for stressor in String::from_utf8_lossy(&told.stdout).split_whitespace() {
        let run = format!("exec stress-ng --{stressor} {WORKERS} --timeout {seconds}s --oomable");
        trials.push(Trial::new(stressor, run, seconds + PAUSE_S));
    }
    Ok(Suite { name: Name::StressNg, shared, trials, batch: BATCH, read })
}

fn read(name: &str, _: &Ran, status: i32) -> Marks {
    let mark = match status {
        0 => Mark::Pass,
        status if CANNOT.contains(&status) => Mark::Skip,
        _ => Mark::Fail,
    };
    mark::one(name, mark)
}
