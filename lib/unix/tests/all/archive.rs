//! The archive that the root is made of: good ones, and ones that are not.

use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as linux;

/// What an entry of the archive is: name, mode, links, inode, contents.
type Entry<'a> = (&'a str, u32, u32, u32, &'a [u8]);

fn archive(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, mode, links, inode, contents) in entries.iter().chain([&END]) {
        let fields =
            [*inode, *mode, 0, 0, *links, 1_000_000_000, contents.len() as u32, 8, 1, 1, 3];
        bytes.extend(b"070701");
        for field in fields.into_iter().chain([name.len() as u32 + 1, 0]) {
            bytes.extend(format!("{field:08X}").bytes());
        }
        bytes.extend(name.bytes().chain([0]));
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(*contents);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

const END: Entry = ("TRAILER!!!", 0, 1, 0, b"");

fn example() -> Vec<u8> {
    archive(&[
        (".", 0o040_711, 5, 1, b""),
        ("bin", 0o040_755, 2, 2, b""),
        ("bin/busybox", 0o100_755, 2, 3, b""),
        ("bin/sh", 0o100_755, 2, 3, b"#!the program"),
        ("bin/ls", 0o120_777, 1, 4, b"busybox"),
        ("dev", 0o040_755, 2, 5, b""),
        ("dev/own", 0o020_640, 1, 6, b""),
        ("./etc/deep/file", 0o100_600, 1, 7, &[9; 10_000]),
        ("pipe", 0o010_644, 1, 8, b""),
    ])
}

#[test]
fn an_archive_becomes_the_root() {
    let world = World::new();
    unix::fs::unpack(&world.unix, &[example(), vec![0; 512], example()].concat()).unwrap();
    let program = Program::new(&world, &world.first);
    assert_eq!(program.contents("/bin/busybox"), b"#!the program");
    let (one, two) = (program.stat("/bin/busybox").unwrap(), program.stat("/bin/sh").unwrap());
    assert_eq!((one.inode(), one.links(), one.mode()), (two.inode(), 2, linux::S_IFREG | 0o755));
    assert_eq!(one.0[88..96], 1_000_000_000_u64.to_le_bytes());
    assert_eq!(program.readlink("/bin/ls"), "busybox");
    assert_eq!(program.contents("/etc/deep/file"), [9; 10_000]);
    assert_eq!(program.stat("/").unwrap().mode(), linux::S_IFDIR | 0o711);
    assert_eq!(program.stat("/pipe").unwrap().mode(), linux::S_IFIFO | 0o644);
    assert_eq!(program.stat("/dev/own").unwrap().mode(), linux::S_IFCHR | 0o640);
    assert!(program.stat("/dev/null").is_ok(), "what /dev had before stays");
}

#[test]
fn a_bad_archive_is_refused_with_a_sentence() {
    let world = World::new();
    for (name, mode, why) in [
        ("a/../../b", 0o100_644, "\"..\" leads out"),
        ("bin", 0o100_644, "there is a directory of that name"),
        ("bin/busybox/x", 0o100_644, "is not a directory that can be changed"),
        ("strange", 0o170_000, "there is no file type"),
        ("link", 0o120_777, "a symbolic link leads to"),
        (&"n".repeat(300), 0o100_644, "longer than 255"),
    ] {
        unix::fs::unpack(&world.unix, &example()).unwrap();
        let refused = unix::fs::unpack(&world.unix, &archive(&[(name, mode, 1, 99, b"")]));
        let sentence = refused.expect_err(name);
        assert!(sentence.contains(why), "{sentence}");
    }
    let text = b"Neither an archive nor anything like it. ".repeat(5);
    let sentence = unix::fs::unpack(&world.unix, &text).unwrap_err();
    assert!(sentence.contains("cpio -o -H newc"), "{sentence}");
    let large = vec![1; 70 << 20];
    let sentence = unix::fs::unpack(&world.unix, &archive(&[("large", 0o100_644, 1, 1, &large)]));
    assert!(sentence.unwrap_err().contains("do not fit into memory"));
}

#[test]
fn no_archive_brings_the_server_down() {
    let good = example();
    let world = World::new();
    for len in 0..good.len() {
        let _ = unix::fs::unpack(&world.unix, &good[..len]);
    }
    let mut random = 1_u64;
    for _ in 0..3000 {
        let mut bad = good.clone();
        for _ in 0..3 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (random >> 33) as usize % bad.len();
            bad[at] = b"0123456789abcdefF/.\0"[(random >> 20) as usize % 20];
        }
        let _ = unix::fs::unpack(&world.unix, &bad);
    }
    let program = Program::new(&world, &world.first);
    program.make("/tmp/still", b"there");
    assert_eq!(program.contents("/tmp/still"), b"there");
}
