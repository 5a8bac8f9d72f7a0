//! The debugger tried on a system that runs: gdb without a person stops in a task by name,
//! lists the threads, and looks at the stack of one that waits. Then the fault reports of
//! a program that does everything wrong are explained.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use regex::Regex;

use crate::compose::{Bootable, Composer, Selection};
use crate::debug;
use crate::end_of;
use crate::machine::{self, Boot, Console, Options, QEMU};
use crate::session::Session;
use crate::workspace::Workspace;

/// Time limit of the whole session.
const LIMIT: Duration = Duration::from_secs(60);
/// How often the session is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What gdb is told.
const COMMANDS: [&str; 6] = [
    "baton-break monitor monitor::main",
    "continue",
    "baton-threads",
    "baton-where pager",
    "backtrace",
    "kill",
];

/// The whole stack of the monitor at the beginning of its `main`, whose first instruction
/// behind the prologue can be that of a function inlined.
const MONITORS_STACK: &str =
    r"\n#0 [^\n]*(?:\n#[0-9]+ [^\n]*)*? monitor::main [^\n]*\n#[0-9]+ [^\n]*monitor::baton_main";

/// What gdb has to print, in this order, and what that shows.
const EXPECTED: [(&str, &str); 8] = [
    ("the tasks are named", r"the tasks are pager, serial, monitor, hello,"),
    ("a stop says in which task", r"\n\[monitor, thread [0-9]+\.[0-9]+\]\n"),
    ("threads that wait are listed by task", r"\n144\.[0-9]+ +pager +220 +waits for anybody +0x"),
    ("a driver is at a place in its program", r"\n160\.[0-9]+ +serial +200 +waits[^\n]+ \w+"),
    ("the thread that runs is marked", r"\n176\.[0-9]+ +monitor +150 +runs +0x[^\n]*monitor"),
    ("a waiting thread's task is named", r"\nThread 144\.[0-9]+ of pager, waits for anybody:\n"),
    ("its stack is the pager's", r"\n#[0-9]+ [^\n]*pager::"),
    ("the machine is as it was", MONITORS_STACK),
];

/// What the explanation has to say, in this order.
const EXPLAINED: [(&str, &str); 2] = [
    (
        "a report is followed by functions and lines",
        r"tried to read 0x0,[^\n]+\n(?:    [^\n]+\n)*    [^\n]+crash-me/src/main\.rs:[0-9]+",
    ),
    (
        "the stack leads to where the thread began",
        r" called from [^\n]+\n(?:    [^\n]+\n)*    [^\n]+runtime/src/thread\.rs:[0-9]+",
    ),
];

/// What was expected, and what is wrong with it, if anything.
pub type Verdict = (&'static str, Option<String>);

/// Boots the small system under gdb, once more for its fault reports, and from two seeds to see
/// where programs are.
///
/// # Errors
/// When a program cannot be built or started.
pub fn trial(workspace: &Workspace, composer: &mut Composer<'_>) -> Result<Vec<Verdict>> {
    let selection = Selection { system: Some("minimal".to_owned()), ..Selection::default() };
    let fixed = Selection { fixed_addresses: true, ..selection.clone() };
    let printed = under_gdb(workspace, &composer.compose(&fixed, "debug-trial")?)?;
    let bootable = composer.compose(&selection, "explain-trial")?;
    let mut verdicts = judge(&printed, &EXPECTED);
    let explained = debug::explain(&monitor(&bootable, "run crash-me", None)?, &bootable.tasks)?;
    let folder = workspace.target("debug")?;
    std::fs::write(folder.join("explained.log"), &explained)
        .context("the explanation has no place")?;
    verdicts.extend(judge(&explained, &EXPLAINED));
    let places = [at(&bootable, "1")?, at(&bootable, "2")?];
    let told = format!("the monitor was at {:#x} and at {:#x}", places[0], places[1]);
    let is_elsewhere = places[0] >> 12 != places[1] >> 12;
    verdicts.push(("two boots place a program differently", (!is_elsewhere).then_some(told)));
    Ok(verdicts)
}

/// An address in the monitor's program when the machine's random numbers follow from `seed`.
fn at(bootable: &Bootable, seed: &str) -> Result<u64> {
    let text = monitor(bootable, "ps monitor", Some(seed))?;
    let pattern = Regex::new(r"\n +[0-9]+\.[0-9]+ +([0-9a-f]+) ").context("a sound pattern")?;
    let found = pattern.captures(&text).and_then(|found| found.get(1));
    let found = found.context("the monitor lists no thread of its own")?;
    Ok(u64::from_str_radix(found.as_str(), 16)?)
}

/// The console while the monitor obeys `line`.
fn monitor(bootable: &Bootable, line: &str, seed: Option<&str>) -> Result<String> {
    let boot = Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() };
    // The emulator has a seed of its own for who counts instructions.
    let options = Options { icount: seed.is_none(), ..Options::default() };
    let mut command = machine::command(&boot, &options, Console::Pipe)?;
    command.args(seed.iter().flat_map(|seed| ["-seed", *seed]));
    let mut session = Session::start(command, LIMIT, false)?;
    let prompt = Regex::new("baton> ").context("the prompt is a sound pattern")?;
    let wait = |session: &mut Session, from| match session.wait_for(end_of(&prompt), from) {
        Ok(behind) => Ok(behind),
        Err(ended) => bail!("the monitor has no prompt: {}", ended.sentence(LIMIT)),
    };
    let ready = wait(&mut session, 0)?;
    session.send_line(line)?;
    wait(&mut session, ready)?;
    Ok(session.transcript().replace('\r', ""))
}

/// All that gdb prints.
fn under_gdb(workspace: &Workspace, bootable: &Bootable) -> Result<String> {
    let folder = workspace.target("debug")?;
    let (socket, log) = (folder.join("trial.socket"), folder.join("trial-serial.log"));
    let _ = std::fs::remove_file(&socket);
    let script = debug::write_script(workspace, bootable, "trial", &socket.display().to_string())?;
    let boot = Boot::Pvh { kernel: bootable.kernel.clone(), image: bootable.image.clone() };
    let options = Options { icount: true, ..Options::default() }.at_first_places();
    let mut qemu = machine::command(&boot, &options, Console::File(&log))?;
    let listen = format!("unix:{},server=on,wait=off", socket.display());
    let machine = qemu.args(["-S", "-gdb", &listen]).stdin(Stdio::null()).spawn();
    let mut machine = machine.with_context(|| format!("cannot start {QEMU}"))?;
    let printed = session(&socket, &script, &folder.join("trial.log"));
    let _ = machine.kill();
    let _ = machine.wait();
    printed
}

/// gdb's output, which goes through the file `log`.
fn session(socket: &Path, script: &Path, log: &Path) -> Result<String> {
    let started = Instant::now();
    while !socket.exists() && started.elapsed() < LIMIT {
        std::thread::sleep(LOOK_EVERY);
    }
    let file = std::fs::File::create(log).context("gdb's output has no place")?;
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-x"]).arg(script);
    for command in COMMANDS {
        gdb.args(["-ex", command]);
    }
    let errors = file.try_clone().context("gdb's output has no place")?;
    let gdb = gdb.stdin(Stdio::null()).stdout(file).stderr(errors).spawn();
    end(gdb.context("cannot start gdb; install the package gdb")?, started)?;
    std::fs::read_to_string(log).context("gdb's output cannot be read")
}

/// Waits for gdb until the time is over.
fn end(mut gdb: Child, started: Instant) -> Result<()> {
    while gdb.try_wait().context("cannot wait for gdb")?.is_none() {
        if started.elapsed() > LIMIT {
            let _ = gdb.kill();
            let _ = gdb.wait();
            bail!("gdb did not end within {} s", LIMIT.as_secs());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Looks for the expectations one behind the other.
fn judge(printed: &str, expected: &[(&'static str, &str)]) -> Vec<Verdict> {
    let mut at = 0;
    let look = |(name, pattern): &(&'static str, &str)| {
        let found = Regex::new(pattern).ok().and_then(|pattern| pattern.find_at(printed, at));
        match found {
            // The end of a line can be the beginning of what comes next.
            Some(found) => {
                at = found.end().saturating_sub(1);
                (*name, None)
            }
            None => (*name, Some(format!("there is no `{pattern}` where it should be"))),
        }
    };
    expected.iter().map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_sound_and_ordered() {
        for (_, pattern) in EXPECTED.iter().chain(&EXPLAINED) {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
        let verdicts =
            judge("Baton: x; the tasks are pager, serial, monitor, hello, y\n", &EXPECTED);
        let failed = verdicts.iter().filter(|(_, failure)| failure.is_some()).count();
        assert_eq!(failed, EXPECTED.len() - 1);
        let end = "\n#0  monitor::main ()\n#1  monitor::baton_main ()\n[monitor, thread 96.1]\n";
        assert!(judge(end, &EXPECTED)[7].1.is_some(), "the last comes behind the others");
    }

    #[test]
    fn the_monitors_stack_is_whole_with_and_without_inlined_functions() {
        let stack = Regex::new(MONITORS_STACK).unwrap();
        let main = "monitor::main () at monitor/src/main.rs:54\n#2  0x4 in monitor::baton_main ()";
        assert!(stack.is_match(&format!("\n#0  {main}")));
        assert!(stack.is_match(&format!("\n#0  runtime::utcb::word () at a.rs:1\n#1  {main}")));
        assert!(!stack.is_match(&format!("\n#0  pager::main ()\n[x]\n#1  {main}")), "in one piece");
        assert!(!stack.is_match("\n#0  monitor::main ()\n#1  0x0 in ?? ()"), "rsp is wrong");
        assert!(!stack.is_match("\n#0  pager::main ()\n#1  pager::baton_main ()"));
    }

    #[test]
    fn all_states_of_threads_have_words() {
        let kernel = include_str!("../../../kernel/src/thread/rendezvous.rs");
        let script = include_str!("../../../xtask/gdb/baton.py");
        let codes = Regex::new(r"(?m)^(?:pub const \w+: u64|    \w+) = ([0-9]+)[;,]$").unwrap();
        let codes: Vec<&str> =
            codes.captures_iter(kernel).map(|found| found.get(1).unwrap().as_str()).collect();
        assert!(codes.len() > 15, "{codes:?}");
        for code in codes {
            assert!(script.contains(&format!("\n    {code}: \"")), "code {code} has no words");
        }
    }
}
