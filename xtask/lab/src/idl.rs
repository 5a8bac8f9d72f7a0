//! `idl`: what the compiler of interfaces makes of a folder, for eyes; and the system's own
//! stubs, which are checked in, made anew.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use baton_idl::layout::{self, Form};
use baton_idl::model::Model;
use clap::Args;

use crate::workspace::Workspace;

/// The system's interfaces, and their stubs.
const SYSTEM: &str = "interfaces";
const STUBS: &str = "lib/interfaces/src/stubs.in";
const HEADER: &str = "lib/l4c/include/system.in";

/// What to show.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Folder with WIT files; without it, the system's own interfaces
    folder: Option<PathBuf>,
    /// Say which message each function is, instead of printing stubs
    #[arg(long)]
    messages: bool,
    /// Print stubs in C (one header for the whole package) instead of Rust
    #[arg(long, conflicts_with = "messages")]
    c: bool,
    /// Make the checked-in stubs of the system's interfaces anew
    #[arg(long, conflicts_with_all = ["folder", "messages", "c"])]
    accept: bool,
}

/// Carries out `idl`.
///
/// # Errors
/// What the compiler says of the interfaces.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let folder = options.folder.clone().unwrap_or_else(|| workspace.path(SYSTEM));
    let model = baton_idl::load::folder(&folder)?;
    if options.accept {
        for (name, stubs) in
            [(STUBS, baton_idl::rust::generate(&model)), (HEADER, baton_idl::c::generate(&model))]
        {
            let file = workspace.path(name);
            std::fs::write(&file, stubs)
                .with_context(|| format!("cannot write {}", file.display()))?;
            println!("{name} is as {SYSTEM} says");
        }
    } else if options.c {
        print!("{}", baton_idl::c::generate(&model));
    } else if options.messages {
        print!("{}", messages(&model));
    } else {
        print!("{}", formatted(baton_idl::rust::generate(&model)));
    }
    Ok(true)
}

/// A line for each function: label, words and forms of request and answer, normal form.
fn messages(model: &Model) -> String {
    let mut text = String::new();
    let form = |(words, form): (usize, Form)| match form {
        Form::Words => format!("{words} words"),
        Form::Inline(bytes) => format!("{words} words + {bytes} bytes in words"),
        Form::String(bytes) => format!("{words} words + {bytes} bytes as a string"),
    };
    for interface in &model.interfaces {
        for function in &interface.functions {
            text += &format!(
                "{:#x} {}\n    request {}, answer {}\n",
                layout::label(model, interface, function),
                layout::normal_form(model, interface, function),
                form(layout::request(model, function)),
                form(layout::answer(model, function)),
            );
        }
    }
    text
}

/// `stubs` as `rustfmt` writes them, or as they are where there is none.
fn formatted(stubs: String) -> String {
    let format = |text: &str| -> Option<String> {
        let mut rustfmt = Command::new("rustfmt")
            .args(["--edition", "2024"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        rustfmt.stdin.take()?.write_all(text.as_bytes()).ok()?;
        let output = rustfmt.wait_with_output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    format(&stubs).unwrap_or(stubs)
}
