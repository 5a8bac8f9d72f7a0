//! `bench --trace ROW`: runs the row's program twice, the second time with the
//! instructions of its cheapest sample listed.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::instrument::{Series, Trace};
use super::trace::{self, Step, Symbols};
use super::{Bench, loads, program_of, remote, smp};
use crate::compose::{Bootable, Selection};

/// Short names for the rows that are asked for most.
const ALIASES: [(&str, &str); 11] = [
    ("short-ipc", "ipc/words-cross-call words=0"),
    ("short-reply", "ipc/words-cross-reply words=0"),
    ("short-local", "ipc/words-local-call words=0"),
    ("complete", "ipc/complete-cross-call words=0"),
    ("complete-reply", "ipc/complete-cross-reply words=0"),
    ("63-words", "ipc/words-cross-call words=63"),
    ("string", "ipc/string-cross bytes=4096"),
    ("page-fault", "ops/page-fault"),
    ("exception", "ops/exception"),
    ("interrupt", "ops/interrupt"),
    ("timer-tick", "ops/timer-tick"),
];

/// Prints the trace of `wanted` and keeps it in `target/bench/trace-NAME.txt`.
///
/// # Errors
/// When there is no such row.
pub fn show(bench: &mut Bench<'_>, wanted: &str) -> Result<()> {
    let full = ALIASES.iter().find(|(alias, _)| *alias == wanted).map_or(wanted, |(_, full)| full);
    if full.starts_with(loads::PREFIX) {
        return loads::profile(bench.workspace, full);
    }
    if full.contains("remote") {
        return show_remote(bench, wanted, full);
    }
    let program = program_of(full);
    let measured = bench.run(program, Trace::None)?;
    let best = |series: &Series| series.best().map(|(sample, _)| sample);
    let series = measured.series.iter().find(|series| is(series, full));
    let found = series.and_then(best).or_else(|| smp::sample_of(measured, full));
    let Some(sample) = found else {
        let names: Vec<String> = measured.series.iter().map(title).collect();
        bail!(
            "there is no row `{wanted}`; short names are {}, and {} has:\n  {}",
            ALIASES.map(|(alias, _)| alias).join(", "),
            program.name,
            names.join("\n  ")
        );
    };
    let steps = trace::read(&bench.run(program, Trace::Sample(sample))?.trace);
    let selection = Selection { root: Some(program.root.to_owned()), ..Selection::default() };
    let bootable = bench.composer.compose(&selection, program.name)?;
    print_steps(bench, wanted, &steps, &bootable)
}

/// The same of a row that is a Linux program's.
fn show_remote(bench: &Bench<'_>, wanted: &str, full: &str) -> Result<()> {
    let bootable = remote::compose(bench.workspace)?;
    let measured = remote::run(&bench.instrument, &bootable, Trace::None)?;
    let Some(sample) = remote::sample_of(&measured, full) else {
        bail!("there is no row `{wanted}`; the calls are {}", measured.calls.join(", "));
    };
    let traced = remote::run(&bench.instrument, &bootable, Trace::Sample(sample))?;
    print_steps(bench, wanted, &trace::read(&traced.trace), &bootable)
}

/// Prints and keeps what a sample executed, in the kernel and in the last program of the image.
fn print_steps(bench: &Bench<'_>, wanted: &str, steps: &[Step], bootable: &Bootable) -> Result<()> {
    let root: PathBuf = bootable.servers.last().cloned().context("the image has no program")?;
    let symbols = Symbols::of(steps, &bootable.kernel, &root, &bench.workspace.root)?;
    let listing = trace::listing(steps, &symbols);
    print!("{listing}");
    println!("\nKernel instructions by function:");
    for (function, count) in trace::by_function(steps, &symbols).into_iter().take(20) {
        println!("  {count:6}  {function}");
    }
    let path = bench
        .workspace
        .target("bench")?
        .join(format!("trace-{}.txt", wanted.replace(['/', ' '], "-")));
    std::fs::write(&path, listing).with_context(|| format!("cannot write {}", path.display()))?;
    println!("\nThe listing is also in {}.", bench.workspace.show(&path));
    Ok(())
}

/// Whether `series` is what `wanted` (`name key=value ...`) names.
fn is(series: &Series, wanted: &str) -> bool {
    let mut words = wanted.split(' ');
    let named = words.next() == Some(series.name.as_str());
    named
        && words.all(|word| {
            word.split_once('=').is_some_and(|(key, value)| {
                series.parameters.get(key).map(u64::to_string).as_deref() == Some(value)
            })
        })
}

fn title(series: &Series) -> String {
    let parameters = series.parameters.iter().map(|(key, value)| format!(" {key}={value}"));
    series.name.clone() + &parameters.collect::<String>()
}
