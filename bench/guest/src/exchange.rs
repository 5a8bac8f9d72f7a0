//! Exchanges: words and strings, inside a space and between spaces, one way and
//! there and back.

use abi::{MsgTag, StringItem};
use runtime::kernel;

use crate::marks::{self, Role, exchange};
use crate::partner::{Partner, Result, between, inside, program_inside};
use crate::{Samples, row};

/// Exchanges before the measured ones: tables and caches of the kernel settle.
const WARM_UP: u64 = 4;
/// Exchanges measured per row; the least counts (a timer tick may hit one).
const ROUNDS: u64 = 4;
/// Label of what is measured.
const LABEL: u64 = 1;

/// Where the partner is.
#[derive(Clone, Copy)]
pub enum Where {
    /// In a space of its own.
    Cross,
    /// In the client's space.
    Local,
}

impl Where {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Cross, Self::Local];

    /// As it is called in rows.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cross => "cross",
            Self::Local => "local",
        }
    }

    /// Creates a partner there.
    pub fn partner(self, role: Role) -> Result<Partner> {
        match self {
            Self::Cross => between(role),
            Self::Local => inside(role),
        }
    }
}

/// Register and short messages of each length: rows `ipc/words-PLACE-call` (there),
/// `-reply` (back) and `-roundtrip`.
pub fn words(place: Where, lengths: impl Iterator<Item = u32>) -> Result<()> {
    let (marked, plain) = (place.partner(Role::Marked)?, place.partner(Role::Plain)?);
    for words in lengths {
        let tag = MsgTag::new(LABEL, words, 0);
        let samples = repeat(marked, tag, [0, 0], 2);
        samples.row(format_args!("ipc/words-{}-call words={words}", place.word()), 0, 2);
        samples.row(format_args!("ipc/words-{}-reply words={words}", place.word()), 1, 2);
        let samples = repeat(plain, tag, [0, 0], 1);
        row!(samples, "ipc/words-{}-roundtrip words={words}", place.word());
    }
    marked.delete();
    plain.delete();
    Ok(())
}

/// Short messages on the complete path, which whatever is unusual takes: rows
/// `ipc/complete-PLACE-call` and `-reply`.
pub fn complete(place: Where) -> Result<()> {
    let partner = place.partner(Role::Complete)?;
    let tag = MsgTag::new(LABEL, 0, 0);
    for _ in 0..WARM_UP {
        let _ = marks::complete_exchange(partner.id, tag);
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        let _ = marks::complete_exchange(partner.id, tag);
    }
    samples.row(format_args!("ipc/complete-{}-call words=0", place.word()), 0, 2);
    samples.row(format_args!("ipc/complete-{}-reply words=0", place.word()), 1, 2);
    partner.delete();
    Ok(())
}

/// Short messages inside a space without the kernel (Wenske 2002): rows `lipc/call` and
/// `lipc/reply`.
pub fn local() -> Result<()> {
    let partner = inside(Role::Local)?;
    let local = runtime::thread::other_id(partner.id).ok_or("a partner has no local id")?;
    let tag = MsgTag::new(LABEL, 0, 0);
    for _ in 0..WARM_UP {
        let _ = marks::local_exchange(local, tag);
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        let _ = marks::local_exchange(local, tag);
    }
    samples.row(format_args!("lipc/call words=0"), 0, 2);
    samples.row(format_args!("lipc/reply words=0"), 1, 2);
    partner.delete();
    Ok(())
}

/// The same between users of vector registers: rows `lipc/vector-call` and `-reply`, and by kernel IPC
/// to and from one that takes part, `lipc/armed-vector-call` and `-reply`.
pub fn local_vector() -> Result<()> {
    let refused = |_| "the kernel refuses a declaration about vector registers";
    let tag = MsgTag::new(LABEL, 0, 0);
    kernel::use_vector_registers().map_err(refused)?;
    let partner = inside(Role::LocalVector)?;
    let local = runtime::thread::other_id(partner.id).ok_or("a partner has no local id")?;
    for _ in 0..WARM_UP {
        let _ = marks::local_vector_exchange(local, tag);
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        let _ = marks::local_vector_exchange(local, tag);
    }
    samples.row(format_args!("lipc/vector-call words=0"), 0, 2);
    samples.row(format_args!("lipc/vector-reply words=0"), 1, 2);
    for _ in 0..WARM_UP {
        let _ = marks::vector_exchange(partner.id, tag, Role::VectorDead);
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        let _ = marks::vector_exchange(partner.id, tag, Role::VectorDead);
    }
    samples.row(format_args!("lipc/armed-vector-call words=0"), 0, 2);
    samples.row(format_args!("lipc/armed-vector-reply words=0"), 1, 2);
    kernel::use_no_vector_registers().map_err(refused)?;
    partner.delete();
    Ok(())
}

/// Kernel IPC to and from a thread that takes part in messages without the kernel, and critical
/// sections as threads: rows `lipc/armed-PLACE-call` and `-reply` (to another that takes part, and to
/// one of another space that does not) and `lipc/section`.
pub fn armed() -> Result<()> {
    let partner = inside(Role::Local)?;
    let local = runtime::thread::other_id(partner.id).ok_or("a partner has no local id")?;
    let tag = MsgTag::new(LABEL, 0, 0);
    for _ in 0..WARM_UP {
        let _ = marks::local_exchange(local, tag);
        let _ = exchange(partner.id, tag, [0, 0], 2);
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        let _ = exchange(partner.id, tag, [0, 0], 2);
    }
    samples.row(format_args!("lipc/armed-local-call words=0"), 0, 2);
    samples.row(format_args!("lipc/armed-local-reply words=0"), 1, 2);
    let other = between(Role::Marked)?;
    for _ in 0..WARM_UP {
        let _ = exchange(other.id, tag, [0, 0], 2);
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        let _ = exchange(other.id, tag, [0, 0], 2);
    }
    samples.row(format_args!("lipc/armed-cross-call words=0"), 0, 2);
    samples.row(format_args!("lipc/armed-cross-reply words=0"), 1, 2);
    other.delete();
    partner.delete();

    let server = program_inside(marks::serve_section, 0)?;
    let thread = runtime::thread::other_id(server.id).ok_or("a section has no local id")?;
    let section = marks::section(thread);
    for _ in 0..WARM_UP {
        section.with(|value| *value += 1);
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        // The body's own is one instruction and a return.
        marks::sample(|| section.with(|value| *value += 1));
    }
    row!(samples, "lipc/section");
    server.delete();
    Ok(())
}

/// Short messages between two threads that both use vector registers: rows
/// `ipc/vector-KEEP-PLACE-call` and `-reply`.
pub fn vector(place: Where) -> Result<()> {
    let refused = |_| "the kernel refuses a declaration about vector registers";
    let tag = MsgTag::new(LABEL, 0, 0);
    for (role, keep) in [(Role::VectorDead, "dead"), (Role::VectorKept, "kept")] {
        kernel::use_vector_registers().map_err(refused)?;
        let partner = place.partner(role)?;
        for _ in 0..WARM_UP {
            let _ = marks::vector_exchange(partner.id, tag, role);
        }
        let samples = Samples::start();
        for _ in 0..ROUNDS {
            let _ = marks::vector_exchange(partner.id, tag, role);
        }
        kernel::use_no_vector_registers().map_err(refused)?;
        samples.row(format_args!("ipc/vector-{keep}-{}-call words=0", place.word()), 0, 2);
        samples.row(format_args!("ipc/vector-{keep}-{}-reply words=0", place.word()), 1, 2);
        partner.delete();
    }
    Ok(())
}

/// Rows `ipc/words-PLACE-split`: round trips by separate send and receive calls.
pub fn split(place: Where, lengths: impl Iterator<Item = u32>) -> Result<()> {
    let partner = place.partner(Role::Split)?;
    for words in lengths {
        let tag = MsgTag::new(LABEL, words, 0);
        for _ in 0..WARM_UP {
            let _ = marks::split(partner.id, tag);
        }
        let samples = Samples::start();
        for _ in 0..ROUNDS {
            let _ = marks::split(partner.id, tag);
        }
        row!(samples, "ipc/words-{}-split words={words}", place.word());
    }
    partner.delete();
    Ok(())
}

/// Strings of each length, from `source` to wherever the partner's buffer is: rows
/// `ipc/string-PLACE` (the string's way) and `ipc/string-PLACE-reply` (the empty answer).
pub fn strings(place: Where, source: u64, lengths: impl Iterator<Item = u64>) -> Result<()> {
    let partner = place.partner(Role::Strings)?;
    for bytes in lengths {
        let tag = MsgTag::new(LABEL, 0, 2);
        let samples = repeat(partner, tag, StringItem::simple(source, bytes), 2);
        samples.row(format_args!("ipc/string-{} bytes={bytes}", place.word()), 0, 2);
        samples.row(format_args!("ipc/string-{}-reply bytes={bytes}", place.word()), 1, 2);
    }
    partner.delete();
    Ok(())
}

/// A string of 4,096 bytes across the border of a page on both sides, which are not at the same
/// place of it: row `ipc/string-cross-unaligned`.
pub fn unaligned(source_border: u64, target_border: u64) -> Result<()> {
    const BYTES: u64 = 4096;
    marks::set_buffer(target_border - 3000, 2 * BYTES);
    let partner = Where::Cross.partner(Role::Strings)?;
    let string = StringItem::simple(source_border - 1000, BYTES);
    let samples = repeat(partner, MsgTag::new(LABEL, 0, 2), string, 2);
    samples.row(format_args!("ipc/string-cross-unaligned bytes={BYTES}"), 0, 2);
    partner.delete();
    Ok(())
}

/// Makes the exchanges of a row; returns the measured samples.
fn repeat(partner: Partner, tag: MsgTag, words: [u64; 2], per_exchange: u64) -> Samples {
    for _ in 0..WARM_UP {
        let _ = exchange(partner.id, tag, words, per_exchange);
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        let _ = exchange(partner.id, tag, words, per_exchange);
    }
    samples
}

/// The trap alone: row `ops/invalid-call`.
pub fn null_call() {
    marks::trap();
    let samples = Samples::start();
    (0..ROUNDS).for_each(|_| marks::trap());
    row!(samples, "ops/invalid-call");
}
