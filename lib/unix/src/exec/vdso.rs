//! The vDSO: code that programs call for the time without calling the system. One page of
//! code (`vdso/vdso.S`, assembled at build time) and one of data behind it, the same
//! frames for everybody.

use alloc::rc::Rc;
use core::cell::OnceCell;

use super::placement::Placement;
use crate::errno::Errno;
use crate::machine::Access;
use crate::memory::FrameId;
use crate::mm::area::{Area, AreaFlags, Backing};
use crate::mm::{AddressSpace, PAGE, USER_END};
use crate::unix::Unix;

/// The shared object: its first page is all that is loaded.
static CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vdso.so"));

const _: () = assert!(CODE.len() <= PAGE as usize, "the vDSO's code is one page");

/// Where the data page has the time at boot; the time stamp counter's base and scale are
/// before it.
const BOOT_TIME: usize = 16;
/// Where it has the number of processors.
pub const PROCESSORS: usize = 24;

/// Bytes of both pages.
const BYTES: u64 = 2 * PAGE;
/// What one page table covers.
const TABLE: u64 = 2 << 20;

/// The frames, once a program has needed them.
#[derive(Default)]
pub struct Vdso {
    frames: OnceCell<(FrameId, FrameId)>,
}

impl Vdso {
    /// Code and data.
    fn frames(&self, unix: &Unix) -> Result<(FrameId, FrameId), Errno> {
        if let Some(frames) = self.frames.get() {
            return Ok(*frames);
        }
        let code = unix.memory.allocate_zeroed().ok_or(Errno::ENOMEM)?;
        let Some(data) = unix.memory.allocate_zeroed() else {
            unix.memory.release(code);
            return Err(Errno::ENOMEM);
        };
        unix.memory.write(code, 0, CODE);
        let (base, scale) = unix.machine.tsc_scale();
        let boot = unix.machine.boot_time_ns();
        let processors = unix.machine.processors().into();
        for (at, word) in [(0, base), (8, scale), (BOOT_TIME, boot), (PROCESSORS, processors)] {
            unix.memory.write(data, at, &word.to_le_bytes());
        }
        Ok(*self.frames.get_or_init(|| (code, data)))
    }

    /// What programs are told of the time at boot, in nanoseconds since 1970.
    #[must_use]
    pub fn boot_time(&self, unix: &Unix) -> Option<u64> {
        self.word(unix, BOOT_TIME)
    }

    /// A word of the data page.
    #[must_use]
    pub fn word(&self, unix: &Unix, at: usize) -> Option<u64> {
        let (_, data) = self.frames(unix).ok()?;
        let mut bytes = [0; 8];
        unix.memory.read(data, at, &mut bytes);
        Some(u64::from_le_bytes(bytes))
    }

    /// The clock was set: this many nanoseconds since 1970 at boot.
    pub fn set_boot_time(&self, unix: &Unix, boot_ns: u64) {
        if let Ok((_, data)) = self.frames(unix) {
            unix.memory.write(data, BOOT_TIME, &boot_ns.to_le_bytes());
        }
    }
}

/// Maps it into `space`; where its ELF header is.
///
/// # Errors
/// `ENOMEM`.
pub fn map(unix: &Unix, space: &Rc<AddressSpace>, placement: Placement) -> Result<u64, Errno> {
    let (code, data) = unix.mm.vdso.frames(unix)?;
    let start = above_stack(unix, placement).or_else(|| space.free_range(BYTES, None, false));
    let start = start.ok_or(Errno::ENOMEM)?;
    let parts = [
        (start, "[vdso]", Access::READ | Access::EXECUTE, code),
        (start + PAGE, "[vvar]", Access::READ, data),
    ];
    for (start, name, access, frame) in parts {
        space.add_area(Area {
            start,
            end: start + PAGE,
            access,
            may: Access::all(),
            flags: AreaFlags::SPECIAL,
            backing: Backing::Special(name, Rc::new([frame])),
            offset: 0,
        });
    }
    Ok(start)
}

/// A random place above the end of the stack, as on Linux, if there is room: as near as not to need page
/// tables of its own.
fn above_stack(unix: &Unix, placement: Placement) -> Option<u64> {
    let first = placement.stack_end();
    let end = (first + BYTES).next_multiple_of(TABLE).min(USER_END);
    let last = end.checked_sub(BYTES).filter(|last| *last >= first)?;
    let mut bytes = [0; 8];
    unix.machine.random(&mut bytes);
    // Above a stack that is as high as can be there is room only here.
    Some(last - u64::from_le_bytes(bytes) % ((last - first) / PAGE + 1) * PAGE)
}
