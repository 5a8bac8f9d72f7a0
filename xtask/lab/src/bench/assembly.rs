//! Source lines of assembly: `global_asm!` leaves no line numbers behind, so the
//! instructions of a function are counted in the file and in the program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// What is unknown to the debugging information.
const UNKNOWN: &str = "??";

/// The source line of every address in `known` whose line is not known and whose
/// function is a label of an assembly file in `sources`.
///
/// # Errors
/// When objdump cannot be run, or a source cannot be read.
pub fn lines(
    elf: &Path,
    sources: &Path,
    known: &BTreeMap<u64, (String, String)>,
) -> Result<Vec<(u64, String)>> {
    let mut functions: Vec<&str> = known
        .values()
        .filter(|(_, place)| place.starts_with(UNKNOWN))
        .map(|(function, _)| function.as_str())
        .collect();
    functions.sort_unstable();
    functions.dedup();
    let files = assembly_files(sources)?;
    let mut found = Vec::new();
    for function in functions.into_iter().filter(|function| !function.starts_with(UNKNOWN)) {
        let Some((file, source)) =
            files.iter().find_map(|(path, text)| Some((path, instructions(text, function)?)))
        else {
            continue;
        };
        let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let program = disassemble(elf, function)?;
        found.extend(
            pair(&program, &source)
                .into_iter()
                .map(|(address, line)| (address, format!("{file}:{line}"))),
        );
    }
    Ok(found)
}

/// The assembly below `folder`.
fn assembly_files(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files.extend(assembly_files(&path)?);
        } else if path.extension().is_some_and(|e| e == "S") {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            files.push((path, text));
        }
    }
    Ok(files)
}

/// Line and mnemonic of every instruction behind the label `function`, up to a macro
/// or the end; `None` without the label.
fn instructions(text: &str, function: &str) -> Option<Vec<(usize, String)>> {
    let label = format!("{function}:");
    let start = text.lines().position(|line| line.trim() == label)?;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate().skip(start + 1) {
        let code = line.split("//").next().unwrap_or_default().trim();
        let code = match code.split_once(':') {
            Some((label, rest))
                if label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') =>
            {
                rest.trim()
            }
            _ => code,
        };
        match code.split_whitespace().next() {
            None => {}
            Some(".macro" | ".rept") => break,
            Some(directive) if directive.starts_with('.') => {}
            Some(mnemonic) => found.push((index + 1, mnemonic.to_owned())),
        }
    }
    Some(found)
}

/// Address and mnemonic of every instruction of `function`.
fn disassemble(elf: &Path, function: &str) -> Result<Vec<(u64, String)>> {
    let output = Command::new("objdump")
        .args(["--no-show-raw-insn", "-M", "intel", &format!("--disassemble={function}")])
        .arg(elf)
        .output()
        .context("cannot run objdump; install the package binutils")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(instruction).collect())
}

/// `  ffffffff8020f000:\tmov    rdi,QWORD PTR [...]`
fn instruction(line: &str) -> Option<(u64, String)> {
    let (address, code) = line.trim_start().split_once(":\t")?;
    Some((u64::from_str_radix(address, 16).ok()?, code.split_whitespace().next()?.to_owned()))
}

/// Pairs the two, skipping the padding that the assembler put in; stops where they
/// disagree (a macro), so that no line is ever wrong.
fn pair(program: &[(u64, String)], source: &[(usize, String)]) -> Vec<(u64, usize)> {
    let mut pairs = Vec::new();
    let mut source = source.iter().peekable();
    for (address, mnemonic) in program {
        let Some((line, wanted)) = source.peek() else { break };
        if same(mnemonic, wanted) {
            pairs.push((*address, *line));
            source.next();
        } else if !is_padding(mnemonic) {
            break;
        }
    }
    pairs
}

fn is_padding(mnemonic: &str) -> bool {
    matches!(mnemonic, "nop" | "xchg" | "cs" | "data16" | "int3" | "lea")
}

/// Whether the assembler's word is the disassembler's: `jnz` is `jne`.
fn same(shown: &str, written: &str) -> bool {
    let usual = match written {
        "jnz" => "jne",
        "jz" => "je",
        "jc" => "jb",
        "jnc" => "jae",
        "sysretq" => "sysret",
        other => other,
    };
    let shown = match shown {
        "sysretq" | "rex.W" => "sysret",
        other => other,
    };
    shown == usual || (usual == "mov" && shown == "movabs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = ".balign 16\nentry:\n    mov rdi, 1  // one\n    jnz 1f\n\n.balign 16\n1:  nop\n    sysretq\n.macro x\n mov\n";

    #[test]
    fn source_lines_are_counted() {
        let found = instructions(SOURCE, "entry").unwrap();
        let wanted = [(3, "mov"), (4, "jnz"), (7, "nop"), (8, "sysretq")];
        assert_eq!(found, wanted.map(|(line, word)| (line, word.to_owned())));
        assert!(instructions(SOURCE, "other").is_none());
    }

    #[test]
    fn padding_is_skipped_and_disagreement_ends() {
        let program = [(1, "mov"), (2, "jne"), (3, "nop"), (4, "nop"), (5, "sysretq"), (6, "add")];
        let program: Vec<(u64, String)> = program.map(|(a, m)| (a, m.to_owned())).into();
        let source = vec![(3, "mov".to_owned()), (4, "jnz".to_owned()), (8, "sysretq".to_owned())];
        assert_eq!(pair(&program, &source), [(1, 3), (2, 4), (5, 8)]);
        let other = vec![(3, "mov".to_owned()), (4, "add".to_owned()), (8, "sysretq".to_owned())];
        assert_eq!(pair(&program, &other), [(1, 3)]);
    }

    #[test]
    fn disassembly_is_read() {
        let line = "ffffffff8020f000:\tmov    rdi,QWORD PTR [rip+0x13039]        # 1 <x>";
        assert_eq!(instruction(line), Some((0xFFFF_FFFF_8020_F000, "mov".to_owned())));
        assert_eq!(instruction("ffffffff8020f000 <baton_ipc_entry>:"), None);
    }
}
