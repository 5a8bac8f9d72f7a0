//! Suite `smp`, its last part: Linux programs on several processors, counted by the tally (`bench/host/plugin/tally.c`)
//! on all of them together.
//!
//! Here the emulator does not count, but gives each processor its turn by its own clock: where it counts, a second one
//! runs only while the first one waits, and programs that compute would do so one after the other. So no figure
//! repeats to the digit.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::instrument;
use super::linux;
use super::loads::{self, Ran, Tallied, total};
use super::native::compile;
use super::row::{INSTRUMENT, Row};
use crate::compose::{Bootable, Composer, Selection};
use crate::linux::Wishes;
use crate::linux::cpio::Archive;
use crate::machine::Boot;
use crate::workspace::Workspace;

const SOURCE: &str = "bench/host/linux/across.c";
/// The processors of the machines on which processes compute.
const COMPUTING: [u32; 3] = [1, 2, 4];
/// Those of the machines on which `make -j4` builds a program.
const BUILDING: [u32; 2] = [1, 4];
/// What `smp::rows` calls an exchange between two of Baton's programs.
const ROUNDTRIP: &str = "smp/cross-processor-roundtrip";

/// The rows; `baton` are those of Baton's own programs.
///
/// # Errors
/// When something cannot be built, or does not come to its end.
pub fn rows(workspace: &Workspace, baton: &[Row]) -> Result<Vec<Row>> {
    let plugin = instrument::tally(workspace)?;
    let mut rows = pipe(&on_linux(workspace)?.run(&plugin)?, baton);
    let computing = program(workspace)?;
    rows.extend(several("smp/computing", &COMPUTING, |cpus| {
        loads::on_baton_with("computing on baton", &computing, Some(cpus)).run(&plugin)
    })?);
    let building = loads::bootable(workspace, Some("make"))?;
    rows.extend(several("smp/building", &BUILDING, |cpus| {
        loads::on_baton_with("make -j4 on baton", &building, Some(cpus)).run(&plugin)
    })?);
    Ok(rows)
}

/// What Linux takes for a byte to another processor and back, and how many times that an exchange
/// of Baton's is, its programs included on both sides.
fn pipe(ran: &Ran, baton: &[Row]) -> Vec<Row> {
    let Some((_, best)) = ran.best(0) else { return Vec::new() };
    let whole = total(best) as f64;
    let row = |name: &str, value: f64| Row::baton("smp", name, value);
    let mut rows = vec![row("smp/pipe-roundtrip", whole).of("linux", INSTRUMENT)];
    let own = baton.iter().find(|row| row.name == ROUNDTRIP).and_then(|row| {
        let user = row.parameters.get("user_instructions")?.as_str()?;
        Some(row.value + user.parse::<f64>().ok()?)
    });
    let multiple = own.map(|own| row("smp/pipe-multiple", own / whole).unit("times"));
    rows.extend(multiple.map(|row| row.with("baton", own.unwrap_or_default().to_string())));
    rows
}

/// The cheapest round of a load on machines with these numbers of processors, and how many times
/// the first one's it is.
fn several(name: &str, cpus: &[u32], run: impl Fn(u32) -> Result<Ran>) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for &cpus in cpus {
        let ran = run(cpus)?;
        let (_, best) = ran.best(0).context("a load has no sample")?;
        let value = total(best) as f64;
        let times = value / rows.first().map_or(value, |row| row.value);
        let mut row = Row::baton("smp", name, value).with("processors", cpus);
        for whose in ["program", "server", "kernel"] {
            row = row.with(whose, instrument::count(best, whose).to_string());
        }
        rows.push(row.with("times", format!("{times:.3} times")));
    }
    Ok(rows)
}

/// The first file system with the program, compiled with `flags`.
fn first_file_system(workspace: &Workspace, name: &str, flags: &[&str]) -> Result<PathBuf> {
    let dir = workspace.target("bench/linux")?;
    let init = dir.join(format!("init-{name}"));
    compile(workspace, SOURCE, flags, &init)?;
    let mut archive = Archive::default();
    archive.copy("init", &init)?;
    archive.directory("dev", 0o755);
    let path = dir.join(format!("initramfs-{name}"));
    std::fs::write(&path, archive.write()?).context("cannot write a first file system")?;
    Ok(path)
}

/// Linux on two processors with the program that exchanges bytes.
fn on_linux(workspace: &Workspace) -> Result<Tallied<'static>> {
    let kernel = linux::kernel(&workspace.target("bench/linux")?)?;
    let image = first_file_system(workspace, "pipe", &["-O2", "-static", "-DPIPE"])?;
    Ok(loads::on_linux_with("a pipe on linux", Boot::Pvh { kernel, image }, Some(2)))
}

/// Baton with the program that computes.
fn program(workspace: &Workspace) -> Result<Bootable> {
    let initramfs = first_file_system(workspace, "computing", &["-O2", "-static-pie"])?;
    let selection = Selection {
        system: Some("linux".to_owned()),
        wishes: Wishes { initramfs: Some(initramfs), ..Wishes::default() },
        fixed_addresses: true,
        ..Selection::default()
    };
    Composer::new(workspace).compose(&selection, "bench-computing")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(program: u64) -> Ran {
        let loops = "sample 0 program=2001 server=0 kernel=0";
        let counted = format!("{loops}\nsample 1 program={program} server=1 kernel=1\n");
        loads::read("load x\nbench done\n", &counted).unwrap()
    }

    #[test]
    fn an_exchange_is_compared_with_a_pipes_programs_included() {
        let own = Row::baton("smp", ROUNDTRIP, 90.0).with("user_instructions", "10");
        let rows = pipe(&ran(198), &[own]);
        let named: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.value)).collect();
        assert_eq!(named, [("smp/pipe-roundtrip", 200.0), ("smp/pipe-multiple", 0.5)]);
        assert_eq!(pipe(&ran(198), &[]).len(), 1);
    }

    #[test]
    fn more_processors_are_compared_with_the_first() {
        let rows = several("smp/x", &[1, 4], |cpus| Ok(ran(u64::from(cpus) * 100 - 2))).unwrap();
        let times = rows.iter().map(|row| row.parameters["times"].as_str().unwrap());
        assert_eq!(times.collect::<Vec<_>>(), ["1.000 times", "4.000 times"]);
        assert_eq!(rows[1].parameters["server"], "1");
    }
}
