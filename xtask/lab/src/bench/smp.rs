//! Suite `smp`: the samples of several processors, each counted apart. A thread may have gone to another
//! processor in the middle of a sample: the least of many counts.
//!
//! What is compared between machines is in `several`.

use std::collections::BTreeMap;

use super::instrument::{Measured, Sample, count};
use super::row::Row;

/// What the measured program does in the phases between its marks.
pub(super) const INDEPENDENT: u64 = 1;
/// See [`INDEPENDENT`].
const CROSSING: u64 = 2;
/// See [`INDEPENDENT`]: two processors write one word.
const SHARING: u64 = 3;
/// See [`INDEPENDENT`]: messages without the kernel.
const LOCAL: u64 = 4;
/// See [`INDEPENDENT`]: pages are taken back of whose space nobody is elsewhere.
pub(super) const TAKEN: u64 = 5;
/// See [`INDEPENDENT`]: somebody of it is on each other processor.
pub(super) const TAKEN_EVERYWHERE: u64 = 6;
/// See [`INDEPENDENT`]: a handler's interrupts come while somebody computes.
pub(super) const HANDLED: u64 = 7;
/// See [`INDEPENDENT`]: and a crowd calls from the other processors.
pub(super) const HANDLED_IN_A_CROWD: u64 = 8;
/// What an exchange between processors takes.
const CROSSING_ROW: &str = "smp/cross-processor-roundtrip";
/// The rows of one sample, and their phases.
const OF_A_SAMPLE: [(&str, u64); 3] =
    [(CROSSING_ROW, CROSSING), ("smp/unmap-local", TAKEN), ("smp/invalidation", TAKEN_EVERYWHERE)];
/// So many samples of a kind, or they are none of an exchange.
const LEAST: usize = 16;

/// The samples of a phase.
pub(super) fn phase(measured: &Measured, phase: u64) -> impl Iterator<Item = &Sample> {
    let of_several = |sample: &&Sample| sample.contains_key("cpu");
    measured.samples.iter().filter(of_several).filter(move |sample| count(sample, "phase") == phase)
}

/// The best samples of each processor by the place where they began: the two directions of an exchange.
pub(super) fn exchanges(measured: &Measured, which: u64) -> BTreeMap<u64, Vec<(usize, &Sample)>> {
    let mut kinds: BTreeMap<(u64, u64), Vec<&Sample>> = BTreeMap::new();
    for sample in phase(measured, which) {
        kinds.entry((count(sample, "cpu"), count(sample, "begin"))).or_default().push(sample);
    }
    let mut best: BTreeMap<u64, Vec<(usize, &Sample)>> = BTreeMap::new();
    for ((cpu, _), samples) in kinds.into_iter().filter(|(_, samples)| samples.len() >= LEAST) {
        let cost = |sample: &&&Sample| (count(sample, "kernel"), count(sample, "user"));
        let least = samples.iter().min_by_key(cost).copied();
        best.entry(cpu).or_default().extend(least.map(|least| (samples.len(), least)));
    }
    best
}

/// A row per processor, the worse of the two directions; how many lines were shared meanwhile; what
/// an exchange between processors takes on both.
#[must_use]
pub fn rows(measured: &Measured) -> Vec<Row> {
    let mut rows = Vec::new();
    for (cpu, directions) in exchanges(measured, INDEPENDENT) {
        let kernel = |(_, sample): &(usize, &Sample)| count(sample, "kernel");
        let Some((samples, worst)) = directions.iter().max_by_key(|one| kernel(one)) else {
            continue;
        };
        let row = Row::baton("smp", "smp/short-cross-kernel", count(worst, "kernel") as f64);
        let stay = phase(measured, INDEPENDENT).filter(|sample| {
            count(sample, "cpu") == cpu && count(sample, "kernel") == kernel(&(0, worst))
        });
        rows.push(
            row.with("processor", cpu)
                .with("directions", directions.len() as u64)
                .with("samples", *samples as u64)
                .with("samples_like_this", stay.count() as u64)
                .with("kernel_data_lines", count(worst, "kdlines").to_string()),
        );
    }
    let of = |which, name: &str| phase(measured, which).map(|sample| count(sample, name)).max();
    let shared = |name: &str| of(INDEPENDENT, name);
    // What is known to be shared has to be found, or nothing is said.
    let finds = of(SHARING, "ushared") == Some(1);
    if let (Some(kernel), Some(user), true) = (shared("kshared"), shared("ushared"), finds) {
        let row = Row::baton("smp", "smp/shared-lines", kernel as f64).unit("lines");
        rows.push(row.with("user_lines", user.to_string()));
    }
    rows.extend(local(measured));
    if let Some((_, best)) = cheapest(measured, CROSSING) {
        let row = Row::baton("smp", CROSSING_ROW, total(best) as f64);
        rows.push(
            row.with("first_processor", count(best, "kernel").to_string())
                .with("others", count(best, "okernel").to_string())
                .with("samples", samples_of(measured, CROSSING))
                .with(
                    "user_instructions",
                    (count(best, "user") + count(best, "ouser")).to_string(),
                ),
        );
        let messages = count(best, "messages") as f64;
        rows.push(Row::baton("smp", "smp/cross-processor-interrupts", messages).unit("interrupts"));
    }
    rows
}

/// A row per processor of messages without the kernel: the user's instructions, of the worse of the two directions.
fn local(measured: &Measured) -> Vec<Row> {
    let lines = |name: &str| phase(measured, LOCAL).map(|sample| count(sample, name)).max();
    let (kernel_lines, user_lines) = (lines("kshared"), lines("ushared"));
    let of_processor = |(cpu, directions): (u64, Vec<(usize, &Sample)>)| {
        let most = |name: &str| directions.iter().map(|(_, sample)| count(sample, name)).max();
        let row = Row::baton("smp", "smp/local-ipc", most("user")? as f64).with("processor", cpu);
        Some(
            row.with("directions", directions.len() as u64)
                .with("samples", directions.iter().map(|(samples, _)| *samples as u64).sum::<u64>())
                .with("kernel_instructions", most("kernel")?.to_string())
                .with("shared_kernel_lines", kernel_lines.unwrap_or_default().to_string())
                .with("shared_user_lines", user_lines.unwrap_or_default().to_string()),
        )
    };
    exchanges(measured, LOCAL).into_iter().filter_map(of_processor).collect()
}

/// The kernel's instructions on all processors.
pub(super) fn total(sample: &Sample) -> u64 {
    count(sample, "kernel") + count(sample, "okernel")
}

/// Of how many samples of a phase the cheapest is the least, as a remark.
pub(super) fn samples_of(measured: &Measured, which: u64) -> String {
    phase(measured, which).count().to_string()
}

/// The cheapest sample of a phase, on all processors, and its number.
pub(super) fn cheapest(measured: &Measured, phase: u64) -> Option<(u64, &Sample)> {
    let is_one = |sample: &Sample| sample.contains_key("cpu") && count(sample, "phase") == phase;
    let numbered = (0..).zip(&measured.samples).filter(|(_, sample)| is_one(sample));
    numbered.min_by_key(|(_, sample)| total(sample))
}

/// The number of the sample behind the row `name`, if that is one of a sample.
#[must_use]
pub fn sample_of(measured: &Measured, name: &str) -> Option<u64> {
    let (_, phase) = OF_A_SAMPLE.into_iter().find(|(row, _)| *row == name)?;
    cheapest(measured, phase).map(|(number, _)| number)
}
