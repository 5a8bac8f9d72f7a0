//! Where a thread goes on in user mode: in its tcb, or in the register frame on its stack. What it is told there.

use abi::layout::USER_END;
use abi::{CallError, utcb};

use super::rendezvous;
use super::tcb::Resume;
use crate::arch::Frame;
use crate::arch::machine::USER_FLAGS_MASK;
use crate::thread::TcbRef;
use crate::usermem::Utcb;

impl Utcb {
    /// The UTCB of `thread`, if it is active.
    #[must_use]
    pub fn of(thread: TcbRef) -> Option<Self> {
        Self::held(thread.utcb_k.get())
    }
}

impl TcbRef {
    /// Whether the thread is foreign.
    #[inline(always)]
    #[must_use]
    pub fn is_foreign(self) -> bool {
        !self.handler.get().is_nil()
    }

    /// Instruction and stack pointer at which the thread goes on in user mode.
    #[must_use]
    pub fn user_ip_sp(self) -> (u64, u64) {
        match self.frame_if_used() {
            Some(frame) => (frame.ip.get(), frame.sp.get()),
            None if rendezvous::is_public(self) => (self.ip.get(), self.public_sp()),
            None => (self.ip.get(), self.sp.get()),
        }
    }

    /// The stack pointer of the thread, which waits for messages from user mode.
    #[must_use]
    pub fn public_sp(self) -> u64 {
        Utcb::of(self).map_or(0, |utcb| utcb.word(utcb::LIPC_SP))
    }

    /// The register frame, if the thread will return through it.
    #[must_use]
    pub fn frame_if_used(self) -> Option<Frame> {
        self.has_frame().then(|| self.frame())
    }

    /// The thread is to make its call again, as soon as interrupts that have come are handled. The result that it gets
    /// first stands, on some processors, where the call's first argument was.
    #[cold]
    #[inline(never)] // where it is called every instruction counts
    pub fn calls_again(self) {
        self.destroy_next.set(self.frame().arguments()[0]);
        self.resume.set(Resume::Again);
    }

    /// Whether the user state is in the register frame: it is for every thread that
    /// entered by an interrupt, exception or a call other than IPC and Unmap.
    #[must_use]
    pub fn has_frame(self) -> bool {
        match self.resume.get() {
            Resume::Frame | Resume::Anew | Resume::Destroy => true,
            Resume::Entered | Resume::Bind | Resume::Again => true,
            // A handler's answer to the interrupted thread is under way.
            Resume::Transfer | Resume::Receive => self.kind.get().home() == Resume::Frame,
            Resume::Ipc | Resume::Idle | Resume::Unmap | Resume::Wake => false,
        }
    }

    /// What it has in user mode is in its frame from now on: it has its answer, if it has waited for one.
    pub fn keep_user_state(self) {
        let (frame, ip, sp, flags) = (self.frame(), &self.ip, &self.sp, &self.flags);
        if let (Resume::Ipc, Some(utcb)) = (self.resume.get(), Utcb::of(self)) {
            let from = self.result_from.get().0;
            frame.return_from_ipc(from, self.utcb.get(), |index| utcb.mr(index));
            // As they are: it may be in the stubs.
            frame.ip.set(ip.get());
            frame.sp.set(sp.get());
            frame.flags.set(flags.get());
        }
        self.resume.set(Resume::Frame);
    }

    /// Its quantum is used up: its scheduler is told before it goes on in user mode; not now if it is in the middle
    /// of something. Whether it is.
    #[must_use]
    pub fn is_told_of_its_time(self) -> bool {
        let goes_on = matches!(self.resume.get(), Resume::Ipc | Resume::Frame | Resume::Anew);
        if goes_on {
            self.keep_user_state();
            self.frame().set_out_of_time();
            self.resume.set(Resume::Entered);
        }
        goes_on
    }

    /// Sets instruction and/or stack pointer at which the thread goes on in user mode.
    /// An address that no user code can have becomes one that faults at once.
    pub fn set_user_ip(self, ip: u64) {
        let ip = if ip >= USER_END { USER_END } else { ip };
        match self.frame_if_used() {
            Some(frame) => frame.ip.set(ip),
            None => self.ip.set(ip),
        }
    }

    /// Sets the stack pointer with which the thread goes on in user mode.
    pub fn set_user_sp(self, sp: u64) {
        match self.frame_if_used() {
            Some(frame) => frame.sp.set(sp),
            None => self.sp.set(sp),
        }
    }

    /// The user flags.
    #[must_use]
    pub fn user_flags(self) -> u64 {
        self.frame_if_used().map_or_else(|| self.flags.get(), |frame| frame.flags.get())
    }

    /// Sets those user flags that a thread may change.
    pub fn set_user_flags(self, flags: u64) {
        let merged = self.user_flags() & !USER_FLAGS_MASK | flags & USER_FLAGS_MASK;
        match self.frame_if_used() {
            Some(frame) => frame.flags.set(merged),
            None => self.flags.set(merged),
        }
    }
}

/// Sets the ErrorCode of `caller`.
pub fn set_error(caller: TcbRef, error: CallError) {
    if let Some(utcb) = Utcb::of(caller) {
        utcb.set_word(utcb::ERROR_CODE, error as u64);
    }
}

/// Says to `caller`, whose registers are in `frame`, whether its system call has succeeded (1) or failed (0 and
/// ErrorCode).
pub fn set_result(caller: TcbRef, frame: Frame, result: Result<(), CallError>) {
    frame.set_result(u64::from(result.is_ok()));
    if let Err(error) = result {
        set_error(caller, error);
    }
}
