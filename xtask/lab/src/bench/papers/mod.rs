//! The tables and figures of Liedtke 1993 and 1995 by their numbers, with the papers' values in one
//! column and today's in the next, and a sentence where today's processor turns them round. Those
//! of Bershad 1990 and Wenske 2002 are with their suites (`bershad`, `wenske`).
//!
//! Everything is made of rows that other suites have measured (`ipc`, `working-set`, `minimum`, `rpc`,
//! `ablation`), and of the simulated TLB (`tlb`). A figure that was not measured is a dash.

mod tlb;
mod y1993;
mod y1995;

use std::fmt::Write;

use super::plot::{Axes, Line, escape, svg};
use super::row::{Row, readable};

/// The suite's name.
pub const SUITE: &str = "papers";
/// The suites that it is made of, but for `ablation`, which takes long.
pub const SOURCES: [&str; 4] = ["ipc", "working-set", "minimum", "rpc"];
/// How a figure of the model's was come by.
const MODEL: &str = "simulated TLB (docs/measuring.md)";
/// The widest line of a terminal.
const COLUMNS: usize = 80;

/// A table or a figure of a paper.
struct Table {
    /// `1993, Table 1`.
    number: &'static str,
    title: &'static str,
    heads: Vec<&'static str>,
    lines: Vec<Vec<String>>,
    /// What today's processor turns round, or what the columns mean.
    remark: String,
    /// A figure is drawn, too.
    drawn: Option<(Axes<'static>, Vec<Line>)>,
}

/// The model's figures as rows, and those of Linux that are compared with the paper's lengths.
#[must_use]
pub fn rows(measured: &[Row], linux: &[Row]) -> Vec<Row> {
    let pipes = linux.iter().filter(|row| row.name == "linux/pipe-roundtrip");
    let pipes = pipes.map(|row| Row {
        suite: SUITE.to_owned(),
        name: y1993::PIPE.to_owned(),
        ..row.clone()
    });
    pipes.chain(y1995::rows(measured)).collect()
}

fn tables(rows: &[Row]) -> Vec<Table> {
    vec![
        y1993::table_1(rows),
        y1993::table_2(rows),
        y1993::table_3(rows),
        y1993::table_7(rows),
        y1993::figure_7(rows),
        y1993::figure_8(rows),
        y1995::table_1(),
        y1995::table_2(rows),
        y1995::figure_2(rows),
    ]
}

/// All of them for a terminal.
#[must_use]
pub fn text(rows: &[Row]) -> String {
    let mut out = String::new();
    for table in tables(rows) {
        let _ = writeln!(out, "\nLiedtke {}: {}", table.number, table.title);
        let columns = table.heads.len();
        let all = || {
            let heads = table.heads.iter().map(|head| (*head).to_owned()).collect();
            std::iter::once(heads).chain(table.lines.iter().cloned())
        };
        let width = |at: usize| {
            let cells = all().map(|line: Vec<String>| line[at].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for line in all() {
            let first = format!("  {:<1$}", line[0], widths[0]);
            let rest = line[1..].iter().zip(&widths[1..]);
            let rest: String = rest.map(|(cell, width)| format!("  {cell:>width$}")).collect();
            let _ = writeln!(out, "{}", (first + &rest).trim_end());
        }
        out += &wrapped(&table.remark);
    }
    out
}

/// A remark in lines that fit.
fn wrapped(remark: &str) -> String {
    let mut out = String::new();
    let mut line = String::from(" ");
    for word in remark.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            out += &format!("{line}\n");
            line = " ".to_owned();
        }
        line += &format!(" {word}");
    }
    out + &line + "\n"
}

/// All of them for the page.
#[must_use]
pub fn html(rows: &[Row]) -> String {
    let mut out = String::new();
    for table in tables(rows) {
        let _ = writeln!(out, "<h3>{}: {}</h3>", escape(table.number), escape(table.title));
        if let Some((axes, lines)) = &table.drawn {
            out += &svg(*axes, lines);
        }
        out += "<div class=\"wide\"><table><tr>";
        table.heads.iter().for_each(|head| out += &format!("<th>{}</th>", escape(head)));
        out += "</tr>\n";
        for line in &table.lines {
            out += "<tr>";
            line.iter().for_each(|cell| out += &format!("<td>{}</td>", escape(cell)));
            out += "</tr>\n";
        }
        let _ = writeln!(out, "</table></div>\n<p>{}</p>", escape(&table.remark));
    }
    out
}

/// Baton's row of that name, with the parameter if one is given.
fn value(rows: &[Row], name: &str, parameter: Option<(&str, u64)>) -> Option<f64> {
    let with = |row: &&Row| parameter.is_none_or(|(key, value)| row.parameter(key) == Some(value));
    let ours = rows.iter().filter(|row| row.system == "baton" && row.name == name);
    ours.into_iter().find(with).map(|row| row.value)
}

/// A figure, or a dash.
fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), readable)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the suites give, in small.
    fn measured() -> Vec<Row> {
        let ipc = |name: &str, value| Row::baton("ipc", name, value);
        let lines = |row: Row| row.with("kernel_code_lines", "9").with("kernel_data_lines", "7");
        let mut rows = vec![
            ipc("ipc/short-cross-kernel", 37.0),
            ipc("ipc/short-cross-roundtrip-total", 100.0),
            ipc("working-set/kernel-pages", 4.0).unit("pages"),
            Row::baton("rpc", "rpc/round-trip", 9000.0).of("linux", "x").with("via", "pipe"),
            Row::baton("ablation", "ablation/lazy-scheduling-complete-path", 4.5)
                .unit("percent")
                .with("bytes", 8),
        ];
        for (words, value) in [(1, 37.0), (2, 37.0), (16, 60.0)] {
            rows.push(lines(ipc("ipc/words-cross-call", value)).with("words", words));
        }
        for (bytes, value) in [(512, 300.0), (1024, 350.0), (2048, 500.0), (4096, 719.0)] {
            rows.push(lines(ipc("ipc/string-cross", value)).with("bytes", bytes));
        }
        rows
    }

    #[test]
    fn every_table_is_there_by_its_number_and_fits_a_terminal() {
        let mut measured = measured();
        let pipe = Row::baton("linux", "linux/pipe-roundtrip", 11_002.0).of("linux", "x");
        measured.extend(rows(&measured, &[pipe.with("bytes", 4096)]));
        let (text, html) = (text(&measured), html(&measured));
        for number in [
            "1993, Table 1",
            "1993, Table 2",
            "1993, Table 3",
            "1993, Table 7",
            "1993, Figure 7",
            "1993, Figure 8",
            "1995, Table 1",
            "1995, Table 2",
            "1995, Figure 2",
        ] {
            assert!(text.contains(&format!("\nLiedtke {number}: ")), "{number}: {text}");
            assert!(html.contains(&format!("<h3>{number}: ")), "{number}");
        }
        assert!(text.contains("5,501"), "half of Linux's round trip is in Table 7: {text}");
        for line in text.lines() {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
        assert_eq!(html.matches("<svg").count(), 3);
        assert!(!html.contains("NaN"));
    }

    #[test]
    fn without_measurements_today_is_dashes() {
        let (text, html) = (text(&[]), html(&[]));
        assert!(text.contains('–') && html.contains("<td>–</td>"));
    }

    #[test]
    fn the_models_figures_are_rows() {
        let rows = rows(&measured(), &[]);
        let of = |tags: &str| {
            let own = rows.iter().filter(|row| row.parameters["tags"] == tags);
            own.map(|row| row.value).fold(0.0, f64::max)
        };
        assert!(of("none") > of("spaces"));
        assert!(rows.iter().all(|row| row.suite == SUITE && row.system == "model"));
    }
}
