use super::*;
use crate::bench::row::{RECORDED, TICKS};

/// Recorded data: one row of each kind.
fn rows() -> Vec<Row> {
    let string =
        |bytes: u64, value| Row::baton("ipc", "ipc/string-cross", value).with("bytes", bytes);
    vec![
        Row::baton("ipc", "ipc/short-cross-kernel", 35.0).with("call", "34").with("reply", "35"),
        Row::baton("ipc", "ipc/short-cross-kernel", 79.0)
            .of("pistachio", RECORDED)
            .with("remark", "fast, path"),
        string(64, 150.0),
        string(4096, 1234.0),
        Row::baton("rpc", "rpc/5-words", 1573.0).of("sel4", RECORDED),
        Row::baton("linux", "linux/getppid", 331.0).of("linux", TICKS),
        Row::baton("working-set", "working-set/cache-share", 0.7).unit("percent"),
    ]
}

fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bench/golden").join(name);
    if std::env::var_os("BATON_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap();
    assert!(
        wanted == text,
        "{name} differs from the golden file; BATON_BLESS=1 writes it anew. Now:\n{text}"
    );
}

fn history() -> Vec<Entry> {
    let entry = |commit: &str, value| Entry {
        commit: commit.to_owned(),
        date: "2026-01-01".to_owned(),
        figures: [("ipc/short-cross-kernel".to_owned(), value)].into(),
    };
    vec![entry("aaaaaaa", 40.0), entry("bbbbbbb", 35.0)]
}

#[test]
fn the_table_is_as_recorded() {
    golden(
        "table.txt",
        &(table(&rows(), "ipc", usize::MAX)
            + &table(&rows(), "rpc", usize::MAX)
            + &table(&rows(), "working-set", usize::MAX)),
    );
}

#[test]
fn the_page_is_as_recorded() {
    golden("report.html", &html(&rows(), &history(), &["a note".to_owned()], "Commit a < b."));
}

#[test]
fn csv_is_as_recorded() {
    golden("report.csv", &csv(&rows()));
}

#[test]
fn json_is_an_array_of_rows() {
    let dir = std::env::temp_dir().join(format!("baton-report-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    write(&dir, &rows(), &[], &[], "").unwrap();
    let text = std::fs::read_to_string(dir.join("report.json")).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    golden("report.json", &text);
    let back: Vec<Row> = serde_json::from_str(&text).unwrap();
    assert_eq!(back, rows());
}

#[test]
fn a_tables_lines_fit_the_terminal() {
    let mut rows = rows();
    rows.push(
        Row::baton("ipc", "ipc/call", 5.0).with("what", "what is done, in words, ".repeat(4)),
    );
    let text = table(&rows, "ipc", 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // The figure is behind the name's last line.
    let row = |line: &str| line.split_whitespace().rev().take(2).collect::<Vec<_>>().join(" ");
    assert!(text.lines().any(|line| row(line) == "instructions 5"), "{text}");
}
