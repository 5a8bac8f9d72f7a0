//! A visitor that is to stand still, in every order of both processors' steps, as far as the memory model lets
//! them be seen.

use crate::common::modelled::{EXCHANGES, LOADS, Modelled, Without, bites, explore};
use kernel::between::Word;
use kernel::between::berth::{Berth, Call, Stand};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

const VISITOR: u64 = 64;

/// A visitor whose processor uses tables that its owner changes.
struct User<W: Word = Modelled> {
    berth: Berth<W>,
    tables: UnsafeCell<u64>,
}

impl<W: Word> User<W> {
    fn is_there() -> Arc<Self> {
        let user = Self { berth: Berth::with_word(), tables: UnsafeCell::new(0) };
        let _ = user.berth.offer(VISITOR);
        assert_eq!(user.berth.accept(), Some(VISITOR));
        Arc::new(user)
    }

    /// The visitor runs for a moment `times`, and stops where it is to; then it comes back.
    fn runs(&self, times: u64) -> u64 {
        let mut seen = 0;
        'running: for _ in 0..times {
            // SAFETY: whoever changes them has seen it stand still; the model checks that.
            self.tables.with_mut(|tables| unsafe {
                *tables |= 1;
                seen = *tables >> 1;
            });
            loop {
                match self.berth.stand() {
                    Stand::Still => thread::yield_now(),
                    Stand::GoesOn => break,
                    Stand::IsCalled => break 'running,
                }
            }
        }
        let _ = self.berth.give_back();
        seen
    }

    /// The owner changes the tables, if the visitor stands still.
    fn change(&self) -> bool {
        let stops = self.berth.stop();
        if stops {
            while !self.berth.stands_still() {
                thread::yield_now();
            }
            // SAFETY: as above.
            self.tables.with_mut(|tables| unsafe { *tables += 2 });
        }
        stops
    }
}

/// A visitor that runs while its tables change twice.
fn tables_change<W: Word + Send + Sync + 'static>() {
    let user = User::<W>::is_there();
    let other = {
        let user = Arc::clone(&user);
        thread::spawn(move || user.runs(2))
    };
    for _ in 0..2 {
        if user.change() {
            let _ = user.berth.go_on();
        }
    }
    assert!(other.join().unwrap() <= 2);
    assert!(user.berth.fetch() && user.berth.call_back() == Call::Empty);
}

/// Tables change only while the visitor stands still, or has come back; then it goes on, and uses the new ones.
#[test]
fn tables_change_under_nobody() {
    explore(4, tables_change::<Modelled>);
}

/// One word is enough, without a fence: neither side goes on by what it does not find, but by an answer. The model finds
/// it if the orders of questions or of answers are missing.
#[test]
fn each_order_of_a_stop_is_needed() {
    assert!(bites(4, tables_change::<Without<LOADS>>));
    assert!(bites(4, tables_change::<Without<EXCHANGES>>));
}

/// Who stands still, or is about to, comes back if it is called.
#[test]
fn who_stands_still_comes_back() {
    explore(4, || {
        let user = User::<Modelled>::is_there();
        let other = {
            let user = Arc::clone(&user);
            thread::spawn(move || user.runs(2))
        };
        let _ = user.change();
        assert_ne!(user.berth.call_back(), Call::Empty);
        while !user.berth.fetch() {
            thread::yield_now();
        }
        // SAFETY: nobody is there; the model checks that.
        user.tables.with_mut(|tables| unsafe { *tables += 2 });
        assert_eq!(
            other.join().unwrap(),
            0,
            "what has changed since it stood still it has not used"
        );
    });
}
