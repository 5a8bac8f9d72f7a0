//! A victim reads and writes: its UTCB, other memory, and what it must not.

use abi::protocol::exception as reg;
use abi::utcb;
use runtime::space::Fault;

use super::{Event, LOAD, STORE, Victim, at};
use crate::report::{Outcome, Sentence};
use crate::same;

impl Victim {
    /// Reads word `index` of its UTCB (`abi::utcb`).
    pub fn word(&self, index: isize) -> Outcome<u64> {
        self.load(self.utcb.wrapping_add_signed(index as i64 * 8))
    }

    /// Writes word `index` of its UTCB.
    pub fn set_word(&self, index: isize, value: u64) -> Outcome {
        self.store(self.utcb.wrapping_add_signed(index as i64 * 8), value)
    }

    /// Its error code.
    pub fn error_code(&self) -> Outcome<u64> {
        self.word(utcb::ERROR_CODE)
    }

    /// Lets it read the word at `address`.
    pub fn load(&self, address: u64) -> Outcome<u64> {
        let regs = self.exec(LOAD, at(address, 0))?;
        Ok(regs[reg::RAX])
    }

    /// Lets it write the word at `address`.
    pub fn store(&self, address: u64, value: u64) -> Outcome {
        self.exec(STORE, at(address, value)).map(|_| ())
    }

    /// The page fault that reading at `address` causes; `None` if it reads.
    pub fn load_fault(&self, address: u64) -> Outcome<Option<Fault>> {
        self.fault_of(LOAD, address)
    }

    /// The page fault that writing at `address` causes; `None` if it writes.
    pub fn store_fault(&self, address: u64) -> Outcome<Option<Fault>> {
        self.fault_of(STORE, address)
    }

    fn fault_of(&self, code: &[u8], address: u64) -> Outcome<Option<Fault>> {
        match self.run(code, at(address, 0))? {
            Event::PageFault(fault) => {
                same!("the fault's address", fault.address, address);
                same!("the fault's instruction pointer", fault.ip, self.code());
                self.abandon()?;
                Ok(Some(fault))
            }
            Event::Exception(regs) if regs[reg::RIP] == self.code() + code.len() as u64 => Ok(None),
            other => {
                Err(Sentence::new(format_args!("an access to {address:#x} led to {other:x?}")))
            }
        }
    }
}
