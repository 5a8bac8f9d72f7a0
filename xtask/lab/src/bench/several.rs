//! Suite `smp`, its rows over the number of processors: the same measured program (`bench-smp`) on machines with
//! 1, 2, 4 and 8 of them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use object::{Object, ObjectSymbol};

use super::instrument::{Measured, Sample, count};
use super::row::Row;
use super::smp::{
    HANDLED, HANDLED_IN_A_CROWD, INDEPENDENT, TAKEN, TAKEN_EVERYWHERE, cheapest, exchanges, phase,
    samples_of, total,
};

/// Instructions of a processor for which its messages are counted.
const MILLION: f64 = 1e6;
/// What the kernel says of the memory for other processors.
const PAGES: &str = "pages of memory for the others: ";
/// And how many of these are root tables.
const ROOTS: &str = ", of roots: ";
const PAGE_KIB: f64 = 4.0;
/// Rooms and files of `kernel/src`, without `.rs`, whose functions nothing but several processors needs.
const ROOMS: [&str; 11] = [
    "arch/x86_64/elsewhere",
    "arch/x86_64/entry/again",
    "arch/x86_64/entry/asked",
    "arch/x86_64/entry/visitors",
    "arch/x86_64/errands",
    "between",
    "elsewhere",
    "irq/comers",
    "irq/quick",
    "irq/watch",
    "sched/leaving",
];
/// Where the others start, in assembly.
const TRAMPOLINE: &str = "baton_trampoline";

/// A machine's number of processors, and what was measured there.
pub type Run<'a> = (u32, &'a Measured);

/// The rows of all machines.
#[must_use]
pub fn rows(runs: &[Run<'_>]) -> Vec<Row> {
    let alone = runs.iter().find(|run| run.0 == 1).and_then(|run| cheapest(run.1, TAKEN));
    let mut rows: Vec<Row> = runs.iter().flat_map(pairs).collect();
    rows.extend(runs.iter().filter_map(|run| unmap_local(run, alone)));
    rows.extend(runs.iter().filter_map(invalidation));
    rows.extend(runs.iter().filter_map(handler));
    rows.extend(runs.iter().filter_map(memory));
    rows
}

/// What is executed at most from a device's interrupt to the first instruction of its handler, the most urgent thread, while
/// a crowd calls the kernel from the other processors.
fn handler(&(processors, measured): &Run<'_>) -> Option<Row> {
    let taken = |which| -> Vec<u64> {
        let mut taken: Vec<u64> = phase(measured, which).map(|it| count(it, "kernel")).collect();
        taken.sort_unstable();
        taken
    };
    let (alone, crowded) = (taken(HANDLED), taken(HANDLED_IN_A_CROWD));
    let row = Row::baton("smp", "smp/handler", *crowded.last()? as f64);
    Some(
        row.with("processors", processors)
            .with("in_the_middle", crowded[crowded.len() / 2].to_string())
            .with("without_a_crowd", alone.last()?.to_string())
            .with("samples", crowded.len().to_string()),
    )
}

/// What a short message takes where it takes most, and how many of them all processors together
/// send while each executes a million instructions: the second half of each one's samples, when
/// all talk.
fn pairs(&(processors, measured): &Run<'_>) -> Vec<Row> {
    let kernel =
        exchanges(measured, INDEPENDENT).into_values().flatten().map(|(_, it)| count(it, "kernel"));
    let Some(worst) = kernel.max() else { return Vec::new() };
    let mut clocks: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for sample in phase(measured, INDEPENDENT) {
        clocks.entry(count(sample, "cpu")).or_default().push(count(sample, "clock"));
    }
    let rate = |clocks: &Vec<u64>| {
        let late = &clocks[clocks.len() / 2..];
        let executed = late.last()?.checked_sub(*late.first()?).filter(|it| *it > 0)?;
        Some((late.len() - 1) as f64 / executed as f64 * MILLION)
    };
    let rates: Vec<f64> = clocks.values().filter_map(rate).collect();
    let row =
        |name: &str, value: f64| Row::baton("smp", name, value).with("processors", processors);
    vec![
        row("smp/pairs", worst as f64).with("talking", rates.len().to_string()),
        row("smp/pairs-total", rates.iter().sum::<f64>().round())
            .unit("messages per million instructions of each"),
    ]
}

/// A page of a space that has run on the first processor only, while somebody of another one is on
/// another processor.
fn unmap_local(&(processors, measured): &Run<'_>, alone: Option<(u64, &Sample)>) -> Option<Row> {
    let (_, sample) = cheapest(measured, TAKEN)?;
    let row = Row::baton("smp", "smp/unmap-local", count(sample, "kernel") as f64);
    let row = row.with("processors", processors);
    let row = row.with("interrupts", count(sample, "messages").to_string());
    let row = row.with("samples", samples_of(measured, TAKEN));
    Some(row.with("on_one_processor", alone.map_or(0, |(_, it)| total(it)).to_string()))
}

/// A page of a space whose threads run on all processors: what each of the others adds.
fn invalidation(&(processors, measured): &Run<'_>) -> Option<Row> {
    let others = u64::from(processors - 1);
    let local = cheapest(measured, TAKEN).map(|(_, sample)| total(sample))?;
    let (_, sample) = cheapest(measured, TAKEN_EVERYWHERE).filter(|_| others > 0)?;
    let each = (total(sample) as f64 - local as f64) / others as f64;
    let row = Row::baton("smp", "smp/invalidation", each.round()).unit("instructions each");
    Some(
        row.with("processors", processors)
            .with("whole", total(sample).to_string())
            .with("others", count(sample, "okernel").to_string())
            .with("interrupts", count(sample, "messages").to_string())
            .with("samples", samples_of(measured, TAKEN_EVERYWHERE)),
    )
}

/// What the kernel's memory for another processor comes to, its root tables apart.
fn memory(&(processors, measured): &Run<'_>) -> Option<Row> {
    let said = measured.log.iter().find_map(|line| line.split_once(PAGES))?.1;
    let (pages, roots) = said.split_once(ROOTS)?;
    let count = |said: &str| said.trim().parse::<f64>().ok();
    let kib = (count(pages)? - count(roots)?) * PAGE_KIB / f64::from(processors - 1);
    let row = Row::baton("smp", "smp/memory", kib).unit("KiB each").with("processors", processors);
    Some(row.with("pages", pages).with("roots", roots.trim())).filter(|_| processors > 1)
}

/// What the functions come to that only several processors need.
///
/// # Errors
/// When the kernel cannot be read.
pub fn text(kernel: &Path) -> Result<Row> {
    let read = || format!("cannot read {}", kernel.display());
    let bytes = std::fs::read(kernel).with_context(read)?;
    let file = object::File::parse(&*bytes).with_context(read)?;
    let rooms: Vec<String> = ROOMS.iter().map(|room| mangled(room)).collect();
    let parts = || rooms.iter().map(String::as_str).chain([TRAMPOLINE]);
    let is_of_it = |name: &str| parts().any(|part| name.contains(part));
    let functions = file.symbols().filter(|symbol| {
        symbol.kind() == object::SymbolKind::Text && symbol.name().is_ok_and(is_of_it)
    });
    let sizes: Vec<u64> = functions.map(|symbol| symbol.size()).collect();
    let row = Row::baton("smp", "smp/text", sizes.iter().sum::<u64>() as f64 / 1024.0);
    Ok(row
        .unit("KiB")
        .of("baton", "symbols of the kernel")
        .with("functions", sizes.len().to_string()))
}

/// How the names of functions in `room` of the kernel go on behind their encoding's prefix.
fn mangled(room: &str) -> String {
    let parts = std::iter::once("kernel").chain(room.split('/'));
    parts.map(|part| format!("{}{part}", part.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::instrument::pairs as sample;
    use super::*;

    /// Two processors whose messages take 50 and 100 instructions each, then two unmaps.
    fn machine() -> Measured {
        let talk = |at: u64, cpu: u64| {
            let clock = at * 50 * (cpu + 1);
            format!("0 user=3 kernel=36 cpu={cpu} begin={} phase=1 clock={clock}", at % 2)
        };
        let talks = (0..80).flat_map(|at| [talk(at, 0), talk(at, 1)]);
        let unmaps = [
            "0 user=9 kernel=700 cpu=0 phase=5 messages=0",
            "0 user=9 kernel=950 okernel=90 cpu=0 phase=6 messages=1",
            "0 user=9 kernel=900 okernel=100 cpu=0 phase=6 messages=1",
        ];
        let handled = (0..4).map(|at| {
            let (kernel, phase) = (300 + 100 * at, 7 + at % 2);
            format!("0 user=0 kernel={kernel} cpu=0 begin=0 phase={phase} clock=0")
        });
        let all = talks.chain(unmaps.map(str::to_owned)).chain(handled);
        let log = vec![
            "processors: 2, started: 2; pages of memory for the others: 36, of roots: 4".to_owned(),
        ];
        Measured { samples: all.map(|line| sample(&line)).collect(), log, ..Measured::default() }
    }

    #[test]
    fn rooms_whose_text_is_counted_are_there() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/src");
        for room in ROOMS {
            let (folder, file) = (source.join(room), source.join(format!("{room}.rs")));
            assert!(folder.is_dir() || file.is_file(), "there is no {room}: was it moved?");
        }
        assert_eq!(mangled("irq/quick"), "6kernel3irq5quick");
    }

    #[test]
    fn what_each_processor_adds_is_what_is_beyond_one() {
        let (alone, both) = (machine(), machine());
        let rows = rows(&[(1, &alone), (2, &both)]);
        let of = |name: &str| {
            let row = rows.iter().rfind(|row| row.name == name).unwrap();
            (row.value, row.parameter("processors"))
        };
        assert_eq!(of("smp/pairs"), (36.0, Some(2)));
        assert_eq!(of("smp/pairs-total"), (30_000.0, Some(2)));
        assert_eq!(of("smp/unmap-local"), (700.0, Some(2)));
        assert_eq!(of("smp/invalidation"), (300.0, Some(2)));
        assert_eq!(of("smp/memory"), (128.0, Some(2)));
        assert_eq!(of("smp/handler"), (600.0, Some(2)));
        let row = |name: &str| rows.iter().rfind(|row| row.name == name).unwrap();
        assert_eq!(row("smp/handler").parameters["without_a_crowd"], "500");
        assert_eq!(row("smp/invalidation").parameters["samples"], "2");
    }
}
