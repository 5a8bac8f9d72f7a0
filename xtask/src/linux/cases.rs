//! Reads `tests/linux/cases.toml`: what is run on both systems.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::workspace::Workspace;

/// The list.
const FILE: &str = "tests/linux/cases.toml";
/// Time that a case gets, unless it says otherwise, seconds.
const SECONDS: u64 = 60;

/// How a test program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// At a fixed address, all in one file.
    Static,
    /// Anywhere, all in one file.
    Pie,
    /// With the C library as a shared object.
    Dynamic,
}

impl Variant {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Pie => "pie",
            Self::Dynamic => "dynamic",
        }
    }

    /// What the compiler has to be told.
    #[must_use]
    pub const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Static => &["-static", "-no-pie"],
            Self::Pie => &["-static-pie", "-fPIE"],
            Self::Dynamic => &["-pie", "-fPIE"],
        }
    }
}

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    /// C programs of `tests/linux/programs`.
    #[serde(default, rename = "program")]
    pub programs: Vec<Program>,
    /// Scripts of `tests/linux/scripts`.
    #[serde(default, rename = "script")]
    scripts: Vec<Script>,
    /// Anything else.
    #[serde(default, rename = "command")]
    commands: Vec<Command>,
}

/// What every kind of case can say: whether it is in the short run, its processors, its time
/// limit and its masks.
struct Common<'a>(bool, Option<u32>, Option<u64>, &'a [String]);

/// A C program, run once for each way to link it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// `NAME.c`
    pub name: String,
    /// Ways to link it.
    #[serde(default = "usual_variants")]
    pub variants: Vec<Variant>,
    /// Its arguments.
    #[serde(default)]
    args: String,
    #[serde(default)]
    short: bool,
    cpus: Option<u32>,
    seconds: Option<u64>,
    #[serde(default)]
    mask: Vec<String>,
}

fn usual_variants() -> Vec<Variant> {
    vec![Variant::Static, Variant::Dynamic]
}

/// A script, run once by each shell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    name: String,
    shells: Vec<String>,
    #[serde(default)]
    short: bool,
    cpus: Option<u32>,
    seconds: Option<u64>,
    #[serde(default)]
    mask: Vec<String>,
}

/// A line for the shell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    name: String,
    run: String,
    #[serde(default)]
    short: bool,
    cpus: Option<u32>,
    seconds: Option<u64>,
    #[serde(default)]
    mask: Vec<String>,
}

/// The three kinds say it with the same words.
macro_rules! common {
    ($($kind:ty),*) => {$(
        impl $kind {
            fn common(&self) -> Common<'_> {
                Common(self.short, self.cpus, self.seconds, &self.mask)
            }
        }
    )*};
}
common!(Program, Script, Command);

/// One thing to run and to compare.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the report calls it: one word.
    pub name: String,
    /// What the shell is told.
    pub run: String,
    /// Time limit, seconds.
    pub seconds: u64,
    /// Part of the short run.
    pub short: bool,
    /// Processors that it is for: it is not run with fewer.
    pub cpus: u32,
    /// The machine's time goes by what it executes, a nanosecond for each instruction, and not by this machine's: for
    /// what waits for others only so long, whatever they have to do. It is slower.
    pub counted: bool,
    /// Patterns whose matches do not count.
    pub masks: Vec<String>,
}

impl Cases {
    /// Reads the list.
    ///
    /// # Errors
    /// `FILE: sentence` for the first mistake.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let text = std::fs::read_to_string(workspace.path(FILE))
            .with_context(|| format!("cannot read {FILE}"))?;
        toml::from_str(&text).with_context(|| format!("{FILE} is not a list of cases"))
    }

    /// Every single case, in order.
    ///
    /// # Errors
    /// A sentence about a name that is taken or a pattern that is broken.
    pub fn all(&self) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        for program in &self.programs {
            for variant in &program.variants {
                let file = program_file(&program.name, *variant);
                let run = format!("/test/bin/{file} {}", program.args).trim_end().to_owned();
                cases.push(program.common().case(&file, run)?);
            }
        }
        for script in &self.scripts {
            for shell in &script.shells {
                let name = format!("{}.{shell}", script.name);
                let run = format!("/bin/{shell} /test/scripts/{}.sh", script.name);
                cases.push(script.common().case(&name, run)?);
            }
        }
        for command in &self.commands {
            cases.push(command.common().case(&command.name, command.run.clone())?);
        }
        let mut names = BTreeSet::new();
        for case in &cases {
            ensure!(names.insert(case.name.as_str()), "two cases are called `{}`", case.name);
        }
        Ok(cases)
    }
}

/// The file name of a linked program.
#[must_use]
pub fn program_file(name: &str, variant: Variant) -> String {
    format!("{name}.{}", variant.word())
}

impl Common<'_> {
    fn case(&self, name: &str, run: String) -> Result<Case> {
        if name.is_empty() || name.contains(char::is_whitespace) || run.contains('\n') {
            bail!("the case `{name}` needs a name without blanks, and a command of one line");
        }
        let Self(short, cpus, seconds, masks) = *self;
        let (seconds, cpus, masks) =
            (seconds.unwrap_or(SECONDS), cpus.unwrap_or(1), masks.to_vec());
        Ok(Case { name: name.to_owned(), run, seconds, short, cpus, counted: false, masks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_case_is_expanded() {
        let text = "[[program]]\nname = \"files\"\nvariants = [\"static\", \"pie\"]\nshort = true\n\
                    [[script]]\nname = \"pipes\"\nshells = [\"ash\", \"bash\"]\nseconds = 7\n\
                    [[command]]\nname = \"true\"\nrun = \"true\"\nmask = [\"[0-9]+\"]\n";
        let cases = toml::from_str::<Cases>(text).unwrap().all().unwrap();
        let shown: Vec<(&str, &str, u64, bool)> =
            cases.iter().map(|c| (c.name.as_str(), c.run.as_str(), c.seconds, c.short)).collect();
        assert_eq!(
            shown,
            [
                ("files.static", "/test/bin/files.static", SECONDS, true),
                ("files.pie", "/test/bin/files.pie", SECONDS, true),
                ("pipes.ash", "/bin/ash /test/scripts/pipes.sh", 7, false),
                ("pipes.bash", "/bin/bash /test/scripts/pipes.sh", 7, false),
                ("true", "true", SECONDS, false),
            ]
        );
        assert_eq!(cases[4].masks.len(), 1);
    }

    #[test]
    fn mistakes_are_refused() {
        let refused =
            |text: &str| format!("{:#}", toml::from_str::<Cases>(text).unwrap().all().unwrap_err());
        let command = |name: &str| format!("[[command]]\nname = \"{name}\"\nrun = \"true\"\n");
        assert!(refused(&command("a b")).contains("without blanks"));
        assert!(refused(&(command("a") + &command("a"))).contains("two cases are called `a`"));
    }
}
