//! Liedtke 1995, On µ-Kernel Construction: Tables 1 and 2, and Figure 2, by the simulated TLB.

use super::tlb::{I486, PENTIUM, Processor, SKYLAKE, Tags, refill};
use super::{MODEL, SUITE, Table, shown, value};
use crate::bench::plot::{Axes, Line};
use crate::bench::row::{Row, readable};

/// Pages of the kernel's if nothing was measured: its code, its processor's data, two control blocks.
const KERNEL_PAGES: u64 = 4;
/// Pages of the application: those of the paper's figure, and what today's TLBs are made for.
const PAGES: [u64; 9] = [2, 4, 8, 16, 32, 64, 128, 256, 512];
/// The last of the paper's.
const PAPERS_LAST: u64 = 64;
/// MHz of the paper's Pentium.
const PENTIUM_MHZ: f64 = 90.0;

fn kernel_pages(rows: &[Row]) -> u64 {
    value(rows, "working-set/kernel-pages", None).map_or(KERNEL_PAGES, |pages| pages as u64)
}

/// What the model says, as rows: cycles at worst.
pub fn rows(measured: &[Row]) -> Vec<Row> {
    let kernel = kernel_pages(measured);
    let mut rows = Vec::new();
    for processor in [PENTIUM, SKYLAKE] {
        for (tags, name) in [(Tags::None, "none"), (Tags::Spaces, "spaces")] {
            for pages in PAGES {
                let [best, worst] = refill(&processor, tags, pages, kernel);
                let row = Row::baton(SUITE, "papers/1995-figure-2", worst as f64);
                rows.push(
                    row.unit("cycles")
                        .of("model", MODEL)
                        .with("pages", pages)
                        .with("processor", processor.name)
                        .with("tags", name)
                        .with("at_best", best.to_string()),
                );
            }
        }
    }
    rows
}

/// The paper's Table 1: entries, a miss, a switch of page tables, one of segments.
const TABLE_1: [[&str; 5]; 5] = [
    ["486", "32", "9..13", "36..364", "39"],
    ["Pentium", "96", "9..13", "36..1196", "15"],
    ["PowerPC 601", "256", "?", "?", "29"],
    ["Alpha 21064", "40", "20..50", "80..1800", "n/a"],
    ["Mips R4000", "48", "20..50", "0, tagged", "n/a"],
];

/// The table's own bounds: four pages at best, at most all entries but four.
fn bounds(processor: &Processor) -> [u64; 2] {
    let [best, worst] = processor.miss_cycles();
    [4 * best, (processor.entries() as u64 - 4) * worst]
}

/// What a switch of address spaces costs later.
pub fn table_1() -> Table {
    let mut lines: Vec<Vec<String>> =
        TABLE_1.iter().map(|line| line.map(str::to_owned).to_vec()).collect();
    for (at, processor) in [(0, &I486), (1, &PENTIUM)] {
        let [least, most] = bounds(processor);
        lines[at].push(format!("{least}..{most}"));
    }
    lines[2..].iter_mut().for_each(|line| line.push("–".to_owned()));
    let ([best, worst], [least, most]) = (SKYLAKE.miss_cycles(), bounds(&SKYLAKE));
    lines.push(vec![
        "Skylake, today".to_owned(),
        SKYLAKE.entries().to_string(),
        format!("{best}..{worst}"),
        "0, tagged".to_owned(),
        "n/a".to_owned(),
        format!("{least}..{}", readable(most as f64)),
    ]);
    Table {
        number: "1995, Table 1",
        title: "what a switch of address spaces costs later, cycles",
        heads: vec!["processor", "entries", "a miss", "page table", "segments", "model"],
        lines,
        remark: format!(
            "The model's bounds are the paper's own: four pages at best, all entries but four \
             at worst. Turned round: there are no segments to switch by in 64-bit mode, and none are \
             needed: with PCIDs the TLB is tagged, as that of the R4000 was. Without them a switch \
             would cost up to {} times as much as on the Pentium, because there is so much more to \
             lose.",
            most / bounds(&PENTIUM)[1]
        ),
        drawn: None,
    }
}

/// System, processor and MHz, µs of a round trip, cycles of one way (Table 2).
const TABLE_2: [(&str, &str, u64, u64); 12] = [
    ("L3", "486, 50", 10, 250),
    ("QNX", "486, 33", 76, 1254),
    ("Mach", "R2000, 16.7", 190, 1584),
    ("SRC RPC", "CVAX, 12.5", 464, 2900),
    ("Mach", "486, 50", 230, 5750),
    ("Amoeba", "68020, 15", 800, 6000),
    ("Spin", "Alpha 21064, 133", 102, 6783),
    ("Mach", "Alpha 21064, 133", 104, 6916),
    ("Exo-tlrpc (restricted)", "R2000, 16.7", 6, 53),
    ("Spring (restricted)", "SparcV8, 40", 11, 220),
    ("DP-Mach (restricted)", "486, 66", 16, 528),
    ("LRPC (restricted)", "CVAX, 12.5", 157, 981),
];

/// One byte and back.
pub fn table_2(rows: &[Row]) -> Table {
    let mut lines: Vec<Vec<String>> = TABLE_2
        .iter()
        .map(|(system, processor, us, cycles)| {
            let us = us.to_string();
            vec![(*system).into(), (*processor).into(), us, readable(*cycles as f64)]
        })
        .collect();
    let one_way = value(rows, "ipc/words-cross-call", Some(("words", 1)));
    let mut today = |name: &str, value: Option<f64>| {
        let shown =
            value.map_or_else(|| "–".to_owned(), |value| format!("{} instr.", readable(value)));
        lines.push(vec![name.to_owned(), "x86-64, counted".to_owned(), String::new(), shown]);
    };
    today("Baton, kernel", one_way);
    for (system, name) in
        [("pistachio", "Pistachio, kernel"), ("sel4", "seL4, kernel"), ("l4re", "L4Re")]
    {
        let mut theirs = rows.iter().filter(|row| row.name == "ipc/short-cross-kernel");
        today(name, theirs.find(|row| row.system == system).map(|row| row.value));
    }
    let pipe = rows.iter().find(|row| {
        row.name == "rpc/round-trip"
            && row.system == "linux"
            && row.parameters.get("via").and_then(|via| via.as_str()) == Some("pipe")
    });
    today("Linux pipe, all", pipe.map(|row| (row.value / 2.0).round()));
    Table {
        number: "1995, Table 2",
        title: "RPC of one byte: µs of a round trip, cycles of one IPC",
        heads: vec!["system", "processor, MHz", "µs", "one way"],
        lines,
        remark: "Today's are instructions, not cycles. Turned round: Exo-tlrpc and Spring were ahead \
                 of full IPC because their processors entered the kernel in 20 cycles and the 486 in \
                 107; syscall has ended that, and full IPC takes fewer instructions than the \
                 restricted ones took cycles."
            .to_owned(),
        drawn: None,
    }
}

/// A server called while the application works on so many pages.
pub fn figure_2(rows: &[Row]) -> Table {
    let kernel = kernel_pages(rows);
    let cell = |processor: &Processor, tags: Tags, pages: u64| {
        let [best, worst] = refill(processor, tags, pages, kernel);
        if worst == 0 {
            "0".to_owned()
        } else {
            format!("{}..{}", readable(best as f64), readable(worst as f64))
        }
    };
    let us = |pages: u64| {
        if pages > PAPERS_LAST {
            return "–".to_owned();
        }
        let [best, worst] = refill(&PENTIUM, Tags::None, pages, kernel);
        format!("{:.1}..{:.1}", best as f64 / PENTIUM_MHZ, worst as f64 / PENTIUM_MHZ)
    };
    let lines = PAGES.map(|pages| {
        vec![
            pages.to_string(),
            us(pages),
            cell(&PENTIUM, Tags::None, pages),
            cell(&PENTIUM, Tags::Spaces, pages),
            cell(&SKYLAKE, Tags::None, pages),
            cell(&SKYLAKE, Tags::Spaces, pages),
        ]
    });
    let ipc = value(rows, "ipc/short-cross-roundtrip-total", None);
    Table {
        number: "1995, Figure 2",
        title: "translations had again after an RPC, cycles by pages",
        heads: vec!["pages", "Pentium, µs", "Pentium", "tagged", "Skylake", "tagged"],
        lines: lines.into(),
        remark: format!(
            "The application works on so many pages and calls a server that works on two; {kernel} \
             pages are the kernel's, as counted. The paper's figure goes from 2 to 12 µs on a \
             Pentium of 90 MHz, the RPC itself included, over 2 to 64 pages; small spaces, whose line \
             stays low there, are the column `tagged`. Beyond 64 its TLB does not even hold the \
             application. Turned round: the RPC itself is {} \
             instructions today, and losing the translations costs many times that, where it was \
             of its own size in 1995: tags matter more, not less, and cost nothing until both working \
             sets no longer fit a level.",
            shown(ipc)
        ),
        drawn: Some((
            Axes { title: "Figure 2", x: "pages", y: "cycles, at worst", logarithmic: true },
            curves(kernel).into(),
        )),
    }
}

/// The figure's lines: cycles at worst; what costs nothing is no point of a logarithmic axis.
fn curves(kernel: u64) -> [Line; 4] {
    let line = |name: &str, processor: &Processor, tags: Tags| Line {
        name: name.to_owned(),
        points: PAGES
            .map(|pages| (pages as f64, refill(processor, tags, pages, kernel)[1] as f64))
            .into_iter()
            .filter(|point| point.1 > 0.0)
            .collect(),
    };
    [
        line("Pentium, page tables", &PENTIUM, Tags::None),
        line("Pentium, small spaces", &PENTIUM, Tags::Spaces),
        line("Skylake, without PCIDs", &SKYLAKE, Tags::None),
        line("Skylake, with PCIDs", &SKYLAKE, Tags::Spaces),
    ]
}
