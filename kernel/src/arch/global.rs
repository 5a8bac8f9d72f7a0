//! What a room keeps for the whole machine: one of it, and its room declares it.
//!
//! On the host each test thread is a machine of its own.

/// What there is one of in the whole machine. Only the first processor looks at it.
#[cfg(target_os = "none")]
pub struct Global<T>(T);

// SAFETY: the first processor alone uses it, with interrupts off; no two references are ever used
// concurrently.
#[cfg(target_os = "none")]
unsafe impl<T> Sync for Global<T> {}

#[cfg(target_os = "none")]
impl<T> Global<T> {
    /// The machine's.
    #[must_use]
    pub const fn new(it: T) -> Self {
        Self(it)
    }

    /// The one that there is.
    #[inline(always)]
    pub const fn get(&'static self) -> &'static T {
        &self.0
    }
}

/// Declares a function that returns what there is one of in the whole machine.
#[cfg(target_os = "none")]
macro_rules! global {
    ($(#[$meta:meta])* $vis:vis fn $name:ident() -> $kind:ty = $new:expr;) => {
        $(#[$meta])*
        #[inline]
        #[must_use]
        $vis fn $name() -> &'static $kind {
            #[used] // in one piece, where a debugger looks for it
            static IT: $crate::arch::global::Global<$kind> = $crate::arch::global::Global::new($new);
            IT.get()
        }
    };
}

/// The same, of each test thread.
#[cfg(not(target_os = "none"))]
macro_rules! global {
    ($(#[$meta:meta])* $vis:vis fn $name:ident() -> $kind:ty = $new:expr;) => {
        $(#[$meta])*
        #[must_use]
        $vis fn $name() -> &'static $kind {
            std::thread_local! {
                static IT: &'static $kind = std::boxed::Box::leak(std::boxed::Box::new($new));
            }
            IT.with(|it| *it)
        }
    };
}

pub(crate) use global;
