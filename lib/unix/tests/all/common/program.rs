//! ELF files and archives made for the tests.

#![allow(dead_code)]

/// A loadable segment: address, bytes in the file, bytes in memory, flags (1 execute,
/// 2 write, 4 read).
pub struct Load<'a>(pub u64, pub &'a [u8], pub u64, pub u32);

/// What else an ELF file has.
#[derive(Default)]
pub struct Extra<'a> {
    pub dynamic: bool,
    pub interpreter: Option<&'a str>,
    pub executable_stack: bool,
}

const HEADER: usize = 64;
const SEGMENT: usize = 56;

fn segment(kind: u32, flags: u32, offset: u64, address: u64, len: u64, memory: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    for word in [offset, address, address, len, memory, 4096] {
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

/// An ELF file that begins at `entry`. Segments lie in the file at offsets that fit their
/// addresses, the first one with the headers before it.
pub fn elf(entry: u64, loads: &[Load], extra: &Extra) -> Vec<u8> {
    let count = loads.len() + 1 + usize::from(extra.interpreter.is_some());
    let mut body = vec![0; HEADER + SEGMENT * count];
    let mut headers = Vec::new();
    if let Some(path) = extra.interpreter {
        let len = path.len() as u64 + 1;
        headers.extend(segment(3, 4, body.len() as u64, body.len() as u64, len, len));
        body.extend(path.as_bytes());
        body.push(0);
    }
    for Load(address, bytes, memory, flags) in loads {
        while body.len() as u64 % 4096 != address % 4096 {
            body.push(0);
        }
        let (offset, len) = (body.len() as u64, bytes.len() as u64);
        headers.extend(segment(1, *flags, offset, *address, len, *memory));
        body.extend(*bytes);
    }
    let stack = if extra.executable_stack { 7 } else { 6 };
    headers.extend(segment(0x6474_e551, stack, 0, 0, 0, 0));
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    header.extend(if extra.dynamic { 3_u16 } else { 2 }.to_le_bytes());
    header.extend(62_u16.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend(entry.to_le_bytes());
    header.extend(64_u64.to_le_bytes());
    header.extend([0; 12]);
    for half in [64_u16, 56, count as u16, 64, 0, 0] {
        header.extend(half.to_le_bytes());
    }
    body[..HEADER].copy_from_slice(&header);
    body[HEADER..HEADER + headers.len()].copy_from_slice(&headers);
    body
}

/// A file of an archive: path, mode, contents.
pub struct Member<'a>(pub &'a str, pub u32, pub &'a [u8]);

/// A newc archive.
pub fn archive(members: &[Member]) -> Vec<u8> {
    let mut all = Vec::new();
    let end = Member("TRAILER!!!", 0, b"");
    for (number, Member(path, mode, bytes)) in members.iter().chain([&end]).enumerate() {
        let fields = [
            number as u32 + 1,
            *mode,
            0,
            0,
            1,
            0,
            bytes.len() as u32,
            0,
            0,
            0,
            0,
            path.len() as u32 + 1,
            0,
        ];
        all.extend(b"070701");
        all.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
        all.extend(path.as_bytes());
        all.push(0);
        all.resize(all.len().next_multiple_of(4), 0);
        all.extend(*bytes);
        all.resize(all.len().next_multiple_of(4), 0);
    }
    all
}
