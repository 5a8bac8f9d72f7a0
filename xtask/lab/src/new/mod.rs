//! `new`: a program of one's own, or a service with its client, as a copy of an example that the
//! tests build and run, with a system that starts it and a test of that system. What is copied
//! is therefore never out of date.

#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Value};

use crate::test::{SPEC, Spec};
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

    /// What a test waits for: what the program prints if all is well; a service's client prints it.
    fn sign(self, name: &str) -> String {
        match self {
            Self::Program => "Hello from thread".to_owned(),
            Self::Service => "Note 0 has 30 bytes".to_owned(),
            Self::Driver => format!("{name}: 32 interrupts"),
            Self::Pager => format!("{name}: the child added"),
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
    let tests = with_run(&read(workspace, SPEC).unwrap_or_default(), *kind, name);
    copy(workspace, kind.example(), &folder, name)?;
    write(workspace, &system, &described)?;
    write(workspace, SPEC, &tests)?;
    write(workspace, "Cargo.toml", &members)?;
    println!("{folder:<24} the program, a copy of apps/{}", kind.example());
    println!("{system:<24} a system with it, a console, a pager and the monitor");
    println!("{SPEC:<24} a test of it: a dialogue with that system");
    println!("It starts with:  ./baton run {name}");
    println!("It is tested by: ./baton test {name}");
    if *kind == Kind::Service {
        println!("Its client, at the prompt `baton>`:  run {CLIENT}{name}");
        println!("Its interface: {folder}/wit/{name}.wit; docs/tutorial.md goes through all of it");
    }
    Ok(true)
}

/// The list of runs with one more: the new system, up to what its program prints.
fn with_run(text: &str, kind: Kind, name: &str) -> String {
    let start = match kind {
        Kind::Service => {
            format!("    {{ expect = \"baton> \" }},\n    {{ send = \"run {CLIENT}{name}\" }},\n")
        }
        _ => String::new(),
    };
    let sign = kind.sign(name);
    let gap = if text.is_empty() { "" } else { "\n" };
    format!(
        "{text}{gap}[[run]]\nname = \"{name}\"\nring = \"system\"\nsystem = \"{name}\"\n\
         icount = true\nexit = \"success\"\ndialogue = [\n{start}    {{ expect = \"{sign}\" }},\n    \
         {{ expect = \"baton> \" }},\n    {{ send = \"halt\" }},\n]\nseconds = 60\n"
    )
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
    let runs = Spec::read(&workspace.path(SPEC), SPEC)?.runs;
    ensure!(
        runs.iter().all(|run| run.name != name),
        "{SPEC} has a run `{name}` already; take another name"
    );
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
    let part = format!("apps/{example}/src/{}.rs", name.replace('-', "_"));
    ensure!(
        !workspace.path(&part).is_file(),
        "`{name}` is a part of what a service begins as ({part}); take another name"
    );
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
