//! Of which kind the machine's local APICs are (Intel SDM 3A, 11.4.1 and 11.12).

/// IA32_APIC_BASE: it has been switched to registers without a page.
pub const BASE_X2: u64 = 1 << 10;
/// CPUID 1, ECX: the processor has such registers.
const HAS_X2: u32 = 1 << 21;
/// Highest number of an APIC that a page's commands, I/O APICs and devices' messages can name.
pub const HIGHEST_NARROW: u32 = 0xFE;

/// How the registers of all processors are reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// By a page.
    Page,
    /// As model-specific registers: x2APIC.
    X2,
}

impl Kind {
    /// What the machine asks for: x2APIC where firmware has switched to it (`base` is IA32_APIC_BASE), since
    /// processors may be locked in it; and, if the processor has it (`features`: CPUID 1, ECX), where the number of one
    /// of `all` does not fit into a page's commands, or it is the `wish` of somebody.
    #[must_use]
    pub fn choose(
        base: u64,
        features: u32,
        wish: Option<Self>,
        mut all: impl Iterator<Item = u32>,
    ) -> Self {
        let mut is_needed = || wish == Some(Self::X2) || all.any(|one| one > HIGHEST_NARROW);
        if base & BASE_X2 != 0 || has_x2(features) && is_needed() { Self::X2 } else { Self::Page }
    }
}

/// Whether a processor can be switched to registers without a page (`features`: CPUID 1, ECX).
#[must_use]
pub const fn has_x2(features: u32) -> bool {
    features & HAS_X2 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_is_chosen_where_the_page_does_not_do() {
        const USUAL: u64 = 0xFEE0_0900;
        let choose = |base, features, wish, last| {
            Kind::choose(base, features, wish, [0, 1, last].into_iter())
        };
        assert_eq!(choose(USUAL, HAS_X2, None, 254), Kind::Page);
        assert_eq!(choose(USUAL, HAS_X2, None, 255), Kind::X2);
        assert_eq!(choose(USUAL, HAS_X2, Some(Kind::X2), 2), Kind::X2);
        assert_eq!(choose(USUAL | BASE_X2, HAS_X2, None, 2), Kind::X2);
        // Without it neither wish nor need helps.
        assert_eq!(choose(USUAL, !HAS_X2, Some(Kind::X2), 300), Kind::Page);
    }
}
