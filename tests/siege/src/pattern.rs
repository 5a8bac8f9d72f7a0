//! What messages and pages hold: words that follow from a number, so that whoever reads
//! them can tell whether they are whole.

/// Word `index` of what has the number `number`.
#[must_use]
pub const fn word(number: u64, index: u64) -> u64 {
    let mut word = number ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

/// Fills `bytes` with the words of `number`.
pub fn fill(bytes: &mut [u8], number: u64) {
    for (index, chunk) in (0..).zip(bytes.chunks_mut(8)) {
        chunk.copy_from_slice(&word(number, index).to_le_bytes()[..chunk.len()]);
    }
}

/// Whether `bytes` are the words of `number`.
#[must_use]
pub fn fits(bytes: &[u8], number: u64) -> bool {
    (0..)
        .zip(bytes.chunks(8))
        .all(|(index, chunk)| *chunk == word(number, index).to_le_bytes()[..chunk.len()])
}
