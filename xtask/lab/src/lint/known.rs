//! Files and functions that were longer than they may be when the rule came into force. They are
//! to be split; the lists only get shorter. And the functions of the kernel that have a
//! parameter that is only true or false, each with its reason.

use super::{Findings, MAX_FILE_LINES, MAX_FUNCTION_LINES};

const LONG_FILES: &[&str] = &[];

const LONG_FUNCTIONS: &[(&str, &str)] = &[
    ("idl/src/rust/types.rs", "variant"),
    ("kernel/src/boot/refusal.rs", "fmt"),
    ("kernel/tests/all/crossing/machine.rs", "request"),
    (
        "kernel/tests/all/scheduling.rs",
        "the_ready_queue_is_rings_by_priority_that_are_cleaned_lazily",
    ),
    ("kernel/tests/all/scheduling.rs", "wakeups_come_never_early_and_at_most_a_grain_late"),
    ("lib/unix/src/exec/stack.rs", "fill"),
    ("lib/unix/src/mm/map.rs", "describe"),
    ("lib/unix/src/process/birth.rs", "new_process"),
    ("lib/unix/src/stream/socket/options.rs", "setsockopt"),
    ("lib/unix/src/tty/control.rs", "ioctl"),
    ("lib/unix/tests/all/exhaustion.rs", "exhausts"),
    ("lib/unix/tests/all/memory/limits.rs", "random_calls_keep_the_books"),
    ("lib/unix/tests/all/memory/wrapping.rs", "no_length_reaches_what_no_call_names"),
    ("tests/kernel/src/hostile/calls.rs", "privileged"),
    ("tests/kernel/src/hostile/code.rs", "privileged"),
    ("tests/kernel/src/hostile/code.rs", "stacks"),
    ("tests/kernel/src/memory/rights.rs", "across"),
    ("tests/kernel/src/protocols/exceptions.rs", "vectors"),
    ("tests/local-ipc/src/adversary.rs", "forged"),
];

/// File, function, and why a name for each of the two values would say no more.
const BOOL_PARAMETERS: &[(&str, &str, &str)] = &[
    ("kernel/src/arch/x86_64/asm.rs", "write_gs_base", "whether the processor has an instruction"),
    ("kernel/src/arch/x86_64/machine_error.rs", "is_survivable", "a bit that the processor told"),
    ("kernel/src/arch/x86_64/entry/boot_sequence.rs", "must", "a condition that is asserted"),
    ("kernel/src/arch/x86_64/xsave.rs", "survivors", "whether the processor has an instruction"),
    ("kernel/src/check/mod.rs", "note", "a condition that is asserted"),
    ("kernel/src/check/mod.rs", "tell", "a condition that is asserted"),
    ("kernel/src/ipc/finish.rs", "next_phase", "what `settle` has just answered"),
    ("kernel/src/ipc/finish.rs", "next_phase_elsewhere", "what `settle` has just answered"),
    ("kernel/src/thread/tcb.rs", "set_special", "a bit that is set or not"),
];

/// A sentence for each function of the kernel with a parameter that is only true or false and is
/// not listed, and for each that is listed and has none any more.
pub fn bool_differences(findings: &Findings) -> Vec<String> {
    let found =
        || findings.bool_parameters.iter().map(|(file, name)| (file.as_str(), name.as_str()));
    let listed = || BOOL_PARAMETERS.iter().map(|(file, name, _)| (*file, *name));
    let new = found().filter(|one| !listed().any(|known| known == *one)).map(|(file, name)| {
        format!("{file}: a parameter of `{name}` is only true or false; give the two a type")
    });
    let old = listed().filter(|one| !found().any(|known| known == *one)).map(|(file, name)| {
        format!("{file}: `{name}` needs no reason any more; take it off the list of the lint")
    });
    new.chain(old).collect()
}

/// A sentence for each file and function that is too long and not listed, and for each that is
/// listed and not too long any more.
pub fn differences(findings: &Findings) -> Vec<String> {
    compare(findings, LONG_FILES, LONG_FUNCTIONS)
}

fn compare(findings: &Findings, files: &[&str], functions: &[(&str, &str)]) -> Vec<String> {
    let long_files: Vec<&str> = findings.long_files.iter().map(|(file, _)| file.as_str()).collect();
    let long_functions: Vec<(&str, &str)> =
        findings.long_functions.iter().map(|f| (f.file.as_str(), f.name.as_str())).collect();
    let mut lines = Vec::new();
    for file in long_files.iter().filter(|file| !files.contains(file)) {
        lines.push(format!("{file} has more than {MAX_FILE_LINES} lines; split it"));
    }
    for (file, name) in long_functions.iter().filter(|long| !functions.contains(long)) {
        lines.push(format!("{file}: `{name}` has more than {MAX_FUNCTION_LINES} lines; split it"));
    }
    for file in files.iter().filter(|file| !long_files.contains(file)) {
        lines.push(format!("{file} is no longer too long; take it off the list of the lint"));
    }
    for (file, name) in functions.iter().filter(|known| !long_functions.contains(known)) {
        lines.push(format!(
            "{file}: `{name}` is no longer too long; take it off the list of the lint"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::source::LongFunction;
    use super::*;

    #[test]
    fn only_what_has_a_reason_may_be_true_or_false() {
        let mut known: Vec<(String, String)> = BOOL_PARAMETERS
            .iter()
            .map(|(file, name, _)| ((*file).into(), (*name).into()))
            .collect();
        let differences = |found: &[(String, String)]| {
            bool_differences(&Findings { bool_parameters: found.to_vec(), ..Findings::default() })
        };
        assert_eq!(differences(&known), [""; 0]);
        let (file, name) = known.remove(0);
        known.push(("kernel/src/x.rs".to_owned(), "f".to_owned()));
        assert_eq!(
            differences(&known),
            [
                "kernel/src/x.rs: a parameter of `f` is only true or false; give the two a type"
                    .to_owned(),
                format!(
                    "{file}: `{name}` needs no reason any more; take it off the list of the lint"
                ),
            ]
        );
    }

    #[test]
    fn only_what_is_listed_may_be_long() {
        let function = |name: &str| LongFunction {
            file: "a.rs".to_owned(),
            line: 1,
            name: name.to_owned(),
            lines: 60,
        };
        let findings = Findings {
            long_files: vec![("a.rs".to_owned(), 500), ("b.rs".to_owned(), 500)],
            long_functions: vec![function("f"), function("g")],
            ..Findings::default()
        };
        assert_eq!(compare(&findings, &["a.rs", "b.rs"], &[("a.rs", "f"), ("a.rs", "g")]), [""; 0]);
        let lines = compare(&findings, &["a.rs", "c.rs"], &[("a.rs", "f"), ("b.rs", "g")]);
        assert_eq!(
            lines,
            [
                "b.rs has more than 400 lines; split it",
                "a.rs: `g` has more than 50 lines; split it",
                "c.rs is no longer too long; take it off the list of the lint",
                "b.rs: `g` is no longer too long; take it off the list of the lint",
            ]
        );
    }
}
