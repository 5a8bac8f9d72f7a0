//! The stubs of the system's own interfaces are checked in: they have to be those that the
//! compiler makes.

use std::path::Path;

#[test]
fn the_systems_stubs_are_those_of_its_interfaces() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let made =
        baton_idl::rust::generate(&baton_idl::load::folder(&root.join("interfaces")).unwrap());
    let file = root.join("lib/interfaces/src/stubs.in");
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        made == known,
        "lib/interfaces/src/stubs.in is not what interfaces/*.wit say; make it anew: ./baton idl --accept"
    );
}
