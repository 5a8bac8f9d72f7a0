//! Reads `tests/systems.toml`: which machines the tests start and what is
//! expected of them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use regex::Regex;
use serde::Deserialize;

use super::Ring;
use super::damage::Damage;
use super::refused::Refused;
use crate::compose::Selection;
use crate::linux::Wishes;
use crate::machine;
use crate::workspace::Workspace;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Runs, in order.
    #[serde(default, rename = "run")]
    pub runs: Vec<Run>,
    /// Boot images that are refused; each becomes a run.
    refused: Option<Refused>,
}

/// How a run is booted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootKind {
    /// QEMU's `-kernel`.
    #[default]
    Pvh,
    /// A CD, BIOS.
    Iso,
    /// A CD, UEFI.
    Uefi,
    /// A CD, BIOS, in the second emulator; it is left behind the closing line.
    Bochs,
}

/// How the machine has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExpectedExit {
    /// By the debug-exit port, success.
    Success,
    /// By the debug-exit port, failure.
    Failure,
    /// Reset or power-off.
    Reset,
}

/// One step of a dialogue.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Wait for this text.
    Expect(String),
    /// Wait for this pattern.
    Regex(String),
    /// Type this line.
    Send(String),
    /// Type this, without a return key.
    Type(String),
    /// Give this command to the emulator's monitor.
    Monitor(String),
    /// Wait until the screen, in text mode, shows this.
    Screen(String),
    /// Wait until the screen, drawn into a framebuffer, shows this.
    Picture(String),
}

/// One machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What the report calls it.
    pub name: String,
    /// Emulator or system.
    pub ring: Ring,
    /// System description.
    pub system: Option<String>,
    /// Root task instead.
    pub root: Option<String>,
    /// σ0 instead.
    pub sigma0: Option<String>,
    /// Line for the Unix server's shell, as `./baton run --exec` gives it.
    pub exec: Option<String>,
    /// Directory below the workspace to share with it, as `--share`.
    pub share: Option<String>,
    /// Raw files.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Programs for the root task.
    #[serde(default)]
    pub programs: Vec<String>,
    /// What is wrong with the boot image.
    #[serde(skip)]
    pub damage: Vec<Damage>,
    /// How many bytes are left of it.
    #[serde(skip)]
    pub cut: Option<usize>,
    /// How it is booted.
    #[serde(default)]
    pub boot: BootKind,
    /// Memory, MiB.
    #[serde(default = "default_memory")]
    pub memory: u32,
    /// Processors.
    #[serde(default = "one")]
    pub cpus: u32,
    /// Processor, as the emulator names it.
    #[serde(default = "default_cpu")]
    pub cpu: String,
    /// The emulated board, as the emulator names it, where it is not its own choice.
    pub board: Option<String>,
    /// Devices beside the usual ones, as the emulator names them.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Count instructions.
    #[serde(default)]
    pub icount: bool,
    /// A kernel with its own assertions on.
    #[serde(default)]
    pub assertions: bool,
    /// A kernel without these techniques (`kernel/src/techniques.rs`).
    #[serde(default)]
    pub without: Vec<String>,
    /// Words for the kernel.
    #[serde(default)]
    pub kernel_args: Vec<String>,
    /// Commands for a debugger that has the kernel's symbols and the machine stopped before
    /// its first instruction; then the machine runs on by itself.
    #[serde(default)]
    pub tamper: Vec<String>,
    /// It takes long: only if it is asked for by its name.
    #[serde(default)]
    pub named: bool,
    /// Time limit, seconds.
    pub seconds: u64,
    /// The guest reports single tests (`test NAME ... ok`) and `tests done`.
    #[serde(default)]
    pub cases: bool,
    /// A file with the names of cases that are known to fail: they do not count as failures,
    /// and one that no longer fails does until its name is taken off.
    pub open: Option<String>,
    /// How the machine has to end; without it, it is stopped after the dialogue.
    pub exit: Option<ExpectedExit>,
    /// What is said and answered, in order.
    #[serde(default)]
    pub dialogue: Vec<Step>,
}

pub(super) const fn default_memory() -> u32 {
    512
}

pub(super) fn default_cpu() -> String {
    machine::DEFAULT_CPU.to_owned()
}

pub(super) const fn one() -> u32 {
    1
}

impl Spec {
    /// Reads the file; a tree without it has no runs.
    ///
    /// # Errors
    /// `FILE: sentence` for the first mistake.
    pub fn read(path: &Path, shown: &str) -> Result<Self> {
        if !path.is_file() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        Self::parse(&text).with_context(|| format!("{shown} is not a list of runs"))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut spec: Self = toml::from_str(text)?;
        if let Some(refused) = spec.refused.take() {
            spec.runs.extend(refused.runs());
        }
        for (index, run) in spec.runs.iter().enumerate() {
            run.check()?;
            if spec.runs[..index].iter().any(|other| other.name == run.name) {
                bail!("two runs are called `{}`", run.name);
            }
        }
        Ok(spec)
    }
}

impl Step {
    fn compile(&self) -> Result<CompiledStep<'_>> {
        Ok(match self {
            Self::Send(line) => CompiledStep::Send(line),
            Self::Type(text) => CompiledStep::Type(text),
            Self::Monitor(line) => CompiledStep::Monitor(line),
            Self::Screen(text) => CompiledStep::Screen(text, Shown::Text),
            Self::Picture(text) => CompiledStep::Screen(text, Shown::Pixels),
            Self::Expect(text) => CompiledStep::Expect(text, Regex::new(&regex::escape(text))?),
            Self::Regex(text) => CompiledStep::Expect(text, Regex::new(text)?),
        })
    }
}

impl Run {
    fn check(&self) -> Result<()> {
        let name = &self.name;
        if name.is_empty() || name.contains(['/', ' ']) {
            bail!(
                "`{name}` is no name for a run; expected a word without `/` (logs are named after it)"
            );
        }
        if self.ring == Ring::Host {
            bail!("the run `{name}` cannot be in the host ring; expected `emulator` or `system`");
        }
        if self.system.is_none() && self.root.is_none() {
            bail!("the run `{name}` names neither a `system` nor a `root` task");
        }
        if self.boot == BootKind::Bochs && self.exit.is_some() {
            bail!("the run `{name}` has an `exit`, but Bochs is left before it ends");
        }
        if !self.cases && self.exit.is_none() && self.dialogue.is_empty() {
            bail!(
                "the run `{name}` expects nothing; give `cases = true`, an `exit` or a `dialogue`"
            );
        }
        self.steps().map(|_| ())
    }

    /// The dialogue with its patterns compiled.
    ///
    /// # Errors
    /// A sentence about a pattern that is no regular expression.
    pub fn steps(&self) -> Result<Vec<CompiledStep<'_>>> {
        let steps = self.dialogue.iter().map(Step::compile).collect::<Result<_>>();
        steps.with_context(|| format!("the dialogue of `{}` has a broken pattern", self.name))
    }

    /// What to boot.
    #[must_use]
    pub fn selection(&self, workspace: &Workspace) -> Selection {
        Selection {
            system: self.system.clone(),
            root: self.root.clone(),
            sigma0: self.sigma0.clone(),
            modules: self.modules.clone(),
            programs: self.programs.clone(),
            wishes: Wishes {
                exec: self.exec.clone(),
                share: self.share.as_ref().map(|folder| workspace.path(folder)),
                ..Wishes::default()
            },
            ..Selection::default()
        }
    }

    /// On what to boot it.
    #[must_use]
    pub fn machine(&self) -> machine::Options {
        let options = machine::Options {
            memory: Some(self.memory),
            cpus: Some(self.cpus),
            cpu: self.cpu.clone(),
            board: self.board.clone(),
            devices: self.devices.clone(),
            icount: self.icount,
            kernel_args: self.kernel_args.clone(),
            ..machine::Options::default()
        };
        // gdb knows the kernel where it was linked.
        if self.tamper.is_empty() { options } else { options.at_first_places() }
    }
}

/// How a screen shows text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// As words in memory.
    Text,
    /// As pixels.
    Pixels,
}

/// A step ready to be taken.
#[derive(Debug)]
pub enum CompiledStep<'a> {
    /// Type this line.
    Send(&'a str),
    /// Type this, without a return key.
    Type(&'a str),
    /// Give this command to the emulator's monitor.
    Monitor(&'a str),
    /// Wait until the screen shows this: in text mode, or drawn.
    Screen(&'a str, Shown),
    /// Wait for the pattern; the text is for messages.
    Expect(&'a str, Regex),
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str =
        "[[run]]\nname = \"shell\"\nring = \"system\"\nsystem = \"minimal\"\nseconds = 20\n";

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let error = format!("{:#}", Spec::parse(text).expect_err("must be refused"));
        assert!(error.contains(words), "expected `{words}` in: {error}");
    }

    #[test]
    fn a_dialogue_is_read_in_order() {
        let text = format!(
            "{RUN}dialogue = [{{ expect = \"baton> \" }}, {{ send = \"ps\" }}, {{ regex = \"[0-9]+ threads\" }}]\n"
        );
        let spec = Spec::parse(&text).unwrap();
        let steps = spec.runs[0].steps().unwrap();
        assert!(matches!(&steps[0], CompiledStep::Expect("baton> ", p) if p.is_match("x baton> ")));
        assert!(matches!(&steps[1], CompiledStep::Send("ps")));
        assert!(matches!(&steps[2], CompiledStep::Expect(_, p) if p.is_match("12 threads")));
        assert_eq!(spec.runs[0].boot, BootKind::Pvh);
    }

    #[test]
    fn refused_images_become_runs() {
        let text =
            "[refused]\nsystem = \"s\"\ncases = [{ name = \"x\", cut = 9, says = \"why\" }]\n";
        let spec = Spec::parse(text).unwrap();
        let run = &spec.runs[0];
        assert_eq!((run.name.as_str(), run.cut), ("refused-x", Some(9)));
        assert_eq!((run.exit, run.dialogue.len()), (Some(ExpectedExit::Failure), 2));
    }

    #[test]
    fn runs_that_prove_nothing_are_refused() {
        refused(RUN, "expects nothing");
        let bochs = format!("{RUN}boot = \"bochs\"\ncases = true\nexit = \"success\"\n");
        refused(&bochs, "Bochs is left before it ends");
        refused(&RUN.replace("\"system\"", "\"host\""), "cannot be in the host ring");
        refused(
            &RUN.replace("system = \"minimal\"", "cases = true"),
            "neither a `system` nor a `root`",
        );
        refused(&format!("{RUN}cases = true\n{RUN}cases = true\n"), "two runs are called");
        refused(&format!("{RUN}dialogue = [{{ regex = \"(\" }}]\n"), "broken pattern");
        refused(&format!("{RUN}expects = 1\n"), "unknown field");
    }
}
