//! The techniques of the papers that can be switched off (`kernel/src/techniques.rs`), and the
//! kernel without some of them, for whatever boots one.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use regex::Regex;

use crate::compose::Composer;
use crate::ui::Step;
use crate::variants::Variants;
use crate::workspace::Workspace;

/// Where they are.
pub const TECHNIQUES: &str = "kernel/src/techniques.rs";

/// What the kernel is to do without.
#[derive(Args, Clone, Debug, Default)]
pub struct Without {
    /// Technique to switch off, by its name in kernel/src/techniques.rs (repeatable)
    #[arg(long = "without", value_name = "TECHNIQUE")]
    pub techniques: Vec<String>,
}

impl Without {
    /// Boots systems with the kernel that is meant.
    ///
    /// # Errors
    /// When it can't be built, or there is no such technique.
    pub fn composer<'a>(&self, workspace: &'a Workspace) -> Result<Composer<'a>> {
        let composer = Composer::new(workspace);
        if self.techniques.is_empty() {
            return Ok(composer);
        }
        let kernel = kernel_without(workspace, &self.techniques)?;
        // A run repeats with this option only.
        println!("  kernel without {}", self.techniques.join(", "));
        Ok(composer.with_kernel(kernel))
    }
}

/// The tree's kernel with the techniques `names` off.
///
/// # Errors
/// When it can't be built, or there is no such technique.
pub fn kernel_without(workspace: &Workspace, names: &[String]) -> Result<PathBuf> {
    let variants = Variants::copy(workspace)?;
    let source = variants.original(TECHNIQUES)?;
    let all = switches(&source)?;
    let off = names.iter().map(|name| find(&all, name)).collect::<Result<Vec<_>>>()?;
    let name = format!("without-{}", names.join("-").to_lowercase());
    let step = Step::start(format!("kernel without {}", names.join(", ")));
    let kernel = variants.build(&name, TECHNIQUES, &switched_off(&source, &off)?)?;
    step.vanish();
    Ok(kernel)
}

/// The switch called `name`.
///
/// # Errors
/// A sentence with those that there are.
pub fn find<'a>(all: &'a [Switch], name: &str) -> Result<&'a Switch> {
    let known = || all.iter().map(|switch| &*switch.constant).collect::<Vec<_>>().join(", ");
    let switch = all.iter().find(|switch| switch.constant == name);
    switch.with_context(|| {
        format!("there is no technique `{name}` to switch off in {TECHNIQUES}; known: {}", known())
    })
}

/// A switch in the kernel's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub constant: String,
    off: &'static str,
}

/// Finds the switches: booleans that are on, and counts whose off is 1.
///
/// # Errors
/// When there is none.
pub fn switches(source: &str) -> Result<Vec<Switch>> {
    let pattern = Regex::new(r"(?m)^pub const (\w+): (bool|usize) = (\w+);")?;
    let all = pattern.captures_iter(source).filter_map(|found| {
        let off = match (&found[2], &found[3]) {
            ("bool", "true") => "false",
            ("usize", count) if count != "1" => "1",
            _ => return None,
        };
        Some(Switch { constant: found[1].to_owned(), off })
    });
    let all: Vec<Switch> = all.collect();
    ensure!(!all.is_empty(), "{TECHNIQUES} has no switches");
    Ok(all)
}

/// `source` with these switches off.
///
/// # Errors
/// When a name can't be looked for.
pub fn switched_off(source: &str, off: &[&Switch]) -> Result<String> {
    let mut text = source.to_owned();
    for switch in off {
        let pattern = Regex::new(&format!(r"(?m)^(pub const {}: \w+ = )\w+;", switch.constant))?;
        text = pattern.replace(&text, format!("${{1}}{};", switch.off)).into_owned();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// A.\npub const A_B: bool = true;\npub const C: bool = false;\npub const N: usize = 1024;\nconst D: bool = true;\n";

    #[test]
    fn switches_are_found_and_turned() {
        let all = switches(SOURCE).unwrap();
        assert_eq!(all.iter().map(|s| s.constant.as_str()).collect::<Vec<_>>(), ["A_B", "N"]);
        let text = switched_off(SOURCE, &[&all[0], &all[1]]).unwrap();
        assert!(
            text.contains("A_B: bool = false;")
                && text.contains("N: usize = 1;")
                && text.contains("D: bool = true;")
        );
    }

    #[test]
    fn an_unknown_one_is_named_with_the_known() {
        let all = switches(SOURCE).unwrap();
        assert_eq!(find(&all, "N").unwrap().constant, "N");
        let error = find(&all, "X").unwrap_err().to_string();
        assert!(error.contains("`X`") && error.contains("A_B, N"), "{error}");
    }
}
