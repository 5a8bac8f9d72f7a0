//! `explain`: the root task reports a fault with addresses; this says which functions and
//! lines they are.
//!
//! The stack that a report shows is what pointed into the program's text. Only what lies
//! behind a call instruction is a return address; the rest is left out.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context, Result, ensure};
use regex::Regex;

use crate::image::elf::Executable;

/// `root: NAME: thread ID at 0xIP ...`
static FAULT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"root: ([\w.-]+): thread [0-9]+\.[0-9]+ at 0x([0-9a-f]+) ").ok());
/// `root: NAME: thread ID has on its stack: 0x... 0x...`
static STACK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"root: ([\w.-]+): thread [0-9]+\.[0-9]+ has on its stack:((?: 0x[0-9a-f]+)+)").ok()
});

/// The console's text with an indented line per function behind each report; `tasks` are
/// the programs by name.
///
/// # Errors
/// When a program cannot be read, or addr2line not be run.
pub fn explain(console: &str, tasks: &[(String, PathBuf)]) -> Result<String> {
    let mut text = String::new();
    for line in console.lines() {
        text.push_str(line);
        text.push('\n');
        let Some((name, addresses, are_returns)) = report(line) else { continue };
        let Some((_, file)) = tasks.iter().find(|(task, _)| *task == name) else { continue };
        let addresses = if are_returns { returns(file, &addresses)? } else { addresses };
        for place in places(file, &addresses)? {
            text.push_str(&format!("    {place}\n"));
        }
    }
    Ok(text)
}

/// The task's name and the addresses of a report; whether they are from a stack.
fn report(line: &str) -> Option<(String, Vec<u64>, bool)> {
    let number = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok();
    if let Some(found) = STACK.as_ref()?.captures(line) {
        let addresses = found[2].split_ascii_whitespace().filter_map(number).collect();
        return Some((found[1].to_owned(), addresses, true));
    }
    let found = FAULT.as_ref()?.captures(line)?;
    Some((found[1].to_owned(), vec![number(&found[2])?], false))
}

/// Of `addresses`, those that a call instruction lies in front of: its last byte, so that
/// the line is the call's.
fn returns(file: &Path, addresses: &[u64]) -> Result<Vec<u64>> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {name}"))?;
    let program = Executable::parse(&name, &bytes)?;
    let before = |address: u64| -> Option<Vec<u8>> {
        let last = address.checked_sub(1)?;
        let segment = program.segments.iter().find(|s| s.virt_range().contains(&last))?;
        let end = (address - segment.virt) as usize;
        segment.bytes.get(end.saturating_sub(7)..end).map(<[u8]>::to_vec)
    };
    let is_return = |address: &&u64| before(**address).is_some_and(|bytes| ends_with_call(&bytes));
    Ok(addresses.iter().filter(is_return).map(|address| address - 1).collect())
}

/// Whether a call (near, relative or indirect; Intel SDM vol. 2, CALL) ends here.
fn ends_with_call(bytes: &[u8]) -> bool {
    let at = |back: usize| bytes.len().checked_sub(back).map(|index| bytes[index]);
    let indirect = |back: usize, modes: &[u8]| {
        // ModRM of `call r/m64`: opcode FF, register field 2.
        at(back) == Some(0xFF)
            && at(back - 1)
                .is_some_and(|modrm| modrm >> 3 & 7 == 2 && modes.contains(&(modrm >> 6)))
    };
    at(5) == Some(0xE8)
        || indirect(2, &[0, 3])
        || indirect(3, &[0, 1])
        || indirect(4, &[1])
        || indirect(6, &[0, 2])
        || indirect(7, &[2])
}

/// `function at file:line` of each address, inlined ones on lines of their own.
fn places(file: &Path, addresses: &[u64]) -> Result<Vec<String>> {
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let mut child = Command::new("addr2line")
        .args(["-f", "-C", "-i", "-p", "-e"])
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run addr2line; install the package binutils")?;
    let list: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let mut input = child.stdin.take().context("addr2line takes no input")?;
    input.write_all(list.as_bytes()).context("addr2line stopped reading")?;
    drop(input);
    let output = child.wait_with_output().context("addr2line does not end")?;
    ensure!(output.status.success(), "addr2line cannot read {}", file.display());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter(|line| !line.starts_with("??")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_recognised() {
        let fault = "root: crash-me: thread 193.65539 at 0x402940 tried to read 0x0, but so.";
        assert_eq!(report(fault), Some(("crash-me".to_owned(), vec![0x40_2940], false)));
        let stack = "x root: a.b: thread 81.3 has on its stack: 0x401000 0x40beef";
        assert_eq!(report(stack), Some(("a.b".to_owned(), vec![0x40_1000, 0x40_BEEF], true)));
        assert_eq!(report("root: cannot start the system: because"), None);
    }

    #[test]
    fn calls_are_told_from_other_instructions() {
        let call = |bytes: &[u8]| ends_with_call(bytes);
        assert!(call(&[0x90, 0x90, 0xE8, 1, 2, 3, 4]));
        assert!(call(&[0x90, 0xFF, 0xD0]), "call rax");
        assert!(call(&[0xFF, 0x50, 0x18]), "call [rax+0x18]");
        assert!(call(&[0xFF, 0x15, 1, 2, 3, 4]), "call [rip+...]");
        assert!(call(&[0xFF, 0x94, 0x24, 1, 2, 3, 4]), "call [rsp+...]");
        assert!(!call(&[0xFF, 0xC0]), "inc eax");
        assert!(!call(&[0xE9, 1, 2, 3, 4]), "jmp");
        assert!(!call(&[]));
    }

    #[test]
    fn text_without_reports_stays_as_it_is() {
        assert_eq!(
            explain("a\nroot: x: thread 1.2 at 0x5 did it\n", &[]).unwrap().lines().count(),
            2
        );
    }
}
