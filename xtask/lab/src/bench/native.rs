//! Suite `native`: local IPC's user-level path, and what the kernel's paths do to vector
//! registers, in ordinary processes, true cycles.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::row::Row;
use crate::workspace::Workspace;

const SOURCE: &str = "bench/host/native/lipc.c";
/// Where the kernel has the path of local IPC, and the macro's name.
const PATH_SOURCE: &str = "kernel/src/arch/x86_64/local_stubs.S";
const PATH: &str = "local_path name, receiver, wait, slow, from, short";
/// The macro by which it returns.
const LEAVE: &str = "leave_path";
const FLAGS: [&str; 8] = [
    "-O2",
    "-masm=intel",
    "-mno-red-zone",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fomit-frame-pointer",
    "-pthread",
    "-Wall",
];
/// Wenske 2002, 5.2 and 6: his prototype of the same on a Pentium III, cycles.
const PAPER: f64 = 12.0;

/// What vector registers cost, and where the kernel has the instructions.
const VECTOR_SOURCE: &str = "bench/host/native/vector.c";
const VECTOR_PATHS: &str = "kernel/src/arch/x86_64/entry/vector.S";
/// What the kernel's text finds by name: where a thread of the program has its areas, and the
/// components that the kernel has enabled where it says "all" (a process may have more).
const VECTOR_NAMES: &str = "\
.set VECTOR_INITIAL, 0
.set VECTOR_AREA, 8
.set VECTOR_FROM, 16
.macro patch_site feature, instruction:vararg
.endm
";
const ALL: &str = "eax, ALL_COMPONENTS";
const ENABLED: &str = "eax, 0xE7";

/// Compiles and runs the programs.
///
/// # Errors
/// When one cannot be compiled, or its own check fails.
pub fn rows(workspace: &Workspace) -> Result<Vec<Row>> {
    let dir = workspace.target("bench")?;
    let (program, macros) = (dir.join("native-lipc"), dir.join("path-macros.S"));
    std::fs::write(&macros, path_macros(&read_source(workspace, PATH_SOURCE)?)?)
        .context("cannot write the path's macros")?;
    let mut flags = vec![format!("-DPATH_MACROS=\"{}\"", macros.display())];
    flags.extend(PATH_NAMES.map(|(name, value)| format!("-D{name}={value}")));
    let flags: Vec<&str> = FLAGS.into_iter().chain(flags.iter().map(String::as_str)).collect();
    compile(workspace, SOURCE, &flags, &program)?;
    let mut rows = rows_of(&program)?;
    rows.push(
        Row::baton("native", "native/lipc-cycles", PAPER).unit("cycles").of("paper", "recorded"),
    );
    let (program, macros) = (dir.join("native-vector"), dir.join("vector-macros.S"));
    std::fs::write(&macros, vector_macros(&read_source(workspace, VECTOR_PATHS)?)?)
        .context("cannot write the macros")?;
    let where_they_are = format!("-DVECTOR_MACROS=\"{}\"", macros.display());
    let flags: Vec<&str> = FLAGS.into_iter().chain([where_they_are.as_str()]).collect();
    compile(workspace, VECTOR_SOURCE, &flags, &program)?;
    rows.extend(rows_of(&program)?);
    Ok(rows)
}

fn read_source(workspace: &Workspace, source: &str) -> Result<String> {
    std::fs::read_to_string(workspace.path(source)).with_context(|| format!("cannot read {source}"))
}

/// The path's names for words of a UTCB and their values.
const PATH_NAMES: [(&str, i64); 6] = [
    ("LIPC_WAIT", abi::utcb::LIPC_WAIT as i64),
    ("LIPC_SP", abi::utcb::LIPC_SP as i64),
    ("LIPC_STATE", abi::utcb::LIPC_STATE as i64),
    ("LIPC_OPEN", abi::utcb::lipc_open(0) as i64),
    ("LIPC_OPEN_LOCAL", abi::utcb::lipc_open_local(0) as i64),
    ("LIPC_RUNS", abi::utcb::LIPC_RUNS as i64),
];

/// The kernel's path of local IPC as macros for an ordinary process: `local_path`, and
/// `local_path_ret`, which returns by RET.
fn path_macros(source: &str) -> Result<String> {
    let leave = macro_body(source, PATH_SOURCE, LEAVE)?;
    let mut path = macro_body(source, PATH_SOURCE, PATH)?.to_owned();
    ensure!(path.contains(LEAVE), "{PATH_SOURCE}: the path does not return by {LEAVE}");
    for (name, value) in PATH_NAMES {
        path = path.replace(&format!("{{{name}}}"), &value.to_string());
    }
    let with_ret = path.replace(LEAVE, "ret");
    let (head, tail) = PATH.split_once(' ').unwrap_or((PATH, ""));
    let text = format!(
        ".macro {LEAVE}\n{leave}.endm\n.macro {PATH}\n{path}.endm\n\
         .macro {head}_ret {tail}\n{with_ret}.endm\n"
    );
    // The compiler for the kernel knows these comments, the host's assembler does not.
    let code = text.lines().map(|line| line.split("//").next().unwrap_or(line).trim_end());
    // The restrictive check is another kernel's.
    let code = code.filter(|line| !line.contains("unless_changed"));
    Ok(code.fold(String::new(), |all, line| all + line + "\n"))
}

/// The text of the macro that begins with `.macro NAME` in the kernel's file `path`.
fn macro_body<'a>(source: &'a str, path: &str, name: &str) -> Result<&'a str> {
    let start = format!(".macro {name}\n");
    let rest = source.split_once(&start).map(|(_, rest)| rest);
    let body = rest.and_then(|rest| rest.split_once(".endm")).map(|(body, _)| body);
    body.with_context(|| format!("{path} has no macro {name}"))
}

/// The kernel's macros that load a thread's registers, and the part of one that saves them, for
/// an ordinary process.
fn vector_macros(source: &str) -> Result<String> {
    let body = |name: &str| macro_body(source, VECTOR_PATHS, name);
    let keep = body("KEEP_REGISTERS")?.replacen("63:", "", 1);
    let saved = keep.split_inclusive('\n').take_while(|line| !line.contains("xor"));
    let bodies = [
        ("LOAD_INITIAL", body("LOAD_INITIAL")?.to_owned()),
        ("LOAD_KEPT", body("LOAD_KEPT")?.to_owned()),
        ("SAVE_KEPT", saved.collect()),
    ];
    let macros = bodies.map(|(name, text)| format!(".macro {name}\n{text}.endm\n"));
    Ok(VECTOR_NAMES.to_owned() + &macros.concat().replace(['{', '}'], "").replace(ALL, ENABLED))
}

/// Runs a program and reads its rows.
fn rows_of(program: &Path) -> Result<Vec<Row>> {
    let output = Command::new(program)
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success() && text.contains("bench done"),
        "{} failed:\n{text}",
        program.display()
    );
    text.lines().filter(|line| line.starts_with("note: ")).for_each(|line| eprintln!("  {line}"));
    read(&text)
}

/// Compiles a program for the host.
///
/// # Errors
/// The compiler's words.
pub fn compile(
    workspace: &Workspace,
    source: &str,
    flags: &[&str],
    program: &std::path::Path,
) -> Result<()> {
    let mut gcc = Command::new("gcc");
    gcc.args(flags).arg("-o").arg(program).arg(workspace.path(source));
    let output = gcc.output().context("cannot run gcc; install the package gcc")?;
    ensure!(
        output.status.success(),
        "{source} could not be compiled:\n{}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(())
}

/// `row NAME MEDIAN low=.. high=.. samples=..`
fn read(text: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("row ")) {
        let mut words = line.split(' ');
        let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse::<f64>))
        else {
            bail!("the native prototype printed `{line}`, which is no row");
        };
        let mut row = Row::baton("native", name, value).unit("cycles");
        row.method = "native process, time stamp counter, median".to_owned();
        for (key, number) in words.filter_map(|word| word.split_once('=')) {
            row = row.with(key, number);
        }
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_instructions_are_measured() {
        let macros =
            vector_macros(include_str!("../../../../kernel/src/arch/x86_64/entry/vector.S"));
        let macros = macros.unwrap();
        for wanted in [
            ".macro LOAD_INITIAL\n    mov     rcx, [rbp + VECTOR_INITIAL]\n    mov     eax, 0xE7",
            "    xrstor64 [rcx]\n    fldcw   [rcx]\n.endm",
            ".macro SAVE_KEPT\n",
            "    xsaveopt64 [rcx]\n.endm",
        ] {
            assert!(macros.contains(wanted), "{wanted} is missing:\n{macros}");
        }
    }

    #[test]
    fn the_kernels_own_path_is_measured() {
        let macros = path_macros(include_str!("../../../../kernel/src/arch/x86_64/local_stubs.S"));
        let macros = macros.unwrap();
        for wanted in [
            ".macro leave_path\n    pop rcx\n    jmp rcx\n.endm",
            ".macro local_path name, receiver, wait, slow, from, short\n",
            "    mov r11, [rdi + 8 * -60]\n.ifb \\short\n    cmp r9w, r11w\n",
            "    cmp [rsi + 8 * -62], \\receiver\n",
            "\\name\\()_done:\n    ret\n\\name\\()_aside:",
        ] {
            assert!(macros.contains(wanted), "{wanted} is missing:\n{macros}");
        }
        assert!(!macros.contains('{'), "a name has no value:\n{macros}");
    }

    #[test]
    fn rows_are_read() {
        let rows = read("row native/lipc-cycles 9.09 low=8.77 high=9.69 samples=201\nbench done\n")
            .unwrap();
        assert_eq!((rows.len(), rows[0].value, rows[0].unit.as_str()), (1, 9.09, "cycles"));
        assert_eq!(rows[0].parameters["high"], "9.69");
        assert!(read("row native/x soon\n").is_err());
    }
}
