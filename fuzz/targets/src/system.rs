//! System descriptions: the file that people write, which the tool reads, and the line
//! that it makes of each task, which the root task reads. Both must mean the same.

use bootcfg::Spec;
use xtask::system::{Pager, System, Task};

/// Words of system descriptions.
pub(crate) const FILE_WORDS: [&str; 20] = [
    "[[task]]\n",
    "[[module]]\n",
    "name = ",
    "image = ",
    "\"a\"",
    "priority = ",
    "irqs = [",
    "]",
    "ports = [\"",
    "mmio = [\"",
    "trusted = [\"",
    "provides = [\"",
    "threads = ",
    "0x",
    "18446744073709551615",
    "+1\"]",
    "args = \"",
    "true",
    "args=",
    "\n",
];
/// Words of tasks' lines.
pub(crate) const LINE_WORDS: [&str; 20] = [
    " priority=",
    " quota=",
    " memory=",
    " irq=",
    " ports=",
    " mmio=",
    " trusted=",
    " provides=",
    " uses=",
    " threads=",
    " slice=",
    " start=",
    " restart=",
    " control=",
    " pager=",
    "args=",
    "0x",
    "18446744073709551615",
    "+",
    ",",
];

/// The file.
pub fn system(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(system) = System::parse(text, "systems/fuzzed.toml") else { return false };
    system.tasks.iter().for_each(same_on_both_sides);
    true
}

/// The root task understands what the tool says about a task, as it was meant.
fn same_on_both_sides(task: &Task) {
    let line = task.cmdline();
    let spec = Spec::parse(&line).unwrap_or_else(|mistake| panic!("`{line}`: {mistake}"));
    assert_eq!(spec.name.as_str(), task.name.get_ref(), "{line}");
    if let Some(priority) = &task.priority {
        assert_eq!(u32::from(spec.priority), *priority.get_ref(), "{line}");
    }
    let pages = |given: Option<u32>, read: u64| given.is_none_or(|given| u64::from(given) == read);
    assert!(pages(task.quota_pages, spec.quota) && pages(task.memory_pages, spec.memory), "{line}");
    assert_eq!((spec.start, spec.restart), (task.autostart, task.restart), "{line}");
    assert_eq!((spec.control, spec.root_paged), (task.control, task.pager == Some(Pager::Root)));
    assert!(spec.irqs().iter().eq(task.irqs.iter().map(|irq| irq.get_ref())), "{line}");
    let both = [(&task.ports, &spec.ports), (&task.mmio, &spec.mmio)];
    for (given, read) in
        both.into_iter().flat_map(|(list, read)| list.iter().map(move |one| (one, read)))
    {
        if given.get_ref() == bootcfg::FRAMEBUFFER {
            assert_ne!(spec.framebuffer, bootcfg::Screen::Unnamed, "{line}");
            continue;
        }
        let (base, count) = given.get_ref().split_once('+').expect("it was accepted");
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).expect("it was accepted"),
            None => text.parse().expect("it was accepted"),
        };
        assert!(read.hold(number(base), number(count)), "{line}");
    }
    let args = task.args.as_ref().map_or("", |args| args.get_ref().trim_end());
    assert_eq!(spec.args(), args.as_bytes(), "{line}");
}

/// The line.
pub fn task_line(bytes: &[u8]) -> bool {
    let line = String::from_utf8_lossy(bytes);
    let Ok(spec) = Spec::parse(&line) else { return false };
    assert!(spec.irqs().iter().all(|line| *line < 256), "{line}");
    assert!(spec.priority < 255 && spec.name.as_str().len() <= 16, "{line}");
    assert!(!spec.ports.hold(0x1_0000, 1) && !spec.ports.hold(u64::MAX, 1), "{line}");
    assert!(!spec.ports.hold(0xFFFF, 2) && !spec.ports.hold(0, u64::MAX), "{line}");
    true
}
