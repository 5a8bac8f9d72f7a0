//! Who the clients are: what the root task says of a thread, remembered. A thread's id is
//! never given again, so what was true of it stays true.

use abi::ThreadId;
use interfaces::names::Rights;
use runtime::root;

/// Threads that are remembered.
const KNOWN: usize = 64;

/// A client's task.
#[derive(Clone, Copy)]
pub struct Client {
    /// Its number.
    pub task: usize,
    /// What its description allows.
    pub rights: Rights,
}

/// Those that asked lately.
pub struct Clients {
    known: [Option<(ThreadId, Client)>; KNOWN],
    /// Whose place the next one takes.
    next: usize,
}

impl Clients {
    /// Nobody yet.
    pub const fn new() -> Self {
        Self { known: [None; KNOWN], next: 0 }
    }

    /// The task of `thread`; `None` if the thread is gone, or no task's.
    pub fn find(&mut self, thread: ThreadId) -> Option<Client> {
        if let Some((_, client)) = self.known.iter().flatten().find(|known| known.0 == thread) {
            return Some(*client);
        }
        let who = root::client(thread).ok()?;
        let client = Client { task: who.task as usize, rights: who.rights };
        self.known[self.next] = Some((thread, client));
        self.next = (self.next + 1) % KNOWN;
        Some(client)
    }
}
