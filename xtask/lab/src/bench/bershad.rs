//! The tables of Bershad et al. 1990 with today's figures beside theirs: where the instructions of a null procedure call go (Table V),
//! calls of several processors into one server (Figure 2), and how often an argument is written on its way (3.5).

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use super::instrument::{Measured, Sample, Series, Trace, count};
use super::row::Row;
use super::trace::{self, Step, Symbols};
use super::{Bench, LRPC, Program};
use crate::compose::Selection;

/// Four processors, and a client on each.
pub const SEVERAL: Program = Program { cpus: 4, ..Program::new("bench-lrpc-smp", 512, 120) };

/// Bytes of the argument that is followed.
const BIG: f64 = 200.0;
/// The ways of a call whose copies are counted: how the rows call them, and we.
const WAYS: [(&str, &str); 4] = [
    ("register", "messages"),
    ("calls", "procedure calls"),
    ("local", "local IPC"),
    ("inside", "functions"),
];
/// In the kernel, before it is known that this is a procedure call.
const ENTRY: [&str; 2] = ["baton_ipc_entry", "baton_not_simple"];
/// What the parts of one direction in the kernel are called.
const PARTS: [&str; 5] =
    ["entry", "validation", "linkage and states", "address space", "back to user mode"];

/// Everything that this page adds to suite `lrpc`.
///
/// # Errors
/// When something cannot be measured.
pub fn rows(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = breakdown(bench)?;
    rows.extend(copies(bench)?);
    let measured = bench.run(&SEVERAL, Trace::None)?;
    rows.extend(figure_2(measured));
    rows.extend(shared(measured));
    Ok(rows)
}

/// The instructions of the cheapest sample of a row.
fn steps_of(bench: &mut Bench<'_>, name: &str) -> Result<Vec<Step>> {
    let series = bench.run(&LRPC, Trace::None)?.find(name, &[]).and_then(Series::best);
    let (sample, _) = series.with_context(|| format!("there is no row {name}"))?;
    let lines = bench.traced(&LRPC, sample)?;
    Ok(trace::read(&lines))
}

/// Rows `lrpc/null-step`: a null procedure call in parts.
fn breakdown(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    let steps = steps_of(bench, "lrpc/null-calls-user")?;
    let selection = Selection { root: Some(LRPC.name.to_owned()), ..Selection::default() };
    let bootable = bench.composer.compose(&selection, LRPC.name)?;
    let program = bootable.servers.last().context("the image has no program")?;
    let symbols = Symbols::of(&steps, &bootable.kernel, program, &bench.workspace.root)?;
    let parts: Vec<&[Step]> = steps.chunk_by(|one, next| one.kernel == next.kernel).collect();
    let [client, call, server, answer, end] = parts[..] else {
        anyhow::bail!("a null procedure call enters the kernel another number of times than twice")
    };
    let row = |step: &str, way: &str, count: usize| {
        Row::baton("lrpc", "lrpc/null-step", count as f64).with("step", step).with("way", way)
    };
    let mut rows = vec![row("client's stub", "call", client.len())];
    rows.extend(PARTS.iter().zip(inside_kernel(call, &symbols)?).map(|(p, n)| row(p, "call", n)));
    rows.push(row("server's stub and procedure", "call", server.len()));
    rows.extend(
        PARTS.iter().zip(inside_kernel(answer, &symbols)?).map(|(p, n)| row(p, "return", n)),
    );
    rows.push(row("client's stub", "return", end.len()));
    Ok(rows)
}

/// One direction in the kernel: entry; checks, which write nothing; what they allow, up to the address space; that; the rest.
fn inside_kernel(steps: &[Step], symbols: &Symbols) -> Result<[usize; 5]> {
    let entry =
        steps.iter().take_while(|step| ENTRY.contains(&symbols.get(step.address).0)).count();
    let rest = &steps[entry..];
    let writes = |step: &Step| step.accesses.iter().any(|access| access.starts_with('w'));
    let checks = rest.iter().take_while(|step| !writes(step)).count();
    let root = rest.iter().position(|step| step.text.ends_with("%cr3"));
    let root = root.context("a procedure call does not change the address space")?;
    ensure!(entry > 0 && checks < root, "the kernel's part of a procedure call has another order");
    // The root is loaded, then set.
    Ok([entry, checks, root - 1 - checks, 2, rest.len() - root - 1])
}

/// Rows `lrpc/bytes-written`: how often each byte of an argument is written on its way, there alone and there and back.
fn copies(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (way, name) in WAYS {
        let mut written = |call: &str| -> Result<f64> {
            Ok(bytes_written(&steps_of(bench, &format!("lrpc/{call}-{way}-user"))?))
        };
        let null = written("null")?;
        for call in ["big-in", "big-in-out"] {
            let each = ((written(call)? - null) / BIG * 10.0).round() / 10.0;
            let row = Row::baton("lrpc", "lrpc/bytes-written", each).unit("per byte of argument");
            rows.push(row.with("call", call).with("way", name));
        }
    }
    Ok(rows)
}

fn bytes_written(steps: &[Step]) -> f64 {
    let accesses = steps.iter().flat_map(|step| &step.accesses);
    let writes = accesses.filter_map(|access| access.strip_prefix("w "));
    let bytes = writes.filter_map(|access| access.split(' ').nth(1)?.parse::<u64>().ok());
    bytes.sum::<u64>() as f64
}

fn of_phase(measured: &Measured, phase: u64) -> Vec<&Sample> {
    let samples = measured.samples.iter().filter(|sample| sample.contains_key("cpu"));
    samples.filter(|sample| count(sample, "phase") == phase).collect()
}

/// Rows `lrpc/figure-2`: the first processors' clients at the same time; behind them the second one's alone.
fn figure_2(measured: &Measured) -> Vec<Row> {
    let processors = u64::from(SEVERAL.cpus);
    let point = |phase: u64| {
        let samples = of_phase(measured, phase);
        let (first, last) = (samples.first()?, samples.last()?);
        let calls = samples.len().checked_sub(1).filter(|calls| *calls > 0)? as f64;
        let executed = |cpu| {
            let name = format!("clock{cpu}");
            count(last, &name).saturating_sub(count(first, &name)) as f64
        };
        let each: Vec<f64> = (0..processors).map(executed).collect();
        let busiest = each.iter().copied().fold(0.0, f64::max);
        let value = (calls * 1e4 / busiest).round() / 10.0;
        let row = Row::baton("lrpc", "lrpc/figure-2", value)
            .unit("calls per 1000 instructions of the busiest processor")
            .with("calls", samples.len() as u64)
            .with("first_processor", ((each[0] / calls).round() as u64).to_string())
            .with("all", ((each.iter().sum::<f64>() / calls).round() as u64).to_string());
        Some(match phase > processors {
            true => row.with("alone_on", "the second"),
            false => row.with("processors", phase),
        })
    };
    (1..=processors + 1).filter_map(point).collect()
}

/// Row `lrpc/shared-lines`: of calls of all processors into one server at the same time that stay on their processor, as in
/// `smp/shared-lines`; beside it how many these are, and the lines of all, whatever the processors do for them.
fn shared(measured: &Measured) -> Option<Row> {
    let samples = of_phase(measured, SEVERAL.cpus.into());
    let most = |name: &str| samples.iter().map(|sample| count(sample, name)).max();
    let quiet = |cpu: u64| {
        let own = samples.iter().filter(|sample| count(sample, "cpu") == cpu);
        own.filter(|sample| count(sample, "iret") + count(sample, "halt") == 0).count()
    };
    let locked = |first: bool| {
        let of = samples.iter().filter(|sample| (count(sample, "cpu") == 0) == first);
        of.map(|sample| count(sample, "locked")).min().unwrap_or(0).to_string()
    };
    let stay: Vec<String> = (0..SEVERAL.cpus.into()).map(|cpu| quiet(cpu).to_string()).collect();
    let row = Row::baton("lrpc", "lrpc/shared-lines", most("kshared")? as f64).unit("lines");
    Some(
        row.with("user_lines", most("ushared")?.to_string())
            .with("of_all_calls", (most("kany")? + most("uany")?).to_string())
            .with("calls", (samples.len() as u64 / u64::from(SEVERAL.cpus)).to_string())
            .with("calls_that_stay", stay.join(" "))
            .with("locked_on_the_first", locked(true))
            .with("locked_elsewhere", locked(false)),
    )
}

fn text(row: &Row, name: &str) -> String {
    let value = row.parameters.get(name);
    value.map_or_else(String::new, |value| value.as_str().map_or(value.to_string(), str::to_owned))
}

/// The tables; the columns of 1990 are microseconds of a C-VAX Firefly, and calls per second.
#[must_use]
pub fn tables(rows: &[Row]) -> String {
    table_v(rows) + &points(rows) + &written(rows)
}

fn table_v(rows: &[Row]) -> String {
    let steps: Vec<&Row> = rows.iter().filter(|row| row.name == "lrpc/null-step").collect();
    let sum = |wanted: &[&str]| {
        let of = steps.iter().filter(|row| wanted.contains(&&*text(row, "step")));
        of.map(|row| row.value).sum::<f64>()
    };
    let plain = rows.iter().find(|row| row.name == "lrpc/null-plain-user");
    let [entry, validation, linkage, root, back] = PARTS;
    let mut out =
        String::from("\nBershad 1990, Table V, a null procedure call; today: instructions\n");
    for (what, today, paper) in [
        ("procedure call", plain.map_or(f64::NAN, |row| row.value), "7 us"),
        ("two kernel traps", sum(&[entry, back]), "36 us"),
        ("two context switches", sum(&[root]), "66 us"),
        ("client's stub", sum(&["client's stub"]), "18 us"),
        ("server's stub", sum(&["server's stub and procedure"]), "3 us"),
        ("binding validation", sum(&[validation]), "27 us, with linkage"),
        ("linkage, states of both", sum(&[linkage]), ""),
        ("all but the first line", steps.iter().map(|row| row.value).sum(), "157 us with it"),
    ] {
        let _ = writeln!(out, "  {what:<28}{today:>8}    {paper}");
    }
    out += "  step by step:\n";
    for row in steps {
        let _ =
            writeln!(out, "    {:<8}{:<32}{:>4}", text(row, "way"), text(row, "step"), row.value);
    }
    out
}

fn points(rows: &[Row]) -> String {
    let mut out = String::from(
        "\nBershad 1990, Figure 2, calls of independent clients into one server; calls per 1000 instructions of the busiest processor\n",
    );
    for row in rows.iter().filter(|row| row.name == "lrpc/figure-2") {
        let processors = text(row, "processors");
        let (what, paper) = match processors.as_str() {
            "" => ("the second alone", ""),
            "1" => ("1 processor", "6,300 a second"),
            "4" => ("4 processors", "23,000 a second"),
            "2" => ("2 processors", ""),
            _ => ("3 processors", ""),
        };
        let _ = writeln!(
            out,
            "  {what:<20}{:>8}   {:>6} instructions of the first, {:>6} of all for a call   {paper}",
            row.value,
            text(row, "first_processor"),
            text(row, "all")
        );
    }
    if let Some(row) = rows.iter().find(|row| row.name == "lrpc/shared-lines") {
        let _ = writeln!(
            out,
            "  of {} calls on each of four processors, {} stay there; lines that one processor writes and another one touches meanwhile: {} of the kernel's, {} of \
             programs', in all calls {}; locked instructions of a call on the first {}, elsewhere {}",
            text(row, "calls"),
            text(row, "calls_that_stay"),
            row.value,
            text(row, "user_lines"),
            text(row, "of_all_calls"),
            text(row, "locked_on_the_first"),
            text(row, "locked_elsewhere")
        );
    }
    out
}

fn written(rows: &[Row]) -> String {
    let mut out = String::from(
        "\nHow often each byte of 200 is written on its way (the copies are in docs/services.md)\n",
    );
    for (_, way) in WAYS {
        let of = |call: &str| {
            let mut own = rows.iter().filter(|row| row.name == "lrpc/bytes-written");
            let found = own.find(|row| text(row, "way") == way && text(row, "call") == call);
            found.map_or_else(String::new, |row| row.value.to_string())
        };
        let _ = writeln!(
            out,
            "  {way:<20} there {:>5}   there and back {:>5}",
            of("big-in"),
            of("big-in-out")
        );
    }
    out
}
