use super::*;

fn tree() -> Workspace {
    Workspace::find().unwrap()
}

#[test]
fn all_that_is_copied_is_there_and_needs_nothing_else() {
    for path in OWN.iter().chain(&TEMPLATE) {
        assert!(tree().path(path).exists(), "{path}");
    }
    let manifest = manifest(&read(&tree().path("Cargo.toml")).unwrap()).unwrap();
    for word in ["kernel", "xtask", "front", "exclude"] {
        assert!(!manifest.contains(&format!("\"{word}")), "{word}: {manifest}");
        assert!(!manifest.contains(&format!("{word}]")), "{word}: {manifest}");
    }
    assert!(manifest.contains("\n    \"apps/own-service\",\n]"), "{manifest}");
}

#[test]
fn the_sample_system_has_only_programs_that_are_there() {
    let text = minimal(&read(&tree().path(MINIMAL)).unwrap()).unwrap();
    assert!(text.contains("name = \"monitor\"") && text.contains("name = \"own-driver\""));
    assert!(!text.contains("crash-me"), "{text}");
}

#[test]
fn a_folder_that_holds_something_else_is_left_alone() {
    let root = std::env::temp_dir().join(format!("baton-sdk-{}", std::process::id()));
    put(&root.join("letters/mine"), b"x").unwrap();
    let why = |root: PathBuf| check(&tree(), &Workspace { root }).unwrap_err().to_string();
    assert!(why(root.clone()).contains("no SDK; name an empty folder"));
    put(&root.join(SDK_VERSION), b"").unwrap();
    check(&tree(), &Workspace { root: root.clone() }).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    check(&tree(), &Workspace { root }).unwrap();
    assert!(why(tree().path("apps/sdk")).contains("inside of this tree"));
}

#[test]
fn its_help_has_the_verbs_that_it_has() {
    let files = manual::sdk().unwrap();
    let text = |name: &str| String::from_utf8(files[name].clone()).unwrap();
    assert!(text("baton.txt").starts_with("Builds, boots and tests systems"));
    assert!(text("baton.txt").contains("Usage: ./baton <VERB>"));
    for verb in ["run xtask\n", "new xtask-lab\n", "test xtask-lab\n", "idl xtask-lab\n"] {
        assert!(text("verbs").contains(verb), "{}", text("verbs"));
    }
    assert!(!text("verbs").contains("bench") && !text("baton.txt").contains("bench"));
    for verb in text("verbs").lines().filter_map(|line| line.split(' ').next()) {
        let page = text(&format!("{verb}.txt"));
        assert!(page.contains(&format!("Usage: ./baton {verb}")), "{page}");
    }
}

#[test]
fn its_first_test_starts_its_first_system() {
    let spec: toml::Table = toml::from_str(include_str!("systems.toml")).unwrap();
    let system = spec["run"][0]["system"].as_str().unwrap();
    assert!(TEMPLATE.contains(&format!("systems/{system}.toml").as_str()));
}
