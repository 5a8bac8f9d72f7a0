//! Processes of the host that are address spaces and threads of ours: `ptrace`, calls made
//! in their name.
//!
//! A space is a host process that has nothing mapped but one page of code above all user
//! addresses. Its first thread never runs a program: calls that change the space are made
//! in its name. Programs' threads are its clones.

use std::io::Error;

use libc::{c_int, c_long, c_void, pid_t, user_regs_struct};

/// Where the page of code is: `syscall; int3`.
pub const STUB: u64 = 0x7fff_f000_8000;
/// Descriptor of the frames in every space.
pub const FRAMES_FD: c_int = 100;
/// End of the host's user addresses.
const HOST_END: u64 = 0x7fff_ffff_f000;
const USER_END: u64 = 0x7fff_f000_0000;
/// Stops at system calls have this bit in their signal.
pub const CALL_STOP: c_int = libc::SIGTRAP | 0x80;

/// A `ptrace` request that must succeed, or the thread is gone.
pub fn ptrace(request: u32, tid: pid_t, address: usize, data: usize) -> Result<c_long, Error> {
    // SAFETY: the requests used here read and write only what `data` points to, which the
    // callers hold, and memory of the traced process.
    let result = unsafe { libc::ptrace(request, tid, address as *mut c_void, data as *mut c_void) };
    if result == -1 { Err(Error::last_os_error()) } else { Ok(result) }
}

pub fn registers(tid: pid_t) -> user_regs_struct {
    // SAFETY: plain numbers.
    let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
    let _ = ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut registers as usize);
    registers
}

pub fn set_registers(tid: pid_t, registers: &user_regs_struct) {
    let mut registers = *registers;
    // No system call is to be restarted.
    registers.orig_rax = u64::MAX;
    let _ = ptrace(libc::PTRACE_SETREGS, tid, 0, &raw mut registers as usize);
}

/// Waits for a stop or end of one thread; its status.
pub fn wait_for(tid: pid_t) -> c_int {
    let mut status = 0;
    // SAFETY: `status` is written.
    let got = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) };
    assert_eq!(got, tid, "waiting for {tid}: {}", Error::last_os_error());
    status
}

/// A stop or end of any thread, if there is one.
pub fn poll_any() -> Option<(pid_t, c_int)> {
    let mut status = 0;
    // SAFETY: `status` is written.
    let got = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::WNOHANG) };
    (got > 0).then_some((got, status))
}

/// Makes a system call in the name of the stopped thread `tid`, at the stub; its result.
pub fn inject(tid: pid_t, number: i64, arguments: [u64; 6]) -> i64 {
    let mut regs = registers(tid);
    regs.rip = STUB;
    regs.rax = number as u64;
    [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = arguments;
    set_registers(tid, &regs);
    ptrace(libc::PTRACE_CONT, tid, 0, 0).expect("continue at the stub");
    loop {
        let status = wait_for(tid);
        assert!(libc::WIFSTOPPED(status), "{tid} ended at the stub: {status:#x}");
        match (libc::WSTOPSIG(status), status >> 16) {
            (libc::SIGTRAP, 0) => return registers(tid).rax as i64,
            _ => ptrace(libc::PTRACE_CONT, tid, 0, 0).expect("continue at the stub"),
        };
    }
}

/// One instruction of a thread that has a `syscall` instruction at `at`.
fn inject_at(tid: pid_t, at: u64, number: i64, arguments: [u64; 6]) -> i64 {
    let mut regs = registers(tid);
    (regs.rip, regs.rax) = (at, number as u64);
    [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = arguments;
    set_registers(tid, &regs);
    ptrace(libc::PTRACE_SINGLESTEP, tid, 0, 0).expect("step");
    wait_for(tid);
    registers(tid).rax as i64
}

/// A host process with nothing but the stub; its id.
pub fn new_space(frames: c_int) -> pid_t {
    // SAFETY: the child makes only system calls until it stops.
    let pid = unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::setsid();
            libc::dup2(frames, FRAMES_FD);
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::kill(libc::getpid(), libc::SIGSTOP);
            libc::_exit(1);
        }
        pid
    };
    assert!(pid > 0, "fork: {}", Error::last_os_error());
    wait_for(pid);
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options as usize).expect("options");
    // It stopped behind the `syscall` instruction of `kill`.
    let at = registers(pid).rip - 2;
    let (map, prot) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED, 5_u64);
    let got = inject_at(pid, at, libc::SYS_mmap, [STUB, 4096, prot, map as u64, u64::MAX, 0]);
    assert_eq!(got as u64, STUB);
    ptrace(libc::PTRACE_POKEDATA, pid, STUB as usize, 0xcc_050f).expect("write the stub");
    inject(pid, libc::SYS_munmap, [0x1000, USER_END - 0x1000, 0, 0, 0, 0]);
    inject(pid, libc::SYS_munmap, [USER_END, STUB - USER_END, 0, 0, 0, 0]);
    inject(pid, libc::SYS_munmap, [STUB + 4096, HOST_END - STUB - 4096, 0, 0, 0, 0]);
    pid
}

/// A clone of the first thread of a space, stopped.
pub fn new_thread(space: pid_t) -> pid_t {
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM;
    let tid = inject(space, libc::SYS_clone, [flags as u64, 0, 0, 0, 0, 0]) as pid_t;
    assert!(tid > 0, "clone: {tid}");
    wait_for(tid);
    tid
}

/// The vector state's place in memory.
pub fn vector_state(tid: pid_t, request: u32, bytes: &mut [u8]) -> usize {
    const NT_X86_XSTATE: usize = 0x202;
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    match ptrace(request, tid, NT_X86_XSTATE, &raw mut piece as usize) {
        Ok(_) => piece.iov_len,
        Err(_) => 0,
    }
}
