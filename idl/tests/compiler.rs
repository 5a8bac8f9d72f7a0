//! What the compiler makes of interfaces, and what it says of those that it cannot take.

use std::path::{Path, PathBuf};

use baton_idl::layout::{Form, answer, label, normal_form, request};
use baton_idl::model::{Function, Interface, Model};
use baton_idl::{c, load, rust};

/// A folder with these files, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("baton-idl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The interface `a` with these lines, and options beside it.
fn compile(name: &str, lines: &str, toml: &str) -> Result<Model, String> {
    let wit = format!("package t:t@1.0.0;\ninterface a {{\n{lines}\n}}\n");
    let folder = Folder::new(name, &[("a.wit", &wit), ("a.toml", toml)]);
    load::folder(&folder.0).map_err(|error| format!("{error:#}"))
}

fn find<'m>(model: &'m Model, name: &str) -> (&'m Interface, &'m Function) {
    let interface = &model.interfaces[0];
    (interface, interface.functions.iter().find(|function| function.name == name).unwrap())
}

fn label_of(model: &Model, name: &str) -> u64 {
    let (interface, function) = find(model, name);
    label(model, interface, function)
}

fn pantry() -> Model {
    load::folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wit")).unwrap()
}

#[test]
fn what_has_no_message_is_refused_with_its_line() {
    for (name, lines, line, why) in [
        ("async", "f: async func();", 3, "`async` has no message"),
        ("stream", "x: func();\nf: func(a: stream<u8>);", 4, "`stream` has no message"),
        ("future", "f: func() -> future<u8>;", 3, "`future` has no message"),
        ("map", "f: func(a: map<string, u8>);", 3, "`map` has no message"),
        ("in-record", "record r {\n  a: u8,\n  b: option<map<u8, u8>>,\n}", 5, "`map`"),
        ("in-alias", "type s = stream<u8>;", 3, "`stream`"),
        ("fixed", "f: func(a: list<u8, 4>);", 3, "fixed length"),
    ] {
        let error = compile(name, lines, "").unwrap_err();
        assert!(error.contains(why), "{name}: {error}");
        assert!(error.contains(&format!("a.wit:{line}:")), "{name}: {error}");
    }
}

#[test]
fn broken_recursive_and_huge_files_are_refused_with_their_line() {
    for (name, lines, toml, why) in [
        ("broken", "f: func(", "", "expected"),
        ("recursive", "record r { a: option<r> }", "", "depends on itself"),
        ("unknown", "f: func(a: nothing);", "", "nothing"),
        (
            "many",
            "f: func(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8, i: u8, j: u8, k: u8, l: u8, m: u8);",
            "",
            "12 parameters",
        ),
        (
            "wide",
            "type t = tuple<u64, u64, u64, u64, u64, u64, u64, u64>; f: func(a: tuple<t, t, t, t, t, t, t, t>);",
            "",
            "64 words",
        ),
        (
            "long",
            "f: func(a: list<string>);",
            "[a.f]\nbounds = { a = [100, 1000] }",
            "smaller bounds",
        ),
        ("one-way", "f: func() -> u8;", "[a.f]\none-way = true", "one-way has no result"),
    ] {
        let error = compile(name, lines, toml).unwrap_err();
        assert!(error.contains(why), "{name}: {error}");
        assert!(error.contains("a.wit:"), "{name}: {error}");
    }
}

#[test]
fn what_an_answer_maps_is_no_word_of_it() {
    let text = |result: &str| {
        format!(
            "use baton:abi/handles@1.0.0.{{mappings}};\n  record r {{ a: u64, b: bool }}\n  f: func() -> {result};"
        )
    };
    for (result, words, normal) in [
        ("own<mappings>", 0, "t:t/a@1.f()->+mappings:ww"),
        ("result<own<mappings>, u8>", 2, "t:t/a@1.f()->result<_,u8>+mappings:ww"),
        (
            "result<tuple<r, own<mappings>>, u8>",
            3,
            "t:t/a@1.f()->result<record{a:u64,b:bool},u8>+mappings:ww",
        ),
        ("tuple<u8, u8, own<mappings>>", 2, "t:t/a@1.f()->tuple<u8,u8>+mappings:ww"),
    ] {
        let model = compile("maps", &text(result), "").unwrap();
        let (interface, function) = find(&model, "f");
        assert!(function.maps);
        assert_eq!(answer(&model, function), (words, Form::Words));
        assert_eq!(normal_form(&model, interface, function), normal);
        assert!(rust::generate(&model).contains("mappings: &mut service::Mappings"));
        assert!(!c::generate(&model).contains("a_f("), "C knows no windows");
    }
    for (name, result, toml, why) in [
        ("inside", "tuple<own<mappings>, u8>", "", "the last part of a result"),
        ("list", "list<own<mappings>>", "", "the last part of a result"),
        ("later", "own<mappings>", "[a.f]\nlater = true", "answers at once"),
        ("text", "tuple<string, own<mappings>>", "", "no text or list"),
    ] {
        let error = compile(name, &text(result), toml).unwrap_err();
        assert!(error.contains(why), "{name}: {error}");
    }
    let lines = "use baton:abi/handles@1.0.0.{mappings};\n  f: func(a: own<mappings>);";
    let error = compile("given", lines, "").unwrap_err();
    assert!(error.contains("the last part of a result"), "{error}");
}

#[test]
fn options_for_nothing_are_refused() {
    for (name, toml, why) in [
        ("function", "[a.g]\nlater = true", "`a.g`"),
        ("parameter", "[a.f]\nbounds = { b = 3 }", "bound of `b`"),
        ("word", "[a.f]\nbound = { a = 3 }", "bound"),
    ] {
        let error = compile(name, "f: func(a: string);", toml).unwrap_err();
        assert!(error.contains(why), "{name}: {error}");
    }
}

#[test]
fn a_package_without_a_version_is_refused() {
    let folder = Folder::new("version", &[("a.wit", "package t:t;\ninterface a { f: func(); }\n")]);
    let error = format!("{:#}", load::folder(&folder.0).unwrap_err());
    assert!(error.contains("needs a version"), "{error}");
}

#[test]
fn labels_are_of_types_and_not_of_their_names() {
    let plain = compile("plain", "f: func(a: u32) -> result<u8, string>;", "").unwrap();
    let label = label_of(&plain, "f");
    assert!((1 << 30..1 << 31).contains(&label));
    let named = compile(
        "named",
        "g: func();\ntype n = u32;\ntype r = result<u8, string>;\nf: func(other: n) -> r;",
        "",
    );
    assert_eq!(label_of(&named.unwrap(), "f"), label, "other names, another function before it");
    for (name, lines, toml) in [
        ("wider", "f: func(a: u64) -> result<u8, string>;", ""),
        ("more", "f: func(a: u32, b: u8) -> result<u8, string>;", ""),
        ("form", "f: func(a: u32) -> result<u8, string>;", "[a.f]\nbounds = { result = 9 }"),
    ] {
        assert_ne!(label_of(&compile(name, lines, toml).unwrap(), "f"), label, "{name}");
    }
    let enums = ["enum e { a, b }", "enum e { b, a }", "enum e { a, b, c }"].map(|of| {
        let model = compile("enum", &format!("{of}\nf: func(a: e);"), "").unwrap();
        label_of(&model, "f")
    });
    assert!(enums[0] != enums[1] && enums[0] != enums[2]);
}

#[test]
fn the_abi_of_an_example_stays_what_it_is() {
    let model = pantry();
    let (interface, put) = find(&model, "put");
    assert_eq!(
        normal_form(&model, interface, put),
        "test:pantry/pantry@1.put(record{name:string,grams:u32})->result<u32,enum{empty,full}>:iw"
    );
    assert_eq!(label_of(&model, "put"), 0x7c7c_6e91);
    assert_eq!(request(&model, put), (2, Form::Inline(20)));
    assert_eq!(answer(&model, put), (2, Form::Words));
    let (_, jars) = find(&model, "jars");
    assert_eq!(answer(&model, jars), (1, Form::Inline(8 * (16 + 20))));
    assert_eq!(find(&model, "shelf.drop").1.params.len(), 1);
}

#[test]
fn the_stubs_of_an_example_are_as_they_were() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pantry.rs.txt");
    let made = rust::generate(&pantry());
    if std::env::var_os("BATON_ACCEPT").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        made == known,
        "the stubs have changed; if that is meant: BATON_ACCEPT=1, and read the difference"
    );
}

#[test]
fn the_header_of_an_example_is_as_it_was() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pantry.h.txt");
    let made = c::generate(&pantry());
    if std::env::var_os("BATON_ACCEPT").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        made == known,
        "the header has changed; if that is meant: BATON_ACCEPT=1, and read the difference"
    );
}

#[test]
fn lengths_inside_lists_and_of_results_are_checked_too() {
    let toml = "[a.f]\nbounds = { a = [4, 8], result = [5, 9] }";
    let model = compile("inner", "f: func(a: list<string>) -> list<string>;", toml).unwrap();
    let stubs = rust::generate(&model);
    for check in [
        "for part0 in a.iter() { at_most(part0.len(), 8)?; }",
        "at_most(result.len(), 5)?;",
        "for part0 in result.iter() { at_most(part0.len(), 9)?; }",
    ] {
        assert!(stubs.contains(check), "{check}");
    }
    assert!(c::generate(&model).contains("service_at_most(&in.failed, part0.len, 9);"));
}
