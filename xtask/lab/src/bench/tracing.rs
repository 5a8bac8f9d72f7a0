//! `bench --trace ROW`: runs the row's program twice, the second time with the
//! instructions of its cheapest sample listed.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::instrument::{Series, Trace};
use super::trace::{self, Symbols};
use super::{Bench, program_of};
use crate::compose::Selection;

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
    let program = program_of(full);
    let measured = bench.run(program, Trace::None)?;
    let Some(series) = measured.series.iter().find(|series| is(series, full)) else {
        let names: Vec<String> = measured.series.iter().map(title).collect();
        bail!(
            "there is no row `{wanted}`; short names are {}, and {} has:\n  {}",
            ALIASES.map(|(alias, _)| alias).join(", "),
            program.name,
            names.join("\n  ")
        );
    };
    let (sample, _) = series.best().context("the row has no samples")?;
    let steps = trace::read(&bench.run(program, Trace::Sample(sample))?.trace);
    let selection = Selection { root: Some(program.name.to_owned()), ..Selection::default() };
    let bootable = bench.composer.compose(&selection, program.name)?;
    let root: PathBuf = bootable.servers.last().cloned().context("the image has no root task")?;
    let symbols = Symbols::of(&steps, &bootable.kernel, &root, &bench.workspace.root)?;
    let listing = trace::listing(&steps, &symbols);
    print!("{listing}");
    println!("\nKernel instructions by function:");
    for (function, count) in trace::by_function(&steps, &symbols).into_iter().take(20) {
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
