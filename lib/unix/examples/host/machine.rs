//! The library's `Machine`, made of traced processes of the host.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;
use std::time::Instant;

use libc::{pid_t, user_regs_struct};
use unix::errno::Errno;
use unix::machine::{
    Access, Machine, MachineThread, Mapping, Registers, SpaceId, Urgency, VECTOR_STATE_MAX,
};
use unix::memory::FrameId;
use unix::thread::Thread;

use crate::trace::{self, FRAMES_FD};

/// A thread of a program.
pub struct HostThread {
    pub space: SpaceId,
    pub bound: Option<Rc<Thread>>,
    /// Runs its program (not stopped).
    pub running: bool,
    /// A SIGSTOP is on its way that nobody waits for any more.
    pub stray_stop: bool,
    pub registers: user_regs_struct,
}

/// An address space.
pub struct HostSpace {
    pub pid: pid_t,
    pub mapped: BTreeMap<u64, Mapping>,
}

pub struct Host {
    pub frames: i32,
    pub spaces: RefCell<BTreeMap<SpaceId, HostSpace>>,
    pub threads: RefCell<BTreeMap<pid_t, HostThread>>,
    pub alarm: Cell<Option<u64>>,
    /// Those who were held back are to go on.
    pub turn: Cell<bool>,
    pub halted: Cell<Option<u32>>,
    pub start: Instant,
    pub tsc: (u64, u64),
    pub calls: Cell<u64>,
}

impl Host {
    fn tid(thread: MachineThread) -> pid_t {
        thread.0 as pid_t
    }

    pub fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Brings a thread to a stop, whatever it does.
    fn halt_thread(&self, tid: pid_t) {
        let mut threads = self.threads.borrow_mut();
        let Some(thread) = threads.get_mut(&tid) else { return };
        if !thread.running {
            return;
        }
        let space = self.spaces.borrow()[&thread.space].pid;
        // SAFETY: a signal to a traced thread of ours.
        unsafe { libc::syscall(libc::SYS_tgkill, space, tid, libc::SIGSTOP) };
        let status = trace::wait_for(tid);
        thread.running = false;
        thread.registers = trace::registers(tid);
        if libc::WSTOPSIG(status) != libc::SIGSTOP {
            thread.stray_stop = true;
        }
        if libc::WSTOPSIG(status) == trace::CALL_STOP {
            thread.registers.rip -= 2;
            thread.registers.rax = thread.registers.orig_rax;
        }
    }

    /// Lets a stopped thread go on.
    pub fn resume(&self, tid: pid_t) {
        if let Some(thread) = self.threads.borrow_mut().get_mut(&tid) {
            trace::set_registers(tid, &thread.registers);
            thread.running = trace::ptrace(libc::PTRACE_SYSEMU, tid, 0, 0).is_ok();
        }
    }
}

fn prot(access: Access) -> u64 {
    let bit = |flag, bit| if access.contains(flag) { bit } else { 0 };
    bit(Access::READ, 1) | bit(Access::WRITE, 2) | bit(Access::EXECUTE, 4)
}

/// The machine as the server holds it.
pub struct Handle(pub Rc<Host>);

impl Machine for Handle {
    fn now_ns(&self) -> u64 {
        self.0.now()
    }
    fn boot_time_ns(&self) -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64 - self.0.now()
    }
    fn tsc_scale(&self) -> (u64, u64) {
        self.0.tsc
    }
    fn ask_for_turn(&self, _: Urgency) {
        self.0.turn.set(true);
    }
    fn set_alarm(&self, at_ns: Option<u64>) {
        self.0.alarm.set(at_ns);
    }
    fn create_space(&self, _: u64) -> Result<SpaceId, Errno> {
        let pid = trace::new_space(self.0.frames);
        let space = HostSpace { pid, mapped: BTreeMap::new() };
        self.0.spaces.borrow_mut().insert(SpaceId(pid as u32), space);
        Ok(SpaceId(pid as u32))
    }
    fn destroy_space(&self, space: SpaceId) {
        let gone = self.0.spaces.borrow_mut().remove(&space).expect("no such space");
        let threads = self.0.threads.borrow();
        assert!(threads.values().all(|thread| thread.space != space), "a space with threads");
        // SAFETY: a signal to a child of ours.
        unsafe { libc::kill(gone.pid, libc::SIGKILL) };
        trace::wait_for(gone.pid);
    }
    fn create_thread(&self, space: SpaceId) -> Result<MachineThread, Errno> {
        let tid = trace::new_thread(self.0.spaces.borrow()[&space].pid);
        let mut registers = trace::registers(tid);
        registers.fs_base = 0;
        let thread =
            HostThread { space, bound: None, running: false, stray_stop: false, registers };
        self.0.threads.borrow_mut().insert(tid, thread);
        Ok(MachineThread(tid as u64))
    }
    fn destroy_thread(&self, thread: MachineThread) {
        let tid = Host::tid(thread);
        self.0.halt_thread(tid);
        self.0.threads.borrow_mut().remove(&tid);
        let mut registers = trace::registers(tid);
        (registers.rip, registers.rax) = (trace::STUB, libc::SYS_exit as u64);
        trace::set_registers(tid, &registers);
        let _ = trace::ptrace(libc::PTRACE_CONT, tid, 0, 0);
        while libc::WIFSTOPPED(trace::wait_for(tid)) {
            let _ = trace::ptrace(libc::PTRACE_CONT, tid, 0, 0);
        }
    }
    fn bind(&self, machine: MachineThread, thread: Option<&Rc<Thread>>) {
        if let Some(host) = self.0.threads.borrow_mut().get_mut(&Host::tid(machine)) {
            host.bound = thread.cloned();
        }
    }
    fn stop(&self, thread: MachineThread) {
        self.0.halt_thread(Host::tid(thread));
    }
    fn registers(&self, thread: MachineThread) -> Registers {
        let threads = self.0.threads.borrow();
        let Some(host) = threads.get(&Host::tid(thread)) else { return Registers::default() };
        assert!(!host.running, "registers of a running thread");
        let r = &host.registers;
        Registers {
            rip: r.rip,
            rflags: r.eflags,
            rsp: r.rsp,
            rax: r.rax,
            rbx: r.rbx,
            rcx: r.rcx,
            rdx: r.rdx,
            rsi: r.rsi,
            rdi: r.rdi,
            rbp: r.rbp,
            r8: r.r8,
            r9: r.r9,
            r10: r.r10,
            r11: r.r11,
            r12: r.r12,
            r13: r.r13,
            r14: r.r14,
            r15: r.r15,
            fs_base: r.fs_base,
            gs_base: r.gs_base,
        }
    }
    fn set_registers(&self, thread: MachineThread, n: &Registers) {
        let mut threads = self.0.threads.borrow_mut();
        let Some(host) = threads.get_mut(&Host::tid(thread)) else { return };
        assert!(!host.running, "registers of a running thread");
        let r = &mut host.registers;
        *r = user_regs_struct {
            rip: n.rip,
            eflags: n.rflags,
            rsp: n.rsp,
            rax: n.rax,
            rbx: n.rbx,
            rcx: n.rcx,
            rdx: n.rdx,
            rsi: n.rsi,
            rdi: n.rdi,
            rbp: n.rbp,
            r8: n.r8,
            r9: n.r9,
            r10: n.r10,
            r11: n.r11,
            r12: n.r12,
            r13: n.r13,
            r14: n.r14,
            r15: n.r15,
            fs_base: n.fs_base,
            gs_base: n.gs_base,
            ..*r
        };
    }
    fn vector_state(&self, thread: MachineThread, to: &mut [u8; VECTOR_STATE_MAX]) -> usize {
        trace::vector_state(Host::tid(thread), libc::PTRACE_GETREGSET, to)
    }
    fn set_vector_state(&self, thread: MachineThread, from: &[u8]) {
        let mut bytes = from.to_vec();
        trace::vector_state(Host::tid(thread), libc::PTRACE_SETREGSET, &mut bytes);
    }
    fn copy_vector_state(&self, from: MachineThread, to: MachineThread) {
        let mut bytes = [0; VECTOR_STATE_MAX];
        let len = self.vector_state(from, &mut bytes);
        self.set_vector_state(to, &bytes[..len]);
    }
    fn map(&self, thread: MachineThread, pages: &[Mapping]) {
        let threads = self.0.threads.borrow();
        let space = threads.get(&Host::tid(thread)).expect("a thread of ours").space;
        let mut spaces = self.0.spaces.borrow_mut();
        let space = spaces.get_mut(&space).expect("a space of ours");
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
        for page in pages {
            let offset = u64::from(page.frame.0) * 4096;
            let arguments =
                [page.address, 4096, prot(page.access), flags, FRAMES_FD as u64, offset];
            let got = trace::inject(space.pid, libc::SYS_mmap, arguments);
            assert_eq!(got as u64, page.address, "mmap of {page:x?}");
            space.mapped.insert(page.address, *page);
        }
    }
    fn revoke(&self, frames: &[FrameId], rights: Access) {
        let frames: std::collections::BTreeSet<_> = frames.iter().copied().collect();
        for space in self.0.spaces.borrow_mut().values_mut() {
            let pid = space.pid;
            space.mapped.retain(|address, page| {
                if !frames.contains(&page.frame) || !page.access.intersects(rights) {
                    return true;
                }
                page.access -= rights;
                let (number, access) = match page.access.is_empty() {
                    true => (libc::SYS_munmap, 0),
                    false => (libc::SYS_mprotect, prot(page.access)),
                };
                trace::inject(pid, number, [*address, 4096, access, 0, 0, 0]);
                !page.access.is_empty()
            });
        }
    }
    fn user_time_ns(&self, _: MachineThread) -> u64 {
        0
    }
    fn console_write(&self, bytes: &[u8]) {
        let mut out = std::io::stdout();
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }
    fn random(&self, to: &mut [u8]) {
        // SAFETY: the buffer is ours.
        unsafe { libc::getrandom(to.as_mut_ptr().cast(), to.len(), 0) };
    }
    fn log(&self, line: &str) {
        eprintln!("{line}");
    }
    fn halt(&self, status: u32) {
        self.0.halted.set(Some(status));
    }
}
