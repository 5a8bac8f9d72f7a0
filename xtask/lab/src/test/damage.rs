//! Boot images with something wrong in them: what the kernel says about them is tested.

use std::path::Path;

use abi::image::{HEADER_WORDS, RECORD_WORDS, checksum};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Header word that holds the checksum.
const CHECKSUM: usize = 4;

/// One word of the image that is overwritten.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Damage {
    /// In this record; without it, in the header.
    pub record: Option<usize>,
    /// Which word.
    pub word: usize,
    /// What it becomes.
    pub value: u64,
}

impl Damage {
    /// Index of the word in the image.
    fn index(self) -> usize {
        self.record.map_or(0, |record| HEADER_WORDS + record * RECORD_WORDS) + self.word
    }
}

/// Damages the image in `file` and makes its checksum right again, unless that is what is
/// damaged; of the result, `cut` bytes are left.
///
/// # Errors
/// When the image cannot be read or written, or does not have such a word.
pub fn apply(file: &Path, damage: &[Damage], cut: Option<usize>) -> Result<()> {
    let context = || format!("cannot damage {}", file.display());
    let mut bytes = std::fs::read(file).with_context(context)?;
    damaged(&mut bytes, damage).with_context(context)?;
    bytes.truncate(cut.unwrap_or(usize::MAX));
    std::fs::write(file, &bytes).with_context(context)
}

fn damaged(bytes: &mut [u8], damage: &[Damage]) -> Result<()> {
    for damage in damage {
        put(bytes, damage.index(), damage.value)?;
    }
    if damage.iter().all(|damage| damage.index() != CHECKSUM) {
        let (words, _) = bytes.as_chunks::<8>();
        let behind_header = words.iter().skip(HEADER_WORDS);
        let sum = checksum(behind_header.map(|word| u64::from_le_bytes(*word)));
        put(bytes, CHECKSUM, sum)?;
    }
    Ok(())
}

fn put(bytes: &mut [u8], index: usize, value: u64) -> Result<()> {
    let (words, _) = bytes.as_chunks_mut::<8>();
    let count = words.len();
    ensure!(index < count, "it has no word {index}, but only {count}");
    words[index] = value.to_le_bytes();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_fits_unless_it_is_damaged() {
        let word = |bytes: &[u8], at: usize| bytes.as_chunks::<8>().0[at];
        let mut bytes = vec![0; (HEADER_WORDS + RECORD_WORDS) * 8];
        let kind = Damage { record: Some(0), word: 1, value: 9 };
        damaged(&mut bytes, &[kind]).unwrap();
        assert_eq!(word(&bytes, HEADER_WORDS + 1), 9u64.to_le_bytes());
        let words = bytes.as_chunks::<8>().0[HEADER_WORDS..].iter();
        let sum = checksum(words.map(|word| u64::from_le_bytes(*word)));
        assert_eq!(word(&bytes, CHECKSUM), sum.to_le_bytes());
        let sum = Damage { record: None, word: CHECKSUM, value: 1 };
        damaged(&mut bytes, &[sum]).unwrap();
        assert_eq!(word(&bytes, CHECKSUM), 1u64.to_le_bytes());
        assert!(damaged(&mut bytes, &[Damage { record: Some(1), word: 0, value: 0 }]).is_err());
    }
}
