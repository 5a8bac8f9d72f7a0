//! What programs do with threads by system calls: ThreadControl ([`threads`]), ExchangeRegisters ([`exregs`]),
//! ThreadState ([`foreign`]), Schedule and ThreadSwitch ([`schedule`]), ArmLocal ([`arm`]), and the life of a thread that these
//! begin and end ([`lifecycle`]). Whoever ends one takes it out of everything that it is in: so this stands
//! above queues, IPC, procedure calls and interrupts, which know of it what its tcb says. `call` leads here,
//! and `start` for the first threads.

pub mod arm;
pub mod ceiling;
pub mod exregs;
pub mod foreign;
pub mod lifecycle;
pub mod processor;
pub mod schedule;
pub mod thread_control;
pub mod version;
