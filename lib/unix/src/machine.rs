//! What the Unix server needs from the system below it. On Baton: address spaces,
//! threads, mappings by IPC; in the tests: ordinary memory.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use crate::errno::Errno;
use crate::memory::FrameId;
use crate::thread::Thread;

/// An address space of the machine. 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct SpaceId(pub u32);

/// A thread of the machine. 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Default)]
pub struct MachineThread(pub u64);

/// A thread's user-level registers (x86-64).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Registers {
    pub rip: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub fs_base: u64,
    pub gs_base: u64,
}

/// Size of the vector state that [`Machine::vector_state`] gives, in bytes: at most this.
pub const VECTOR_STATE_MAX: usize = 2688;

bitflags::bitflags! {
    /// Access to a page.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Access: u8 {
        #[allow(missing_docs)] const READ = 4;
        #[allow(missing_docs)] const WRITE = 2;
        #[allow(missing_docs)] const EXECUTE = 1;
    }
}

/// A page to be mapped into a program's space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// User address, page-aligned.
    pub address: u64,
    /// The memory.
    pub frame: FrameId,
    /// What the program may do with it.
    pub access: Access,
}

/// How a thread goes on after an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// A system call's result: RAX; every other register as the program left it.
    Result(u64),
    /// A page fault is answered: these mappings, then the access is tried again.
    Mapped,
    /// Goes on with the registers that [`Machine::set_registers`] gave it.
    Resume,
}

/// Pages of kernel memory that the space of a small program needs.
pub const SPACE_PAGES: u64 = 24;

/// A service of the system below that programs may ask, if they may write to its socket.
pub struct Service {
    /// Its name, and its socket's in `/srv`.
    pub name: String,
    /// The socket's permissions.
    pub mode: u32,
}

/// A message to a service, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its label.
    pub label: u64,
    /// Its words, 8 bytes each, little-endian; at most 63, and 61 beside a string.
    pub words: &'a [u8],
    /// Its string.
    pub string: Option<&'a [u8]>,
}

/// What a native task that asked for a socket is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// Somebody has connected: the new socket's number, and who it is.
    Accepted {
        /// The socket of this side.
        socket: u64,
        /// The user on the other side.
        uid: u32,
    },
    /// Bytes that have come; none at the end.
    Came(&'a [u8]),
    /// So many bytes were sent.
    Sent(u32),
    /// Refused.
    Refused(Errno),
}

/// Who goes before whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// Takes turns with all others like it.
    #[default]
    Ordinary,
    /// Runs when no ordinary one can, in turns with others like it.
    Background,
    /// Runs before all ordinary ones, in turns with others like it, as long as it is let.
    Boosted,
}

/// What a thread has of the processor beside others that can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Beside whom.
    pub urgency: Urgency,
    /// How long a turn of it is, in ticks of the machine, some milliseconds each.
    pub ticks: u32,
}

/// Tells how much there is in all of something, and how much is left.
pub type Gauge = fn() -> (u64, u64);

/// The system below. One thread calls it, never from within itself.
pub trait Machine {
    /// Nanoseconds since boot, monotonic.
    fn now_ns(&self) -> u64;
    /// Nanoseconds since 1970 at boot.
    fn boot_time_ns(&self) -> u64;
    /// How the time stamp counter tells the time: nanoseconds since boot are
    /// `(tsc - .0) * .1 >> 32` (for the vDSO's data page).
    fn tsc_scale(&self) -> (u64, u64);
    /// What CPUID says of a leaf and a subleaf: EAX, EBX, ECX, EDX. Nothing, by default.
    fn cpuid(&self, _leaf: u32, _subleaf: u32) -> [u32; 4] {
        [0; 4]
    }
    /// Asks for `Unix::alarm` at this time (at or after it); `None`: no more.
    fn set_alarm(&self, at_ns: Option<u64>);
    /// Asks for `Unix::turn` once everybody who can run now and is as urgent, or more, has run, for a slice of time or
    /// until they waited.
    fn ask_for_turn(&self, urgency: Urgency);

    /// A new, empty address space, which will have `pages` of kernel memory.
    ///
    /// # Errors
    /// `ENOMEM` or `EAGAIN` when the system below has no more.
    fn create_space(&self, pages: u64) -> Result<SpaceId, Errno>;
    /// Ends a space whose threads have all ended; its mappings vanish.
    fn destroy_space(&self, space: SpaceId);
    /// A new thread in `space`, which does not run before `Reply::Resume` is given to it.
    ///
    /// # Errors
    /// `EAGAIN` when there is no more room for a thread.
    fn create_thread(&self, space: SpaceId) -> Result<MachineThread, Errno>;
    /// Ends a thread, whatever it does.
    fn destroy_thread(&self, thread: MachineThread);
    /// Which of the machine's threads belongs to which of ours; called after `create_thread`
    /// and, with `None`, before `destroy_thread`.
    fn bind(&self, machine: MachineThread, thread: Option<&Rc<Thread>>);

    /// How many processors programs run on, at most 64.
    fn processors(&self) -> u32 {
        1
    }
    /// Lets the thread run on another processor, from 0 on, which is where it begins; whether
    /// it does.
    fn set_processor(&self, _thread: MachineThread, _number: u32) -> bool {
        false
    }
    /// If the thread runs on another processor now, it comes back from there and goes on: what it has done is seen by all,
    /// and it sees what they have done.
    fn bring_back(&self, _thread: MachineThread) {}

    /// What the thread has of the processor from now on; at first it is ordinary, with turns of ten ticks.
    fn set_share(&self, _thread: MachineThread, _share: Share) {}
    /// Grows when the thread runs for as long as a tick, or the server for it; in nanoseconds, more or less.
    fn has_run_ns(&self, thread: MachineThread) -> u64 {
        self.user_time_ns(thread) + self.system_time_ns(thread)
    }

    /// Stops a thread that runs in user mode (or has an event on its way, which is then lost:
    /// the instruction will be tried again). From now on it waits for a [`Reply`].
    /// Threads that have raised an event wait already.
    fn stop(&self, thread: MachineThread);
    /// The registers of a thread that waits for a reply. After a system call, RIP is behind
    /// the instruction and RAX the number.
    fn registers(&self, thread: MachineThread) -> Registers;
    /// Sets all registers of a thread that waits for a reply; answer it with `Reply::Resume`.
    fn set_registers(&self, thread: MachineThread, registers: &Registers);
    /// The vector and floating-point state of a thread that waits, in XSAVE's standard
    /// format (FXSAVE's 512 bytes at least); returns its size in bytes.
    fn vector_state(&self, thread: MachineThread, to: &mut [u8; VECTOR_STATE_MAX]) -> usize;
    /// Sets the vector state; invalid images are made valid (reserved bits cleared).
    fn set_vector_state(&self, thread: MachineThread, from: &[u8]);
    /// Copies the vector state (for `fork`).
    fn copy_vector_state(&self, from: MachineThread, to: MachineThread);

    /// Maps pages into the space of a thread that waits for a reply; what was mapped at
    /// the same address before is replaced. They may be delivered
    /// with that reply, so the thread must get one; a mapping is a cache entry that the
    /// machine may drop (the program faults again).
    fn map(&self, thread: MachineThread, pages: &[Mapping]);
    /// Takes these rights away from all programs that have `frames` mapped.
    /// `Access::all()` removes the mappings.
    fn revoke(&self, frames: &[FrameId], rights: Access);

    /// Instructions of user time so far, in nanoseconds, as far as the system below counts.
    fn user_time_ns(&self, thread: MachineThread) -> u64;
    /// Time that the server has worked for it so far, in nanoseconds, as far as that is counted.
    fn system_time_ns(&self, _thread: MachineThread) -> u64 {
        0
    }
    /// Writes to the console; takes all of it.
    fn console_write(&self, bytes: &[u8]);
    /// The services that programs may ask.
    fn services(&self) -> Vec<Service> {
        Vec::new()
    }
    /// Sends a message to service `index`; what comes of it is `Unix::service_answered`'s to hear,
    /// with the same `call`.
    ///
    /// # Errors
    /// `EAGAIN` when too many calls are under way, `ECONNREFUSED` when none can be.
    fn ask_service(&self, _index: usize, _call: u64, _packet: &Packet) -> Result<(), Errno> {
        Err(Errno::ECONNREFUSED)
    }
    /// Nobody waits for the answer of this call any more; it may still come.
    fn give_up_call(&self, _call: u64) {}
    /// Answers what a native task's thread asked for; whether it still waited for it. Bytes that did
    /// not arrive stay in the connection.
    fn tell_native(&self, _asker: u64, _told: Told) -> bool {
        false
    }
    /// Pages of kernel memory for spaces; without a limit, by default.
    fn kernel_gauge(&self) -> Gauge {
        || (u64::MAX, u64::MAX)
    }
    /// Bytes of the server's own memory; without a limit, by default.
    fn heap_gauge(&self) -> Gauge {
        || (u64::MAX, u64::MAX)
    }
    /// Whether programs are placed at random from the beginning; not where runs are to be
    /// repeated to the instruction.
    fn randomizes(&self) -> bool {
        true
    }
    /// Unpredictable bytes.
    fn random(&self, to: &mut [u8]);
    /// A line for the system's log.
    fn log(&self, line: &str);
    /// Somebody who may wants the server itself to fail (`c` in `/proc/sysrq-trigger`): a
    /// machine that is being tested does it the favour.
    fn fail(&self) {}
    /// The system of processes has ended: process 1 ended with this status.
    fn halt(&self, status: u32);
}
