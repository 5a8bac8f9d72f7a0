//! Programs: ELF files (static, static-PIE, dynamic with interpreter) and `#!` scripts,
//! their first stack, the vDSO.

use crate::call::Entry;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];
