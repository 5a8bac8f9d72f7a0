//! What is chosen for which processor.

use super::*;

const NONE: Facts = Facts {
    vendor: Vendor::Other,
    family: 6,
    capabilities: 0,
    structured: [0; 3],
    extended: [0; 3],
};

#[test]
fn an_emulator_needs_nothing_unless_it_is_told() {
    let facts = Facts { vendor: Vendor::Emulator, ..NONE };
    assert_eq!(plan(&facts, Choice::Auto), (Actions::empty(), Open::empty()));
    assert_eq!(plan(&facts, Choice::Off), (Actions::empty(), Open::empty()));
    assert_eq!(plan(&facts, Choice::On).0, Actions::VERW | Actions::IBPB);
}

#[test]
fn skylake_has_buffers_to_empty_and_much_that_is_open() {
    // Microcode of 2019 and later: MD_CLEAR, SPEC_CTRL; RTM; no capabilities.
    let facts = Facts { structured: [1 << 11, 1 << 10 | 1 << 26 | 1 << 31, 0], ..NONE };
    let (actions, open) = plan(&facts, Choice::Auto);
    assert_eq!(actions, Actions::VERW);
    assert!(open.contains(Open::MELTDOWN | Open::SPECTRE_V2_KERNEL | Open::RETBLEED));
    assert!(!open.intersects(Open::MDS | Open::TAA));
    let (actions, open) = plan(&facts, Choice::On);
    assert_eq!(actions, Actions::VERW | Actions::IBPB | Actions::SSBD);
    assert!(!open.intersects(Open::SSB | Open::SPECTRE_V2_USER));
    assert_eq!(plan(&facts, Choice::Off), (Actions::empty(), Open::EVERYTHING));
    let old = Facts { structured: [0; 3], ..facts };
    assert!(plan(&old, Choice::Auto).1.contains(Open::MDS), "no microcode");
}

#[test]
fn sapphire_rapids_pays_nothing_on_its_paths() {
    let capabilities = capability::RDCL_NO
        | capability::IBRS_ALL
        | capability::MDS_NO
        | capability::TSX_CTRL
        | capability::TAA_NO
        | capability::MMIO_NO
        | capability::FB_CLEAR
        | capability::RFDS_NO
        | capability::SSB_NO;
    let facts = Facts { capabilities, structured: [1 << 11, 1 << 10 | 1 << 26, 1 << 4], ..NONE };
    let (actions, open) = plan(&facts, Choice::Auto);
    assert_eq!(actions, Actions::IBRS | Actions::BHI_DIS);
    assert_eq!(open, Open::SPECTRE_V2_USER);
}

#[test]
fn zens_differ() {
    let zen2 = Facts { vendor: Vendor::Amd, family: 0x17, ..NONE };
    let (actions, open) = plan(&zen2, Choice::Auto);
    assert_eq!(actions, Actions::empty());
    assert!(open.contains(Open::RETBLEED | Open::INCEPTION | Open::SPECTRE_V2_KERNEL));
    let zen4 = Facts { family: 0x19, extended: [1 << 12, 1 << 8 | 1 << 5, 0], ..zen2 };
    let (actions, open) = plan(&zen4, Choice::Auto);
    assert_eq!(actions, Actions::AUTO_IBRS | Actions::VERW);
    assert!(open.contains(Open::INCEPTION) && !open.contains(Open::RETBLEED));
    let zen5 = Facts { family: 0x1A, extended: [1 << 12, 1 << 8 | 1 << 29, 6], ..zen2 };
    assert_eq!(plan(&zen5, Choice::Auto).0, Actions::AUTO_IBRS);
}

#[test]
fn words_of_the_option() {
    assert_eq!(Choice::read(Some("off")), Choice::Off);
    assert_eq!(Choice::read(Some("on")), Choice::On);
    assert_eq!(Choice::read(None), Choice::Auto);
    assert_eq!(Choice::read(Some("auto,nosmt")), Choice::Auto);
}
