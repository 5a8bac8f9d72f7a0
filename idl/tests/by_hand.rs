//! Which files of servers, drivers and programs still pack messages by hand: a checked-in list
//! with the most lines that each may have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a line that packs or unpacks a message has in it.
const SIGNS: [&str; 8] = [
    "Msg::new(",
    "Msg::default().",
    ".mr[",
    ".word(",
    ".words(",
    "text_message",
    "message_text",
    "set_mr(",
];
/// Folders whose programs are looked at.
const FOLDERS: [&str; 3] = ["servers", "drivers", "apps"];
/// The list, from the tree's root.
const LIST: &str = "interfaces/by-hand.txt";

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Lines of `text`, comments left out, that have one of the signs.
fn count(text: &str) -> usize {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.filter(|line| SIGNS.iter().any(|sign| line.contains(sign))).count()
}

#[test]
fn messages_are_packed_by_hand_only_where_the_list_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&root.join(folder), &mut files));
    assert!(files.len() > 20, "the sources are not where they were");
    let counted = files.iter().filter_map(|file| {
        let lines = count(&std::fs::read_to_string(file).unwrap());
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        (lines > 0).then_some((name, lines))
    });
    let counted: BTreeMap<String, usize> = counted.collect();
    let list = std::fs::read_to_string(root.join(LIST)).unwrap();
    let listed = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let listed: BTreeMap<String, usize> = listed
        .map(|line| {
            let (file, lines) = line.split_once(' ').unwrap();
            (file.to_owned(), lines.trim().parse().unwrap())
        })
        .collect();
    for (file, lines) in &counted {
        let may = listed.get(file).copied().unwrap_or(0);
        assert!(
            *lines <= may,
            "{file} packs messages by hand in {lines} lines, and {LIST} allows {may}: describe them \
             in interfaces/ (docs/services.md)"
        );
    }
    let gone = listed.keys().find(|file| !counted.contains_key(*file));
    assert!(gone.is_none(), "{gone:?} packs nothing by hand any more: take it off {LIST}");
}

#[test]
fn packing_is_seen() {
    let text = "// Msg::new(1)\nlet a = Msg::new(1);\nlet b = answer.mr[0];\nlet c = words(1);\n";
    assert_eq!(count(text), 2);
}
