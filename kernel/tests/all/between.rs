//! The berth in every order of several processors' steps, as far as the memory model lets
//! them be seen.

use std::sync::atomic::Ordering;

use crate::common::modelled::{Modelled, explore};
use kernel::between::berth::{Berth, Call, OtherSide};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

/// A visitor as whoever it belongs to now has it.
struct Visitor {
    berth: Berth<Modelled>,
    registers: UnsafeCell<u64>,
}

const VISITOR: u64 = 64;

impl Visitor {
    /// Its owner changes the registers; what was there.
    fn at_home(&self) -> u64 {
        // SAFETY: it is its owner's until it is offered, and when it is back; the model checks that.
        self.registers.with_mut(|registers| unsafe {
            *registers += 100;
            *registers - 100
        })
    }

    /// The other processor looks `times`, and runs whoever may come, for a moment.
    fn elsewhere(&self, times: u64) {
        for _ in 0..times {
            if let Some(name) = self.berth.accept() {
                assert_eq!((name, self.berth.visitor()), (VISITOR, VISITOR));
                // SAFETY: accepted, and not given back; the model checks that.
                self.registers.with_mut(|registers| unsafe { *registers += 1 });
                let _ = self.berth.give_back();
            }
        }
    }
}

/// The owner offers a thread and calls it back at any time, twice if it had not come: it has it
/// back with everything that was done to it, and nobody else has it then.
#[test]
fn a_visitor_is_one_processors_at_a_time() {
    explore(4, || {
        let (berth, registers) = (Berth::with_word(), UnsafeCell::new(0));
        let visitor = Arc::new(Visitor { berth, registers });
        let mut other = {
            let visitor = Arc::clone(&visitor);
            Some(thread::spawn(move || visitor.elsewhere(2)))
        };
        for round in 0..2 {
            let _ = visitor.berth.offer(VISITOR);
            match visitor.berth.call_back() {
                Call::NotCome => assert_eq!(visitor.at_home(), 100 * round),
                Call::Empty => panic!("it was offered, and nobody else fetches it"),
                Call::Here | Call::Returned => {
                    if !visitor.berth.fetch() {
                        // It comes back without being asked again.
                        other.take().map(|other| other.join().unwrap());
                        assert!(visitor.berth.fetch(), "it has not come back");
                    }
                    assert_eq!(visitor.at_home(), 100 * round + 1);
                    break;
                }
            }
            assert_eq!(visitor.berth.call_back(), Call::Empty);
        }
        if let Some(other) = other {
            other.join().unwrap();
        }
    });
}

/// A berth between a processor that has just given somebody back and the first one; how often each has
/// been interrupted.
struct Pair {
    berth: Berth<Modelled>,
    there: AtomicU64,
    here: AtomicU64,
    registers: UnsafeCell<u64>,
}

impl Pair {
    /// Somebody is there.
    fn visited() -> Arc<Self> {
        let pair = Self {
            berth: Berth::with_word(),
            there: AtomicU64::new(0),
            here: AtomicU64::new(0),
            registers: UnsafeCell::new(0),
        };
        assert_eq!(pair.berth.offer(VISITOR), OtherSide::IsAway);
        assert_eq!(pair.berth.accept(), Some(VISITOR));
        Arc::new(pair)
    }

    /// Gives back who is there, and has run.
    fn give_back(&self) {
        // SAFETY: it is there; the model checks that.
        self.registers.with_mut(|registers| unsafe { *registers += 1 });
        if self.berth.give_back() == OtherSide::IsAway {
            self.here.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Offers somebody.
    fn offer(&self) {
        if self.berth.offer(VISITOR) == OtherSide::IsAway {
            self.there.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The first processor offers somebody while the other looks, or just does not any more: it has seen the
/// visitor, or is interrupted, and never both for nothing.
#[test]
fn who_is_offered_is_seen_or_interrupts() {
    explore(4, || {
        let pair = Pair::visited();
        pair.give_back();
        assert!(pair.berth.fetch());
        let other = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || {
                let sees = pair.berth.is_offered() || !pair.berth.leave();
                if sees {
                    assert_eq!(pair.berth.accept(), Some(VISITOR), "nobody takes it back");
                }
                sees
            })
        };
        pair.offer();
        let sees = other.join().unwrap();
        assert_eq!(pair.there.load(Ordering::Relaxed), u64::from(!sees));
    });
}

/// The first processor looks for somebody who comes back, or just does not any more: it has seen it, or is
/// interrupted.
#[test]
fn who_comes_back_is_seen_or_interrupts() {
    explore(4, || {
        let pair = Pair::visited();
        pair.berth.watch();
        let other = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.give_back())
        };
        let sees = pair.berth.has_returned();
        let sees = pair.berth.look_away() || sees;
        other.join().unwrap();
        assert!(pair.berth.fetch());
        assert_eq!(pair.here.load(Ordering::Relaxed), u64::from(!sees));
    });
}

/// The same if it fetches with the look after which it looks no longer: it has whoever has come back, or is
/// interrupted for it, and both see the other's look as it is.
#[test]
fn who_comes_back_is_fetched_or_interrupts() {
    explore(4, || {
        let pair = Pair::visited();
        pair.berth.watch();
        let other = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.give_back())
        };
        let has = pair.berth.fetch_or_look_away();
        if has {
            // SAFETY: it has been fetched; the model checks that.
            assert_eq!(pair.registers.with(|registers| unsafe { *registers }), 1);
        }
        other.join().unwrap();
        assert_eq!(pair.berth.fetch(), !has);
        assert_eq!(pair.here.load(Ordering::Relaxed), u64::from(!has));
        pair.offer();
        assert_eq!(pair.there.load(Ordering::Relaxed), 0, "it looks since it has given back");
        assert_eq!(pair.berth.accept(), Some(VISITOR));
        pair.give_back();
        assert_eq!(pair.here.load(Ordering::Relaxed), u64::from(!has) + 1, "nobody looks here");
    });
}

/// Who is called is waited for: nobody is interrupted for it. What is offered and taken back in vain leaves
/// a processor that looks as it was.
#[test]
fn who_is_called_interrupts_nobody() {
    explore(4, || {
        let pair = Pair::visited();
        let other = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.give_back())
        };
        let call = pair.berth.call_back();
        other.join().unwrap();
        assert!(pair.berth.fetch());
        assert_eq!(pair.here.load(Ordering::Relaxed), u64::from(call == Call::Returned));
        pair.offer();
        assert_eq!(pair.berth.call_back(), Call::NotCome);
        assert!(pair.berth.accept().is_none() && pair.berth.leave());
        pair.offer();
        assert_eq!(pair.there.load(Ordering::Relaxed), 1, "only when it looks no longer");
    });
}
