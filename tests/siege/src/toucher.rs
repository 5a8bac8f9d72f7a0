//! Has pages from the pager, which vanish whenever that is killed, and looks whether they
//! come back as they were.

use alloc::vec;
use alloc::vec::Vec;

use runtime::{ipc, root};

use crate::pattern;
use crate::tally::{self, Tally};

/// The name of this load task.
pub const NAME: &str = "touch";
/// Pages, and words in each.
const PAGES: usize = 48;
const WORDS: usize = 512;

/// Looks for ever.
pub fn run() {
    let _ = root::register(NAME);
    let mut tally = Tally::default();
    let mut pages: Vec<u64> = vec![0; PAGES * WORDS];
    let mut number = 1;
    write(&mut pages, number);
    loop {
        let probe = tally::serve(&tally, 1_500);
        if !is_whole(&pages, number) {
            tally.harm += 1;
        }
        number += 1;
        write(&mut pages, number);
        tally.done += 1;
        if let Some(from) = probe {
            let _ = ipc::reply(from, &tally.answer());
        }
    }
}

/// One word in each page follows from `number`: enough to need all pages.
fn write(pages: &mut [u64], number: u64) {
    for (index, page) in (0..).zip(pages.chunks_mut(WORDS)) {
        page[index as usize % WORDS] = pattern::word(number, index);
    }
}

fn is_whole(pages: &[u64], number: u64) -> bool {
    (0..)
        .zip(pages.chunks(WORDS))
        .all(|(index, page)| page[index as usize % WORDS] == pattern::word(number, index))
}
