//! Services and who provides them. A name belongs to the task whose description provides it,
//! and to the thread of it that registered; it ends with that thread. Only tasks whose
//! descriptions use a name may ask for it: to all others there is none.

use abi::ThreadId;
use proto::root::client;
use proto::{Name, Refusal, console};
use runtime::Msg;

use crate::{Reply, Root, done, refused};

impl Root {
    /// The thread `from` of the task in `slot` is now found under `name`.
    pub fn register(&mut self, slot: usize, from: ThreadId, name: Name) -> Reply {
        let task = self.task_mut(slot)?;
        let place = task.spec.provides.place(name);
        let Some(entry) = place.and_then(|place| task.services.get_mut(place)) else {
            return refused(Refusal::NotAllowed);
        };
        match entry {
            Some(thread) if *thread != from => refused(Refusal::Taken),
            free => {
                *free = Some(from);
                done()
            }
        }
    }

    /// Who is found under `name`, for the task in `slot`.
    pub fn lookup(&self, slot: usize, name: Name) -> Reply {
        if !self.task(slot)?.spec.may_use(name) {
            return refused(Refusal::NotAllowed);
        }
        match self.service(name) {
            Some(thread) => Some(Msg::new(proto::OK).word(thread.0)),
            None => refused(Refusal::Unknown),
        }
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
    pub fn describe_client(&self, slot: usize, thread: ThreadId) -> Result<Msg, Refusal> {
        let server = self.task(slot).ok_or(Refusal::Unknown)?;
        if server.spec.provides.iter().next().is_none() {
            return Err(Refusal::NotAllowed);
        }
        let (home, _) = self.sender(thread).ok_or(Refusal::Unknown)?;
        let task = self.task(home).ok_or(Refusal::Unknown)?;
        let uses = server.spec.provides.iter().any(|name| task.spec.may_use(name));
        let rights = [
            (uses, client::USES),
            (task.spec.console, client::CONSOLE),
            (task.spec.control, client::CONTROL),
        ];
        let rights = rights.iter().filter(|(has, _)| *has).fold(0, |all, (_, bit)| all | bit);
        Ok(Msg::new(proto::OK).words(&[home as u64, task.generation, rights]))
    }
}
