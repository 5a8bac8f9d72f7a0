//! The vDSO: code that programs call for the time without calling the system. One page of
//! code (`vdso/vdso.S`, assembled at build time) and one of data behind it, the same
//! frames for everybody.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::{OnceCell, RefCell};

use linux_raw_sys::general as linux;

use super::placement::Placement;
use crate::errno::Errno;
use crate::machine::Access;
use crate::memory::Frame;
use crate::mm::area::{Area, AreaFlags, Backing};
use crate::mm::{AddressSpace, PAGE, USER_END};
use crate::process::clocks::Offsets;
use crate::time::clock::boot_time_ns;
use crate::unix::Unix;

/// The shared object: its first page is all that is loaded.
static CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vdso.so"));

const _: () = assert!(CODE.len() <= PAGE as usize, "the vDSO's code is one page");

/// Where the data page has the number of processors; the time stamp counter's base and scale are before it.
pub const PROCESSORS: usize = 16;
/// Where it has what clocks showed at boot, by their numbers.
const AT_BOOT: usize = 24;
/// Those of them that count from 1970.
const REAL_CLOCKS: [u32; 3] =
    [linux::CLOCK_REALTIME, linux::CLOCK_REALTIME_COARSE, linux::CLOCK_TAI];

/// Those that count from boot by one offset.
const MONOTONIC_CLOCKS: [u32; 3] =
    [linux::CLOCK_MONOTONIC, linux::CLOCK_MONOTONIC_RAW, linux::CLOCK_MONOTONIC_COARSE];

/// Where it has what a clock showed at boot.
const fn at_boot(clock: u32) -> usize {
    AT_BOOT + clock as usize * 8
}

/// What `/proc/PID/maps` calls the page of data.
const DATA_NAME: &str = "[vvar]";

/// Bytes of both pages.
const BYTES: u64 = 2 * PAGE;
/// What one page table covers.
const TABLE: u64 = 2 << 20;

/// The frames, once a program has needed them.
#[derive(Default)]
pub struct Vdso {
    frames: OnceCell<[Rc<Frame>; 2]>,
    /// The pages of data of namespaces, by their numbers.
    others: Rc<Others>,
}

type Others = RefCell<BTreeMap<u64, Rc<Frame>>>;

/// The page of data of a namespace of clocks, as long as that is there.
pub struct Data {
    number: u64,
    frame: Rc<Frame>,
    others: Rc<Others>,
}

impl Data {
    /// Clocks are put forward by so much.
    pub fn set_offsets(&self, offsets: Offsets) {
        let set = |clock: u32, ns: i64| self.frame.set_word(at_boot(clock), ns as u64);
        MONOTONIC_CLOCKS.iter().for_each(|clock| set(*clock, offsets.monotonic));
        set(linux::CLOCK_BOOTTIME, offsets.boot);
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let own = self.others.borrow_mut().remove(&self.number);
        drop(own);
    }
}

impl Vdso {
    /// Code and data.
    fn frames(&self, unix: &Unix) -> Result<&[Rc<Frame>; 2], Errno> {
        if let Some(frames) = self.frames.get() {
            return Ok(frames);
        }
        let frame = || Frame::new(&unix.memory).map(Rc::new).ok_or(Errno::ENOMEM);
        let (code, data) = (frame()?, frame()?);
        unix.memory.write(code.id(), 0, CODE);
        fill(unix, &data);
        Ok(self.frames.get_or_init(|| [code, data]))
    }

    /// A page of data for the namespace of clocks `number`, none of which is put forward yet.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new_data(&self, unix: &Unix, number: u64) -> Result<Data, Errno> {
        let frame = Rc::new(Frame::new(&unix.memory).ok_or(Errno::ENOMEM)?);
        fill(unix, &frame);
        self.others.borrow_mut().insert(number, frame.clone());
        Ok(Data { number, frame, others: self.others.clone() })
    }

    /// What programs are told of the time at boot, in nanoseconds since 1970.
    #[must_use]
    pub fn boot_time(&self, unix: &Unix) -> Option<u64> {
        self.word(unix, at_boot(linux::CLOCK_REALTIME))
    }

    /// A word of the data page.
    #[must_use]
    pub fn word(&self, unix: &Unix, at: usize) -> Option<u64> {
        let [_, data] = self.frames(unix).ok()?;
        Some(data.word(at))
    }

    /// The clock was set.
    pub fn set_boot_time(&self, unix: &Unix) {
        if let Some([_, data]) = self.frames.get() {
            tell_boot_time(unix, data);
        }
        self.others.borrow().values().for_each(|data| tell_boot_time(unix, data));
    }
}

/// Writes all that a data page says.
fn fill(unix: &Unix, data: &Frame) {
    let (base, scale) = unix.machine.tsc_scale();
    let words = [base, scale, unix.machine.processors().into()];
    words.iter().enumerate().for_each(|(at, word)| data.set_word(at * 8, *word));
    tell_boot_time(unix, data);
}

fn tell_boot_time(unix: &Unix, data: &Frame) {
    let boot_ns = boot_time_ns(unix);
    REAL_CLOCKS.iter().for_each(|clock| data.set_word(at_boot(*clock), boot_ns));
}

/// Maps it into `space`, with a namespace's page of data if it has one; where its ELF header is.
///
/// # Errors
/// `ENOMEM`.
pub fn map(
    unix: &Unix,
    space: &AddressSpace,
    placement: Placement,
    data: Option<&Data>,
) -> Result<u64, Errno> {
    let [code, most] = unix.mm.vdso.frames(unix)?;
    let data = data.map_or(most, |data| &data.frame);
    let start = above_stack(unix, placement).or_else(|| space.free_range(BYTES, None, false));
    let start = start.ok_or(Errno::ENOMEM)?;
    let parts = [
        (start, "[vdso]", Access::READ | Access::EXECUTE, code),
        (start + PAGE, DATA_NAME, Access::READ, data),
    ];
    for (start, name, access, frame) in parts {
        space.add_area(Area {
            start,
            end: start + PAGE,
            access,
            may: Access::all(),
            flags: AreaFlags::SPECIAL,
            backing: Backing::Special(name, frame.clone()),
            offset: 0,
        });
    }
    Ok(start)
}

/// The programs of `space` read the time from this page of data from now on; none is what most do.
pub fn exchange_data(unix: &Unix, space: &AddressSpace, data: Option<&Data>) {
    // Where there are no frames yet, nobody has mapped them.
    if let Some([_, most]) = unix.mm.vdso.frames.get() {
        space.exchange_special(unix, DATA_NAME, data.map_or(most, |data| &data.frame));
    }
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
