//! The words of an errand in every order of both processors' steps, as far as the memory model lets them be seen,
//! with the interrupt that says that there is one.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use crate::common::modelled::{EXCHANGES, LOADS, Modelled, STORES, Without, bites, explore};
use kernel::between::Word;
use kernel::between::errand::{Asked, Errand, Errands};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64};
use loom::thread;

/// What a message to another APIC orders: whoever it interrupts sees what was written before it.
const MESSAGE: [Ordering; 2] = [Release, Acquire];

/// What the other processor does meanwhile, and what an interrupt makes of that.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// It idles, and takes what it finds (`trap::from_kernel`).
    Idles,
    /// It has a visitor, which goes on unless something is asked (`visitors::met`).
    IsVisited,
    /// Its visitor stands still, with interrupts off until something is asked (`visitors::stand_still`).
    StandsStill,
}

/// How often the other one looks while the first one goes on, which looks twice itself; what is left comes after that.
const LOOKS: u32 = 3;

/// The first processor and another one.
struct Pair<W: Word> {
    errands: Errands<W>,
    /// An interrupt is under way; several are one.
    interrupt: AtomicBool,
    message: [Ordering; 2],
    /// How often the first one has asked, which it writes before it does.
    asks: AtomicU64,
    /// What the other one writes before it answers: how many errands it has carried out, and the last one's number.
    count: AtomicU64,
    last: AtomicU64,
}

/// The first processor's side, and the other while it goes on by itself.
struct First<W: Word> {
    pair: Arc<Pair<W>>,
    way: Way,
    other: Option<thread::JoinHandle<()>>,
}

impl<W: Word> Pair<W> {
    /// The other one interrupted.
    fn send(&self) {
        let _ = self.interrupt.swap(true, self.message[0]);
    }

    fn ask(&self, errand: Errand) -> Asked {
        self.asks.fetch_add(1, Relaxed);
        let asked = self.errands.ask(errand);
        self.send();
        asked
    }

    /// How many the other had carried out when it answered `asked`.
    fn carried_out(&self, asked: Asked) -> u64 {
        assert_eq!(self.last.load(Relaxed), asked.number(), "the answer is that to another");
        self.count.load(Relaxed)
    }

    /// The other one looks for an errand, as `entry::asked` does.
    fn serve(&self) {
        let Some(asked) = self.errands.take() else { return };
        let number = asked.number();
        assert!(self.asks.load(Relaxed) >= number, "what was written before is not there");
        assert!(self.last.load(Relaxed) < number, "it has been carried out before");
        self.last.store(number, Relaxed);
        self.count.store(self.count.load(Relaxed) + 1, Relaxed);
        self.errands.answer(asked);
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.compare_exchange(true, false, self.message[1], Relaxed).is_ok()
    }

    /// The other one goes on for a moment.
    fn looks(&self, way: Way) {
        let lets_in = way != Way::StandsStill || self.errands.is_asked();
        if lets_in && self.is_interrupted() && (way != Way::IsVisited || self.errands.is_asked()) {
            self.serve();
        }
    }
}

impl<W: Word + Send + Sync + 'static> First<W> {
    fn new(way: Way, message: [Ordering; 2]) -> Self {
        let pair = Arc::new(Pair {
            errands: Errands::with_words(),
            interrupt: AtomicBool::new(false),
            message,
            asks: AtomicU64::new(0),
            count: AtomicU64::new(0),
            last: AtomicU64::new(0),
        });
        let other = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || (0..LOOKS).for_each(|_| pair.looks(way)))
        };
        Self { pair, way, other: Some(other) }
    }

    /// The other one does what it still has to.
    fn wait(&mut self) {
        if let Some(other) = self.other.take() {
            other.join().unwrap();
        }
        self.pair.looks(self.way);
    }

    /// Waits for the answer to `asked`; how many the other has carried out then.
    fn finish(&mut self, asked: Asked) -> u64 {
        if !(0..2).any(|_| self.pair.errands.is_done(asked)) {
            self.wait();
            assert!(self.pair.errands.is_done(asked), "nobody looks for it any more");
        }
        self.pair.carried_out(asked)
    }

    /// All is over.
    fn end(mut self) {
        self.wait();
        assert_eq!((self.pair.errands.is_asked(), self.pair.errands.take()), (false, None));
    }

    /// Two errands, one after the other.
    fn asks_twice(mut self) {
        for (count, errand) in [(1, Errand::Hello), (2, Errand::Check)] {
            let asked = self.pair.ask(errand);
            assert!(asked.is(errand));
            assert_eq!(self.finish(asked), count);
        }
        self.end();
    }

    /// It gives up, and asks for the same again.
    fn gives_up(mut self) {
        let late = self.pair.ask(Errand::Check);
        let asked = self.pair.ask(Errand::Check);
        assert!((1..=2).contains(&self.finish(asked)));
        assert!(!self.pair.errands.is_done(late));
        self.end();
    }

    /// An interrupt comes before there is anything, and again for what there is.
    fn interrupts_too_often(mut self) {
        self.pair.send();
        let asked = self.pair.ask(Errand::Hello);
        self.pair.send();
        assert_eq!(self.finish(asked), 1);
        let asked = self.pair.ask(Errand::Check);
        assert_eq!(self.finish(asked), 2);
        self.end();
    }
}

const WAYS: [Way; 3] = [Way::Idles, Way::IsVisited, Way::StandsStill];

/// What is asked is carried out once, with all that was written before, and answered with all that was written then.
#[test]
fn what_is_asked_is_done_once() {
    for way in WAYS {
        explore(4, move || First::<Modelled>::new(way, MESSAGE).asks_twice());
    }
}

/// Who answers late answers what it was asked, and still does what it is asked then.
#[test]
fn who_answers_late_answers_what_it_was_asked() {
    for way in WAYS {
        explore(4, move || First::<Modelled>::new(way, MESSAGE).gives_up());
    }
}

/// An interrupt that comes late, or again, finds nothing, or what is asked by then.
#[test]
fn an_interrupt_too_many_does_no_harm() {
    for way in WAYS {
        explore(4, move || First::<Modelled>::new(way, MESSAGE).interrupts_too_often());
    }
}

/// Whether anything is found if words and message are in no other order than these say.
fn is_found<W: Word + Send + Sync + 'static>(message: [Ordering; 2]) -> bool {
    let plays = [First::<W>::asks_twice, First::gives_up, First::interrupts_too_often];
    plays
        .into_iter()
        .any(|play| WAYS.into_iter().any(|way| bites(4, move || play(First::new(way, message)))))
}

/// The model finds it if any of the orders is missing.
#[test]
fn each_order_of_an_errand_is_needed() {
    assert!(!is_found::<Modelled>(MESSAGE));
    assert!(is_found::<Without<LOADS>>(MESSAGE));
    assert!(is_found::<Without<STORES>>(MESSAGE));
    assert!(is_found::<Without<EXCHANGES>>(MESSAGE));
    assert!(is_found::<Modelled>([Relaxed, Acquire]), "a message overtakes what was written");
}
