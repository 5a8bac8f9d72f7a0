//! Text of a stranger, made harmless for a terminal.

/// Calls `put` with the bytes of `text` as a terminal may get them: line ends, tabs and what
/// can be seen. Control characters, what turns the writing direction or has no width, and
/// bytes that are not UTF-8 appear as `\x1b` and `\u202e`. A carriage return before a line's
/// end is left out.
pub fn visible(text: &[u8], mut put: impl FnMut(&[u8])) {
    let mut rest = text;
    for chunk in text.utf8_chunks() {
        for (at, char) in chunk.valid().char_indices() {
            let len = char.len_utf8();
            match char {
                '\n' | '\t' => put(&[char as u8]),
                '\r' if chunk.valid()[at + 1..].starts_with('\n') => {}
                _ if char.is_ascii_control() => escape(char as u8, &mut put),
                _ if is_invisible(char) => escape_wide(char as u32, &mut put),
                _ => put(&rest[at..at + len]),
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(*byte, &mut put));
        rest = &rest[chunk.valid().len() + chunk.invalid().len()..];
    }
}

fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

fn digit(value: u32) -> u8 {
    b"0123456789abcdef"[value as usize & 15]
}

fn escape(byte: u8, put: &mut impl FnMut(&[u8])) {
    put(&[b'\\', b'x', digit(u32::from(byte) >> 4), digit(byte.into())]);
}

fn escape_wide(code: u32, put: &mut impl FnMut(&[u8])) {
    put(&[b'\\', b'u', digit(code >> 12), digit(code >> 8), digit(code >> 4), digit(code)]);
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::String;
    use std::vec::Vec;

    fn shown(text: &[u8]) -> String {
        let mut out = Vec::new();
        super::visible(text, |bytes| out.extend_from_slice(bytes));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_stays_what_it_is() {
        for text in ["", "a line\n\tµs, §, 日本\n", "\n\n"] {
            assert_eq!(shown(text.as_bytes()), text);
        }
        assert_eq!(shown(b"dos\r\nunix\n"), "dos\nunix\n");
    }

    #[test]
    fn nothing_reaches_the_terminal_that_it_obeys() {
        assert_eq!(shown(b"\x1b[2J\x07\x7f\rover"), "\\x1b[2J\\x07\\x7f\\x0dover");
        assert_eq!(shown(b"a\x9b31m\xff\n"), "a\\x9b31m\\xff\n");
        assert_eq!(shown("\u{9b}2J\u{202e}x\u{feff}".as_bytes()), "\\u009b2J\\u202ex\\ufeff");
        for byte in 0..=255_u8 {
            let all = shown(&[byte]);
            assert!(all.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{byte}");
        }
    }
}
