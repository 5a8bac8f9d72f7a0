//! `--trace`: where do the instructions of a row go? One line per instruction with
//! its function and source line; and the same condensed, for the gate.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::assembly;

/// Where the assembly of the kernel and of the measured programs is.
const KERNEL_ASSEMBLY: &str = "kernel/src/arch/x86_64";
const PROGRAM_ASSEMBLY: &str = "bench/guest/src";

/// One executed instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whether the kernel executed it.
    pub kernel: bool,
    /// Where it is.
    pub address: u64,
    /// Disassembled.
    pub text: String,
    /// What it read and wrote: `r ffff... 8`.
    pub accesses: Vec<String>,
}

/// Reads the instrument's lines.
#[must_use]
pub fn read(lines: &[String]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in lines {
        if let Some(access) = line.strip_prefix("m ") {
            if let Some(last) = steps.last_mut() {
                last.accesses.push(access.to_owned());
            }
            continue;
        }
        let mut words = line.splitn(4, ' ').skip(1);
        let (mode, address) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        let text =
            words.next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        steps.push(Step { kernel: mode == "k", address, text, accesses: Vec::new() });
    }
    steps
}

/// Function and source line of addresses.
#[derive(Default)]
pub struct Symbols {
    known: BTreeMap<u64, (String, String)>,
    /// Where something of the libraries has been inlined: the function of Baton's own.
    within: BTreeMap<u64, String>,
}

impl Symbols {
    /// Asks binutils' addr2line about the kernel's part of `steps` and the program's.
    ///
    /// # Errors
    /// When addr2line cannot be run.
    pub fn of(steps: &[Step], kernel: &Path, program: &Path, tree: &Path) -> Result<Self> {
        let mut symbols = Self::default();
        let folders = [(kernel, true, KERNEL_ASSEMBLY), (program, false, PROGRAM_ASSEMBLY)];
        for (file, is_kernel, folder) in folders {
            let mut addresses: Vec<u64> =
                steps.iter().filter(|s| s.kernel == is_kernel).map(|s| s.address).collect();
            addresses.sort_unstable();
            addresses.dedup();
            symbols.ask(file, &addresses, &tree.join(folder))?;
        }
        Ok(symbols)
    }

    /// The same of addresses of one program.
    ///
    /// # Errors
    /// When addr2line cannot be run.
    pub fn at(mut addresses: Vec<u64>, file: &Path, sources: &Path) -> Result<Self> {
        let mut symbols = Self::default();
        addresses.sort_unstable();
        symbols.ask(file, &addresses, sources)?;
        Ok(symbols)
    }

    fn ask(&mut self, file: &Path, addresses: &[u64], sources: &Path) -> Result<()> {
        let mut child = Command::new("addr2line")
            .args(["-a", "-i", "-f", "-C", "-e"])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run addr2line; install the package binutils")?;
        let mut input = child.stdin.take().context("addr2line takes no input")?;
        let list: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
        let writer = std::thread::spawn(move || input.write_all(list.as_bytes()));
        let output = child.wait_with_output().context("addr2line does not end")?;
        ensure!(writer.join().is_ok_and(|r| r.is_ok()), "addr2line stopped reading");
        self.note(&String::from_utf8_lossy(&output.stdout));
        // Assembly has no line numbers in the debugging information.
        for (address, place) in assembly::lines(file, sources, &self.known)? {
            if let Some((_, known)) = self.known.get_mut(&address) {
                *known = place;
            }
        }
        Ok(())
    }

    /// Takes what addr2line says: for each address a line with it, then two lines for the
    /// function that is there and for each in which that one has been inlined.
    fn note(&mut self, text: &str) {
        let mut address = None;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(digits) = line.strip_prefix("0x") {
                address = u64::from_str_radix(digits, 16).ok();
                continue;
            }
            let (Some(address), Some(place)) = (address, lines.next()) else { break };
            let function = short_function(line);
            if is_own(line, place) {
                self.within.entry(address).or_insert_with(|| function.clone());
            }
            self.known.entry(address).or_insert_with(|| (function, short_place(place)));
        }
    }

    /// Baton's own function at `address`.
    #[must_use]
    pub fn own(&self, address: u64) -> &str {
        self.within.get(&address).map_or_else(|| self.get(address).0, String::as_str)
    }

    /// Function and source line of `address`.
    #[must_use]
    pub fn get(&self, address: u64) -> (&str, &str) {
        self.known.get(&address).map_or(("?", "?"), |(function, place)| (function, place))
    }
}

/// Whether a function is Baton's own, not a library's, nor a method that a derive made.
fn is_own(function: &str, place: &str) -> bool {
    !place.contains("/library/") && !place.starts_with('?') && !function.contains("core::")
}

/// The last three parts of a path, without the hash that the compiler puts behind it.
fn short_function(name: &str) -> String {
    let is_hash =
        |part: &str| part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let plain = match name.rsplit_once("::h") {
        Some((plain, hash)) if is_hash(hash) => plain,
        _ => name,
    };
    let parts: Vec<&str> = plain.split("::").collect();
    parts[parts.len().saturating_sub(3)..].join("::")
}

/// `src/ipc/send.rs:12` of the whole path.
fn short_place(place: &str) -> String {
    let place = place.split(" (").next().unwrap_or(place);
    let from = ["/kernel/", "/bench/", "/runtime/", "/abi/", "/library/"]
        .iter()
        .filter_map(|part| place.rfind(part))
        .max();
    from.map_or_else(|| place.to_owned(), |at| place[at + 1..].to_owned())
}

/// The trace for people: one line per instruction, repetitions of one counted.
#[must_use]
pub fn listing(steps: &[Step], symbols: &Symbols) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < steps.len() {
        let step = &steps[at];
        let same = steps[at..].iter().take_while(|next| next.address == step.address).count();
        let (function, place) = symbols.get(step.address);
        let times = if same > 1 { format!(" x{same}") } else { String::new() };
        let mode = if step.kernel { "kernel" } else { "user  " };
        let accesses = if same == 1 && !step.accesses.is_empty() {
            format!("  [{}]", step.accesses.join(", "))
        } else {
            String::new()
        };
        out += &format!(
            "{at:6} {mode} {:016x} {:<44} {function}  {place}{accesses}{times}\n",
            step.address, step.text
        );
        at += same;
    }
    out
}

/// The kernel's part without addresses: what two builds can be compared by.
#[must_use]
pub fn condensed(steps: &[Step], symbols: &Symbols) -> Vec<String> {
    let kernel: Vec<&Step> = steps.iter().filter(|step| step.kernel).collect();
    let mut lines = Vec::new();
    let mut at = 0;
    while at < kernel.len() {
        let same =
            kernel[at..].iter().take_while(|next| next.address == kernel[at].address).count();
        let line = format!(
            "{}: {}",
            symbols.get(kernel[at].address).0,
            without_addresses(&kernel[at].text)
        );
        lines.push(if same > 1 { format!("{line} x{same}") } else { line });
        at += same;
    }
    lines
}

/// Replaces numbers that depend on where things were linked.
fn without_addresses(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        out += &rest[..at];
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        let number = &rest[at..at + 2 + digits];
        out += if digits > 3 { "ADDRESS" } else { number };
        rest = &rest[at + 2 + digits..];
    }
    out + rest
}

/// How many instructions each function of Baton's own has in `steps`, what of the
/// libraries is inlined there included, most first.
#[must_use]
pub fn by_function(steps: &[Step], symbols: &Symbols) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.kernel) {
        *counts.entry(symbols.own(step.address)).or_default() += 1;
    }
    let mut counts: Vec<_> =
        counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<Step> {
        let lines = [
            "i u 1000 syscall ",
            "i k ffffffff80208000 movq  0x1234(%rip), %rdi",
            "m r ffffffff80209000 8",
            "i k ffffffff80208007 rep movsq",
            "i k ffffffff80208007 rep movsq",
        ];
        read(&lines.map(str::to_owned))
    }

    #[test]
    fn only_a_hash_is_left_out_of_a_functions_name() {
        let name = "<unix::fs::tree::Filesystems>::holds_locks";
        assert_eq!(short_function(name), "tree::Filesystems>::holds_locks");
        assert_eq!(short_function(&format!("{name}::h0123456789abcdef")), short_function(name));
    }

    #[test]
    fn traces_are_read_and_condensed() {
        let steps = steps();
        assert_eq!(steps.len(), 4);
        assert_eq!(steps[1].accesses, ["r ffffffff80209000 8"]);
        let mut symbols = Symbols::default();
        symbols
            .known
            .insert(0xFFFF_FFFF_8020_8000, ("entry".to_owned(), "kernel/a.S:1".to_owned()));
        assert_eq!(
            condensed(&steps, &symbols),
            ["entry: movq ADDRESS(%rip), %rdi", "?: rep movsq x2"]
        );
        assert_eq!(by_function(&steps, &symbols), [("?".to_owned(), 2), ("entry".to_owned(), 1)]);
        assert!(listing(&steps, &symbols).contains("x2"));
    }

    #[test]
    fn what_is_inlined_counts_where_it_is_used() {
        let mut symbols = Symbols::default();
        symbols.note(
            "0x0000000000001000\ncore::cell::Cell<u64>::get\n/library/core/src/cell.rs:555\n\
             kernel::ipc::send::send\n/kernel/src/ipc/send.rs:20\n0x0000000000001007\n\
             baton_resume\n??:?\n",
        );
        assert_eq!(symbols.get(0x1000), ("cell::Cell<u64>::get", "library/core/src/cell.rs:555"));
        assert_eq!(symbols.own(0x1000), "ipc::send::send");
        assert_eq!(symbols.own(0x1007), "baton_resume");
    }

    #[test]
    fn small_numbers_stay() {
        assert_eq!(without_addresses("addq $0x40, 0xffff8000(%rax)"), "addq $0x40, ADDRESS(%rax)");
    }
}
