//! Runs programs of an archive on this Linux with the library as their kernel: their system
//! calls and page faults are caught by `ptrace`. For finding mistakes in the library with
//! the programs that it is for, at the host's speed.
//!
//! `cargo run --example host -- ARCHIVE.cpio PROGRAM [ARGUMENT...]`; with `UNIX_TRACE=1`
//! every call is printed.

mod machine;
mod trace;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Instant;

use libc::{c_int, pid_t};
use machine::{Handle, Host};
use unix::Unix;
use unix::machine::{Access, Reply, Urgency};
use unix::memory::Memory;
use unix::thread::Thread;

/// Frames: 512 MiB.
const FRAMES: usize = 131_072;

struct Runner {
    unix: Unix,
    host: Rc<Host>,
    traces: bool,
}

fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Counts of the time stamp counter at `start`, and nanoseconds per count times 2^32.
fn calibrate() -> (Instant, (u64, u64)) {
    let (start, first) = (Instant::now(), tsc());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let (ns, counts) = (start.elapsed().as_nanos() as u64, tsc() - first);
    (start, (first, ((u128::from(ns) << 32) / u128::from(counts)) as u64))
}

/// The frames, and their descriptor.
fn frames() -> (Memory, c_int) {
    let len = FRAMES * 4096;
    // SAFETY: fresh memory that only `Memory` and the traced processes use.
    unsafe {
        let fd = libc::memfd_create(c"frames".as_ptr(), 0);
        assert_eq!(libc::ftruncate(fd, len as i64), 0);
        let (prot, map) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let base = libc::mmap(std::ptr::null_mut(), len, prot, map, fd, 0);
        (Memory::new(NonNull::new(base.cast()).unwrap(), FRAMES), fd)
    }
}

impl Runner {
    fn bound(&self, tid: pid_t) -> Option<Rc<Thread>> {
        self.host.threads.borrow().get(&tid)?.bound.clone()
    }

    /// Gives all answers that are due.
    fn answer(&self) {
        while let Some((machine, reply)) = self.unix.next_reply() {
            let tid = machine.0 as pid_t;
            if let Reply::Result(value) = reply {
                self.finish(tid, value);
            }
            self.host.resume(tid);
        }
    }

    fn finish(&self, tid: pid_t, value: u64) {
        if self.traces {
            eprintln!("[{tid}]   = {:#x} ({})", value, value as i64);
        }
        if let Some(thread) = self.host.threads.borrow_mut().get_mut(&tid) {
            thread.registers.rax = value;
        }
    }

    fn call(&self, tid: pid_t, thread: &Rc<Thread>) {
        let (number, arguments) = {
            let mut threads = self.host.threads.borrow_mut();
            let Some(host) = threads.get_mut(&tid) else { return };
            host.registers.rax = host.registers.orig_rax;
            let r = &host.registers;
            (r.orig_rax as u32, [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9])
        };
        if self.traces {
            let entry = unix::call::TABLE.get(number as usize).and_then(Option::as_ref);
            let name = entry.map_or_else(|| number.to_string(), |entry| entry.name.to_string());
            eprintln!("[{tid}] {name}{arguments:x?}");
        }
        self.host.calls.set(self.host.calls.get() + 1);
        if let Some(value) = self.unix.system_call(thread, number, arguments) {
            self.finish(tid, value);
            self.host.resume(tid);
        }
    }

    /// What kind of access a fault was: the host does not say; what it could not have been
    /// is known.
    fn access(&self, tid: pid_t, address: u64) -> Access {
        let threads = self.host.threads.borrow();
        let (rip, space) = (threads[&tid].registers.rip, threads[&tid].space);
        if rip & !4095 == address & !4095 {
            return Access::EXECUTE;
        }
        match self.host.spaces.borrow()[&space].mapped.get(&(address & !4095)) {
            Some(page) if page.access.contains(Access::READ) => Access::WRITE,
            _ => Access::READ,
        }
    }

    fn fault(&self, tid: pid_t, thread: &Rc<Thread>, signal: c_int) {
        // SAFETY: filled by the kernel.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let _ = trace::ptrace(libc::PTRACE_GETSIGINFO, tid, 0, &raw mut info as usize);
        // SAFETY: a fault's information.
        let address = unsafe { info.si_addr() } as u64;
        if signal == libc::SIGSEGV && info.si_code != 128 {
            let access = self.access(tid, address);
            if self.traces {
                eprintln!("[{tid}] fault {access:?} at {address:#x}");
            }
            return self.unix.page_fault(thread, address, access);
        }
        let vector = match signal {
            libc::SIGSEGV => 13,
            libc::SIGFPE if info.si_code == 1 => 0,
            libc::SIGFPE => 19,
            libc::SIGILL => 6,
            libc::SIGBUS => 17,
            _ => 3,
        };
        eprintln!("[{tid}] exception {vector} at {address:#x}");
        self.unix.exception(thread, vector, 0);
    }

    fn event(&self, tid: pid_t, status: c_int) {
        if !libc::WIFSTOPPED(status) {
            return;
        }
        let signal = libc::WSTOPSIG(status);
        {
            let mut threads = self.host.threads.borrow_mut();
            let Some(host) = threads.get_mut(&tid) else { return };
            host.running = false;
            host.registers = trace::registers(tid);
            if signal == libc::SIGSTOP {
                host.stray_stop = false;
            }
        }
        let Some(thread) = self.bound(tid) else { return };
        match signal {
            trace::CALL_STOP => self.call(tid, &thread),
            libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP => {
                self.fault(tid, &thread, signal);
            }
            _ => self.host.resume(tid),
        }
    }

    fn run(&self) -> u32 {
        let mut idle = 0;
        loop {
            self.answer();
            if let Some(status) = self.host.halted.get() {
                return status;
            }
            if self.host.turn.take() {
                // Linux has given them theirs.
                self.unix.turn(Urgency::Ordinary);
                self.unix.turn(Urgency::Background);
                continue;
            }
            if self.host.alarm.get().is_some_and(|at| self.host.now() >= at) {
                self.host.alarm.set(None);
                self.unix.alarm();
                continue;
            }
            match trace::poll_any() {
                Some((tid, status)) => {
                    idle = 0;
                    self.event(tid, status);
                }
                None => {
                    idle += 1;
                    self.console(if idle > 200 { 1 } else { 0 });
                }
            }
        }
    }

    fn console(&self, timeout_ms: c_int) {
        let mut poll = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, one buffer.
        unsafe {
            if libc::poll(&raw mut poll, 1, timeout_ms) == 1 && poll.revents & libc::POLLIN != 0 {
                let mut bytes = [0; 256];
                let got = libc::read(0, bytes.as_mut_ptr().cast(), bytes.len());
                if got > 0 {
                    self.unix.console_input(&bytes[..got as usize]);
                }
            }
        }
    }
}

fn main() {
    // The C library must not leave an rseq area registered in the spaces.
    if std::env::var("GLIBC_TUNABLES").is_err() {
        use std::os::unix::process::CommandExt;
        let mut again = std::process::Command::new("/proc/self/exe");
        let why = again
            .args(std::env::args().skip(1))
            .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
            .exec();
        panic!("cannot start again: {why}");
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [archive, program, ..] = &arguments[..] else {
        eprintln!("usage: host ARCHIVE.cpio PROGRAM [ARGUMENT...]");
        std::process::exit(2);
    };
    let (start, tsc) = calibrate();
    let (memory, fd) = frames();
    let host = Rc::new(Host {
        frames: fd,
        spaces: RefCell::new(BTreeMap::new()),
        threads: RefCell::new(BTreeMap::new()),
        alarm: Cell::new(None),
        turn: Cell::new(false),
        halted: Cell::new(None),
        start,
        tsc,
        calls: Cell::new(0),
    });
    let unix = Unix::new(Box::new(Handle(host.clone())), memory);
    let bytes = std::fs::read(archive).expect("the archive can be read");
    unix::fs::unpack(&unix, &bytes).unwrap_or_else(|why| panic!("{archive}: {why}"));
    let words: Vec<&[u8]> = arguments[1..].iter().map(String::as_bytes).collect();
    let environment: [&[u8]; 4] =
        [b"HOME=/root", b"TERM=vt100", b"PATH=/usr/sbin:/usr/bin:/sbin:/bin", b"USER=root"];
    unix::exec::start_first(&unix, program.as_bytes(), &words, &environment)
        .unwrap_or_else(|why| panic!("{why}"));
    let runner = Runner { unix, host, traces: std::env::var("UNIX_TRACE").is_ok() };
    let status = runner.run();
    eprintln!("host: ended with status {status:#x} after {} calls", runner.host.calls.get());
    std::process::exit((status >> 8) as i32);
}
