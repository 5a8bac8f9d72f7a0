//! The verbs that build and boot. One verb, one function; what they do is in the other
//! modules. The remaining verbs are in `xtask/lab`.

use std::io::{IsTerminal, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

use crate::build;
use crate::compose::{Bootable, Composer, DEFAULT_SYSTEM, Selection};
use crate::machine::{self, Boot, Console, Exit};
use crate::session::{Ended, Session};
use crate::workspace::Workspace;
use crate::{debug, iso, linux, ui};

/// Time limit of `run --test`.
const TEST_LIMIT: Duration = Duration::from_secs(60);
/// As good as none.
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 3600);

/// How the tool is called: what usage and messages say.
pub const NAME: &str = "./baton";

/// The command line of this half alone.
#[derive(Parser)]
#[command(name = NAME, bin_name = NAME, about = "Builds and boots Baton.")]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// What a first system needs: the verbs that build and boot. The others are in
/// `xtask/lab`, whose binary knows these, too.
#[derive(Subcommand)]
pub enum Verb {
    /// Build what a system needs and start it in the emulator
    #[command(display_order = 1)]
    Run(RunArgs),
    /// Write a bootable CD image
    #[command(display_order = 6)]
    Image(ImageArgs),
    /// Start a system under gdb
    #[command(display_order = 7)]
    Debug(DebugArgs),
    /// Say which functions and lines a console's fault reports mean
    #[command(display_order = 8)]
    Explain(ExplainArgs),
    /// Let the compiler check everything, for people and for editors
    #[command(display_order = 9)]
    Check(CheckArgs),
    /// Build the kernel and all programs, or what is named
    #[command(display_order = 10)]
    Build(BuildArgs),
}

/// `run`.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    machine: machine::Options,
    /// No interaction: print the console and end with the guest's verdict
    #[arg(long)]
    test: bool,
    /// Time limit with --test (60) or --exec (none)
    #[arg(long, value_name = "SECONDS", value_parser = ui::number::<u64>(1, u64::MAX >> 1))]
    limit: Option<u64>,
}

/// `image`.
#[derive(Args)]
pub struct ImageArgs {
    #[command(flatten)]
    selection: Selection,
    /// Word for the kernel's command line (repeatable)
    #[arg(long = "kernel-arg", value_name = "WORD")]
    kernel_args: Vec<String>,
    /// Where the CD image goes
    #[arg(short, long, value_name = "FILE.iso", default_value = "baton.iso")]
    output: PathBuf,
}

/// `debug`.
#[derive(Args)]
pub struct DebugArgs {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    machine: machine::Options,
    /// Start gdb in this terminal; the console's output goes to a file
    #[arg(long)]
    gdb: bool,
}

/// `explain`.
#[derive(Args)]
pub struct ExplainArgs {
    /// The console's text (without it, standard input)
    file: Option<PathBuf>,
    /// System that was booted; without it, the one that has the tasks reported
    #[arg(long, value_name = "SYSTEM")]
    system: Option<String>,
    /// Its programs were compiled with --quick
    #[arg(long)]
    quick: bool,
}

/// `build`.
#[derive(Args)]
pub struct BuildArgs {
    /// Programs to build, `kernel` for the kernel; without one, all of them
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,
}

/// `check`.
#[derive(Args)]
pub struct CheckArgs {
    /// Cargo's own messages, as editors read them (.vscode/settings.json)
    #[arg(long)]
    json: bool,
}

/// Reads the command line and does what it says.
///
/// # Errors
/// One sentence (or chain of causes) for the person at the terminal.
pub fn run() -> Result<ExitCode> {
    Cli::try_parse().unwrap_or_else(|why| ui::refuse(&why)).verb.run(&Workspace::find()?)
}

impl Verb {
    /// Does it.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(self, workspace: &Workspace) -> Result<ExitCode> {
        match self {
            Self::Run(args) => return start(workspace, &args),
            Self::Image(args) => write_image(workspace, &args)?,
            Self::Debug(args) => {
                let mut composer = Composer::new(workspace);
                let selection = Selection { fixed_addresses: true, ..args.selection.clone() };
                let bootable = composer.compose(&selection, &name(&selection))?;
                let machine = args.machine.suited_to(&bootable);
                debug::start(workspace, &bootable, &machine, args.gdb)?;
            }
            Self::Explain(args) => explain(workspace, &args)?,
            Self::Check(args) => return check(workspace, args.json),
            Self::Build(args) => build(workspace, &args.programs)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

const fn verdict(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the image's file is called.
fn name(selection: &Selection) -> String {
    let of = selection.root.as_ref().or(selection.system.as_ref());
    let word = of.map_or(DEFAULT_SYSTEM, String::as_str);
    let stem = std::path::Path::new(word).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// `run`.
fn start(workspace: &Workspace, args: &RunArgs) -> Result<ExitCode> {
    let mut selection = args.selection.clone();
    if !args.test && selection.wishes.exec.is_none() && std::io::stdin().is_terminal() {
        selection.wishes.terminal = ui::terminal();
    }
    let bootable = Composer::new(workspace).compose(&selection, &name(&selection))?;
    let size = bootable.image.metadata().map_or(0, |metadata| metadata.len());
    let machine = args.machine.suited_to(&bootable);
    let machine = if args.test { machine } else { machine.for_a_person() };
    let Bootable { kernel, image, .. } = bootable;
    eprintln!("  boot image {} ({})", workspace.show(&image), ui::bytes(size));
    let boot = Boot::Pvh { kernel, image };
    if args.selection.wishes.exec.is_some() {
        let command = machine::command(&boot, &machine, Console::Pipe)?;
        return linux::exec::run(command, args.limit.map_or(UNLIMITED, Duration::from_secs));
    }
    if args.test {
        return run_test(&boot, &machine, args.limit);
    }
    if std::io::stdin().is_terminal() {
        eprintln!("  Leave with Ctrl-A X (the emulator's key); Ctrl-A C is its monitor.\n");
    }
    let exit = machine::interact(workspace, &boot, &machine)?;
    eprintln!("\nbaton: {}", exit.sentence());
    Ok(verdict(!matches!(exit, Exit::Failure | Exit::TripleFault)))
}

/// `run --test`.
fn run_test(boot: &Boot, machine: &machine::Options, limit: Option<u64>) -> Result<ExitCode> {
    let limit = limit.map_or(TEST_LIMIT, Duration::from_secs);
    let command = machine::command(boot, machine, Console::Pipe)?;
    let ended = Session::start(command, limit, true)?.wait_for_end(|_| ());
    eprintln!("\nbaton: {}", ended.sentence(limit));
    Ok(verdict(ended == Ended::Exited(Exit::Success)))
}

/// `image`.
fn write_image(workspace: &Workspace, args: &ImageArgs) -> Result<()> {
    iso::check_output(&args.output)?;
    let bootable = Composer::new(workspace).compose(&args.selection, &name(&args.selection))?;
    let step = ui::Step::start("writing the CD image");
    iso::write(workspace, &bootable, &args.kernel_args, &args.output)?;
    let metadata = args.output.metadata().context("the CD image cannot be read back")?;
    step.done(&ui::bytes(metadata.len()));
    println!("{} boots with {}.", args.output.display(), iso::firmwares());
    println!("Copy it to a USB stick as it is, or try it:");
    println!(
        "    {} -cpu max -m 512 -serial stdio -cdrom {}",
        machine::QEMU,
        args.output.display()
    );
    Ok(())
}

/// `explain`.
fn explain(workspace: &Workspace, args: &ExplainArgs) -> Result<()> {
    let text = match &args.file {
        Some(file) => {
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?
        }
        None => {
            if std::io::stdin().is_terminal() {
                eprintln!("  Paste the console's text, then press Ctrl-D.");
            }
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).context("cannot read standard input")?;
            text
        }
    };
    let text = String::from_utf8_lossy(&text).replace('\r', "");
    let system = debug::reported_system(workspace, &text, args.system.as_deref())?;
    let selection = Selection { system: Some(system), quick: args.quick, ..Selection::default() };
    let bootable = Composer::new(workspace).compose(&selection, &name(&selection))?;
    print!("{}", debug::explain(&text, &bootable.tasks)?);
    Ok(())
}

/// `build`.
fn build(workspace: &Workspace, names: &[String]) -> Result<()> {
    let mut programs = build::Programs::default();
    if names.is_empty() || names.iter().any(|name| name == build::KERNEL) {
        let kernel = build::kernel(workspace)?;
        println!("{:<16} {}", build::KERNEL, workspace.show(&kernel));
    }
    let named = || names.iter().map(String::as_str).filter(|name| *name != build::KERNEL);
    if names.is_empty() {
        programs.build_all(workspace)?;
    } else {
        programs.build(workspace, named())?;
    }
    for (name, file) in programs.files() {
        println!("{name:<16} {}", workspace.show(file));
    }
    programs.complain()?;
    named().try_for_each(|name| programs.find(workspace, name, build::Role::Task).map(drop))
}

/// `check`. What cargo says goes through as it is; all parts are checked even if one fails.
fn check(workspace: &Workspace, json: bool) -> Result<ExitCode> {
    let mut good = true;
    let tool = build::inspect_tool(workspace, "check")?;
    // An SDK has the tool without its sources.
    let tool = Some(tool).filter(|_| workspace.path("xtask/Cargo.toml").is_file());
    for (title, mut cargo) in build::inspect(workspace, "check")?.into_iter().chain(tool) {
        cargo.arg("--keep-going");
        if json {
            cargo.args(["--quiet", "--message-format=json"]);
        } else {
            eprintln!("  {title}");
        }
        good &= cargo.status().with_context(|| format!("cannot run {title}"))?.success();
    }
    Ok(verdict(good))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let workspace = Workspace::find().unwrap();
        let error = build(&workspace, &["no-such-program".to_owned()]).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no program and no file `no-such-program`; the"),
            "{error}"
        );
    }

    #[test]
    fn images_are_named_after_what_they_hold() {
        let with = |system: Option<&str>, root: Option<&str>| {
            name(&Selection {
                system: system.map(Into::into),
                root: root.map(Into::into),
                ..Selection::default()
            })
        };
        assert_eq!(with(None, None), DEFAULT_SYSTEM);
        assert_eq!(with(Some("systems/my.toml"), None), "my");
        assert_eq!(with(Some("linux"), Some("a/b.elf")), "b");
    }
}
