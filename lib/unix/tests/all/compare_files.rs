//! The same random calls on files, made to Linux below this test and to the server: every
//! result, error and byte read must be the same.
//!
//! `UNIX_COMPARE_CALLS` and `UNIX_COMPARE_SEED` make a longer or another run.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use crate::common::World;
use crate::common::caller::{Program, entries};
use crate::common::file_calls::{Arg, Random, choose};
use linux_raw_sys::general as linux;

/// Bytes of a transfer's buffer.
const BUFFER: usize = 64 * 1024;
/// Descriptors that are open at most.
const OPEN_MAX: usize = 6;

/// The last calls, for a message.
fn recent(history: &[String]) -> String {
    history[history.len().saturating_sub(setting("UNIX_COMPARE_HISTORY", 30) as usize)..].join("\n")
}

/// Both worlds.
struct Both<'a> {
    program: Program<'a>,
    /// Linux's descriptor and the server's of the base directory.
    base: (u64, u64),
    files: Vec<(u64, u64)>,
    buffer: Vec<u8>,
    /// Something was reserved with `fallocate`.
    reserved: bool,
    /// Where paths are put for Linux.
    paths: [CString; 2],
}

impl Both<'_> {
    fn host(&mut self, number: u32, arguments: &[Arg]) -> i64 {
        let mut values = [0_u64; 6];
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = match argument {
                Arg::Number(number) => *number,
                Arg::Path(path) => {
                    self.paths[0] = CString::new(path.as_bytes()).unwrap();
                    self.paths[0].as_ptr() as u64
                }
                Arg::Second(path) => {
                    self.paths[1] = CString::new(path.as_bytes()).unwrap();
                    self.paths[1].as_ptr() as u64
                }
                Arg::Base => self.base.0,
                Arg::File(index) => self.files.get(*index).map_or(999, |pair| pair.0),
                Arg::Buffer => self.buffer.as_mut_ptr() as u64,
                Arg::Words(words) => {
                    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    self.buffer[..bytes.len()].copy_from_slice(&bytes);
                    self.buffer.as_mut_ptr() as u64
                }
            };
        }
        let [a, b, c, d, e, f] = values;
        // SAFETY: the calls are those below, with buffers as long as they say.
        let result = unsafe { libc::syscall(i64::from(number), a, b, c, d, e, f) };
        if result < 0 {
            return -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap());
        }
        result
    }

    fn server(&self, number: u32, arguments: &[Arg]) -> i64 {
        let program = &self.program;
        let mut values = Vec::new();
        for argument in arguments {
            values.push(match argument {
                Arg::Number(number) => *number,
                Arg::Path(path) => program.path(0, path.as_bytes()),
                Arg::Second(path) => program.path(1, path.as_bytes()),
                Arg::Base => self.base.1,
                Arg::File(index) => self.files.get(*index).map_or(999, |pair| pair.1),
                Arg::Buffer => program.buffer,
                Arg::Words(words) => {
                    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    program.world.write(&program.thread, program.buffer, &bytes);
                    program.buffer
                }
            });
        }
        program.call(number, &values)
    }

    fn server_buffer(&self, len: usize) -> Vec<u8> {
        self.program.world.read(&self.program.thread, self.program.buffer, len)
    }

    /// Makes a call on both sides; the result, which is the same.
    fn call(&mut self, number: u32, arguments: &[Arg], history: &[String]) -> i64 {
        let host = self.host(number, arguments);
        let server = self.server(number, arguments);
        assert_eq!(
            server.min(if opens(number) { 0 } else { i64::MAX }),
            host.min(if opens(number) { 0 } else { i64::MAX }),
            "call {number} {arguments:?} after\n{}",
            recent(history)
        );
        if opens(number) && host >= 0 {
            self.files.push((host as u64, server as u64));
        }
        host
    }
}

fn opens(number: u32) -> bool {
    number == linux::__NR_openat
}

/// What of `struct stat` both sides must agree on.
fn comparable(stat: &[u8], numbers: &mut Vec<u64>) {
    let word = |at: usize| u64::from_le_bytes(stat[at..at + 8].try_into().unwrap());
    let mode = word(24) & 0xffff_ffff;
    // Links, mode, size, blocks, and the seconds of the times that utimensat sets.
    numbers.extend([word(16), mode, word(48), word(64)]);
    // (Pipes with names do not keep times of reading and writing.)
    let is_pipe = mode as u32 & linux::S_IFMT == linux::S_IFIFO;
    let set = |seconds: u64| if seconds < 100 && !is_pipe { seconds } else { 0 };
    numbers.extend([set(word(72)), set(word(88))]);
}

/// How many bytes of the buffer a call has filled.
fn filled(number: u32, result: i64) -> usize {
    let fills = [linux::__NR_read, linux::__NR_pread64, linux::__NR_readlinkat].contains(&number);
    if fills && result > 0 { result as usize } else { 0 }
}

impl Both<'_> {
    /// Compares what a path and an open file are, and a directory's names.
    fn look(&mut self, random: &mut Random, history: &mut Vec<String>) {
        let flag = random.of(&[0, linux::AT_SYMLINK_NOFOLLOW]);
        let file = random.below(self.files.len() as u64 + 1) as usize;
        let calls = [
            (
                linux::__NR_newfstatat,
                vec![Arg::Base, Arg::Path(random.path()), Arg::Buffer, Arg::Number(flag.into())],
            ),
            (linux::__NR_fstat, vec![Arg::File(file), Arg::Buffer]),
        ];
        for (number, arguments) in calls {
            let result = self.call(number, &arguments, history);
            history.push(format!("{number} {arguments:?} = {result}"));
            if result == 0 {
                let (mut host, mut server) = (Vec::new(), Vec::new());
                comparable(&self.buffer[..144], &mut host);
                comparable(&self.server_buffer(144), &mut server);
                history.push(format!("    {host:?}"));
                assert_eq!(server, host, "{arguments:?} after\n{}", recent(history));
            }
        }
        let arguments = [Arg::File(file), Arg::Buffer, Arg::Number(8192)];
        // From the beginning: what is made behind the end is seen by some versions of Linux only.
        if self.is_directory(&arguments[0]) {
            let start = [Arg::File(file), Arg::Number(0), Arg::Number(0)];
            self.call(linux::__NR_lseek, &start, history);
        }
        let host = self.host(linux::__NR_getdents64, &arguments);
        let server = self.server(linux::__NR_getdents64, &arguments);
        history.push(format!("getdents64 {file} = {host} and {server}"));
        assert_eq!(server.min(0), host.min(0), "getdents64 after\n{}", recent(history));
        let mut names = [
            entries(&self.buffer[..host.max(0) as usize]),
            entries(&self.server_buffer(server.max(0) as usize)),
        ];
        names.iter_mut().for_each(|names| names.sort());
        assert_eq!(names[1], names[0], "names after\n{}", recent(history));
    }

    /// Whether an open file is of this type.
    fn is(&mut self, file: &Arg, file_type: u32) -> bool {
        let stat = [file.clone(), Arg::Buffer];
        let mode = |buffer: &[u8]| u32::from_le_bytes(buffer[24..28].try_into().unwrap());
        self.host(linux::__NR_fstat, &stat) == 0 && mode(&self.buffer) & linux::S_IFMT == file_type
    }

    /// Linux's number of an open file's inode.
    fn inode(&mut self, file: &Arg) -> Option<u64> {
        let stat = [file.clone(), Arg::Buffer];
        (self.host(linux::__NR_fstat, &stat) == 0)
            .then(|| u64::from_le_bytes(self.buffer[8..16].try_into().unwrap()))
    }

    fn is_directory(&mut self, file: &Arg) -> bool {
        self.is(file, linux::S_IFDIR)
    }

    fn step(&mut self, random: &mut Random, history: &mut Vec<String>) {
        if self.files.len() >= OPEN_MAX {
            let index = random.below(OPEN_MAX as u64) as usize;
            history.push(format!("close {index}"));
            self.call(linux::__NR_close, &[Arg::File(index)], history);
            self.files.remove(index);
        }
        let (number, mut arguments) = choose(random, self.files.len());
        if number == linux::__NR_sendfile && self.is_directory(&arguments[1]) {
            // Refused, but some versions of Linux count it as reading the directory.
            arguments[1] = Arg::Number(999);
        }
        if number == linux::__NR_sendfile && self.is(&arguments[0], linux::S_IFIFO) {
            // Linux shows in the pipe what is written to the file later.
            arguments[0] = Arg::Number(999);
        }
        if number == linux::__NR_sendfile && self.inode(&arguments[0]) == self.inode(&arguments[1])
        {
            // Linux may read what it has just written.
            arguments[0] = Arg::Number(999);
        }
        if number == linux::__NR_lseek && self.is_directory(&arguments[0]) {
            // Positions in directories mean nothing, except the beginning.
            arguments[1..].fill(Arg::Number(0));
        } else if number == linux::__NR_lseek && self.reserved {
            // What is reserved and not written is a hole for Linux's tmpfs, but not here.
            arguments[2] = Arg::Number(random.below(3));
        }
        if [linux::__NR_write, linux::__NR_pwrite64].contains(&number) {
            let byte = random.below(256) as u8;
            self.buffer.fill(byte);
            let (program, bytes) = (&self.program, vec![byte; BUFFER]);
            program.world.write(&program.thread, program.buffer, &bytes);
        }
        history.push(format!("{number} {arguments:?}"));
        let result = self.call(number, &arguments, history);
        self.reserved |= number == linux::__NR_fallocate && result == 0;
        let len = filled(number, result);
        let (host, server) = (&self.buffer[..len], self.server_buffer(len));
        assert!(host == server, "bytes read differ after\n{}", recent(history));
        let line = format!("{} = {result}", history.last().unwrap());
        *history.last_mut().unwrap() = line;
        if random.below(3) == 0 {
            self.look(random, history);
        }
        if history.len() > 400 {
            history.drain(..200);
        }
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn linux_and_the_server_agree() {
    let memory = std::path::Path::new("/dev/shm");
    if !memory.is_dir() {
        eprintln!("not compared: /dev/shm, whose behaviour is compared with, is not there");
        return;
    }
    let seed = setting("UNIX_COMPARE_SEED", 1);
    for round in 0..setting("UNIX_COMPARE_CALLS", 30_000).div_ceil(3000) {
        let name = format!("unix-compare-{}-{round}", std::process::id());
        let above = memory.join(name);
        let inner = above.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        compare(&inner, seed * 1_000_003 + round);
        let chmod = std::process::Command::new("chmod").args(["-R", "u+rwx"]).arg(&above).status();
        assert!(chmod.unwrap().success());
        std::fs::remove_dir_all(&above).unwrap();
    }
}

fn compare(directory: &std::path::Path, seed: u64) {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.mkdir("/tmp/above");
    program.mkdir("/tmp/above/inner");
    // SAFETY: asks only who runs this.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    for path in ["/tmp/above", "/tmp/above/inner"] {
        assert_eq!(program.on(linux::__NR_chown, path, &[uid.into(), gid.into()]), 0);
    }
    assert_eq!(program.call(linux::__NR_setresgid, &[gid.into(); 3]), 0);
    assert_eq!(program.call(linux::__NR_setresuid, &[uid.into(); 3]), 0);
    let server = program.opened("/tmp/above/inner", linux::O_RDONLY | linux::O_DIRECTORY);
    let path = CString::new(directory.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends with a zero byte.
    let host = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY) };
    assert!(host >= 0);
    // SAFETY: sets only the mask that new files of this process are made with.
    unsafe { libc::umask(0o022) };
    let mut both = Both {
        program,
        base: (host as u64, server),
        files: Vec::new(),
        buffer: vec![0; BUFFER],
        reserved: false,
        paths: Default::default(),
    };
    let mut random = Random(seed);
    let mut history = Vec::new();
    for _ in 0..3000 {
        both.step(&mut random, &mut history);
    }
    for index in (0..both.files.len()).rev() {
        both.call(linux::__NR_close, &[Arg::File(index)], &history);
    }
    // SAFETY: opened above, and not used any more.
    unsafe { libc::close(host) };
}
