//! The stubs of the system's own interfaces are checked in: they have to be those that the
//! compiler makes.

use std::path::Path;

#[test]
fn the_systems_stubs_are_those_of_its_interfaces() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let model = baton_idl::load::folder(&root.join("interfaces")).unwrap();
    for (file, made) in [
        ("lib/interfaces/src/stubs.in", baton_idl::rust::generate(&model)),
        ("lib/l4c/include/system.in", baton_idl::c::generate(&model)),
    ] {
        // What `./baton idl --accept` does, for when the tool cannot be built with the old stubs.
        if std::env::var_os("BATON_ACCEPT").is_some() {
            std::fs::write(root.join(file), &made).unwrap();
        }
        let known = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(
            made == known,
            "{file} is not what interfaces/*.wit say; make it anew: ./baton idl --accept"
        );
    }
}
