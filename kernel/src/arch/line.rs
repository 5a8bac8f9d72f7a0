//! What a processor owns is its line, `Cpu`: the machine's part of it, and a place for its queues. The machine does
//! not look at those; whoever owns them says what they are, once for all processors.

/// A line has room for the processor's queues.
pub trait Line {
    /// What they are.
    type Scheduler;
    /// Of a processor for which nobody waits.
    const NOBODY: Self::Scheduler;
    /// So many bytes of it are each processor's; the rest is the first one's.
    const OWN: usize;
}
