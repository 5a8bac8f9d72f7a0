//! `doc`: the documents as a book, and what the compiler says of every library, as pages for a
//! browser that need no network. The book has the tree's own layout, so that links lead the same
//! way in both.

mod page;

use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg(test)]
pub use page::{links, resolved};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::build;
use crate::ui::Step;
use crate::workspace::Workspace;

/// Where the book is written, from the tree's root, and the way back.
const BOOK: &str = "target/book";
const BACK: &str = "../..";
/// Pages beside those in `docs`.
const FRONT: [&str; 3] = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// Where the libraries' pages are put in the book: the kernel's, for its processor, and the others'.
const KERNEL: &str = "kernel";
const CRATES: &str = "crates";
/// Folders whose libraries are described.
const LIBRARIES: [&str; 4] = ["abi", "runtime", "lib", "idl"];

/// What to write.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Only the documents, not what the compiler says of the libraries
    #[arg(long)]
    book: bool,
}

/// Carries out `doc`.
///
/// # Errors
/// When a document cannot be read or written, or the compiler refuses.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let libraries = if options.book { Vec::new() } else { libraries(workspace)? };
    let step = Step::start("writing the book");
    let documents = documents(workspace)?;
    for document in &documents {
        let text = read(&workspace.path(document))?;
        let html = page::html(&text, document, &documents, &libraries);
        put(&workspace.path(BOOK).join(document).with_extension("html"), &html)?;
    }
    let count = documents.len();
    step.done(&format!("{count} pages"));
    println!("{BOOK}/README.html is the first page; a browser shows it as it is.");
    Ok(true)
}

/// All documents, by their paths in the tree; indices come first in their folders.
///
/// # Errors
/// When a folder cannot be listed.
pub fn documents(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let mut documents: Vec<PathBuf> = FRONT.iter().map(PathBuf::from).collect();
    let mut left = vec![PathBuf::from("docs")];
    while let Some(folder) = left.pop() {
        let entries = std::fs::read_dir(workspace.path(&folder));
        let entries = entries.with_context(|| format!("cannot list {}", folder.display()))?;
        let mut found: Vec<PathBuf> =
            entries.flatten().map(|entry| folder.join(entry.file_name())).collect();
        found.sort_by_key(|path| (!path.ends_with("README.md"), path.clone()));
        let (folders, files): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|path| workspace.path(path).is_dir());
        documents
            .extend(files.into_iter().filter(|file| file.extension().is_some_and(|e| e == "md")));
        left.extend(folders.into_iter().rev());
    }
    Ok(documents)
}

/// Has the compiler describe the libraries; what they are called, and where their pages are in
/// the book.
fn libraries(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for (title, mut cargo) in build::inspect(workspace, "doc")?.into_iter().take(1) {
        cargo.args(["--no-deps", "--document-private-items"]);
        describe(&title, cargo)?;
    }
    let kernel = workspace.path("target/kernel/x86_64-unknown-none/doc");
    copy(&kernel, &workspace.path(BOOK).join(KERNEL))?;
    pages.push(("kernel".to_owned(), format!("{KERNEL}/kernel/index.html")));
    let target = workspace.target("doc-libraries")?;
    let mut cargo = workspace.cargo();
    cargo.args(["doc", "--no-deps", "--lib", "--profile", "tool"]);
    cargo.env("CARGO_TARGET_DIR", &target);
    for package in workspace.packages()? {
        let ours = LIBRARIES.iter().any(|at| package.manifest_path.starts_with(workspace.path(at)));
        let library = package.targets.iter().find(|target| target.kind.iter().any(|k| k == "lib"));
        let Some(library) = library.filter(|_| ours) else { continue };
        cargo.args(["-p", &package.name]);
        let name = library.name.replace('-', "_");
        pages.push((package.name.clone(), format!("{CRATES}/{name}/index.html")));
    }
    describe("cargo doc (libraries)", cargo)?;
    copy(&target.join("doc"), &workspace.path(BOOK).join(CRATES))?;
    Ok(pages)
}

fn describe(title: &str, mut cargo: Command) -> Result<()> {
    let step = Step::start(title);
    let output = cargo.output().context("cannot run cargo")?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{title} failed:\n{words}");
    step.done("");
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn put(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Copies a folder over what is there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let entries = std::fs::read_dir(from);
    for entry in entries.with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", from.display()))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            std::fs::create_dir_all(to)
                .and_then(|()| std::fs::copy(&path, &target))
                .with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    Ok(())
}
