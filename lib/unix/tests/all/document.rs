//! The documents say what the table of system calls says: `docs/linux-calls.txt`, which
//! `./baton linux check` reads, and `docs/linux.md`, which people read. With BATON_BLESS=1
//! they are written instead of compared.

use std::fmt::Write;
use std::path::PathBuf;

use unix::call::{LISTS, Support, TABLE};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Support and remark of a call.
fn support(number: usize) -> (&'static str, &'static str) {
    match TABLE.get(number).copied().flatten().map(|entry| entry.support) {
        Some(Support::Full) => ("full", ""),
        Some(Support::Partial(missing)) => ("partial", missing),
        None => ("none", ""),
    }
}

fn check(name: &str, wanted: &str) {
    if std::env::var_os("BATON_BLESS").is_some() {
        std::fs::write(path(name), wanted).unwrap();
    }
    let found = std::fs::read_to_string(path(name)).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/{name} does not say what the table of calls says; run this test with BATON_BLESS=1"
    );
}

#[test]
fn the_checkers_table_is_up_to_date() {
    let old = std::fs::read_to_string(path("linux-calls.txt")).unwrap();
    let mut text = String::new();
    let mut rows = 0;
    for line in old.lines() {
        let mut words = line.split_whitespace();
        let number = words.next().and_then(|word| word.parse::<usize>().ok());
        let (Some(number), Some(name)) = (number, words.next()) else {
            writeln!(text, "{line}").unwrap();
            continue;
        };
        rows += 1;
        let (support, remark) = support(number);
        writeln!(text, "{}", format!("{number:<4} {name:<24} {support:<8} {remark}").trim_end())
            .unwrap();
        if let Some(entry) = TABLE.get(number).copied().flatten() {
            assert_eq!(entry.name, name, "call {number}");
        }
    }
    let there: usize = LISTS.iter().map(|list| list.len()).sum();
    assert!(rows > there, "{rows} rows for {there} calls");
    check("linux-calls.txt", &text);
}

const HEAD: &str = "\
# Linux programs

Unmodified Linux programs (static, static-PIE, dynamic) run as processes of the Unix server, an ordinary task. Their
`syscall` instructions become messages to it ([ThreadState](calls/thread-state.md)); it is also their pager, and reads and
writes their memory in place. `./baton run` starts it with Debian's busybox and bash; the tools around it are
described in [linux-tools.md](linux-tools.md).

| where | what |
|---|---|
| `lib/unix` | Unix as a library over an abstract machine: processes, memory, files, signals, terminals; tested on the host |
| `servers/unix` | the binding to Baton: messages, mappings, time, console |
| `kernel/src/control/foreign.rs` | all that the kernel knows of it: system calls as messages |

A call that is not there returns ENOSYS and is reported once, by program and number, on the console. The first file system is in memory. The network is the loopback, on which sockets are connected
directly ([0051](decisions/0051-the-loopback-connects-sockets.md)). Raw sockets see each other's packets, datagrams of UDP and ICMP, not TCP's connections; fragments and extension headers of
IPv6 get nowhere ([0129](decisions/0129-raw-sockets-beside-connections.md)). AF_NETLINK knows routes, events of processes (to who has asked for them) and TASKSTATS, whose delays, switches and input
and output are 0.

## The terminal
`./baton run` tells the server what terminal the person sits at: its kind becomes `TERM`, its size what `TIOCGWINSZ` says. It does
so by the raw file `terminal`, one line such as `xterm-256color 40 120`; without it the console is a `vt100` of 24 rows and 80
columns. A serial line does not tell when the window changes: `resize` asks the terminal and sets the size (`TIOCSWINSZ`, so
programs get SIGWINCH).

## The system below
`baton` at the prompt lists, starts, ends and inspects the system's tasks (`baton help`), as far as the description of the task `unix` allows: it needs
`srv/tasks` in `args`, and `control = true` for more than looking at tasks. Other services become sockets in `/srv` in the same way ([services.md](services.md),
From Linux programs), and files that can be opened, if their tasks take streams; a native task reaches a program's socket if `args` says so
(By streams). They are for user 0 unless `args` says otherwise; who shares a system with users that are not trusted
leaves `srv/tasks` out. Suite `linux-services`.

## Who pays
What programs make the server keep is counted for their user, who is refused before others are harmed
([0024](decisions/0024-who-pays-in-the-unix-server.md)). No user but 0 has more than half of anything; the last
sixteenth is the server's own, an eighth more user 0's. When frames are used up, of the user that has the most the
process that has the most is killed, as `oom_score_adj` sees it. There can be 4,096 pseudo-terminals, half of them one user's. The server has the blocks of memory that the root
task gives, the largest first, up to its `memory_pages` (in `systems/linux.toml` more than there is); an eighth of them is its own, `free` shows the rest: 686 MiB of a
machine of 1 GiB, 2,940 of one of 4 GiB.

## How many processes
A thousand small ones at once, in the machine of 1 GiB that `systems/linux.toml` asks for; some 500 with `--memory 512`. A sleeping child of the shell has 23 or 24 pages of kernel memory,
and what it needs of the task's `quota_pages` is what bounds their number ([0114](decisions/0114-a-small-process-has-little-kernel-memory.md)); `quota` and `spaces` at the monitor's prompt count them.

There can be as many threads as `/proc/sys/kernel/threads-max` tells, one for each 128 KiB of programs' memory; the last sixteenth is for processes.
`/sys/devices/system` tells how many processors there are, and that they and all memory are one node; `mbind` and its kin answer as Linux does there.

## Where programs are
As on Linux: mappings, stack, heap, vDSO and programs that can be anywhere are placed at random
(`/proc/sys/kernel/randomize_va_space`, `personality(ADDR_NO_RANDOMIZE)`), with as many bits. `args = \"fixed-addresses\"`
of the task `unix` has every run place them alike, as the bench and `./baton linux compare` do.

## When it dies
It is one task. A fault of it is a sentence with the calls on its stack; its programs end with it, and the root task
starts it again, with its first file system as it was at the beginning. Kernel, drivers and all other tasks go on. With
`--exec` the command is not run a second time: the machine stops, as failed. A system description that gives the server
`args = \"may-fail\"` has it fail by `echo c >/proc/sysrq-trigger`, which the tests use (`unix-dies` in
`tests/systems.toml`).

## Processors
Programs run on all processors ([multiprocessor.md](multiprocessor.md)); the server runs on the first, one call at a time. A
thread counts for a processor while it does not wait in a call. Whoever begins to count (it is born, has a new program, its
call has waited) goes to the least loaded processor that `sched_setaffinity` leaves it, and stays where it was if that
is as good; a processor that has nobody left gets one of those that share another one, looked for once in a millisecond
at most. Whom a call has woken has its turn when its caller waits, or a millisecond later
([0015](decisions/0015-later-answers.md)): so two that wake each other in turns stay on one processor, and two that
compute do not. `nproc`, `getcpu`, `/proc/cpuinfo`, `/proc/stat`, field 39 of `/proc/PID/stat` and `Cpus_allowed` say what is so.

It pays for programs that compute. A call or a fault of one that runs elsewhere than on the first processor passes from one
processor to the other and back ([0055](decisions/0055-user-code-runs-elsewhere.md)): `getppid` takes 1,196 instructions with the program
and the server ([multiprocessor.md](multiprocessor.md)), where it takes 309 from the first one. None of them is an interrupt's as long as the other
side looks whether somebody comes ([0068](decisions/0068-who-idles-looks-first.md),
[0092](decisions/0092-a-message-from-elsewhere-is-passed-on.md)); a processor that waits with HLT, or computes for somebody else, is interrupted. What a program
answers itself costs what it costs there. All calls of all programs wait for one server.

`membarrier` brings back whoever may be running on another processor, and nobody else: one Schedule for each such thread, and an
interrupt for each processor that it meets one on. Of many threads some sixty come back at a time, and others have their turn.

## Processor time
Between two events the server charges the time to whoever was answered last. If that is more than a tick of the
kernel, several programs may have had it: then the kernel's own count of ticks ([Inspect](calls/inspect.md), record 5)
says how it is shared out. So programs that never call anybody have their timers (`ITIMER_PROF`, `RLIMIT_CPU`) looked
at, to the tick, and ordinary calls pay nothing for it but one comparison. On several processors the time between two events
says nothing: there the kernel's count is all there is.

System time is what the server works for a program, by samples: at the first event after each millisecond the server looks whether it was at work when
that was over, and charges a millisecond to whoever it worked for ([0086](decisions/0086-system-time-is-sampled.md)). Calls pay nothing: it is the
comparison that looks for long times, against another number. What the kernel does for a call is the program's own time.

Sleeps, timers and timeouts end at their time, not at a tick ([0132](decisions/0132-who-sleeps-shortly-wakes-between-two-ticks.md)), or up to 100 µs later if
others ended just before.

Load averages (`/proc/loadavg`, `sysinfo`) are Linux's, of threads that do not wait in a call. How many they are changes at events only, so the samples
that are due are taken at the next event, and an idle machine is not woken for them.

## Mounts and namespaces
Processes have mount namespaces, those of the system's names (UTS) and of IPC (System V's objects, POSIX queues), with bind mounts, peers and slaves, and `pivot_root` as on Linux
([0100](decisions/0100-a-mount-covers-an-inode-of-a-mount.md)); all need CAP_SYS_ADMIN, which anybody has in a namespace of users of one's own
([0118](decisions/0118-rights-belong-to-a-namespace-of-users.md)), there are those of process numbers
([0117](decisions/0117-an-id-is-not-a-number.md)) and of clocks ([0133](decisions/0133-a-namespace-of-clocks-has-a-page.md)). There is one of
networks; who asks for another gets EINVAL. Nothing is mounted in `/proc/PID` and `/dev/pts` (EBUSY).

Debian's bubblewrap works, but for `--unshare-net` and so `--unshare-all`. It exchanges the root directory, which as on Linux must be mounted on another one for that; where it is
the first file system, `mount --rbind / /mnt; cd /mnt; mount --move /mnt /; exec chroot . sh` sees to it.

Programs take turns by slices of 10 ms, of their own time and of what the server works for them; `sched_yield` gives a turn away
([0104](decisions/0104-programs-take-turns-by-what-they-cost-the-server.md)). Nice values make turns longer and shorter as Linux's weights say;
who is nicer than 10, or idle by policy, runs when nobody else can, and now and then beside those who can
([0127](decisions/0127-nice-values-are-lengths-of-turns.md)). Where more than eight can run, whoever has waited
for 100 ms goes first for 50 ms of its and its children's time, and all who do so have half of the processor at most
([0134](decisions/0134-who-has-waited-long-goes-first-in-a-crowd.md)).

A call that moves more than 4 MiB to or from a file gives way to others each 4 MiB; so does one that has as much memory come
(`MAP_POPULATE`, `MADV_POPULATE_WRITE`, `mlock`), or of a file (`fallocate`). `sendfile`, `copy_file_range` and `process_vm_readv`
move 16 MiB at most, and say so.

## Debuggers
`strace -f` and `gdb` of Debian (breakpoints, steps, calls of functions, threads, attaching) work by `ptrace` and `/proc/PID/mem`
([0079](decisions/0079-traced-threads-have-a-state-and-a-table.md)); hardware watchpoints are refused (`set can-use-hw-watchpoints 0`).
`./baton linux compare tracing` compares what a tracer is told with Linux.

Whom a signal such as SIGSEGV or SIGABRT ends leaves a core file if `ulimit -c` lets it (0 at first): notes of all threads, program headers
of all mappings, memory that is private or anonymous, without `NT_FILE`. Its name is `core` or what `/proc/sys/kernel/core_pattern` says.
It is written while all others wait, so it ends after 64 MiB of memory.

## Calls
Generated from the server's table (`lib/unix/tests/all/document.rs`).

";

#[test]
fn the_manual_is_up_to_date() {
    let mut text = HEAD.to_owned();
    let mut partial = String::new();
    let mut full = Vec::new();
    let mut none = Vec::new();
    let names = std::fs::read_to_string(path("linux-calls.txt")).unwrap();
    for line in names.lines() {
        let mut words = line.split_whitespace();
        let number = words.next().and_then(|word| word.parse::<usize>().ok());
        let (Some(number), Some(name)) = (number, words.next()) else { continue };
        match support(number) {
            ("full", _) => full.push(format!("`{name}`")),
            ("partial", missing) => writeln!(partial, "| `{name}` | {missing} |").unwrap(),
            _ => none.push(format!("`{name}`")),
        }
    }
    writeln!(text, "### As on Linux ({})\n{}\n", full.len(), full.join(", ")).unwrap();
    let count = partial.lines().count();
    writeln!(
        text,
        "### With something missing ({count})\n| call | missing |\n|---|---|\n{partial}"
    )
    .unwrap();
    writeln!(text, "### Not there ({})\n{}", none.len(), none.join(", ")).unwrap();
    check("linux.md", &text);
}
