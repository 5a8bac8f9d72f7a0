//! The tables of Wenske 2002, section 6, with today's figures beside his: what local IPC costs those who use it, and
//! what it costs all others, measured against a kernel that has none.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;

use super::instrument::{Instrument, Trace};
use super::row::Row;
use super::suites;
use crate::compose::{Composer, Selection};
use crate::machine;
use crate::techniques::kernel_without;
use crate::ui::Step;
use crate::workspace::Workspace;

const PROGRAM: &str = "bench-gate";
const LIMIT: Duration = Duration::from_secs(60);
/// Constants, what is appended to the rows of a kernel with them off, and the rows that are of interest.
const VARIANTS: [(&str, &str, &[&str]); 2] = [
    ("LOCAL_IPC", "-without", &["lipc/others-inside-kernel", "lipc/others-between-kernel"]),
    ("PENDING_SEND", "-restrictive", &["lipc/one-way-user", "lipc/section-user", "lipc/nested"]),
];

/// Rows of a kernel without local IPC, and of one with the restrictive check (4.6.1).
///
/// # Errors
/// When it can't be built or measured.
pub fn without(workspace: &Workspace, instrument: &Instrument) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (constant, suffix, wanted) in VARIANTS {
        let name = format!("lipc{suffix}");
        let kernel = kernel_without(workspace, &[constant.to_owned()])?;
        let step = Step::start(format!("without {constant}"));
        step.say("measuring");
        let selection = Selection {
            root: Some(PROGRAM.to_owned()),
            kernel: Some(kernel),
            ..Selection::default()
        };
        let bootable =
            Composer::new(workspace).compose(&selection, &format!("{PROGRAM}-{name}"))?;
        let measured =
            instrument.run(&bootable, &machine::Options::default(), LIMIT, Trace::None)?;
        let found = suites::local(&measured).into_iter();
        let found = found.filter(|row| row.system == "baton" && wanted.contains(&&*row.name));
        rows.extend(found.map(|row| Row { name: format!("{}{suffix}", row.name), ..row }));
        step.done("measured");
    }
    Ok(rows)
}

/// Both tables; the columns of 2002 are cycles of a Pentium III, today's are instructions.
#[must_use]
pub fn tables(rows: &[Row]) -> String {
    let mut text = String::from("\nWenske 2002, section 6; today: instructions, user + kernel\n");
    for [what, a, b, c, d] in lines(rows) {
        let _ = writeln!(text, "  {what:<26}{a:>13}{b:>9}{c:>15}{d:>13}");
    }
    text
}

fn value(rows: &[Row], name: &str) -> Option<f64> {
    let row = rows.iter().find(|row| row.system == "baton" && row.name == name);
    row.map(|row| row.value)
}

/// How much more the row `with` is than `without`.
fn overhead(rows: &[Row], with: &str, without: &str) -> String {
    match (value(rows, with), value(rows, without)) {
        (Some(with), Some(without)) => format!("{:.0} %", (with / without - 1.0) * 100.0),
        _ => "?".to_owned(),
    }
}

/// Heads and lines of both.
fn lines(rows: &[Row]) -> [[String; 5]; 7] {
    let shown = |name: &str| value(rows, name).map_or_else(|| "?".to_owned(), |v| v.to_string());
    let (inside, between) = ("lipc/others-inside-kernel", "lipc/others-between-kernel");
    [
        ["6.1  kernel IPC of others", "inside, 2002", "today", "between, 2002", "today"]
            .map(str::to_owned),
        [
            "without local IPC".to_owned(),
            "306 cycles".to_owned(),
            shown("lipc/others-inside-kernel-without"),
            "488 cycles".to_owned(),
            shown("lipc/others-between-kernel-without"),
        ],
        [
            "with local IPC".to_owned(),
            "349 cycles".to_owned(),
            shown(inside),
            "634 cycles".to_owned(),
            shown(between),
        ],
        [
            "overhead".to_owned(),
            "14 %".to_owned(),
            overhead(rows, inside, "lipc/others-inside-kernel-without"),
            "30 %".to_owned(),
            overhead(rows, between, "lipc/others-between-kernel-without"),
        ],
        ["6.2  local IPC", "inside, 2002", "today", "between, 2002", "today"].map(str::to_owned),
        [
            "one way".to_owned(),
            "23 cycles".to_owned(),
            format!("{} + {}", shown("lipc/one-way-user"), shown("lipc/one-way-kernel")),
            "not possible".to_owned(),
            "not possible".to_owned(),
        ],
        [
            "with vector registers".to_owned(),
            "349 cycles".to_owned(),
            shown("lipc/one-way-user-vector"),
            "not possible".to_owned(),
            "not possible".to_owned(),
        ],
    ]
}
