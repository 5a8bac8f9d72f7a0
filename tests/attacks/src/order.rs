//! The messages between the judge and the other parts.

use abi::{ThreadId, Time, Timeouts};
use runtime::{Msg, ipc};

/// Judge to attacker: MR1 number of the attack. No reply.
pub const ORDER: u64 = 0x760;
/// Attacker to judge: MR1 a [`Help`], MR2 argument. Reply: words.
pub const HELP: u64 = 0x761;
/// Attacker to judge: what the attack reached, as text; none if it was refused. Reply: empty.
pub const RESULT: u64 = 0x762;
/// Judge to a victim: MR1 a [`Probe`], MR2 argument. Reply: words.
pub const PROBE: u64 = 0x763;
/// From a thread that outlives its task. No reply.
pub const ALIVE: u64 = 0x764;

/// What the judge does for an attacker: what it could find out or wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Help {
    /// Reply: the victim's thread, the address of its secret.
    Victim = 0,
    /// Argument: a word. Reply: 1 if it is the victim's secret.
    IsSecret = 1,
    /// Reply: the main thread's id that the heir gets when it is started next.
    NextHeir = 2,
    /// Starts the heir. Reply: its main thread.
    StartHeir = 3,
    /// Reply: the server's thread.
    Server = 4,
    /// Lets the server take a message. Reply: from whom, or nilthread.
    Listen = 5,
    /// Argument: 0 the canary of equal priority computes, 1 the one of middle priority.
    /// Reply: for how long it did not get the processor, µs.
    Compute = 6,
    /// Lets the victim make a thread. Reply: 1 if it could.
    VictimSpawns = 7,
    /// Asks for a page of memory. Reply: 1 if there was one.
    TryMemory = 8,
    /// Registers a name. Reply: 1 if that went.
    TryName = 9,
    /// Waits for a task's end. Reply: 1 if that went.
    TryWait = 10,
    /// Argument: time, µs. Reply: empty, after it.
    Pause = 11,
    /// Reply: the clerk's thread.
    Clerk = 12,
    /// Reply: the token of the judge's binding to the clerk, or 0.
    Token = 13,
    /// Calls a procedure of the clerk's. Reply: the status.
    TryCall = 14,
    /// Makes a binding to the clerk. Reply: 1 if that went.
    TryBind = 15,
    /// Ends the clerk and starts it again. Reply: empty.
    RestartClerk = 16,
}

impl Help {
    /// Decodes a message word.
    #[must_use]
    pub const fn decode(word: u64) -> Option<Self> {
        Some(match word {
            0 => Self::Victim,
            1 => Self::IsSecret,
            2 => Self::NextHeir,
            3 => Self::StartHeir,
            4 => Self::Server,
            5 => Self::Listen,
            6 => Self::Compute,
            7 => Self::VictimSpawns,
            8 => Self::TryMemory,
            9 => Self::TryName,
            10 => Self::TryWait,
            11 => Self::Pause,
            12 => Self::Clerk,
            13 => Self::Token,
            14 => Self::TryCall,
            15 => Self::TryBind,
            16 => Self::RestartClerk,
            _ => return None,
        })
    }
}

/// What the judge asks of a part.
pub mod probe {
    /// Reply: address of the secret, secret, 1 if all is as it was.
    pub const WHOLE: u64 = 0;
    /// Reply: 1 if a thread could be made.
    pub const SPAWN: u64 = 1;
    /// Reply: from whom a message came, or nilthread.
    pub const LISTEN: u64 = 2;
    /// Argument: how long to compute, µs. Reply: longest time without the processor, µs.
    pub const COMPUTE: u64 = 3;
}

/// Calls `part` and waits at most `us` for each half.
#[must_use]
pub fn ask(part: ThreadId, words: &[u64], us: u64) -> Option<[u64; 7]> {
    let patience = Timeouts::new(Time::micros(us), Time::micros(us));
    let answer = ipc::call_within(part, &Msg::new(PROBE).words(words), patience).ok()?;
    (answer.label() == proto::OK).then_some(answer.mr)
}
