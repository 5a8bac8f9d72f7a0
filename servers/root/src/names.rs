//! Services and who provides them. A name belongs to the task whose description provides it,
//! and to the thread of it that registered; it ends with that thread. Only tasks whose
//! descriptions use a name may ask for it: to all others there is none.

use abi::ThreadId;
use interfaces::common::Refusal;
use interfaces::names::{Identity, Rights, Server};
use proto::{Name, console};
use runtime::service::Caller;

use crate::Root;
use crate::asked::Asked;

impl Server for Asked<'_> {
    fn register(&self, caller: Caller, name: &str) -> Result<(), Refusal> {
        self.root.borrow_mut().register(self.slot, caller, Name::new(name))
    }

    fn lookup(&self, _: Caller, name: &str) -> Result<ThreadId, Refusal> {
        self.root.borrow().lookup(self.slot, Name::new(name))
    }

    fn client(&self, _: Caller, who: ThreadId) -> Result<Identity, Refusal> {
        self.root.borrow().describe_client(self.slot, who)
    }
}

impl Root {
    /// The thread `from` of the task in `slot` is now found under `name`.
    fn register(&mut self, slot: usize, from: ThreadId, name: Name) -> Result<(), Refusal> {
        let task = self.task_mut(slot).ok_or(Refusal::Unknown)?;
        let place = task.spec.provides.place(name);
        let entry = place.and_then(|place| task.services.get_mut(place));
        match entry.ok_or(Refusal::NotAllowed)? {
            Some(thread) if *thread != from => Err(Refusal::Taken),
            free => {
                *free = Some(from);
                Ok(())
            }
        }
    }

    /// Who is found under `name`, for the task in `slot`.
    fn lookup(&self, slot: usize, name: Name) -> Result<ThreadId, Refusal> {
        if !self.task(slot).ok_or(Refusal::Unknown)?.spec.may_use(name) {
            return Err(Refusal::NotAllowed);
        }
        self.service(name).ok_or(Refusal::Unknown)
    }

    /// The thread that provides `name`.
    pub fn service(&self, name: Name) -> Option<ThreadId> {
        self.tasks.iter().flatten().find_map(|task| {
            let place = task.spec.provides.place(name)?;
            *task.services.get(place)?
        })
    }

    /// Whether `thread` is the console's driver.
    pub fn is_console(&self, thread: ThreadId) -> bool {
        self.service(Name::new(console::NAME)) == Some(thread)
    }

    /// What a server may know of a client: its task, its life, and whether the descriptions
    /// say that it uses this server, has the console, may control. Only for servers.
    fn describe_client(&self, slot: usize, thread: ThreadId) -> Result<Identity, Refusal> {
        let server = self.task(slot).ok_or(Refusal::Unknown)?;
        if server.spec.provides.iter().next().is_none() {
            return Err(Refusal::NotAllowed);
        }
        let (home, _) = self.sender(thread).ok_or(Refusal::Unknown)?;
        let task = self.task(home).ok_or(Refusal::Unknown)?;
        let uses = server.spec.provides.iter().any(|name| task.spec.may_use(name));
        let rights = [
            (uses, Rights::USES),
            (task.spec.console, Rights::CONSOLE),
            (task.spec.control, Rights::CONTROL),
        ];
        let rights = rights.into_iter().filter(|(has, _)| *has);
        let rights = rights.fold(Rights::NONE, |all, (_, right)| all.with(right));
        Ok(Identity { task: home as u32, life: task.generation, rights })
    }
}
