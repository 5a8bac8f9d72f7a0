//! What another processor does that the first one has asked for something (`errands`).

use core::sync::atomic::Ordering;

use crate::arch::x86_64::check;
use crate::arch::x86_64::percpu::cpu;
use crate::arch::x86_64::slots::own;
use crate::between::errand::Errand;
use crate::kprintln;

/// This processor looks at itself; the first one waits, and prints nothing meanwhile.
fn look() -> u32 {
    let (number, mut count) = (cpu().number.get(), 0);
    check::check_own(&mut |violation| {
        kprintln!("check: processor {number}: {violation}");
        count += 1;
    });
    count + crate::check::idle_violations() as u32
}

/// The first processor may have asked for something, and waits until it is done.
#[inline(never)] // the tests meet a processor here
pub fn serve() {
    let own = own();
    let Some(asked) = own.errands.take() else { return };
    if asked.is(Errand::Check) {
        own.violations.store(look(), Ordering::Relaxed);
    }
    own.errands.answer(asked);
}
