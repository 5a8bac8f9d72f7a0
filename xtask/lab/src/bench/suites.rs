//! From what the measured programs gave to rows: suites `ipc`, `working-set`,
//! `minimum`, `ops`, `growth`, `lipc`.

use super::instrument::{Measured, Sample, Series, count};
use super::peers;
use super::row::Row;

/// The least instruction sequence for a null IPC on x86-64, kernel side (Table 3 of
/// the 1993 paper, redone for this processor; docs/measuring.md has the argument).
const MINIMUM: [(&str, u64); 7] = [
    ("save stack, instruction pointer, flags of the sender", 3),
    (
        "find the receiver's control block from its id and check it (shift, mask, compare, branch)",
        5,
    ),
    ("note that the sender waits, that the receiver does not", 2),
    ("switch the address space (load, write CR3)", 2),
    ("current thread, its UTCB, its GS base", 4),
    ("load the receiver's stack, instruction pointer, flags", 3),
    ("sysret", 1),
];

/// Kernel instructions of the best sample.
pub fn kernel(series: &Series) -> f64 {
    series.best().map_or(f64::NAN, |(_, sample)| count(sample, "kernel") as f64)
}

/// A row per series, kernel instructions, with the rest as parameters.
fn plain(suite: &str, series: &Series) -> Option<Row> {
    let (_, best) = series.best()?;
    let mut row = Row::baton(suite, &series.name, count(best, "kernel") as f64);
    for (name, value) in &series.parameters {
        row = row.with(name, *value);
    }
    Some(with_counts(row, best))
}

/// The sample's other counts, as parameters whose names cannot be mistaken for circumstances.
fn with_counts(mut row: Row, sample: &Sample) -> Row {
    row = row.with("user_instructions", count(sample, "user").to_string());
    for (name, counter) in [
        ("kernel_entries", "entries"),
        ("interrupts_off", "off"),
        ("kernel_code_lines", "kclines"),
        ("kernel_data_lines", "kdlines"),
    ] {
        row = row.with(name, count(sample, counter).to_string());
    }
    for costly in
        ["mov_cr", "wrmsr", "gsbase", "invlpg", "invpcid", "locked", "xsave", "serialising", "io"]
    {
        if count(sample, costly) > 0 {
            row = row.with(costly, count(sample, costly).to_string());
        }
    }
    row
}

/// The worse of the two directions.
fn both_ways(measured: &Measured, place: &str, words: u64, name: &str) -> Option<Row> {
    both(measured, &format!("words-{place}"), words, name)
}

/// The same of any two rows `ipc/SERIES-call` and `-reply`.
fn both(measured: &Measured, series: &str, words: u64, name: &str) -> Option<Row> {
    let call = kernel(measured.find(&format!("ipc/{series}-call"), &[("words", words)])?);
    let reply = kernel(measured.find(&format!("ipc/{series}-reply"), &[("words", words)])?);
    let row = Row::baton("ipc", name, call.max(reply));
    Some(row.with("call", call.to_string()).with("reply", reply.to_string()))
}

/// The names that other programs rely on, of suite `ipc`.
pub fn headline(measured: &Measured) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(both_ways(measured, "cross", 0, "ipc/short-cross-kernel"));
    rows.extend(both_ways(measured, "local", 0, "ipc/short-local-kernel"));
    rows.extend(both(measured, "complete-cross", 0, "ipc/short-cross-kernel-complete"));
    rows.extend(both(measured, "vector-dead-cross", 0, "ipc/short-cross-kernel-vector"));
    rows.extend(both(measured, "vector-kept-cross", 0, "ipc/short-cross-kernel-x2-vector"));
    rows.extend(both_ways(measured, "cross", 63, "ipc/63-words-cross-kernel"));
    rows.extend(both_ways(measured, "local", 63, "ipc/63-words-local-kernel"));
    for (series, name) in [
        ("ipc/string-cross", "ipc/string-4096-kernel"),
        ("ipc/string-cross-unaligned", "ipc/string-4096-kernel-unaligned"),
    ] {
        let string = measured.find(series, &[("bytes", 4096)]);
        rows.extend(string.map(|string| Row::baton("ipc", name, kernel(string))));
    }
    if let Some((_, trip)) =
        measured.find("ipc/words-cross-roundtrip", &[("words", 0)]).and_then(Series::best)
    {
        let total = count(trip, "kernel") + count(trip, "user");
        rows.push(Row::baton("ipc", "ipc/short-cross-roundtrip-total", total as f64));
        rows.push(Row::baton("rpc", "rpc/round-trip", count(trip, "kernel") as f64));
    }
    rows
}

/// Suite `ipc`: the headline, every length, the slope per byte.
#[must_use]
pub fn ipc(measured: &Measured) -> Vec<Row> {
    let mut rows: Vec<Row> =
        headline(measured).into_iter().filter(|row| row.suite == "ipc").collect();
    rows.extend(
        measured
            .series
            .iter()
            .filter(|s| s.name.starts_with("ipc/"))
            .filter_map(|s| plain("ipc", s)),
    );
    for place in ["cross", "local"] {
        let name = format!("ipc/string-{place}");
        let at = |bytes| measured.find(&name, &[("bytes", bytes)]).map(kernel);
        if let (Some(short), Some(long)) = (at(4096), at(4_194_304)) {
            let slope = (long - short) / (4_194_304.0 - 4096.0);
            rows.push(
                Row::baton("ipc", &format!("ipc/string-{place}-slope"), slope)
                    .unit("instructions per byte"),
            );
        }
    }
    rows.extend(peers::rows("ipc", "ipc/"));
    rows
}

/// Suite `working-set`: lines and pages that one IPC touches in the kernel.
#[must_use]
pub fn working_set(measured: &Measured) -> Vec<Row> {
    let mut rows = Vec::new();
    let short = ["ipc/words-cross-call", "ipc/words-cross-reply"]
        .map(|name| measured.find(name, &[("words", 0)]));
    let string = measured.find("ipc/string-cross", &[("bytes", 4096)]);
    let most = |counter: &str| {
        let samples = short.iter().flatten().filter_map(|series| series.best());
        samples.map(|(_, sample)| count(sample, counter)).max()
    };
    for (name, counter, unit) in [
        ("kernel-data-lines", "kdlines", "lines"),
        ("kernel-code-lines", "kclines", "lines"),
        ("kernel-pages", "kpages", "pages"),
    ] {
        if let Some(value) = most(counter) {
            rows.push(
                Row::baton("working-set", &format!("working-set/{name}"), value as f64).unit(unit),
            );
        }
        if let Some((_, sample)) = string.and_then(Series::best) {
            let name = format!("working-set/string-4096-{name}");
            rows.push(Row::baton("working-set", &name, count(sample, counter) as f64).unit(unit));
        }
    }
    if let (Some(data), Some(code)) = (most("kdlines"), most("kclines")) {
        // The paper: 592 bytes, 7 % of the 486's 8 KiB. Today's first-level caches: 32 KiB each.
        let bytes = (data + code) * 64;
        rows.push(
            Row::baton("working-set", "working-set/kernel-bytes", bytes as f64).unit("bytes"),
        );
        rows.push(
            Row::baton("working-set", "working-set/kernel-bytes", 592.0)
                .unit("bytes")
                .of("paper", "recorded"),
        );
        let share = bytes as f64 * 100.0 / 65_536.0;
        rows.push(Row::baton("working-set", "working-set/cache-share", share).unit("percent"));
        rows.push(
            Row::baton("working-set", "working-set/cache-share", 7.0)
                .unit("percent")
                .of("paper", "recorded"),
        );
    }
    rows
}

/// Suite `minimum`: the least that a null IPC needs beside what is executed.
#[must_use]
pub fn minimum(measured: &Measured) -> Vec<Row> {
    let mut rows: Vec<Row> = MINIMUM
        .iter()
        .map(|(what, instructions)| {
            Row::baton("minimum", "minimum/step", *instructions as f64)
                .of("minimum", "by hand")
                .with("what", *what)
        })
        .collect();
    let least: u64 = MINIMUM.iter().map(|(_, instructions)| instructions).sum();
    rows.push(Row::baton("minimum", "minimum/short-cross", least as f64).of("minimum", "by hand"));
    if let Some(row) = both_ways(measured, "cross", 0, "minimum/short-cross") {
        rows.push(Row { suite: "minimum".to_owned(), ..row });
    }
    rows
}

/// Suite `ops` or `growth`: kernel instructions of everything else.
#[must_use]
pub fn operations(suite: &str, measured: &Measured) -> Vec<Row> {
    let prefix = format!("{suite}/");
    let mut rows: Vec<Row> = measured
        .series
        .iter()
        .filter(|s| s.name.starts_with(&prefix))
        .filter_map(|s| plain(suite, &single_entry(s)))
        .collect();
    rows.extend(peers::rows(suite, &prefix));
    rows
}

/// A timer tick is a sample with exactly one kernel entry; the others saw two, or none.
fn single_entry(series: &Series) -> Series {
    let mut series = series.clone();
    if series.name.ends_with("/timer-tick") {
        series.samples.retain(|sample| count(sample, "entries") == 1);
    }
    series
}

/// Suite `lrpc`: user instructions of client and server together, for one call by stubs.
#[must_use]
pub fn stubs(measured: &Measured) -> Vec<Row> {
    let calls = measured.series.iter().filter(|series| series.name.starts_with("lrpc/"));
    let row = |series: &Series| {
        let (_, best) = series.best()?;
        let row = Row::baton("lrpc", &series.name, count(best, "user") as f64);
        let kernel = count(best, "kernel").to_string();
        Some(row.with("kernel", kernel).with("kernel_entries", count(best, "entries").to_string()))
    };
    calls.filter_map(row).collect()
}

/// Suite `lipc`: messages between threads of one space, beside Wenske's tables (2002, section 6;
/// cycles of a Pentium III as parameters).
#[must_use]
pub fn local(measured: &Measured) -> Vec<Row> {
    let worse = |names: [&str; 2], counter: &str| {
        let best = |name| measured.find(name, &[("words", 0)]).and_then(Series::best);
        let counts = names.map(|name| best(name).map(|(_, sample)| count(sample, counter)));
        Some(counts[0]?.max(counts[1]?) as f64)
    };
    let hidden = ["lipc/call", "lipc/reply"];
    let vector = ["lipc/vector-call", "lipc/vector-reply"];
    let armed_vector = ["lipc/armed-vector-call", "lipc/armed-vector-reply"];
    let armed = ["lipc/armed-local-call", "lipc/armed-local-reply"];
    let armed_cross = ["lipc/armed-cross-call", "lipc/armed-cross-reply"];
    let local = ["ipc/words-local-call", "ipc/words-local-reply"];
    let cross = ["ipc/words-cross-call", "ipc/words-cross-reply"];
    // Name, which samples, what of them, and the paper's kernel without and with local IPC.
    let table: [(&str, [&str; 2], &str, &str, &str); 8] = [
        ("lipc/one-way-user", hidden, "user", "not possible", "23"),
        // Who has used the coprocessor went through the prototype's kernel (4.7).
        ("lipc/one-way-user-vector", vector, "user", "not possible", "349"),
        ("lipc/armed-kernel-vector", armed_vector, "kernel", "306", "349"),
        ("lipc/one-way-kernel", hidden, "kernel", "not possible", "0"),
        ("lipc/others-inside-kernel", local, "kernel", "306", "349"),
        ("lipc/others-between-kernel", cross, "kernel", "488", "634"),
        ("lipc/armed-kernel", armed, "kernel", "306", "349"),
        ("lipc/armed-cross-kernel", armed_cross, "kernel", "488", "634"),
    ];
    let row = |(name, names, counter, before, prototype): (&str, [&str; 2], &str, &str, &str)| {
        let row = Row::baton("lipc", name, worse(names, counter)?);
        Some(row.with("paper_unmodified_cycles", before).with("paper_prototype_cycles", prototype))
    };
    let mut rows: Vec<Row> = table.into_iter().filter_map(row).collect();
    if let Some((_, best)) = measured.find("lipc/section", &[]).and_then(Series::best) {
        let row = Row::baton("lipc", "lipc/section-user", count(best, "user") as f64);
        rows.push(row.with("kernel_entries", count(best, "entries").to_string()));
    }
    if let Some((_, best)) = measured.find("lipc/nested", &[]).and_then(Series::best) {
        let all = count(best, "user") + count(best, "kernel");
        let row = Row::baton("lipc", "lipc/nested", all as f64);
        rows.push(row.with("kernel_entries", count(best, "entries").to_string()));
    }
    rows.extend(fix_ups(measured));
    rows.extend(peers::rows("lipc", "lipc/"));
    rows
}

/// What a tick pays for messages in user mode that it finds, over one that finds none.
fn fix_ups(measured: &Measured) -> Vec<Row> {
    let ticks = measured.series.iter().filter(|series| series.name == "lipc/fix-up/timer-tick");
    let row = |found: &Series| {
        let threads = *found.parameters.get("threads")?;
        let kernel = |series: &Series| {
            // The middle one: a tick may do something else, too, or come too early.
            let whole = series.samples.iter().filter(|sample| count(sample, "entries") == 1);
            let mut counts: Vec<u64> = whole.map(|sample| count(sample, "kernel")).collect();
            counts.sort_unstable();
            counts.get(counts.len() / 2).copied()
        };
        let none = kernel(measured.find("lipc/armed/timer-tick", &[("threads", threads)])?)?;
        let more = kernel(found)?.saturating_sub(none);
        let row =
            Row::baton("lipc", "lipc/fix-up", more as f64).with("threads", threads.to_string());
        Some(row.with("tick_without", none.to_string()))
    };
    ticks.filter_map(row).collect()
}

/// Suite `rpc`: a null call and its answer, on all systems; Linux by each of its ways
/// of waking another process.
#[must_use]
pub fn rpc(measured: &Measured, linux: &[Row]) -> Vec<Row> {
    let mut rows: Vec<Row> =
        headline(measured).into_iter().filter(|row| row.suite == "rpc").collect();
    rows.extend(peers::rows("rpc", "rpc/"));
    for row in linux {
        let Some(via) =
            row.name.strip_prefix("linux/").and_then(|name| name.strip_suffix("-roundtrip"))
        else {
            continue;
        };
        if row.parameter("bytes").is_none_or(|bytes| bytes == 1) {
            let rpc =
                Row { suite: "rpc".to_owned(), name: "rpc/round-trip".to_owned(), ..row.clone() };
            rows.push(rpc.with("via", via));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn sample(kernel: u64, entries: u64) -> Sample {
        [("kernel", kernel), ("user", 1), ("entries", entries), ("kdlines", 3)]
            .map(|(k, v)| (k.to_owned(), v))
            .into()
    }

    fn series(name: &str, parameter: (&str, u64), samples: Vec<Sample>) -> Series {
        let parameters = BTreeMap::from([(parameter.0.to_owned(), parameter.1)]);
        Series { name: name.to_owned(), parameters, first: 0, stride: 1, samples }
    }

    #[test]
    fn the_headline_is_the_worse_direction_of_the_best_samples() {
        let measured = Measured {
            series: vec![
                series("ipc/words-cross-call", ("words", 0), vec![sample(40, 1), sample(34, 1)]),
                series("ipc/words-cross-reply", ("words", 0), vec![sample(35, 1), sample(400, 2)]),
            ],
            ..Measured::default()
        };
        let rows = headline(&measured);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].name.as_str(), rows[0].value), ("ipc/short-cross-kernel", 35.0));
        assert!(
            working_set(&measured)
                .iter()
                .any(|r| r.name == "working-set/kernel-data-lines" && r.value == 3.0)
        );
    }

    #[test]
    fn only_whole_ticks_count() {
        let ticks = series(
            "ops/timer-tick",
            ("threads", 10),
            vec![sample(0, 0), sample(600, 2), sample(284, 1)],
        );
        let rows = operations("ops", &Measured { series: vec![ticks], ..Measured::default() });
        assert_eq!(rows[0].value, 284.0);
        assert_eq!(rows[0].parameter("threads"), Some(10));
    }

    #[test]
    fn a_tick_that_wakes_somebody_is_none_although_its_program_did_less() {
        let mut long = sample(131, 1);
        long.insert("user".to_owned(), 1_000);
        let ticks = series("ops/timer-tick", ("threads", 1), vec![long, sample(374, 1)]);
        let rows = operations("ops", &Measured { series: vec![ticks], ..Measured::default() });
        assert_eq!(rows[0].value, 131.0);
    }
}
