//! The processor, chosen here and nowhere else.
//!
//! Every architecture exports the same names; one that is missing does not compile. `paging`,
//! `mem`, the register frame and what calls find in it are pure logic on the
//! processor's own formats, and the host has those of its processor, too (with the feature
//! `riscv64` those of RISC-V); access to physical memory, to privileged registers and to threads
//! is replaced there.
//!
//! Here is the machine, on which all rooms stand, and the processor's half of some of them, each a folder that is counted
//! to its room: `mem`, `thread`, `elsewhere`, `check`, and `entry`, by which the processor comes into the kernel, above
//! all of them (docs/decisions/0135-a-processor-has-a-half-of-a-room.md). A half's names are found in its room.

#[cfg(any(target_arch = "riscv64", feature = "riscv64"))]
pub mod riscv64;
#[cfg(any(target_arch = "riscv64", feature = "riscv64"))]
use riscv64 as processor;

#[cfg(all(target_arch = "x86_64", not(feature = "riscv64")))]
pub mod x86_64;
#[cfg(all(target_arch = "x86_64", not(feature = "riscv64")))]
use x86_64 as processor;

pub mod clock;
pub mod exchange;
pub mod global;
pub mod line;
pub mod log;
pub mod preemption;
pub mod table_page;

pub use processor::{machine, mem, paging};

#[cfg(target_os = "none")]
pub use processor::native::*;
#[cfg(target_os = "none")]
pub use processor::{check, elsewhere, entry, thread};

#[cfg(not(target_os = "none"))]
pub mod host;
#[cfg(not(target_os = "none"))]
pub use host::*;
