//! Decodes one file into pieces (functions and data) with what each refers to,
//! and the system calls that each makes.
//!
//! A piece reaches from one address that somebody refers to up to the next. Jumps
//! inside a function begin no piece, so that what a table of jumps reaches stays
//! with its function.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

use super::object::{Filled, Image, Section};

/// Instructions that are looked back at for a call's number.
const LOOK_BACK: usize = 24;
/// The C library's function that makes any call.
const WRAPPER: &str = "syscall";

/// A place where a system call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Number {
    /// This one.
    Known(u32),
    /// Computed at run time.
    Unknown(u64),
}

/// A function or a piece of data.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// Pieces of the same file that it refers to, by where they begin.
    pub addresses: BTreeSet<u64>,
    /// Names that it refers to.
    pub symbols: BTreeSet<String>,
    /// System calls that it makes itself.
    pub calls: BTreeSet<Number>,
}

/// All pieces of a file, by where they begin.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    pieces: BTreeMap<u64, Piece>,
}

/// What an instruction or a word refers to, from where.
struct Reference {
    from: u64,
    to: u64,
    /// A jump, which begins no piece.
    jump: bool,
}

/// Everything found in one pass.
#[derive(Default)]
struct Found {
    references: Vec<Reference>,
    names: Vec<(u64, String)>,
    calls: Vec<(u64, Number)>,
    /// Every instruction but padding, and whether what follows it is run, too.
    ends: Vec<(u64, bool)>,
}

impl Pieces {
    /// Decodes `image`.
    #[must_use]
    pub fn of(image: &Image) -> Self {
        let mut found = Found::default();
        for section in &image.sections {
            if section.code {
                found.code(image, section);
            } else if image.fixed {
                found.words(image, section);
            }
        }
        for (at, filled) in &image.filled {
            match filled {
                Filled::Address(to) => found.refer(*at, *to, false),
                Filled::Symbol(name) => found.names.push((*at, name.clone())),
            }
        }
        found.collect(image)
    }

    /// The piece that `address` is in, and where it begins.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<(u64, &Piece)> {
        self.pieces.range(..=address).next_back().map(|(start, piece)| (*start, piece))
    }

    fn at_mut(&mut self, address: u64) -> Option<&mut Piece> {
        self.pieces.range_mut(..=address).next_back().map(|(_, piece)| piece)
    }
}

impl Found {
    fn refer(&mut self, from: u64, to: u64, jump: bool) {
        self.references.push(Reference { from, to, jump });
    }

    /// Decodes a section from its beginning to its end.
    fn code(&mut self, image: &Image, section: &Section) {
        let decoder =
            Decoder::with_ip(64, &section.bytes, section.range.start, DecoderOptions::NONE);
        let mut before: Vec<Instruction> = Vec::new();
        for instruction in decoder {
            let at = instruction.ip();
            if matches!(instruction.code(), Code::Syscall) {
                let number =
                    constant(&before, Register::RAX).map_or(Number::Unknown(at), Number::Known);
                self.calls.push((at, number));
            }
            self.targets(image, &instruction);
            if calls_wrapper(image, &instruction) {
                let number =
                    constant(&before, Register::RDI).map_or(Number::Unknown(at), Number::Known);
                self.calls.push((at, number));
            }
            if !is_padding(&instruction) {
                self.ends.push((at, runs_on(&instruction)));
            }
            if before.len() == LOOK_BACK {
                before.remove(0);
            }
            before.push(instruction);
        }
    }

    /// What one instruction refers to.
    fn targets(&mut self, image: &Image, instruction: &Instruction) {
        let at = instruction.ip();
        for operand in 0..instruction.op_count() {
            match instruction.op_kind(operand) {
                OpKind::NearBranch64 => {
                    let is_call = instruction.flow_control() == FlowControl::Call;
                    self.refer(at, instruction.near_branch_target(), !is_call);
                }
                OpKind::Memory if instruction.is_ip_rel_memory_operand() => {
                    self.refer(at, instruction.ip_rel_memory_address(), false);
                }
                OpKind::Memory if image.fixed => {
                    self.absolute(image, at, instruction.memory_displacement64());
                }
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
                    if image.fixed =>
                {
                    self.absolute(image, at, instruction.immediate(operand));
                }
                _ => {}
            }
        }
    }

    /// A number that may be an address of a program at a fixed place.
    fn absolute(&mut self, image: &Image, at: u64, value: u64) {
        if image.has(value) {
            self.refer(at, value, false);
        }
    }

    /// Words that may be addresses.
    fn words(&mut self, image: &Image, section: &Section) {
        for (address, word) in section.range.clone().step_by(8).zip(section.bytes.chunks_exact(8)) {
            let value = u64::from_le_bytes(word.try_into().unwrap_or_default());
            self.absolute(image, address, value);
        }
    }

    /// Cuts the file at what is referred to, and gives each piece its own.
    fn collect(self, image: &Image) -> Pieces {
        let mut pieces = Pieces::default();
        let sections = image.sections.iter().map(|section| section.range.start);
        let named = image.symbols.values().copied();
        let referred = self.references.iter().filter(|r| !r.jump).map(|r| r.to);
        let starts = sections.chain(named).chain(referred).chain([image.entry]);
        for start in starts.chain(image.at_start.iter().copied()).filter(|at| image.has(*at)) {
            pieces.pieces.entry(start).or_default();
        }
        for reference in self.references {
            let to = pieces.at(reference.to).map(|(start, _)| start);
            if let (Some(to), true) = (to, image.has(reference.to))
                && let Some(piece) = pieces.at_mut(reference.from)
            {
                piece.addresses.insert(to);
            }
        }
        for (at, name) in self.names {
            pieces.at_mut(at).map(|piece| piece.symbols.insert(name));
        }
        for (at, number) in self.calls {
            pieces.at_mut(at).map(|piece| piece.calls.insert(number));
        }
        pieces.run_on(&self.ends);
        pieces
    }
}

impl Pieces {
    /// Where code does not end with its piece, it goes on in the next one.
    fn run_on(&mut self, ends: &[(u64, bool)]) {
        let starts: Vec<u64> = self.pieces.keys().copied().collect();
        for pair in starts.windows(2) {
            let behind = ends.partition_point(|(at, _)| *at < pair[1]);
            let last = behind.checked_sub(1).map(|index| ends[index]);
            let runs_on = last.is_some_and(|(at, runs_on)| runs_on && at >= pair[0]);
            if runs_on && let Some(piece) = self.pieces.get_mut(&pair[0]) {
                piece.addresses.insert(pair[1]);
            }
        }
    }
}

/// What fills the space between functions.
fn is_padding(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::INVALID)
}

/// Whether the instruction behind is run after this one. A call at the very end of
/// a function is one of something that does not return.
fn runs_on(instruction: &Instruction) -> bool {
    matches!(flow(instruction), FlowControl::Next | FlowControl::ConditionalBranch)
}

/// Where execution goes; a system call is not a call for this purpose, since it
/// comes back with all registers but a few.
fn flow(instruction: &Instruction) -> FlowControl {
    if instruction.code() == Code::Syscall { FlowControl::Next } else { instruction.flow_control() }
}

/// Whether this is a call of the C library's `syscall`.
fn calls_wrapper(image: &Image, instruction: &Instruction) -> bool {
    let wrapper = |at: u64| image.symbols.get(WRAPPER) == Some(&at);
    let slot =
        |at: u64| matches!(image.filled.get(&at), Some(Filled::Symbol(name)) if name == WRAPPER);
    match instruction.flow_control() {
        FlowControl::Call | FlowControl::UnconditionalBranch => {
            let target = instruction.near_branch_target();
            wrapper(target) || stub(image, target).is_some_and(slot)
        }
        FlowControl::IndirectCall => {
            instruction.is_ip_rel_memory_operand() && slot(instruction.ip_rel_memory_address())
        }
        _ => false,
    }
}

/// The word through which a stub of the procedure linkage table jumps.
fn stub(image: &Image, at: u64) -> Option<u64> {
    let section = image.section(at).filter(|section| section.code)?;
    let bytes = section.bytes.get((at - section.range.start) as usize..)?;
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    for instruction in decoder.iter().take(2) {
        if instruction.flow_control() == FlowControl::IndirectBranch {
            let through = instruction.is_ip_rel_memory_operand();
            return through.then(|| instruction.ip_rel_memory_address());
        }
    }
    None
}

/// The constant that the last writer of `register` put there. A copy is followed to
/// where it comes from, over jumps, too: compilers load numbers ahead of a loop.
fn constant(before: &[Instruction], register: Register) -> Option<u32> {
    let mut wanted = register;
    for instruction in before.iter().rev() {
        match flow(instruction) {
            FlowControl::Next if instruction.code() == Code::Syscall && wanted == Register::RAX => {
                return None;
            }
            FlowControl::Next | FlowControl::ConditionalBranch => {}
            FlowControl::UnconditionalBranch if wanted != register => {}
            _ => return None,
        }
        if !writes(instruction, wanted) {
            continue;
        }
        let from_register =
            instruction.op_count() > 1 && instruction.op1_kind() == OpKind::Register;
        match instruction.code() {
            Code::Mov_r32_imm32 | Code::Mov_rm32_imm32 => return Some(instruction.immediate32()),
            Code::Mov_rm64_imm32 | Code::Mov_r64_imm64 => {
                return u32::try_from(instruction.immediate(1)).ok();
            }
            Code::Xor_r32_rm32 | Code::Xor_rm32_r32
                if from_register && instruction.op0_register() == instruction.op1_register() =>
            {
                return Some(0);
            }
            Code::Mov_r32_rm32 | Code::Mov_rm32_r32 | Code::Mov_r64_rm64 | Code::Mov_rm64_r64
                if from_register =>
            {
                wanted = instruction.op1_register().full_register();
            }
            _ => return None,
        }
    }
    None
}

/// Whether the first operand is `register`, and written.
fn writes(instruction: &Instruction, register: Register) -> bool {
    instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == register
        && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push)
}
