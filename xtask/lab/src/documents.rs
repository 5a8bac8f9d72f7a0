//! What the documents say of the tree, compared with it: the tutorial's code is the examples'
//! own, and the index names every document and every example.

use crate::doc;
use crate::workspace::Workspace;

/// Where the tutorial's code comes from.
const SOURCES: [&str; 10] = [
    "apps/own-service/wit/own-service.wit",
    "apps/own-service/wit/own-service.toml",
    "apps/own-service/src/main.rs",
    "apps/own-service/src/board.rs",
    "apps/own-service/src/bin/ask.rs",
    "apps/own-driver/src/main.rs",
    "apps/pingpong/src/text.rs",
    "tests/siege/src/echo.rs",
    "systems/own-service.toml",
    "systems/minimal.toml",
];

fn read(path: &str) -> String {
    let file = Workspace::find().unwrap().path(path);
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of a folder's entries.
fn names(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(Workspace::find().unwrap().path(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// The fenced blocks of `text` that are in a language, without their fences.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if !language.is_empty() {
            blocks.push(inside.join("\n") + "\n");
        }
    }
    blocks
}

#[test]
fn the_tutorial_shows_code_that_is_built_and_run() {
    let sources: Vec<String> = SOURCES.iter().map(|path| read(path)).collect();
    let blocks = blocks(&read("docs/tutorial.md"));
    assert!(blocks.len() > 12, "{} blocks", blocks.len());
    for block in blocks {
        assert!(
            sources.iter().any(|source| source.contains(&block)),
            "docs/tutorial.md shows what none of its examples has:\n{block}"
        );
    }
}

#[test]
fn checked_in_stubs_in_c_are_those_of_their_interfaces() {
    let both = [
        ("apps/own-service/wit", "apps/ask-in-c/own-service.h"),
        ("tests/services/wit", "tests/services-in-c/carried.in"),
    ];
    for (folder, header) in both {
        let path = Workspace::find().unwrap().path(folder);
        let stubs = baton_idl::c::generate(&baton_idl::load::folder(&path).unwrap());
        assert!(stubs == read(header), "run: ./baton idl {folder} --c >{header}");
    }
}

#[test]
fn the_changelog_is_by_release() {
    let text = read("CHANGELOG.md");
    let heads: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(heads[0], "Unreleased");
    let released: Vec<(&str, &str)> = heads[1..]
        .iter()
        .map(|head| head.split_once(", ").unwrap_or_else(|| panic!("{head}: no date")))
        .collect();
    let numbers = |version: &str| -> Vec<u32> {
        version.split('.').map(|part| part.parse().unwrap()).collect()
    };
    for pair in released.windows(2) {
        assert!(numbers(pair[0].0) > numbers(pair[1].0) && pair[0].1 >= pair[1].1, "{pair:?}");
    }
    let is_date = |date: &str| date.len() == 10 && date.split('-').count() == 3;
    assert!(released.iter().all(|(_, date)| is_date(date)), "{released:?}");
    let known = |version: &str| released.iter().any(|release| release.0 == version);
    assert!(known(env!("CARGO_PKG_VERSION")), "CHANGELOG.md has no section for the version");
    let mut git = std::process::Command::new("git");
    let tags = git.args(["tag", "--list", "v*"]).current_dir(Workspace::find().unwrap().root);
    let tags = tags.output().map(|output| output.stdout).unwrap_or_default();
    for tag in String::from_utf8_lossy(&tags).lines() {
        assert!(known(&tag[1..]), "CHANGELOG.md has no section for the release {tag}");
    }
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let workspace = Workspace::find().unwrap();
    for document in doc::documents(&workspace).unwrap() {
        for link in doc::links(&read(&document.display().to_string())) {
            let path = doc::resolved(link.split('#').next().unwrap_or_default(), &document);
            let there = workspace.path(&path).exists();
            assert!(there, "{} links to {link}, which is not there", document.display());
        }
    }
}

/// All files below `folder`, but what is built.
fn files(folder: &std::path::Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && name != "target" && !name.starts_with('.') {
            files(&entry.path(), found);
        } else {
            found.push(entry.path().display().to_string());
        }
    }
}

/// Documents that speak of what was: its files may have moved, or gone.
const OF_THE_PAST: [&str; 3] = ["docs/decisions", "docs/defects.md", "CHANGELOG.md"];
/// What the tutorial lets its reader make.
const OF_READERS: &str = "servers/post/";
/// What documents call a folder of the kernel.
const SHORT: (&str, &str) = ("x86/", "arch/x86_64/");

/// The source files that `text` names, written as code.
fn named_sources(text: &str) -> Vec<String> {
    let is_source = |name: &&str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
        (name.ends_with(".rs") || name.ends_with(".S")) && name.bytes().all(plain)
    };
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let long = |name: &str| match name.strip_prefix(SHORT.0) {
        Some(rest) => format!("/{}{rest}", SHORT.1),
        None => format!("/{name}"),
    };
    let is_file = |name: &&str| !name.starts_with('.') && !name.starts_with(OF_READERS);
    spans.filter(is_source).filter(is_file).map(long).collect()
}

#[test]
fn every_source_file_that_the_documents_name_is_there() {
    let workspace = Workspace::find().unwrap();
    let mut all = Vec::new();
    files(&workspace.root, &mut all);
    let of_now = |path: &std::path::PathBuf| !OF_THE_PAST.iter().any(|it| path.starts_with(it));
    let mut names = 0;
    for document in doc::documents(&workspace).unwrap().into_iter().filter(of_now) {
        for name in named_sources(&read(&document.display().to_string())) {
            let there = all.iter().any(|file| file.ends_with(&name));
            assert!(there, "{} names {name}, which is not there", document.display());
            names += 1;
        }
    }
    assert!(names > 100, "{names} names");
    assert_eq!(
        named_sources("a `x86/mem/tlb.rs`, `b` and `c.S`"),
        ["/arch/x86_64/mem/tlb.rs", "/c.S"]
    );
}

#[test]
fn the_index_names_every_document_and_every_example() {
    let index = read("docs/README.md");
    for name in names("docs") {
        assert!(
            name == "README.md" || index.contains(&format!("]({name}")),
            "docs/README.md does not name docs/{name}"
        );
    }
    for name in names("apps") {
        let there = index.contains(&format!("\n| `{name}` |"));
        assert!(there || name == "monitor", "docs/README.md does not name apps/{name}");
    }
}
