//! The archive that the root of the Linux programs' file system begins with.

use linux_raw_sys::general as linux;

use crate::common::World;
use crate::common::caller::Program;

/// Frames of the world; a megabyte is enough for what small archives hold.
const FRAMES: usize = 512;
/// Deeper than this nobody walks.
const DEPTH: usize = 8;

/// Unpacks an archive; what came of it can be listed and read, and the server goes on.
pub fn archive(bytes: &[u8]) -> bool {
    let world = World::with_frames(FRAMES);
    let accepted = unix::fs::unpack(&world.unix, bytes).is_ok();
    let program = Program::new(&world, &world.first);
    walk(&program, "/", DEPTH);
    accepted
}

fn walk(program: &Program<'_>, path: &str, depth: usize) {
    let open = program.open(path, linux::O_RDONLY | linux::O_DIRECTORY, 0);
    let Ok(directory) = u64::try_from(open) else { return };
    let names = program.list(directory, 4096);
    program.close(directory);
    for name in names.iter().filter(|name| *name != "." && *name != "..") {
        // A name that is not text is listed as another one, which is not there.
        let path = format!("{path}{name}");
        let Ok(stat) = program.stat(&path) else { continue };
        match stat.mode() & linux::S_IFMT {
            // What the server makes itself has no size before it is read.
            linux::S_IFDIR if depth > 0 && path != "/proc" && path != "/sys" => {
                walk(program, &format!("{path}/"), depth - 1)
            }
            linux::S_IFREG => {
                let fd = program.open(&path, linux::O_RDONLY, 0);
                assert!(fd >= 0, "{path} is there and cannot be opened: {fd}");
                let read = program.call(linux::__NR_read, &[fd as u64, program.buffer, 4096]);
                assert_eq!(read as u64, stat.size().min(4096), "{path}");
                program.close(fd as u64);
            }
            linux::S_IFLNK => {
                let read = program.on(linux::__NR_readlink, &path, &[program.buffer, 4096]);
                assert_eq!(read as u64, stat.size(), "{path}");
            }
            _ => {}
        }
    }
}
