//! Suites `ipc`, `working-set` and the instrument's check: words and strings.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use bench_guest::exchange::{
    Where, armed, complete, local, local_vector, null_call, split, strings, unaligned, vector,
    words,
};
use bench_guest::fixup::{fix_ups, nested};
use bench_guest::{check, marks, measured, memory};

measured!(run);

/// Log2 of the longest string.
const LONGEST: u32 = 22;
const LARGE_PAGE: u64 = 1 << 21;
/// Lengths of the 1993 paper's Table 7 that are strings here, and Figure 8's curve
/// up to 4 MiB; bytes.
const STRINGS: [u64; 18] = [
    64, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384, 32768, 65536, 131_072, 262_144,
    524_288, 1_048_576, 4_194_304,
];

fn run() -> Result<(), &'static str> {
    check::run();
    let (source, target) = (memory::block(LONGEST)?, memory::block(LONGEST)?);
    (0..1 << LONGEST).step_by(4096).for_each(|at| source.write(at, at));
    marks::set_buffer(target.base(), target.bytes());
    null_call();
    for place in Where::ALL {
        words(place, 0..=63)?;
        complete(place)?;
        vector(place)?;
        split(place, [0, 1, 2, 16].into_iter())?;
        strings(place, source.base(), STRINGS.into_iter())?;
    }
    unaligned(source.base() + LARGE_PAGE, target.base() + LARGE_PAGE)?;
    local()?;
    local_vector()?;
    nested()?;
    armed()?;
    fix_ups()?;
    Ok(())
}
