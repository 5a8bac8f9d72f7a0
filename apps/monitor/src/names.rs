//! Names for the kernel's numbers: the root task knows tasks, the kernel threads and spaces.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::ThreadId;
use abi::inspect::What;
use runtime::root;

use crate::kernel_view::record;

/// What the spaces are called.
pub struct Names {
    spaces: Vec<(u64, String)>,
}

impl Names {
    /// As things are now.
    pub fn read() -> Self {
        let mut spaces = Vec::new();
        let known = [(ThreadId::SIGMA0, "sigma0"), (ThreadId::ROOT, "root")];
        let known = known.into_iter().map(|(thread, name)| (thread, String::from(name)));
        let tasks = tasks().into_iter().filter(|(main, _)| !main.is_nil());
        for (main, name) in known.chain(tasks) {
            let found = record(What::Thread, u64::from(main.number()), 0);
            if let Some(found) = found.filter(|found| found[0] == main.0) {
                spaces.push((found[2], name));
            }
        }
        Self { spaces }
    }

    /// The task whose space this is.
    pub fn space(&self, space: u64) -> String {
        match self.spaces.iter().find(|(known, _)| *known == space) {
            Some((_, name)) => name.clone(),
            None => alloc::format!("space {space}"),
        }
    }

    /// The task of a thread, or what else its id stands for.
    pub fn thread(&self, id: u64) -> String {
        let thread = ThreadId(id);
        if thread.is_nil() {
            return String::from("-");
        }
        if thread == ThreadId::ANY {
            return String::from("anybody");
        }
        if thread.is_irq() {
            return alloc::format!("interrupt {}", thread.number());
        }
        match record(What::Thread, u64::from(thread.number()), 0) {
            Some(found) if found[0] == id => self.space(found[2]),
            _ => thread.to_string(),
        }
    }
}

/// Main thread (nil if it does not run) and name of every task.
pub fn tasks() -> Vec<(ThreadId, String)> {
    let mut tasks = Vec::new();
    while let Ok(task) = root::describe(tasks.len() as u64) {
        tasks.push((task.main, String::from(task.name.as_str())));
    }
    tasks
}
