//! Which ports an I/O instruction touches: enough of the encoding to turn a
//! protection fault into an I/O fault message (X.2 6.3; Intel SDM 2A, IN, INS, OUT, OUTS).

use abi::Fpage;

/// The ports that the instruction `code` accesses, `dx` being the DX register, as
/// the smallest flexpage that covers them; `None` if it is no I/O instruction.
#[must_use]
pub fn ports(code: &[u8], dx: u16) -> Option<Fpage> {
    let mut word_size = false;
    let mut rest = code;
    while let Some((
        &prefix @ (0x26 | 0x2E | 0x36 | 0x3E | 0x40..=0x4F | 0x64..=0x67 | 0xF2 | 0xF3),
        tail,
    )) = rest.split_first()
    {
        word_size |= prefix == 0x66;
        rest = tail;
    }
    let (&opcode, tail) = rest.split_first()?;
    let port = match opcode {
        0xE4..=0xE7 => u16::from(*tail.first()?),
        0x6C..=0x6F | 0xEC..=0xEF => dx,
        _ => return None,
    };
    let last = port.saturating_add(match (opcode & 1, word_size) {
        (0, _) => 0,
        (_, true) => 1,
        _ => 3,
    });
    // The smallest aligned range with both ends in it.
    Some(Fpage::io(port, 16 - (port ^ last).leading_zeros()))
}

#[cfg(test)]
mod tests {
    use super::ports;
    use abi::Fpage;

    #[test]
    fn forms() {
        assert_eq!(ports(&[0xEE], 0x3F8), Some(Fpage::io(0x3F8, 0)));
        assert_eq!(ports(&[0xE4, 0x60], 0), Some(Fpage::io(0x60, 0)));
        assert_eq!(ports(&[0x66, 0xEF], 0x10), Some(Fpage::io(0x10, 1)));
        assert_eq!(ports(&[0xED], 0xCFC), Some(Fpage::io(0xCFC, 2)));
        assert_eq!(ports(&[0xF3, 0x6C], 0x1F0), Some(Fpage::io(0x1F0, 0)));
        assert_eq!(
            ports(&[0xED], 0x3FE),
            Some(Fpage::io(0, 11)),
            "misaligned: the range that covers both ends"
        );
        assert_eq!(ports(&[0x90], 0), None);
        assert_eq!(ports(&[0xE4], 0), None, "cut off");
        assert_eq!(ports(&[], 0), None);
    }
}
