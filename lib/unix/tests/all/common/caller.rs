//! A process of the test world that works with files: its calls by name, with paths as
//! text.

use std::rc::Rc;

use linux_raw_sys::general as linux;
use unix::thread::Thread;

use crate::common::World;

pub const RDONLY: u32 = linux::O_RDONLY;
pub const RDWR: u32 = linux::O_RDWR;
pub const CREAT: u32 = linux::O_CREAT;

/// What a refused call returns.
pub fn error(errno: u32) -> i64 {
    -i64::from(errno)
}

/// Bytes of a program's buffer.
pub const BUFFER: usize = 128 * 1024;

/// A process and places in its memory.
pub struct Program<'a> {
    pub world: &'a World,
    pub thread: Rc<Thread>,
    paths: [u64; 2],
    pub buffer: u64,
}

impl<'a> Program<'a> {
    /// Makes the calls of `thread`.
    pub fn new(world: &'a World, thread: &Rc<Thread>) -> Self {
        let paths = [world.scratch(thread, 8192), world.scratch(thread, 8192)];
        let buffer = world.scratch(thread, BUFFER);
        Self { world, thread: thread.clone(), paths, buffer }
    }

    /// Where the scratch area begins.
    pub fn scratch(&self) -> u64 {
        self.paths[0]
    }

    /// A child with its own memory.
    pub fn fork(&self) -> Self {
        let thread = self.world.fork(&self.thread);
        Self { world: self.world, thread, paths: self.paths, buffer: self.buffer }
    }

    /// Another process with the same memory layout makes the same calls.
    pub fn with(&self, thread: &Rc<Thread>) -> Self {
        let (world, thread) = (self.world, thread.clone());
        Self { world, thread, paths: self.paths, buffer: self.buffer }
    }

    /// The result of a call that does not wait; negative is an error.
    #[track_caller]
    pub fn call(&self, number: u32, arguments: &[u64]) -> i64 {
        self.world.now(&self.thread, number, arguments) as i64
    }

    /// Puts a path where it can be passed from.
    pub fn path(&self, which: usize, path: &[u8]) -> u64 {
        self.world.write(&self.thread, self.paths[which], path);
        self.world.write(&self.thread, self.paths[which] + path.len() as u64, &[0]);
        self.paths[which]
    }

    /// A call whose first argument is a path.
    #[track_caller]
    pub fn on(&self, number: u32, path: &str, rest: &[u64]) -> i64 {
        let mut arguments = vec![self.path(0, path.as_bytes())];
        arguments.extend_from_slice(rest);
        self.call(number, &arguments)
    }

    /// A call on two paths.
    #[track_caller]
    pub fn on_two(&self, number: u32, first: &str, second: &str) -> i64 {
        let paths = [self.path(0, first.as_bytes()), self.path(1, second.as_bytes())];
        self.call(number, &paths)
    }

    #[track_caller]
    pub fn open(&self, path: &str, flags: u32, mode: u32) -> i64 {
        self.on(linux::__NR_open, path, &[flags.into(), mode.into()])
    }

    /// Opens what must be there (or can be made).
    #[track_caller]
    pub fn opened(&self, path: &str, flags: u32) -> u64 {
        let fd = self.open(path, flags, 0o644);
        assert!(fd >= 0, "open {path:?}: {fd}");
        fd as u64
    }

    #[track_caller]
    pub fn close(&self, fd: u64) {
        assert_eq!(self.call(linux::__NR_close, &[fd]), 0);
    }

    #[track_caller]
    pub fn write(&self, fd: u64, bytes: &[u8]) -> i64 {
        self.world.write(&self.thread, self.buffer, bytes);
        self.call(linux::__NR_write, &[fd, self.buffer, bytes.len() as u64])
    }

    #[track_caller]
    pub fn read(&self, fd: u64, len: usize) -> Vec<u8> {
        let read = self.call(linux::__NR_read, &[fd, self.buffer, len as u64]);
        assert!(read >= 0, "read: {read}");
        self.world.read(&self.thread, self.buffer, read as usize)
    }

    /// All of a file.
    #[track_caller]
    pub fn contents(&self, path: &str) -> Vec<u8> {
        let fd = self.opened(path, linux::O_RDONLY);
        let mut all = Vec::new();
        loop {
            let piece = self.read(fd, BUFFER);
            if piece.is_empty() {
                break;
            }
            all.extend(piece);
        }
        self.close(fd);
        all
    }

    /// Makes a file with these contents.
    #[track_caller]
    pub fn make(&self, path: &str, contents: &[u8]) {
        let fd = self.opened(path, linux::O_WRONLY | linux::O_CREAT | linux::O_TRUNC);
        assert_eq!(self.write(fd, contents), contents.len() as i64);
        self.close(fd);
    }

    #[track_caller]
    pub fn mkdir(&self, path: &str) {
        assert_eq!(self.on(linux::__NR_mkdir, path, &[0o755]), 0, "mkdir {path:?}");
    }

    /// Words of `struct stat`, or the error.
    #[track_caller]
    pub fn stat(&self, path: &str) -> Result<Stat, i64> {
        match self.on(linux::__NR_lstat, path, &[self.buffer]) {
            0 => Ok(Stat(self.world.read(&self.thread, self.buffer, 144))),
            error => Err(error),
        }
    }

    /// What a symbolic link says.
    #[track_caller]
    pub fn readlink(&self, path: &str) -> String {
        let len = self.on(linux::__NR_readlink, path, &[self.buffer, 4096]);
        assert!(len >= 0, "readlink {path:?}: {len}");
        let text = self.world.read(&self.thread, self.buffer, len as usize);
        String::from_utf8(text).unwrap()
    }

    /// The names in a directory, in their order.
    #[track_caller]
    pub fn names(&self, path: &str) -> Vec<String> {
        let fd = self.opened(path, linux::O_RDONLY | linux::O_DIRECTORY);
        let names = self.list(fd, 4096);
        self.close(fd);
        names.into_iter().filter(|name| name != "." && name != "..").collect()
    }

    /// The names that an open directory still has to give, read `size` bytes at a time.
    #[track_caller]
    pub fn list(&self, fd: u64, size: u64) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            let len = self.call(linux::__NR_getdents64, &[fd, self.buffer, size]);
            assert!(len >= 0, "getdents64: {len}");
            if len == 0 {
                return names;
            }
            names.extend(entries(&self.world.read(&self.thread, self.buffer, len as usize)));
        }
    }

    #[track_caller]
    pub fn cwd(&self) -> String {
        let len = self.call(linux::__NR_getcwd, &[self.buffer, 4096]);
        assert!(len > 0, "getcwd: {len}");
        let text = self.world.read(&self.thread, self.buffer, len as usize - 1);
        String::from_utf8(text).unwrap()
    }

    /// Becomes user and group 1000.
    pub fn lose_privileges(&self) {
        assert_eq!(self.call(linux::__NR_setresgid, &[1000; 3]), 0);
        assert_eq!(self.call(linux::__NR_setresuid, &[1000; 3]), 0);
    }
}

/// The names in `getdents64`'s records.
pub fn entries(mut bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while bytes.len() >= 19 {
        let len = usize::from(u16::from_le_bytes([bytes[16], bytes[17]]));
        let name = bytes[19..len].split(|byte| *byte == 0).next().unwrap();
        names.push(String::from_utf8_lossy(name).into_owned());
        bytes = &bytes[len..];
    }
    names
}

/// `struct stat` as bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat(pub Vec<u8>);

impl Stat {
    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap())
    }
    pub fn inode(&self) -> u64 {
        self.word(8)
    }
    pub fn links(&self) -> u64 {
        self.word(16)
    }
    pub fn mode(&self) -> u32 {
        self.word(24) as u32
    }
    pub fn owner(&self) -> (u32, u32) {
        let both = self.word(28);
        (both as u32, (both >> 32) as u32)
    }
    pub fn size(&self) -> u64 {
        self.word(48)
    }
    pub fn blocks(&self) -> u64 {
        self.word(64)
    }
}
