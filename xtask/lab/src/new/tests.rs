use super::*;
use xtask::system::System;

const KINDS: [Kind; 4] = [Kind::Program, Kind::Service, Kind::Driver, Kind::Pager];

#[test]
fn names_are_checked() {
    let workspace = Workspace::find().unwrap();
    let check = |name: &str| check(&workspace, Kind::Program, name);
    let why = |name: &str| check(name).unwrap_err().to_string();
    assert!(check("my-clock2").is_ok() && check("twelve-bytes").is_ok());
    assert!(why("My").contains("small letter"));
    assert!(why("../x").contains("cannot be a program's name"));
    assert!(why("").contains("cannot be a program's name"));
    assert!(why("a-name-that-is-long").contains("longer than 16 bytes"));
    let service = |name: &str| super::check(&workspace, Kind::Service, name);
    assert!(service("twelve-bytes").is_ok());
    assert!(service("thirteenbytes").unwrap_err().to_string().contains("than 12 bytes"));
    let why_not = |name: &str| service(name).unwrap_err().to_string();
    let list = "`list` is a word of WIT, so no interface is called so; take another";
    assert_eq!(why_not("list"), list);
    assert!(why_not("board").contains("a part of what a service begins as"));
    assert!(why("loop").contains("means something to the compiler"));
    assert!(why("kernel").contains("means something to the compiler"));
    assert_eq!(why("hello"), "there is a crate `hello` already, in apps/hello");
}

#[test]
fn every_kind_has_its_example_and_a_system_with_it() {
    let workspace = Workspace::find().unwrap();
    for kind in KINDS {
        let model = read(&workspace, kind.model()).unwrap();
        assert!(workspace.path(format!("apps/{}/src/main.rs", kind.example())).is_file());
        let text = system_of(&model, kind, "mine").unwrap();
        let system: System = toml::from_str(&text).unwrap();
        let names: Vec<&str> =
            system.tasks.iter().map(|task| task.name.get_ref().as_str()).collect();
        assert_eq!(names[..4], ["pager", "serial", "monitor", "mine"]);
        let clients: &[&str] = if kind == Kind::Service { &["ask-mine"] } else { &[] };
        assert_eq!(names[4..], *clients);
        assert!(system.tasks[3].autostart && system.tasks[3].image == "mine");
        assert!(!text.contains("\n\n\n"), "{text}");
    }
}

#[test]
fn every_kind_has_a_test_that_can_be_read() {
    let folder = std::env::temp_dir().join(format!("baton-new-run-{}", std::process::id()));
    let tree = Workspace { root: folder };
    for kind in KINDS {
        let text = with_run("# head\n", kind, "mine") + &with_run("", kind, "other");
        write(&tree, SPEC, &text).unwrap();
        let runs = Spec::read(&tree.path(SPEC), SPEC).unwrap().runs;
        assert_eq!(runs[1].system.as_deref(), Some("other"));
        assert_eq!(runs[0].steps().unwrap().len(), if kind == Kind::Service { 5 } else { 3 });
    }
    std::fs::remove_dir_all(&tree.root).unwrap();
    assert!(
        check(&Workspace::find().unwrap(), Kind::Program, "siege")
            .unwrap_err()
            .to_string()
            .contains("has a run `siege` already")
    );
}

#[test]
fn a_member_is_entered_in_its_place() {
    let manifest = "[workspace]\nmembers = [\n    \"apps/a\",\n    \"apps/z\",\n]\n# end\n";
    assert_eq!(
        with_member(manifest, "apps/m").unwrap(),
        "[workspace]\nmembers = [\n    \"apps/a\",\n    \"apps/m\",\n    \"apps/z\",\n]\n# end\n"
    );
    assert!(with_member(manifest, "apps/zz").unwrap().contains("\"apps/z\",\n    \"apps/zz\",\n]"));
    assert!(with_member("[package]", "x").unwrap_err().to_string().contains("no list of members"));
}

#[test]
fn a_copy_has_all_files_of_its_example() {
    let root = std::env::temp_dir().join(format!("baton-new-{}", std::process::id()));
    let tree = Workspace { root };
    let files = ["Cargo.toml", "build.rs", "src/main.rs", "src/inner/part.rs"];
    for file in files {
        write(&tree, &format!("apps/hello/{file}"), "name = \"hello\"").unwrap();
    }
    copy(&tree, "hello", "drivers/mine", "mine").unwrap();
    let copied = files.map(|file| read(&tree, &format!("drivers/mine/{file}")));
    std::fs::remove_dir_all(&tree.root).unwrap();
    copied.into_iter().for_each(|text| assert_eq!(text.unwrap(), "name = \"mine\""));
}

#[test]
fn the_interface_of_a_new_service_is_called_after_it() {
    let workspace = Workspace::find().unwrap();
    let root = std::env::temp_dir().join(format!("baton-new-service-{}", std::process::id()));
    let tree = Workspace { root };
    for file in ["Cargo.toml", "wit/own-service.wit", "wit/own-service.toml", "src/main.rs"] {
        let text = read(&workspace, &format!("apps/own-service/{file}")).unwrap();
        write(&tree, &format!("apps/own-service/{file}"), &text).unwrap();
    }
    copy(&tree, "own-service", "servers/my-post", "my-post").unwrap();
    let model = baton_idl::load::folder(&tree.path("servers/my-post/wit")).unwrap();
    let main = read(&tree, "servers/my-post/src/main.rs").unwrap();
    let manifest = read(&tree, "servers/my-post/Cargo.toml").unwrap();
    std::fs::remove_dir_all(&tree.root).unwrap();
    let stubs = baton_idl::rust::generate(&model);
    assert!(stubs.contains("pub mod my_post {"), "{stubs}");
    assert!(main.contains("use my_post::my_post::{") && !main.contains("own-service"), "{main}");
    assert!(manifest.contains("name = \"ask-my-post\"\n"), "{manifest}");
}

#[test]
fn only_names_are_replaced() {
    assert_eq!(
        named("name = \"hello\" # say hello\nprintln!(\"hello: {x}\")", "hello", "mine"),
        "name = \"mine\" # say hello\nprintln!(\"mine: {x}\")"
    );
}
