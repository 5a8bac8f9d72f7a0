//! Liedtke 1993, Improving IPC by Kernel Design: Tables 1, 2, 3, 7 and Figures 7, 8. The paper's times
//! are those of a 486 at 50 MHz, for which its Table 2 counts 10 MIPS: 1 µs is 10 instructions.

use super::{Table, shown, value};
use crate::bench::plot::{Axes, Line};
use crate::bench::row::{Row, readable};

/// A round trip through a Linux pipe, by bytes.
pub const PIPE: &str = "papers/linux-pipe-roundtrip";
/// Instructions of the paper's machine in a microsecond.
const MIPS: f64 = 10.0;

/// Bytes; L3, its worst-case penalty of the cache, and Mach, µs (Table 7).
const TABLE_7: [(u64, f64, f64, f64); 7] = [
    (8, 5.2, 6.4, 115.0),
    (12, 7.6, 9.7, 124.0),
    (128, 9.8, 11.6, 180.0),
    (512, 18.1, 16.3, 214.0),
    (1024, 31.7, 25.5, 305.0),
    (2048, 53.2, 41.6, 386.0),
    (4096, 115.6, 54.3, 460.0),
];

/// The row that measures a message of so many bytes: in words up to 63 of them, as a string beyond.
fn measured(rows: &[Row], bytes: u64) -> Option<&Row> {
    let (name, key, count) = if bytes < 512 {
        ("ipc/words-cross-call", "words", bytes.div_ceil(8))
    } else {
        ("ipc/string-cross", "bytes", bytes)
    };
    let ours = rows.iter().filter(|row| row.system == "baton" && row.name == name);
    ours.into_iter().find(|row| row.parameter(key) == Some(count))
}

/// The techniques of Table 1, the paper's percents by length, and the row that is today's.
const TABLE_1: [(&str, [&str; 5], &str); 7] = [
    ("short msg via reg", ["49", "–", "–", "–", "–"], "ablation/fast-path"),
    ("direct transfer", ["–", "9", "23", "58", "157"], "ablation/single-copy"),
    ("lazy scheduling", ["23", "16", "12", "7", "1"], "ablation/lazy-scheduling-complete-path"),
    ("no segm reg", ["21", "14", "11", "6", "1"], ""),
    ("reply & wait", ["18", "13", "10", "5", "1"], "ablation/reply-and-wait"),
    ("condensed tables", ["13", "9", "7", "4", "1"], ""),
    ("virtual tcb", ["10", "7", "5", "3", "1"], ""),
];
const LENGTHS: [u64; 5] = [8, 12, 128, 512, 4096];

/// Easily quantifiable effects: time that is needed more without a technique, percent.
pub fn table_1(rows: &[Row]) -> Table {
    let heads = vec!["removed", "8", "now", "12", "now", "128", "now", "512", "now", "4096", "now"];
    let lines = TABLE_1.map(|(technique, paper, name)| {
        let mut line = vec![technique.to_owned()];
        for (percent, bytes) in paper.iter().zip(LENGTHS) {
            line.push((*percent).to_owned());
            line.push(match value(rows, name, Some(("bytes", bytes))) {
                Some(value) => format!("{value:.0}"),
                None => "–".to_owned(),
            });
        }
        line
    });
    Table {
        number: "1993, Table 1",
        title: "what is slower without a technique, percent by bytes",
        heads,
        lines: lines.into(),
        remark: "Turned round: without registers a short message takes the complete path, compiled \
                 code that can do everything, and costs several times as much instead of half as \
                 much again; direct transfer is worth less, because `rep movs` moves eight bytes per \
                 counted instruction, and lazy scheduling less, because a memory access is one \
                 instruction of many. Lazy scheduling is compared on the complete path: the fast one \
                 is always lazy. Segment registers are nothing to be left out in 64-bit mode. Tables \
                 and virtual tcbs save misses of the TLB, which are not instructions: Figure 2 of \
                 1995 has the model. Today's columns come from `./baton bench ablation papers`."
            .to_owned(),
        drawn: None,
    }
}

/// System, processor and MHz, MIPS, µs of Table 2.
const TABLE_2: [(&str, &str, f64, f64); 12] = [
    ("L3", "486, 50", 10.0, 10.0),
    ("L3", "486, 33", 6.6, 15.0),
    ("L3", "386, 20", 2.0, 60.0),
    ("LRPC", "FF-CVAX", 2.0, 157.0),
    ("QNX", "486, 33", 6.6, 76.0),
    ("SRC RPC", "FF-CVAX", 2.0, 464.0),
    ("SRC RPC", "FF-µVAX II", 1.0, 937.0),
    ("Amoeba", "68020, 15", 1.5, 800.0),
    ("Mach", "386, 20", 2.0, 535.0),
    ("Mach", "486, 33", 6.6, 346.0),
    ("Mach", "486, 50", 10.0, 230.0),
    ("Dash", "68020, 15", 1.5, 1920.0),
];

/// Null RPC: MIPS times µs are instructions, and today's are counted.
pub fn table_2(rows: &[Row]) -> Table {
    let mut lines: Vec<Vec<String>> = TABLE_2
        .iter()
        .map(|(system, processor, mips, us)| {
            let product = (mips * us).round();
            vec![(*system).into(), (*processor).into(), us.to_string(), readable(product)]
        })
        .collect();
    let total = value(rows, "ipc/short-cross-roundtrip-total", None);
    let today = "x86-64, counted";
    let mut add = |system: String, value: Option<f64>| {
        lines.push(vec![system, today.to_owned(), String::new(), shown(value)]);
    };
    add("Baton, user part included".to_owned(), total);
    let others = rows.iter().filter(|row| row.name == "rpc/round-trip");
    for row in others {
        let via = row.parameters.get("via").and_then(|via| via.as_str());
        let how = match (row.system.as_str(), via) {
            ("baton", _) => "kernels' part alone".to_owned(),
            ("linux", Some(via)) => format!("by {via}, all"),
            _ => "kernel's part alone".to_owned(),
        };
        let name = match row.system.as_str() {
            "baton" => "Baton".to_owned(),
            "linux" => "Linux".to_owned(),
            other => other.to_owned(),
        };
        add(format!("{name}, {}", how.replace("kernels'", "kernel's")), Some(row.value));
    }
    Table {
        number: "1993, Table 2",
        title: "null RPC; µs, and MIPS times µs, which are instructions",
        heads: vec!["system", "processor, MHz", "µs", "instructions"],
        lines,
        remark: "What was 100 instructions for L3 is of the same size today; what has grown is \
                 everybody else's distance to it."
            .to_owned(),
        drawn: None,
    }
}

/// A step of Table 3; cycles of the 486 without and with what its TLB misses; the step of today's
/// minimum (`minimum/step`, from 0) that does the same, if one does.
const TABLE_3: [(&str, &str, &str, Option<usize>); 10] = [
    ("load ids, set message's length", "5", "–", None),
    ("call kernel", "71", "–", Some(0)),
    ("access B", "4", "9", Some(1)),
    ("states of both (stay queued: lazy)", "–", "–", Some(2)),
    ("switch stack, its bottom", "4", "–", Some(4)),
    ("switch address space (flush TLB)", "5", "9", Some(3)),
    ("load B's stack, ip, flags", "–", "–", Some(5)),
    ("return to user", "36", "18", Some(6)),
    ("inspect message", "2", "9", None),
    ("sum", "127", "45", None),
];

/// The least that a null IPC needs.
pub fn table_3(rows: &[Row]) -> Table {
    let steps: Vec<&Row> = rows.iter().filter(|row| row.name == "minimum/step").collect();
    let sum: f64 = steps.iter().map(|row| row.value).sum();
    let lines = TABLE_3.map(|(what, execution, misses, step)| {
        let today = match step {
            Some(at) => shown(steps.get(at).map(|row| row.value)),
            None if what == "sum" => shown((!steps.is_empty()).then_some(sum)),
            None => "user's".to_owned(),
        };
        vec![what.to_owned(), execution.to_owned(), misses.to_owned(), today]
    });
    let taken = shown(value(rows, "minimum/short-cross", None));
    Table {
        number: "1993, Table 3",
        title: "minimal instructions for null IPC",
        heads: vec!["step", "486, cycles", "TLB misses", "today, instr."],
        lines: lines.into(),
        remark: format!(
            "Turned round: int and iret were 107 of the 127 cycles; syscall and sysret are two \
             instructions that save and load no stack, so that saving and loading them are steps of \
             their own. A tagged TLB is not flushed: the misses are gone. Baton takes {taken} \
             instructions; docs/fast-path.md accounts for each."
        ),
        drawn: None,
    }
}

/// IPC by length.
pub fn table_7(rows: &[Row]) -> Table {
    let lines = TABLE_7.map(|(bytes, l3, penalty, mach)| {
        let row = measured(rows, bytes);
        let lines =
            row.map(|row| count(row, "kernel_code_lines") + count(row, "kernel_data_lines"));
        vec![
            bytes.to_string(),
            l3.to_string(),
            format!("+{penalty}"),
            mach.to_string(),
            shown(row.map(|row| row.value)),
            lines.map_or_else(|| "–".to_owned(), |lines| lines.to_string()),
            shown(linux(rows, bytes)),
        ]
    });
    Table {
        number: "1993, Table 7",
        title: "IPC by length, one way",
        heads: vec!["bytes", "L3, µs", "cache", "Mach, µs", "today", "lines", "Linux pipe"],
        lines: lines.into(),
        remark: "Today: instructions of Baton's kernel, from user to user between spaces; what a \
                 cold cache adds is given as the lines that the kernel touches, for times mean \
                 nothing under emulation; a Linux pipe beside it, half a round trip of 1, 960 and \
                 4096 bytes. Turned round: from 128 to 512 bytes L3 paid for the \
                 bytes; today a message of that length is a string, and what is paid for is finding \
                 its pages and leaving the registers, while the bytes themselves are 65 of the \
                 instructions (Figure 8)."
            .to_owned(),
        drawn: None,
    }
}

/// A count that is a remark of the row.
fn count(row: &Row, name: &str) -> u64 {
    let text = row.parameters.get(name).and_then(|value| value.as_str());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Half a round trip through a Linux pipe of about so many bytes.
fn linux(rows: &[Row], bytes: u64) -> Option<f64> {
    let wanted = match bytes {
        8 => 1,
        1024 => 960,
        4096 => 4096,
        _ => return None,
    };
    let row = rows.iter().find(|row| row.name == PIPE && row.parameter("bytes") == Some(wanted));
    row.map(|row| (row.value / 2.0).round())
}

/// The paper's systems as lines, in instructions, up to a length.
fn papers(from: u64, to: u64) -> [Line; 2] {
    let of = |name: &str, us: fn(&(u64, f64, f64, f64)) -> f64| {
        let some = TABLE_7.iter().filter(|row| (from..=to).contains(&row.0));
        let points = some.map(|row| (row.0 as f64, us(row) * MIPS)).collect();
        Line { name: name.to_owned(), points }
    };
    [of("L3 (1993)", |row| row.1), of("Mach (1993)", |row| row.3)]
}

fn today(rows: &[Row], from: u64, to: u64) -> Line {
    let some = TABLE_7.iter().filter(|row| (from..=to).contains(&row.0));
    let points = some.filter_map(|row| Some((row.0 as f64, measured(rows, row.0)?.value)));
    Line { name: "Baton".to_owned(), points: points.collect() }
}

/// The lines of a drawing as a table.
fn as_table(lines: &[Line], lengths: impl Iterator<Item = u64>) -> Vec<Vec<String>> {
    let cells = |bytes: u64| {
        let at = |line: &Line| line.points.iter().find(|point| point.0 == bytes as f64).copied();
        let cells = lines.iter().map(move |line| shown(at(line).map(|point| point.1)));
        std::iter::once(bytes.to_string()).chain(cells).collect()
    };
    lengths.map(cells).collect()
}

/// Short messages.
pub fn figure_7(rows: &[Row]) -> Table {
    let [l3, mach] = papers(8, 512);
    let lines = vec![l3, mach, today(rows, 8, 512)];
    Table {
        number: "1993, Figure 7",
        title: "short messages, L3 and Mach and today, instructions",
        heads: vec!["bytes", "L3 (1993)", "Mach (1993)", "Baton"],
        lines: as_table(&lines, [8, 12, 128, 512].into_iter()),
        remark: "The paper's µs are taken as 10 instructions each, as its Table 2 does; the part \
                 of the user is in them and not in Baton's."
            .to_owned(),
        drawn: Some((
            Axes { title: "Figure 7", x: "bytes", y: "instructions", logarithmic: true },
            lines,
        )),
    }
}

/// Long messages, beside the bare move of the data.
pub fn figure_8(rows: &[Row]) -> Table {
    let lengths = || TABLE_7.iter().map(|row| row.0).filter(|bytes| *bytes >= 128);
    let optimal = |name: &str, cost: fn(f64) -> f64| Line {
        name: name.to_owned(),
        points: lengths().map(|bytes| (bytes as f64, cost(bytes as f64))).collect(),
    };
    let [l3, mach] = papers(128, 4096);
    let lines = vec![
        l3,
        mach,
        optimal("move (1993)", |bytes| (bytes * 0.015 * MIPS).round()),
        today(rows, 128, 4096),
        // `rep movsq` is counted once for each word, and once for its end.
        optimal("move, today", |bytes| (bytes / 8.0).ceil() + 1.0),
    ];
    Table {
        number: "1993, Figure 8",
        title: "longer messages, and the bare move, instructions",
        heads: vec!["bytes", "L3 (1993)", "Mach (1993)", "move (1993)", "Baton", "move, today"],
        lines: as_table(&lines, lengths()),
        remark: "The paper's move is 15 ns a byte; today's is `rep movsq`. Turned round: L3 at 4096 \
                 bytes lost most in the cache, which this does not count; what is left above the move \
                 is the call itself."
            .to_owned(),
        drawn: Some((
            Axes { title: "Figure 8", x: "bytes", y: "instructions", logarithmic: true },
            lines,
        )),
    }
}
