//! Help, completion and manual page: made from the command line, checked in under
//! `xtask/help`, and printed from there by the launcher, which therefore explains every
//! verb without building anything and knows no verb but these.
//!
//! | file | what |
//! |---|---|
//! | `baton.txt` | the list of verbs |
//! | `VERB.txt`, `VERB-VERB.txt` | what `./baton VERB --help` prints |
//! | `verbs` | each verb and the binary that carries it out |
//! | `baton.1`, `baton.bash`, `_baton`, `baton.fish` | manual page, completion |

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory, Subcommand};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::workspace::Workspace;

/// Where the files are.
pub const FOLDER: &str = "xtask/help";
/// The shells that completion is checked in for, and the files.
const SHELLS: [(Shell, &str); 3] =
    [(Shell::Bash, "baton.bash"), (Shell::Zsh, "_baton"), (Shell::Fish, "baton.fish")];
/// The widest that a newcomer's terminal shows in one line.
const COLUMNS: usize = 80;
/// The verbs of the other half that an SDK has, too: they need nothing of the tree's.
const SDK_VERBS: [&str; 3] = ["test", "new", "idl"];
/// What the completion scripts complete: the shell compares the word that was typed.
const COMPLETED: &str = "baton";

/// Names and contents of all files, as they have to be.
///
/// # Errors
/// When the manual page cannot be written (to memory).
pub fn files() -> Result<BTreeMap<String, Vec<u8>>> {
    let mut command = Cli::command();
    command.build();
    let mut files = BTreeMap::new();
    let mut verbs = String::new();
    let front = front();
    help(&mut command.clone(), "baton", &mut files);
    for verb in command.get_subcommands() {
        let name = verb.get_name().to_owned();
        verbs += &format!("{name} {}\n", binary(&front, &name));
        help(&mut verb.clone(), &name, &mut files);
        for inner in verb.get_subcommands() {
            help(&mut inner.clone(), &format!("{name}-{}", inner.get_name()), &mut files);
        }
    }
    files.insert("verbs".to_owned(), verbs.into_bytes());
    for (shell, file) in SHELLS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), COMPLETED, &mut text);
        files.insert(file.to_owned(), text);
    }
    files.insert("baton.1".to_owned(), manual_page()?);
    Ok(files)
}

/// The same for an SDK: help and the list of the verbs that it has.
///
/// # Errors
/// Never; it is as [`files`].
pub fn sdk() -> Result<BTreeMap<String, Vec<u8>>> {
    let mut all = files()?;
    let front = front();
    let has = |name: &str| front.find_subcommand(name).is_some() || SDK_VERBS.contains(&name);
    let whole = Cli::command();
    let mut command = Command::new(xtask::cli::NAME)
        .bin_name(xtask::cli::NAME)
        .about("Builds, boots and tests systems on Baton, an L4 X.2 microkernel.")
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .subcommand_value_name("VERB")
        .subcommand_help_heading("Verbs")
        .subcommands(whole.get_subcommands().filter(|verb| has(verb.get_name())).cloned());
    command.build();
    let mut files = BTreeMap::new();
    let mut verbs = String::new();
    help(&mut command.clone(), "baton", &mut files);
    for verb in command.get_subcommands() {
        let name = verb.get_name();
        verbs += &format!("{name} {}\n", binary(&front, name));
        let page = format!("{name}.txt");
        files.extend(all.remove_entry(&page));
    }
    files.insert("verbs".to_owned(), verbs.into_bytes());
    Ok(files)
}

/// The verbs of the half that builds and boots.
fn front() -> Command {
    xtask::cli::Verb::augment_subcommands(Command::new("front"))
}

/// The binary that carries `verb` out.
fn binary(front: &Command, verb: &str) -> &'static str {
    if front.find_subcommand(verb).is_some() { "xtask" } else { "xtask-lab" }
}

/// The manual page: one for all verbs.
fn manual_page() -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let command = Cli::command().name("baton").bin_name("./baton").version(None::<&str>);
    let page = clap_mangen::Man::new(command.clone()).title("BATON").date("").source("Baton");
    page.render(&mut text).context("the manual page cannot be written")?;
    for verb in command.get_subcommands() {
        let verb = verb.clone();
        let title = format!("{} {}", xtask::cli::NAME, verb.get_name());
        text.extend(
            format!(".SH \"{}\"\n", title.to_uppercase().replace("./BATON", "./baton")).bytes(),
        );
        let page = clap_mangen::Man::new(verb.clone());
        page.render_description_section(&mut text).context("the manual page cannot be written")?;
        page.render_options_section(&mut text).context("the manual page cannot be written")?;
    }
    Ok(text)
}

/// Adds what `--help` prints.
fn help(command: &mut Command, name: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    let text = command.render_help().to_string();
    let text: String = text.lines().map(wrapped).collect();
    files.insert(format!("{name}.txt"), text.into_bytes());
}

/// A line of help, broken where a terminal ends; what goes on begins in the line's second
/// column, if it has two.
fn wrapped(line: &str) -> String {
    let line = line.trim_end();
    let left = line.len() - line.trim_start().len();
    let behind = line[left..].find("  ").map(|at| &line[left + at..]);
    let second = behind.map_or(left, |rest| line.len() - rest.trim_start().len());
    let mut text = String::new();
    let mut rest = line.to_owned();
    while rest.chars().count() > COLUMNS {
        let end = rest.char_indices().nth(COLUMNS).map_or(rest.len(), |(at, _)| at);
        let Some(at) = rest[..=end].rfind(' ').filter(|at| *at > second) else { break };
        text += &format!("{}\n", rest[..at].trim_end());
        rest = format!("{:second$}{}", "", rest[at..].trim_start());
    }
    text + &rest + "\n"
}

/// The files that are not as they have to be.
///
/// # Errors
/// As [`files`].
pub fn outdated(workspace: &Workspace) -> Result<Vec<String>> {
    let path = |name: &str| -> PathBuf { workspace.path(FOLDER).join(name) };
    let files = files()?;
    let differs = |name: &&String| std::fs::read(path(name)).ok().as_ref() != files.get(*name);
    let mut names: Vec<String> = files.keys().filter(differs).cloned().collect();
    let there = std::fs::read_dir(workspace.path(FOLDER)).into_iter().flatten().flatten();
    let there = there.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.extend(there.filter(|name| !files.contains_key(name)));
    Ok(names)
}

/// Writes all files anew and removes those of verbs that are gone.
///
/// # Errors
/// When one cannot be written.
pub fn write(workspace: &Workspace) -> Result<()> {
    let folder = workspace.path(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {FOLDER}"))?;
    let files = files()?;
    for name in outdated(workspace)? {
        let path = folder.join(&name);
        match files.get(&name) {
            Some(text) => std::fs::write(&path, text),
            None => std::fs::remove_file(&path),
        }
        .with_context(|| format!("cannot write {FOLDER}/{name}"))?;
    }
    Ok(())
}

/// Prints the completion of a shell.
pub fn completion(shell: Shell) {
    clap_complete::generate(shell, &mut Cli::command(), COMPLETED, &mut std::io::stdout());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_checked_in_is_what_the_tool_says() {
        let outdated = outdated(&Workspace::find().unwrap()).unwrap();
        assert!(outdated.is_empty(), "{outdated:?} in {FOLDER}: run ./baton lint --accept");
    }

    /// What the launcher prints and says, with no tools in its path but those that print.
    fn launcher(workspace: &Workspace, args: &[&str]) -> (String, String) {
        let path = std::env::temp_dir().join(format!("baton-launcher-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for tool in ["bash", "cat", "dirname"] {
            let _ = std::os::unix::fs::symlink(format!("/usr/bin/{tool}"), path.join(tool));
        }
        let mut bash = std::process::Command::new("/usr/bin/bash");
        let output = bash.arg(workspace.path("baton")).args(args).env("PATH", &path).output();
        let output = output.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    #[test]
    fn the_launcher_explains_every_verb_without_building_or_installing() {
        let workspace = Workspace::find().unwrap();
        for (name, text) in files().unwrap() {
            let Some(page) = name.strip_suffix(".txt").filter(|page| *page != "baton") else {
                continue;
            };
            let words: Vec<&str> = page.split('-').chain(["--help"]).collect();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(launcher(&workspace, &words), (text, String::new()), "{words:?}");
        }
        let list = String::from_utf8(files().unwrap().remove("baton.txt").unwrap()).unwrap();
        for words in [&[][..], &["help"], &["--help"]] {
            assert_eq!(launcher(&workspace, words), (list.clone(), String::new()));
        }
        let version = format!("baton {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(launcher(&workspace, &["--version"]), (version, String::new()));
        let (output, said) = launcher(&workspace, &["frob"]);
        assert!(output.is_empty() && said.starts_with("baton: there is no verb 'frob'."), "{said}");
        let _ = std::fs::remove_dir_all(
            std::env::temp_dir().join(format!("baton-launcher-{}", std::process::id())),
        );
    }

    #[test]
    fn help_fits_a_terminal_and_names_the_launcher() {
        for (name, text) in files().unwrap() {
            let text = String::from_utf8(text).unwrap();
            assert!(!text.contains("xtask ") || name == "verbs", "{name} names the tool");
            if name.ends_with(".txt") {
                assert!(text.contains("Usage: ./baton"), "{name}: {text}");
                for line in text.lines() {
                    assert!(line.chars().count() <= COLUMNS, "{name}: {line}");
                }
            }
        }
    }
}
