//! A lock between the threads of one task.
//!
//! Uncontended: one compare-and-swap. Contended: the waiter gives its time slice
//! to the holder (ThreadSwitch), so that a holder of lower priority gets on.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{syscall, utcb};

/// A value that one thread at a time may use.
pub struct Lock<T> {
    /// Global id of the holder, 0 = free.
    holder: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: `lock` hands out the value to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock around `value`.
    pub const fn new(value: T) -> Self {
        Self { holder: AtomicU64::new(0), value: UnsafeCell::new(value) }
    }

    /// Waits until the lock is free and takes it.
    pub fn lock(&self) -> Held<'_, T> {
        let me = utcb::my_global_id().0;
        loop {
            match self.holder.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Held { lock: self },
                Err(holder) => {
                    assert!(holder != me, "a thread waits for a lock that it holds itself");
                    syscall::thread_switch(holder);
                }
            }
        }
    }
}

/// The lock, held; free again when dropped.
pub struct Held<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock, and `self` is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.lock.holder.store(0, Ordering::Release);
    }
}
