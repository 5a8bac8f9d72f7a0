//! What people get: tables on the terminal, `report.html` with plots, `report.json`
//! and `report.csv` for programs.

use std::path::Path;

use anyhow::{Context, Result};

use super::history::Entry;
use super::plot::{Axes, Line, escape, svg};
use super::row::{Row, readable};
use super::{papers, peers};
use crate::ui;

/// The suites in the order of the report, with their titles.
pub const SUITES: [(&str, &str); 14] = [
    ("ipc", "Short and long IPC"),
    ("ablation", "What each technique is worth"),
    ("working-set", "Working set of an IPC in the kernel"),
    ("minimum", "The least that a null IPC needs"),
    ("rpc", "A null call and its answer, on all systems"),
    (papers::SUITE, "Tables and figures of Liedtke 1993 and 1995, by their numbers"),
    ("lipc", "Local IPC, and what is built on it (Wenske 2002, section 6)"),
    ("lrpc", "Calls by stubs, user level included"),
    ("smp", "Several processors"),
    ("linux", "Linux in the same emulator"),
    ("ops", "Everything else, once"),
    ("growth", "How costs grow"),
    ("native", "Local IPC, and vector registers, in an ordinary process, true cycles"),
    ("interrupts-off", "Interrupts off"),
];

/// The title of a suite.
#[must_use]
pub fn title(suite: &str) -> &str {
    SUITES.iter().find(|(name, _)| *name == suite).map_or(suite, |(_, title)| title)
}

/// One line of a table: what, Baton's figure, the peer's, the ratio.
struct Entries {
    cells: Vec<[String; 5]>,
}

/// The first column has as many characters at least.
const NARROWEST: usize = 24;
const HEADS: [&str; 5] = ["", "baton", "peer", "ratio", "unit"];

fn entries(rows: &[Row], suite: &str) -> Entries {
    let of_suite: Vec<&Row> = rows.iter().filter(|row| row.suite == suite).collect();
    let mut cells = Vec::new();
    for row in &of_suite {
        let title = short_title(row);
        if row.system == "baton" {
            let peer = peers::best(rows, row);
            let shown = peer
                .as_ref()
                .map_or(String::new(), |p| format!("{} ({})", readable(p.value), p.system));
            let ratio = peer.map_or(String::new(), |p| format!("{:.2}", row.value / p.value));
            cells.push([title, readable(row.value), shown, ratio, row.unit.clone()]);
        } else if suite == "rpc"
            || !of_suite.iter().any(|other| other.system == "baton" && other.name == row.name)
        {
            cells.push([
                title,
                String::new(),
                format!("{} ({})", readable(row.value), row.system),
                String::new(),
                row.unit.clone(),
            ]);
        }
    }
    Entries { cells }
}

/// Name and circumstances; figures that are only parameters of the row stay out.
fn short_title(row: &Row) -> String {
    let mut title = row.name.clone();
    for (name, value) in &row.parameters {
        let counted = value.as_str().is_some_and(|text| text.parse::<f64>().is_ok());
        match value.as_str() {
            _ if counted => {}
            Some(text) => title += &format!(" ({text})"),
            None => title += &format!(" {name}={value}"),
        }
    }
    title
}

/// The table of one suite for a terminal with so many columns: names that are too long for it go on
/// in lines of their own.
#[must_use]
pub fn table(rows: &[Row], suite: &str, columns: usize) -> String {
    let entries = entries(rows, suite);
    if entries.cells.is_empty() {
        return String::new();
    }
    let all = std::iter::once(HEADS.map(str::to_owned)).chain(entries.cells.iter().cloned());
    let mut widths = [0; 5];
    for cells in all.clone() {
        for (width, cell) in widths.iter_mut().zip(&cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    // Two spaces before each column.
    let others: usize = widths[1..].iter().map(|width| width + 2).sum();
    widths[0] = widths[0].min(columns.saturating_sub(others + 2).max(NARROWEST));
    let mut out = format!("\n{}\n", title(suite));
    for [what, baton, peer, ratio, unit] in all {
        let [w0, w1, w2, w3, _] = widths;
        let name = ui::wrapped(&what, w0);
        let (above, what) = name.rsplit_once('\n').unwrap_or(("", &name));
        above.lines().for_each(|line| out += &format!("  {line}\n"));
        let line = format!("  {what:<w0$}  {baton:>w1$}  {peer:>w2$}  {ratio:>w3$}  {unit}");
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Writes `report.html`, `report.json` and `report.csv` into `dir`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(
    dir: &Path,
    rows: &[Row],
    history: &[Entry],
    notes: &[String],
    about: &str,
) -> Result<()> {
    let json = serde_json::to_string_pretty(rows).context("the rows cannot be written as JSON")?;
    for (name, text) in [
        ("report.json", json + "\n"),
        ("report.csv", csv(rows)),
        ("report.html", html(rows, history, notes, about)),
    ] {
        let path = dir.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The rows as comma-separated values; parameters as `name=value` with semicolons.
#[must_use]
pub fn csv(rows: &[Row]) -> String {
    let quote = |text: &str| {
        if text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let mut out = "suite,name,system,unit,value,method,parameters\n".to_owned();
    for row in rows {
        let parameters: Vec<String> = row
            .parameters
            .iter()
            .map(|(name, value)| {
                format!(
                    "{name}={}",
                    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
                )
            })
            .collect();
        let cells = [&row.suite, &row.name, &row.system, &row.unit].map(|cell| quote(cell));
        out += &format!(
            "{},{},{},{}\n",
            cells.join(","),
            row.value,
            quote(&row.method),
            quote(&parameters.join(";"))
        );
    }
    out
}

/// How the page looks, in the light and in the dark.
const STYLE: &str = include_str!("report.css");
/// Tables that are longer are opened by a click.
const LONG_TABLE: usize = 20;

/// The page: everything in one file.
#[must_use]
pub fn html(rows: &[Row], history: &[Entry], notes: &[String], about: &str) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Baton, measured</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\n\
         <h1>Baton, measured</h1>\n<p class=\"about\">{}</p>\n<p>Every figure is a count of guest instructions unless another unit is named; the method is in \
         <code>report.json</code>. Ratios below 1 are in Baton's favour.</p>\n",
        escape(about)
    );
    out += &summary(rows);
    for (suite, name) in SUITES {
        let entries = entries(rows, suite);
        if entries.cells.is_empty() {
            continue;
        }
        out += &format!("<h2 id=\"{suite}\">{}</h2>\n", escape(name));
        if suite == papers::SUITE {
            out += &papers::html(rows);
            continue;
        }
        out += &plots(rows, suite);
        let table = html_table(&entries);
        let count = entries.cells.len();
        if count > LONG_TABLE {
            out += &format!("<details><summary>{count} rows</summary>\n{table}</details>\n");
        } else {
            out += &table;
        }
    }
    if !history.is_empty() {
        out += "<h2 id=\"history\">History</h2>\n";
        out += &history_plot(history);
    }
    for note in notes {
        out += &format!("<p>{}</p>\n", escape(note));
    }
    out + "</body></html>\n"
}

/// What stands on top: the way to each suite, and each row that has a peer.
fn summary(rows: &[Row]) -> String {
    let mut list = String::new();
    let mut cells = Vec::new();
    for (suite, name) in SUITES {
        let entries = entries(rows, suite).cells;
        if entries.is_empty() {
            continue;
        }
        list += &format!("<a href=\"#{suite}\">{}</a>", escape(name));
        cells.extend(entries.into_iter().filter(|[_, _, _, ratio, _]| !ratio.is_empty()));
    }
    let compared = html_table(&Entries { cells });
    format!("<nav>{list}</nav>\n<h2 id=\"peers\">Beside other systems</h2>\n{compared}")
}

fn html_table(entries: &Entries) -> String {
    let mut out = "<table><tr>".to_owned();
    HEADS.iter().for_each(|head| out += &format!("<th>{head}</th>"));
    out += "</tr>\n";
    for cells in &entries.cells {
        out += "<tr>";
        for (index, cell) in cells.iter().enumerate() {
            let class = match (index, cell.parse::<f64>()) {
                (1, _) => " class=\"ours\"",
                (3, Ok(ratio)) if ratio > 1.0 => " class=\"bad\"",
                (3, Ok(_)) => " class=\"good\"",
                _ => "",
            };
            out += &format!("<td{class}>{}</td>", escape(cell));
        }
        out += "</tr>\n";
    }
    out + "</table>\n"
}

/// A line of all Baton rows called `name` over their parameter `parameter`.
fn line(rows: &[Row], name: &str, parameter: &str, label: &str) -> Line {
    let of_name = rows.iter().filter(|row| row.name == name && row.system == "baton");
    let mut points: Vec<(f64, f64)> =
        of_name.filter_map(|row| Some((row.parameter(parameter)? as f64, row.value))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Line { name: label.to_owned(), points }
}

fn plots(rows: &[Row], suite: &str) -> String {
    match suite {
        "ipc" => ipc_plots(rows),
        "growth" => growth_plots(rows),
        _ => String::new(),
    }
}

/// Figure 8 of the 1993 paper: cost over length, beside the optimal copy.
fn ipc_plots(rows: &[Row]) -> String {
    let words = [
        line(rows, "ipc/words-cross-call", "words", "between spaces"),
        line(rows, "ipc/words-local-call", "words", "inside a space"),
    ];
    let optimal = line(rows, "ipc/string-cross", "bytes", "").points.into_iter();
    // `rep movsq` takes one instruction per word and one to end.
    let optimal = optimal.map(|(bytes, _)| (bytes, (bytes / 8.0).ceil() + 1.0)).collect();
    let strings = [
        line(rows, "ipc/string-cross", "bytes", "between spaces"),
        line(rows, "ipc/string-local", "bytes", "inside a space"),
        Line { name: "optimal copy".to_owned(), points: optimal },
    ];
    let axes = Axes { title: "Words", x: "words", y: "kernel instructions", logarithmic: false };
    let curve = Axes { title: "Strings", x: "bytes", y: "kernel instructions", logarithmic: true };
    svg(axes, &words) + &svg(curve, &strings)
}

fn growth_plots(rows: &[Row]) -> String {
    let over = |parameter: &str, names: &[&str]| -> Vec<Line> {
        names.iter().map(|name| line(rows, &format!("growth/{name}"), parameter, name)).collect()
    };
    let threads = over(
        "threads",
        &["short-ipc", "thread-create", "thread-delete", "task-create", "timer-tick"],
    );
    let mappings = over("mappings", &["map", "unmap", "map-again"]);
    let axes = |title, x| Axes { title, x, y: "kernel instructions", logarithmic: true };
    svg(axes("Threads (half of them with timers)", "threads"), &threads)
        + &svg(axes("Mappings", "mappings"), &mappings)
}

/// The recorded figures, commit by commit.
fn history_plot(history: &[Entry]) -> String {
    let names: std::collections::BTreeSet<&String> =
        history.iter().flat_map(|entry| entry.figures.keys()).collect();
    let lines: Vec<Line> = names
        .into_iter()
        .map(|name| {
            let points = history.iter().enumerate();
            let points = points
                .filter_map(|(at, entry)| Some((at as f64 + 1.0, *entry.figures.get(name)?)))
                .collect();
            Line { name: name.clone(), points }
        })
        .collect();
    let few = |wanted: &[&str]| -> Vec<Line> {
        lines.iter().filter(|line| wanted.contains(&line.name.as_str())).cloned().collect()
    };
    let axes = |title| Axes { title, x: "recorded commits", y: "instructions", logarithmic: false };
    svg(
        axes("Short IPC"),
        &few(&["ipc/short-cross-kernel", "ipc/short-local-kernel", "ipc/63-words-cross-kernel"]),
    ) + &svg(
        axes("Longer operations"),
        &few(&["ipc/string-4096-kernel", "ops/page-fault", "ops/interrupt"]),
    )
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
