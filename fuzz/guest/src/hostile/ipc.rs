//! Messages of all kinds, well formed and not.

use abi::layout::stub;
use abi::{Acceptor, MsgTag, StringItem, utcb};

use super::{Me, PLAYGROUND};
use crate::call::{self, MRS, Registers, reg};
use crate::machine;

impl Me {
    /// The address of word `index` of the thread's UTCB, counted from U.
    fn slot(&self, index: isize) -> u64 {
        self.utcb.wrapping_add_signed(index as i64 * 8)
    }

    pub(super) fn set_mr(&self, registers: &mut Registers, index: usize, value: u64) {
        match MRS.get(index) {
            Some(register) => registers[*register] = value,
            None => machine::write(self.slot((index & 63) as isize), value),
        }
    }

    /// The registers of an IPC with a random receive phase.
    fn ipc(&mut self, tag: MsgTag) -> Registers {
        let mut registers = [0; 15];
        for register in MRS {
            registers[register] = self.word();
        }
        let to = self.partner();
        registers[reg::R9] = tag.0;
        registers[reg::RSI] = to;
        registers[reg::RDX] = match self.rng.below(3) {
            0 => 0,
            _ => self.source(to),
        };
        registers[reg::R8] = if self.rng.one_in(8) { self.patient() } else { self.timeouts() };
        registers[reg::RDI] = if self.rng.one_in(32) { self.word() } else { self.utcb };
        registers
    }

    pub(super) fn send(&mut self, registers: Registers) {
        let result = if self.rng.one_in(3) {
            self.stub(registers, stub::IPC)
        } else {
            self.call(registers, call::trap())
        };
        self.answer_import(&result);
    }

    fn tag(&mut self, untyped: u64, typed: u64) -> MsgTag {
        let tag = MsgTag::new(self.rng.word() >> 16, untyped as u32, typed as u32);
        match self.rng.below(16) {
            0 => MsgTag(self.word()),
            1 => self.propagated(tag),
            2 => tag.with(self.rng.below(16) << 12),
            _ => tag,
        }
    }

    pub(super) fn propagated(&mut self, tag: MsgTag) -> MsgTag {
        let sender = self.thread();
        machine::write(self.slot(utcb::VIRTUAL_SENDER), sender);
        tag.with(MsgTag::PROPAGATED)
    }

    pub(super) fn short_message(&mut self) {
        let untyped = self.rng.below(8);
        let tag = self.tag(untyped, 0);
        let mut registers = self.ipc(tag);
        // Often what the fast path takes: for ever, from the partner or from all.
        if self.rng.one_in(2) {
            registers[reg::R8] = self.patient();
        }
        self.send(registers);
    }

    pub(super) fn long_message(&mut self) {
        let untyped = self.rng.below(64);
        let typed = if self.rng.one_in(4) { self.rng.below(64) } else { 0 };
        let tag = self.tag(untyped, typed);
        let mut registers = self.ipc(tag);
        for index in 1..=untyped as usize {
            let word = self.word();
            self.set_mr(&mut registers, index, word);
        }
        self.send(registers);
    }

    pub(super) fn local_message(&mut self) {
        let tag = self.tag(3, 0);
        let mut registers = self.ipc(tag);
        registers[reg::RSI] = super::area_of(self.utcb) + 512 + self.rng.below(4) * 1024;
        if self.rng.one_in(2) {
            registers[reg::RDX] = registers[reg::RSI];
        }
        let links = [
            stub::IPC,
            stub::LIPC,
            stub::LOCAL_CALL,
            stub::LOCAL_REPLY_WAIT,
            stub::LOCAL_CALL_ONE,
            stub::LOCAL_ONWARD,
        ];
        let link = links[self.rng.below(links.len() as u64) as usize];
        if self.rng.one_in(8) {
            self.lie_about_waits(registers[reg::RSI]);
        }
        self.stub(registers, link);
    }

    /// What the kernel and the stubs' path read of local IPC: in the own UTCB, in that of the thread
    /// with local id `partner`, in the current word.
    fn lie_about_waits(&mut self, partner: u64) {
        let number = self.rng.below(4) as u32;
        let lies = [
            0,
            8,
            !0,
            64_u64.wrapping_neg(),
            utcb::lipc_open(number),
            utcb::lipc_open(0),
            utcb::lipc_open_local(number),
            utcb::LIPC_CLOSED,
            utcb::LIPC_KEEPS,
            partner,
            self.utcb,
            self.rng.word(),
        ];
        let places = [utcb::LIPC_WAIT, utcb::LIPC_SP, utcb::LIPC_STATE, utcb::LIPC_CURRENT];
        let lie = lies[self.rng.below(lies.len() as u64) as usize];
        let whose = if self.rng.one_in(2) { partner } else { self.utcb };
        let place = places[self.rng.below(places.len() as u64) as usize];
        machine::write(whose.wrapping_add_signed(place as i64 * 8), lie);
        if self.rng.one_in(4) {
            machine::write_current_word(lie);
        }
    }

    /// A string item into message registers from `at`; returns the index behind it.
    fn string_item(&mut self, registers: &mut Registers, at: usize, faulting: bool) -> usize {
        let pieces = if self.rng.one_in(3) { 1 + self.rng.below(4) } else { 1 };
        let continued = self.rng.one_in(6);
        let header = StringItem::new(self.length(), pieces as u32, continued).0
            | self.rng.below(2)
            | if self.rng.one_in(32) { self.rng.word() } else { 0 };
        self.set_mr(registers, at, header);
        for piece in 0..pieces as usize {
            let address = if faulting { self.hole() } else { self.place() };
            self.set_mr(registers, at + 1 + piece, address);
        }
        at + 1 + pieces as usize
    }

    /// An address where a page is likely to be missing.
    fn hole(&mut self) -> u64 {
        PLAYGROUND + self.rng.below(1 << 10) * 4096 + 4096 - self.rng.below(64)
    }

    pub(super) fn string_message(&mut self, faulting: bool) {
        let untyped = self.rng.below(4) as usize;
        let mut registers = self.ipc(MsgTag(0));
        let mut at = untyped + 1;
        for _ in 0..1 + self.rng.below(3) {
            at = self.string_item(&mut registers, at, faulting);
        }
        if self.rng.one_in(4) {
            self.buffers();
        }
        let tag = self.tag(untyped as u64, (at - untyped - 1) as u64);
        registers[reg::R9] = tag.0;
        let limits = self.timeouts();
        machine::write(self.slot(utcb::XFER_TIMEOUTS), limits);
        self.send(registers);
    }

    pub(super) fn map_message(&mut self) {
        let untyped = self.rng.below(3) as usize;
        let items = 1 + self.rng.below_either(4, 6, 2) as usize;
        let mut registers = self.ipc(MsgTag(0));
        for item in 0..items {
            let kind = match self.rng.below(16) {
                0 => self.rng.below(16),
                1..=4 => 0xA,
                _ => 8,
            };
            let base = if self.rng.one_in(16) { self.word() } else { self.place() } & !0x3FF;
            let fpage = self.fpage();
            self.set_mr(&mut registers, untyped + 1 + item * 2, base | kind);
            self.set_mr(&mut registers, untyped + 2 + item * 2, fpage);
        }
        let tag = self.tag(untyped as u64, items as u64 * 2);
        registers[reg::R9] = tag.0;
        if self.rng.one_in(4) {
            self.accept();
        }
        self.send(registers);
    }

    /// Random buffers for strings.
    fn buffers(&mut self) {
        let window = self.window();
        machine::write(self.slot(utcb::BR0), Acceptor(window & !0xF).0 | 1);
        let mut at = 1;
        for _ in 0..1 + self.rng.below(4) {
            let pieces = 1 + self.rng.below(3);
            let more = u64::from(!self.rng.one_in(3));
            let header = StringItem::new(self.length(), pieces as u32, self.rng.one_in(5)).0 | more;
            self.set_br(at, header);
            for piece in 0..pieces {
                let place = if self.rng.one_in(4) { self.hole() } else { self.place() };
                self.set_br(at + 1 + piece as isize, place);
            }
            at += 1 + pieces as isize;
        }
    }

    fn set_br(&self, index: isize, value: u64) {
        machine::write(self.slot(utcb::BR0 - index), value);
    }

    pub(super) fn accept(&mut self) {
        match self.rng.below(4) {
            0 => {
                let window = self.window();
                machine::write(self.slot(utcb::BR0), window & !0xF);
            }
            _ => self.buffers(),
        }
    }

    pub(super) fn receive(&mut self) {
        self.accept();
        let limits = self.timeouts();
        machine::write(self.slot(utcb::XFER_TIMEOUTS), limits);
        let mut registers = self.ipc(MsgTag(0));
        registers[reg::RSI] = 0;
        let partner = self.partner();
        registers[reg::RDX] = self.source(partner);
        self.send(registers);
    }

    /// Random words into the UTCB of this thread or a neighbour, in use or not.
    pub(super) fn scribble(&mut self) {
        let whose = if self.rng.one_in(2) {
            self.utcb
        } else {
            super::area_of(self.utcb) + 512 + self.rng.below(8) * 1024
        };
        let words = 1 + self.rng.below(64);
        self.note([whose, words]);
        for _ in 0..words {
            let index = self.rng.below(128) as i64 - 64;
            let word = self.word();
            machine::write(whose.wrapping_add_signed(index * 8), word);
        }
        self.commit();
    }

    pub(super) fn sleep(&mut self) {
        let mut registers = self.ipc(MsgTag(0));
        registers[reg::RSI] = 0;
        registers[reg::RDX] = machine::read(self.slot(utcb::MY_GLOBAL_ID));
        registers[reg::R8] = u64::from(abi::Time::micros(self.rng.below(1_000)).0);
        self.send(registers);
    }
}
