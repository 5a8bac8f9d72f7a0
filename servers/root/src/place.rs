//! Where programs are: each is moved once, before its first task starts, to a place that it keeps until
//! the machine is booted anew. So all tasks of a program share the pages of its text.
//!
//! The image tool has made the lists of what changes ([`bootcfg::places`]); an image without them,
//! and a program without one, stays where it was linked.

use bootcfg::places::{self, Lists};
use paging::Image;
use proto::layout;
use runtime::window::Window;
use runtime::{random, sigma0};

/// The file of lists, as far as it was read.
pub struct Places {
    window: Window,
    first: u64,
    lists: Lists,
}

impl Places {
    /// The file at physical addresses `start` and on; `None` if σ0 does not give it out.
    pub fn open(start: u64, size: u64) -> Option<Self> {
        let window = sigma0::range(start, start.checked_add(size)?)?;
        Some(Self { first: start - window.base(), window, lists: Lists::new(size) })
    }

    /// Moves the next program of the image, whose bytes are in `modules`, and returns how far.
    pub fn next(&mut self, image: &Image, modules: Option<&Window>) -> u64 {
        let (window, first) = (&self.window, self.first);
        let read = |at| window.read(first + at);
        let is_fixed = self.lists.is_empty(read);
        let distance = modules.filter(|_| !is_fixed).map_or(0, |_| distance(image));
        let end = image.text + image.data;
        self.lists.each(read, |place| {
            if let (Some(modules), true) = (modules, place + 4 <= end) {
                let at = image.phys - modules.base() + place;
                let write = |word, value| modules.write(word, value);
                places::add(at, distance, |word| modules.read(word), write);
            }
        });
        distance
    }
}

/// How far a program moves: at random, if all of it was linked where programs can be.
fn distance(image: &Image) -> u64 {
    let bytes = image.text + image.data + image.bss;
    if image.virt != layout::IMAGE || bytes > layout::HEAP - layout::IMAGE {
        return 0;
    }
    layout::image_at(random::word(), bytes) - image.virt
}
