//! Periods and points (X.2 1.6): precision, range, and what they mean at a given clock value.

mod common;

use abi::time::Deadline;
use abi::{Time, Timeouts};
use common::Random;

/// The longest period: 1023 · 2^31 µs.
const LONGEST_US: u64 = 1023 << 31;

#[test]
fn the_words_of_the_manual() {
    assert_eq!((Time::NEVER.0, Time::ZERO.0, Time::micros(1000).0), (0, 0x0400, 0x03E8));
    assert_eq!(Time::micros(0), Time::ZERO);
    assert_eq!(Time::micros(1_000_000), Time(10 << 10 | 976));
    assert_eq!(Time::micros(LONGEST_US), Time(31 << 10 | 1023));
    assert_eq!(Time::micros(1024 << 31), Time::NEVER);
    assert_eq!(Time::micros(u64::MAX), Time::NEVER);
}

#[test]
fn short_periods_are_exact() {
    for us in 1..1024 {
        assert_eq!(Time::micros(us).period_us(), Some(us));
    }
}

#[test]
fn a_period_is_at_most_a_512th_too_short_and_never_too_long() {
    let mut random = Random::new(1);
    for _ in 0..100_000 {
        let us = random.any_size() % (LONGEST_US + 1);
        let period = Time::micros(us).period_us().expect("in range");
        assert!(period <= us && us - period <= us / 512, "{us} became {period}");
    }
}

#[test]
fn every_period_says_when() {
    let mut random = Random::new(2);
    for word in 0..0x8000 {
        let (time, now_us) = (Time(word), random.any_size() >> 1);
        assert!(!time.is_point());
        let expected = match word {
            0 => Deadline::Never,
            0x0400 => Deadline::Now,
            // X.2 1.6: m = 0 with another exponent is not "zero" but "at the next tick".
            _ => Deadline::At(now_us + (u64::from(word & 0x3FF) << (word >> 10))),
        };
        assert_eq!(time.deadline(now_us), expected, "{word:#x}");
    }
    assert_eq!(Time(0x03E8).deadline(u64::MAX), Deadline::At(u64::MAX), "the clock does not wrap");
}

#[test]
fn a_point_is_met_within_its_precision() {
    let mut random = Random::new(3);
    for _ in 0..200_000 {
        let now_us = random.any_size() >> 2;
        let distance = random.any_size() % (1 << 25) + 1;
        let at_us = now_us + distance;
        let time = Time::point(now_us, at_us).expect("within one span of the coarsest unit");
        assert!(time.is_point());
        let unit = 1_u64 << (time.0 >> 11 & 0xF);
        assert!(unit == 1 || distance >= 1024 * unit / 2, "{distance} needs no unit of {unit}");
        let expected = at_us / unit * unit;
        let meant = if expected > now_us { Deadline::At(expected) } else { Deadline::Now };
        assert_eq!(time.deadline(now_us), meant, "{now_us} to {at_us}");
    }
}

#[test]
fn a_point_carries_over_the_boundary_of_a_span() {
    for here in [6_u64, 7] {
        // Even and odd spans of 1024 µs: the next one is meant in both cases.
        let (now_us, at_us) = (here * 1024 + 1000, (here + 1) * 1024 + 5);
        let time = Time::point(now_us, at_us).expect("near");
        assert_eq!(time, Time(0x8000 | 1 << 10 | 5));
        assert_eq!(time.deadline(now_us), Deadline::At(at_us));
    }
}

#[test]
fn a_point_means_the_same_later_in_the_same_span() {
    let mut random = Random::new(4);
    for _ in 0..100_000 {
        let now_us = random.any_size() >> 2;
        let at_us = now_us + random.any_size() % (1 << 20) + 1;
        let time = Time::point(now_us, at_us).expect("near");
        let span = 1024_u64 << (time.0 >> 11 & 0xF);
        let later = now_us + random.next() % (span - now_us % span);
        match time.deadline(later) {
            Deadline::At(us) => assert!(us > later && time.deadline(now_us) == Deadline::At(us)),
            Deadline::Now => assert!(at_us / (span / 1024) * (span / 1024) <= later),
            Deadline::Never => panic!("a point is never never"),
        }
    }
}

#[test]
fn a_point_in_the_past_is_now_and_one_too_far_is_none() {
    let now_us = 5 << 25;
    assert_eq!(
        Time::point(now_us + 10, now_us + 3).map(|time| time.deadline(now_us + 10)),
        Some(Deadline::Now)
    );
    assert_eq!(Time::point(now_us, now_us + (2 << 25)), None);
    assert!(Time::point(now_us, now_us + (2 << 25) - 1).is_some());
}

#[test]
fn two_times_make_a_timeouts_word() {
    let both = Timeouts::new(Time(0x1234), Time(0xABCD));
    assert_eq!((both.0, both.send(), both.receive()), (0x1234_ABCD, Time(0x1234), Time(0xABCD)));
    assert_eq!((Timeouts::NEVER.0, Timeouts::REPLY_WAIT.0), (0, 0x0400_0000));
}
