//! Terminals: the line discipline, the console, pseudo-terminals.

use crate::call::Entry;
use crate::unix::Unix;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];

/// All terminals.
#[derive(Default)]
pub struct Terminals {}

impl Terminals {
    /// Bytes from the console's keyboard.
    pub fn console_input(&self, unix: &Unix, bytes: &[u8]) {
        let _ = (unix, bytes);
    }

    /// Does what the closing of files has left to be done: hang-ups.
    pub fn settle(&self, unix: &Unix) {
        let _ = unix;
    }
}

/// The leader of a session has ended: its terminal, if it has one, is hung up.
pub fn session_ended(unix: &Unix, session: u32) {
    let _ = (unix, session);
}
