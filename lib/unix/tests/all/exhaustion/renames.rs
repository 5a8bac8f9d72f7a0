//! Names that are moved when there is no memory.

use linux_raw_sys::general as l;
use unix::errno::Errno;

use crate::common::World;
use crate::common::caller::Program;
use crate::given_back;

/// A directory's table with so many names is full: the next one makes it grow.
const FULL: usize = 3584;

#[test]
fn a_name_that_finds_no_room_stays_where_it_was() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    root.mkdir("/tmp/full");
    for number in 0..FULL {
        root.make(&format!("/tmp/full/{number}"), b"");
    }
    root.make("/tmp/file", b"kept");
    given_back::limit(32 << 10);
    let moved = root.on_two(l::__NR_rename, "/tmp/file", "/tmp/full/new");
    given_back::no_limit();
    assert_eq!(moved, -i64::from(Errno::ENOSPC.0));
    assert_eq!(root.contents("/tmp/file"), b"kept");
    assert!(root.stat("/tmp/full/new").is_err());
    // What replaces a name or changes places with it needs no room.
    root.make("/tmp/full/0", b"old");
    given_back::limit(32 << 10);
    let paths = [root.path(0, b"/tmp/file"), root.path(1, b"/tmp/full/0")];
    let flags = u64::from(l::RENAME_EXCHANGE);
    let here = l::AT_FDCWD as u64;
    let changed = root.call(l::__NR_renameat2, &[here, paths[0], here, paths[1], flags]);
    given_back::no_limit();
    assert_eq!(changed, 0);
    assert_eq!(root.contents("/tmp/file"), b"old");
    assert_eq!(root.contents("/tmp/full/0"), b"kept");
}
