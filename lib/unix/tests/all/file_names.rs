//! Paths, names and directories, as programs see them.

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDONLY, RDWR, entries, error};
use linux_raw_sys::errno;
use linux_raw_sys::general as linux;
use unix::errno::Errno;

#[test]
fn paths_are_refused_as_linux_refuses_them() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.mkdir("/tmp/dir");
    program.make("/tmp/file", b"x");
    for (link, text) in [("loop", "loop"), ("dangling", "nothing"), ("there", "file"), ("d", "dir")]
    {
        assert_eq!(program.on_two(linux::__NR_symlink, text, &format!("/tmp/{link}")), 0);
    }
    let long = format!("/tmp/{}", "n".repeat(256));
    let longest = format!("/tmp/{}", "n".repeat(255));
    for (path, flags, expected) in [
        ("", RDONLY, errno::ENOENT),
        ("/tmp/none", RDONLY, errno::ENOENT),
        ("/tmp/none/file", RDONLY, errno::ENOENT),
        ("/tmp/none/", RDWR | CREAT, errno::EISDIR),
        ("/tmp/file/", RDONLY, errno::ENOTDIR),
        ("/tmp/file/x", RDONLY, errno::ENOTDIR),
        ("/tmp/file/../file", RDONLY, errno::ENOTDIR),
        ("/tmp/loop", RDONLY, errno::ELOOP),
        ("/tmp/loop/x", RDONLY, errno::ELOOP),
        ("/tmp/dangling", RDONLY, errno::ENOENT),
        ("/tmp/dangling", RDWR | CREAT | linux::O_EXCL, errno::EEXIST),
        ("/tmp/there", RDONLY | linux::O_NOFOLLOW, errno::ELOOP),
        ("/tmp/there", RDONLY | linux::O_NOFOLLOW | linux::O_DIRECTORY, errno::ENOTDIR),
        ("/tmp/there/", RDONLY, errno::ENOTDIR),
        ("/tmp/dir", RDWR, errno::EISDIR),
        ("/tmp/dir", RDONLY | CREAT, errno::EISDIR),
        ("/tmp/.", RDONLY | CREAT, errno::EISDIR),
        ("/tmp/file", RDONLY | linux::O_DIRECTORY, errno::ENOTDIR),
        (&long, RDONLY, errno::ENAMETOOLONG),
        (&long, RDWR | CREAT, errno::ENAMETOOLONG),
        (&longest, RDONLY, errno::ENOENT),
    ] {
        assert_eq!(program.open(path, flags, 0o600), error(expected), "{path:?} {flags:#o}");
    }
    for path in ["/tmp/d/", "/tmp/d/.", "//tmp//d/..", "/tmp/d/../file", "/../../tmp/there"] {
        program.close(program.opened(path, RDONLY));
    }
    let fd = program.opened("/tmp/dangling", RDWR | CREAT);
    program.close(fd);
    assert!(program.stat("/tmp/nothing").is_ok());
    let path = "/tmp/".repeat(819) + "x";
    assert_eq!(path.len(), 4096);
    assert_eq!(program.open(&path, RDONLY, 0), error(errno::ENAMETOOLONG));
    assert_eq!(program.call(linux::__NR_open, &[8, 0]), error(errno::EFAULT));
}

#[test]
fn forty_links_are_followed_and_no_more() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.make("/tmp/l0", b"found");
    for number in 1..=41 {
        let text = format!("l{}", number - 1);
        assert_eq!(program.on_two(linux::__NR_symlink, &text, &format!("/tmp/l{number}")), 0);
    }
    assert_eq!(program.contents("/tmp/l40"), b"found");
    assert_eq!(program.open("/tmp/l41", RDONLY, 0), error(errno::ELOOP));
    assert_eq!(program.readlink("/tmp/l41"), "l40");
    assert_eq!(program.stat("/tmp/l41").unwrap().size(), 3);
}

#[test]
fn names_are_made_and_removed() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let links = |path: &str| program.stat(path).unwrap().links();
    program.mkdir("/tmp/a");
    program.mkdir("/tmp/a/b");
    assert_eq!((links("/tmp/a"), links("/tmp/a/b")), (3, 2));
    assert_eq!(program.on(linux::__NR_rmdir, "/tmp/a", &[]), error(errno::ENOTEMPTY));
    assert_eq!(program.on(linux::__NR_rmdir, "/tmp/a/.", &[]), error(errno::EINVAL));
    assert_eq!(program.on(linux::__NR_rmdir, "/tmp/a/..", &[]), error(errno::ENOTEMPTY));
    assert_eq!(program.on(linux::__NR_rmdir, "/", &[]), error(errno::EBUSY));
    assert_eq!(program.on(linux::__NR_rmdir, "/proc", &[]), error(errno::EBUSY));
    assert_eq!(program.on(linux::__NR_unlink, "/tmp/a", &[]), error(errno::EISDIR));
    assert_eq!(program.on(linux::__NR_mkdir, "/tmp/a/", &[0o755]), error(errno::EEXIST));
    program.make("/tmp/f", b"");
    assert_eq!(program.on(linux::__NR_rmdir, "/tmp/f", &[]), error(errno::ENOTDIR));
    assert_eq!(program.on(linux::__NR_unlink, "/tmp/f/", &[]), error(errno::ENOTDIR));
    assert_eq!(program.on_two(linux::__NR_link, "/tmp/f", "/tmp/g"), 0);
    assert_eq!(links("/tmp/g"), 2);
    assert_eq!(program.on_two(linux::__NR_link, "/tmp/f", "/tmp/g"), error(errno::EEXIST));
    assert_eq!(program.on_two(linux::__NR_link, "/tmp/a", "/tmp/h"), error(errno::EPERM));
    assert_eq!(program.on_two(linux::__NR_link, "/tmp/f", "/dev/h"), error(errno::EXDEV));
    assert_eq!(program.on(linux::__NR_unlink, "/tmp/f", &[]), 0);
    assert_eq!(links("/tmp/g"), 1);
    assert_eq!(program.on(linux::__NR_rmdir, "/tmp/a/b/", &[]), 0);
    assert_eq!(links("/tmp/a"), 2);
    assert_eq!(program.on(linux::__NR_mknod, "/tmp/p", &[0o010_600, 0]), 0);
    assert_eq!(program.stat("/tmp/p").unwrap().mode(), linux::S_IFIFO | 0o600);
}

#[test]
fn directories_are_listed_newest_first_whatever_goes() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.mkdir("/tmp/dir");
    for number in 0..100 {
        program.make(&format!("/tmp/dir/{number}"), b"");
    }
    let expected: Vec<_> = (0..100).rev().map(|number| number.to_string()).collect();
    assert_eq!(program.names("/tmp/dir"), expected);
    // Removing everything while reading, in small pieces, finds everything.
    let fd = program.opened("/tmp/dir", RDONLY);
    let mut seen = Vec::new();
    loop {
        let len = program.call(linux::__NR_getdents64, &[fd, program.buffer, 96]);
        if len == 0 {
            break;
        }
        let bytes = world.read(&world.first, program.buffer, len as usize);
        for name in entries(&bytes) {
            if name != "." && name != ".." {
                assert_eq!(program.on(linux::__NR_unlink, &format!("/tmp/dir/{name}"), &[]), 0);
            }
            seen.push(name);
        }
    }
    assert_eq!(seen.len(), 102);
    assert!(program.names("/tmp/dir").is_empty());
    assert_eq!(program.call(linux::__NR_getdents64, &[fd, program.buffer, 8]), 0);
    assert_eq!(program.call(linux::__NR_lseek, &[fd, 0, 0]), 0);
    assert_eq!(
        program.call(linux::__NR_getdents64, &[fd, program.buffer, 8]),
        error(errno::EINVAL)
    );
    assert_eq!(program.on(linux::__NR_rmdir, "/tmp/dir", &[]), 0);
    assert_eq!(
        program.call(linux::__NR_getdents64, &[fd, program.buffer, 4096]),
        error(errno::ENOENT)
    );
}

#[test]
fn renaming_replaces_and_moves() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let rename = |old: &str, new: &str| program.on_two(linux::__NR_rename, old, new);
    for directory in ["/tmp/a", "/tmp/a/sub", "/tmp/b", "/tmp/full", "/tmp/full/x"] {
        program.mkdir(directory);
    }
    program.make("/tmp/f", b"one");
    program.make("/tmp/g", b"two");
    assert_eq!(rename("/tmp/f", "/tmp/g"), 0);
    assert_eq!(program.contents("/tmp/g"), b"one");
    assert_eq!(rename("/tmp/f", "/tmp/h"), error(errno::ENOENT));
    assert_eq!(rename("/tmp/a", "/tmp/a/sub/x"), error(errno::EINVAL));
    assert_eq!(rename("/tmp/a/sub", "/tmp/a"), error(errno::ENOTEMPTY));
    assert_eq!(rename("/tmp/a", "/tmp/full"), error(errno::ENOTEMPTY));
    assert_eq!(rename("/tmp/a", "/tmp/g"), error(errno::ENOTDIR));
    assert_eq!(rename("/tmp/g", "/tmp/a"), error(errno::EISDIR));
    assert_eq!(rename("/tmp/g", "/tmp/x/"), error(errno::ENOTDIR));
    assert_eq!(rename("/tmp/a/.", "/tmp/x"), error(errno::EBUSY));
    assert_eq!(rename("/tmp/g", "/proc/g"), error(errno::EXDEV));
    assert_eq!(rename("/dev", "/dev2"), error(errno::EBUSY));
    assert_eq!(rename("/tmp/a/sub", "/tmp/b/sub"), 0);
    assert_eq!(program.stat("/tmp/a").unwrap().links(), 2);
    assert_eq!(program.stat("/tmp/b").unwrap().links(), 3);
    assert_eq!(program.on(linux::__NR_chdir, "/tmp/b/sub", &[]), 0);
    assert_eq!(rename("/tmp/b", "/tmp/a"), 0);
    assert_eq!(program.cwd(), "/tmp/a/sub");
    assert_eq!(rename("../../g", "g"), 0);
    assert_eq!(program.contents("/tmp/a/sub/g"), b"one");
    let exchange = |old: &str, new: &str, flags: u64| {
        let paths = [program.path(0, old.as_bytes()), program.path(1, new.as_bytes())];
        let here = linux::AT_FDCWD as u64;
        program.call(linux::__NR_renameat2, &[here, paths[0], here, paths[1], flags])
    };
    assert_eq!(exchange("g", "/tmp/full", 2), 0);
    assert_eq!(program.contents("/tmp/full"), b"one");
    assert_eq!(program.names("g"), ["x"]);
    assert_eq!(exchange("/tmp/full", "/tmp/a", 1), error(errno::EEXIST));
    assert_eq!(exchange("/tmp/full", "/tmp/new", 2), error(errno::ENOENT));
    assert_eq!(exchange("/tmp/full", "/tmp/new", 1), 0);
    assert_eq!(exchange("/tmp/new", "/tmp/full", 3), error(errno::EINVAL));
}

/// Asks for a handle, in a record of its own.
struct Handles<'a> {
    world: &'a World,
    record: u64,
    mount: u64,
}

const HERE: u64 = linux::AT_FDCWD as u64;

impl<'a> Handles<'a> {
    fn new(world: &'a World) -> Self {
        let first = &world.first;
        world.ok(first, linux::__NR_chdir, &[world.text(first, "/tmp")]);
        let (record, mount) = (world.words(first, &[128, 0]), world.scratch(first, 8));
        Self { world, record, mount }
    }

    fn name(&self, at: u64, path: u64, flags: u32) -> [u64; 5] {
        [at, path, self.record, self.mount, flags.into()]
    }

    #[track_caller]
    fn take(&self, at: u64, path: u64, flags: u32) {
        let arguments = self.name(at, path, flags);
        self.world.ok(&self.world.first, linux::__NR_name_to_handle_at, &arguments);
    }

    #[track_caller]
    fn not_taken(&self, path: u64, flags: u32, errno: Errno) {
        let arguments = self.name(HERE, path, flags);
        self.world.refused(&self.world.first, linux::__NR_name_to_handle_at, &arguments, errno);
    }

    #[track_caller]
    fn not_opened(&self, mount: u64, errno: Errno) {
        let arguments = [mount, self.record, 0];
        self.world.refused(&self.world.first, linux::__NR_open_by_handle_at, &arguments, errno);
    }
}

#[test]
fn handles_open_files_without_their_names() {
    let world = World::new();
    let first = &world.first;
    let handles = Handles::new(&world);
    let path = world.text(first, "f");
    let file = world.ok(first, linux::__NR_open, &[path, 0o102, 0o600]);
    handles.take(HERE, path, 0);
    assert_eq!(world.read_u32(first, handles.record), 8);
    let open = |flags: u64| [HERE, handles.record, flags];
    let other = world.ok(first, linux::__NR_open_by_handle_at, &open(2));
    let text = world.put(first, b"text");
    assert_eq!(world.ok(first, linux::__NR_write, &[other, text, 4]), 4);
    assert_eq!(world.ok(first, linux::__NR_read, &[file, text, 8]), 4);
    // The file of a descriptor, a link itself, what it leads to.
    handles.take(file, world.text(first, ""), linux::AT_EMPTY_PATH);
    let link = world.text(first, "l");
    world.ok(first, linux::__NR_symlink, &[path, link]);
    handles.take(HERE, link, 0);
    handles.not_opened(HERE, Errno::ELOOP);
    handles.take(HERE, link, linux::AT_SYMLINK_FOLLOW);
    world.ok(first, linux::__NR_open_by_handle_at, &open(0));
    // What is gone is stale, and only who may read everything opens.
    let user = world.fork(first);
    world.ok(&user, linux::__NR_setresuid, &[1000, 1000, 1000]);
    world.refused(&user, linux::__NR_open_by_handle_at, &open(0), Errno::EPERM);
    world.ok(first, linux::__NR_unlink, &[path]);
    handles.not_opened(HERE, Errno::ESTALE);
}

#[test]
fn handles_are_checked() {
    let world = World::new();
    let first = &world.first;
    let handles = Handles::new(&world);
    let path = world.text(first, "f");
    world.ok(first, linux::__NR_creat, &[path, 0o600]);
    world.write(first, handles.record, &[0; 4]);
    handles.not_opened(HERE, Errno::EINVAL);
    handles.not_taken(path, 0, Errno::EOVERFLOW);
    assert_eq!(world.read_u32(first, handles.record), 8);
    world.write(first, handles.record, &[129]);
    handles.not_taken(path, 0, Errno::EINVAL);
    handles.not_taken(path, 1 << 30, Errno::EINVAL);
    handles.not_taken(3, 0, Errno::EFAULT);
    let proc = world.text(first, "/proc");
    handles.not_taken(proc, 0, Errno::EOPNOTSUPP);
    // Another file system, and a file that nobody has taken a handle of.
    world.write(first, handles.record, &[8]);
    handles.take(HERE, path, 0);
    handles.not_opened(world.ok(first, linux::__NR_open, &[proc, 0]), Errno::ESTALE);
    world.write(first, handles.record + 8, &[0xFF; 8]);
    handles.not_opened(HERE, Errno::ESTALE);
    handles.not_opened(99, Errno::EBADF);
}
