//! From a faulting address to the page that belongs there.

use abi::Rights;
use proto::layout;

const PAGE: u64 = 4096;

/// A program as the image tool laid it out; bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Image {
    /// Physical address of text, followed by data.
    pub phys: u64,
    /// Virtual address of text, followed by data and bss.
    pub virt: u64,
    /// Size of the text, a multiple of the page size.
    pub text: u64,
    /// Size of the data.
    pub data: u64,
    /// Size of the bss.
    pub bss: u64,
}

/// What belongs at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Page {
    /// The module's own page at this physical address, shared, read and execute.
    Text(u64),
    /// A private page: `bytes` copied from physical address `from`, the rest zero.
    Private {
        /// Physical address of the initial contents.
        from: u64,
        /// Bytes of initial contents, 0 to 4096.
        bytes: u64,
    },
}

/// Why an address is refused. The numbers travel in messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Refusal {
    /// Inside the first page: a null pointer.
    Null = 1,
    /// Nothing belongs there.
    Nothing = 2,
    /// A write to read-only text.
    Text = 3,
    /// The guard below a stack.
    StackGuard = 4,
    /// The kernel's half.
    Kernel = 5,
    /// The task's memory limit is used up.
    Limit = 6,
    /// The pool has no frame left.
    Pool = 7,
    /// An I/O port without right.
    Port = 8,
    /// The faulting thread belongs to no task that the pager knows.
    Stranger = 9,
}

impl Refusal {
    /// Decodes a message word.
    #[must_use]
    pub const fn decode(word: u64) -> Self {
        match word {
            1 => Self::Null,
            3 => Self::Text,
            4 => Self::StackGuard,
            5 => Self::Kernel,
            6 => Self::Limit,
            7 => Self::Pool,
            8 => Self::Port,
            9 => Self::Stranger,
            _ => Self::Nothing,
        }
    }

    /// The missing right or the cause, to end a sentence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "the first page is never mapped: a null pointer was used",
            Self::Nothing => "nothing is mapped there; check the pointer",
            Self::Text => "the program's text is not writable",
            Self::StackGuard => "that is the guard below a stack: the stack overflowed",
            Self::Kernel => "that half of the address space belongs to the kernel",
            Self::Limit => "the task's memory limit is used up; give it a larger memory=",
            Self::Pool => "the pager's pool has no free frame; end another task",
            Self::Port => {
                "the task has no right to that port; name it in ports= and ask the root task for it"
            }
            Self::Stranger => "the pager knows no such task",
        }
    }
}

/// What belongs at `address` for an access of kind `access`.
pub fn place(image: &Image, address: u64, access: Rights) -> Result<Page, Refusal> {
    let private_end = image.virt + image.text + image.data + image.bss;
    let inside = |low: u64, bytes: u64| address >= low && address - low < bytes;
    if inside(image.virt, image.text) {
        if access.contains(Rights::W) {
            return Err(Refusal::Text);
        }
        return Ok(Page::Text(image.phys + ((address - image.virt) & !(PAGE - 1))));
    }
    if inside(
        image.virt + image.text,
        (private_end - image.virt - image.text).next_multiple_of(PAGE),
    ) {
        let offset = (address - image.virt) & !(PAGE - 1);
        let loaded = (image.text + image.data).saturating_sub(offset).min(PAGE);
        return Ok(Page::Private { from: image.phys + offset, bytes: loaded });
    }
    if inside(layout::HEAP, layout::HEAPS_END - layout::HEAP) {
        return Ok(Page::Private { from: 0, bytes: 0 });
    }
    if inside(layout::STACKS, layout::STACKS_END - layout::STACKS) {
        let guard = (address - layout::STACKS) % layout::STACK_BYTES < layout::STACK_GUARD;
        return if guard {
            Err(Refusal::StackGuard)
        } else {
            Ok(Page::Private { from: 0, bytes: 0 })
        };
    }
    Err(match address {
        0..PAGE => Refusal::Null,
        abi::layout::USER_END.. => Refusal::Kernel,
        _ => Refusal::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Image =
        Image { phys: 0x200_0000, virt: 0x40_0000, text: 0x3000, data: 0x1804, bss: 0x2000 };

    #[test]
    fn text_is_shared_and_never_writable() {
        assert_eq!(place(&IMAGE, 0x40_2FFF, Rights::R), Ok(Page::Text(0x200_2000)));
        assert_eq!(place(&IMAGE, 0x40_0000, Rights::X), Ok(Page::Text(0x200_0000)));
        assert_eq!(place(&IMAGE, 0x40_0000, Rights::W), Err(Refusal::Text));
    }

    #[test]
    fn data_is_copied_and_bss_zero() {
        assert_eq!(
            place(&IMAGE, 0x40_3010, Rights::R),
            Ok(Page::Private { from: 0x200_3000, bytes: 4096 })
        );
        assert_eq!(
            place(&IMAGE, 0x40_4FFF, Rights::W),
            Ok(Page::Private { from: 0x200_4000, bytes: 0x804 })
        );
        assert_eq!(
            place(&IMAGE, 0x40_5000, Rights::W),
            Ok(Page::Private { from: 0x200_5000, bytes: 0 })
        );
        assert_eq!(
            place(&IMAGE, 0x40_6803, Rights::W),
            Ok(Page::Private { from: 0x200_6000, bytes: 0 })
        );
        assert_eq!(place(&IMAGE, 0x40_7000, Rights::W), Err(Refusal::Nothing));
    }

    #[test]
    fn stacks_have_guards() {
        let top = layout::stack_top(layout::STACKS, 2);
        assert_eq!(place(&IMAGE, top - 8, Rights::W), Ok(Page::Private { from: 0, bytes: 0 }));
        assert_eq!(place(&IMAGE, top - layout::STACK_BYTES, Rights::W), Err(Refusal::StackGuard));
        assert_eq!(place(&IMAGE, top, Rights::W), Err(Refusal::StackGuard));
        assert_eq!(place(&IMAGE, layout::STACKS_END, Rights::W), Err(Refusal::Nothing));
    }

    #[test]
    fn refusals_are_told_apart() {
        assert_eq!(place(&IMAGE, 8, Rights::R), Err(Refusal::Null));
        assert_eq!(place(&IMAGE, 0xFFFF_8000_0000_0000, Rights::R), Err(Refusal::Kernel));
        assert_eq!(place(&IMAGE, layout::HEAPS_END, Rights::R), Err(Refusal::Nothing));
        for code in 1..=9 {
            assert_eq!(Refusal::decode(code) as u64, code);
        }
    }
}
