//! The beginning: ports and memory from σ0, tasks from the bootinfo.

use bootcfg::{Kind, Mistake, Record, Spec, claims, records};
use paging::Image;
use runtime::pool::{Modules, Pool};
use runtime::{direct, direct_println, kip, sigma0};

use crate::place::Places;
use crate::task::Task;
use crate::{Root, TASKS};

/// Port of the emulator's exit device.
pub const EXIT_PORT: u16 = 0xF4;
/// Log2 size of the pool for the tasks that the root task pages itself: 4 MiB.
const OWN_POOL_BITS: u32 = 22;
/// Log2 sizes to try for the pager's pool: 1 GiB to 4 MiB.
const PAGER_POOL_BITS: core::ops::RangeInclusive<u32> = LEAST_POOL..=30;
/// The least of these, however little the description says.
const LEAST_POOL: u32 = 22;

/// Why there is no system to start.
pub enum Trouble {
    /// The KIP names no bootinfo.
    NoBootinfo,
    /// σ0 does not give it out.
    Refused(u64),
    /// It cannot be read.
    Bad(bootcfg::BadBootinfo),
}

impl core::fmt::Display for Trouble {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoBootinfo => f.write_str(
                "the kernel interface page names no bootinfo; boot an image with programs.",
            ),
            Self::Refused(at) => write!(
                f,
                "sigma0 does not give out the bootinfo at {at:#x}; check its memory descriptor."
            ),
            Self::Bad(bad) => write!(f, "{bad}."),
        }
    }
}

/// Ports for reports, and for ending the machine.
pub fn take_ports() {
    let _ = sigma0::ports(direct::BASE, direct::PORT_BITS);
    let _ = sigma0::ports(EXIT_PORT, 2);
}

/// Reads the tasks of the boot image into the table.
pub fn read_tasks(root: &mut Root) -> Result<(), Trouble> {
    let at = kip::get().bootinfo();
    if at == 0 {
        return Err(Trouble::NoBootinfo);
    }
    let first = at & !0xFFF;
    let head = sigma0::range(first, first + 4096).ok_or(Trouble::Refused(at))?;
    let offset = at - first;
    let size = head.read(offset + 16).min(1 << 20);
    let rest = first + 4096;
    let more = (at + size > rest).then(|| sigma0::range(rest, at + size));
    let read = |byte: u64| {
        let from_head = offset + byte;
        match &more {
            _ if from_head < 4096 => head.read(from_head),
            Some(Some(window)) if from_head - 4096 < window.bytes() => {
                window.read(from_head - 4096)
            }
            _ => 0,
        }
    };
    let mut slot = 0;
    records(read, |record| add(root, &mut slot, record)).map_err(Trouble::Bad)
}

/// Adds the task of one record, if it describes one.
fn add(root: &mut Root, slot: &mut usize, record: &Record) {
    match record.kind {
        Kind::Module { start, size } if record.line() == bootcfg::places::FILE => {
            root.places = Places::open(start, size);
        }
        Kind::Framebuffer(said) => root.screen.learn(said),
        Kind::Module { start, size } => root.modules.add(record.line(), start, size),
        Kind::Program { phys, virt, text, data, bss, entry } => {
            let image = Image { phys, virt, text, data, bss };
            let window = sigma0::range(phys, phys + text + data);
            let places = root.places.as_mut();
            let distance = places.map_or(0, |places| places.next(&image, window.as_ref()));
            if let Some(spec) = spec(record) {
                let modules = window.map(|window| Modules { phys: window.base(), window });
                let mut task =
                    Task::new(root.with_screen(with_processor(spec)), image, entry, modules);
                task.move_by(distance);
                add_task(root, slot, task);
            }
        }
    }
}

/// The description in a record's line; says what is wrong with it.
fn spec(record: &Record) -> Option<Spec> {
    match Spec::parse(record.line()) {
        Ok(spec) => Some(spec),
        Err(Mistake::NoName) => None,
        Err(mistake) => {
            direct_println!("root: the line `{}` describes no task: {mistake}.", record.line());
            None
        }
    }
}

/// Adds a task, if it can be one.
fn add_task(root: &mut Root, slot: &mut usize, mut task: Task) {
    let spec = task.spec;
    if matches!(spec.name.as_str(), "sigma0" | "sigma1" | "root") {
        return;
    }
    if !is_room_for(root, *slot, &spec) || !has_its_own(root, &spec) {
        return;
    }
    take_ports_of(&spec);
    if task.modules.is_none() {
        direct_println!(
            "root: {} is not usable: sigma0 does not give out its memory at {:#x}.",
            spec.name,
            task.image.phys
        );
    }
    if spec.name.as_str() == "pager" {
        root.pager = Some(*slot);
    }
    if spec.threads != 0 {
        let Some(numbers) = root.ranges.take(spec.threads) else {
            direct_println!(
                "root: {} is not added: there are no {} thread numbers left; lower threads=.",
                spec.name,
                spec.threads
            );
            return;
        };
        task.numbers = numbers;
    }
    task.spec.root_paged |= spec.name.as_str() == "pager";
    root.tasks[*slot] = Some(task);
    *slot += 1;
}

/// Whether the task has a slot and a name that no other one has; says why not.
fn is_room_for(root: &Root, slot: usize, spec: &Spec) -> bool {
    let room = slot < TASKS && root.slot_named(spec.name).is_none();
    if !room {
        direct_println!(
            "root: {} is not added: there are {TASKS} tasks at most, each with its own name.",
            spec.name
        );
    }
    room
}

/// The description; a task whose processor does not run gets the first one, and it is said.
fn with_processor(mut spec: Spec) -> Spec {
    let count = kip::get().processors();
    if spec.processor >= count {
        direct_println!(
            "root: {} runs on processor 0: there is no processor {}, for {count} of them run (`./baton run --cpus N`).",
            spec.name,
            spec.processor
        );
        spec.processor = 0;
    }
    spec
}

/// Takes the ports that the description names, all at once: whatever pieces the task asks for
/// later, σ0's book does not grow by them.
fn take_ports_of(spec: &Spec) {
    for (first, last) in spec.ports.iter() {
        let mut at = first;
        while at <= last {
            let bits = at.trailing_zeros().min((last + 1 - at).ilog2());
            let _ = sigma0::ports(at as u16, bits);
            at += 1 << bits;
        }
    }
}

/// Whether the devices that the description names are its alone, and are devices; says
/// what is wrong, and what else there is to know.
fn has_its_own(root: &Root, spec: &Spec) -> bool {
    let others = root.tasks.iter().flatten().map(|task| &task.spec);
    if let Err(claim) = claims::check(spec, others) {
        direct_println!("root: {} is not added: {claim}.", spec.name);
        return false;
    }
    if let Some((first, last)) = spec.mmio.iter().find(|range| is_memory(*range)) {
        direct_println!(
            "root: {} is not added: {first:#x} to {last:#x} is the machine's memory, no device's.",
            spec.name
        );
        return false;
    }
    if claims::reaches_all_memory(spec) {
        direct_println!(
            "root: {} is trusted with all memory: its devices can be told to read and write it.",
            spec.name
        );
    }
    true
}

/// Whether some of the range is memory that the machine uses as such.
pub fn is_memory(range: (u64, u64)) -> bool {
    use abi::kip::memory_type::{BOOT, CONVENTIONAL, RESERVED};
    kip::get().memory().any(|known| {
        !known.is_virtual
            && [BOOT, CONVENTIONAL, RESERVED].contains(&known.kind)
            && known.low <= range.1
            && range.0 <= known.high
    })
}

/// Memory for the tasks: a small pool of the root task's own, a large one for
/// the pager, as its description says. What is left in σ0 is for requests; nobody else gets it from there.
pub fn take_memory(root: &mut Root) {
    root.pool = sigma0::memory(None, OWN_POOL_BITS).map(fresh).map(Pool::open);
    if let Some(pager) = root.pager {
        let pages = root.tasks.get(pager).and_then(Option::as_ref).and_then(|task| task.spec.pool);
        let most = pages.map_or(u64::MAX, |pages| pages.saturating_mul(4096));
        let bits = PAGER_POOL_BITS.rev().filter(|bits| 1 << bits <= most || *bits == LEAST_POOL);
        root.pager_pool = bits.into_iter().find_map(|bits| sigma0::memory(None, bits)).map(fresh);
    }
    sigma0::close();
    if root.pool.is_none() {
        direct_println!(
            "root: sigma0 has no block of 4 MiB left; tasks cannot be started. Give the machine more memory."
        );
    }
}

/// Memory may hold what an earlier system left there: no pool's header survives.
fn fresh(window: runtime::window::Window) -> runtime::window::Window {
    window.write(0, 0);
    window
}

/// Starts the pager, then everything that is to start with the system.
pub fn start_all(root: &mut Root) {
    if let Some(slot) = root.pager {
        let _ = root.start(slot);
    }
    for slot in 0..TASKS {
        let wanted =
            root.task(slot).is_some_and(|task| task.spec.start && Some(slot) != root.pager);
        if wanted {
            let _ = root.start(slot);
        }
    }
}
