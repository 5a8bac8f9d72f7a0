//! Instructions that tell where the processor's tables are, and about its mode: refused where
//! the processor can (UMIP), and of no use where it cannot.

use abi::protocol::exception as reg;

use crate::report::{Outcome, Sentence, case};
use crate::victim::{Event, Registers, Victim, registers};
use crate::{check, machine, same};

/// Where the kernel's image can be.
const IMAGE: core::ops::Range<u64> = 0xFFFF_FFFF_8000_0000..0xFFFF_FFFF_9FE0_0000;

/// Runs the tests.
pub fn run() {
    case("descriptor_tables_give_no_place_away", places);
}

fn places() -> Outcome {
    let victim = Victim::task()?;
    let is_refused = machine::cpuid(7, 0)[2] >> 2 & 1 != 0;
    let cases: [(&str, &[u8]); 5] = [
        ("sgdt", &[0x0F, 0x01, 0x03]),
        ("sidt", &[0x0F, 0x01, 0x0B]),
        ("smsw", &[0x0F, 0x01, 0xE0]),
        ("sldt", &[0x0F, 0x00, 0xC0]),
        ("str", &[0x0F, 0x00, 0xC8]),
    ];
    for (name, code) in cases {
        let regs = with_data(&victim);
        if is_refused {
            match victim.run(code, regs)? {
                Event::Exception(seen) => same!(name, seen[reg::VECTOR], 13),
                other => return Err(Sentence::new(format_args!("{name} led to {other:x?}"))),
            }
            victim.abandon()?;
            continue;
        }
        victim.exec(code, regs)?;
        if name.ends_with("dt") && name != "sldt" {
            // Two bytes of limit, then the address.
            let (low, high) = (machine::read(victim.data()), machine::read(victim.data() + 8));
            let table = low >> 16 | high << 48;
            check!(!IMAGE.contains(&table), "{name} tells a place of the image: {table:#x}");
        }
    }
    victim.delete()
}

fn with_data(victim: &Victim) -> Registers {
    let mut regs = registers();
    regs[reg::RBX] = victim.data();
    regs
}
