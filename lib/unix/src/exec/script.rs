//! Scripts: the line `#! INTERPRETER [ARGUMENT]`.

use crate::errno::Errno;

/// Bytes of a file that are looked at.
pub const HEAD: usize = 256;

/// What the first line says: interpreter and argument.
#[derive(PartialEq, Eq, Debug)]
pub struct Line<'a> {
    /// Path of the interpreter.
    pub interpreter: &'a [u8],
    /// The rest of the line, one argument.
    pub argument: Option<&'a [u8]>,
}

const fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Reads the first line of a file whose first bytes are `head` (all of the file if fewer
/// than [`HEAD`]); `None` if it is no script.
///
/// # Errors
/// `ENOEXEC` for a line without interpreter, or one that may have been cut off.
pub fn parse(head: &[u8]) -> Result<Option<Line<'_>>, Errno> {
    let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
    let end = line.iter().position(|byte| *byte == b'\n');
    let text = &line[..end.unwrap_or(line.len())];
    let text = text.trim_ascii_start_blank();
    let name_end = text.iter().position(|byte| is_blank(*byte) || *byte == 0);
    // Without an end of the line or the name, the name may go on behind what was read.
    if end.is_none() && name_end.is_none() && head.len() >= HEAD {
        return Err(Errno::ENOEXEC);
    }
    let (interpreter, rest) = text.split_at(name_end.unwrap_or(text.len()));
    if interpreter.is_empty() {
        return Err(Errno::ENOEXEC);
    }
    let rest = &rest[..rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len())];
    let rest = rest.trim_ascii_start_blank();
    let last = rest.iter().rposition(|byte| !is_blank(*byte));
    let argument = last.map(|last| &rest[..=last]);
    Ok(Some(Line { interpreter, argument }))
}

trait Trim {
    fn trim_ascii_start_blank(&self) -> &[u8];
}

impl Trim for [u8] {
    fn trim_ascii_start_blank(&self) -> &[u8] {
        let start = self.iter().position(|byte| !is_blank(*byte)).unwrap_or(self.len());
        &self[start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(
        interpreter: &'a str,
        argument: Option<&'a str>,
    ) -> Result<Option<Line<'a>>, Errno> {
        let interpreter = interpreter.as_bytes();
        Ok(Some(Line { interpreter, argument: argument.map(str::as_bytes) }))
    }

    #[test]
    fn lines_are_divided_as_linux_does() {
        assert_eq!(parse(b"#!/bin/sh\necho"), line("/bin/sh", None));
        assert_eq!(parse(b"#! \t/bin/sh -e -x \t\n"), line("/bin/sh", Some("-e -x")));
        assert_eq!(parse(b"#!/bin/sh"), line("/bin/sh", None));
        assert_eq!(parse(b"\x7fELF"), Ok(None));
        assert_eq!(parse(b""), Ok(None));
        assert_eq!(parse(b"#!\n"), Err(Errno::ENOEXEC));
        assert_eq!(parse(b"#!   \n"), Err(Errno::ENOEXEC));
    }

    #[test]
    fn a_name_that_is_cut_off_is_refused_but_an_argument_is_not() {
        let mut head = [b'a'; HEAD];
        head[..2].copy_from_slice(b"#!");
        assert_eq!(parse(&head), Err(Errno::ENOEXEC));
        head[10] = b' ';
        let parsed = parse(&head).unwrap().unwrap();
        assert_eq!(parsed.interpreter.len(), 8);
        assert_eq!(parsed.argument.map(<[u8]>::len), Some(HEAD - 11));
    }
}
