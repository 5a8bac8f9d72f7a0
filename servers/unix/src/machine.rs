//! The library's machine: tasks, pages, time, console, randomness on Baton.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::ops::Deref;

use abi::ThreadId;
use abi::protocol::exception as reg;
use abi::syscall::state;
use runtime::heap;
use runtime::kernel::{self, STATE_WORDS, VectorState};
use runtime::misdeed::{self, Misdeed};
use runtime::{random, root, schedule};
use unix::Errno;
use unix::machine::{
    Access, Gauge, Machine, MachineThread, Mapping, Packet, Registers, Service, Share, SpaceId,
    Told, Urgency, VECTOR_STATE_MAX,
};
use unix::memory::FrameId;
use unix::thread::Thread;

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::console::Console;
use crate::natives::Natives;
use crate::pages::Pages;
use crate::services::Services;
use crate::tasks::{self, Tasks};
use crate::turns::Turns;

/// Everything below the library.
pub struct Baton {
    pub tasks: Tasks,
    /// How many processors there are.
    pub processors: u32,
    pub pages: Pages,
    pub clock: Clock,
    pub alarm: Alarm,
    /// Of ordinary programs, and of those in the background.
    pub turns: [Turns; 2],
    pub console: Console,
    pub services: Services,
    pub natives: Natives,
    /// Started for one command: its status ends the machine.
    pub command: bool,
    /// Fails when it is told to: for tests.
    pub may_fail: bool,
    /// Programs are where they were the last time: for counting.
    pub fixed_addresses: bool,
}

/// Position of each register among the words of ThreadState, in `Registers`' order.
const ORDER: [usize; 20] = [
    reg::RIP,
    reg::RFLAGS,
    reg::RSP,
    reg::RAX,
    reg::RBX,
    reg::RCX,
    reg::RDX,
    reg::RSI,
    reg::RDI,
    reg::RBP,
    reg::R8,
    reg::R9,
    reg::R10,
    reg::R11,
    reg::R12,
    reg::R13,
    reg::R14,
    reg::R15,
    state::FS_BASE,
    state::GS_BASE,
];

fn fields(r: &mut Registers) -> [&mut u64; 20] {
    [
        &mut r.rip,
        &mut r.rflags,
        &mut r.rsp,
        &mut r.rax,
        &mut r.rbx,
        &mut r.rcx,
        &mut r.rdx,
        &mut r.rsi,
        &mut r.rdi,
        &mut r.rbp,
        &mut r.r8,
        &mut r.r9,
        &mut r.r10,
        &mut r.r11,
        &mut r.r12,
        &mut r.r13,
        &mut r.r14,
        &mut r.r15,
        &mut r.fs_base,
        &mut r.gs_base,
    ]
}

/// The library's handle on it.
pub struct Below(pub Rc<Baton>);

impl Deref for Below {
    type Target = Baton;
    fn deref(&self) -> &Baton {
        &self.0
    }
}

fn id(thread: MachineThread) -> ThreadId {
    ThreadId(thread.0)
}

impl Machine for Below {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn boot_time_ns(&self) -> u64 {
        self.clock.boot_ns()
    }

    fn tsc_scale(&self) -> (u64, u64) {
        self.clock.scale()
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        // Beyond the highest leaf it says what the highest one does, or anything else.
        if leaf > __cpuid(leaf & 0x8000_0000).eax {
            return [0; 4];
        }
        let said = __cpuid_count(leaf, subleaf);
        [said.eax, said.ebx, said.ecx, said.edx]
    }

    fn set_alarm(&self, at_ns: Option<u64>) {
        // Rounded up: an alarm is never early.
        self.alarm.set(at_ns.map(|ns| ns / 1000 + 1));
    }

    fn ask_for_turn(&self, urgency: Urgency) {
        self.turns[urgency as usize].ask();
    }

    fn create_space(&self, pages: u64) -> Result<SpaceId, Errno> {
        Ok(self.tasks.create_space(pages))
    }

    fn destroy_space(&self, space: SpaceId) {
        self.tasks.destroy_space(space);
    }

    fn create_thread(&self, space: SpaceId) -> Result<MachineThread, Errno> {
        self.tasks.create_thread(space)
    }

    fn destroy_thread(&self, thread: MachineThread) {
        self.pages.forget(thread);
        self.tasks.destroy_thread(thread);
    }

    fn bind(&self, machine: MachineThread, thread: Option<&Rc<Thread>>) {
        self.tasks.bind(machine, thread);
    }

    fn processors(&self) -> u32 {
        self.processors
    }

    fn set_processor(&self, thread: MachineThread, number: u32) -> bool {
        schedule::set_processor(id(thread), number).is_ok()
    }

    fn bring_back(&self, thread: MachineThread) {
        let _ = schedule::bring_back(id(thread));
    }

    fn set_share(&self, thread: MachineThread, share: Share) {
        self.tasks.set_share(thread, share);
    }

    fn has_run_ns(&self, thread: MachineThread) -> u64 {
        Tasks::counted_us(thread) * 1_000 + self.system_time_ns(thread)
    }

    fn stop(&self, thread: MachineThread) {
        let _ = kernel::stop(id(thread));
    }

    fn registers(&self, thread: MachineThread) -> Registers {
        let words = kernel::foreign_registers(id(thread)).unwrap_or([0; STATE_WORDS]);
        let mut registers = Registers::default();
        for (field, index) in fields(&mut registers).into_iter().zip(ORDER) {
            *field = words[index];
        }
        registers
    }

    fn set_registers(&self, thread: MachineThread, registers: &Registers) {
        let (mut words, mut registers) = ([0; STATE_WORDS], *registers);
        for (field, index) in fields(&mut registers).into_iter().zip(ORDER) {
            words[index] = *field;
        }
        let _ = kernel::set_foreign_registers(id(thread), &words);
    }

    fn vector_state(&self, thread: MachineThread, to: &mut [u8; VECTOR_STATE_MAX]) -> usize {
        let mut buffer = VectorState([0; VECTOR_STATE_MAX]);
        if kernel::vector_state(id(thread), &mut buffer).is_err() {
            return 0;
        }
        to.copy_from_slice(&buffer.0);
        kernel::vector_bytes()
    }

    fn set_vector_state(&self, thread: MachineThread, from: &[u8]) {
        let mut buffer = VectorState([0; VECTOR_STATE_MAX]);
        let len = from.len().min(VECTOR_STATE_MAX);
        buffer.0[..len].copy_from_slice(&from[..len]);
        let _ = kernel::set_vector_state(id(thread), &mut buffer);
    }

    fn copy_vector_state(&self, from: MachineThread, to: MachineThread) {
        let mut buffer = VectorState([0; VECTOR_STATE_MAX]);
        if kernel::vector_state(id(from), &mut buffer).is_ok() {
            let _ = kernel::set_vector_state(id(to), &mut buffer);
        }
    }

    fn map(&self, thread: MachineThread, pages: &[Mapping]) {
        self.pages.add(thread, pages);
    }

    fn revoke(&self, frames: &[FrameId], rights: Access) {
        self.pages.revoke(frames, rights);
    }

    fn user_time_ns(&self, thread: MachineThread) -> u64 {
        match self.processors {
            1 => self.clock.ns(self.tasks.ticks(thread)),
            _ => Tasks::counted_us(thread) * 1_000,
        }
    }

    fn system_time_ns(&self, thread: MachineThread) -> u64 {
        self.clock.ns(self.tasks.system_ticks(thread))
    }

    fn console_write(&self, bytes: &[u8]) {
        self.console.write(bytes);
    }

    fn services(&self) -> Vec<Service> {
        self.services.offered()
    }

    fn ask_service(&self, index: usize, call: u64, packet: &Packet) -> Result<(), Errno> {
        self.services.ask(index, call, packet)
    }

    fn give_up_call(&self, call: u64) {
        self.services.give_up(call);
    }

    fn tell_native(&self, asker: u64, told: Told) -> bool {
        self.natives.tell(asker, told)
    }

    fn kernel_gauge(&self) -> Gauge {
        tasks::kernel_gauge
    }

    fn randomizes(&self) -> bool {
        !self.fixed_addresses
    }

    fn heap_gauge(&self) -> Gauge {
        heap::gauge
    }

    fn random(&self, to: &mut [u8]) {
        for chunk in to.chunks_mut(8) {
            chunk.copy_from_slice(&random::word().to_le_bytes()[..chunk.len()]);
        }
    }

    fn log(&self, line: &str) {
        self.console.write(alloc::format!("{line}\r\n").as_bytes());
    }

    fn fail(&self) {
        if self.may_fail {
            misdeed::commit(Misdeed::NullRead);
        }
    }

    fn halt(&self, status: u32) {
        // As a shell tells it: the exit status, or 128 and the signal.
        let signal = status & 0x7F;
        let status = if signal == 0 { status >> 8 & 0xFF } else { 128 + signal };
        if self.command {
            self.log(&alloc::format!("unix: the command exited with status {status}"));
        }
        // The driver takes text faster than the line: let it finish.
        runtime::ipc::sleep(50_000);
        let good = status == 0 || !self.command;
        let code = if good { proto::root::SUCCESS } else { proto::root::FAILURE };
        let _ = root::halt(code);
    }
}
