//! The bootinfo's records, as the root task reads them.

use bootcfg::{LINE_BYTES, records};

/// Reads the bytes as the words of a bootinfo; behind them everything is zero.
pub fn bootinfo(bytes: &[u8]) -> bool {
    let words = bytes.as_chunks::<8>().0;
    let read = |at: u64| {
        assert_eq!(at % 8, 0, "only whole words are read");
        words.get((at / 8) as usize).map_or(0, |word| u64::from_le_bytes(*word))
    };
    let size = read(16);
    let result = records(
        |at| {
            assert!(at < 64 || at < size, "word at {at:#x} of {size:#x} bytes");
            read(at)
        },
        |record| assert!(record.line().len() <= LINE_BYTES),
    );
    result.is_ok()
}
