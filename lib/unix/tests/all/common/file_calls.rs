//! Random calls on files, of which two systems must answer each in the same way.

use linux_raw_sys::general as linux;

use Arg::{Base, Buffer, File, Number, Path, Second, Words};

/// An argument of a call, as both sides understand it.
#[derive(Clone, Debug)]
pub enum Arg {
    Number(u64),
    Path(String),
    Second(String),
    /// The base directory's descriptor.
    Base,
    /// An open file, by its place in the list.
    File(usize),
    /// The transfer buffer.
    Buffer,
    /// The same buffer, filled with these words before the call.
    Words(Vec<u64>),
}

/// Numbers that look random, the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
    pub fn of<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
    pub fn name(&mut self) -> String {
        self.of(&["a", "b", "c", "d"]).to_string()
    }
    pub fn path(&mut self) -> String {
        let mut path = self.name();
        for _ in 0..self.of(&[0, 0, 0, 1, 1, 2]) {
            path.push('/');
            path.push_str(&self.name());
        }
        path.push_str(self.of(&["", "", "", "", "", "", "/", "/.", "/..", "//"]));
        match self.below(60) {
            0 => String::new(),
            1 => "n".repeat(256),
            2 => format!("{path}/x"),
            _ => path,
        }
    }
    pub fn offset(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(3) * 4096,
            1 => self.below(20_000),
            2 => 1 << 20,
            _ => self.below(100),
        }
    }
}

/// A call: its number and arguments.
pub type Call = (u32, Vec<Arg>);

fn number(value: u32) -> Arg {
    Arg::Number(value.into())
}

/// One random call, with `open` files open.
pub fn choose(random: &mut Random, open: usize) -> Call {
    match random.below(24) {
        0..=3 => opening(random),
        4..=12 => naming(random),
        13..=16 => attributes(random),
        _ => contents(random, open),
    }
}

fn opening(random: &mut Random) -> Call {
    let mut flags = random.of(&[0, 1, 2, 2, 2]) | linux::O_NONBLOCK;
    for flag in [linux::O_CREAT, linux::O_CREAT, linux::O_EXCL, linux::O_TRUNC] {
        flags |= if random.below(2) == 0 { flag } else { 0 };
    }
    for flag in [
        linux::O_APPEND,
        linux::O_DIRECTORY,
        linux::O_NOFOLLOW,
        linux::O_PATH,
        linux::O_TMPFILE,
        linux::O_NOATIME,
    ] {
        flags |= if random.below(12) == 0 { flag } else { 0 };
    }
    let mode = random.of(&[0o644, 0o600, 0o7777, 0]);
    (linux::__NR_openat, vec![Base, Path(random.path()), number(flags), Number(mode)])
}

fn naming(random: &mut Random) -> Call {
    match random.below(9) {
        0 | 1 => (linux::__NR_mkdirat, vec![Base, Path(random.path()), Number(0o777)]),
        2 | 3 => {
            let flag = random.of(&[0, 0, linux::AT_REMOVEDIR]);
            (linux::__NR_unlinkat, vec![Base, Path(random.path()), number(flag)])
        }
        4 => {
            let flag = random.of(&[0, linux::AT_SYMLINK_FOLLOW]);
            let paths = [Path(random.path()), Second(random.path())];
            let [old, new] = paths;
            (linux::__NR_linkat, vec![Base, old, Base, new, number(flag)])
        }
        5 => {
            let text = random.of(&["a", "b", "c", "d", "b/a", "../b", "a/", "./c", "nothing"]);
            (linux::__NR_symlinkat, vec![Path(text.into()), Base, Second(random.path())])
        }
        6 | 7 => {
            let flags = random.of(&[0, 0, 0, 1, 2, 3]);
            let (old, new) = (Path(random.path()), Second(random.path()));
            (linux::__NR_renameat2, vec![Base, old, Base, new, Number(flags)])
        }
        _ => {
            let size = random.of(&[100, 100, 2]);
            (linux::__NR_readlinkat, vec![Base, Path(random.path()), Buffer, Number(size)])
        }
    }
}

fn attributes(random: &mut Random) -> Call {
    match random.below(4) {
        0 => {
            let mode = random.of(&[0o777, 0o600, 0o4755, 0o2755, 0o1777]);
            (linux::__NR_fchmodat, vec![Base, Path(random.path()), Number(mode)])
        }
        1 => {
            let mode = random.of(&[0, 1, 2, 4, 7, 8]);
            (linux::__NR_faccessat, vec![Base, Path(random.path()), Number(mode)])
        }
        2 => {
            let omit = u64::from(linux::UTIME_OMIT);
            let times =
                random.of(&[[5, 6, 7, 8], [9, 0, 1, omit], [9, omit, 1, 3], [1, 1 << 40, 1, 1]]);
            let flag = random.of(&[0, linux::AT_SYMLINK_NOFOLLOW]);
            let times = Words(times.to_vec());
            (linux::__NR_utimensat, vec![Base, Path(random.path()), times, number(flag)])
        }
        _ => (
            linux::__NR_mknodat,
            vec![
                Base,
                Path(random.path()),
                number(
                    random.of(&[linux::S_IFIFO, linux::S_IFREG, 0, linux::S_IFDIR, 0o170_000])
                        | 0o644,
                ),
                Number(0),
            ],
        ),
    }
}

fn contents(random: &mut Random, open: usize) -> Call {
    let file = File(random.below(open as u64 + 1) as usize);
    let len = random.of(&[0, 1, 100, 4096, 5000, 9000]);
    match random.below(7) {
        0 => (linux::__NR_pread64, vec![file, Buffer, Number(len), Number(random.offset())]),
        1 => (linux::__NR_pwrite64, vec![file, Buffer, Number(len), Number(random.offset())]),
        2 => {
            let call = random.of(&[linux::__NR_read, linux::__NR_write]);
            (call, vec![file, Buffer, Number(len)])
        }
        3 => {
            let offset = random.of(&[0, 1, 4096, 5000, u64::MAX, 1 << 40]);
            (linux::__NR_lseek, vec![file, Number(offset), Number(random.below(6))])
        }
        4 => (linux::__NR_ftruncate, vec![file, Number(random.offset())]),
        5 => {
            let mode = random.of(&[0, 1, 3, 3, 2, 16]);
            let (offset, len) = (random.offset(), random.of(&[0, 1, 4096, 10_000]));
            (linux::__NR_fallocate, vec![file, Number(mode), Number(offset), Number(len)])
        }
        _ => {
            let to = File(random.below(open as u64 + 1) as usize);
            match random.below(3) {
                0 => (linux::__NR_sendfile, vec![to, file, Number(0), Number(len.max(1))]),
                1 => (linux::__NR_fcntl, vec![file, number(linux::F_GETFL)]),
                _ => (
                    linux::__NR_copy_file_range,
                    vec![file, Number(0), to, Number(0), Number(len), Number(0)],
                ),
            }
        }
    }
}
