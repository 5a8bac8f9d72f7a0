//! Memory: frames, quotas, address spaces, the mapping database.
//!
//! Spaces are built recursively by map, grant and flush (Liedtke 1995, 2.1 and
//! Appendix A): a tree of mapping nodes per frame, and the hardware's page
//! tables as the cache of it. Everything here runs with interrupts off on one
//! processor. Nothing is allocated after boot but frames that the quota of the
//! space concerned pays for. Long operations are jobs with bounded steps; a job
//! that was begun must be stepped to its end or abandoned. Whoever begins one lends
//! it a marker (`marker.rs`), which keeps its place between two steps.

pub(crate) mod budget;
pub mod check;
pub mod destroy;
pub mod find;
pub mod frames;
pub mod grant;
pub mod io;
pub mod io_flush;
pub mod io_map;
pub mod lookup;
pub mod map;
pub mod marker;
pub mod node;
pub mod piece;
pub mod quiesce;
pub mod quota;
pub(crate) mod release;
pub mod reserved;
pub mod revoke;
pub mod sigma0;
pub mod slab;
pub mod small;
pub mod space;
pub(crate) mod split;
pub mod table;
pub mod trees;
pub mod unmap_job;
pub mod walk;
pub mod window;

pub use crate::arch::mem::root::RootWord;
pub use crate::arch::mem::{ports, root, tlb};
pub use crate::arch::paging::Access;
pub use destroy::DestroyJob;
pub use frames::PhysFrame;
pub use lookup::{Resolved, Span};
pub use map::MapJob;
pub use marker::{Marker, MarkerRef};
pub use quota::{NoMemory, Quota};
pub use revoke::Scope;
pub use sigma0::{sigma0_fault, sigma0_open_ports};
pub use small::{OnePage, map_one_page};
pub use space::{AddressSpace, Owned, SpaceRef};
pub use unmap_job::UnmapJob;

use crate::arch::global::global;
use core::cell::Cell;

/// What a step of a job came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a job must be stepped to its end"]
pub enum Step {
    /// The job is finished.
    Done,
    /// To be called again, after letting interrupts in.
    More,
}

/// What a step of a job may spend: it keeps a step below about 900 instructions, so that
/// together with the handling of an interrupt before it it stays below 2,000. One unit is
/// about sixteen. The dearest single action, splitting a large page, costs some 2,700 and
/// lets interrupts in itself.
pub const STEP_BUDGET: u32 = 32;

/// What an action costs, in budget units.
pub(crate) mod cost {
    pub const LOOK: u32 = 10;
    /// More for a page that is large or part of one.
    pub const LARGE: u32 = 12;
    pub const VISIT: u32 = 4;
    pub const REMOVE: u32 = 30;
    /// Mapping a 4 KiB page in the usual case.
    pub const PAGE: u32 = 6;
    /// Looking at a 4 KiB page in the usual case.
    pub const SMALL: u32 = 3;
    /// Removing a 4 KiB page in the usual case.
    pub const CHILD: u32 = 10;
    /// Mapping any other page.
    pub const MAP: u32 = 26;
    /// Making a page of σ0, with its node and tables.
    pub const ROOT: u32 = 50;
    pub const SPLIT: u32 = 96;

    // Or a walk could find its step used up each time, and never get on.
    const _: () = assert!(LOOK + LARGE + VISIT < super::STEP_BUDGET && REMOVE < super::STEP_BUDGET);
}

/// The largest page that is used. One constant switches large pages off.
pub const LARGEST_LEVEL: u32 = crate::arch::paging::HUGE;

/// All global state of the memory module.
pub struct Globals {
    pub(crate) frames: frames::Frames,
    pub(crate) layout: reserved::Layout,
    pub(crate) sigma0: Cell<Option<SpaceRef>>,
    pub(crate) huge_pages: Cell<bool>,
}

impl Globals {
    /// Nothing known yet; boot tells.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            frames: frames::Frames::new(),
            layout: reserved::Layout::new(),
            sigma0: Cell::new(None),
            huge_pages: Cell::new(false),
        }
    }
}

impl Default for Globals {
    fn default() -> Self {
        Self::new()
    }
}

global! {
    /// The state of this machine.
    pub(crate) fn state() -> Globals = Globals::new();
}

/// Says that the processor has 1 GiB pages (CPUID 8000_0001h, EDX bit 26).
pub fn enable_huge_pages() {
    state().huge_pages.set(true);
}
