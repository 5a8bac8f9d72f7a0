//! What kinds of messages there are, by who makes them.

use abi::{MsgTag, protocol};

use super::tcb::Resume;

/// What kind of message a thread exchanges: its own, or one the kernel makes for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Kind {
    /// The thread's own IPC.
    #[default]
    User = 0,
    /// Waits for its start message (X.2 6.1).
    Start,
    /// Page fault (6.2).
    PageFault,
    /// I/O port fault (6.3).
    IoFault,
    /// Exception (6.4).
    Exception,
    /// Page fault in a string transfer (4.5).
    TransferFault,
    /// Preemption (6.6).
    Preemption,
    /// The thread is an interrupt (6.5).
    Interrupt,
    /// System call of a foreign thread (`control::foreign`).
    SystemCall,
    /// The thread asks a clerk for a binding (`lrpc::bind`).
    Bind,
}

impl Kind {
    /// How a thread that exchanges such a message returns to user mode afterwards:
    /// what interrupted user code is in its register frame.
    #[must_use]
    pub const fn home(self) -> Resume {
        match self {
            Self::PageFault
            | Self::IoFault
            | Self::Exception
            | Self::Preemption
            | Self::SystemCall
            | Self::Bind => Resume::Frame,
            Self::User | Self::Start | Self::TransferFault | Self::Interrupt => Resume::Ipc,
        }
    }
}

/// Tag of a system call's message.
pub const SYSTEM_CALL_TAG: MsgTag = MsgTag::protocol(protocol::SYSTEM_CALL, 0, 7, 0);
