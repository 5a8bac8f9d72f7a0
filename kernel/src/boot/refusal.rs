//! Why a boot image is refused, as sentences.

use core::fmt;

use super::memory::Range;

/// What is wrong with a boot image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The loader passed none, or it lies out of reach.
    Missing(Range),
    /// Fewer bytes than the header needs.
    Short { have: u64, need: u64 },
    /// Another kind of file.
    Magic(u64),
    /// A version that this kernel does not know.
    Version(u64),
    /// The header's total is impossible.
    Total { total: u64, have: u64 },
    /// The records do not fit in the image, or are more than the kernel takes.
    Count { count: u64, limit: u64 },
    /// Damaged on the way.
    Checksum { expected: u64, found: u64 },
    /// A record is wrong in itself.
    Record { index: usize, fault: RecordFault },
    /// Two records claim the same bytes.
    Overlap { first: usize, second: usize },
    /// A server's memory is not free, usable memory.
    Place { server: &'static str, range: Range, obstacle: Obstacle },
    /// There is no σ0.
    NoSigma0,
}

/// What is wrong with one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordFault {
    /// No such kind.
    Kind(u64),
    /// Its bytes are not inside the image, behind the records.
    Outside,
    /// Its bytes must start on a page and do not.
    Unaligned,
    /// It occupies less memory than it has bytes.
    Memory,
    /// It ends beyond the address space.
    Wraps,
    /// Text and data are more than its bytes, or text is not whole pages.
    Sections,
    /// It does not start inside itself.
    Entry(u64),
    /// Its command line is not inside the image or not terminated.
    CommandLine,
}

/// What is in the way of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// The memory map has no usable memory there.
    NotMemory,
    /// It is not below 4 GiB and above 1 MiB.
    OutOfReach,
    /// The kernel is there.
    Kernel,
    /// It would start outside of it.
    Entry(u64),
    /// Another server goes there.
    Server(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Missing(range) if range.is_empty() => f.write_str(
                "the boot loader passed no module; pass the image as the first one (QEMU: -initrd)",
            ),
            Self::Missing(range) => {
                write!(
                    f,
                    "the module at {:#x}..{:#x} cannot be read; it must lie below 4 GiB",
                    range.start, range.end
                )
            }
            Self::Short { have, need } => {
                write!(f, "it has {have} bytes, its header alone needs {need}")
            }
            Self::Magic(found) => {
                write!(
                    f,
                    "it starts with {found:#018x} instead of BATONIMG; pass a file made by the image tool"
                )
            }
            Self::Version(found) => {
                write!(
                    f,
                    "it is of version {found}, this kernel reads version {}; make it again",
                    abi::image::VERSION
                )
            }
            Self::Total { total, have } => {
                write!(
                    f,
                    "its header says {total} bytes, the loader passed {have}; the file may be cut off"
                )
            }
            Self::Count { count, limit } => {
                write!(f, "its header says {count} records, at most {limit} are possible")
            }
            Self::Checksum { expected, found } => {
                write!(
                    f,
                    "its checksum is {found:#x}, its header says {expected:#x}; the file is damaged"
                )
            }
            Self::Record { index, fault } => write!(f, "record {index}: {fault}"),
            Self::Overlap { first, second } => {
                write!(f, "records {first} and {second} share bytes of the image")
            }
            Self::Place { server, range, obstacle } => {
                write!(f, "{server} cannot go to {:#x}..{:#x}: {obstacle}", range.start, range.end)
            }
            Self::NoSigma0 => {
                f.write_str("it holds no sigma0, from which all memory comes; add one")
            }
        }
    }
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Kind(kind) => write!(f, "its kind {kind} does not exist"),
            Self::Outside => f.write_str("its bytes are not inside the image, behind the records"),
            Self::Unaligned => f.write_str("its bytes or its address do not start on a page"),
            Self::Memory => f.write_str("it has more bytes than it takes in memory"),
            Self::Wraps => f.write_str("it ends beyond the addresses that exist"),
            Self::Sections => {
                f.write_str("its text is not whole pages, or text and data are more than its bytes")
            }
            Self::Entry(entry) => write!(f, "its entry point {entry:#x} is not inside it"),
            Self::CommandLine => {
                f.write_str("its command line is not inside the image or lacks its final zero")
            }
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotMemory => f.write_str(
                "the machine has no usable memory there; link it elsewhere or give it more",
            ),
            Self::OutOfReach => f.write_str("it must lie between 1 MiB and 4 GiB; link it there"),
            Self::Kernel => f.write_str("the kernel is there; link it elsewhere"),
            Self::Entry(entry) => write!(f, "its entry point {entry:#x} is not inside"),
            Self::Server(name) => write!(f, "{name} goes there too; link one of them elsewhere"),
        }
    }
}
