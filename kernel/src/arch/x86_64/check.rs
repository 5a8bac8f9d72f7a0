//! What the checker looks at that only this processor knows. It changes nothing.

use core::fmt::Arguments;

use super::features::{self, Features};
use super::percpu::cpu;

/// Says to `note` what is wrong with the processor's state.
pub fn check(note: &mut impl FnMut(Arguments<'_>)) {
    features::check(note);
    super::kernel_half::check(note);
    let unguarded = cpu().unguarded.get();
    if unguarded != 0 && features::in_use().contains(Features::SMAP) {
        note(format_args!(
            "{unguarded} interrupts met the kernel with AC set: user pages are open to it"
        ));
    }
}
