//! One line, many senders: each has a queue of its own, and they take turns.
//!
//! A turn ends between two lines once it is long enough, so that lines, and messages of a few
//! of them, stay whole; a sender that ends no line loses its turn in the middle of it. Nobody
//! waits for more than a turn of each other sender, and who fills a queue fills its own.

use crate::Ring;

/// Bytes after which a turn ends at the next line's end: what one message of text carries.
pub const TURN: usize = 480;
/// Bytes after which a turn ends in any case.
pub const LONGEST_TURN: usize = 1024;

/// Queues of `ROOM` bytes for `SENDERS` senders.
pub struct Fair<const SENDERS: usize, const ROOM: usize> {
    queues: [Ring<ROOM>; SENDERS],
    /// Whose turn it is, and how many bytes of it are over.
    turn: usize,
    sent: usize,
    queued: usize,
}

impl<const SENDERS: usize, const ROOM: usize> Default for Fair<SENDERS, ROOM> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SENDERS: usize, const ROOM: usize> Fair<SENDERS, ROOM> {
    /// Empty queues.
    #[must_use]
    pub const fn new() -> Self {
        Self { queues: [const { Ring::new() }; SENDERS], turn: 0, sent: 0, queued: 0 }
    }

    /// Whether nobody has anything to send.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Bytes that `who` still has to send.
    #[must_use]
    pub fn len(&self, who: usize) -> usize {
        self.queues.get(who).map_or(0, Ring::len)
    }

    /// Bytes that `who` can still queue.
    #[must_use]
    pub fn room(&self, who: usize) -> usize {
        self.queues.get(who).map_or(0, Ring::room)
    }

    /// Queues a byte of `who`; false if there is no room.
    #[must_use]
    pub fn put(&mut self, who: usize, byte: u8) -> bool {
        let done = self.queues.get_mut(who).is_some_and(|queue| queue.put(byte));
        self.queued += usize::from(done);
        done
    }

    /// The next byte to send, and whose it is.
    pub fn take(&mut self) -> Option<(usize, u8)> {
        if self.queued == 0 {
            return None;
        }
        while self.queues[self.turn].is_empty() {
            self.pass_on();
        }
        let who = self.turn;
        let byte = self.queues[who].take()?;
        self.queued -= 1;
        self.sent += 1;
        if self.sent >= LONGEST_TURN || self.sent >= TURN && byte == b'\n' {
            self.pass_on();
        }
        Some((who, byte))
    }

    /// The next bytes of one sender, of one turn, into `piece`: whose they are, and how many.
    pub fn take_piece(&mut self, piece: &mut [u8]) -> Option<(usize, usize)> {
        let (who, byte) = self.take()?;
        *piece.first_mut()? = byte;
        let mut len = 1;
        while len < piece.len() && self.turn == who && !self.queues[who].is_empty() {
            piece[len] = self.take()?.1;
            len += 1;
        }
        Some((who, len))
    }

    fn pass_on(&mut self) {
        self.turn = (self.turn + 1) % SENDERS;
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::vec::Vec;

    type Queues = Fair<3, 8192>;

    fn queue(queues: &mut Queues, who: usize, text: &[u8]) {
        assert!(text.iter().all(|byte| queues.put(who, *byte)));
    }

    fn senders(queues: &mut Queues) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        while let Some((who, _)) = queues.take() {
            match runs.last_mut() {
                Some((last, count)) if *last == who => *count += 1,
                _ => runs.push((who, 1)),
            }
        }
        runs
    }

    #[test]
    fn lines_stay_whole_and_turns_are_short() {
        let mut queues = Queues::new();
        (0..100).for_each(|_| queue(&mut queues, 0, &[&[b'x'; 49][..], b"\n"].concat()));
        queue(&mut queues, 2, b"a line\n");
        assert_eq!(senders(&mut queues)[..2], [(0, 500), (2, 7)]);
        assert!(queues.is_empty());
    }

    #[test]
    fn who_ends_no_line_loses_its_turn() {
        let mut queues = Queues::new();
        queue(&mut queues, 1, &[b'x'; 8192]);
        assert!(!queues.put(1, b'x') && queues.room(0) == 8192, "it fills its own queue");
        queue(&mut queues, 0, b"one\n");
        queue(&mut queues, 2, b"two\n");
        assert_eq!(senders(&mut queues)[..4], [(0, 4), (1, 1024), (2, 4), (1, 7168)]);
    }

    #[test]
    fn a_piece_is_one_senders() {
        let mut queues = Queues::new();
        queue(&mut queues, 0, b"one\n");
        queue(&mut queues, 1, &b"1234567\n".repeat(61));
        let mut piece = [0; 300];
        assert_eq!(queues.take_piece(&mut piece), Some((0, 4)));
        assert_eq!(queues.take_piece(&mut piece), Some((1, 300)));
        assert_eq!(queues.take_piece(&mut piece), Some((1, 180)), "the end of the turn");
        assert_eq!(queues.take_piece(&mut piece), Some((1, 8)));
        assert_eq!(queues.take_piece(&mut piece), None);
    }

    #[test]
    fn a_message_of_lines_is_one_turn() {
        let mut queues = Queues::new();
        queue(&mut queues, 0, &b"1234567\n".repeat(60));
        queue(&mut queues, 1, b"else\n");
        assert_eq!(senders(&mut queues), [(0, 480), (1, 5)]);
        assert!(!queues.put(3, b'x'), "no such sender");
    }
}
