//! Where things are in an ordinary task's address space. The pager's policy
//! (`lib/paging`) uses the same constants, from `proto::layout`.

pub use proto::layout::*;

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
    static __text_end: u8;
}

/// The program's own image: first byte and one past the last.
#[must_use]
pub fn image() -> (u64, u64) {
    (&raw const __image_start as u64, &raw const __image_end as u64)
}

/// One past the last byte of the read-only part of the image.
#[must_use]
pub fn text_end() -> u64 {
    &raw const __text_end as u64
}
