//! The checker on programs that gcc makes here.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

/// Compiles `source`; the file is gone when this is.
struct Program(PathBuf);

impl Program {
    fn new(name: &str, source: &str, flags: &[&str]) -> Self {
        let file = std::env::temp_dir().join(format!("baton-check-{name}-{}", std::process::id()));
        let text = file.with_extension("c");
        std::fs::write(&text, source).unwrap();
        let done =
            Command::new("gcc").args(flags).arg("-o").arg(&file).arg(&text).output().unwrap();
        std::fs::remove_file(&text).unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Self(file)
    }

    fn calls(&self) -> reach::Reached {
        reach::follow(&self.0).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const BARE: [&str; 4] = ["-O1", "-nostdlib", "-static", "-fcf-protection=none"];
/// Makes two calls; holds a third function by address, and a fourth not at all.
const SOURCE: &str = r#"
static long call(long number) {
    long result = number;
    __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    return result;
}
__attribute__((noinline)) static void pointed(void) { call(39); }
__attribute__((noinline)) void unused(void) { call(57); }
void (*volatile table[])(void) = { pointed };
void _start(void) {
    call(0);
    table[0]();
    call(60);
}
"#;

#[test]
fn only_what_is_reached_counts() {
    for (name, flags) in [("fixed", &["-no-pie"][..]), ("anywhere", &["-static-pie", "-fPIE"])] {
        let program = Program::new(name, SOURCE, &[&BARE, flags].concat());
        let reached = program.calls();
        assert_eq!(reached.numbers, BTreeSet::from([0, 39, 60]), "{name}");
        assert_eq!(reached.unknown, [], "{name}");
    }
}

#[test]
fn computed_numbers_are_admitted() {
    let source = SOURCE.replace("call(0)", "call((long)table[0])");
    let reached = Program::new("computed", &source, &BARE).calls();
    assert_eq!((reached.numbers.len(), reached.unknown.len()), (2, 1));
}

#[test]
fn libraries_are_followed() {
    let source = "#include <unistd.h>\n#include <sys/syscall.h>\n\
                  int main(void) { sync(); return syscall(SYS_getcpu, 0, 0, 0); }\n";
    let program = Program::new("dynamic", source, &["-O1"]);
    let reached = program.calls();
    let has = |number: u32| reached.numbers.contains(&number);
    assert!(has(162) && has(309), "sync and getcpu: {:?}", reached.numbers);
    assert!(has(231) && has(9), "exit_group and mmap: {:?}", reached.numbers);
    assert!(!has(169), "nobody reboots: {:?}", reached.numbers);
    assert!(reached.files.iter().any(|file| file == "libc.so.6"), "{:?}", reached.files);
}

#[test]
fn other_files_are_refused() {
    let refused = |path: &str| format!("{:#}", reach::follow(Path::new(path)).unwrap_err());
    assert!(refused("/etc/passwd").contains("it is no 64-bit ELF file"));
    assert!(refused("/no/such/file").contains("cannot read"));
}

#[test]
fn the_report_sorts_by_support() {
    let table = Table::parse("0 read full\n1 write partial no tapes\n2 open none\n").unwrap();
    let numbers = BTreeSet::from([0, 1, 2, 999]);
    assert_eq!(lines(&table, &numbers, Support::Partial), ["write (1): no tapes"]);
    assert_eq!(
        lines(&table, &numbers, Support::None),
        ["open (2)", "call 999, which Linux has not either"]
    );
    assert!(!report(&table, &numbers, true));
    assert!(report(&table, &BTreeSet::from([0, 1]), false));
}
