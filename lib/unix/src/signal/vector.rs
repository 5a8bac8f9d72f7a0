//! Vector and floating-point state in a handler's frame, in the format that Linux and the
//! C libraries agree on: an XSAVE image whose legacy part says in its spare bytes how long
//! it is, with a magic number before and behind.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;

use zerocopy::IntoBytes;

use crate::call::Cx;
use crate::errno::Errno;
use crate::machine::VECTOR_STATE_MAX;
use crate::thread::Thread;
use crate::unix::Unix;
use crate::user::UserMemory;

/// Bytes of the legacy part, FXSAVE's image.
const LEGACY: usize = 512;
/// Where XSAVE's header (`XSTATE_BV` first) is, and its end.
const HEADER: core::ops::Range<usize> = LEGACY..LEGACY + 64;
/// Where the software's bytes in the legacy part are.
const SOFTWARE: usize = 464;
/// `FP_XSTATE_MAGIC1`: the software's bytes are valid.
const MAGIC1: u32 = 0x4650_5853;
/// `FP_XSTATE_MAGIC2`: behind the image.
const MAGIC2: u32 = 0x4650_5845;
/// x87 and SSE, the features of the legacy part.
const LEGACY_FEATURES: u64 = 3;
/// FCW and MXCSR after a reset by the system: all exceptions masked.
const INITIAL_FCW: u16 = 0x37F;
/// As [`INITIAL_FCW`].
const INITIAL_MXCSR: u32 = 0x1F80;

/// A thread's vector state and its place in a frame.
pub struct State {
    /// Where it will be in the program's memory.
    pub address: u64,
    image: Box<[u8; VECTOR_STATE_MAX]>,
    len: usize,
}

/// Takes the vector state of a thread and places it below `top`.
#[must_use]
pub fn place(unix: &Unix, thread: &Rc<Thread>, top: u64) -> State {
    let mut image = Box::new([0; VECTOR_STATE_MAX]);
    let len = unix.machine.vector_state(thread.machine.get(), &mut image);
    let len = len.clamp(LEGACY, VECTOR_STATE_MAX);
    let mut state = State { address: 0, image, len };
    let size = if state.is_xsave() { len + 4 } else { LEGACY };
    state.address = top.wrapping_sub(size as u64) & !63;
    state
}

impl State {
    /// Whether it is more than the legacy part.
    #[must_use]
    pub fn is_xsave(&self) -> bool {
        self.len >= HEADER.end
    }

    /// The features that an image of this length has room for.
    fn features(&self) -> u64 {
        let stored = u64_at(&self.image[..], HEADER.start);
        LEGACY_FEATURES | stored | if self.len > HEADER.end { 4 } else { 0 }
    }

    /// Writes it to its place.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn save(mut self, user: &UserMemory) -> Result<(), Errno> {
        if !self.is_xsave() {
            return user.write_bytes(self.address, &self.image[..LEGACY]);
        }
        let features = self.features();
        let software =
            [u64::from(MAGIC1) | ((self.len + 4) as u64) << 32, features, self.len as u64, 0, 0, 0];
        self.image[SOFTWARE..LEGACY].copy_from_slice(software.as_bytes());
        let present = u64_at(&self.image[..], HEADER.start) | LEGACY_FEATURES;
        self.image[HEADER.start..HEADER.start + 8].copy_from_slice(&present.to_le_bytes());
        user.write_bytes(self.address, &self.image[..self.len])?;
        user.write(self.address.wrapping_add(self.len as u64), &MAGIC2)
    }
}

/// A thread's vector state as its tracer sees it: XSAVE's image, with the features it has room
/// for in the software's bytes.
#[must_use]
pub fn for_tracer(unix: &Unix, thread: &Rc<Thread>) -> Vec<u8> {
    let mut state = place(unix, thread, 0);
    if state.is_xsave() {
        let features = state.features();
        state.image[SOFTWARE..SOFTWARE + 8].copy_from_slice(&features.to_le_bytes());
    }
    state.image[..state.len].to_vec()
}

/// The length of an image of `len` bytes whose legacy part was set.
pub fn with_legacy(image: &mut [u8; VECTOR_STATE_MAX], len: usize) -> usize {
    image[HEADER.start] |= LEGACY_FEATURES as u8;
    len.clamp(HEADER.end, VECTOR_STATE_MAX)
}

/// An image that a tracer gives, with nothing in its header but the features; none if it is none.
#[must_use]
pub fn checked(from: &[u8]) -> Option<Vec<u8>> {
    let fits = (HEADER.end..=VECTOR_STATE_MAX).contains(&from.len());
    if !fits || from[HEADER.start + 8..HEADER.end].iter().any(|byte| *byte != 0) {
        return None;
    }
    Some(from.to_vec())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// The state a program starts with.
#[must_use]
pub fn initial() -> [u8; HEADER.end] {
    let mut image = [0; HEADER.end];
    image[0..2].copy_from_slice(&INITIAL_FCW.to_le_bytes());
    image[24..28].copy_from_slice(&INITIAL_MXCSR.to_le_bytes());
    image
}

/// Gives a thread the state that a program starts with.
pub fn clear(unix: &Unix, thread: &Rc<Thread>) {
    unix.machine.set_vector_state(thread.machine.get(), &initial());
}

/// Gives the calling thread the state in a frame; 0 is the initial one.
///
/// # Errors
/// `EFAULT`.
pub fn restore(cx: &Cx, address: u64) -> Result<(), Errno> {
    if address == 0 {
        clear(cx.unix, cx.thread);
        return Ok(());
    }
    if !address.is_multiple_of(64) {
        return Err(Errno::EFAULT);
    }
    let mut image = Box::new([0; VECTOR_STATE_MAX]);
    cx.user().read_bytes(address, &mut image[..LEGACY])?;
    let len = match xsave_len(cx, address, &image[..]) {
        Some((len, features)) => {
            cx.user().read_bytes(address, &mut image[..len])?;
            let present = u64_at(&image[..], HEADER.start) & features;
            image[HEADER].fill(0);
            image[HEADER.start..HEADER.start + 8].copy_from_slice(&present.to_le_bytes());
            len
        }
        None => {
            image[HEADER].fill(0);
            image[HEADER.start] = LEGACY_FEATURES as u8;
            HEADER.end
        }
    };
    cx.unix.machine.set_vector_state(cx.thread.machine.get(), &image[..len]);
    Ok(())
}

/// Length and features of the XSAVE image whose legacy part is given; `None` if that is all
/// there is.
fn xsave_len(cx: &Cx, address: u64, legacy: &[u8]) -> Option<(usize, u64)> {
    let first = u64_at(legacy, SOFTWARE);
    let extended = (first >> 32) as usize;
    let features = u64_at(legacy, SOFTWARE + 8);
    let len = u64_at(legacy, SOFTWARE + 16) as u32 as usize;
    let plausible =
        first as u32 == MAGIC1 && (HEADER.end..=VECTOR_STATE_MAX).contains(&len) && len < extended;
    if !plausible {
        return None;
    }
    let behind: u32 = cx.user().read(address.wrapping_add(len as u64)).ok()?;
    (behind == MAGIC2).then_some((len, features))
}
