//! The notes, with no messages in sight: who pinned what.

use alloc::string::String;
use alloc::vec::Vec;

use crate::own_service::Trouble;

/// Notes of one task: what one client uses up is its own.
const EACH: usize = 4;

/// A note and the number of the task that pinned it.
#[derive(Debug)]
struct Note {
    owner: u32,
    text: String,
}

/// The board: a place for each number; one that is free is used again.
#[derive(Debug, Default)]
pub struct Board {
    places: Vec<Option<Note>>,
}

impl Board {
    /// Pins `text` for the task `owner`; the note's number.
    ///
    /// # Errors
    /// When the task has as many as one may have.
    pub fn pin(&mut self, owner: u32, text: &str) -> Result<u32, Trouble> {
        let owned = self.places.iter().flatten().filter(|note| note.owner == owner).count();
        if owned >= EACH {
            return Err(Trouble::TooMany);
        }
        let number = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        if number == self.places.len() {
            self.places.push(None);
        }
        self.places[number] = Some(Note { owner, text: text.into() });
        Ok(number as u32)
    }

    /// What the note says.
    ///
    /// # Errors
    /// When there is none of that number.
    pub fn read(&self, number: u32) -> Result<&str, Trouble> {
        let place = self.places.get(number as usize).and_then(Option::as_ref);
        Ok(&place.ok_or(Trouble::NoNote)?.text)
    }

    /// Takes down a note that the task `owner` has pinned.
    ///
    /// # Errors
    /// When it has pinned none of that number.
    pub fn take_down(&mut self, owner: u32, number: u32) -> Result<(), Trouble> {
        let place = self.places.get_mut(number as usize).ok_or(Trouble::NoNote)?;
        place.take_if(|note| note.owner == owner).map(|_| ()).ok_or(Trouble::NoNote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_can_be_read_by_all_and_taken_down_by_its_owner() {
        let mut board = Board::default();
        assert_eq!(board.pin(1, "milk"), Ok(0));
        assert_eq!(board.pin(2, ""), Ok(1));
        assert_eq!((board.read(0), board.read(1)), (Ok("milk"), Ok("")));
        assert_eq!(board.take_down(2, 0), Err(Trouble::NoNote));
        assert_eq!(board.take_down(1, 0), Ok(()));
        assert_eq!((board.read(0), board.read(7)), (Err(Trouble::NoNote), Err(Trouble::NoNote)));
        assert_eq!(board.pin(3, "bread"), Ok(0), "the place is used again");
    }

    #[test]
    fn who_pins_too_much_is_alone_with_it() {
        let mut board = Board::default();
        for _ in 0..EACH {
            assert!(board.pin(1, "again").is_ok());
        }
        assert_eq!(board.pin(1, "again"), Err(Trouble::TooMany));
        assert!(board.pin(2, "mine").is_ok());
    }
}
