//! The machine's processors and interrupt controllers, as firmware lists them: the multiple
//! APIC description table (ACPI 6.5, 5.2.12).
//!
//! [`read`] believes the table only as a whole: an entry that is cut off, or a number that
//! cannot be, and the machine is run as one without the table.

use super::acpi::{self, Defect, HEADER_BYTES, RootTable};
use super::info::field;
use super::memory::{PAGE, PhysicalMemory};

/// Processors that are kept.
pub const MAX_PROCESSORS: usize = 64;
/// I/O APICs that are kept.
pub const MAX_IO_APICS: usize = 8;
/// Entries about non-maskable interrupts that are kept, of each kind.
pub const MAX_NMIS: usize = 16;
/// Interrupts of the ISA bus.
pub const ISA_LINES: usize = 16;
/// The 8259's own; nothing comes here.
const CASCADE: usize = 2;
/// Bytes before the first entry.
const FIXED_BYTES: usize = HEADER_BYTES + 8;
/// A local NMI entry that is for all processors.
const EVERYBODY: u32 = 0xFF;
/// Inputs of all I/O APICs: more than this is a mistake.
const MAX_INPUT: u32 = 4096;
/// End of the physical addresses that a device can have.
const ADDRESS_END: u64 = 1 << 46;

/// Types of entries.
mod kind {
    pub const PROCESSOR: u8 = 0;
    pub const IO_APIC: u8 = 1;
    pub const OVERRIDE: u8 = 2;
    pub const NMI: u8 = 3;
    pub const LOCAL_NMI: u8 = 4;
    pub const ADDRESS: u8 = 5;
    pub const PROCESSOR_X2: u8 = 9;
    pub const LOCAL_NMI_X2: u8 = 10;
}

/// How a line signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signal {
    /// As long as there is something to do, rather than once.
    pub is_level: bool,
    /// By the low rather than the high voltage.
    pub is_low: bool,
}

impl Signal {
    /// From an entry's flags; zeros mean `usual`.
    fn decode(flags: u16, usual: Self) -> Result<Self, Defect> {
        let choose = |bits: u16, usual| match bits & 3 {
            0 => Ok(usual),
            1 => Ok(false),
            3 => Ok(true),
            _ => Err(Defect::Nonsense("a line signals in a way that does not exist")),
        };
        Ok(Self {
            is_low: choose(flags, usual.is_low)?,
            is_level: choose(flags >> 2, usual.is_level)?,
        })
    }
}

/// A processor that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Processor {
    /// Its local APIC.
    pub apic: u32,
    /// What other entries call it.
    pub uid: u32,
}

/// An I/O APIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoApic {
    /// Physical address of its registers.
    pub address: u64,
    /// Number of its first input among all inputs of the machine.
    pub first: u32,
}

/// Where a line of the ISA bus arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Input {
    /// The input among all of the machine.
    pub number: u32,
    /// How it signals.
    pub signal: Signal,
}

/// A pin of local APICs on which non-maskable interrupts come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LocalNmi {
    /// For which processor; `None`: all.
    pub uid: Option<u32>,
    /// 0 or 1.
    pub pin: u8,
    /// How it signals.
    pub signal: Signal,
}

/// A list with room for `N`; what does not fit is counted.
#[derive(Clone, Copy, Debug)]
pub struct List<T, const N: usize> {
    items: [T; N],
    count: usize,
    /// How many did not fit.
    pub dropped: u32,
}

impl<T: Copy + Default, const N: usize> List<T, N> {
    fn new() -> Self {
        Self { items: [T::default(); N], count: 0, dropped: 0 }
    }

    fn push(&mut self, item: T) {
        match self.items.get_mut(self.count) {
            Some(slot) => {
                *slot = item;
                self.count += 1;
            }
            None => self.dropped = self.dropped.saturating_add(1),
        }
    }

    /// What is there.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        self.items.get(..self.count).unwrap_or_default()
    }
}

/// What the table says.
#[derive(Clone, Copy, Debug)]
pub struct Madt {
    /// Physical address of every processor's local APIC.
    pub local: u64,
    /// The pair of 8259s is there, too.
    pub has_8259: bool,
    /// Processors that can be used.
    pub processors: List<Processor, MAX_PROCESSORS>,
    /// I/O APICs.
    pub io_apics: List<IoApic, MAX_IO_APICS>,
    /// Where the lines of the ISA bus arrive; `None`: nowhere.
    pub isa: [Option<Input>; ISA_LINES],
    /// Inputs that mean a non-maskable interrupt.
    pub nmis: List<Input, MAX_NMIS>,
    /// Pins of local APICs that do.
    pub local_nmis: List<LocalNmi, MAX_NMIS>,
}

/// Finds and reads the table.
///
/// # Errors
/// What is wrong with it.
pub fn find(memory: &impl PhysicalMemory, root: Option<RootTable>) -> Result<Madt, Defect> {
    let root = root.or_else(|| acpi::search(memory)).ok_or(Defect::NoPointer)?;
    read(acpi::table(memory, root, *b"APIC")?)
}

/// Reads the table's bytes.
///
/// # Errors
/// What is wrong with them.
pub fn read(table: &[u8]) -> Result<Madt, Defect> {
    let word = |at| field::u32(table, at).ok_or(Defect::Entry(at));
    let mut madt = Madt {
        local: u64::from(word(HEADER_BYTES)?),
        has_8259: word(HEADER_BYTES + 4)? & 1 != 0,
        processors: List::new(),
        io_apics: List::new(),
        isa: [None; ISA_LINES],
        nmis: List::new(),
        local_nmis: List::new(),
    };
    let mut at = FIXED_BYTES;
    while let Some(rest) = table.get(at..).filter(|rest| !rest.is_empty()) {
        let len = usize::from(*rest.get(1).ok_or(Defect::Entry(at))?);
        let entry = rest.get(..len).filter(|entry| entry.len() >= 2).ok_or(Defect::Entry(at))?;
        madt.entry(entry, at)?;
        at += len;
    }
    madt.finish()
}

impl Madt {
    /// Where the controllers' registers are; nobody but the kernel may reach those pages.
    pub fn devices(&self) -> impl Iterator<Item = u64> + '_ {
        [self.local].into_iter().chain(self.io_apics.as_slice().iter().map(|apic| apic.address))
    }

    fn entry(&mut self, entry: &[u8], at: usize) -> Result<(), Defect> {
        let short = Defect::Entry(at);
        let byte = |at: usize| entry.get(at).copied().ok_or(short);
        let half = |at| Ok(u16::from_le_bytes([byte(at)?, byte(at + 1)?]));
        let word = |at| field::u32(entry, at).ok_or(short);
        match byte(0)? {
            kind::PROCESSOR => {
                let who = Processor { apic: byte(3)?.into(), uid: byte(2)?.into() };
                // That number is everybody's: some firmware lists what is not there so.
                if who.apic != EVERYBODY {
                    self.processor(who, word(4)?);
                }
            }
            kind::PROCESSOR_X2 => {
                self.processor(Processor { apic: word(4)?, uid: word(12)? }, word(8)?);
            }
            kind::IO_APIC => {
                self.io_apics.push(IoApic { address: word(4)?.into(), first: word(8)? });
            }
            kind::OVERRIDE => self.override_isa(byte(2)?, byte(3)?, word(4)?, half(8)?)?,
            kind::NMI => {
                let signal = Signal::decode(half(2)?, Signal::default())?;
                self.nmis.push(Input { number: word(4)?, signal });
            }
            kind::LOCAL_NMI => self.local_nmi(byte(2)?.into(), EVERYBODY, half(3)?, byte(5)?)?,
            kind::LOCAL_NMI_X2 => self.local_nmi(word(4)?, !0, half(2)?, byte(8)?)?,
            kind::ADDRESS => self.local = field::u64(entry, 4).ok_or(short)?,
            _ => {}
        }
        Ok(())
    }

    /// Notes a processor that is enabled, the first time that it is named.
    fn processor(&mut self, who: Processor, flags: u32) {
        let is_known = self.processors.as_slice().iter().any(|other| other.apic == who.apic);
        if flags & 1 != 0 && !is_known {
            self.processors.push(who);
        }
    }

    fn override_isa(&mut self, bus: u8, line: u8, to: u32, flags: u16) -> Result<(), Defect> {
        let nonsense = Defect::Nonsense("an override is for no line of the ISA bus");
        let slot = self.isa.get_mut(usize::from(line)).filter(|_| bus == 0).ok_or(nonsense)?;
        *slot = Some(Input { number: to, signal: Signal::decode(flags, Signal::default())? });
        Ok(())
    }

    fn local_nmi(&mut self, uid: u32, all: u32, flags: u16, pin: u8) -> Result<(), Defect> {
        if pin > 1 {
            return Err(Defect::Nonsense("a local APIC has no such pin for an NMI"));
        }
        let signal = Signal::decode(flags, Signal::default())?;
        self.local_nmis.push(LocalNmi { uid: (uid != all).then_some(uid), pin, signal });
        Ok(())
    }

    /// Gives the lines without an override their own inputs, unless another has them, and
    /// looks at the whole.
    fn finish(mut self) -> Result<Self, Defect> {
        let given = self.isa;
        let is_taken = |number| given.iter().flatten().any(|input| input.number == number);
        for (line, slot) in self.isa.iter_mut().enumerate() {
            let own = Input { number: line as u32, signal: Signal::default() };
            if slot.is_none() && line != CASCADE && !is_taken(own.number) {
                *slot = Some(own);
            }
        }
        let is_place = |address: u64, multiple| {
            address != 0 && address.is_multiple_of(multiple) && address < ADDRESS_END
        };
        let nonsense = |is, why| if is { Err(Defect::Nonsense(why)) } else { Ok(()) };
        nonsense(!is_place(self.local, PAGE), "the local APIC is at no possible address")?;
        nonsense(self.processors.as_slice().is_empty(), "it lists no processor")?;
        let apics = self.io_apics.as_slice();
        nonsense(apics.is_empty(), "it lists no I/O APIC")?;
        let is_sound = |apic: &IoApic| is_place(apic.address, 16) && apic.first < MAX_INPUT;
        nonsense(
            !apics.iter().all(is_sound),
            "an I/O APIC has an impossible address or first input",
        )?;
        let inputs = self.isa.iter().flatten().map(|input| input.number);
        let twice = inputs
            .clone()
            .enumerate()
            .any(|(at, input)| inputs.clone().skip(at + 1).any(|other| other == input));
        nonsense(twice, "two lines of the ISA bus share an input")?;
        Ok(self)
    }
}
