//! `new`: a program of one's own, or a service with its client, as a copy of an example that the
//! tests build and run, with a system that starts it. What is copied is therefore never out of date.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Value};

use crate::workspace::Workspace;

/// Longest name of a task, bytes (`abi::image`).
const MAX_NAME_BYTES: usize = 16;
/// Before a service's name, the name of its client.
const CLIENT: &str = "ask-";
/// Tasks of the model that every system keeps.
const KEPT: [&str; 3] = ["pager", "serial", "monitor"];
/// Names that mean something to cargo or the compiler.
const RESERVED: [&str; 6] = ["core", "std", "alloc", "test", "proc-macro", "kernel"];

/// What to make.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What kind of program
    kind: Kind,
    /// Its name: small letters, digits and hyphens
    name: String,
}

/// Kinds of programs, each with the example that it begins as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Prints a line and ends (apps/hello)
    Program,
    /// Answers calls, with its interface and a client (apps/own-service)
    Service,
    /// Drives a device: the real-time clock (apps/own-driver)
    Driver,
    /// Serves page faults of its own threads (apps/own-pager)
    Pager,
}

impl Kind {
    /// The example's name.
    const fn example(self) -> &'static str {
        match self {
            Self::Program => "hello",
            Self::Service => "own-service",
            Self::Driver => "own-driver",
            Self::Pager => "own-pager",
        }
    }

    /// The folder in which the new program lies.
    const fn folder(self) -> &'static str {
        match self {
            Self::Program | Self::Pager => "apps",
            Self::Service => "servers",
            Self::Driver => "drivers",
        }
    }

    /// The system that the new one is made from.
    const fn model(self) -> &'static str {
        match self {
            Self::Service => "systems/own-service.toml",
            _ => "systems/minimal.toml",
        }
    }
}

/// Makes the program, its system and its entry in the workspace.
///
/// # Errors
/// A sentence when the name cannot be used or a file cannot be written.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let Options { kind, name } = options;
    check(workspace, *kind, name)?;
    let folder = format!("{}/{name}", kind.folder());
    let system = format!("systems/{name}.toml");
    for path in [&folder, &system] {
        ensure!(!workspace.path(path).exists(), "{path} exists already; take another name");
    }
    let described = system_of(&read(workspace, kind.model())?, *kind, name)?;
    let members = with_member(&read(workspace, "Cargo.toml")?, &folder)?;
    copy(workspace, kind.example(), &folder, name)?;
    write(workspace, &system, &described)?;
    write(workspace, "Cargo.toml", &members)?;
    println!("{folder:<24} the program, a copy of apps/{}", kind.example());
    println!("{system:<24} a system with it, a console, a pager and the monitor");
    println!("It starts with:  ./baton run {name}");
    if *kind == Kind::Service {
        println!("Its client, at the prompt `baton>`:  run {CLIENT}{name}");
        println!("Its interface: {folder}/wit/{name}.wit; docs/tutorial.md goes through all of it");
    }
    Ok(true)
}

/// Whether a program may be called `name`.
fn check(workspace: &Workspace, kind: Kind, name: &str) -> Result<()> {
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    let usual = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    ensure!(
        begins && name.chars().all(usual) && !name.ends_with('-'),
        "`{name}` cannot be a program's name: it begins with a small letter and goes on with \
         small letters, digits and hyphens"
    );
    let most = MAX_NAME_BYTES - if kind == Kind::Service { CLIENT.len() } else { 0 };
    ensure!(
        name.len() <= most,
        "`{name}` is longer than {most} bytes: {}",
        match kind {
            Kind::Service => "its client is the task `ask-NAME`, and a task's name has 16 at most",
            _ => "a task's name has no more",
        }
    );
    let keyword = syn::parse_str::<syn::Ident>(&name.replace('-', "_")).is_err();
    ensure!(
        !keyword && !RESERVED.contains(&name),
        "`{name}` means something to the compiler; take another name"
    );
    if kind == Kind::Service {
        names_an_interface(workspace, name)?;
    }
    let crates = workspace.packages()?;
    if let Some(other) = crates.iter().find(|package| package.name == name) {
        let folder = other.manifest_path.parent().unwrap_or(&other.manifest_path);
        bail!("there is a crate `{name}` already, in {}", workspace.show(folder));
    }
    Ok(())
}

/// Whether the service's interface may be called so: WIT has words of its own.
fn names_an_interface(workspace: &Workspace, name: &str) -> Result<()> {
    let example = Kind::Service.example();
    let text = read(workspace, &format!("apps/{example}/wit/{example}.wit"))?;
    let folder = std::env::temp_dir().join(format!("baton-new-{name}-{}", std::process::id()));
    let trial = Workspace { root: folder };
    write(&trial, "trial.wit", &named(&text, example, name))?;
    let loaded = baton_idl::load::folder(&trial.root);
    let _ = std::fs::remove_dir_all(&trial.root);
    ensure!(
        loaded.is_ok(),
        "`{name}` is a word of WIT, so no interface is called so; take another"
    );
    Ok(())
}

/// Copies the example to `folder`, under its new name.
fn copy(workspace: &Workspace, example: &str, folder: &str, name: &str) -> Result<()> {
    let root = format!("apps/{example}");
    let mut left = vec![String::new()];
    while let Some(inner) = left.pop() {
        let from = workspace.path(&root).join(&inner);
        let entries = std::fs::read_dir(&from)
            .with_context(|| format!("cannot list {}", workspace.show(&from)))?;
        for entry in entries {
            let entry = entry.context("cannot list the example's files")?;
            let path = format!("{inner}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                left.push(path + "/");
                continue;
            }
            let text = read(workspace, &format!("{root}/{path}"))?;
            let copied = format!("{folder}/{}", path.replace(example, name));
            write(workspace, &copied, &named(&text, example, name))?;
        }
    }
    Ok(())
}

/// `text` with the example's name, where it stands as a name, replaced. A word with a hyphen is
/// nothing but a name; of another one, what is a value in a manifest, and in a source the word
/// before the colon of a message.
fn named(text: &str, example: &str, name: &str) -> String {
    if example.contains('-') {
        let identifier = |name: &str| name.replace('-', "_");
        return text.replace(example, name).replace(&identifier(example), &identifier(name));
    }
    text.replace(&format!("\"{example}\""), &format!("\"{name}\""))
        .replace(&format!("\"{example}:"), &format!("\"{name}:"))
}

/// The workspace's manifest with one more member.
fn with_member(manifest: &str, folder: &str) -> Result<String> {
    let mut document: DocumentMut = manifest.parse().context("Cargo.toml cannot be read")?;
    let members = document
        .get_mut("workspace")
        .and_then(|workspace| workspace.get_mut("members"))
        .and_then(Item::as_array_mut)
        .context("Cargo.toml has no list of members")?;
    let at = position(members, folder);
    let mut member = Value::from(folder);
    member.decor_mut().set_prefix("\n    ");
    members.insert_formatted(at, member);
    Ok(document.to_string())
}

/// Where `folder` belongs among the members, which are sorted.
fn position(members: &Array, folder: &str) -> usize {
    let before = |member: &&Value| member.as_str().is_some_and(|member| member < folder);
    members.iter().take_while(before).count()
}

/// The model system with the example's tasks, under their new names, as the only ones beside
/// those that every system has. The program is started at once, a service's client on demand.
fn system_of(model: &str, kind: Kind, name: &str) -> Result<String> {
    let (example, file) = (kind.example(), kind.model());
    let mut document: DocumentMut =
        model.parse().with_context(|| format!("{file} cannot be read"))?;
    let tasks = document
        .get_mut("task")
        .and_then(Item::as_array_of_tables_mut)
        .with_context(|| format!("{file} has no tasks"))?;
    keep(tasks, example);
    let task = tasks
        .iter_mut()
        .find(|task| task.get("name").and_then(Item::as_str) == Some(example))
        .with_context(|| format!("{file} has no task `{example}`"))?;
    task.remove("autostart");
    let text = document.to_string().replace(&format!("{example}\""), &format!("{name}\""));
    let keys = text.find("[sigma0]").unwrap_or(0);
    Ok(format!(
        "# A system with the program `{name}`, started at once: `./baton run {name}`.\n\
         # systems/minimal.toml explains the keys.\n\n{}",
        &text[keys..]
    ))
}

/// Takes out the tasks that are neither `example` nor of every system.
fn keep(tasks: &mut ArrayOfTables, example: &str) {
    tasks.retain(|task| {
        let name = task.get("name").and_then(Item::as_str).unwrap_or_default();
        name.ends_with(example) || KEPT.contains(&name)
    });
}

fn read(workspace: &Workspace, path: &str) -> Result<String> {
    std::fs::read_to_string(workspace.path(path)).with_context(|| format!("cannot read {path}"))
}

fn write(workspace: &Workspace, path: &str, text: &str) -> Result<()> {
    let file = workspace.path(path);
    let folder = file.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&file, text))
        .with_context(|| format!("cannot write {path}"))
}

#[cfg(test)]
mod tests {
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
    fn a_member_is_entered_in_its_place() {
        let manifest = "[workspace]\nmembers = [\n    \"apps/a\",\n    \"apps/z\",\n]\n# end\n";
        assert_eq!(
            with_member(manifest, "apps/m").unwrap(),
            "[workspace]\nmembers = [\n    \"apps/a\",\n    \"apps/m\",\n    \"apps/z\",\n]\n# end\n"
        );
        assert!(
            with_member(manifest, "apps/zz").unwrap().contains("\"apps/z\",\n    \"apps/zz\",\n]")
        );
        assert!(
            with_member("[package]", "x").unwrap_err().to_string().contains("no list of members")
        );
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
        assert!(
            main.contains("use my_post::my_post::{") && !main.contains("own-service"),
            "{main}"
        );
        assert!(manifest.contains("name = \"ask-my-post\"\n"), "{manifest}");
    }

    #[test]
    fn only_names_are_replaced() {
        assert_eq!(
            named("name = \"hello\" # say hello\nprintln!(\"hello: {x}\")", "hello", "mine"),
            "name = \"mine\" # say hello\nprintln!(\"mine: {x}\")"
        );
    }
}
