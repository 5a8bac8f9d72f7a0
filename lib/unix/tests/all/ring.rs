//! The ring of bytes in frames against a queue of bytes: same bytes, and no frame kept
//! longer than needed or given back too early.

use std::alloc::Layout;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::rc::Rc;

use unix::file::{Sink, Source};
use unix::memory::{Memory, PAGE};
use unix::stream::ring::Ring;

/// Frames of the test's memory.
const FRAMES: usize = 64;

/// A simple generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % end
    }
}

fn memory() -> Rc<Memory> {
    let layout = Layout::from_size_align(FRAMES * PAGE, PAGE).unwrap();
    // SAFETY: the size is not zero.
    let base = NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap();
    // SAFETY: page-aligned memory that nobody else touches and that is never freed.
    Rc::new(unsafe { Memory::new(base, FRAMES) })
}

fn step(ring: &Ring, model: &mut VecDeque<u8>, numbers: &mut Numbers, next: &mut u8) {
    match numbers.below(8) {
        0..4 => {
            let end = if numbers.below(2) == 0 { 16 } else { 20_000 };
            let len = numbers.below(end);
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    *next = next.wrapping_mul(5).wrapping_add(3);
                    *next
                })
                .collect();
            let filled = ring.fill(&mut Source::Server(&bytes), usize::MAX).unwrap();
            assert_eq!(filled, len.min(ring.capacity() - model.len()));
            model.extend(&bytes[..filled]);
        }
        4..7 => {
            let end = if numbers.below(2) == 0 { 16 } else { 20_000 };
            let len = numbers.below(end);
            let mut bytes = Vec::new();
            let count =
                ring.drain(&mut Sink::Server { to: &mut bytes, max: len }, usize::MAX).unwrap();
            assert_eq!(count, len.min(model.len()));
            assert!(bytes.iter().copied().eq(model.drain(..count)));
        }
        _ => {
            let back = numbers.below(model.len() + 1).min(10);
            ring.unfill(back);
            model.truncate(model.len() - back);
        }
    }
}

#[test]
fn a_ring_is_a_queue() {
    for seed in 0..20 {
        let memory = memory();
        let ring = Ring::new(&memory, 8 * PAGE).unwrap();
        let (mut model, mut numbers, mut next) = (VecDeque::new(), Numbers(seed), 0);
        for _ in 0..2000 {
            step(&ring, &mut model, &mut numbers, &mut next);
            assert_eq!(ring.len(), model.len());
            let used = FRAMES - memory.available();
            assert!(used <= model.len().div_ceil(PAGE) + 2, "{used} frames for {}", model.len());
        }
        if numbers.below(2) == 0 && model.len() <= 16 * PAGE {
            ring.resize(16 * PAGE).unwrap();
            let mut bytes = Vec::new();
            ring.drain(&mut Sink::Server { to: &mut bytes, max: usize::MAX }, usize::MAX).unwrap();
            assert!(bytes.into_iter().eq(model));
        }
        drop(ring);
        assert_eq!(memory.available(), FRAMES);
    }
}
