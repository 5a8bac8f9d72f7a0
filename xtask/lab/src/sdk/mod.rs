//! `sdk`: a folder in which systems are built without Baton's source tree. It has the tree's own
//! layout, so that the tool and all paths in programs are the same in both: what programs are
//! made with as sources, tool, kernel and servers as they were built here.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use toml_edit::{Array, DocumentMut, Item, Value};

use crate::build::{self, Programs, Role};
use crate::ui::Step;
use crate::workspace::{SDK_VERSION, Workspace};
use crate::{manual, test};

/// Folders and files that are the SDK's: replaced each time.
const OWN: [&str; 25] = [
    ".editorconfig",
    ".vscode/settings.json",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "abi/Cargo.toml",
    "abi/src",
    "baton",
    "docs",
    "idl/Cargo.toml",
    "idl/src",
    "include",
    "interfaces",
    "lib/interfaces",
    "lib/l4c/build",
    "lib/l4c/include",
    "lib/l4c/root.ld",
    "lib/l4c/src",
    "lib/l4c/task.ld",
    "lib/paging",
    "lib/pci",
    "lib/proto",
    "lib/service",
    "runtime",
    "rustfmt.toml",
    "xtask/gdb",
];
/// What a system of one's own begins with: only where there is nothing yet.
const TEMPLATE: [&str; 9] = [
    "apps/ask-in-c",
    "apps/hello",
    "apps/own-driver",
    "apps/own-pager",
    "apps/own-service",
    "systems/linux",
    "systems/linux.toml",
    "systems/own-service.toml",
    ".gitignore",
];
/// Crates of the SDK, as members of its workspace: they were tested where it was written.
pub const CRATES: [&str; 8] = [
    "abi",
    "idl",
    "lib/interfaces",
    "lib/paging",
    "lib/pci",
    "lib/proto",
    "lib/service",
    "runtime",
];
/// Crates of the template.
const EXAMPLES: [&str; 4] = ["apps/hello", "apps/own-driver", "apps/own-pager", "apps/own-service"];
/// Programs that come as they were built.
const PROGRAMS: [(&str, Role); 6] = [
    ("sigma0", Role::Server),
    ("root", Role::Server),
    ("pager", Role::Task),
    ("serial", Role::Task),
    ("monitor", Role::Task),
    ("unix", Role::Task),
];
/// The host tool's halves, and how the tree builds each.
const TOOLS: [(&str, &str); 2] = [("xtask", "front"), ("xtask-lab", "tool")];
/// The description of the sample system, less the programs that are not there.
const MINIMAL: &str = "systems/minimal.toml";

/// How to make it.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Folder to write it to: an empty one, or an SDK that is to be renewed
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// Carries out `sdk`.
///
/// # Errors
/// When something cannot be built or written, or the folder holds something else.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let root = std::path::absolute(&options.output).context("cannot tell the current directory")?;
    write(workspace, &Workspace { root })?;
    println!("{} has all that a system needs. Try it:", options.output.display());
    println!("    cd {} && ./baton run own-service", options.output.display());
    Ok(true)
}

/// Writes all of it to `sdk`.
///
/// # Errors
/// As [`run`].
pub fn write(tree: &Workspace, sdk: &Workspace) -> Result<()> {
    check(tree, sdk)?;
    let ready = built(tree)?;
    let step = Step::start("writing the SDK");
    for path in OWN {
        remove(&sdk.path(path))?;
        copy(&tree.path(path), &sdk.path(path))?;
    }
    for path in TEMPLATE {
        if !sdk.path(path).exists() {
            copy(&tree.path(path), &sdk.path(path))?;
        }
    }
    for (name, file) in &ready {
        copy(file, &sdk.path("bin").join(name))?;
    }
    for (name, _) in TOOLS {
        strip(&sdk.path("bin").join(name))?;
    }
    remove(&sdk.path(manual::FOLDER))?;
    for (name, text) in manual::sdk()? {
        put(&sdk.path(manual::FOLDER).join(name), &text)?;
    }
    put(&sdk.path("README.md"), include_bytes!("readme.md"))?;
    put_new(&sdk.path(test::SPEC), include_bytes!("systems.toml"))?;
    put_new(&sdk.path(MINIMAL), minimal(&read(&tree.path(MINIMAL))?)?.as_bytes())?;
    put_new(&sdk.path("Cargo.toml"), manifest(&read(&tree.path("Cargo.toml"))?)?.as_bytes())?;
    put_new(&sdk.path("Cargo.lock"), read(&tree.path("Cargo.lock"))?.as_bytes())?;
    put(&sdk.path(SDK_VERSION), version(tree).as_bytes())?;
    step.done("");
    Ok(())
}

/// Whether the folder may be written to: it is empty, or an SDK, and not in the tree itself.
fn check(tree: &Workspace, sdk: &Workspace) -> Result<()> {
    let empty = std::fs::read_dir(&sdk.root).map_or(true, |mut entries| entries.next().is_none());
    ensure!(
        empty || sdk.is_sdk(),
        "{} holds something that is no SDK; name an empty folder",
        sdk.root.display()
    );
    ensure!(
        !sdk.root.starts_with(&tree.root) || sdk.root.starts_with(tree.path("target")),
        "{} is inside of this tree, whose workspace it would be part of; name another folder",
        sdk.root.display()
    );
    Ok(())
}

/// Tool, kernel and servers: what each is called, and where it is.
fn built(tree: &Workspace) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut files = Vec::new();
    for (name, profile) in TOOLS {
        let mut cargo = tree.cargo();
        cargo.args(["build", "--quiet", "--profile", profile, "-p", name]);
        cargo.env("CARGO_TARGET_DIR", tree.target("")?);
        ensure!(cargo.status().context("cannot run cargo")?.success(), "the tool was not built");
        files.push((name, tree.path("target").join(profile).join(name)));
    }
    files.push((build::KERNEL, build::kernel(tree)?));
    let mut programs = Programs::default();
    programs.build(tree, PROGRAMS.iter().map(|(name, _)| *name))?;
    for (name, role) in PROGRAMS {
        files.push((name, programs.find(tree, name, role)?));
    }
    Ok(files)
}

/// The workspace's manifest with the SDK's members, without what is said of other crates.
fn manifest(text: &str) -> Result<String> {
    let mut document: DocumentMut = text.parse().context("Cargo.toml cannot be read")?;
    let workspace = document.get_mut("workspace").and_then(Item::as_table_mut);
    let workspace = workspace.context("Cargo.toml has no workspace")?;
    workspace.remove("exclude");
    let mut members = Array::new();
    for member in CRATES.iter().chain(&EXAMPLES).copied() {
        let mut value = Value::from(member);
        value.decor_mut().set_prefix("\n    ");
        members.push_formatted(value);
    }
    members.set_trailing("\n");
    members.set_trailing_comma(true);
    workspace.insert("members", toml_edit::value(members));
    let profiles = document.get_mut("profile").and_then(Item::as_table_like_mut);
    let profiles = profiles.context("Cargo.toml has no profiles")?;
    profiles.remove("front");
    for profile in ["release", "tool"] {
        if let Some(profile) = profiles.get_mut(profile).and_then(Item::as_table_like_mut) {
            profile.remove("package");
        }
    }
    Ok(document.to_string())
}

/// The sample system, less the tasks whose programs are not there.
fn minimal(text: &str) -> Result<String> {
    let mut document: DocumentMut =
        text.parse().with_context(|| format!("{MINIMAL} cannot be read"))?;
    let tasks = document.get_mut("task").and_then(Item::as_array_of_tables_mut);
    let there = |image: &str| {
        PROGRAMS.iter().any(|(name, _)| *name == image)
            || TEMPLATE.iter().any(|path| path.strip_prefix("apps/") == Some(image))
    };
    tasks
        .with_context(|| format!("{MINIMAL} has no tasks"))?
        .retain(|task| task.get("image").and_then(Item::as_str).is_some_and(there));
    Ok(document.to_string())
}

/// Takes the debugger's part out of a tool: nobody debugs it there, and it is most of the file.
fn strip(file: &Path) -> Result<()> {
    let status = std::process::Command::new("strip").arg(file).status();
    ensure!(status.context("cannot run strip")?.success(), "strip refused {}", file.display());
    Ok(())
}

/// Which Baton it is of.
fn version(tree: &Workspace) -> String {
    let mut git = std::process::Command::new("git");
    let commit = git.current_dir(&tree.root).args(["rev-parse", "--short", "HEAD"]).output();
    let commit = commit.ok().filter(|output| output.status.success());
    let commit = commit.map_or_else(
        || "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    format!("Baton {}, commit {commit}\n", env!("CARGO_PKG_VERSION"))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Takes away a file or folder of the SDK's own.
fn remove(path: &Path) -> Result<()> {
    let gone =
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match gone {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            bail!("cannot replace {}: {error}", path.display())
        }
        _ => Ok(()),
    }
}

/// Copies a file, or a folder with all that is in it, permissions included.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        let entries = std::fs::read_dir(from);
        for entry in entries.with_context(|| format!("cannot list {}", from.display()))? {
            let entry = entry.with_context(|| format!("cannot list {}", from.display()))?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let folder = to.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder)
        .and_then(|()| remove(to).map_err(std::io::Error::other))
        .and_then(|()| std::fs::copy(from, to))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn put(path: &Path, contents: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, contents))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// [`put`], unless the person has one.
fn put_new(path: &Path, contents: &[u8]) -> Result<()> {
    if path.exists() { Ok(()) } else { put(path, contents) }
}
