//! An ordinary task's address space. The runtime, the pager and the root task
//! agree on these addresses; all in bytes.

/// Where programs are linked: text, then data and bss. The root task moves each to a place from here
/// to [`HEAP`] ([`image_at`]).
pub const IMAGE: u64 = 0x0040_0000;
/// The heap: filled with zeroed pages on demand. It begins at any page from here on
/// ([`heap_at`]), and here if nothing is placed at random.
pub const HEAP: u64 = 0x1000_0000;
/// Size of the heap's region.
pub const HEAP_BYTES: u64 = 0x1000_0000;
/// End of where a heap can be.
pub const HEAPS_END: u64 = 0x6000_0000;
/// The stacks: one region per thread of the task, one after the other from a multiple of
/// [`STACK_BYTES`] above here ([`stacks_at`]), or from here if nothing is placed at random.
pub const STACKS: u64 = 0x7000_0000;
/// End of where stacks can be.
pub const STACKS_END: u64 = 0xB000_0000;
/// Size of one stack region; its lowest [`STACK_GUARD`] bytes are never mapped.
pub const STACK_BYTES: u64 = 0x10_0000;
/// Size of the guard below each stack.
pub const STACK_GUARD: u64 = 0x1_0000;
/// Threads per task, and so stack regions and UTCBs.
pub const THREADS: u64 = 16;
/// Size of all stack regions.
pub const STACKS_BYTES: u64 = STACK_BYTES * THREADS;
/// UTCB area.
pub const UTCBS: u64 = 0xBF00_0000;
/// Log2 size of a task's UTCB area: 16 UTCBs of 1 KiB, and then pages for the A-stacks of procedure
/// calls.
pub const UTCB_BITS: u32 = 18;
/// Where A-stacks can be.
pub const A_STACKS: u64 = UTCBS + THREADS * 1024;
/// In how many pages.
pub const A_STACK_PAGES: u64 = ((1 << UTCB_BITS) - THREADS * 1024) / 4096;
/// The kernel interface page.
pub const KIP: u64 = 0xBFF0_0000;

/// In the pager: the frames that the root task gives it, as one window.
pub const POOL: u64 = 0x10_0000_0000;
/// In the pager: physical memory of the boot modules, read-only, at this offset.
pub const MODULES: u64 = 0x20_0000_0000;
/// Free for the windows of programs.
pub const WINDOWS: u64 = 0x30_0000_0000;

/// By how much, in bytes, a thread's first stack pointer may lie below the top of its stack.
pub const STACK_SLACK: u64 = 0x8000;

/// Where the image of `bytes` bytes begins that `random` chooses: at a page at which it needs no more page
/// tables than at [`IMAGE`], so that no quota is too small by chance.
#[must_use]
pub const fn image_at(random: u64, bytes: u64) -> u64 {
    const PAGE: u64 = 4096;
    /// What one page table maps.
    const PART: u64 = 0x20_0000;
    let tables = bytes.div_ceil(PART);
    let parts = (HEAP - IMAGE) / PART - tables + 1;
    let pages = (tables * PART - bytes) / PAGE + 1;
    IMAGE + random % parts * PART + random / parts % pages * PAGE
}

/// Where the heap begins that `random` chooses.
#[must_use]
pub const fn heap_at(random: u64) -> u64 {
    const PAGE: u64 = 4096;
    HEAP + random % ((HEAPS_END - HEAP_BYTES - HEAP) / PAGE + 1) * PAGE
}

/// Where the stacks begin that `random` chooses: above those at [`STACKS`], by which a task knows
/// that nothing is to be random.
#[must_use]
pub const fn stacks_at(random: u64) -> u64 {
    const FIRST: u64 = STACKS + STACKS_BYTES;
    FIRST + random % ((STACKS_END - STACKS_BYTES - FIRST) / STACK_BYTES + 1) * STACK_BYTES
}

/// The place of the stacks, by an address in the first of them.
#[must_use]
pub const fn stacks_of(address: u64) -> u64 {
    address & !(STACK_BYTES - 1)
}

/// Top of the stack of a task's thread number `index`, if the stacks begin at `stacks`.
#[must_use]
pub const fn stack_top(stacks: u64, index: u64) -> u64 {
    stacks + (index + 1) * STACK_BYTES
}

/// The first stack pointer of a thread whose stack ends at `top`, with room for what it is to
/// find there, as `random` chooses.
#[must_use]
pub const fn stack_pointer(top: u64, random: u64) -> u64 {
    top - 64 - random % (STACK_SLACK / 16) * 16
}

/// UTCB location of a task's thread number `index`.
#[must_use]
pub const fn utcb_location(index: u64) -> u64 {
    UTCBS + index * 1024
}

/// Tasks that an image can describe.
pub const TASKS: usize = 32;

/// First thread number of the first task that the root task starts.
pub const FIRST_TASK_THREAD: u32 = abi::id::USER_BASE + 16;

/// First of the thread numbers of tasks that make threads themselves (`threads=N` in a
/// description); the root task gives ranges that do not overlap from here on.
pub const FIRST_OWN_NUMBER: u32 = 4096;

/// Thread number of thread `index` of the task in slot `slot`.
#[must_use]
pub const fn thread_number(slot: usize, index: u64) -> u32 {
    FIRST_TASK_THREAD + slot as u32 * THREADS as u32 + index as u32
}

/// Slot and index of a thread number, the inverse of [`thread_number`].
#[must_use]
pub const fn slot_of(number: u32) -> Option<(usize, u64)> {
    match number.checked_sub(FIRST_TASK_THREAD) {
        None => None,
        Some(offset) => {
            Some(((offset / THREADS as u32) as usize, (offset % THREADS as u32) as u64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_numbers_and_slots_are_inverse() {
        for slot in 0..40 {
            for index in 0..THREADS {
                assert_eq!(slot_of(thread_number(slot, index)), Some((slot, index)));
            }
        }
        assert_eq!(slot_of(FIRST_TASK_THREAD - 1), None);
    }

    #[test]
    fn random_places_are_inside_their_regions() {
        let top = stack_top(STACKS, 0);
        for random in [0, 1, 992, 993, 0x3_FFFF, 0x4_0000, 0x4_0001, 1 << 63, u64::MAX] {
            let (heap, stacks) = (heap_at(random), stacks_at(random));
            assert!(heap >= HEAP && heap + HEAP_BYTES <= HEAPS_END && heap.is_multiple_of(4096));
            assert!(stacks >= STACKS + STACKS_BYTES && stacks + STACKS_BYTES <= STACKS_END);
            let pointer = stack_pointer(stack_top(stacks, 0), random);
            assert_eq!((stacks_of(pointer), pointer % 16), (stacks, 0));
            assert!(top - stack_pointer(top, random) <= STACK_SLACK + 64);
        }
        assert_eq!(stacks_at(992), STACKS_END - STACKS_BYTES);
        assert_eq!((stacks_at(993), heap_at(0)), (stacks_at(0), HEAP));
        assert_eq!(stack_pointer(top, 0), top - 64);
    }

    #[test]
    fn images_are_in_their_region_and_in_as_few_page_tables_as_they_can() {
        for bytes in [1, 4096, 0x3_2000, 0x1F_F001, 0x20_0000, 0x20_0001, 0x123_4567, HEAP - IMAGE]
        {
            for random in (0..100_000).chain([1 << 40, u64::MAX]) {
                let at = image_at(random, bytes);
                assert!(at >= IMAGE && at + bytes <= HEAP && at.is_multiple_of(4096));
                let tables = (at + bytes - 1) / 0x20_0000 - at / 0x20_0000 + 1;
                assert_eq!(tables, bytes.div_ceil(0x20_0000), "{bytes:#x} bytes at {at:#x}");
            }
        }
        assert_eq!((image_at(0, 1), image_at(0, HEAP - IMAGE)), (IMAGE, IMAGE));
        let far = (0..64_512).map(|random| image_at(random, 4096)).max();
        assert_eq!(far, Some(HEAP - 4096));
    }

    #[test]
    fn regions_do_not_overlap() {
        let regions = [
            (IMAGE, HEAP),
            (HEAP, HEAPS_END),
            (STACKS, STACKS_END),
            (UTCBS, UTCBS + (1 << UTCB_BITS)),
            (KIP, KIP + 4096),
        ];
        for pair in regions.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{pair:x?}");
        }
    }
}
